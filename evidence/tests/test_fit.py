"""What full servers and TensorFlow's XLA move for a token of attention."""

import re

import pytest

from mlsys.calibration.times import stack_of
from mlsys.models.estimate import MATMUL, Parameters, kernel_times
from mlsys_evidence.fit.refit import settings
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows


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


def test_tensorflow_1_turns_four_tensors_of_attention_that_version_2_does_not() -> None:
    """BERT-Large: 24 layers, each with queries, keys, values and results of 1,024 numbers a token, read and written."""
    counted = {}
    for program in ("TensorFlow XLA 1", "TensorFlow XLA"):
        case = next(
            case
            for case in settings()[f"{program} network on GPU"]
            if case.row.model == "BERT-Large" and case.row.batch == "8" and "384" in case.row.seq_or_shape
        )
        one = interpret(case.row).work
        size = 2 * 8 * 384 * 1024 * 4 if program.endswith("1") else 2 * 8 * 384 * 1024 * 2
        here = (one["moved"] == size) & (one["flops"] == 0)
        counted[program] = one["count"][here].sum()
    assert counted == {"TensorFlow XLA 1": 24 * 4, "TensorFlow XLA": 0}
