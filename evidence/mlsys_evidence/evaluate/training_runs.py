"""Published training runs against :func:`mlsys.models.training.training_step`: no constant of it is fitted to them.

A row gives model, layout and either a step time, tokens per second or a rate in FLOP/s by the convention of its source;
:func:`step_seconds` makes a step time of each. What the rows do not state, such as the attention kernel, follows from
the software of their source (:data:`SOFTWARE`), never from a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsys.constants import fact
from mlsys.formulas import training_flops_per_token, training_step_flops
from mlsys.hardware import Hardware, System, systems
from mlsys.inputs import csv_records
from mlsys.mapping.parallel import Layout
from mlsys.models.training import TrainingStep, training_step
from mlsys.provenance import unrecorded
from mlsys.workloads.zoo.language import LanguageModel

DATA = Path(__file__).parents[1] / "data" / "scale" / "training_runs.csv"

SOFTWARE: dict[str, dict[str, Any]] = {
    # 2021: attention with stored scores and dropout, full recomputation, nothing overlapped, gradients in FP32.
    "megatron 2021": dict(
        attention="standard", dropout=True, sequence_parallel=False, recompute="full", zero=0, overlap="none"
    ),
    # Megatron-DeepSpeed of BLOOM: the same without dropout, and with ZeRO-1.
    "bloom": dict(attention="standard", sequence_parallel=False, recompute="full", zero=1, overlap="none"),
    # llm-foundry: FSDP, fused attention, full recomputation, 16-bit gradients.
    "mpt": dict(zero=3, recompute="full", gradients="bf16"),
    # Megatron Core and NeMo: fused attention, sequence parallelism, distributed optimiser, all axes overlapped.
    "megatron core": dict(overlap="all", gradients="bf16"),
    # Llama 3: FSDP that keeps weights gathered after the forward pass moves as many bytes as ZeRO-1; BF16 weights
    # with FP32 gradients. Its schedule is interleaved by a number of chunks that is not published: two layers each.
    "llama 3": dict(overlap="data", chunks=4),
}
"""Options of a step by software, as its source describes it."""

_NODES = {
    "A100-80": ("DGX_A100", None),
    "A100 (": ("DGX_A100", None),
    "A100-40": ("DGX_A100", "A100_40GB"),
    "H100": ("DGX_H100", None),
    "GB200": ("GB200_NVL72", None),
    "GB300": ("GB300_NVL72", None),
    "B200": ("DGX_B200", None),
}
"""System and, where it differs, device by the start of a row's name of the chip."""

_JEAN_ZAY = fact(
    6.25,
    "GB/s",
    name="JEAN_ZAY_NETWORK_BW",
    meaning="network of one A100 of Jean Zay, one direction: four Omni-Path ports of 100 Gbit/s for eight chips",
    source="bigscience-workshop/bigscience@9e64ede, train/tr11-176B-ml/README.md",
    date="2022",
)


@dataclass(frozen=True)
class Run:
    """A published run, its step time, and the estimate of it.

    Attributes
    ----------
    id, kind
        Of the row, and the software by which rows are grouped.
    measured
        Seconds of a step, from what the row states.
    step
        The estimate; None if the row lacks what the model needs.
    reason
        Why there is no estimate; empty if there is one.
    """

    id: str
    kind: str
    measured: float
    step: TrainingStep | None
    reason: str

    @property
    def ratio(self) -> float:
        """Estimated over measured step time."""
        return float("nan") if self.step is None else float(self.step.time.m_as("s")) / self.measured


def rows_of(path: Path = DATA) -> list[dict[str, str]]:
    """Return the rows of a table of training runs."""
    (_, columns), *lines = csv_records(path)
    return [dict(zip(columns, cells, strict=True)) for _, cells in lines]


@lru_cache(maxsize=1)
def shipped_runs() -> tuple[Run, ...]:
    """Return the runs that ship with the package, estimated."""
    with unrecorded():  # as of every error over many rows
        return tuple(map(run_of, rows_of()))


def run_of(row: Mapping[str, str]) -> Run:
    """Return a row as a run, with the reason where it cannot be estimated."""
    kind = _software(row)
    try:
        options = _options(row, kind)
        model, system = _model(row), _system(row)
        measured = step_seconds(row, kind)
        layout = options.pop("layout")
        step = training_step(system, model, layout, **options)
    except (ValueError, LookupError) as error:
        return Run(row["id"], kind, float("nan"), None, str(error))
    return Run(row["id"], kind, measured, step, "")


def _number(row: Mapping[str, str], name: str) -> int:
    try:
        return int(float(row[name]))
    except ValueError:
        raise LookupError(f"{name} is not published") from None


def _software(row: Mapping[str, str]) -> str:
    name, source = row["id"], row["family"]
    if "Jan 2021" in source or "SC21" in source or name == "megatron-gpt3-175b-readme":
        return "megatron 2021"
    if "bloom" in name:
        return "bloom"
    if source.startswith("MPT"):
        return "mpt"
    if name.startswith("llama31"):
        return "llama 3"
    return "mlperf" if name.startswith("mlperf") else "megatron core" if "Bridge" in source else "other"


