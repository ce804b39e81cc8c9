"""Feedback for students and a summary for the instructor, as pages that open without a network."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from mlsys.grading.gradebook import Gradebook
from mlsys.inputs import shipped_text

__all__ = ["pages", "student_page_name"]


def pages(book: Gradebook, changes: Sequence[Mapping[str, Any]] = (), *, answers: bool = True) -> dict[str, str]:
    """Return the pages by file name: ``index.html`` and one for each student in ``students/``.

    Parameters
    ----------
    book
        The grades.
    changes
        What :meth:`Gradebook.changes` returned, for the summary.
    answers
        Whether the feedback tells the right answers.
    """
    environment = _environment()
    style = shipped_text("mlsys.grading", "report.css")
    names = {key: student_page_name(key) for key in book.students}
    student = environment.from_string(shipped_text("mlsys.grading", "student.html"))
    summary = environment.from_string(shipped_text("mlsys.grading", "summary.html"))
    made = {
        "index.html": summary.render(book=book, questions=book.questions(), changes=changes, pages=names, style=style)
    }
    for key, graded in book.students.items():
        rows = [graded[lab] for lab in sorted(graded)]
        page = student.render(name=rows[0].student, rows=rows, answers=answers, style=style)
        made[f"students/{names[key]}"] = page
    return made


def student_page_name(key: str) -> str:
    """Return the file name of a student's page: letters of the name, and a digest that tells namesakes apart.

    Examples
    --------
    >>> student_page_name("../../etc/passwd")
    'etc-passwd-3754d6cb.html'
    """
    plain = unicodedata.normalize("NFKD", key).encode("ascii", "ignore").decode("ascii").lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40] or "student"
    return f"{words}-{sha256(key.encode('utf-8', 'replace')).hexdigest()[:8]}.html"


def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, auto_reload=False
    )
    environment.filters |= {"points": _points, "moment": _moment, "hours": _hours}
    return environment


def _points(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _moment(value: datetime | None) -> str:
    return "at an unknown time" if value is None else f"{value:%Y-%m-%d %H:%M} UTC"


def _hours(value: timedelta) -> str:
    hours = value / timedelta(hours=1)
    return f"{hours * 60:.0f} min" if hours < 1 else f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} days"
