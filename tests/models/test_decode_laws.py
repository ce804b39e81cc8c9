"""Laws of whole things: narrow weights, links and hosts of tokens decoded one by one, recurrent layers."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.calibration.case import Case
from mlsys.calibration.rows import Row
from mlsys.hardware import view
from mlsys.models.estimate import (
    COLLECTIVE,
    MATMUL,
    CaseBatch,
    Kernel,
    Parameters,
    Snapshot,
    Work,
    bound,
    kernel_times,
    snapshot,
)
from mlsys.models.estimate.library import fitted
from mlsys.models.estimate.machine import READ_FROM_STACKS
from mlsys_evidence import held_out_predictions
from mlsys_evidence.ingest.language import MIXED_BITS
from mlsys_evidence.questions import interpret, typed
from mlsys_evidence.questions.decoding import LANE, LOGIT
from mlsys_evidence.questions.language import language_model_of
from mlsys_evidence.rows import shipped_rows

QUIET = replace(Parameters(), compute=1.0, vector=1.0, bandwidth=1.0, launch=1e-12, ramp=1e-9, energy=1e-30)
SIDE = 8192


def _engine(device: str, precision: str = "fp16", **changes: float) -> Snapshot:
    return snapshot(view(Hardware[device], precision)).as_numbers().changed(**changes).as_numbers()


def _stack(engine: Snapshot, bits: float, rows: int = 1) -> CaseBatch:
    weights = SIDE * SIDE * bits / 8
    kernel = Kernel(MATMUL, 2.0 * rows * SIDE**2, weights + 4.0 * rows * SIDE, weights, m=rows, n=SIDE, k=SIDE)
    return CaseBatch.of([(engine, Work.of([kernel]), False)])


def _seconds(stack: CaseBatch) -> float:
    return float(kernel_times(stack, QUIET.vectorised()).seconds[0])


@pytest.mark.parametrize("device", ["RTX_4090", "RTX_3090"])
def test_fewer_bits_are_read_in_less_time(device: str) -> None:
    """One row keeps no matrix unit busy: its kernel takes a bit's transfer for each bit of a weight."""
    engine = _engine(device)
    times = {bits: _seconds(_stack(engine, bits)) for bits in (3.0, 4.0, 5.0)}
    a_bit = SIDE * SIDE / 8 / engine.bandwidth
    assert times[5.0] - times[3.0] == pytest.approx(2 * a_bit, rel=0.01)
    assert times[4.0] - times[3.0] == pytest.approx(a_bit, rel=0.01)
    assert not kernel_times(_stack(engine, 3.0), QUIET.vectorised()).latency_bound[0]


def test_narrow_weights_cost_an_a100_more_than_their_transfer_and_wide_ones_do_not() -> None:
    """An A100 has 10 FP32 operations for each byte it reads, an RTX 4090 has 80: unpacking shows on the first."""
    transfer = {}
    for device in ("A100_80GB", "RTX_4090"):
        engine = _engine(device, reading=1.0)
        for bits in (4.5, 16.0):
            stack = _stack(engine, bits)
            transfer[device, bits] = _seconds(stack) * engine.bandwidth / float(stack.main[0])
    assert transfer["A100_80GB", 16.0] == pytest.approx(1, rel=0.01)
    assert transfer["RTX_4090", 16.0] == pytest.approx(1, rel=0.01)
    # Of two operations a weight: 2 / (19.5 TFLOP/s) against 0.5625 byte / (2.04 TB/s).
    assert transfer["A100_80GB", 4.5] == pytest.approx(1 + (2 / 19.5e12) / (0.5625 / 2.039e12), rel=0.02)
    assert transfer["RTX_4090", 4.5] < 1.1


def test_stacks_are_read_slower_by_products_than_by_copies() -> None:
    """The opinion is the measured one: bytes over seconds of products whose matrix takes 200 MB and more."""
    attained = []
    for row in shipped_rows():
        if row.workload != "GEMM" or "CUDA graph" not in row.software or row.precision != "bf16":
            continue
        case = interpret(row)
        if case.work.weights > 2e8 and case.work["m"].max() <= 16:
            attained.append(case.work.weights / case.seconds / case.engine.bandwidth)
    assert len(attained) >= 5
    assert float(np.median(attained)) == pytest.approx(0.91 * READ_FROM_STACKS, rel=0.04)
    for device, part in (("H100_SXM", READ_FROM_STACKS), ("RTX_4090", 1.0)):
        engine = _engine(device)
        few, many = (_stack(engine, 16.0, rows) for rows in (1, 32))
        for stack in (few, many):
            assert float(stack.main[0]) / engine.bandwidth / _seconds(stack) == pytest.approx(part, rel=0.02)
            assert _seconds(stack) >= max(float(limit[0]) for limit in bound(stack))