def _model(row: Mapping[str, str]) -> LanguageModel:
    hidden, vocabulary = _number(row, "hidden"), row["vocab"] or "51200"  # MLPerf's GPT-3, as Megatron pads it
    heads = int(row["heads"] or _heads(hidden, int(row["TP"])))
    gated = row["kv_heads"] == "8" or "405b" in row["id"].lower()
    return LanguageModel(
        name=row["family"],
        layers=_number(row, "layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=8 if gated else heads,
        head_dim=hidden // heads,
        ffn=_number(row, "ffn"),
        vocabulary=int(vocabulary),
        gated=gated,
        tied=not gated,
    )


def _heads(hidden: int, tp: int) -> int:
    """Return the heads of a model of BLOOM's sweep: 128 wide, as of the chosen model, or else the next that divides."""
    return next(hidden // width for width in range(128, 257, 16) if not hidden % width and not hidden // width % tp)


def _system(row: Mapping[str, str]) -> System:
    chip = row["chip"].removeprefix("NVIDIA ").replace("Blackwell GPU (GB200)", "GB200")
    known = next((entry for name, entry in _NODES.items() if chip.startswith(name)), None)
    if known is None:
        raise LookupError(f"no system of {row['chip']} in the catalogue")
    system = systems[known[0]]
    if known[1]:
        system = replace(system, device=Hardware[known[1]])
    chips = _number(row, "n_chips")
    if "Jean Zay" in row["chip"] and system.scale_out is not None:
        system = replace(system, scale_out=replace(system.scale_out, _bandwidth=_JEAN_ZAY))
    return replace(system, nodes=-(-chips // system.chips_per_node))


def _options(row: Mapping[str, str], kind: str) -> dict[str, Any]:
    software = {"mlperf": "megatron core"}.get(kind, kind)
    if software not in SOFTWARE:
        raise LookupError("the layout, or the software, is not published")
    options: dict[str, Any] = dict(SOFTWARE[software])
    tp, pp = row["TP"], row["PP"]
    if not tp:
        split = re.search(r"TPxPP=(\d+)", row["notes"])
        if not split:
            raise LookupError("the layout is not published")
        tp = str(min(8, int(split[1])))  # tensor parallelism fills the node first, as SC21 recommends
        pp = str(int(split[1]) // int(tp))
    chips, cp = _number(row, "n_chips"), int(row["CP"] or 1)
    dp = chips // (int(tp) * int(pp) * cp)
    layout = Layout(tp=int(tp), pp=int(pp), cp=cp, dp=dp)
    chunks = int(row["VP_chunks"]) if row["VP_chunks"].isdigit() else options.pop("chunks", 1)
    if kind == "mlperf" and not row["VP_chunks"]:
        chunks = 6  # not recorded for round 3.1; what later rounds of the same submitter use for the same model
    batch = _number(row, "global_batch_seqs")
    micro = int(row["micro_batch"] or 1)
    if not row["micro_batch"] and "jan2021" in row["id"]:
        micro = _MICRO_2021.get(row["id"].rsplit("-", 1)[1], 1)
    if row["id"].startswith("mlperf") and "FSDP" in row["sharding"]:
        options["zero"] = 3
    if row["sharding"].startswith("FSDP 6") or row["sharding"].startswith("FSDP 8"):
        options["zero"] = 3
    precision = row["precision"].lower()
    precision = "fp4" if "fp4" in precision else "fp8" if "fp8" in precision else precision
    options |= dict(
        layout=layout,
        batch=batch,
        micro_batch=micro,
        sequence=_number(row, "seq_len"),
        precision=precision,
        chunks=chunks if layout.pp > 1 else 1,
        schedule="interleaved" if chunks > 1 and layout.pp > 1 else "1f1b",
    )
    return options


_MICRO_2021 = {"1.7B": 16, "3.6B": 16, "7.5B": 16, "18B": 8, "39B": 4, "76B": 2, "145B": 2}
"""Micro-batches of the same models in April 2021; those of January are not printed."""


def step_seconds(row: Mapping[str, str], kind: str) -> float:
    """Return the seconds of a step: as stated, or from tokens per second, minutes to train, or the source's FLOP/s.

    Raises
    ------
    LookupError
        If the row states none of these.
    """
    if row["step_time_s"]:
        return float(row["step_time_s"])
    batch, sequence, chips = (_number(row, name) for name in ("global_batch_seqs", "seq_len", "n_chips"))
    if row["tokens_per_s_per_chip"]:
        return batch * sequence / (float(row["tokens_per_s_per_chip"]) * chips)
    target = re.search(r"(tokens|sequences) to target (\d+)", row["notes"])
    if row["time_to_train_min"] and target:
        steps = int(target[2]) / (batch * (sequence if target[1] == "tokens" else 1))
        return float(row["time_to_train_min"]) * 60 / steps
    if row["measured_TFLOPs_per_chip"]:
        rate = float(row["measured_TFLOPs_per_chip"]) * 1e12 * chips
        layers, hidden = _number(row, "layers"), _number(row, "hidden")
        if row["recompute"].startswith("full"):
            flops = training_step_flops.bare(batch, sequence, layers, hidden, int(row["vocab"]), 1.0)
        else:
            # Megatron's count: no products with the embedding table, and half of the scores.
            weights = float(row["params_B"]) * 1e9 - int(row["vocab"]) * hidden
            each = training_flops_per_token.bare(weights, layers, hidden, sequence, 0.5)
            flops = batch * sequence * each
        return float(flops / rate)
    raise LookupError("no time, rate or throughput is published")


def medians(runs: Iterable[Run]) -> dict[str, tuple[int, float, float]]:
    """Return by kind the number of estimated runs, and the median and worst factor of their errors."""
    by_kind: dict[str, list[float]] = {}
    for run in runs:
        if run.step is not None:
            by_kind.setdefault(run.kind, []).append(max(run.ratio, 1 / run.ratio))
    return {
        kind: (len(errors), sorted(errors)[len(errors) // 2], max(errors)) for kind, errors in sorted(by_kind.items())
    }
