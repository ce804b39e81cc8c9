"""What physics says of estimates that nobody fitted: more work takes longer, by no more than in proportion."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import pytest

from mlsys.choices import Phase
from mlsys.hardware import Hardware
from mlsys.mapping.fusion import as_kernels
from mlsys.models.analysis import Analysis, analyze
from mlsys.workloads import Network, load

# Kernels come in whole tiles and threads in whole teams: so far a step may lie beside its law.
STEP = 1.06
MACHINES = ("A100", "MI300X", "Inferentia2", "Apple_M2", "Xeon_8480")
LANGUAGE = ("llama-3-8b", "mixtral-8x7b")


@lru_cache(maxsize=256)
def network(name: str, precision: str, phase: Phase | None, batch: int, sequence: int | None) -> Network:
    sizes: dict[str, Any] = {"sequence": sequence} if sequence else {}
    return as_kernels(load(name, precision=precision, batch=batch, phase=phase, **sizes))


def analysis(
    name: str, device: str, precision: str, phase: Phase | None = None, batch: int = 1, sequence: int | None = None
) -> Analysis:
    kernels = network(name, precision, phase, batch, sequence)
    answer = analyze(Hardware[device], kernels, precision=precision, samples=batch)
    low, high = answer.range
    assert answer.bound <= low <= answer.estimate <= high
    return answer


def seconds(*question: Any, **sizes: Any) -> float:
    return float(analysis(*question, **sizes).estimate.m_as("s"))


def floats(device: str) -> str:
    return "fp16" if "fp16" in Hardware[device].precisions else "bf16"


@pytest.mark.parametrize("device", MACHINES)
def test_a_larger_batch_takes_longer_and_each_sample_less(device: str) -> None:
    for name in ("resnet50", "mobilenet-v2"):
        batches = (1, 2, 8, 32)  # what leaves a cache may well take longer for each
        times = [seconds(name, device, floats(device), batch=batch) for batch in batches]
        for (first, shorter), (second, longer) in pairwise(zip(batches, times, strict=True)):
            assert shorter < STEP * longer and longer / second < STEP * shorter / first, (name, first, second)


@pytest.mark.parametrize("device", MACHINES)
def test_a_step_takes_longer_with_the_context_and_each_token_less_with_the_batch(device: str) -> None:
    for name in LANGUAGE:
        far = [seconds(name, device, floats(device), "decode", sequence=tokens) for tokens in (128, 2048, 32768)]
        assert far == sorted(far)
        batches = (1, 32, 64, 256)
        many = [seconds(name, device, floats(device), "decode", batch=batch) / batch for batch in batches]
        assert many == sorted(many, reverse=True), name


@pytest.mark.parametrize("device", MACHINES)
def test_a_prompt_of_twice_the_length_takes_more_than_twice_as_long(device: str) -> None:
    """Products grow in proportion, attention with the square; experts are visited by all of so many tokens."""
    for name in LANGUAGE:
        times = [seconds(name, device, floats(device), "prefill", sequence=tokens) for tokens in (4096, 8192)]
        assert times[1] > 2 * times[0] / 1.01, name


@pytest.mark.parametrize(
    "device", ["A100", "T4", "JetsonAGXOrin", "Xeon_8480", "RaspberryPi5", "CloudAI100", "STM32H743"]
)
def test_narrower_numbers_are_not_slower(device: str) -> None:
    formats = [each for each in ("fp32", "fp16", "int8") if each in Hardware[device].precisions]
    for name in ("mobilenet-v2",) if device == "STM32H743" else ("resnet50", "mobilenet-v2", "bert-base"):
        for wider, narrower in pairwise(formats):
            assert seconds(name, device, narrower) < STEP * seconds(name, device, wider), (name, narrower)


@pytest.mark.parametrize(
    "family",
    [
        ("P100", "V100", "A100", "H100", "H200", "B200"),
        ("T4", "L4", "L40S"),
        ("RTX_3060", "RTX_3080", "RTX_4090", "RTX_5090"),
        ("MI100", "MI210", "MI300X"),
        ("TPUv3", "TPUv4", "TPUv5p"),
        ("JetsonNano", "JetsonXavierNX", "JetsonAGXXavier", "JetsonAGXOrin"),
        ("Apple_M1", "Apple_M2", "Apple_M2Pro_19core", "Apple_M2Max_38core"),
        ("RaspberryPi3", "RaspberryPi4", "RaspberryPi5"),
        ("A100_40GB", "A100_80GB"),
        ("Snapdragon8Gen2", "Snapdragon8Gen3"),
        ("Trainium1", "Trainium2"),
    ],
)
def test_what_succeeds_a_machine_in_every_rate_is_not_slower(family: tuple[str, ...]) -> None:
    """At large batches, where rates decide; how long a kernel takes to start is the host's.

    Two batches together: by how much the last wave of blocks fills the units is chance, and less on more of them.
    """
    for older, newer in pairwise(family):
        form = next(
            each
            for each in ("fp16", "bf16", "fp32", "int8")
            if all(each in Hardware[name].precisions for name in (older, newer))
        )
        for name in ("resnet50", "bert-base"):
            both = [
                sum(seconds(name, each, form, batch=batch) / batch for batch in (32, 48)) for each in (newer, older)
            ]
            assert both[0] < STEP * both[1], (name, newer)


@pytest.mark.parametrize(
    ("device", "name", "precision"),
    [("A100", "bert-base", "fp16"), ("JetsonNano", "resnet50", "fp16"), ("RaspberryPi4", "resnet50", "fp32"),
     ("STM32H7A3", "mobilenet-v2", "int8")],
)  # fmt: skip
def test_energy_is_what_the_machine_draws_at_rest_and_more(device: str, name: str, precision: str) -> None:
    energy = analysis(name, device, precision).energy
    assert energy is not None and energy.static.m_as("J") > 0
    assert energy.static < energy.energy and energy.range[0] <= energy.energy <= energy.range[1]
