"""Chips without a memory of their own: what is published of them holds against the bound and the range."""

import pytest

from mlsys import Hardware
from mlsys.models.analysis import analyse
from mlsys.models.calibrated.resident import CACHED_BY_EDGE_TPU, KEPT_BY_DATAFLOW, resident, times_sent
from mlsys.models.calibrated.work import VECTOR, Kernel, Work
from mlsys.workloads.zoo import network

# Published: google-coral/pycoral, benchmarks/reference, Dev Board, ms; hailo-ai's model zoo, Hailo-8L, frames/s.
CORAL = {"mobilenet_v2": 2.56, "mobilenet_v1": 2.22}
HAILO_8L = {"mobilenet_v2": 1738.0, "mobilenet_v1": 1866.0}


@pytest.mark.parametrize(
    ("device", "name", "milliseconds"),
    [
        *(("EdgeTPU", name, value) for name, value in CORAL.items()),
        *(("Hailo8L", name, 1e3 / value) for name, value in HAILO_8L.items()),
    ],
)
def test_small_networks_on_chips_without_a_memory(device: str, name: str, milliseconds: float) -> None:
    answer = analyse(Hardware[device], network(name, precision="int8"), precision="int8")
    assert answer.bound.m_as("ms") < milliseconds
    low, high = (end.m_as("ms") for end in answer.range)
    assert low < milliseconds * 1.05 and high > milliseconds
    assert any("no memory of its own" in each for each in answer.assumptions)


def test_what_the_chip_cannot_hold_crosses_its_link() -> None:
    chip = Hardware["EdgeTPU"]
    large = analyse(chip, network("resnet50", precision="int8"), precision="int8")
    sent = 25.5e6 - CACHED_BY_EDGE_TPU
    assert large.data.m_as("byte") == pytest.approx(sent, rel=0.02)
    assert large.bound.m_as("s") >= sent / 0.5e9
    assert times_sent(chip, CACHED_BY_EDGE_TPU) == 0 < times_sent(chip, 1.01 * CACHED_BY_EDGE_TPU)
    four = analyse(chip, network("resnet50", batch=4, precision="int8"), precision="int8", samples=4)
    assert four.data.m_as("byte") == pytest.approx(4 * sent, rel=0.02)  # it takes one picture after the other
    hailo = Hardware["Hailo8"]
    assert (times_sent(hailo, KEPT_BY_DATAFLOW), times_sent(hailo, KEPT_BY_DATAFLOW + 1)) == (0, 1)


def test_a_chip_with_a_memory_moves_all() -> None:
    work = Work.of([Kernel(VECTOR, flops=1e6, moved=5e4, weights=1e4)])
    assert all(resident(work, Hardware[name]) is work for name in ("A100", "RaspberryPi5", "STM32F746", "TPUv4"))
