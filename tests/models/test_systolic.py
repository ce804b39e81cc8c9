"""Systolic arrays by hand, by the numbers that are published, and what the model refuses."""

from typing import Any

import numpy as np
import pytest

from mlsys import constants
from mlsys.errors import ArgumentError, ArgumentUnitError, UnknownNameError
from mlsys.frozen import FrozenDict
from mlsys.hardware import Hardware
from mlsys.models import SystolicArray, systolic
from mlsys.models.systolic import (
    BASELINES,
    Window,
    array_folds,
    count_systolic,
    energy_baselines,
    energy_systolic,
)
from mlsys.testing import assert_depends_on, assert_quantity_close
from mlsys.units import Q_
from mlsys.workloads import Network, attention, conv2d, depthwise_conv2d, gemm, relu, zoo

ONE = Q_(1, "pJ")


# --- counts by hand -------------------------------------------------------------------


def test_a_fold_by_hand() -> None:
    """4 rows of weights in, then 6 rows of activations; the last crosses 4 rows and 3 columns."""
    counts = count_systolic(6, 3, 4, 4, 3)
    assert counts.cycles == 4 + (6 + 4 + 3 - 2)
    assert counts.macs == 72 and counts.utilisation == 72 / (15 * 12)
    assert counts.mapping_efficiency == 1
    assert counts.compute_utilisation == pytest.approx(6 / 11)
    assert (counts.sram.ifmap_reads, counts.sram.filter_reads, counts.sram.ofmap_writes) == (24, 12, 18)
    assert counts.sram.ofmap_reads == 0 and counts.dram == counts.sram


@pytest.mark.parametrize(
    ("dataflow", "ifmap", "filter_", "writes", "reads"),
    [
        ("ws", 2 * 5 * 4, 4 * 7, 2 * 5 * 7, 5 * 7),
        ("is", 5 * 4, 2 * 4 * 7, 2 * 5 * 7, 5 * 7),
        ("os", 2 * 5 * 4, 2 * 4 * 7, 5 * 7, 0),
    ],
)
def test_what_is_read_again(dataflow: str, ifmap: int, filter_: int, writes: int, reads: int) -> None:
    """A 5 × 7 product of length 4 on 3 × 4 places: what stays is read once, what streams once for each fold across."""
    sram = count_systolic(5, 7, 4, 3, 4, dataflow).sram
    assert (sram.ifmap_reads, sram.filter_reads, sram.ofmap_writes, sram.ofmap_reads) == (ifmap, filter_, writes, reads)


@pytest.mark.parametrize(("m", "percent"), [(1, 0.39), (32, 11.2), (128, 33.5), (512, 66.8), (4096, 94.2)])
def test_utilisation_while_streaming_through_128_by_128(m: int, percent: float) -> None:
    """M / (M + R + C - 2), the customary table: weights are there already."""
    for dataflow, shape in (("ws", (m, 128, 128)), ("os", (128, 128, m))):
        counts = count_systolic(*shape, 128, 128, dataflow)
        assert 100 * counts.compute_utilisation == pytest.approx(percent, abs=0.05)
        assert counts.utilisation < counts.compute_utilisation, "loading or draining takes 128 cycles more"


def test_one_column_too_many() -> None:
    """Width 129 on 128 places: half of the array idles, three quarters if both sides are."""
    single, both = (count_systolic(4096, 129, k, 128, 128) for k in (128, 129))
    assert 100 * single.mapping_efficiency == pytest.approx(50.4, abs=0.05)
    assert 100 * both.mapping_efficiency == pytest.approx(25.4, abs=0.05)


def test_folds_of_a_large_product() -> None:
    """4096³ on 128 × 128: 1,024 tiles of weights; 32,768 products of tiles."""
    counts = count_systolic(4096, 4096, 4096, 128, 128)
    assert counts.folds.count == 1024
    assert counts.folds.count * 4096 // 128 == 32_768


