"""Grading by hand-computed cases: credit by attempt, late answers, keys, lists of students, and grade files."""

import csv
import io
import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from handins import DUE, START, honest, notebook, signed

from mlsys.cli import main
from mlsys.errors import UnknownNameError
from mlsys.grading import DEFAULT_POLICY, canvas_csv, grade, moodle_csv, pages, read_key, read_roster
from mlsys.grading.gradebook import Gradebook
from mlsys.labs import questions

LAB = "01-amdahl"


def put(folder: Path, name: str, record: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps(record), encoding="utf-8")


def perfect(student: str, lab: str = LAB, **more: Any) -> dict[str, Any]:
    return honest(lab, student, random.Random(1), right=1, **more)


def only(book: Gradebook) -> Any:
    (row,) = book.rows
    return row


def test_a_right_answer_is_worth_less_at_each_attempt_and_little_after_the_solution(tmp_path: Path) -> None:
    record = perfect("Ada")
    name, entry = next(iter(record["questions"].items()))
    right = entry["attempts"][0]
    worth = {}
    for misses in range(5):
        for shown in (False, True):
            wrong = [{**right, "answer": -1.0 - nth, "correct": False} for nth in range(misses)]
            record["questions"][name] = {"attempts": [*wrong, right], "solution_shown": shown}
            put(tmp_path, "ada.json", signed(record))
            row = only(grade(tmp_path))
            worth[misses, shown] = next(each.share for each in row.score.items if each.item.id == name)
            assert row.score.points == pytest.approx(row.score.out_of - 1 + worth[misses, shown])
    assert [worth[misses, False] for misses in range(5)] == [1.0, 0.8, 0.6, 0.4, 0.4]
    assert [worth[misses, True] for misses in range(5)] == [1.0, 0.8, 0.2, 0.2, 0.2]


def test_late_answers_are_told_apart_from_those_in_time(tmp_path: Path) -> None:
    record = perfect("Ada", hours=7.5)
    name = next(iter(record["claims"]))
    record["claims"][name]["attempts"][0]["at"] = (DUE + timedelta(minutes=1)).isoformat()
    put(tmp_path, "ada.json", signed(record))
    row = only(grade(tmp_path, due="2026-11-02T16:00+01:00"))
    assert row.late == timedelta(hours=1.5) and START + timedelta(hours=6) == DUE
    assert row.score.points - row.score.on_time == 1 + 3, "one claim, and the design, which has the time of the file"
    assert [each.item.id for each in row.score.items if each.late] == [name, "months"]
    assert only(grade(tmp_path)).late is None


def test_an_answer_key_regrades_and_says_what_changed(tmp_path: Path) -> None:
    folder, key = tmp_path / "in", tmp_path / "key.yaml"
    folder.mkdir()
    for student in ("Ada", "Bob"):
        record = perfect(student)
        if student == "Bob":
            record["questions"]["profile"]["attempts"][0]["answer"] = 55.5
        put(folder, f"{student}.json", signed(record))
    before = grade(folder)
    assert [row.score.points for row in before.scored] == [10, 9]
    key.write_text("01-amdahl:\n  profile: {accept: [55.5]}\n  banner: {points: 2}\n  five: {drop: true}\n")
    after = grade(folder, key=read_key(key))
    assert [(row.score.points, row.score.out_of) for row in after.scored] == [(10, 10), (10, 10)]
    changes = {each["student"]: each for each in after.changes(before.record())}
    assert changes["Bob"]["before"] == 9 and "questions.profile" in changes["Bob"]["items"]
    assert set(changes["Ada"]["items"]) == {"claims.banner", "claims.five"}
    key.write_text("01-amdahl: {profil: {drop: true}}")
    with pytest.raises(LookupError, match="Did you mean 'profile'"):
        grade(folder, key=read_key(key))


def test_what_students_share_is_listed_and_named_no_more_than_that(tmp_path: Path) -> None:
    ada, bob, cem = (perfect(name) for name in ("Ada", "Bob", "Cem"))
    text = "We tried all sizes from eight to 512 and kept the largest that fits."
    for record in (ada, bob):
        record["design"]["months"]["reason"] = text if record is ada else f"  {text.upper()} "
    for name, record in (("a", ada), ("b", bob), ("c", {**cem, "seed": ada["seed"]})):
        put(tmp_path, f"{name}.json", signed(record))
    put(tmp_path, "a again.json", signed({**ada, "student": "ada"}))
    found = {(each.what, each.students) for each in grade(tmp_path).shared}
    assert found == {("seed", ("ada", "Cem")), ("text", ("ada", "Bob"))} or found == {
        ("seed", ("Ada", "Cem")),
        ("text", ("Ada", "Bob")),
    }
    assert "innocent" in pages(grade(tmp_path))["index.html"]


