"""Questions about claims: whether one is right, which slip was made, and what the right value is."""

import math
import reprlib
from dataclasses import dataclass
from typing import Any

from mlsys.labs.questions import NOTHING, SLIP, AnswerError, Choice, ChoiceQuestion, Mark, NumberQuestion, Question
from mlsys.labs.typed import read_number
from mlsys.viz.words import number

__all__ = ["KINDS", "ClaimQuestion", "Verdict"]

KINDS = (
    "Sparse peak taken for the dense one",
    "Rate or bytes of another number format",
    "Peak taken for what is sustained",
    "Boost clock of one core taken for that of all",
    "Both directions of a link added",
    "Bits taken for bytes, or the reverse",
    "MACs taken for FLOPs, or the reverse",
    "Powers of two called powers of ten (GiB, GB)",
    "Prefix lost: a factor of a thousand",
    "Another machine, or another generation",
    "Full batch taken for one request",
    "Speedup of a part taken for the whole",
    "Percent of the wrong base",
    "Growth with the wrong power of the size",
)
"""Kinds of slips that a claim may contain."""
_JUDGED, _NAMED, _COMPUTED = 0.2, 0.4, 0.4
_BETWEEN = " · "


@dataclass(frozen=True)
class Verdict:
    """An answer to *what is wrong?*: a kind of slip with the right value, or ``NOTHING`` without one."""

    kind: str
    value: float = math.nan

    def text(self) -> str:
        """Return the answer as it is stored.

        Examples
        --------
        >>> Verdict(KINDS[4], 450.0).text()
        'Both directions of a link added · 450'
        """
        return self.kind if self.kind == NOTHING else f"{self.kind}{_BETWEEN}{self.value:.10g}"

    @classmethod
    def of(cls, text: str) -> "Verdict":
        """Return the answer that a stored text means.

        Raises
        ------
        ValueError
            If it is none.
        """
        if text == NOTHING:
            return cls(NOTHING)
        kind, between, typed = text.rpartition(_BETWEEN)
        if kind not in KINDS or not between:
            raise ValueError(f"{reprlib.repr(text)} names no kind of slip")
        return cls(kind, float(typed))