def test_scalesim_and_hardware_differ_as_documented() -> None:
    for dataflow in ("ws", "os", "is"):
        ours, theirs = (
            count_systolic(100, 90, 80, 16, 8, dataflow, convention=convention)
            for convention in ("physical", "scalesim")
        )
        drain = 16 * ours.folds.count if dataflow == "os" else 0
        assert ours.cycles - theirs.cycles == 1 + drain
        extra = ours.folds.count * (16 + 8) if dataflow == "os" else 0
        assert theirs.sram.ofmap_writes - ours.sram.ofmap_writes == extra


def test_the_smallest_run_of_scalesim_has_no_utilisation() -> None:
    counts = count_systolic(1, 1, 1, 1, 1, "os", convention="scalesim")
    assert counts.cycles == 0 and np.isnan(counts.utilisation)


# --- any size -------------------------------------------------------------------------


@pytest.mark.parametrize("convention", ["physical", "scalesim"])
@pytest.mark.parametrize("dataflow", ["ws", "os", "is"])
def test_many_cases_at_once_are_the_cases_one_by_one(dataflow: str, convention: str) -> None:
    rng = np.random.default_rng(6)
    sizes = [rng.integers(1, high, 60) for high in (300, 300, 300, 20, 20)]
    rest = {"convention": convention, "ifmap_words": 3000, "filter_words": 3000, "ofmap_words": 3000}
    many = count_systolic(*sizes, dataflow, **rest)
    for at, case in enumerate(zip(*sizes, strict=True)):
        counts = count_systolic(*case, dataflow, **rest)
        assert (many.cycles[at], many.macs[at]) == (counts.cycles, counts.macs)
        for level in ("sram", "dram"):
            for field in ("ifmap_reads", "filter_reads", "ofmap_writes", "ofmap_reads"):
                assert getattr(getattr(many, level), field)[at] == getattr(getattr(counts, level), field), (case, field)
        assert many.utilisation[at] == pytest.approx(counts.utilisation, rel=1e-12)


@pytest.mark.parametrize("dataflow", ["ws", "os", "is"])
def test_a_million_a_side_does_not_overflow(dataflow: str) -> None:
    size = 10**6
    counts = count_systolic(size, size, size, 1, 1, dataflow)  # Python integers: exact at any size
    many = count_systolic(np.array([size]), size, size, 1, 1, dataflow)
    assert counts.cycles == size**2 * (size + 1)
    assert many.cycles.dtype == np.int64 and int(many.cycles[0]) == counts.cycles
    assert int(many.register_writes[0]) == counts.register_writes > 2**60


def test_beyond_64_bits_counts_stay_exact() -> None:
    size = 10**8
    many = count_systolic(np.array([size, 3]), size, size, 8, 8)
    for at, m in enumerate((size, 3)):
        assert many.cycles[at] == count_systolic(m, size, size, 8, 8).cycles
    assert many.cycles[0] > 2**63


# --- energy ---------------------------------------------------------------------------


def test_energy_of_the_four_baselines() -> None:
    """The customary sum: 640 pJ for a word of DRAM (Han et al. 2015), 1 pJ for a multiply-accumulate."""
    straw, accumulator, blocked, array = energy_baselines(mac=ONE)
    assert [machine.name for machine in (straw, accumulator, blocked, array)] == list(BASELINES)
    assert_quantity_close(straw.total, Q_(4 * 640 + 1, "pJ"))
    assert_quantity_close(array.total, Q_(2 / 128 * 640 + 1, "pJ"))
    assert (straw.total / array.total).m_as("") == pytest.approx(232.8, abs=0.05)
    assert (accumulator.total / array.total).m_as("") == pytest.approx(116.5, abs=0.05)
    assert (blocked.total / array.total).m_as("") == pytest.approx(3.73, abs=0.005)