@pytest.mark.parametrize("device", ["Apple_M1Max_32core", "RaspberryPi5", "EPYC_7742"])
def test_units_that_multiply_narrow_weights_as_they_are_do_not_unpack(device: str) -> None:
    engine = _engine(device)
    faster = engine.changed(vector=1e18, matmul=1e18).as_numbers()
    assert _seconds(_stack(engine, 4.5)) >= _seconds(_stack(faster, 4.5))
    quicker = engine.changed(vector=engine.vector * 2).as_numbers()
    assert _seconds(_stack(quicker, 4.5)) == _seconds(_stack(engine, 4.5))


def test_unpacking_is_told_to_come_from_the_vector_units_and_never_beats_the_bound() -> None:
    engine = _engine("A100_80GB")
    for bits in (2.0, 4.5, 8.5, 16.0):
        stack = _stack(engine, bits)
        quicker = _stack(engine.changed(vector=engine.vector * 2).as_numbers(), bits)
        assert (_seconds(quicker) < _seconds(stack)) == (bits < 16)
        assert _seconds(stack) >= max(float(limit[0]) for limit in bound(stack))


def test_a_product_by_a_vector_on_vector_units_streams_its_weights() -> None:
    """An M1 Max decodes at two thirds of its 400 GB/s and more (llama.cpp, Metal), which no chain of sums allows."""
    engine = _engine("Apple_M1Max_32core")
    stack = _stack(engine, 16.0)
    assert _seconds(stack) < 1.05 * float(stack.main[0]) / engine.bandwidth


def _all_reduce(link: float, peers: int) -> float:
    engine = _engine("A100_80GB", link=link, link_of_many=link)
    work = Work.of([Kernel(COLLECTIVE, 0.0, 64.0, ranks=peers)])
    return _seconds(CaseBatch.of([(engine, work, False)]))


def test_over_pcie_a_small_all_reduce_takes_longer_among_more_and_over_nvlink_one_shot_does_not() -> None:
    assert _all_reduce(31.5e9, 8) > 2.5 * _all_reduce(31.5e9, 2)
    assert _all_reduce(300e9, 8) < 1.5 * _all_reduce(300e9, 2)


def _decoded(words: str) -> Iterator[tuple[Row, Case]]:
    for row in shipped_rows():
        if re.search(words, f"{row.software} {row.note}") and "decode" in row.workload:
            yield row, interpret(row)


def test_cards_of_llm_perf_bench_talk_over_pcie() -> None:
    """README of mlc-ai/llm-perf-bench: all its numbers are on PCIe, not NVLink; PCIe 4.0 moves 31.5 GB/s one way."""
    steps = list(_decoded("Oct 2023"))
    assert len(steps) >= 20
    for row, case in steps:
        assert case.engine.link == pytest.approx(31.5e9), row.id
        assert case.twin in ("A100_80GB_PCIe", "RTX_4090")


def test_rows_split_among_cards_share_the_weights_and_wait_for_each_other() -> None:
    """Measured: llama.cpp of 2023 on two cards is no faster than on one, and on eight slower than on four."""
    by_count: dict[int, dict[str, Case]] = {}
    for row, case in _decoded("llama.cpp CUDA Oct 2023"):
        if row.model == "Llama-2-70B" and "A100" in row.device:
            by_count.setdefault(row.n_devices, {})[row.precision] = case
    assert sorted(by_count) == [2, 4, 8]
    for fewer, more in ((2, 4), (4, 8)):
        for precision in by_count[fewer].keys() & by_count[more].keys():
            small, large = (by_count[count][precision] for count in (fewer, more))
            assert large.engine.bandwidth == pytest.approx(small.engine.bandwidth * more / fewer)
            assert large.work.launches > small.work.launches


def test_the_small_host_waits_for_the_logits_on_its_lane() -> None:
    """The same card and model, on both hosts: what the small one adds is what its lane takes, not a share of the step.

    Lane and logits only; the published rates of the two hosts are the opinion.
    """
    seconds: dict[tuple[str, str], dict[bool, tuple[float, float]]] = {}
    for row, case in _decoded("265K Custom PC|Pi CM5"):
        small = "Pi CM5" in row.note
        lane = LOGIT * language_model_of(typed(row)).vocabulary / LANE
        seconds.setdefault((case.twin, row.model), {})[small] = (case.seconds, lane)
        assert (case.engine.link == LANE) == small
        assert "Vulkan" in case.setting
    pairs = [both for both in seconds.values() if len(both) == 2]
    ratios = [(both[True][0] - both[False][0]) / both[True][1] for both in pairs]
    assert len(pairs) >= 10
    assert 1.0 < float(np.median(ratios)) < 2.5  # a lane attains 40 to 100 % of its rate


