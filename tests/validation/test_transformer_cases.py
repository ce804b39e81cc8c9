"""What sources say that FasterTransformer and PyTorch do, counted by hand from rows that ship."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mlsys.models.calibrated import VECTOR
from mlsys.validation.cases import Case, interpret
from mlsys.validation.rows import Row, shipped_rows


def _rows(workload: str, **words: str) -> Iterator[Row]:
    for row in shipped_rows():
        if workload in row.workload and all(word in getattr(row, name) for name, word in words.items()):
            yield row


def _passes_over_scores(case: Case) -> float:
    """Return the bytes of kernels that compute nothing."""
    work = case.work
    here = (work["kind"] == VECTOR) & (work["flops"] == 0) & (work["weights"] == 0)
    return float((work["moved"] * work["count"])[here].sum())


def test_a_picture_of_577_tokens_is_attended_to_in_three_kernels_and_a_text_of_384_in_one() -> None:
    picture = next(_rows("vision transformer", precision="FP16", software="FasterTransformer", batch="8"))
    assert _passes_over_scores(interpret(picture)) == pytest.approx(12 * 4 * 8 * 12 * (24 * 24 + 1) ** 2 * 2)
    text = next(_rows("transformer encoder", precision="FP16", software="FasterTransformer", seq_or_shape="seq 384"))
    assert _passes_over_scores(interpret(text)) == 0


def test_a_pipeline_of_two_runs_half_of_the_layers_once_for_each_text_and_once_to_fill() -> None:
    """128 texts of 1,024 tokens are too long to go down together: 129 rounds of half of the layers of one text."""
    flops = {}
    for stages in (1, 2):
        note = f"tensor parallel 1, pipeline parallel {stages}"
        row = next(_rows("transformer encoder", model="BERT-6B", seq_or_shape="seq 1024", note=note, batch="128"))
        work = interpret(row).work
        flops[stages] = float((work["flops"] * work["count"]).sum())
    assert flops[2] / flops[1] == pytest.approx(129 / 256)


def test_softmax_reads_rows_of_broken_vectors_again() -> None:
    """2,048 values of FP32 are read and written once on an A100; 2,419 are not a multiple of four."""
    reads = {}
    for row in _rows("softmax", software="PyTorch 2.1.0", device="A100"):
        case = interpret(row)
        rows, length = (int(part.split("=")[1].split()[0]) for part in row.seq_or_shape.split(","))
        reads[length] = float(case.work["moved"][0]) / (4 * rows * length) - 1
    assert reads[2048] == reads[1024] == 1
    assert reads[2419] == reads[3177] == 2
