"""Predictions and questions: prompts, correct answers, and feedback."""

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsys.labs.typed import AnswerError, read_number
from mlsys.viz.words import number

__all__ = ["NOTHING", "SLIP", "AnswerError", "Choice", "ChoiceQuestion", "Mark", "NumberQuestion", "Question"]

NOTHING = "Nothing: it is right"
"""The answer to *what is wrong?* that is right now and then."""
SLIP = 0.02
"""Relative tolerance for recognising a known slip."""


@dataclass(frozen=True)
class Choice:
    """An answer to choose, with a hint if it is wrong."""

    text: str
    hint: str = ""
    right: bool = False


@dataclass(frozen=True)
class Mark:
    """The mark of one answer.

    Attributes
    ----------
    score
        From 0 to 1.
    correct
        Whether the answer is the expected one, within the tolerance.
    feedback
        The explanation if it is, a hint if it is not.
    """

    score: float
    correct: bool
    feedback: str


@dataclass(frozen=True)
class Question:
    """A question of a lab.

    Attributes
    ----------
    id
        Its name, unique in the lab.
    text
        The question, in plain words.
    solution
        Explanation of the correct answer; shown when it is found, or on request after two different answers.
    in_app
        Whether it appears in the last stage of the lab; otherwise it is a claim that the page asks about.
    setting
        Values of controls that show the situation of the question, if the figure can show it.
    """

    id: str
    text: str
    solution: str = ""
    in_app: bool = True
    setting: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What an answer is: ``"choice"``, one of the listed texts, or ``"number"``."""
        raise NotImplementedError

    @property
    def expected(self) -> str | float:
        """The correct answer as it is stored: the text of a choice, or a number in the unit of the question."""
        raise NotImplementedError

    def mark(self, answer: object) -> "Mark":
        """Return the mark of a stored answer; one that the question does not accept scores 0."""
        if not self.accepts(answer):
            return Mark(0.0, False, f"{reprlib.repr(answer)} is no answer to this question.")
        correct, feedback = self.judge(answer)
        return Mark(1.0 if correct else 0.0, correct, feedback)

    def accepts(self, given: object) -> bool:
        """Return whether ``given`` is a possible answer."""
        raise NotImplementedError

    def judge(self, given: object) -> tuple[bool, str]:
        """Return whether ``given`` is correct, with the solution if so and a hint if not."""
        raise NotImplementedError

    def read(self, shown: object) -> Any:
        """Return the answer entered in a widget.

        Raises
        ------
        AnswerError
            If there is none, or an impossible one; the message says what to do.
        """
        raise NotImplementedError

    def shown(self, given: object) -> Any:
        """Return the widget value of an answer; the inverse of :meth:`read`."""
        raise NotImplementedError

    def right_answer(self) -> str:
        """Return the correct answer in words."""
        raise NotImplementedError

    def listed(self) -> tuple[str, ...]:
        """Return the answers to choose from; empty for a number question."""
        return ()

    def compared(self, given: object) -> str:
        """Return a comparison of a prediction with the correct answer."""
        raise NotImplementedError

    def parts(self) -> tuple["Question", ...]:
        """Return the questions with a single answer that ask the same, for a question bank: the question itself."""
        return (self,)


@dataclass(frozen=True)
class ChoiceQuestion(Question):
    """A multiple-choice question with one correct answer and a hint for each of the others."""

    choices: tuple[Choice, ...] = ()

    @property
    def kind(self) -> str:
        """``"choice"``."""
        return "choice"

    @property
    def expected(self) -> str | float:
        """The text of the right choice."""
        return self.right_answer()

    def __post_init__(self) -> None:
        if sum(choice.right for choice in self.choices) != 1:
            raise ValueError(f"question {self.id!r} must have one right answer")
        if len({choice.text for choice in self.choices}) != len(self.choices):
            raise ValueError(f"question {self.id!r} lists an answer twice")

    def accepts(self, given: object) -> bool:
        """Whether ``given`` is one of the listed answers."""
        return isinstance(given, str) and any(given == choice.text for choice in self.choices)

    def judge(self, given: object) -> tuple[bool, str]:
        """Return whether the chosen answer is right, and the solution or the hint."""
        chosen = next(choice for choice in self.choices if choice.text == given)
        return chosen.right, self.solution if chosen.right else chosen.hint

    def read(self, shown: object) -> Any:
        """Return the chosen answer."""
        if shown is None:
            raise AnswerError("Please choose an answer first.")
        return shown

    def shown(self, given: object) -> Any:
        """Return the answer itself."""
        return given

    def right_answer(self) -> str:
        """Return the right answer."""
        return next(choice.text for choice in self.choices if choice.right)

    def listed(self) -> tuple[str, ...]:
        """Return the answers in order."""
        return tuple(choice.text for choice in self.choices)

    def compared(self, given: object) -> str:
        """Return a comparison of a prediction with the correct answer."""
        right = self.right_answer()
        if given == right:
            return f"You predicted “{given}”, and so it is. {self.solution}"
        return f"You predicted “{given}”; it is “{right}”. {self.solution}"


@dataclass(frozen=True)
class NumberQuestion(Question):
    """A question whose answer is a number.

    Attributes
    ----------
    answer
        The computed answer, in ``unit``.
    unit
        Shown beside the field.
    tolerance
        Relative error that still counts as correct.
    least, most
        Possible range of the answer; a number outside is refused and does not count as an attempt.
    hint
        Hint for a wrong number.
    slips
        Numbers that result from known slips, each with its own hint.
    """

    answer: float = math.nan
    unit: str = ""
    tolerance: float = 0.02
    least: float = 0.0
    most: float = math.inf
    hint: str = ""
    slips: tuple[tuple[float, str], ...] = ()

    @property
    def kind(self) -> str:
        """``"number"``."""
        return "number"

    @property
    def expected(self) -> str | float:
        """The computed answer."""
        return self.answer

    def accepts(self, given: object) -> bool:
        """Whether ``given`` is a finite number in the range."""
        if not isinstance(given, (int, float)) or isinstance(given, bool):
            return False
        return -1e300 < given < 1e300 and self.least <= given <= self.most  # nan fails each comparison

    def judge(self, given: Any) -> tuple[bool, str]:
        """Return whether ``given`` is close enough, and the solution or a hint."""
        right = abs(given - self.answer) <= self.tolerance * abs(self.answer)
        if right:
            return True, self.solution
        size = "too large" if given > self.answer else "too small"
        slip = next((message for value, message in self.slips if abs(given - value) <= SLIP * abs(value)), self.hint)
        return False, f"{number(given)} is {size}. {slip}"

    def read(self, shown: object) -> Any:
        """Return the number that was typed."""
        given = read_number(str(shown), self.unit)
        if not self.accepts(given):
            raise AnswerError(f"You typed {given:g}. The answer is a number {self.where()}; please type another.")
        return given

    def where(self) -> str:
        """Return the possible range of the answer in words."""
        if self.most == math.inf:
            return f"of at least {self.least:g}"
        return f"between {self.least:g} and {self.most:g}"

    def shown(self, given: object) -> Any:
        """Return the number as it would be typed."""
        return "" if given is None else f"{given:.10g}"

    def right_answer(self) -> str:
        """Return the answer with its unit."""
        gap = "" if self.unit in ("%", "×") else " "
        return f"{number(self.answer)}{gap}{self.unit}"

    def compared(self, given: Any) -> str:
        """Return a comparison of a prediction with the correct answer."""
        gap = "" if self.unit in ("%", "×") else " "
        mine = f"You predicted {number(given)}{gap}{self.unit}"
        link = ", and it is" if self.judge(given)[0] else "; it is"
        return f"{mine}{link} {self.right_answer()}. {self.solution}"
