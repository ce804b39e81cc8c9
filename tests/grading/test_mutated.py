"""Three hundred mutated hand-ins get three hundred rows, and nothing outside the folder is read or run."""

import json
import os
import random
import sys
from typing import Any

import pytest
from handins import honest, mutated

from mlsys.grading import canvas_csv, files_csv, grade, items_csv, moodle_csv, pages

COUNT = 300
SEED = int(os.environ.get("MLSYS_SEED", "1"))


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    base = tmp_path_factory.mktemp("course")
    folder, outside = base / "handed-in", base / "outside"
    folder.mkdir()
    outside.mkdir()
    secret = honest("01-amdahl", "Mallory Outside", random.Random(0))
    (outside / "secret.json").write_text(json.dumps(secret), encoding="utf-8")
    wanted = {name: (kind, outcome) for name, kind, outcome in mutated(folder, COUNT, SEED)}
    seen: list[tuple[str, str]] = []
    WATCHING.append(seen)
    try:
        book = grade(folder)
    finally:
        WATCHING.remove(seen)
    return book, wanted, folder, seen


WATCHING: list[list[tuple[str, str]]] = []
WATCHED = {"open", "os.listdir", "os.scandir", "os.system", "os.exec", "subprocess.Popen", "socket.connect"}


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if WATCHING and event in WATCHED:
        WATCHING[-1].append((event, str(arguments[0])))


sys.addaudithook(_watch)


def test_every_submission_gets_a_row_that_is_scored_or_explained(graded: Any) -> None:
    book, wanted, folder, _ = graded
    rows = {row.file: row for row in book.rows}
    assert len(rows) == len(book.rows) == sum(1 for _ in folder.iterdir())
    by_name: dict[str, list[Any]] = {}
    for row in book.rows:
        by_name.setdefault(row.file[:4], []).append(row)
    assert set(by_name) == set(wanted), "each of the three hundred submissions has its row"
    for row in book.rows:
        assert (row.score is not None) == (row.outcome != "refused")
        assert row.outcome != "refused" or (row.notes and "could not be graded" not in row.notes[0]), row.notes
    for name, (kind, outcome) in wanted.items():
        first = by_name[name][0] if kind != "two_files" else rows[f"{name}.json"]
        assert outcome in ("either", first.outcome), (name, kind, first.outcome, first.notes)


def test_harmless_mutations_keep_the_score_and_forged_ones_gain_nothing(graded: Any) -> None:
    book, wanted, *_ = graded
    for row in book.scored:
        kind = wanted[row.file[:4]][0]
        if kind in ("cells_mutated", "stripped", "colab", "renamed", "two_files"):
            assert row.score.percent > 50, (row.file, kind, row.notes)
        if kind == "forged":
            assert row.score.points == 0 and any("recomputed" in note for note in row.notes)
        if kind == "another_seed":
            assert any("seed" in note for note in row.notes)
        if kind == "two_files":
            assert row.file.endswith("(2).json") and "newest of 2 files" in row.notes[0]


def test_nothing_outside_the_folder_is_read_or_run(graded: Any) -> None:
    book, _, folder, seen = graded
    assert len([path for event, path in seen if event == "open" and path.startswith("s0")]) > 50, "the watch sees"
    assert not [path for event, path in seen if "secret" in path or "outside" in path]
    assert {event for event, _ in seen} <= {"open", "os.scandir", "os.listdir"}, "no process, no connection"
    assert not any("Mallory" in row.student for row in book.rows)
    assert sorted(path.name for path in (folder.parent / "outside").iterdir()) == ["secret.json"]
    assert any(row.student.startswith("../") for row in book.scored), "a name that climbs is just a name"
    for name in pages(book):
        assert ".." not in name and name.count("/") <= 1, name


def test_reports_escape_what_students_wrote(graded: Any) -> None:
    book, *_ = graded
    for page in pages(book).values():
        assert "<script" not in page and "\x1b" not in page
        page.encode("utf-8")
    for text in (canvas_csv(book), moodle_csv(book), files_csv(book), items_csv(book)):
        assert not any(cell.startswith(("=cmd", "\x1b")) for line in text.splitlines() for cell in line.split(","))
        text.encode("utf-8")
    json.dumps(book.record(), allow_nan=False).encode("utf-8")