def test_bits_of_gpt_oss_are_those_of_its_file() -> None:
    """Rows of 2,880 weights fall back to blocks of 32: Q5_0 for Q4_K, Q8_0 for Q6_K; the file is 11.6 GB."""
    hidden, heads, vocabulary, layers = 2880, 64 * 64, 201088, 24
    expert = 3 * hidden * hidden
    inputs, outputs = hidden * (heads + 2 * 512), heads * hidden
    head = hidden * vocabulary
    bits = {"experts": 4.25, "inputs": 5.5, "outputs": 4.5, "head": 8.5, "table": 5.5}
    read = {"experts": layers * 4 * expert, "inputs": layers * inputs, "outputs": layers * outputs, "head": head}
    held = read | {"experts": layers * 32 * expert, "table": head}
    assert sum(held[part] * bits[part] for part in held) / 8 == pytest.approx(11.6e9, rel=0.01)
    assert sum(read[part] * bits[part] for part in read) / sum(read.values()) == pytest.approx(MIXED_BITS, rel=0.01)


def test_experts_are_products_of_their_own_with_the_same_work() -> None:
    for row, case in _decoded("265K Custom PC"):
        model = language_model_of(typed(row))
        if model.experts:
            shape = case.work["m"] * case.work["n"] * case.work["k"] * case.work["batch"]
            product = (case.work["kind"] == MATMUL) & (case.work["weights"] > 0)
            assert 2 * shape[product] == pytest.approx(case.work["flops"][product])
            assert case.work["batch"].max() >= model.active_experts


def test_a_recurrent_layer_stored_in_fp16_on_a_p100_takes_longer_than_in_fp32() -> None:
    """DeepBench's own two rows of one shape are the opinion: 212 ms and 92 ms."""
    shape = "hidden=1536,batch=32,timesteps=375"
    factors = {}
    for row in shipped_rows():
        if "P100" in row.device and row.seq_or_shape.startswith(shape):
            case = interpret(row)
            stack = CaseBatch.of([(case.engine, case.work, case.cached)])
            factors[row.precision.split()[0]] = (
                case.seconds,
                float(stack.total(kernel_times(stack, Parameters().vectorised()).seconds)[0]),
            )
    (measured, predicted), (plain, wide) = factors["pseudo-fp16"], factors["fp32"]
    assert measured > 2 * plain
    assert 1.4 < predicted / wide < measured / plain * 1.2


def test_a_recurrent_layer_does_the_work_that_its_sheet_counts() -> None:
    """DeepBench states a rate beside the time of some rows, 13.78 TFLOP/s of a V100: with the input's product 27.6."""
    counted = 0
    for row in shipped_rows():
        stated = re.search(r"([\d.]+) TFLOP/s from shape/time", row.note)
        if stated and row.workload.startswith("rnn_fwd"):
            case = interpret(row)
            assert case.work.flops <= 1.05 * case.engine.matmul * case.seconds
            assert float((case.work["flops"] * case.work["count"]).sum()) / case.seconds == pytest.approx(
                float(stated[1]) * 1e12, rel=0.01
            )
            counted += 1
    assert counted > 15


def test_weights_are_read_as_fast_as_copies_are() -> None:
    """Copies of GPUs, MI210 aside, attain 0.87 to 0.94 of the memory's rate in our rows (A100, V100, A40)."""
    attained = {name: own.bandwidth for name, own in fitted().items() if name.endswith(" llm decode on GPU")}
    assert len(attained) >= 6
    assert all(0.85 <= part <= 0.96 for part in attained.values()), attained


def test_a_model_on_one_node_is_told_by_models_on_many() -> None:
    """GPT-20B on 1 to 8 machines, its sweep left out: what is told of it comes from 530B on 16 and 32, and 175B on 8.

    With one shot to all peers, however many, messages between nodes stood in every kernel's launch, and one node came
    out 1.3 times too slow.
    """
    kept = [each for each in held_out_predictions("sweep") if each.row.model.startswith("GPT-20B")]
    ratios = [each.seconds / each.case.seconds for each in kept if each.case and each.kind == "llm generation"]
    assert len(ratios) >= 50
    assert 0.85 < float(np.median(ratios)) < 1.15
