"""Laws of single kernels: chains of instructions, blocks of attention, experts, wide results."""

import random
import re
from dataclasses import replace

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.calibration.case import Case
from mlsys.calibration.rows import Row
from mlsys.hardware import Device, view
from mlsys.models.estimate import (
    ATTENTION,
    MATMUL,
    CaseBatch,
    Kernel,
    KernelTimes,
    Parameters,
    Snapshot,
    Work,
    dedupe,
    kernel_times,
    snapshot,
)
from mlsys.models.estimate.blocks import in_blocks
from mlsys.models.estimate.kernel_time import BLOCK_LATENCY, power_ceiling
from mlsys.models.estimate.library import parameters_of
from mlsys.models.estimate.lowering import Format
from mlsys_evidence.fit.fitting import fit
from mlsys_evidence.fit.refit import held_out_predictions
from mlsys_evidence.questions import interpret
from mlsys_evidence.questions.experts import _busiest
from mlsys_evidence.questions.kernels import product
from mlsys_evidence.rows import shipped_rows

QUIET = replace(Parameters(), compute=1.0, vector=1.0, bandwidth=1.0, launch=1e-12, ramp=1e-9, energy=1e-30)


WIDE = {"cache_bandwidth": 1e15, "bandwidth": 1e15}


def _unit(device: str, precision: str, **changes: float) -> Snapshot:
    """Return one unit of a machine, with memories that nobody waits for."""
    whole = snapshot(view(Hardware[device], precision)).as_numbers()
    return whole.changed(
        **WIDE | {"units": 1.0, "matmul": whole.matmul / whole.units, "vector": whole.vector / whole.units} | changes
    ).as_numbers()


def _times(engine: Snapshot, work: Work) -> KernelTimes:
    return kernel_times(CaseBatch.of([(engine, work, True)]), QUIET.vectorised())


def _product(m: int, n: int, k: int, block: float = 0.0) -> Work:
    moved = 2.0 * (m * k + k * n + m * n)
    return Work.of([Kernel(MATMUL, 2.0 * m * n * k, moved, m=m, n=n, k=k, block_rows=block, block_columns=block)])


@pytest.mark.parametrize(
    ("device", "precision", "cycles"),
    [
        # Cycles from one instruction to the next that needs its sum, both recalled: about 33 for mma.m16n8k16 on A100
        # (W. Sun et al., arXiv:2206.02874), 4 for a fused multiply-add on V100 (Z. Jia et al., arXiv:1804.06826).
        ("A100", "fp16", 33 / 16), ("V100", "fp32", 4.0),
    ],
)  # fmt: skip
def test_a_long_sum_of_one_block_waits_for_its_instructions(device: str, precision: str, cycles: float) -> None:
    steps = 1 << 16
    unit = _unit(device, precision)
    times = _times(unit, _product(8, 8, steps, block=8.0))  # whose block sums all of it itself, not its lanes
    assert float(times.seconds[0]) == pytest.approx(steps * cycles / unit.clock, rel=0.05)
    assert times.latency_bound.all() and not times.operand_bound.any()


def test_the_clock_holds_what_a_chain_holds_and_a_faster_matrix_unit_does_not_help() -> None:
    work = _product(8, 8, 1 << 16)
    unit = _unit("A100", "fp16")
    changed = [unit, _unit("A100", "fp16", clock=unit.clock * 2), _unit("A100", "fp16", matmul=unit.matmul * 1.5)]
    once, faster, stronger = (float(_times(engine, work).seconds[0]) for engine in changed)
    assert faster == pytest.approx(once / 2) and stronger == pytest.approx(once)


def test_a_systolic_array_has_no_chain() -> None:
    assert not _times(_unit("TPUv4", "bf16"), _product(8, 128, 1 << 16)).latency_bound.any()


def _attention(queries: int, keys: int) -> Work:
    flops = 4.0 * queries * keys * 128 * 4096
    return Work.of([Kernel(ATTENTION, flops, 1.0, m=queries, n=keys, k=128, batch=4096)])


