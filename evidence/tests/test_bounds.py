"""What beats a bound is explained by numbers, and only as far as the numbers go."""

from dataclasses import replace

import pytest

from mlsys.calibration.bounds import explain
from mlsys.calibration.case import Case
from mlsys_evidence import blind_evaluation_rows, validate
from mlsys_evidence.evaluate.blind_evaluation import BLIND_EVALUATIONS
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows


@pytest.fixture(scope="module")
def normal() -> Case:
    """A layer normalisation that moves 1.21 GB on an A100, whose last cache holds 42 MB: at both ends 7 % of it."""
    row = next(
        row
        for row in shipped_rows()
        if row.device == "NVIDIA A100 80GB PCIe"
        and "M=32768,N=3072" in row.seq_or_shape
        and "layernorm" in row.workload
    )
    return interpret(row)


@pytest.mark.parametrize(("faster", "reason"), [(0.9, ""), (1.03, "cache at both ends"), (1.2, "not explained")])
def test_a_cache_explains_what_it_holds_and_no_more(normal: Case, faster: float, reason: str) -> None:
    traffic = float(normal.work["moved"].sum()) / normal.engine.bandwidth
    result = explain(replace(normal, seconds=traffic / faster), 0.0, traffic)
    assert result.startswith(reason) and bool(result) == bool(reason)


def test_parameters_that_are_read_once_for_many_need_a_batch_that_nobody_stated() -> None:
    rows = [row for row in shipped_rows() if "Cloud AI" in row.software and "Offline" in row.workload]
    row = next(row for row in rows if row.model == "BERT-Large" and not row.batch)
    interpreted = interpret(row)
    case = replace(interpreted, engine=replace(interpreted.engine, cache=0.0))
    parameters = case.work.weights / case.engine.bandwidth
    assert "batch not stated" in explain(replace(case, seconds=parameters / 1.5), 0.0, parameters)
    stated = replace(case, seconds=parameters / 1.5, row=replace(row, batch="1"))
    assert "not explained" in explain(stated, 0.0, parameters)


@pytest.mark.parametrize(
    ("device", "result"), [("NVIDIA RTX 3090", "sums in FP16"), ("NVIDIA A100 80GB SXM", "not expl")]
)
def test_sums_in_fp16_explain_twice_the_peak_of_a_card_for_players_and_no_more(device: str, result: str) -> None:
    """GA102 does 142 TFLOP/s where it sums in FP16 and 71 in FP32, as NVIDIA's whitepaper has it; A100 312 in both."""
    row = next(
        row for row in blind_evaluation_rows(3) if row.device == "NVIDIA RTX 3090" and "4096,K=4096" in row.seq_or_shape
    )
    case = interpret(replace(row, device=device, precision="fp16"))
    peak = 2 * 4096**3 / case.engine.matmul
    assert explain(replace(case, seconds=peak / 1.95), peak, 0.0).startswith(result)
    assert explain(replace(case, seconds=peak / 2.6), peak, 0.0).startswith("not expl")


def test_a_kernel_in_slow_instructions_bounds_no_other() -> None:
    """FlashAttention-2 reads for each warp: its own ceiling is no bound of the card, which is 165.2 TFLOP/s."""
    rows = [row for row in blind_evaluation_rows(2) if "FlashAttention 2" in row.software and "4090" in row.device]
    for each in validate(rows).predictions:
        assert each.case is not None and each.case.fastest < 1
        assert each.bound == pytest.approx(float(each.case.work["flops"].sum()) / 165.2e12)
        assert each.seconds > each.bound and not each.excuse.startswith("not explained")


@pytest.mark.parametrize("number", BLIND_EVALUATIONS)
def test_no_row_of_a_blind_evaluation_beats_its_bound_without_a_reason(number: int) -> None:
    predictions = validate(blind_evaluation_rows(number)).predictions
    assert predictions and not [each.excuse for each in predictions if each.excuse.startswith("not explained")]


@pytest.mark.parametrize("words", ["softmax", "layernorm"])
def test_a_bound_counts_each_byte_in_and_out_once_whatever_the_program_reads_again(words: str) -> None:
    """An M × N matrix crosses the pins of an A100 PCIe (1,935 GB/s) once in and once out, however long its rows are."""
    rows = [
        row
        for row in shipped_rows()
        if words in row.workload and row.device == "NVIDIA A100 80GB PCIe" and row.precision == "fp32"
    ]
    again = 0
    for each in validate(rows).predictions:
        m, n = (int(part.split("=")[1].split()[0]) for part in each.row.seq_or_shape.split(","))
        size = 2 * m * n * 4
        if each.case is not None and size > 3 * 80e6:  # far above 40 MB of cache
            assert each.bound <= size / 1935e9 * 1.001
            again += float(each.case.work["moved"].sum()) > 1.1 * size
    assert again, "some of them are read again"


def test_one_thread_may_read_faster_than_is_told_of_it_and_no_faster_than_the_memory() -> None:
    """4.5 GB of weights in a Ryzen 9 7950X: 83 GB/s read 18 times a second, 13 GB/s three times."""
    row = next(
        row
        for row in blind_evaluation_rows(5)
        if "7950X" in row.device and "decode" in row.workload and "1 thread" in row.workload
    )
    for value, words in ((4.1, "few cores"), (20.0, "not explained")):
        [prediction] = validate([replace(row, value=value)]).predictions
        assert prediction.excuse.startswith(words)
