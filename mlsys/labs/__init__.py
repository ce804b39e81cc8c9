"""The questions of the labs, drawn for each student; what is right; and the file that is handed in.

Nothing here needs a kernel or a widget: whoever marks a lab recomputes its questions from its name and the student.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from mlsys.errors import ArgumentError
from mlsys.labs.claimed import KINDS, ClaimQuestion, Verdict
from mlsys.labs.design import Built, Design, Knob, Outcome
from mlsys.labs.draw import Draw, seed_of
from mlsys.labs.handin import Answer, Attempt, DesignAnswer, HandIn, checksum
from mlsys.labs.questions import Choice, ChoiceQuestion, Mark, NumberQuestion, Question
from mlsys.labs.wrapup import WrapUp

__all__ = [
    "KINDS",
    "LABS",
    "Answer",
    "Attempt",
    "Built",
    "Choice",
    "ChoiceQuestion",
    "ClaimQuestion",
    "Design",
    "DesignAnswer",
    "Draw",
    "HandIn",
    "Knob",
    "Mark",
    "NumberQuestion",
    "Outcome",
    "Question",
    "Verdict",
    "checksum",
    "designs",
    "item_ids",
    "lab_content",
    "questions",
    "seed_of",
]  # fmt: skip

_MODULES = {
    "01-amdahl": "amdahl", "02-roofline": "roofline", "03-memory-wall": "memory", "04-systolic": "systolic",
    "05-tiling": "tiling", "06-dataflow": "dataflow", "07-compiler": "compiler", "08-placement": "placement",
    "09-shrink": "shrink", "10-explain": "explain", "11-real-network": "network", "12-size-a-service": "service",
    "13-find-the-error": "find_error",
}  # fmt: skip
LABS = tuple(_MODULES)
"""Names of the labs, in order."""


class Content(Protocol):
    """What a lab asks and finds; each of its parts is a function of the draw."""

    def prediction(self, draw: Draw) -> Question:
        """Return the prediction that opens the lab."""

    def scenario(self, draw: Draw) -> dict[str, object]:
        """Return the values of controls that show the predicted situation."""

    def questions(self, draw: Draw) -> tuple[Question, ...]:
        """Return the questions of the lab, then the claims of its page."""

    def designs(self, draw: Draw) -> tuple[Design, ...]:
        """Return the design tasks of the lab."""

    def wrap_up(self, draw: Draw) -> WrapUp:
        """Return the findings and lessons of the lab."""


def lab_content(lab: str) -> Content:
    """Return what a lab asks and finds.

    Raises
    ------
    ArgumentError
        If there is no such lab.
    """
    if lab not in _MODULES:
        raise ArgumentError(f"no lab {lab!r}. Known: {', '.join(LABS)}")
    return cast(Content, import_module(f"mlsys.labs.{_MODULES[lab]}"))


def questions(lab: str, student: str = "") -> tuple[Question, ...]:
    """Return the questions and claims of a lab with the numbers of one student.

    Parameters
    ----------
    lab
        Name of the lab, one of ``LABS``.
    student
        Name or id as handed in; by default the numbers of the printed pages.

    Examples
    --------
    >>> drawn = questions("01-amdahl", "ada")
    >>> [question.id for question in drawn if question.in_app]
    ['profile', 'upgrade', 'bottleneck', 'waiting']
    >>> drawn[0].mark(drawn[0].expected).score
    1.0
    """
    return lab_content(lab).questions(Draw(lab, student))


def designs(lab: str, student: str = "") -> tuple[Design, ...]:
    """Return the design tasks of a lab with the numbers of one student.

    Examples
    --------
    >>> [task] = designs("01-amdahl", "ada")
    >>> max(task.score(choice).score for choice in task.choices())
    1.0
    """
    return lab_content(lab).designs(Draw(lab, student))


def item_ids(lab: str) -> frozenset[str]:
    """Return the names of all questions, claims and design tasks that a lab asks of some student.

    Examples
    --------
    >>> len(questions("13-find-the-error")), len(item_ids("13-find-the-error"))
    (12, 21)
    """
    printed = {question.id for question in questions(lab)} | {design.id for design in designs(lab)}
    return frozenset(printed | set(getattr(lab_content(lab), "DRAWN_FROM", ())))