def test_energy_with_fp32_arithmetic() -> None:
    """4.6 pJ at 45 nm (Horowitz 2014): 2,564.6 over 14.6."""
    straw, *_, array = energy_baselines()
    assert_quantity_close(straw.total, Q_(2564.6, "pJ"))
    assert (straw.total / array.total).m_as("") == pytest.approx(175.7, abs=0.05)
    assert_depends_on(array.total, "ENERGY_DRAM_ACCESS_PJ", "ENERGY_MUL_FP32_PJ", "ENERGY_ADD_FP32_PJ")


def test_counting_every_level_costs_the_array_part_of_its_lead() -> None:
    customary, every = (
        [machine.total for machine in energy_baselines(levels=levels)] for levels in ("customary", "all")
    )
    assert all(more >= less for less, more in zip(customary, every, strict=True))
    assert every[0] / every[-1] < customary[0] / customary[-1]
    names = [list(machine.parts) for machine in energy_baselines(levels="all")]
    assert names == [["DRAM", "SRAM", "registers", "arithmetic"]] * 4


def test_energy_of_a_product_is_what_was_counted_times_what_it_costs() -> None:
    counts = count_systolic(5, 7, 4, 3, 4)
    parts = energy_systolic(counts)
    words = constants.ENERGY_DRAM_ACCESS_PJ.m_as("pJ")
    assert_quantity_close(parts["DRAM"], Q_(words * (20 + 28 + 35), "pJ"))
    assert_quantity_close(parts["arithmetic"], Q_(4.6 * 5 * 7 * 4, "pJ"))
    assert_quantity_close(energy_systolic(counts, "fp16")["DRAM"], parts["DRAM"] / 2)
    eight, wide = (energy_systolic(counts, name)["arithmetic"] for name in ("int8", "fp8"))
    assert eight < wide < energy_systolic(counts, "fp16")["arithmetic"]
    with pytest.raises(UnknownNameError, match="unknown precision 'fp7'"):
        energy_systolic(counts, "fp7")


def test_the_saving_over_a_blocked_core_depends_on_how_the_core_blocks() -> None:
    def saving(**given: Any) -> float:
        *_, blocked, array = energy_baselines(levels="all", **given)
        return float((blocked.total / array.total).m_as(""))

    assert saving() > saving(register_block=8)
    assert saving() > saving(block=128)
    assert saving(block=256, register_block=16) < 1.1  # a core that blocks as far as the array keeps up


# --- arrays and devices ---------------------------------------------------------------


@pytest.mark.parametrize(
    "device", [device for device in Hardware if device.systolic_array], ids=lambda device: device.id
)
def test_the_array_of_a_twin_gives_its_peak(device: object) -> None:
    """Rows × columns × count × 2 × clock is the headline rate, where the twin knows both."""
    try:
        array = SystolicArray.of(device)
    except UnknownNameError as error:
        assert "clock" in str(error)
        return
    rounded = 0.01 if device.kind == "TPU" else 0.04  # AWS prints 1.4 GHz for what must be 1.45
    assert_quantity_close(array.peak, device.peak_flops, rtol=rounded)


def test_edge_bandwidth_of_tpu_v4() -> None:
    """128 + 128 words of two bytes at 1.05 GHz: 538 GB/s for one array, 4.3 TB/s for eight; HBM has 1.2 TB/s."""
    array = SystolicArray.of(Hardware.Cloud.TPUv4)
    edge = array.edge_bandwidth("bf16")
    assert_quantity_close(edge, Q_(537.6, "GB/s"))
    assert edge * array.count > 3 * Hardware.Cloud.TPUv4.memory_bw
    assert array.macs_per_cycle == Q_(131_072, "MAC/cycle")


