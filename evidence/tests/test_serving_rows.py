"""Simulated servers beside published throughput: medians of the errors, and one constant that does for all."""

import numpy as np
import pytest

from mlsys.models.serving.decoder_steps import SERVER_EFFICIENCY
from mlsys_evidence.evaluate import serving_mlperf
from mlsys_evidence.evaluate.serving import Comparison, comparisons, rows, summary, why_not


@pytest.fixture(scope="module")
def compared() -> list[Comparison]:
    return comparisons(rows())


def test_every_row_is_simulated_or_says_why_not() -> None:
    reasons = [why_not(row) for row in rows()]
    assert len(reasons) == 139
    assert reasons.count(None) == 70
    assert all(row["licence"] and row["source"] for row in rows())


def test_throughput_is_within_a_tenth_in_the_median_and_a_third_at_worst(compared: list[Comparison]) -> None:
    number, median, ninth, worst = summary(compared)
    assert number == 70
    assert median < 0.10
    assert ninth < 0.20
    assert worst.error < 0.33, worst


def test_the_constant_is_the_median_of_its_rows_and_each_model_alone_gives_nearly_the_same(
    compared: list[Comparison],
) -> None:
    """Rates at the constant are proportional to it: the ratio left over is 1 in the median."""
    ratio = {each.row: each.published / each.simulated for each in compared}
    assert np.median(list(ratio.values())) == pytest.approx(1.0, abs=0.02)
    for model in ("405B", "8B", "70B"):
        others = [value for name, value in ratio.items() if f"_{model}-" not in name]
        left_out = [value / np.median(others) for name, value in ratio.items() if f"_{model}-" in name]
        assert np.median(np.abs(np.array(left_out) - 1)) < 0.10, (model, SERVER_EFFICIENCY)


def test_the_simulator_ranks_the_lengths_of_a_server_as_they_were_measured(compared: list[Comparison]) -> None:
    groups: dict[str, list[Comparison]] = {}
    for each in compared:
        groups.setdefault(each.row.rpartition("-tp")[0], []).append(each)
    assert len(groups) == 7
    for name, group in groups.items():
        measured = np.argsort(np.argsort([each.published for each in group]))
        simulated = np.argsort(np.argsort([each.simulated for each in group]))
        assert np.corrcoef(measured, simulated)[0, 1] > 0.9, name


def test_the_load_within_the_limits_of_mlperf_is_predicted_from_offline_rows() -> None:
    """Llama 3.1 8B and Mixtral: prompts inferred from the offline rows, loads within limits predicted."""
    chosen = [row for row in rows() if row["model"] in ("llama3.1-8b", "mixtral-8x7b")]
    prompts, found, percentiles = serving_mlperf.comparisons(chosen)
    assert len(found) == 7
    assert 0 < min(prompts.values()) < max(prompts.values()) < 2048
    assert np.median([each.error for each in found]) < 0.25
    assert max(each.error for each in found) < 0.4
    # At that load, latencies. The limits bound the 99th percentile of TPOT; the first token waits for what the logs do
    # not state, such as the spread of prompt lengths. Medians of these seven rows: 74, 63, 35 and 21 %; of all 27 rows
    # with latencies 42, 43, 37 and 14 %. Only the last meets the quarter that is aimed at.
    for quantity, bound in (("TTFT p50", 0.80), ("TTFT p99", 0.70), ("TPOT p50", 0.40), ("TPOT p99", 0.25)):
        errors = [each.error for each in percentiles if each.quantity == quantity]
        assert len(errors) == 7
        assert np.median(errors) < bound, (quantity, errors)
