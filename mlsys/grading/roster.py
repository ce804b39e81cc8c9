"""The list of students of a course, as Canvas and Moodle export it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlsys.errors import ArgumentError
from mlsys.grading.submissions import student_key
from mlsys.inputs import csv_records

__all__ = ["CANVAS", "MOODLE", "Person", "Roster", "read_roster"]

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
"""Columns by which Canvas recognises a student when grades are imported."""
MOODLE = ("First name", "Last name", "ID number", "Institution", "Department", "Email address")
"""Columns of a grade export of Moodle, which recognises a student by the address, the number or the user name."""
_NAMES = ("Student", "student", "Name", "Full name", "Student name")
_IDS = ("ID", "SIS User ID", "SIS Login ID", "ID number", "Email address", "Username", "Email", "student id", "id")
_MOST = 5_000_000


@dataclass(frozen=True)
class Person:
    """A student: the name as it is printed, the key, and the row of the list."""

    name: str
    key: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Roster:
    """The students of a course, found by name or by any of their ids."""

    people: tuple[Person, ...]
    by_name: Mapping[str, Person] = field(default_factory=dict)

    def find(self, student: str) -> Person | None:
        """Return the student with this name or id; None if there is none, or more than one."""
        return self.by_name.get(student_key(student))


def read_roster(path: str | Path) -> Roster:
    """Return the list of students in a CSV file: an export of the gradebook of Canvas or Moodle, or a list of names.

    A student is found by any name (``Ada Lovelace`` and ``Lovelace, Ada``) or id that the file has; a name that two
    students share leads to neither.

    Raises
    ------
    UnreadableError
        If it cannot be read as CSV.
    ArgumentError
        If it has no column of names or ids, or no student.
    """
    records = csv_records(path, _MOST)
    heads = [head.strip() for head in records[0][1]] if records else []
    if not {*_NAMES, *_IDS, "First name"} & set(heads):
        raise ArgumentError(
            f"{path}: needs a column of names or ids, such as Student (Canvas) or Email address (Moodle); "
            f"it has {', '.join(heads[:8]) or 'none'}"
        )
    people: list[Person] = []
    by_name: dict[str, Person | None] = {}
    for _, cells in records[1:]:
        columns = {head: cell.strip() for head, cell in zip(heads, cells, strict=False)}
        name = _name(columns)
        if not name or name.startswith("Points Possible"):
            continue
        ids = [columns[head] for head in _IDS if columns.get(head)]
        person = Person(name, student_key(ids[0] if ids else name), columns)
        people.append(person)
        for known in {student_key(each) for each in (*_spellings(columns, name), *ids)}:
            by_name[known] = person if known not in by_name else None
    if not people:
        raise ArgumentError(f"{path}: lists no student")
    return Roster(tuple(people), {name: person for name, person in by_name.items() if person is not None})


def _name(columns: Mapping[str, str]) -> str:
    if columns.get("First name") or columns.get("Last name"):
        return f"{columns.get('First name', '')} {columns.get('Last name', '')}".strip()
    return next((columns[head] for head in (*_NAMES, *_IDS) if columns.get(head)), "")


def _spellings(columns: Mapping[str, str], name: str) -> list[str]:
    last, comma, first = name.partition(",")
    return [name, f"{first.strip()} {last.strip()}"] if comma else [name]
