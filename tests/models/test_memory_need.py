"""Whether a network fits, by sizes that are known: a model of 70 gigaparameters needs two bytes of each."""

import pytest

from mlsys import Hardware
from mlsys.models.analysis import analyze
from mlsys.workloads import load


@pytest.mark.parametrize(
    ("name", "device", "precision", "gigabytes", "fits"),
    [
        ("llama-3-70b", "H100", "fp16", 141.1, False),
        ("llama-3-8b", "H100", "fp16", 16.06, True),
        ("deepseek-v3", "H200", "fp8", 671.0, False),  # all experts lie there, though a token visits few
    ],
)
def test_all_weights_must_lie_in_memory(name: str, device: str, precision: str, gigabytes: float, fits: bool) -> None:
    work = load(name, phase="decode", precision=precision)
    answer = analyze(Hardware[device], work, precision=precision)
    assert answer.memory.needed.m_as("GB") == pytest.approx(gigabytes, rel=0.01)
    assert answer.memory.fits is fits
    assert ("does not fit" in answer.explain()) is not fits
    assert work.weight_bytes.m_as("GB") == pytest.approx(gigabytes, rel=0.01)


def test_keys_and_values_of_a_step_are_counted() -> None:
    few, many = (
        analyze(Hardware["A100"], load("llama-2-7b", phase="decode", batch=batch, sequence=1024), precision="fp16")
        for batch in (1, 17)
    )
    # A token leaves two vectors of 4,096 in each of 32 layers.
    kept = 2 * 4096 * 32 * 1024 * 2 * 16
    grown = (many.memory.needed - few.memory.needed).m_as("byte")
    assert grown == pytest.approx(kept, rel=0.02)


def test_a_microcontroller_keeps_its_weights_in_flash() -> None:
    answer = analyze(Hardware["STM32F746"], load("ds-cnn", precision="int8"), precision="int8")
    assert answer.memory.capacity is None and answer.memory.fits is None
