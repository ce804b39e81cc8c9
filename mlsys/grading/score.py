"""Scores of a hand-in, recomputed from its answers: nothing that the file says about its own score counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.escaping import printable
from mlsys.grading.folder import MISSHAPEN
from mlsys.grading.rubric import Item
from mlsys.grading.submissions import Attempt, Submission, Tries

__all__ = ["DEFAULT_POLICY", "ItemScore", "LabScore", "Policy", "scored"]

_LONGEST_SHOWN = 200


@dataclass(frozen=True)
class Policy:
    """What an answer is worth.

    Attributes
    ----------
    credit
        Share of the points for a right answer at the first, second, … attempt; the last value holds for all further.
    after_solution
        Share for a right answer that came at the third attempt or later, when the lab had shown its solution.
    reason
        Characters of a reason from which a design task is complete; a shorter one halves its score.
    """

    credit: tuple[float, ...] = (1.0, 0.8, 0.6, 0.4)
    after_solution: float = 0.2
    reason: int = 20

    def __post_init__(self) -> None:
        values = (*self.credit, self.after_solution)
        if not self.credit or not all(0 <= value <= 1 for value in values):
            raise ArgumentError(f"credit: shares must lie between 0 and 1, as in 1,0.8,0.5; got {self.credit}")
        if any(later > earlier for earlier, later in zip(self.credit, self.credit[1:], strict=False)):
            raise ArgumentError(f"credit: a later attempt cannot be worth more than an earlier one, got {self.credit}")

    def of(self, attempt: int, solution_shown: bool) -> float:
        """Return the share for a right answer at an attempt, counted from 0.

        Examples
        --------
        >>> DEFAULT_POLICY.of(0, False), DEFAULT_POLICY.of(9, False), DEFAULT_POLICY.of(2, True)
        (1.0, 0.4, 0.2)
        """
        share = self.credit[min(attempt, len(self.credit) - 1)]
        return min(share, self.after_solution) if solution_shown and attempt >= _BEFORE_SOLUTION else share


_BEFORE_SOLUTION = 2
"""Attempts after which a lab shows its solution."""

DEFAULT_POLICY = Policy()
"""First attempt full credit, then 80 %, 60 %, 40 %; 20 % once the solution has been shown."""


@dataclass(frozen=True)
class ItemScore:
    """The score of one item.

    Attributes
    ----------
    item
        The question, claim or task.
    share
        Share of its points that the answers earn, from 0 to 1.
    on_time
        The same, of the answers before the due date.
    attempts
        Number of attempts.
    late
        Number of attempts after the due date.
    given
        The answer that counts, in words; empty if there was none.
    message
        Feedback for the student.
    reason
        The student's reason for a design.
    """

    item: Item
    share: float
    on_time: float
    attempts: int
    late: int
    given: str
    message: str
    reason: str = ""

    @property
    def points(self) -> float:
        """Points earned."""
        return self.share * self.item.points


@dataclass(frozen=True)
class LabScore:
    """The score of one hand-in, with what was noticed."""

    items: tuple[ItemScore, ...]
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """Points earned."""
        return math.fsum(each.points for each in self.items)

    @property
    def on_time(self) -> float:
        """Points earned by answers before the due date."""
        return math.fsum(each.on_time * each.item.points for each in self.items)

    @property
    def out_of(self) -> float:
        """Points of all items."""
        return math.fsum(each.item.points for each in self.items)

    @property
    def percent(self) -> float:
        """Points earned, in percent of all; 0 of nothing."""
        return 100 * self.points / self.out_of if self.out_of else 0.0


def scored(
    submission: Submission, items: Sequence[Item], due: datetime | None = None, policy: Policy = DEFAULT_POLICY
) -> LabScore:
    """Return the score of a hand-in.

    Parameters
    ----------
    submission
        What was handed in.
    items
        The questions, claims and tasks of this student.
    due
        Answers after it are late; none is if not given.
    policy
        What an answer is worth.
    """
    scores: list[ItemScore] = []
    forged: list[str] = []
    unmarked: list[str] = []
    for item in items:
        if item.part == "design":
            scores.append(_design(submission, item, due, policy, forged, unmarked))
            continue
        tries = (submission.claims if item.part == "claims" else submission.questions).get(item.id, Tries())
        marks = []
        for attempt in tries.attempts:
            share, message = _marked(item, attempt.answer, unmarked)
            if attempt.claimed is not None and attempt.claimed != (share >= 1):
                forged.append(item.id)
            marks.append((share, message, attempt))
        best = [share * policy.of(nth, tries.solution_shown) for nth, (share, _, _) in enumerate(marks)]
        top = max(best, default=0.0)
        counted = marks[best.index(top)] if top > 0 else marks[-1] if marks else None
        is_late = [_is_late(attempt, submission, due) for attempt in tries.attempts]
        timely = [worth for worth, after in zip(best, is_late, strict=True) if not after]
        late = sum(is_late)
        scores.append(
            ItemScore(
                item,
                top,
                max(timely, default=0.0),
                len(marks),
                late,
                shown(counted[2].answer) if counted else "",
                counted[1] if counted else "",
            )
        )
    notes = []
    if forged:
        notes.append(
            f"the file marks {', '.join(dict.fromkeys(forged))} differently from the recomputed marks, which count"
        )
    if unmarked:
        notes.append(f"{', '.join(dict.fromkeys(unmarked))}: an answer of the wrong kind, which counts as wrong")
    known = {item.id for item in items}
    given = dict.fromkeys((*submission.questions, *submission.claims, *submission.design))
    unknown = [name for name in given if name not in known]
    if unknown:
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        notes.append(f"answers to questions that this lab does not ask: {', '.join(unknown[:5])}{more}")
    return LabScore(tuple(scores), tuple(notes))


def shown(answer: object) -> str:
    """Return an answer as it is printed, shortened.

    Examples
    --------
    >>> shown(2.50), shown({"tile": 64})
    ('2.5', 'tile = 64')
    """
    if isinstance(answer, dict):
        text = ", ".join(f"{key} = {shown(value)}" for key, value in list(answer.items())[:20])
    elif isinstance(answer, float):
        text = f"{answer:.10g}"
    else:
        try:
            text = str(answer)
        except (ValueError, RecursionError):
            text = "?"
    text = printable(text)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def _design(
    submission: Submission, item: Item, due: datetime | None, policy: Policy, forged: list[str], unmarked: list[str]
) -> ItemScore:
    design = submission.design.get(item.id)
    if design is None or design.choice is None:
        return ItemScore(item, 0.0, 0.0, 0, 0, "", "", design.reason if design else "")
    share, message = _marked(item, design.choice, unmarked)
    if design.claimed is not None and abs(design.claimed - share) > 0.005:
        forged.append(item.id)
    if len(design.reason) < policy.reason:
        share, message = share / 2, f"{message} A reason of at least {policy.reason} characters is missing.".strip()
    late = due is not None and submission.handed_in is not None and submission.handed_in > due
    return ItemScore(item, share, 0.0 if late else share, 1, int(late), shown(design.choice), message, design.reason)


def _marked(item: Item, answer: Any, unmarked: list[str]) -> tuple[float, str]:
    try:
        share, message = item.mark(answer)
        share = float(share)
    except MISSHAPEN:  # an answer may be any JSON
        unmarked.append(item.id)
        return 0.0, "This is no answer to the question."
    return (min(max(share, 0.0), 1.0), message) if math.isfinite(share) else (0.0, message)


def _is_late(attempt: Attempt, submission: Submission, due: datetime | None) -> bool:
    at = attempt.at or submission.handed_in  # a file without times of attempts is as late as its hand-in
    return due is not None and at is not None and at > due
