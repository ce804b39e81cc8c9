"""The widget of a question: answer field, buttons and feedback."""

import html
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import ipywidgets

from mlsys.labs.claimed import KINDS, ClaimQuestion
from mlsys.labs.handin import Answer, Attempt
from mlsys.labs.questions import NOTHING, AnswerError, ChoiceQuestion, NumberQuestion, Question
from mlsys.widgets.parts import button, live_note, on_enter

HONEST = 2
"""Different answers after which the solution may be shown, and a question counts as answered."""


def now() -> str:
    """Return the time as it is stored: ISO 8601 in seconds, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class VerdictField(ipywidgets.VBox):
    """Two fields for an answer about a claim: the kind of slip, and the right value."""

    def __init__(self, question: ClaimQuestion) -> None:
        self.kind = ipywidgets.Dropdown(
            options=[("choose", None), (NOTHING, NOTHING), *((kind, kind) for kind in KINDS)],
            description="What is wrong?",
            style={"description_width": "initial"},
            layout={"width": "100%", "max_width": "36em"},
        )
        self.kind.add_class("mlsys-control")
        self.text = ipywidgets.Text(
            continuous_update=False,
            placeholder="a number, such as 12.5",
            style={"description_width": "initial"},
            layout={"width": "26em"},
        )
        self.kind.observe(lambda _: self._need_value(), names="value")
        self._off = False
        super().__init__([self.kind, self.text])
        self.pose(question)

    def pose(self, question: ClaimQuestion) -> None:
        """Empty both fields for a claim."""
        self.text.description = f"The right value ({question.unit})"
        self.value = None, ""

    @property
    def value(self) -> tuple[str | None, str]:
        """The chosen kind and the typed value."""
        return self.kind.value, self.text.value

    @value.setter
    def value(self, given: tuple[str | None, str]) -> None:
        self.kind.value, self.text.value = given
        self._need_value()

    @property
    def disabled(self) -> bool:
        """Whether both fields are closed."""
        return self._off

    @disabled.setter
    def disabled(self, off: bool) -> None:
        self._off = self.kind.disabled = off
        self._need_value()

    def _need_value(self) -> None:
        """Close the value of a claim that is called right."""
        self.text.disabled = self._off or self.kind.value == NOTHING


def answer_field(question: Question, label: str = "Your answer") -> Any:
    """Return an empty widget for an answer."""
    if isinstance(question, ClaimQuestion):
        return VerdictField(question)
    if isinstance(question, ChoiceQuestion):
        return ipywidgets.RadioButtons(
            options=list(question.listed()),
            index=None,
            description=label,
            style={"description_width": "initial"},
            layout={"width": "auto"},
        )
    unit = question.unit if isinstance(question, NumberQuestion) else ""
    # A text field: an empty one means no answer, which a number field cannot say.
    return ipywidgets.Text(
        value="",
        # Sent when the field is left: keystroke by keystroke, a press of the button could overtake the last ones.
        continuous_update=False,
        placeholder="a number, such as 12.5",
        description=f"{label} ({unit})" if unit else label,
        style={"description_width": "initial"},
        layout={"width": "22em"},
    )


def pose(field: Any, question: Question) -> None:
    """Empty a field and offer the answers of another question of the same kind."""
    if isinstance(question, ClaimQuestion):
        field.pose(question)
    elif isinstance(question, ChoiceQuestion):
        field.options = list(question.listed())
        field.index = None  # new options select the first one
    else:
        field.value = ""


class QuestionBox:
    """A question that can be tried again and again.

    Every wrong answer gets its hint; after two different answers the solution may be shown.

    Parameters
    ----------
    question
        The question.
    number
        Label shown before it.
    changed
        Called after every checked answer.
    """

    def __init__(self, question: Question, number: str = "", changed: Callable[[], None] = lambda: None) -> None:
        self.question = question
        self.attempts: list[tuple[str, Any]] = []  # time and answer
        self.shown = False
        self._changed = changed
        self._on = True
        self._number = number
        self.field = answer_field(question)
        self.button = button("Check my answer")
        self.button.add_class("mlsys-enter")
        self.button.on_click(lambda _: self.check())
        on_enter(self.field.text if isinstance(self.field, VerdictField) else self.field, self.check)
        self.reveal_button = button("Show the solution")
        self.reveal_button.on_click(lambda _: self.reveal())
        self.feedback = ipywidgets.HTML("")
        self._prompt = ipywidgets.HTML("")
        self._prompt.add_class("mlsys-prompt")
        buttons = ipywidgets.HBox([self.button, self.reveal_button], layout={"flex_flow": "row wrap"})
        self.view = ipywidgets.VBox([self._prompt, self.field, buttons, self.feedback])
        self.view.add_class("mlsys-check")
        self._ask()

    def _ask(self) -> None:
        label = f"<strong>{html.escape(self._number)}</strong> " if self._number else ""
        self._prompt.value = f"<p>{label}{html.escape(self.question.text)}</p>"
        self.enable(self._on)

    def pose(self, question: Question) -> None:
        """Ask another question of the same kind in its place."""
        self.question, self.attempts, self.shown = question, [], False
        pose(self.field, question)
        self.feedback.value = ""
        self._ask()

    @property
    def given(self) -> Any:
        """The last checked answer, or None."""
        return self.attempts[-1][1] if self.attempts else None

    @property
    def tries(self) -> int:
        """Number of different answers that were checked."""
        return len(self.attempts)

    @property
    def right(self) -> bool:
        """Whether the last checked answer is correct."""
        return self.given is not None and self.question.judge(self.given)[0]

    @property
    def answered(self) -> bool:
        """Whether the answer is right, or two different ones were tried."""
        return self.right or self.tries >= HONEST

    def check(self) -> None:
        """Check the answer in the field and show the feedback; one that was checked before is no new attempt."""
        try:
            given = self.question.read(self.field.value)
        except AnswerError as error:
            self.feedback.value = live_note("note", str(error))
            return
        if any(given == answer for _, answer in self.attempts):
            if given == self.given:
                self._show("" if self.right else "You have checked this answer before; change it first.")
            else:
                self.feedback.value = live_note("note", "You have checked this answer before; try another one.")
            return
        self.attempts.append((now(), given))
        self._show()
        self._changed()

    def reveal(self) -> None:
        """Show the solution, once two different answers were tried."""
        if self.answered:
            self.shown = True
            self._show()
            self._changed()

    def _show(self, more: str = "") -> None:
        question, words, kind = self.question, [], "note"
        if self.given is not None:
            right, why = question.judge(self.given)
            kind = "right" if right else "wrong"
            words.append(f"{'Right.' if right else 'Not yet.'} {why}")
            if not right and not self.shown:
                words.append(more or ("Try again." if not self.answered else "Try again, or have the solution shown."))
        if self.shown and kind != "right":
            words.append(f"The answer is “{question.right_answer()}”. {question.solution}")
        self.feedback.value = live_note(kind, " ".join(words)) if words else ""
        self.enable(self._on)

    def enable(self, on: bool) -> None:
        """Enable or disable the field; the solution stays closed until it may be shown."""
        self._on = on
        self.field.disabled = self.button.disabled = not on
        self.reveal_button.disabled = not (on and self.answered and not self.right)
        self.reveal_button.tooltip = "" if self.answered else f"Opens after {HONEST} different answers"

    def answer(self) -> Answer:
        """Return what is handed in."""
        attempts = (Attempt(at, given, self.question.judge(given)[0]) for at, given in self.attempts)
        return Answer(tuple(attempts), self.shown)

    def state(self) -> dict[str, Any]:
        """Return the checked answers with their times, and whether the solution was shown."""
        return {"attempts": [{"at": at, "answer": given} for at, given in self.attempts], "shown": self.shown}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a validated state."""
        self.attempts = [(each["at"], each["answer"]) for each in state["attempts"]]
        self.shown = state["shown"]
        self.field.value = self.question.shown(self.given)
        self._show()
