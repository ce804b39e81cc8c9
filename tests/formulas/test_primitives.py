"""Instructions, lanes, warps and tiles: by counting, by enumeration and by published examples."""

import itertools

import pytest

from mlsys import Hardware
from mlsys.formulas import (
    arithmetic_peak,
    divergence_probability,
    im2col_expansion,
    reduction_levels,
    register_limited_warps,
    vector_instructions,
    warps_to_hide_latency,
)
from mlsys.units import Q_


@pytest.mark.parametrize("lanes", [1, 8, 32])
def test_instructions_and_levels_are_counted(lanes: int) -> None:
    for elements in range(1, 140):
        assert vector_instructions(elements, lanes).m == len(range(0, elements, lanes))
        left, levels = elements, 0
        while left > 1:
            left, levels = left // 2 + left % 2, levels + 1
        assert reduction_levels(elements).m == levels


@pytest.mark.parametrize(("chip", "each"), [("V100", 64), ("A100", 256), ("H100", 512)])
def test_tensor_cores_make_the_published_peak(chip: str, each: int) -> None:
    """NVIDIA, Ampere and Hopper Architecture In-Depth: multiply-adds per cycle and tensor core, dense FP16."""
    device = Hardware.Cloud[chip]
    cores = int((device.chip("units") * device.chip("matrix_units_per_unit")).m)
    peak = arithmetic_peak(cores, Q_(each, "MAC/cycle"), device.chip("clock"))
    assert (peak / device.peak("fp16")).m_as("") == pytest.approx(1, rel=0.005)


@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2), (5, 2), (7, 2)])
def test_im2col_writes_each_window(kernel: int, stride: int) -> None:
    size, pad = 16, kernel // 2
    starts = [at for at in range(-pad, size + pad - kernel + 1) if (at + pad) % stride == 0]
    assert im2col_expansion(kernel, stride).m == (len(starts) * kernel) ** 2 / size**2


def test_a_warp_diverges_unless_all_lanes_agree() -> None:
    for lanes, taken in itertools.product((1, 2, 5), (0.0, 0.1, 0.5)):
        expected = 0.0
        for outcome in itertools.product((True, False), repeat=lanes):
            if len(set(outcome)) == 2:
                expected += taken ** sum(outcome) * (1 - taken) ** (lanes - sum(outcome))
        assert divergence_probability(taken, lanes).m == pytest.approx(expected, abs=1e-12)


def test_warps_are_those_of_the_programming_guide() -> None:
    """CUDA C Programming Guide, Multiprocessor Level: 64 registers, 32 warps; 11 cycles, four warps a cycle, 44."""
    assert register_limited_warps(Q_(256, "KiB"), 64).m == 32
    assert warps_to_hide_latency(Q_(11, "cycle"), 4).m == 44