def test_one_new_token_computes_a_block_of_64_rows() -> None:
    unit = _unit("A100", "fp16")
    seconds = {rows: float(_times(unit, _attention(rows, 4096)).seconds[0]) for rows in (1, 8, 64, 128)}
    assert seconds[1] == seconds[8] == seconds[64]
    waves = 4096 / unit.units
    alone = {rows: each - waves * BLOCK_LATENCY for rows, each in seconds.items()}
    assert alone[128] == pytest.approx(2 * alone[64], rel=0.01)


@pytest.mark.parametrize("length", [512, 4096])
def test_causal_attention_counts_the_blocks_that_hold_a_score(length: int) -> None:
    """Counted one by one: a block of 128 queries reads each block of 128 keys of which one query sees a key."""
    blocks = [(row, column) for row in range(0, length, 128) for column in range(0, length, 128) if column <= row + 127]
    unit, width = _unit("A100", "fp16"), 128
    kernel = Kernel(ATTENTION, 2.0 * length**2 * width * 512, 1.0, m=length, n=length, k=width, batch=512)
    seconds = float(_times(unit, Work.of([kernel])).seconds[0])
    each = np.hypot(4 * 128 * 128 * width / unit.matmul, 8 * 128 * 128 / unit.vector)
    started = 512 * length / 128 * BLOCK_LATENCY
    assert seconds == pytest.approx(512 * len(blocks) * each + started, rel=0.01)


def test_a_lone_prompt_takes_as_long_as_one_block_takes_to_start() -> None:
    engine = snapshot(view(Hardware["H100_SXM"], "bf16"))
    works = [
        Work.of([Kernel(ATTENTION, 4.0 * 16 * 16 * 64, 1.0, m=16, n=16, k=64, batch=heads)]) for heads in (1.0, 96.0)
    ]
    few, many = (float(_times(engine, work).seconds[0]) for work in works)
    assert few == pytest.approx(BLOCK_LATENCY, rel=0.1) and many == pytest.approx(few)


