"""Matrix products of libraries, as their published times show which kernels ran."""

import contextlib
import functools
from dataclasses import replace

import numpy as np
import pytest

from mlsys.calibration.case import Case, Inexpressible
from mlsys.models.estimate import CaseBatch, Parameters, kernel_times
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

# Every rate at its peak, and nothing to start.
QUIET = replace(Parameters(), compute=1.0, vector=1.0, bandwidth=1.0, reuse=1e3, launch=1e-12, ramp=1e-9, energy=1e-30)


@functools.lru_cache(maxsize=1)
def _products() -> tuple[Case, ...]:
    cases = []
    for row in shipped_rows():
        with contextlib.suppress(Inexpressible):
            cases += [interpret(row)] if row.workload.startswith("GEMM") else []
    return tuple(cases)


def _of(device: str, precision: str, shape: str = "", source: str = "") -> list[Case]:
    return [
        case
        for case in _products()
        if case.row.device == device and case.row.precision.startswith(precision)
        and shape in case.row.seq_or_shape and source in case.row.source
    ]  # fmt: skip


def _seconds(case: Case) -> float:
    """Return the time of a case at the peaks of its machine."""
    stack = CaseBatch.of([(case.engine, case.work, case.cached)])
    times = kernel_times(stack, QUIET.vectorised())
    return max(float(stack.total(times.seconds)[0]), case.at_least)


@pytest.mark.parametrize(("device", "rows"), [("NVIDIA T4", 5), ("NVIDIA TITAN X (Pascal)", 2)])
def test_a_deep_sum_of_few_columns_of_bytes_is_as_long_as_its_chain(device: str, rows: int) -> None:
    """Published rows: 500,000 steps take 3.8 to 4.4 ms on both cards, with 1, 2 and 4 columns and twice the rows."""
    deep = _of(device, "int8", "K=500000")
    assert len(deep) == rows
    measured = [case.seconds for case in deep]
    assert max(measured) < 1.2 * min(measured)
    assert [_seconds(case) for case in deep] == pytest.approx(measured, rel=0.17)


def test_few_columns_of_bytes_take_as_many_rows_as_the_units_hold() -> None:
    """Published rows of a TITAN X: one column takes time by rows on each unit, at half of what its memory could."""
    one = [case for case in _of("NVIDIA TITAN X (Pascal)", "int8", "N=1,") if case.work["m"][0] > 4000]
    assert len(one) == 2
    for case in one:
        assert case.work["moved"][0] / case.engine.bandwidth < 0.6 * case.seconds
        assert _seconds(case) == pytest.approx(case.seconds, rel=0.1)


def test_products_of_bytes_fill_blocks_of_128() -> None:
    """Published rows: 35 rows of bytes take two thirds or more of what one whole block would, at the peak of its unit.

    The ends of the tile are no part of the work that a rate is told of.
    """
    flat = [case for device in ("T4", "TITAN X (Pascal)") for case in _of(f"NVIDIA {device}", "int8", "M=35,")]
    assert len(flat) == 2
    for case in flat:
        whole = 2 * 128 * 128 * case.work["k"][0] / (case.engine.matmul / case.engine.units)
        assert 0.65 < whole / case.seconds < 1
        assert _seconds(case) >= 0.99 * whole


def test_narrow_products_of_a_p100_run_in_whole_waves() -> None:
    """Published rows of a P100's 56 units: 60 blocks of 128 × 64 take two waves, 24 and 36 one, 20 and 16 are split."""
    waves = {7680: 2, 4608: 1, 3072: 1}
    for rows, count in waves.items():
        for case in _of("NVIDIA P100 PCIe", "fp32", f"M={rows},N=16,", "DeepBench"):
            block = 2 * 128 * 64 * case.work["k"][0] / (case.engine.matmul / case.engine.units)
            assert count * block == pytest.approx(case.seconds, rel=0.2)
            assert _seconds(case) == pytest.approx(count * block, rel=0.05)
    (wide,) = _of("NVIDIA P100 PCIe", "fp32", "M=7680,N=64,", "DeepBench")
    block = 2 * 128 * 64 * wide.work["k"][0] / (wide.engine.matmul / wide.engine.units)
    assert 2 * block == pytest.approx(wide.seconds, rel=0.23)
    assert _seconds(wide) == pytest.approx(2 * block, rel=0.05)
    for rows in (2048, 2560):
        for case in _of("NVIDIA P100 PCIe", "fp32", f"M={rows},N=16,", "DeepBench"):
            block = 2 * 128 * 64 * case.work["k"][0] / (case.engine.matmul / case.engine.units)
            assert max(_seconds(case), case.seconds) < 0.7 * block