@dataclass(frozen=True)
class ClaimQuestion(Question):
    """A claim that is right, or wrong by one slip; a partly right answer earns a part of the score.

    Calling a wrong claim wrong earns 0.2, the kind of slip 0.4 more, and the right value 0.4 more.

    Attributes
    ----------
    stated
        What the claim states, in ``unit``.
    answer
        The right value.
    unit
        Shown beside the field.
    slip
        Kind of the slip, one of ``KINDS``; empty if the claim is right.
    tolerance
        Relative error that still counts as correct.
    hint
        Hint for an answer that is not right yet.

    Examples
    --------
    >>> claim = ClaimQuestion("link", "“It moves 900 GB/s.”", stated=900, answer=450, unit="GB/s", slip=KINDS[4])
    >>> [claim.mark(Verdict(KINDS[kind], value).text()).score for kind, value in ((4, 450), (4, 9), (0, 450), (0, 9))]
    [1.0, 0.6, 0.6, 0.2]
    >>> claim.mark("Nothing: it is right").score
    0.0
    """

    stated: float = math.nan
    answer: float = math.nan
    unit: str = ""
    slip: str = ""
    tolerance: float = 0.02
    hint: str = ""

    def __post_init__(self) -> None:
        for name in ("stated", "answer"):  # NumPy's small integers wrap around
            object.__setattr__(self, name, float(getattr(self, name)))
        if self.slip and self.slip not in KINDS:
            raise ValueError(f"claim {self.id!r}: {self.slip!r} is no kind of slip")
        if bool(self.slip) != (abs(self.stated - self.answer) > self.tolerance * abs(self.answer)):
            raise ValueError(f"claim {self.id!r} must be wrong where it has a slip, and right where it has none")

    @property
    def kind(self) -> str:
        """``"claim"``."""
        return "claim"

    @property
    def expected(self) -> str | float:
        """The kind of slip with the right value, or ``NOTHING``."""
        return Verdict(self.slip or NOTHING, self.answer).text()

    def accepts(self, given: object) -> bool:
        """Whether ``given`` is ``NOTHING``, or a kind of slip with a finite value of at least 0."""
        if not isinstance(given, str):
            return False
        try:
            verdict = Verdict.of(given)
        except ValueError:
            return False
        return verdict.kind == NOTHING or 0 <= verdict.value < 1e300  # nan fails the comparison

    def mark(self, answer: object) -> Mark:
        """Return the mark of a stored answer, with a part of the score for a part of the answer."""
        if not self.accepts(answer):
            return Mark(0.0, False, f"{reprlib.repr(answer)} is no answer to this question.")
        score, message = self._scored(Verdict.of(str(answer)))
        return Mark(score, score == 1, message)

    def judge(self, given: object) -> tuple[bool, str]:
        """Return whether ``given`` is right in all its parts, and the solution or a hint."""
        score, message = self._scored(Verdict.of(str(given)))
        return score == 1, message

    def _scored(self, verdict: Verdict) -> tuple[float, str]:
        if verdict.kind == NOTHING:
            return (0.0, f"The claim is wrong. {self.hint}") if self.slip else (1.0, self.solution)
        if not self.slip:
            return 0.0, f"The claim holds, whatever makes it look suspicious. {self.hint}"
        named = verdict.kind == self.slip
        computed = abs(verdict.value - self.answer) <= self.tolerance * abs(self.answer)
        if named and computed:
            return 1.0, self.solution
        score = round(_JUDGED + _NAMED * named + _COMPUTED * computed, 3)
        if abs(verdict.value - self.stated) <= min(SLIP, self.tolerance) * abs(self.stated):
            return score, f"The claim is wrong, and you repeat its value. {self.hint}"
        parts = [
            f"the kind of slip is {'right' if named else 'not right'}",
            f"the value is {'right' if computed else 'not right'}",
        ]
        return score, f"The claim is wrong; {', and '.join(parts)}. {self.hint}"

    def read(self, shown: object) -> Any:
        """Return the chosen kind and the typed value as they are stored."""
        kind, typed = shown if isinstance(shown, tuple) else (None, "")
        if kind is None:
            raise AnswerError("Please choose what is wrong first.")
        if kind == NOTHING:
            return NOTHING
        value = read_number(str(typed), self.unit)
        given = Verdict(kind, value).text()
        if not self.accepts(given):
            raise AnswerError(f"You typed {value:g}. The value is a number of at least 0; please type another.")
        return given

    def shown(self, given: object) -> Any:
        """Return the chosen kind and the value as it would be typed."""
        if given is None:
            return None, ""
        verdict = Verdict.of(str(given))
        return verdict.kind, "" if verdict.kind == NOTHING else f"{verdict.value:.10g}"

    def right_answer(self) -> str:
        """Return the kind of slip and the right value in words."""
        if not self.slip:
            return NOTHING
        return f"{self.slip}; {self.amount()}"

    def amount(self) -> str:
        """Return the right value with its unit."""
        return f"{number(self.answer)}{'' if self.unit in ('%', '×') else ' '}{self.unit}"

    def compared(self, given: object) -> str:
        """Return a comparison of an answer with the correct one."""
        return f"You answered “{given}”; it is “{self.right_answer()}”. {self.solution}"

    def parts(self) -> tuple[Question, ...]:
        """Return a choice question and a number question that ask the same, for systems that know no other kinds."""
        choices = (
            Choice(NOTHING, self.hint, not self.slip),
            *(Choice(kind, self.hint, kind == self.slip) for kind in KINDS),
        )
        return (
            ChoiceQuestion(f"{self.id}-slip", f"{self.text} What is wrong?", self.solution, choices=choices),
            NumberQuestion(
                f"{self.id}-value", f"{self.text} What is the right value?", self.solution, answer=self.answer,
                unit=self.unit, tolerance=self.tolerance, hint=self.hint,
            ),
        )  # fmt: skip
