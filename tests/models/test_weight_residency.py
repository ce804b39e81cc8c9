"""Chips without a memory of their own: what is published of them holds against the bound and the range."""

import pytest

from mlsys import Hardware
from mlsys.models.analysis import analyze
from mlsys.models.estimate.lowering import kernels_of
from mlsys.models.estimate.weight_residency import CACHED_BY_EDGE_TPU, Residence, held_on, resident
from mlsys.models.estimate.work import VECTOR, Kernel, Work
from mlsys.workloads.zoo import network
from mlsys_evidence.ingest.reading import number_format

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
    answer = analyze(Hardware[device], network(name, precision="int8"), precision="int8")
    assert answer.bound.m_as("ms") < milliseconds
    low, high = (end.m_as("ms") for end in answer.range)
    assert low < milliseconds * 1.05 and high > milliseconds
    assert any("no external memory" in each for each in answer.assumptions)


def test_what_the_chip_cannot_hold_crosses_its_link() -> None:
    chip = Hardware["EdgeTPU"]
    large = analyze(chip, network("resnet50", precision="int8"), precision="int8")
    sent = 25.5e6 - CACHED_BY_EDGE_TPU
    assert large.data.m_as("byte") == pytest.approx(sent, rel=0.02)
    assert large.bound.m_as("s") >= sent / 0.5e9
    sent_of = [
        held_on(chip, Work.of([Kernel(VECTOR, flops=1e6, moved=1e7, weights=part * CACHED_BY_EDGE_TPU)]))
        for part in (1, 1.01)
    ]
    assert [held and held.times > 0 for held in sent_of] == [False, True]
    four = analyze(chip, network("resnet50", batch=4, precision="int8"), precision="int8", samples=4)
    assert four.data.m_as("byte") == pytest.approx(4 * sent, rel=0.02)  # it takes one picture after the other


# Published by the maker, hailo-ai/hailo_model_zoo@c83fc030e, frames/s at batch 1 and at 8: a network that the chip
# holds whole runs at one rate, others wait for their parts to be loaded.
ZOO = {
    ("Hailo8L", "mobilenet_v2"): (1738, 1738),
    ("Hailo8L", "resnet18"): (915, 915),
    ("Hailo8L", "squeezenet1_1"): (1730, 1730),
    ("Hailo8L", "resnet50"): (138, 503),
    ("Hailo8L", "googlenet"): (313, 882),
    ("Hailo8L", "yolov8n"): (202, 438),
    ("Hailo10H", "resnet18"): (2709, 2709),
    ("Hailo10H", "googlenet"): (1308, 1308),
    ("Hailo10H", "resnet50"): (316, 1010),
    ("Hailo15L", "resnet18"): (379, 780),
    ("Hailo15L", "mobilenet_v1"): (585, 1213),
}


@pytest.mark.parametrize(("device", "name"), ZOO)
def test_a_network_that_a_dataflow_chip_holds_runs_at_one_rate(device: str, name: str) -> None:
    alone, in_eights = ZOO[device, name]
    rates = []
    for batch in (1, 8):
        answer = analyze(
            Hardware[device], network(name, batch=batch, precision="int8"), precision="int8", samples=batch
        )
        rates.append(batch / answer.estimate.m_as("s"))
        assert answer.bound.m_as("s") < batch / (alone, in_eights)[batch == 8]
    if in_eights / alone < 1.1:
        assert rates[1] == pytest.approx(rates[0], rel=0.25)
        assert any("of a stream" in each for each in answer.assumptions)
    else:
        assert 1.25 < rates[1] / rates[0] < 2 * in_eights / alone


def test_attention_streams_nothing() -> None:
    """A small transformer of 5.7 million parameters waits for its keys: 134 frames/s alone, 455 in eights."""
    work = kernels_of(network("vit_tiny_patch16_224", precision="int8"), number_format("int8"))
    assert held_on(Hardware["Hailo10H"], work) == Residence(1.0)


def test_a_chip_with_a_memory_moves_all() -> None:
    work = Work.of([Kernel(VECTOR, flops=1e6, moved=5e4, weights=1e4)])
    assert all(resident(work, Hardware[name]) is work for name in ("A100", "RaspberryPi5", "STM32F746", "TPUv4"))
