"""Grades as files that Canvas and Moodle import, and as JSON."""

from collections.abc import Iterable
from typing import Any

from mlsys.files import csv_text
from mlsys.grading.gradebook import Gradebook, Row
from mlsys.grading.roster import CANVAS, MOODLE, Person

__all__ = ["canvas_csv", "files_csv", "items_csv", "moodle_csv"]


def canvas_csv(book: Gradebook) -> str:
    """Return the grades as CSV that the gradebook of Canvas imports: a column for each lab, in points.

    Canvas recognises a student by ``ID``, ``SIS User ID`` or ``SIS Login ID``; these come from the list of students.
    Without one, the name that the student typed stands in ``SIS Login ID``. The second line has the points possible.
    An empty cell leaves the grade of a student as it is.
    """
    labs = book.labs
    columns = [*CANVAS, *(_title(lab) for lab in labs)]
    possible = {"Student": "    Points Possible", **{_title(lab): _points(_out_of(book, lab)) for lab in labs}}
    rows = [
        {**_canvas_columns(name, person), **{_title(lab): _points(_points_of(graded.get(lab))) for lab in labs}}
        for name, person, graded in _people(book)
    ]
    return csv_text([{**dict.fromkeys(columns, ""), **row} for row in (possible, *rows)], columns)


def moodle_csv(book: Gradebook) -> str:
    """Return the grades as CSV that the gradebook of Moodle imports: a column for each lab, in percent.

    Moodle maps one of ``Email address``, ``ID number`` or ``Username`` to its users; these come from the list of
    students. Without one, the name that the student typed stands in ``ID number``. Feedback is a column of its own.
    """
    labs = book.labs
    columns = [*MOODLE, "Username", *(text for lab in labs for text in (_title(lab), f"{_title(lab)} feedback"))]
    rows = []
    for name, person, graded in _people(book):
        row = {column: (person.columns.get(column, "") if person else "") for column in (*MOODLE, "Username")}
        if person is None:
            first, _, last = name.rpartition(" ")
            row |= {"First name": first, "Last name": last, "ID number": name}
        for lab in labs:
            held = graded.get(lab)
            row[_title(lab)] = "" if held is None or held.percent is None else f"{held.percent:.2f}"
            row[f"{_title(lab)} feedback"] = "" if held is None else _feedback(held)
        rows.append(row)
    return csv_text(rows, columns)


def files_csv(book: Gradebook) -> str:
    """Return one line for each file: its outcome, score and notes."""
    columns = ("file", "outcome", "student", "lab", "points", "out_of", "percent", "on_time_points", "handed_in",
               "late_hours", "notes", *(("run",) if book.was_run else ()))  # fmt: skip
    rows = (
        {**row.record(), "notes": "; ".join(row.notes), "run": row.run.text() if row.run else ""} for row in book.rows
    )
    return csv_text([{column: _blank(row[column]) for column in columns} for row in rows], columns)


def items_csv(book: Gradebook) -> str:
    """Return one line for each student and item: answer, attempts, points, and the reason in words."""
    columns = ("student", "lab", "part", "item", "answer", "attempts", "late_attempts", "points", "out_of", "reason")
    rows = [
        {"student": row.student, "lab": row.lab, "part": each.item.part, "item": each.item.id, "answer": each.given,
         "attempts": each.attempts, "late_attempts": each.late, "points": _points(each.points),
         "out_of": _points(each.item.points), "reason": each.reason}
        for row in book.scored for each in (row.score.items if row.score else ())
    ]  # fmt: skip
    return csv_text(rows, columns)


def _people(book: Gradebook) -> Iterable[tuple[str, Person | None, dict[str, Row]]]:
    handed = book.students
    for person in book.roster.people if book.roster else ():
        yield person.name, person, handed.get(person.key, {})
    for graded in handed.values():
        name = next(iter(graded.values())).student
        if book.person(name) is None:
            yield name, None, graded


def _canvas_columns(name: str, person: Person | None) -> dict[str, str]:
    if person is None:
        return {"Student": name, "SIS Login ID": name}
    return {column: person.columns.get(column, "") for column in CANVAS} | {"Student": person.name}


def _title(lab: str) -> str:
    return f"Lab {lab}"


def _out_of(book: Gradebook, lab: str) -> float:
    return max((row.score.out_of for row in book.scored if row.lab == lab and row.score), default=0.0)


def _points_of(row: Row | None) -> float | None:
    return None if row is None or row.score is None else row.score.points


def _points(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}" if value < 1000 else f"{value:.2f}"


def _feedback(row: Row) -> str:
    if row.score is None:
        return ""
    wrong = [each.item.id for each in row.score.items if each.share < 1]
    late = "" if row.late is None else " Handed in late."
    return (f"Full points lost at: {', '.join(wrong)}." if wrong else "All right.") + late


def _blank(value: Any) -> Any:
    return "" if value is None else value
