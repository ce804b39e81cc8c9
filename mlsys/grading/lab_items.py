"""The questions of mlsys's own labs, as items to grade."""

import functools
from typing import Any

from mlsys.grading.rubric import DESIGN_POINTS, Item
from mlsys.labs import LABS, Design, Question, designs, questions

__all__ = ["lab_items"]

_SEVERAL = 4096  # labs × students kept: each is read once a file, and several files may be one student's


@functools.lru_cache(maxsize=_SEVERAL)
def lab_items(lab: str, student: str = "") -> tuple[Item, ...]:
    """Return the questions, claims and design tasks of a student in a lab, as items to grade.

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
    >>> [item.id for item in lab_items("01-amdahl", "Ada") if item.part == "claims"]
    ['sparse-peak', 'banner', 'five']
    """
    if lab not in LABS:
        raise LookupError(lab)
    return (
        *(_item(question) for question in questions(lab, student)),
        *(_task(design) for design in designs(lab, student)),
    )


def _item(question: Question) -> Item:
    part = "questions" if question.in_app else "claims"
    return Item(question.id, part, question.text, question.right_answer(), question.solution, _marker(question))


def _task(design: Design) -> Item:
    def mark(choice: object) -> tuple[float, str]:
        if not isinstance(choice, dict):
            raise TypeError("no choice")
        outcome = design.score(choice)
        share = f" That is {100 * outcome.score:.0f} % of the best design." if outcome.meets else ""
        return outcome.score, f"{outcome.feedback}{share}"

    return Item(design.id, "design", design.text, "", "", mark, DESIGN_POINTS)


def _marker(question: Question) -> Any:
    def mark(answer: object) -> tuple[float, str]:
        if not isinstance(answer, (str, int, float)) or isinstance(answer, bool):
            raise TypeError("no answer")
        found = question.mark(answer)
        return found.score, found.feedback

    return mark
