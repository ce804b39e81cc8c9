"""The questions of mlsys's own labs, as items to grade."""

import functools
from typing import Any

from mlsys.grading.rubric import Item
from mlsys.labs import LABS, Question, questions

__all__ = ["asked", "items_of"]

_SEVERAL = 4096  # labs × students kept: each is asked for once a file, and several files may be one student's


@functools.lru_cache(maxsize=_SEVERAL)
def asked(lab: str, student: str = "") -> tuple[Item, ...]:
    """Return what a lab asks a student.

    Parameters
    ----------
    lab
        Name of the lab.
    student
        Name or id as handed in; without one, the numbers of the printed pages.

    Raises
    ------
    LookupError
        If mlsys has no such lab.

    Examples
    --------
    >>> [item.id for item in asked("01-amdahl", "Ada") if item.part == "claims"]
    ['sparse-peak', 'banner', 'five']
    """
    if lab not in LABS:
        raise LookupError(lab)
    return tuple(_item(question) for question in questions(lab, student))


def items_of(lab: str) -> tuple[str, ...]:
    """Return the names of all items of a lab."""
    return tuple(item.id for item in asked(lab))


def _item(question: Question) -> Item:
    part = "questions" if question.in_app else "claims"
    return Item(question.id, part, question.text, question.right_answer(), question.solution, _marker(question))


def _marker(question: Question) -> Any:
    def mark(answer: object) -> tuple[float, str]:
        if not isinstance(answer, (str, int, float)) or isinstance(answer, bool):
            raise TypeError("no answer")
        found = question.mark(answer)
        return found.score, found.feedback

    return mark
