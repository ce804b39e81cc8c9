"""Language models on NeuronCores: laws of graphs with fixed shapes, and what their shapes read by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mlsys.calibration.case import Case
from mlsys.calibration.rows import Row
from mlsys.calibration.times import case_times
from mlsys.models.analysis.assumed import whole_buckets
from mlsys.models.estimate import MATMUL, VECTOR, Parameters
from mlsys_evidence.questions import interpret
from mlsys_evidence.questions.neuron import bucket_of
from mlsys_evidence.rows import cited_rows

CHIPS = 12  # of an Inf2.48xlarge, with two cores each


def _row(workload: str, shape: str, **changes: Any) -> Row:
    first = next(row for row in cited_rows() if row.workload == f"LLM serving {workload}" and row.n_devices == CHIPS)
    return replace(first, id="m000000000000", seq_or_shape=shape, **changes)


def _seconds(row: Row) -> float:
    return float(case_times([interpret(row)], Parameters().vectorised())[0])


def _token(prompt: int, output: int, most: int, **changes: Any) -> Row:
    return _row("decode", f"input {prompt}, output {output}, seq {most}", **changes)


def _bytes_of_keys(case: Case) -> float:
    """Return what the products of attention read, which have no weights of their own."""
    work = case.work
    here = (work["kind"] == MATMUL) & (work["weights"] == 0)
    return float((work["moved"] * work["count"])[here].sum())


@pytest.mark.parametrize("batch", ["1", "8"])
def test_a_bucket_twice_as_long_never_takes_less(batch: str) -> None:
    buckets = [2**power for power in range(7, 15)]
    steps = [_seconds(_token(bucket - 2, 2, 2**14, batch=batch)) for bucket in buckets]
    assert (np.diff(steps) > 0).all()
    prompts = [_seconds(_row("prefill", f"input {bucket}, output 2, seq 16384", batch=batch)) for bucket in buckets]
    assert (np.diff(prompts) > 0).all()


def test_one_more_token_in_a_bucket_changes_nothing_and_one_too_many_takes_the_next() -> None:
    assert _seconds(_token(3000, 2, 4096)) == _seconds(_token(3001, 2, 4096)) == _seconds(_token(3000, 2, 16384))
    assert _seconds(_token(4094, 2, 16384)) < _seconds(_token(4096, 2, 16384))
    prompts = [_seconds(_row("prefill", f"input {tokens}, output 8, seq 8192")) for tokens in (3000, 4096, 4097)]
    assert prompts[0] == prompts[1] < prompts[2]


def test_what_was_compiled_for_fewer_positions_ends_with_a_bucket_of_its_own() -> None:
    assert [bucket_of(tokens, 3072) for tokens in (1, 128, 129, 2048, 2049, 3072)] == [128, 128, 256, 2048, 3072, 3072]
    assert _seconds(_token(1024, 1024, 1664)) < _seconds(_token(1024, 1024, 16384))


def test_an_analysis_says_that_whole_buckets_are_read() -> None:
    assert "128, 256, 512" in whole_buckets("NeuronX llm decode on NPU")[0]
    assert whole_buckets("NeuronX llm prefill on NPU") == whole_buckets("HPU graphs llm decode on NPU") == ()


@pytest.mark.parametrize(("few", "many"), [("Mistral-7B-Instruct-v0.2", "Llama-2-7b"), ("llama-3-8b", "llama-2-7b")])
def test_few_heads_of_keys_read_as_much_as_one_for_each_query(few: str, many: str) -> None:
    """8 and 32 heads of 128 in 32 layers: on 24 cores both have 48, and each reads keys and values of all positions."""
    shared, own = (interpret(_token(4000, 2, 4096, model=model, batch="8")) for model in (few, many))
    assert _bytes_of_keys(shared) == _bytes_of_keys(own)
    by_hand = 32 * 2 * 48 * 128 * 4096 * 8 * 2
    assert by_hand <= _bytes_of_keys(own) < 1.01 * by_hand


def test_heads_that_the_cores_divide_stay_apart() -> None:
    """On 8 cores 8 heads of keys are one each."""
    row = _token(4000, 2, 4096, model="llama-3-8b", batch="8")
    few, cores = interpret(replace(row, n_devices=4)), interpret(row)
    assert 5.5 < _bytes_of_keys(cores) / _bytes_of_keys(few) < 6.5  # 48 over 8


def test_narrow_weights_are_all_converted_but_the_classifier_s() -> None:
    wide, narrow = (
        interpret(_token(4000, 2, 4096, model="llama-3-8b", precision=f"weights {name}, Matmult-BF16")).work
        for name in ("bf16", "int8")
    )
    classifier = 128_256 * 4_096 * 2.0
    assert narrow.weights == pytest.approx((wide.weights - classifier) / 2 + classifier, rel=1e-3)
    converting = (narrow["kind"] == VECTOR) & (narrow["weights"] > 0)
    converted = float((narrow["flops"] * narrow["count"])[converting].sum())
    assert converted == pytest.approx((wide.weights - classifier) / 2, rel=1e-3)
    assert converted > 8.0e9 - 2 * 128_256 * 4_096, "no fewer than Llama 3 has without its two tables"


def test_every_core_adds_and_normalises_the_whole_width() -> None:
    """Seven passes for either half of 40 blocks that are 5,120 wide, of as many cores as there are."""
    row = _row("prefill", "input 2048, output 2, seq 16384")

    def passes(chips: int) -> float:
        work = interpret(replace(row, n_devices=chips)).work
        wide = (work["kind"] == VECTOR) & (work["moved"] == 2.0 * 2 * chips * 2048 * 5120)
        return float((work["flops"] * work["count"])[wide].sum()) / (2 * chips)

    assert passes(4) == passes(8) == 2 * 40 * 7 * 2048 * 5120


def test_a_release_of_july_2024_repeats_less_and_keeps_the_scores_of_a_long_prompt_on_the_chip() -> None:
    """On 32 cores the 8 heads of Llama 3 70B, for 64 of queries, are repeated to 64 before, and to one a core since."""
    token = _token(4000, 2, 4096, model="llama-3-70b", n_devices=16, batch="4")
    before, since = (replace(token, software=f"Transformers NeuronX Neuron 2.{release}.0") for release in (18, 19))
    assert _bytes_of_keys(interpret(since)) == pytest.approx(_bytes_of_keys(interpret(before)) / 2, rel=0.02)
    for length, gains in ((2048, False), (4096, True)):
        shape = f"input {length}, output 2, seq 16384"
        old, new = (_row("prefill", shape, software=row.software) for row in (before, since))
        assert (_seconds(new) < _seconds(old)) is gains
    two = _row("prefill", "input 4096, output 2, seq 16384", software=since.software, batch="2")
    assert _seconds(two) == _seconds(replace(two, software=before.software)), "padded on the left: written out"