def test_kernels_of_ampere_leave_part_of_hopper_idle() -> None:
    """Published rows of SmoothQuant: the best attains 91 % of an A100's peak and 53 % of an H200's."""
    best = {}
    for device in ("A100 80GB SXM", "H200 SXM"):
        cases = _of(f"NVIDIA {device}", "w8a8")
        assert cases
        rate = {case.engine.matmul for case in cases}
        best[device] = max(
            2 * float((case.work["m"] * case.work["n"] * case.work["k"]).max()) / case.seconds / rate.copy().pop()
            for case in cases
        )
    assert best["H200 SXM"] == pytest.approx(best["A100 80GB SXM"], rel=0.12), "of what its instructions attain"


def test_rows_that_begin_in_one_channel_slow_an_mi210() -> None:
    """Published rows: all layers with rows of 32,768 values stay below 18 TFLOP/s, others as large above 24.

    Sums of 30,522 and 50,272 by 65,536 rows, which are slow for another reason, are left out.
    """
    large = [case for case in _of("AMD MI210", "fp32") if "nn.Linear" in case.row.software and case.seconds > 5e-3]
    large = [case for case in large if "M=65536" not in case.row.seq_or_shape]
    same = np.array(["K=32768" in case.row.seq_or_shape for case in large])
    attained = np.array([case.work.flops / case.seconds for case in large])
    assert same.sum() >= 5 <= (~same).sum()
    assert attained[same].max() < 18e12 < 24e12 < attained[~same].min()
    counted = np.array(
        [float((case.work["m"] * case.work["n"] * case.work["k"]).sum()) / case.seconds for case in large]
    )
    assert np.median(counted[same]) == pytest.approx(np.median(counted[~same]), rel=0.3), "steps counted as they take"


def test_narrow_products_of_fp32_took_whole_blocks_before_cublas_was_patched() -> None:
    """Published rows: 16 to 64 columns on a TITAN X (Pascal) take what a block of 128 × 128 does, by its depth alone.

    With cuBLAS 8.0.88 a P100 takes 12 µs for what takes 46 µs there, though its peak is lower.
    """
    shape = "M=1024,N=32,K=512,opA=N,opB=T"
    early, later = (_of(device, "fp32", shape)[0] for device in ("NVIDIA TITAN X (Pascal)", "NVIDIA P100 PCIe"))
    assert early.seconds > 3.5 * later.seconds
    assert _seconds(early) > 2.5 * _seconds(later)
    narrow = [
        case for case in _of("NVIDIA TITAN X (Pascal)", "fp32", "N=16,K=") if "K=500000" not in case.row.seq_or_shape
    ]
    narrow += [case for n in (32, 64) for case in _of("NVIDIA TITAN X (Pascal)", "fp32", f"N={n},K=")]
    alone = [case for case in narrow if "M=7680" not in case.row.seq_or_shape]
    assert len(alone) == 4
    for case in alone:
        block = 2 * 128 * 128 * case.work["k"][0] / (case.engine.matmul / case.engine.units)
        assert block == pytest.approx(case.seconds, rel=0.12)
        assert _seconds(case) == pytest.approx(block, rel=0.01)


def test_deep_sums_of_few_columns_are_not_split_before_volta() -> None:
    """Published rows: 500,000 steps of FP32 take 41 cycles each on a T4, 16 to 29 on Pascal's cards, 10 on a V100."""
    steps = {}
    for device in ("T4", "P100 PCIe", "GTX 1080 Ti", "TITAN X (Pascal)", "V100 SXM2"):
        deep = _of(f"NVIDIA {device}", "fp32", "K=500000")
        assert deep
        steps[device] = [(case.seconds * case.engine.clock / 5e5, _seconds(case) / case.seconds) for case in deep]
    assert all(40 < cycles < 43 and result == pytest.approx(1, abs=0.03) for cycles, result in steps["T4"])
    pascal = [each for device in ("P100 PCIe", "GTX 1080 Ti", "TITAN X (Pascal)") for each in steps[device]]
    assert all(15 < cycles < 30 for cycles, _ in pascal)
    assert np.median([result for _, result in pascal]) == pytest.approx(1, abs=0.15)
    assert all(cycles < 12 for cycles, _ in steps["V100 SXM2"])


