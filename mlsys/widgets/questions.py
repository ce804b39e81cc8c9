"""Predictions and questions: what is asked, what is right, and why."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ipywidgets

from mlsys.widgets.parts import button, note

__all__ = ["Choice", "ChoiceQuestion", "NumberQuestion", "Question", "QuestionBox"]


@dataclass(frozen=True)
class Choice:
    """One answer that can be chosen, and what is said when it is."""

    text: str
    why: str
    right: bool = False


@dataclass(frozen=True)
class Question:
    """Something to think about before looking.

    Attributes
    ----------
    name
        Its name in the state.
    prompt
        The question, in plain words.
    in_app
        Whether it stands in the last stage of the lab; otherwise the page asks it.
    """

    name: str
    prompt: str
    in_app: bool = True

    def accepts(self, given: Any) -> bool:
        """Whether ``given`` can be an answer at all."""
        raise NotImplementedError

    def judge(self, given: Any) -> tuple[bool, str]:
        """Return whether ``given`` is right, and why."""
        raise NotImplementedError

    def widget(self) -> Any:
        """Return the widget that takes the answer; None stands for no answer yet."""
        raise NotImplementedError

    def listed(self) -> tuple[str, ...]:
        """Return the answers to choose from, for the printed page."""
        return ()


@dataclass(frozen=True)
class ChoiceQuestion(Question):
    """A question with listed answers, one of them right."""

    choices: tuple[Choice, ...] = ()

    def __post_init__(self) -> None:
        if sum(choice.right for choice in self.choices) != 1:
            raise ValueError(f"question {self.name!r} must have one right answer")
        if len({choice.text for choice in self.choices}) != len(self.choices):
            raise ValueError(f"question {self.name!r} lists an answer twice")

    def accepts(self, given: Any) -> bool:
        """Whether ``given`` is one of the listed answers."""
        return any(given == choice.text for choice in self.choices)

    def judge(self, given: Any) -> tuple[bool, str]:
        """Return whether the chosen answer is right, and its explanation."""
        chosen = next(choice for choice in self.choices if choice.text == given)
        return chosen.right, chosen.why

    def widget(self) -> Any:
        """Return radio buttons with nothing chosen."""
        return ipywidgets.RadioButtons(
            options=[choice.text for choice in self.choices], index=None, layout={"width": "auto"}
        )

    def listed(self) -> tuple[str, ...]:
        """Return the answers in order."""
        return tuple(choice.text for choice in self.choices)


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
        How far off, relative to the answer, still counts as right.
    explain
        From (given, right) to the explanation.
    """

    answer: float = math.nan
    unit: str = ""
    tolerance: float = 0.02
    explain: Callable[[float, bool], str] = field(default=lambda given, right: "")

    def accepts(self, given: Any) -> bool:
        """Whether ``given`` is a finite number."""
        return isinstance(given, (int, float)) and not isinstance(given, bool) and math.isfinite(given)

    def judge(self, given: Any) -> tuple[bool, str]:
        """Return whether ``given`` is close enough, and the sum."""
        right = abs(given - self.answer) <= self.tolerance * abs(self.answer)
        return right, self.explain(float(given), right)

    def widget(self) -> Any:
        """Return a text field: an empty one means no answer, which a number field cannot say."""
        return ipywidgets.Text(
            value="",
            placeholder="a number",
            description=f"Your answer ({self.unit})" if self.unit else "Your answer",
            style={"description_width": "initial"},
            layout={"width": "20em"},
        )


def given_by(question: Question, widget: Any) -> Any:
    """Return the answer in the widget; None when there is none, or it is no number."""
    if not isinstance(question, NumberQuestion):
        return widget.value
    try:
        given = float(widget.value.strip().rstrip("%×x").replace(",", ""))
    except ValueError:
        return None
    return given if math.isfinite(given) else None


def put_into(question: Question, widget: Any, given: Any) -> None:
    """Show an answer in the widget."""
    if isinstance(question, NumberQuestion):
        widget.value = "" if given is None else f"{given:.10g}"
    else:
        widget.value = given


class QuestionBox:
    """A question with its field, its button and its feedback; it can be tried again and again."""

    def __init__(self, question: Question, number: str = "") -> None:
        self.question = question
        self.tries = 0
        self.given: Any = None
        self.field = question.widget()
        self.button = button("Check my answer")
        self.button.on_click(lambda _: self.check())
        self.feedback = ipywidgets.HTML("")
        label = f"<strong>{html.escape(number)}</strong> " if number else ""
        prompt = ipywidgets.HTML(f"<p>{label}{html.escape(question.prompt)}</p>")
        self.view = ipywidgets.VBox([prompt, self.field, self.button, self.feedback])
        self.view.add_class("mlsys-check")

    @property
    def right(self) -> bool:
        """Whether the last answer that was checked is right."""
        return self.given is not None and self.question.judge(self.given)[0]

    def check(self) -> None:
        """Judge what stands in the field and say why."""
        given = given_by(self.question, self.field)
        if given is None:
            wanted = "type a number" if isinstance(self.question, NumberQuestion) else "choose an answer"
            self.feedback.value = note("told", f"Please {wanted} first.")
            return
        self.given = given
        self.tries += 1
        self._show()

    def _show(self) -> None:
        if self.given is None:
            self.feedback.value = ""
            return
        right, why = self.question.judge(self.given)
        verdict = "Right." if right else "Not yet."
        again = "" if right else " Try again."
        self.feedback.value = note("right" if right else "wrong", f"{verdict} {why}{again}")

    def enable(self, on: bool) -> None:
        """Open or close the field."""
        self.field.disabled = self.button.disabled = not on

    def state(self) -> dict[str, Any]:
        """Return the answer and how often it was tried."""
        return {"given": self.given, "tries": self.tries}

    def restore(self, state: dict[str, Any]) -> None:
        """Show a state that was checked before."""
        self.given, self.tries = state["given"], state["tries"]
        put_into(self.question, self.field, self.given)
        self._show()
