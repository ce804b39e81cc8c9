"""Orderings that estimates must respect, checked on pairs from the whole catalogue.

    python tools/orderings.py        # number of violating pairs of each ordering, and the worst

An ordering yields pairs of queries of which the first must take no longer than the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np

from mlsys.choices import Phase
from mlsys.hardware import Hardware
from mlsys.hardware.view import view
from mlsys.mapping.fusion import as_kernels
from mlsys.models.analysis.model import timing_of
from mlsys.models.estimate import CaseBatch, Snapshot, Work, kernel_times
from mlsys.models.estimate.default_software import machine_kind, setting_of
from mlsys.models.estimate.library import machines, parameters_of
from mlsys.models.estimate.lowering import expert_by_expert, kernels_of
from mlsys.models.estimate.machine import snapshot
from mlsys.models.estimate.ranges import ALL_SOURCES, range_of
from mlsys.precision import element_size
from mlsys.workloads import load

NETWORKS = ("resnet18", "resnet50", "mobilenet_v2", "vgg16", "vit_base_patch16_224", "bert-base", "yolov8n")
TINY = ("mobilenet_v1_0.25", "kws_ds_cnn", "ic_resnet8", "ad_autoencoder", "mcunet_in2")
LANGUAGE = ("llama-3.2-1b", "llama-3-8b", "mixtral-8x7b")
BATCHES, TOKENS, SIDES = (1, 2, 4, 8, 16, 32, 64), (32, 128, 512, 1024, 2048, 4096), (128, 160, 224, 320, 416, 640)
# Networks of one design, each with more of it than the one before.
DEEPER = (
    ("resnet18", "resnet34"), ("resnet50", "resnet101", "resnet152"), ("vgg11", "vgg16", "vgg19"),
    ("bert-base", "bert-large"), ("densenet121", "densenet201"), ("mobilenet_v2_0.5", "mobilenet_v2"),
    ("vit_small_patch16_224", "vit_base_patch16_224", "vit_large_patch16_224"), ("yolov8n", "yolov8m", "yolov8x"),
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """A query for the time of a network on a device, with the usual software of both."""

    device: str
    network: str
    precision: str
    batch: int = 1
    phase: Phase | None = None
    sequence: int | None = None
    image: int | None = None

    @property
    def lowered(self) -> tuple[Work, str, str]:
        """Its kernels, its name in the catalogue, and the software that usually runs it."""
        work, name, kind = _lowered(self.network, self.precision, self.batch, self.phase, self.sequence, self.image)
        return work, name, _setting(self.device, kind, self.precision)


Pair = tuple[Question, Question]


@lru_cache(maxsize=4096)
def _lowered(
    name: str, precision: str, batch: int, phase: Phase | None, sequence: int | None, image: int | None
) -> tuple[Work, str, str]:
    sizes: dict[str, Any] = {
        key: value for key, value in (("sequence", sequence), ("image", image), ("phase", phase)) if value
    }
    built = as_kernels(load(name, precision=precision, batch=batch, **sizes))
    return expert_by_expert(kernels_of(built, None), element_size(precision).m_as("byte")), built.name, built.kind


@lru_cache(maxsize=4096)
def _setting(device: str, kind: str, precision: str) -> str:
    return setting_of(Hardware[device], None, kind, precision)


def seconds(questions: Sequence[Question]) -> np.ndarray:
    """Return what :func:`mlsys.models.analysis.analyze` estimates of each question, all of them side by side."""
    engines: dict[tuple[str, str, str, str, int], tuple[Snapshot, np.ndarray, float, float]] = {}
    requests = []
    for each in questions:
        work, name, setting = each.lowered
        key = (each.device, each.precision, setting, name, each.batch)
        if key not in engines:
            parameters = parameters_of(setting, each.device, name, precision=each.precision)[0]
            timing = timing_of(Hardware[each.device], each.precision, parameters).as_used(setting, each.batch)
            engines[key] = timing.engine.as_numbers(), parameters.vectorised(), timing.peak, timing.bandwidth
        requests.append((*engines[key], work))
    stack = CaseBatch.of([(engine, work, True) for engine, _, _, _, work in requests])
    peaks, bandwidths = (np.array([each[at] for each in requests])[stack.case] for at in (2, 3))
    times = kernel_times(stack, np.array([each[1] for each in requests]))
    return stack.total(times.at_least(stack.kernels["flops"], stack.kernels["moved"], peaks, bandwidths).seconds)


@lru_cache(maxsize=512)
def formats(device: str) -> tuple[str, ...]:
    """Return the formats with a rate on a device, of those used for networks, widest first."""
    have = [name for name in ("fp32", "fp16", "bf16", "int8") if view(Hardware[device], name).has("rate")]
    return tuple(name for name in have if name != "bf16" or "fp16" not in have)


@lru_cache(maxsize=512)
def kind(device: str) -> str:
    return machine_kind(Hardware[device])


def _grid(networks: Iterable[str] = NETWORKS) -> Iterator[Question]:
    for device in (each.id for each in Hardware.find()):
        for name, precision in product(TINY if kind(device) == "MCU" else tuple(networks), formats(device)):
            yield Question(device, name, precision)


def _along(field: str, values: Sequence[int], start: Iterable[Question]) -> Iterator[Pair]:
    for each in start:
        if kind(each.device) != "MCU":
            sizes: list[dict[str, Any]] = [{field: value} for value in values]
            yield from pairwise(replace(each, **size) for size in sizes)


def _talks(phase: Phase) -> list[Question]:
    halves = (
        each for each in _grid(("resnet50",)) if each.precision in ("fp16", "bf16") and kind(each.device) != "MCU"
    )
    return [replace(each, network=name, phase=phase, sequence=512) for each, name in product(halves, LANGUAGE)]


def narrower() -> Iterator[Pair]:
    """Yield pairs in which a narrower format has the higher rate (not INT8 on CPUs without dot products)."""
    for device in (each.id for each in Hardware.find()):
        for wide, narrow in pairwise(formats(device)):
            rates = [view(Hardware[device], each).require("rate") for each in (narrow, wide)]
            if rates[0] >= rates[1]:
                names = TINY if kind(device) == "MCU" else NETWORKS
                yield from (
                    (Question(device, name, narrow, batch), Question(device, name, wide, batch))
                    for name, batch in product(names, (1,) if kind(device) == "MCU" else (1, 32))
                )


def _facts(device: str, precision: str) -> np.ndarray:
    engine = snapshot(view(Hardware[device], precision))
    names = ("matmul", "vector", "bandwidth", "cache", "cache_bandwidth", "clock", "power", "link")
    return np.array([getattr(engine, name) for name in names])


def better() -> Iterator[Pair]:
    """Yield pairs of devices of one kind and architecture, one of which is at least as good in all model inputs."""
    devices = [(each.id, each.architecture, formats(each.id)[-1]) for each in Hardware.find() if formats(each.id)]
    facts = {(name, form): _facts(name, form) for name, _, form in devices}
    for (one, design, form), (other, same, its) in permutations(devices, 2):
        if (
            design == same
            and form == its
            and kind(one) == kind(other)
            and (facts[one, form] >= facts[other, its]).all()
        ):
            names = TINY if kind(one) == "MCU" else NETWORKS
            for name, batch in product(names, (1,) if kind(one) == "MCU" else (1, 8, 64)):
                pair = Question(one, name, form, batch), Question(other, name, form, batch)
                if pair[0].lowered[2] == pair[1].lowered[2]:
                    yield pair


def both_measured(pair: Pair) -> bool:
    """Return whether rows of both machines under their software ship: a QCS8275 is slower than a QCS8450 in all 27."""
    return all(each.device in machines().get(each.lowered[2], ()) for each in pair)


def told_apart(pair: Pair, first: float, second: float) -> bool:
    """Return whether the first is significantly slower: whether the ranges of the two do not overlap."""
    reach = [range_of(each.lowered[2], each.device, each.lowered[1], source=ALL_SOURCES) for each in pair]
    return first * reach[0].low > second * reach[1].high


@dataclass(frozen=True)
class Ordering:
    """Pairs of which the first must take no longer, with a tolerance and its reason."""

    pairs: Callable[[], Iterable[Pair]]
    slack: float
    why: str


ORDERINGS = {
    "a larger batch": Ordering(
        lambda: _along("batch", BATCHES, _grid()), 1.2, "tiles of many cores: twice the rows may fill them better"
    ),
    "a larger picture": Ordering(
        lambda: _along("image", SIDES, _grid(("resnet50", "mobilenet_v2", "yolov8n"))), 1.02, "whole tiles"
    ),
    "a longer prompt": Ordering(lambda: _along("sequence", TOKENS, _talks("prefill")), 1.02, "whole tiles"),
    "more to look back at": Ordering(lambda: _along("sequence", TOKENS, _talks("decode")), 1.001, "nothing"),
    "more sequences at once": Ordering(lambda: _along("batch", BATCHES, _talks("decode")), 1.02, "whole tiles"),
    "a deeper network": Ordering(
        lambda: (
            (replace(each, network=small), replace(each, network=large))
            for each in _grid(("resnet50",))
            if kind(each.device) != "MCU"
            for chain in DEEPER
            for small, large in pairwise(chain)
        ),
        1.15,
        "each network has an effect of its own, from few rows",
    ),
    "a narrower format": Ordering(narrower, 1.06, "software of bytes and of floats is fitted apart"),
    "a better device": Ordering(better, 2.3, "rows of either may say so; ranges that part, rows of both"),
}


def broken(name: str, pairs: Sequence[Pair]) -> list[tuple[float, Pair]]:
    """Return the pairs that violate an ordering beyond its tolerance, with the ratio (devices: only if significant)."""
    ordering = ORDERINGS[name]
    first, second = (seconds([pair[at] for pair in pairs]) for at in (0, 1))
    found = []
    for pair, one, other in zip(pairs, first.tolist(), second.tolist(), strict=True):
        apart = name == "a better device" and told_apart(pair, one, other) and not both_measured(pair)
        if one > other * ordering.slack or apart:
            found.append((one / other, pair))
    return sorted(found, key=lambda each: -each[0])


def main() -> None:
    for name, ordering in ORDERINGS.items():
        pairs = list(ordering.pairs())
        ratios = np.concatenate(
            [
                np.divide(*(seconds([pair[side] for pair in pairs[at : at + 2000]]) for side in (0, 1)))
                for at in range(0, len(pairs), 2000)
            ]
        )
        over = ", ".join(f"{int((ratios > 1 + part).sum())} by {part:.0%}" for part in (0.02, 0.06, 0.2))
        worst = pairs[int(ratios.argmax())]
        print(f"{name}: {len(pairs)} pairs; broken {over}; worst {ratios.max():.2f}, {worst[0]} over {worst[1]}")
        apart = [
            pair for pair, ratio in zip(pairs, ratios, strict=True) if ratio > 1.02 and told_apart(pair, ratio, 1.0)
        ]
        print(f"    ranges part the wrong way: {len(apart)} {apart[:3]}")


if __name__ == "__main__":
    main()