def test_16_bit_products_start_sooner_on_blackwell() -> None:
    """Published rows inside a CUDA graph: a B200's smallest take two thirds of what those of older machines take."""
    least = {}
    for device in ("A100 80GB SXM", "H100 SXM5", "H200 SXM", "B200"):
        cases = [case for case in _of(f"NVIDIA {device}", "bf16") if case.setting == "serving gemm on GPU"]
        assert cases
        small = min(cases, key=lambda case: case.seconds)
        starts = replace(QUIET, launch=2.5e-6).vectorised()
        result = kernel_times(CaseBatch.of([(small.engine, small.work, small.cached)]), starts).launch
        least[device] = (small.seconds, float(result[0]))
    older = [least[device] for device in least if device != "B200"]
    assert all(2.4e-6 < seconds < 2.8e-6 and launch == 2.5e-6 for seconds, launch in older)
    seconds, launch = least["B200"]
    assert launch == pytest.approx(seconds, rel=0.06)


def test_smooth_quant_is_timed_without_what_quantises() -> None:
    """Published row of an A100: at the peak, with a pass over its activations, it would take longer than measured."""
    cases = _of("NVIDIA A100 80GB SXM", "w8a8")
    start = min(case.seconds for case in cases)
    (large,) = (case for case in cases if "M=2048,N=1536,K=8192" in case.row.seq_or_shape)
    product = 2 * 2048 * 1536 * 8192 / large.engine.matmul
    assert product + start + 3 * 2048 * 8192 / large.engine.bandwidth > large.seconds > product + start
    assert all(case.work.launches == 1 for case in cases)
    fp8 = [case for case in _of("NVIDIA H200 SXM", "fp8") if case.setting.startswith("TensorRT-LLM fp8 gemm")]
    assert fp8
    assert all(case.work.launches == 2 for case in fp8)
    weights = [float(case.work["weights"].sum()) * case.cached for case in cases]
    assert min(weights) > 5 * large.engine.cache, "three large layers come before"


def test_transposed_operands_slowed_cublas_before_it_was_patched() -> None:
    """Published rows: beyond 28 MB they attain two thirds at most of what other large products do, on three cards.

    A P100 with cuBLAS 8.0.88 does not care; and what is counted in their place takes as long as it took.
    """
    early, later = [], []
    for device in ("M40", "TITAN X (Maxwell)", "TITAN X (Pascal)", "P100 PCIe"):
        for case in _of(f"NVIDIA {device}", "fp32"):
            (m, n, k) = (float(part.split("=")[1]) for part in case.row.seq_or_shape.split(",")[:3])
            if "DeepBench" in case.row.source and min(m, n, k) > 1000:
                attained = 2 * m * n * k / case.seconds / case.engine.matmul
                slow = "opA=T" in case.row.seq_or_shape and 4 * m * k > 28e6
                (later if device.startswith("P100") else early).append((slow, attained, 2 * m * n * k, case))
    assert sum(slow for slow, *_ in early) == 4
    slow, quick = ([rate for is_slow, rate, *_ in early if is_slow is which] for which in (True, False))
    assert max(slow) < 0.6 < 0.62 < min(quick)
    assert min(rate for is_slow, rate, *_ in later if is_slow) > 0.9
    counted = [
        float(2 * (c.work["m"] * c.work["n"] * c.work["k"]).sum()) / flops for is_slow, _, flops, c in early if is_slow
    ]
    assert np.median(counted) == pytest.approx(np.median(quick) / np.median(slow), rel=0.15)


def test_short_layers_on_a_t4_end_before_its_power_is_limited() -> None:
    """Published rows: the best short layer attains more than any long one, which 70 W hold down."""
    layers = [case for case in _of("NVIDIA T4", "fp32") if "nn.Linear" in case.row.software]
    best: dict[bool, float] = {}
    for case in layers:
        short = case.work.flops / case.engine.matmul < 3e-4
        assert np.isinf(case.engine.power) == short
        best[short] = max(best.get(short, 0.0), case.work.flops / case.seconds / case.engine.matmul)
    assert best[True] > 1.15 * best[False]
    library = [case for case in _of("NVIDIA T4", "fp32") if "PyTorch" not in case.row.software]
    assert library and all(case.engine.power == 70 for case in library), "called over and over: none is short"


def test_a_kernel_called_by_itself_is_that_of_the_stack_which_has_it() -> None:
    """DeepGEMM's products of FP8 in blocks are SGLang's: without what quantises, and with nothing left in the cache."""
    (served, *_) = (case for case in _of("NVIDIA H100 SXM5", "fp8") if case.setting == "SGLang fp8 blocks gemm on GPU")
    alone = interpret(replace(served.row, software="DeepGEMM (CUDA 12.8)", precision="fp8 (bf16 output)"))
    assert alone.setting == served.setting and alone.engine.matmul == served.engine.matmul
    assert (alone.work.launches, alone.cached) == (1, 0)
    assert alone.work["moved"][0] == served.work["moved"][-1], "16-bit values are written"


