"""The stored typed rows: regenerated to the same text, complete without the words, and checked against the schema."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlsys.calibration.case import Inexpressible
from mlsys.frozen import FrozenDict
from mlsys_evidence.ingest.__main__ import typed_rows_of
from mlsys_evidence.questions import ask, typed
from mlsys_evidence.rows import cited, row_files, shipped_rows, typed_place
from mlsys_evidence.typed_rows import TypedRow, check, read_typed, schema, typed_text

WORDS = ("device", "workload", "model", "precision", "batch", "seq_or_shape", "software", "source_path", "note")


@pytest.mark.parametrize("name", row_files())
def test_ingest_writes_the_stored_rows_again(name: str) -> None:
    assert gzip.decompress(typed_place(name).read_bytes()).decode() == typed_rows_of(name)


def _answer(row: TypedRow) -> object:
    try:
        case = ask(row)
    except Inexpressible as reason:
        return str(reason)
    numbers = case.seconds, case.inverse, case.cached, case.at_least, case.power, case.compulsory, case.fastest
    words = case.kind, case.setting, case.twin, case.network, case.version
    return words, numbers, case.engine, case.work.columns.tobytes()


def test_a_question_is_the_same_without_a_word_of_its_source() -> None:
    """One row of each combination of columns: all words are taken away, the source too."""
    rows = [typed(row) for row in shipped_rows()]
    chosen = {(row.operation, row.launch_mode, row.features, row.libraries): row for row in rows}.values()
    assert len(chosen) > 250
    blank: dict[str, Any] = dict.fromkeys((*WORDS, "source", "quality"), "")
    for row in chosen:
        assert _answer(replace(row, row=replace(row.row, **blank))) == _answer(row), row.row.id


# Of files that cannot be redistributed, which `mlsys validate --data` reads.
UNSHIPPED = {"attention kernel flash", "batch of all devices", "long rows of logits", "smoothed labels"}
UNSHIPPED_NUMBERS = {"occupancy", "tokens_counted", "sequences_of_a_sample"}


def test_every_word_of_the_schema_is_used_by_some_row() -> None:
    rows = [typed(row) for name in row_files() for row in cited(name)]
    for column in ("libraries", "features"):
        assert set(schema()[column]) - UNSHIPPED == {word for row in rows for word in getattr(row, column)}, column
    assert set(schema()["numbers"]) - UNSHIPPED_NUMBERS == {name for row in rows for name in row.numbers}
    for column, words in schema()["choices"].items():
        assert {getattr(row, column) for row in rows} <= {"", *words}


@pytest.mark.parametrize(
    ("column", "given", "message"),
    [
        ("operation", "sort", "`operation` must be empty or one of product"),
        ("libraries", frozenset({"PyTorsh"}), "unknown word 'PyTorsh'. Did you mean"),
        ("features", frozenset({"causality"}), "`features` has the unknown word"),
        ("numbers", FrozenDict({"mm": 3}), "`mm` is no column of the schema"),
        ("numbers", FrozenDict({"m": float("nan")}), "`m` must be a number from zero on: got nan"),
        ("batch", 0, "`batch` must be a whole number above zero: got 0"),
    ],
)
def test_a_row_outside_the_schema_is_refused(column: str, given: object, message: str) -> None:
    row = typed(shipped_rows()[0])
    check(row)
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        check(replace(row, **{column: given}))  # type: ignore[arg-type]


def test_a_file_that_does_not_fit_its_rows_names_the_line(tmp_path: Path) -> None:
    rows = shipped_rows()[:3]
    text = typed_text(typed(row) for row in rows)
    path = tmp_path / "rows.csv"
    for old, new, message in (
        ("id,kind", "name,kind", "line 1: columns differ from the schema: id, name"),
        (rows[1].id, "other", f"line 3: `id` must be '{rows[1].id}', got 'other'"),
        ("ncnn,ncnn", "ncnn,ncnn", ""),
    ):
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        if not message:
            assert [each.device for each in read_typed(path, rows)] == ["EPYC_7742"] * 3
            continue
        with pytest.raises(ValueError, match=message):
            read_typed(path, rows)
