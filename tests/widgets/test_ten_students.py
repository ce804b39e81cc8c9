"""Students at work at once on one server: no error, and nothing of their work is lost."""

import sys

import pytest

pytest.importorskip("ipywidgets")

from pages import ROOT
from sampled import everything

sys.path.append(str(ROOT / "benchmarks"))
from ten_students import at_once

pytestmark = pytest.mark.exhaustive


def test_students_on_one_server_lose_nothing() -> None:
    count, seconds = (10, 120.0) if everything() else (2, 4.0)
    students = at_once("jupyter", count, ["03-memory-wall", "06-dataflow"], seconds, think=2.0 if everything() else 0.3)
    assert len(students) == count and all(student.actions > 2 for student in students)
    assert {student.name: student.errors for student in students if student.errors} == {}