def test_half_precision_of_a_geforce_runs_on_its_matrix_units_and_of_a_p100_does_not() -> None:
    """Both do FP16 twice as fast as FP32; an RTX 4090 by tensor cores (Ada whitepaper), a P100 by packed lanes."""
    row = next(row for row in shipped_rows() if row.workload == "GEMM" and "cuBLAS" in row.software)
    words = {"precision": "fp16", "software": "cuBLAS CUDA 12.2", "seq_or_shape": "M=4096,N=4096,K=4096", "note": ""}
    for device, units in (("NVIDIA RTX 4090", "matrix"), ("NVIDIA P100 PCIe", "vector"), ("NVIDIA T4", "matrix")):
        assert interpret(replace(row, device=device, **words)).setting == f"library gemm, {units} units on GPU"


def test_products_by_triton_have_a_setting_of_their_own_that_no_launch_slows() -> None:
    rows = [row for row in shipped_rows() if row.software.startswith("Triton 2") and row.workload == "GEMM"]
    cases = [interpret(row) for row in rows]
    assert {case.setting for case in cases} == {"Triton gemm on GPU"}
    assert len({case.twin for case in cases}) == 2
    assert {bool(case.cached) for case in cases} == {True, False}, "do_bench clears the cache, a graph does not"


def _of_the_peak(cases: list[Case], counted: bool) -> np.ndarray:
    """Return the part of the peak that products attain: of the multiplications of whole blocks as long as these take,
    or of the requested ones.
    """
    rates = []
    for case in cases:
        work = case.work
        each = 2 * work["m"] * work["n"] * work["k"] * work["batch"] if counted else work["flops"]
        rates.append(float(each.sum()) / case.seconds / case.engine.matmul)
    return np.array(rates)


@pytest.mark.parametrize(("device", "slowest"), [("P100 PCIe", 0.4), ("V100 PCIe 32GB", 0.5), ("A100 80GB PCIe", 0.5)])
def test_batches_in_fp32_attain_one_rate_in_whole_blocks(device: str, slowest: float) -> None:
    """Published rows: with the rest of blocks counted that cuBLAS has, batches of a millisecond attain 0.8 of the peak
    or more; the requested ones attain as little as 0.36 to 0.49.
    """
    cases = [
        case
        for case in _of(f"NVIDIA {device}", "fp32", source="NeuSight")
        if case.row.workload == "GEMM (batched)" and case.seconds > 1e-3
    ]
    assert len(cases) >= 10
    requested, counted = _of_the_peak(cases, counted=False), _of_the_peak(cases, counted=True)
    assert requested.min() < slowest
    assert 0.8 < counted.min() <= counted.max() < 1.05
    assert np.std(np.log(counted)) < 0.3 * np.std(np.log(requested))


def test_layers_in_fp32_attain_what_their_blocks_let_them() -> None:
    """Published rows: large layers of sums up to 15,700 attain a fifth less of a P100's peak than of a V100's.

    The P100's run in blocks of 128 × 32, and where rows do not begin with a line of the cache both are slower: counted
    as long as they take there, all attain within a tenth of 0.9 but one of the V100's.
    """
    medians = []
    for device in ("P100 PCIe", "V100 PCIe 32GB", "A100 40GB PCIe"):
        cases = [
            case
            for case in _of(f"NVIDIA {device}", "fp32", source="NeuSight")
            if case.row.workload == "GEMM" and case.seconds > 2e-2 and case.work["k"][-1] < 1.33 * 15_700
        ]
        assert len(cases) >= 5
        medians.append([float(np.median(_of_the_peak(cases, counted))) for counted in (False, True)])
    requested, counted = zip(*medians, strict=True)
    assert requested[0] < 0.81 * requested[1]
    assert counted[0] == pytest.approx(counted[2], rel=0.05)
    assert counted[0] == pytest.approx(counted[1], rel=0.1)


def test_rows_that_do_not_begin_with_a_line_slow_layers_before_ampere() -> None:
    """Published rows of a V100: of layers of more than 20 ms the even ones attain 0.99 of the peak, others 0.87."""
    cases = [
        case
        for case in _of("NVIDIA V100 PCIe 32GB", "fp32", source="NeuSight")
        if case.row.workload == "GEMM" and case.seconds > 2e-2 and case.work.flops / case.seconds > 8e12
    ]
    depth = np.array([float(case.row.seq_or_shape.split("K=")[1]) for case in cases])
    even = depth % 32 == 0
    assert even.sum() >= 3
    assert (~even).sum() >= 3
    requested, counted = _of_the_peak(cases, counted=False), _of_the_peak(cases, counted=True)
    apart = [float(np.median(rates[even]) / np.median(rates[~even])) for rates in (requested, counted)]
    assert apart[0] > 1.08
    assert apart[1] == pytest.approx(1, abs=0.06)