def _drawn(tokens: int, count: int, top: int, parallel: int, skew: float, seed: int) -> tuple[int, int, int]:
    """Return experts reached, rows and blocks of 16 rows of the busiest machine, one draw, expert by expert."""
    source = random.Random(seed)
    low, high = (1.0, 0.8 * tokens) if tokens * top > count else (0.01, 2.0)
    loads = []
    for _ in range(count):
        part = source.random()
        loads.append(((high ** (1 - skew) - low ** (1 - skew)) * part + low ** (1 - skew)) ** (1 / (1 - skew)))
    whole = [round(load / sum(loads) * tokens * top) for load in loads]
    for busiest in sorted(range(count), key=lambda expert: -loads[expert]):
        whole[busiest] += sum(whole) < tokens * top
    share = count // parallel
    machines = [whole[start : start + share] for start in range(0, count, share)]
    busiest = max(machines, key=sum)
    return sum(load > 0 for load in busiest), sum(busiest), sum(-(-load // 16) for load in busiest)


@pytest.mark.parametrize(
    ("tokens", "count", "top", "parallel"), [(1, 128, 8, 1), (16, 128, 8, 4), (256, 64, 4, 4), (4096, 256, 8, 8)]
)
def test_experts_are_reached_as_drawn_one_by_one(tokens: int, count: int, top: int, parallel: int) -> None:
    brute = np.mean([_drawn(tokens, count, top, parallel, 1.2, seed) for seed in range(60)], axis=0)
    assert _busiest(tokens, count, top, parallel, 1.2, 16) == pytest.approx(brute, rel=0.12)


def test_a_token_alone_reaches_as_many_experts_as_it_goes_to() -> None:
    assert _busiest(1, 128, 8, 1, 0.0, 64) == pytest.approx((8, 8, 8))
    reached, rows, _ = _busiest(1, 128, 8, 1, 1.2, 1)  # a popular expert may take two of the rows that are rounded up
    assert 7 < reached <= 8 and rows == pytest.approx(8)
    reached, rows, blocks = _busiest(10_000, 128, 8, 4, 0.0, 64)
    assert reached == pytest.approx(32) and rows == 20_000 and blocks == pytest.approx(32 * 10)


@pytest.mark.parametrize("stack", ["vLLM", "SGLang"])
def test_each_expert_fills_up_its_last_block_of_rows(stack: str) -> None:
    """Published defaults of both stacks in 16 bits: 16 by 32 where tokens are no more than experts, else 64 by 64."""
    first = next(row for row in shipped_rows() if row.workload.startswith("MoE") and row.precision == "bf16")
    shape = "tokens {}, hidden 4096, expert ffn 1536, experts 128, top 8, tensor parallel 1, expert parallel 1"
    for tokens, rows, blocks in ((128, 16, 128), (256, 64, 128), (16384, 64, 128 * 16)):
        row = replace(
            first, software=f"{stack} 1, CUDA graph", seq_or_shape=f"{shape.format(tokens)}, routing balanced"
        )
        work = interpret(row).work
        products = work["kind"] == MATMUL
        assert work["m"][products].tolist() == [rows, rows]
        assert work["batch"][products] == pytest.approx(blocks, rel=0.01)
        assert work["flops"][products].sum() == pytest.approx(6.0 * tokens * 8 * 4096 * 1536)


def test_products_of_the_first_int8_of_fastertransformer_write_four_bytes_a_value() -> None:
    first = next(row for row in shipped_rows() if row.precision == "INT8-v1" and "A100" in row.device)
    narrow, wide = (interpret(replace(first, precision=name)).work for name in ("INT8-v2", "INT8-v1"))
    products = narrow["kind"] == MATMUL
    results = (narrow["m"] * narrow["n"] * narrow["batch"])[products]
    assert (wide["moved"] - narrow["moved"])[products] == pytest.approx(6 * results)
    assert (wide["moved"] == narrow["moved"])[~products].all()


def test_few_rows_of_training_leave_the_launch_that_python_costs() -> None:
    rows: list[Row] = [row for row in shipped_rows() if "Megatron-LM" in row.software and "H100" in row.device]
    cases = [interpret(row) for row in rows if row.workload.startswith("LLM") or "training" in row.workload]
    few = [case for case in cases if case.setting == "Megatron vector units training on GPU"]
    assert 3 <= len(few) <= 12
    # A step of training starts several kernels a product; one costs 5 µs and more.
    assert fit(few).parameters.launch > 2e-5


def test_products_of_scaled_blocks_are_other_kernels_on_blackwell() -> None:
    """Published rows: SGLang does 0.51 to 0.57 of a B200's FP8 peak in large products."""
    rows = [row for row in shipped_rows() if "128-block" in row.precision and row.workload == "GEMM"]
    cases = [interpret(row) for row in rows]
    apart = {case.setting for case in cases if case.twin == "B200"} & {
        case.setting for case in cases if case.twin != "B200"
    }
    assert all(setting.startswith("vLLM") for setting in apart), "of vLLM there is one sweep on Blackwell"
    left = {each.row.id: each.seconds for each in held_out_predictions("sweep")}
    large = [case for case in cases if case.twin == "B200" and "SGLang" in case.setting and case.work.flops > 1e12]
    assert len(large) >= 5
    parts = [case.work.flops / left[case.row.id] / case.engine.matmul for case in large if case.row.id in left]
    assert 0.4 < np.median(parts) < 0.7, "a whole sweep left out, they are still told near the published half"


def test_a_product_takes_as_long_among_hundreds_as_alone() -> None:
    rng = random.Random(5)
    works = [_product(*(rng.randrange(1, 5000) for _ in "mnk")) for _ in range(600)]
    engine = snapshot(view(Hardware["H100"], "fp16")).as_numbers()
    together = kernel_times(CaseBatch.of([(engine, work, True) for work in works]), QUIET.vectorised())
    for at in (0, 255, 256, 300, 511, 512, 599):
        alone = _times(engine, works[at])
        assert (together.seconds[at], together.operand_bound[at]) == (alone.seconds[0], alone.operand_bound[0])


@pytest.mark.parametrize("device", ["H100", "T4", "TPUv5e", "EPYC_7742"])
def test_equal_products_are_told_once_and_all_the_same(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(6)
    works = [_product(*(rng.choice((1, 3, 64, 100, 1000)) for _ in "mnk")) for _ in range(300)]
    engine = snapshot(view(Hardware[device], "bf16" if device == "TPUv5e" else "fp16")).as_numbers()
    together = kernel_times(CaseBatch.of([(engine, work, True) for work in works]), QUIET.vectorised())
    assert together.seconds.tolist() == [float(_times(engine, work).seconds[0]) for work in works]
    # Different products whose bits add up alike are still told apart.
    monkeypatch.setattr(dedupe, "_scattered", lambda rows: np.zeros((rows, 1), dtype=np.uint64))
    again = kernel_times(CaseBatch.of([(engine, work, True) for work in works]), QUIET.vectorised())
    assert again.seconds.tolist() == together.seconds.tolist()


def test_some_cases_of_a_stack_are_the_stack_of_those_cases() -> None:
    products = [row for row in shipped_rows() if row.n_devices == 1 and row.workload.startswith("GEMM")]
    networks = [row for row in shipped_rows() if "resnet50" in row.model.lower() and row.unit == "ms"]
    cases = [interpret(row) for row in (*products[::300], *networks[:60:10])]
    assert len(cases) > 10
    whole = CaseBatch.of([(case.engine, case.work, case.cached) for case in cases])
    chosen = [7, 0, 3, len(cases) - 1]
    some, own = (
        whole.of_cases(chosen),
        CaseBatch.of([(cases[at].engine, cases[at].work, cases[at].cached) for at in chosen]),
    )
    parameters = QUIET.vectorised()
    assert some.total(kernel_times(some, parameters).seconds) == pytest.approx(
        own.total(kernel_times(own, parameters).seconds), rel=1e-12
    )
    assert some.total(some.main).tolist() == pytest.approx(own.total(own.main).tolist())
    assert some.total(some.near).tolist() == pytest.approx(own.total(own.near).tolist())
    # Twice the traffic is a new key: what of it the cache holds is computed again.
    twice = whole.doing(moved=2 * whole.kernels["moved"])
    works = [case.work.changed(moved=2 * case.work["moved"]) for case in cases]
    anew = CaseBatch.of([(case.engine, work, case.cached) for case, work in zip(cases, works, strict=True)])
    assert twice.main.tolist() == anew.main.tolist() and twice.near.tolist() == anew.near.tolist()


def test_batched_products_of_an_ampere_fill_whole_tiles() -> None:
    """Published rows: in FP32 an A100 does products of 96 columns in the time of 128, and of 196 in that of 256."""
    rows = [row for row in shipped_rows() if "torch.bmm" in row.software and row.device == "NVIDIA A100 80GB PCIe"]
    assert rows
    cases = [interpret(row) for row in rows]
    large = [case for case in cases if case.seconds > 3e-3]
    attained = [
        float(2 * (case.work["m"] * case.work["n"] * case.work["k"] * case.work["batch"]).sum()) / case.seconds
        for case in large
    ]
    assert max(attained) < 1.4 * min(attained), "counted in whole tiles, one rate explains all shapes"
    plain = [case.work.flops / case.seconds for case in large]
    assert max(plain) > 1.4 * min(plain), "counted as the shapes have it, none does"


def _of_deepbench(device: str, precision: str, **shape: int) -> list[Case]:
    words = [f"{name}={size}," for name, size in shape.items()]
    return [
        interpret(row)
        for row in shipped_rows()
        if "DeepBench" in row.source and row.workload == "GEMM" and row.device == device
        and row.precision.startswith(precision) and all(word in row.seq_or_shape + "," for word in words)
    ]  # fmt: skip


def test_old_libraries_have_no_narrow_tile() -> None:
    """Published rows: an M40 takes 540 µs for 16 columns and for 32; a P100 takes longer for 16 than for 32."""
    narrow, wide = (_of_deepbench("NVIDIA M40", "fp32", M=6144, N=columns, K=2048)[0] for columns in (16, 32))
    assert narrow.seconds == wide.seconds
    assert {narrow.setting, wide.setting} == {"CUDA 7 library gemm, vector units on GPU"}
    narrow_time, other = (_times(case.engine, case.work).working.sum() for case in (narrow, wide))
    assert narrow_time == pytest.approx(other)
    few, more = (_of_deepbench("NVIDIA P100 PCIe", "fp32", M=3072, N=columns, K=1024)[0] for columns in (16, 32))
    assert few.seconds > more.seconds
    assert _times(few.engine, few.work).working.sum() > _times(more.engine, more.work).working.sum()


def test_power_pays_for_bytes_as_a_t4_does() -> None:
    """Published rows of one T4 at its 70 W: large products of bytes run at five to six and a half times FP32's rate."""
    rates = {}
    for name in ("fp32", "int8"):
        large = [case for case in _of_deepbench("NVIDIA T4", name) if case.work.flops > 3e10 and case.work["n"][0] > 64]
        assert len(large) >= 5
        measured = np.median([case.work.flops / case.seconds for case in large])
        engine = {key: np.array([float(getattr(large[0].engine, key))]) for key in CaseBatch.RATES}
        rates[name] = measured, power_ceiling(engine, {"energy": np.array([1e-12])})[0]
    (slow, low), (fast, high) = rates["fp32"], rates["int8"]
    assert 4.5 < fast / slow < 6.5
    assert high / low == pytest.approx(fast / slow, rel=0.15)


def test_a_kernel_that_splits_no_sum_takes_time_in_proportion_to_depth() -> None:
    """Published rows: NVFP4 of TensorRT-LLM on a B200 takes 1.8 ns a step in one block and in six, however deep."""
    rows = {row.seq_or_shape: interpret(row) for row in shipped_rows() if "TensorRT-LLM" in row.software}
    deep = [
        case
        for case in rows.values()
        if case.setting.startswith("TensorRT-LLM fp4") and case.work["m"][-1] < 10 and case.work["k"][-1] > 50_000
    ]
    assert len(deep) == 2
    single, six = ((case.seconds - 1e-5) / case.work["k"][-1] for case in deep)
    assert single == pytest.approx(six, rel=0.05)
    fitted = parameters_of("TensorRT-LLM fp4 gemm on GPU")[0]
    assert fitted.splits < 2, "blocks idle beside one that sums"
    engine = snapshot(view(Hardware["B200"], "fp4")).changed(**WIDE).as_numbers()
    works = [_product(8, 128, depth) for depth in (20_000, 40_000)]

    def working(depth: int, **own: float) -> float:
        times = kernel_times(CaseBatch.of([(engine, works[depth], True)]), replace(QUIET, **own).vectorised())
        return float(times.working.sum())

    assert working(1, splits=1.0) == pytest.approx(2 * working(0, splits=1.0))
    assert working(1, splits=32.0) < 0.5 * working(1, splits=1.0), "split, idle units help"
    assert working(0, splits=1.0, chain=3.0) == pytest.approx(3 * working(0, splits=1.0))


def test_layers_that_take_turns_push_each_other_out_of_the_cache() -> None:
    """Arithmetic: one layer of 20 MB fits an H100's 50 MB; of six, none is found there again."""
    engine = snapshot(view(Hardware["H100"], "fp8"))
    kernel = Kernel(MATMUL, 2.0 * 16 * 4096 * 5000, 20.48e6 + 1e5, weights=20.48e6, m=16, n=4096, k=5000)
    single, six = (CaseBatch.of([(engine, Work.of([kernel]), copies)]) for copies in (1, 6))
    assert (single.main[0], six.main[0]) == (0.0, 20.48e6)
    assert six.near[0] == pytest.approx(1e5), "the activations are found all the same"


def test_vllm_of_old_quantises_step_by_step() -> None:
    """Published rows: vLLM 0.14 takes 526 µs for 256 columns whose product takes a tenth, 12 ps an activation."""
    rows = [row for row in shipped_rows() if "vLLM 0.14" in row.software and row.precision.startswith("fp8")]
    tall = [case for case in map(interpret, rows) if case.work["m"][-1] >= 8192 and case.work["n"][-1] < 1000]
    assert len(tall) >= 3
    for case in tall:
        quantising = case.work["moved"][0] / case.engine.bandwidth
        assert 0.4 < quantising / case.seconds < 1, "it is most of the time, at a memory's rate"


def test_rows_far_apart_slow_a_p100() -> None:
    """Published rows: large layers attain less than 3.5 TFLOP/s where sums are longer than 15,700, more else."""
    cases = [
        interpret(row)
        for row in shipped_rows()
        if "nn.Linear" in row.software and row.device == "NVIDIA P100 PCIe" and row.value > 1e5
    ]
    depth = [float(re.search(r"K=(\d+)", case.row.seq_or_shape)[1]) for case in cases]  # type: ignore[index]
    far = np.array(depth) > 15_700
    attained = np.array([case.work.flops / case.seconds for case in cases])
    assert far.sum() >= 5
    assert attained[far].max() < 3.5e12 < attained[~far].min()
    steps = [float((case.work["m"] * case.work["n"] * case.work["k"]).sum()) / case.seconds for case in cases]
    counted = np.array(steps) * 2
    assert np.median(counted[far]) == pytest.approx(np.median(counted[~far]), rel=0.3), "steps counted as they take"


def _part_of_the_peak(twin: Device, m: int, n: int, k: int, batch: int = 1) -> float:
    """Return what a product of FP32 on vector units attains of the peak, its call and limits of power apart."""
    fmt = Format("fp32", 4, 4, vector_unit=True)
    work = Work.of([product(m, n, k, fmt, batch=batch, weights=batch == 1)])
    work = in_blocks(work, twin, "fp32") if batch > 1 else work
    engine = fmt.on(twin)
    seconds = kernel_times(
        CaseBatch.of([(engine, work, 0.0)]), Parameters(compute=0.97, ramp=10, energy=1e-30).vectorised()
    )
    return 2.0 * m * n * k * batch / float(np.maximum(seconds.working, seconds.moving)[0]) / engine.matmul


def test_schedulers_as_wide_as_they_issue_lose_a_place_to_each_load() -> None:
    """5120 × 4096 × 4096 by cuBLAS: 18.88 of 19.49 TFLOP/s on an A100, and on an RTX 4070 Ti 29.17, of 40.09 at its
    boost clock or 35.48 at its base clock (Yinghan-Li/YHs_Sample, issue 4).

    Cards without that lack do as the A100: an H100's largest layers attain 0.74 to 0.79 of its peak, a V100's 0.95 to
    0.98 (sitar-lab/NeuSight@6945927, scripts/asplos/label).
    """
    shape = (5120, 4096, 4096)
    half, whole = (_part_of_the_peak(twin, *shape) for twin in (Hardware.Cloud.A100, Hardware["RTX_4070_Ti"]))
    assert 29.17 / 40.09 < whole / half * 18.88 / 19.49 < 29.17 / 35.48 * 1.03
    attained = [_part_of_the_peak(Hardware[twin], 4096, 50257, 2560) for twin in ("H100_SXM", "V100_PCIe_32GB")]
    assert attained == [pytest.approx(0.79, rel=0.06), pytest.approx(0.95, rel=0.06)]


def test_attention_in_blocks_of_one_size_pays_for_columns_it_has_not() -> None:
    """Scores by values of heads 64 wide, over queries by keys: 0.46 over 0.84 of an A100's peak, 0.61 over 0.50 of an
    H100's.

    2048 tokens, 64 heads: sitar-lab/NeuSight@6945927, scripts/asplos/label, opt_13-train-2048-2.csv of both machines.
    """
    for twin, narrow_over_wide in (("A100_80GB_PCIe", 0.46 / 0.84), ("H100_SXM", 0.61 / 0.50)):
        parts = [_part_of_the_peak(Hardware[twin], 2048, *rest, batch=64) for rest in ((64, 2048), (2048, 64))]
        assert parts[0] / parts[1] == pytest.approx(narrow_over_wide, rel=0.15)
