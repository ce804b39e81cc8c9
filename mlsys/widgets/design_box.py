"""The widget of a design task: its choices, its score, and the reason in words."""

import html
from collections.abc import Callable
from typing import Any

import ipywidgets

from mlsys.labs.design import GOOD, Design
from mlsys.labs.handin import DesignAnswer
from mlsys.viz.words import percent
from mlsys.widgets.parts import button, live_note

MOST_LETTERS = 2000
"""Letters of a reason that are kept."""
_LABEL = {"description_width": "initial"}
_WIDTH = {"width": "100%", "max_width": "36em"}


class DesignBox:
    """A design task that can be scored again and again; the last scored choice counts.

    Parameters
    ----------
    design
        The task.
    changed
        Called after every scored choice and every change of the reason.
    """

    def __init__(self, design: Design, changed: Callable[[], None] = lambda: None) -> None:
        self.design = design
        self.choice: dict[str, Any] | None = None
        self._changed = changed
        self._quiet = False
        self._prompt = ipywidgets.HTML("")
        self._prompt.add_class("mlsys-prompt")
        self.fields = {knob.id: ipywidgets.Dropdown(style=_LABEL, layout=_WIDTH) for knob in design.knobs}
        for field in self.fields.values():
            field.add_class("mlsys-control")
        self.button = button("Score my design")
        self.button.on_click(lambda _: self.check())
        self.feedback = ipywidgets.HTML("")
        # The label stands above the field: beside it, it would leave no room on a small screen.
        self._why = ipywidgets.HTML("<p>Why this design? A sentence or two, kept for your instructor.</p>")
        self.reason = ipywidgets.Textarea(
            description="Your reason", continuous_update=False, rows=3, style=_LABEL, layout=_WIDTH
        )
        self.reason.observe(lambda _: None if self._quiet else self._changed(), names="value")
        self.view = ipywidgets.VBox(
            [self._prompt, *self.fields.values(), self.button, self.feedback, self._why, self.reason]
        )
        self.view.add_class("mlsys-design")
        self.pose(design)

    def pose(self, design: Design) -> None:
        """Ask another task with the same knobs in its place."""
        self.design, self.choice = design, None
        self._prompt.value = paragraphs(design.text)
        for knob in design.knobs:
            field = self.fields[knob.id]
            field.description = knob.label
            field.options = [("choose", None), *knob.options]
            field.value = None
        self._set_reason("")
        self.feedback.value = ""

    def _set_reason(self, text: str) -> None:
        self._quiet = True
        try:
            self.reason.value = text
        finally:
            self._quiet = False

    def check(self) -> None:
        """Score the choice in the fields and show what it comes to."""
        choice = {name: field.value for name, field in self.fields.items()}
        open_ = [knob.label for knob in self.design.knobs if choice[knob.id] is None]
        if open_:
            self.feedback.value = live_note("note", f"Choose first: {', '.join(open_)}.")
            return
        self.choice = choice
        self._show()
        self._changed()

    def _show(self) -> None:
        if self.choice is None:
            self.feedback.value = ""
            return
        self.feedback.value = live_note(*outcome_note(self.design, self.choice))

    def enable(self, on: bool) -> None:
        """Enable or disable the choices."""
        for field in (*self.fields.values(), self.button, self.reason):
            field.disabled = not on

    def answer(self) -> DesignAnswer | None:
        """Return what is handed in, or None if nothing was scored."""
        if self.choice is None:
            return None
        return DesignAnswer(self.choice, self.design.score(self.choice).score, self.reason.value[:MOST_LETTERS])

    def state(self) -> dict[str, Any]:
        """Return the scored choice and the reason."""
        return {"choice": self.choice, "reason": self.reason.value[:MOST_LETTERS]}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a validated state."""
        self.choice = state["choice"]
        for name, field in self.fields.items():
            field.value = None if self.choice is None else self.choice[name]
        self._set_reason(state["reason"])
        self._show()


def paragraphs(text: str) -> str:
    r"""Return the paragraphs of a text, which empty lines part, as HTML.

    Examples
    --------
    >>> paragraphs("Less than\n\n1 < 2")
    '<p>Less than</p><p>1 &lt; 2</p>'
    """
    return "".join(f"<p>{html.escape(each)}</p>" for each in text.split("\n\n"))


def outcome_note(design: Design, choice: dict[str, Any]) -> tuple[str, str]:
    """Return the kind of note, and the words, for a scored choice."""
    outcome = design.score(choice)
    if not outcome.meets:
        return "wrong", f"{outcome.feedback} A design that breaks a limit scores 0."
    verdict = "That is a good design." if outcome.score >= GOOD else "There are better ones."
    return (
        "right" if outcome.score >= GOOD else "wrong",
        f"{outcome.feedback} Your score is {percent(outcome.score)} of the best. {verdict}",
    )