def test_the_model_on_a_device_adds_up() -> None:
    result = systolic(Hardware.Cloud.TPUv4, gemm(4096, 4096, 4096, "bf16"))
    assert_quantity_close(sum(result.parts.values(), Q_(0.0, "s")), result.time)
    assert result.bound_by == "compute" and isinstance(result.parts, FrozenDict)
    assert_depends_on(result.time, "TPUv4/chip/clock", "TPUv4/memory/HBM/bandwidth")
    busy = 128 * (4096 + 2 * 128 + 128 - 2)  # 1,024 folds shared by eight arrays
    assert_quantity_close(result.figures["utilisation without stalls"], Q_(4096**3 / (busy * 131_072), ""))
    for piece in ("load, fill and drain", "weight-stationary", "8 arrays divide the folds evenly"):
        assert piece in result.explain()


def test_a_product_that_waits_for_memory() -> None:
    array = SystolicArray(4, 4, bandwidth=Q_(1, "GB/s"))  # one byte a cycle
    result = systolic(array, gemm(4, 4, 4, "int8"))
    assert result.bound_by == "memory"
    assert_quantity_close(result.time, Q_(32 + 14 + 16, "ns"))  # deliver two operands, compute, collect the product
    assert_quantity_close(result.parts["exposed memory"], Q_(48, "ns"))