def test_grade_files_carry_the_ids_of_the_list_of_students(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder, "a.json", perfect("Ada Lovelace"))
    put(folder, "b.json", perfect("bob@uni.example"))
    put(folder, "x.json", perfect("Nobody Knows"))
    roster = tmp_path / "canvas.csv"
    roster.write_text(
        'Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"Lovelace, Ada",17,S1,ada,A\n'
        '"Builder, Bob",18,S2,bob@uni.example,A\n"Away, Zoe",19,S3,zoe,B\n'
    )
    book = grade(folder, roster=read_roster(roster))
    lines = list(csv.DictReader(io.StringIO(canvas_csv(book))))
    assert [line["ID"] for line in lines] == ["", "17", "18", "19", ""]
    assert [line["Lab 01-amdahl"] for line in lines] == ["10", "10", "10", "", "10"]
    assert book.missing == {LAB: ("Away, Zoe",)}

    roster.write_text("First name,Last name,Email address\nAda,Lovelace,ada@uni.example\nBob,Builder,bob@uni.example\n")
    lines = list(csv.DictReader(io.StringIO(moodle_csv(grade(folder, roster=read_roster(roster))))))
    assert [(line["Email address"], line["Lab 01-amdahl"]) for line in lines[:2]] == [
        ("ada@uni.example", "100.00"),
        ("bob@uni.example", "100.00"),
    ]


def test_most_missed_comes_first_and_the_distribution_counts_every_student(tmp_path: Path) -> None:
    for number in range(10):
        record = perfect(f"Student {number}")
        for name in list(record["claims"])[: 1 + number % 3]:
            record["claims"][name]["attempts"] = []
        put(tmp_path, f"{number}.json", signed(record))
    book = grade(tmp_path)
    assert sum(book.distribution(LAB)) == 10
    missed = [each.id for each in book.questions() if each.mean < 1]
    assert missed == list(perfect("x")["claims"]), "missed by ten, six and three"
    assert [each.missed for each in book.questions()[:3]] == [10, 6, 3]


def test_a_notebook_counts_as_its_hand_in_and_the_newest_in_it_counts(tmp_path: Path) -> None:
    record = perfect("Ada")
    first = signed({**record, "handed_in": START.isoformat(), "questions": {}})
    book = notebook(first)
    book.cells[2].outputs += notebook(record).cells[2].outputs
    (tmp_path / "lab.ipynb").write_text(json.dumps(book))
    row = only(grade(tmp_path))
    assert row.score.points == 10 and any("2 hand-ins" in note for note in row.notes)


def test_the_command_writes_everything_and_regrades(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    put(folder, "a.json", perfect("Ada"))
    (folder / "broken.json").write_text('{"format": "mlsys-lab"')

    def run(*words: str) -> Any:
        return CliRunner().invoke(main, ["grade", str(folder), *words])

    done = run("--out", str(out), "--due", "2026-11-02T10:30Z")
    assert done.exit_code == 0, done.output
    assert "2 files: 1 scored, 0 replaced by a newer file, 1 refused" in done.output
    assert {path.name for path in out.iterdir()} == {
        "index.html", "students", "canvas.csv", "moodle.csv", "files.csv", "items.csv", "grades.json"
    }  # fmt: skip
    feedback = next((out / "students").iterdir()).read_text()
    assert "10 of 10 points" in feedback and "http" not in feedback.replace("http-equiv", "")
    key = tmp_path / "key.yaml"
    key.write_text("01-amdahl: {banner: {points: 3}}")
    again = run("--out", str(out), "--key", str(key))
    assert "Changed: Ada, lab 01-amdahl: 10 to 12 points" in again.output
    record = json.loads(run("--json").output)
    assert record["files"] == {"scored": 1, "replaced": 0, "refused": 1} and len(record["rows"]) == 2
    for words, message in (
        (["--out", str(folder / "grades")], "outside"),
        (["--due", "Monday"], "must be a time"),
        (["--credit", "0.5,1"], "later attempt"),
        (["--credit", "one"], "shares"),
        (["--lab", "01-amdal"], "Did you mean"),
        (["--hide-answers"], "needs --out"),
    ):
        refused = run(*words)
        assert refused.exit_code in (1, 2) and message in refused.output, refused.output
        assert len(refused.output.strip().splitlines()) == 1


def test_credit_of_the_default_policy_never_rises() -> None:
    shares = [DEFAULT_POLICY.of(nth, False) for nth in range(9)]
    assert shares == sorted(shares, reverse=True)


def test_a_key_may_change_an_item_that_only_some_students_are_asked(tmp_path: Path) -> None:
    lab, students = "13-find-the-error", ("Ada", "Bob", "Cy")
    asked = {student: {item.id for item in questions(lab, student)} for student in students}
    name = next(iter(asked["Ada"] - asked["Bob"]))
    for student in students:
        put(tmp_path, f"{student}.json", perfect(student, lab))
    book = grade(tmp_path, key={lab: {name: {"drop": True}}})
    assert [row.outcome for row in book.rows] == ["scored"] * 3
    assert [row.score.out_of for row in book.rows] == [15 - (name in asked[student]) for student in students]
    with pytest.raises(UnknownNameError, match="the answer key names 'nvlnk'"):
        grade(tmp_path, key={lab: {"nvlnk": {"drop": True}}})
