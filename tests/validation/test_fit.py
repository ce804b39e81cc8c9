"""What a fit finds whatever side it starts from, and what a full server reads for a token."""

import re

import numpy as np
import pytest

from mlsys.models.calibrated import MATMUL, Parameters, kernel_times
from mlsys.validation.cases import interpret
from mlsys.validation.fit import fit, predicted
from mlsys.validation.refit import settings
from mlsys.validation.rows import shipped_rows
from mlsys.validation.times import stack_of

TWO_ENDED = "expert layer of narrow numbers experts on GPU"


def _misfit(ends: tuple[Parameters, ...]) -> float:
    cases = settings()[TWO_ENDED]
    apart = np.log(predicted(cases, fit(cases, ends))) - np.log([case.seconds for case in cases])
    return float(np.median(np.abs(apart)))


def test_a_setting_with_two_ends_is_fitted_no_worse_than_from_its_priors_alone() -> None:
    every = fit(settings()[TWO_ENDED]).ends
    assert len(every) == 3
    rates = [end.bandwidth for end in every]
    assert max(rates) > 1.1 * min(rates)  # searches from other sides end elsewhere
    assert _misfit(every) < 1.05 * _misfit((Parameters(),))


def test_a_full_server_reads_its_keys_once_for_all_heads_that_share_them() -> None:
    """Llama 3's 64 heads of queries share 8 of keys: a token of 114 sequences reads 2,000 keys and values of each."""
    rows = [row for row in shipped_rows() if row.workload.startswith("LLM serving max") and "70B" in row.model]
    for row in rows:
        case = interpret(row)
        sizes = re.search(r"input (\d+), output (\d+)", row.seq_or_shape)
        assert sizes
        prompt, output = map(int, sizes.groups())
        work = case.work
        here = (
            (work["kind"] == MATMUL) & (work["weights"] == 0) & (work["m"] == 8) & (work["n"] == prompt + output // 2)
        )
        assert here.sum() == 1
        sequences = work["batch"][here][0] / (2 * 8)
        keys_and_values = sequences * 2 * 8 * 128 * (prompt + output // 2)  # of 8 bits
        queries_and_results = sequences * 2 * 64 * 128
        assert work["moved"][here][0] == pytest.approx(keys_and_values + queries_and_results)
        stack = stack_of([case])
        seconds = kernel_times(stack, Parameters().vectorised()).seconds[(stack.kernels["m"] == 8)][0]
        assert seconds < 1.6 * keys_and_values / case.engine.bandwidth