def test_smaller_buffers_move_more() -> None:
    def moved(size: int) -> float:
        buffers = {f"{name}_buffer": Q_(size, "KiB") for name in ("ifmap", "filter", "ofmap")}
        result = systolic(SystolicArray(32, 32, **buffers), gemm(512, 512, 512, "int8"))
        return float(result.figures["DRAM bytes"].m_as("byte"))

    sizes = [moved(size) for size in (8, 64, 512, 4096)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 2 * sizes[-1]
    assert sizes[-1] == 3 * 512**2


def test_a_convolution_is_the_product_it_is_lowered_to() -> None:
    array = SystolicArray(16, 16)
    convolution = systolic(array, conv2d(2, 16, 32, size=14, kernel=3))
    product = systolic(array, gemm(2 * 14 * 14, 32, 16 * 9))
    assert convolution.time == product.time
    assert convolution.figures["DRAM bytes"] < product.figures["DRAM bytes"], "windows share words"


def test_a_depthwise_convolution_uses_one_column() -> None:
    array = SystolicArray(128, 128)
    depthwise, full = (
        systolic(array, layer) for layer in (depthwise_conv2d(1, 64, 56), conv2d(1, 64, 64, size=56, kernel=3))
    )
    assert depthwise.figures["mapping efficiency"] == pytest.approx(9 / 128**2)
    assert depthwise.time > full.time, "an eighth of a percent of the work at a sixty-fourth of the width"


def test_attention_is_two_products_for_each_head() -> None:
    (scores, _), (context, _) = array_folds(attention(2, 3, 10, 20, 8), 4, 4, "ws")
    assert (scores.m, scores.n, scores.k, scores.copies) == (10, 20, 8, 6)
    assert (context.m, context.n, context.k, context.copies) == (10, 8, 20, 6)


def test_a_network_is_the_sum_of_its_operators() -> None:
    result = systolic(Hardware.Cloud.TPUv4, zoo.network("resnet50", batch=8, precision="bf16"), fold_overlap="full")
    assert len(result.children) == 54
    assert_quantity_close(sum((child.time for child in result.children), Q_(0.0, "s")), result.time)
    assert_quantity_close(sum(result.parts.values(), Q_(0.0, "s")), result.time)


def test_scalesim_counts_through_the_model() -> None:
    result = systolic(SystolicArray(32, 32), gemm(512, 512, 512, "int8"), convention="scalesim")
    assert_quantity_close(result.time, Q_(155_135, "ns"))
    assert_quantity_close(sum(result.parts.values(), Q_(0.0, "s")), result.time)


# --- what is refused ------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, -3, 2.5, True, float("nan"), "8", None])
@pytest.mark.parametrize("position", range(5))
def test_sizes_that_are_no_sizes(size: object, position: int) -> None:
    sizes: list[object] = [8] * 5
    sizes[position] = size
    name = ("m", "n", "k", "rows", "columns")[position]
    with pytest.raises(ArgumentError, match=f"count_systolic\\(\\): `{name}` must be a whole number >= 1, got"):
        count_systolic(*sizes)


def test_unknown_names() -> None:
    with pytest.raises(
        UnknownNameError, match=r"`dataflow` must be one of ws \(weight-stationary\).*got 'wss'.*'ws'\?"
    ):
        count_systolic(8, 8, 8, 8, 8, "wss")
    with pytest.raises(
        UnknownNameError, match="`convention` must be one of .*got 'scale-sim'.*Did you mean 'scalesim'"
    ):
        count_systolic(8, 8, 8, 8, 8, convention="scale-sim")
    with pytest.raises(UnknownNameError, match="`fold_overlap` must be one of none .*got 'some'"):
        systolic(SystolicArray(8, 8), gemm(8, 8, 8), fold_overlap="some")


def test_scalesim_neither_overlaps_nor_shares() -> None:
    with pytest.raises(ArgumentError, match="`fold_overlap` must be 'none' in the SCALE-Sim convention, got 'full'"):
        count_systolic(8, 8, 8, 8, 8, convention="scalesim", fold_overlap="full")
    with pytest.raises(ArgumentError, match="SCALE-Sim counts one array, got 8"):
        systolic(Hardware.Cloud.TPUv4, gemm(8, 8, 8, "bf16"), convention="scalesim")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"rows": 0, "columns": 8}, ArgumentError, "`rows` must be a whole number >= 1, got 0"),
        ({"rows": 8, "columns": True}, ArgumentError, "`columns` must be a whole number >= 1, got True"),
        ({"rows": 8, "columns": 8, "clock": 1e9}, ArgumentUnitError, "`clock` must be a quantity in Hz"),
        (
            {"rows": 8, "columns": 8, "bandwidth": Q_(100, "byte")},
            ArgumentUnitError,
            "`bandwidth` must be a quantity in byte/s, got 100 B, which is",
        ),
        ({"rows": 8, "columns": 8, "ifmap_buffer": 64}, ArgumentUnitError, "`ifmap_buffer` must be a quantity in byte"),
        ({"rows": 8, "columns": 8, "clock": Q_(-1, "GHz")}, ArgumentError, "`clock` must be a finite number > 0"),
    ],
)
def test_arrays_that_are_none(arguments: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        SystolicArray(**arguments)


def test_workloads_and_devices_that_do_not_fit() -> None:
    with pytest.raises(ArgumentUnitError, match=r"systolic\(\): `bandwidth` must be a quantity in byte/s, got 100 B"):
        systolic(SystolicArray(8, 8), gemm(8, 8, 8), bandwidth=Q_(100, "byte"))
    with pytest.raises(ArgumentError, match="must hold matrix products alone, got 'ReLU'"):
        systolic(SystolicArray(8, 8), relu(100))
    with pytest.raises(ArgumentError, match="at least one operator, got empty 'none'"):
        systolic(SystolicArray(8, 8), Network("none", ()))
    with pytest.raises(
        UnknownNameError, match=r"no systolic array is recorded for NVIDIA A100.*TPUv4.*SystolicArray\(rows=128"
    ):
        systolic(Hardware.Cloud.A100, gemm(8, 8, 8))
    with pytest.raises(ArgumentError, match="`window` must give 9 windows of 9 words, got 4 of 9"):
        count_systolic(9, 1, 9, 4, 4, window=Window(4, 4, 1, 3, 3, 1))
    with pytest.raises(ArgumentError, match="`window` makes an im2col matrix of 1,000,000,000,000 words"):
        window = Window(1000, 1000, 1_000_000, 1, 1, 1)
        count_systolic(10**6, 1, 10**6, 4, 4, convention="scalesim", ifmap_words=1000, window=window)
    with pytest.raises(ArgumentUnitError, match=r"`mac` must be a quantity in pJ, got the bare number 1"):
        energy_baselines(mac=1)
