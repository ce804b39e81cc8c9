"""Values of single devices against what their makers, or who measured them, printed."""

import pytest

from mlsys import constants
from mlsys.hardware import Hardware
from mlsys.units import Quantity


def confidence(quantity: Quantity) -> str:
    return quantity.origin.confidence  # type: ignore[union-attr]


def meaning(quantity: Quantity) -> str:
    return quantity.origin.meaning  # type: ignore[union-attr]


def test_mi250x_has_eight_links_of_50_gigabytes_a_second_each_way() -> None:
    # AMD, ROCm documentation, MI250 microarchitecture: 25 GT/s, two bytes each, for a link of 16 lanes.
    # AMD, Infinity Architecture: "up to 8" links, "up to 800 GB/s" both ways together.
    link = Hardware.Cloud.MI250X.link("InfinityFabric")
    assert link.per_direction.m_as("GB/s") == pytest.approx(8 * 25 * 2)
    assert 2 * link.per_direction.m_as("GB/s") == pytest.approx(800)


def test_raspberry_pi_5_costs_what_its_8_gigabytes_cost() -> None:
    # SAPO Tek, September 2023: 60 USD with 4 GB, 80 USD with 8 GB.
    pi = Hardware.Edge.RaspberryPi5
    at_launch = {4: 60, 8: 80}
    assert pi.price.m_as("USD") == at_launch[round(pi.memory_capacity.m_as("GB"))]


@pytest.mark.parametrize("name", ["EthosU55_128", "EthosU55_256"])
def test_the_sram_of_an_ethos_u55_is_not_the_default_of_its_larger_sister(name: str) -> None:
    # Arm, ML embedded evaluation kit, memory considerations: Dedicated_Sram (384 KiB) is only for the Ethos-U65; the
    # Ethos-U55 shares the two internal SRAMs of Corstone-300, 2 MiB each, with its Cortex-M55.
    capacity = Hardware[name].memory["SRAM"].capacity
    assert capacity.m_as("MiB") == 2 + 2
    assert capacity.m_as("KiB") != 384


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_l40s_as_its_datasheet_prints_it(precision: str) -> None:
    # NVIDIA L40S datasheet (a shop's copy) and TensorRT-LLM, cluster_info.py, which cites the datasheet: 362.05 dense,
    # 733 with sparsity. 2 x 362.05 is not 733: at the boost clock the chip would do 366.4.
    l40s = Hardware.Cloud.L40S
    assert l40s.peak(precision).m_as("TFLOP/s") == 362.05
    assert l40s.peak(precision, "2:4").m_as("TFLOP/s") == 733


@pytest.mark.parametrize("name", ["H100_PCIe", "H100_SXM", "H200_SXM"])
def test_the_l2_latency_of_an_h100_says_that_it_is_the_near_half(name: str) -> None:
    # te42kyfo/gpu-benches, gpu-latency/h100_pcie.txt: 265.5 cycles at 1755 MHz up to 20 MiB, 466.8 to 477.8 beyond.
    latency = Hardware[name].memory["L2"].latency
    assert latency.m_as("ns") == pytest.approx(265.5 / 1.755, rel=1e-3)
    assert "near half" in meaning(latency)
    assert "near half" in meaning(constants.LATENCY_L2_CACHE)


@pytest.mark.parametrize(
    ("name", "level", "cycles", "megahertz"),
    [
        *(("A100_80GB", "L1", both, 1410) for both in (33.1, 36.0)),
        *(("A100_80GB", "L2", both, 1410) for both in (205.7, 211.0)),
        *(("A100_80GB", "HBM", both, 1410) for both in (552.2, 571.2)),
        *(("V100", "L1", both, 1380) for both in (27.9, 29.9)),
        *(("L40", "L1", both, 2490) for both in (36.1, 34.0)),
    ],
)
def test_a_latency_reaches_both_runs_of_its_benchmark(name: str, level: str, cycles: float, megahertz: int) -> None:
    # gpu-latency of te42kyfo/gpu-benches@1c36d50 and of RRZE-HPC/gpu-benches@1038c5d: one benchmark, two versions.
    latency = Hardware[name].level(level).latency
    assert abs(latency.m_as("ns") - 1e3 * cycles / megahertz) <= 0.05 + (latency.origin.uncertainty or 0)  # type: ignore[union-attr]


def test_what_was_read_about_another_chip_is_not_verified_of_this_one() -> None:
    """The text that counts the AMX units of a core is about Sapphire Rapids."""
    xeon = Hardware.CPU.Xeon_6980P
    assert xeon.chip("matrix_units_per_unit").magnitude == 1
    assert confidence(xeon.chip("matrix_units_per_unit")) == "derived"
    assert xeon.chip("units").magnitude == 128
    assert confidence(xeon.chip("units")) == "secondary"


def test_one_multiply_add_a_cycle_is_what_a_cortex_m7_can_issue() -> None:
    chip = Hardware.Tiny.STM32F746
    assert chip.chip("macs_per_cycle").m_as("MAC/cycle") == 1
    assert "peak of issue" in meaning(chip.chip("macs_per_cycle"))
    assert chip.peak("fp32").m_as("GFLOP/s") == pytest.approx(2 * 0.216)


def test_latency_nvlink_is_a_load_and_not_a_link() -> None:
    """It holds the far memory too, so it is longer than the near memory by the way there and back."""
    # reframe-hpc/reframe, GpuP2PLatencyP2P and GpuDRAMLatency, ault:amda100: 1120 and 560 cycles.
    far = constants.LATENCY_NVLINK
    assert far.m_as("ns") == pytest.approx(1120 / 1.410, rel=1e-3)
    assert "not the link alone" in meaning(far)
    assert far.m_as("ns") / 2 == pytest.approx(560 / 1.410, rel=1e-3)
