"""The widget of a question: answer field, buttons and feedback."""

import html
from collections.abc import Callable
from typing import Any

import ipywidgets

from mlsys.labs.questions import AnswerError, ChoiceQuestion, NumberQuestion, Question
from mlsys.widgets.parts import button, spoken_note

MISSES = 2
"""Wrong answers after which the solution is shown automatically."""


def answer_field(question: Question) -> Any:
    """Return an empty widget for an answer."""
    if isinstance(question, ChoiceQuestion):
        return ipywidgets.RadioButtons(options=list(question.listed()), index=None, layout={"width": "auto"})
    unit = question.unit if isinstance(question, NumberQuestion) else ""
    # A text field: an empty one means no answer, which a number field cannot say.
    return ipywidgets.Text(
        value="",
        # Sent when the field is left: keystroke by keystroke, a press of the button could overtake the last ones.
        continuous_update=False,
        placeholder="a number, such as 12.5",
        description=f"Your answer ({unit})" if unit else "Your answer",
        style={"description_width": "initial"},
        layout={"width": "22em"},
    )


class QuestionBox:
    """A question that can be tried again and again.

    The first wrong answer gets its hint, the second one the solution as well; a button shows the solution at once.

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
        self.tries = 0
        self.given: Any = None
        self.shown = False
        self._changed = changed
        self.field = answer_field(question)
        self.button = button("Check my answer")
        self.button.on_click(lambda _: self.check())
        self.reveal_button = button("Show the solution")
        self.reveal_button.on_click(lambda _: self.reveal())
        self.feedback = ipywidgets.HTML("")
        label = f"<strong>{html.escape(number)}</strong> " if number else ""
        prompt = ipywidgets.HTML(f"<p>{label}{html.escape(question.text)}</p>")
        prompt.add_class("mlsys-prompt")
        buttons = ipywidgets.HBox([self.button, self.reveal_button], layout={"flex_flow": "row wrap"})
        self.view = ipywidgets.VBox([prompt, self.field, buttons, self.feedback])
        self.view.add_class("mlsys-check")

    @property
    def right(self) -> bool:
        """Whether the last checked answer is correct."""
        return self.given is not None and self.question.judge(self.given)[0]

    @property
    def answered(self) -> bool:
        """Whether it was attempted, or the solution shown."""
        return self.tries > 0 or self.shown

    def check(self) -> None:
        """Check the answer in the field and show the feedback."""
        try:
            self.given = self.question.read(self.field.value)
        except AnswerError as error:
            self.feedback.value = spoken_note("told", str(error))
            return
        self.tries += 1
        self.shown = self.shown or (self.tries >= MISSES and not self.right)
        self._show()
        self._changed()

    def reveal(self) -> None:
        """Show the solution."""
        self.shown = True
        self._show()
        self._changed()

    def _show(self) -> None:
        question, words, kind = self.question, [], "told"
        if self.given is not None:
            right, why = question.judge(self.given)
            kind = "right" if right else "wrong"
            words.append(f"{'Right.' if right else 'Not yet.'} {why}")
            if not right and not self.shown:
                words.append("Try again.")
        if self.shown and kind != "right":
            words.append(f"The answer is “{question.right_answer()}”. {question.solution}")
        self.feedback.value = spoken_note(kind, " ".join(words)) if words else ""

    def enable(self, on: bool) -> None:
        """Enable or disable the field."""
        self.field.disabled = self.button.disabled = self.reveal_button.disabled = not on

    def state(self) -> dict[str, Any]:
        """Return the answer, the number of attempts, and whether the solution was shown."""
        return {"given": self.given, "tries": self.tries, "shown": self.shown}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a validated state."""
        self.given, self.tries, self.shown = state["given"], state["tries"], state["shown"]
        self.field.value = self.question.shown(self.given)
        self._show()
