"""The question which explanation of the gap between prediction and measurement passes its test."""

import html
from collections.abc import Callable
from typing import Any

import ipywidgets

from mlsys.labs.gap import Gap
from mlsys.widgets.parts import button, live_note


class GapBox:
    """Explanations to choose from, each with a test on the measured record; hidden until something is measured.

    Parameters
    ----------
    changed
        Called with what is handed in after every test.
    """

    def __init__(self, changed: Callable[[dict[str, Any]], None]) -> None:
        self.gap: Gap | None = None
        self._changed = changed
        self._prompt = ipywidgets.HTML("")
        self._prompt.add_class("mlsys-prompt")
        self.field = ipywidgets.RadioButtons(
            options=["not measured"], index=None, description="Your explanation",
            style={"description_width": "initial"}, layout={"width": "auto"},
        )  # fmt: skip
        self.button = button("Test it")
        self.button.on_click(lambda _: self.test())
        self.feedback = ipywidgets.HTML("")
        self.view = ipywidgets.VBox([])
        self.view.add_class("mlsys-check")

    def ask(self, gap: Gap | None, chosen: str = "") -> None:
        """Ask about a gap, with the explanation that was tested before."""
        self.gap = gap
        self.feedback.value = ""
        if gap is None:
            self.view.children = []
            return
        self._prompt.value = f"<p>{html.escape(gap.question)}</p>"
        self.field.options = [each.text for each in gap.explanations]
        self.field.index = None
        self.view.children = [self._prompt, self.field, self.button, self.feedback]
        if chosen in self.field.options:
            self.field.value = chosen
            self._show()

    def test(self) -> None:
        """Test the chosen explanation on the record."""
        if self.gap is None:
            return
        if self.field.value is None:
            self.feedback.value = live_note("note", "Please choose an explanation first.")
            return
        self._show()
        self._changed(self.gap.record(self.field.value))

    def _show(self) -> None:
        assert self.gap is not None
        tested = next(each for each in self.gap.explanations if each.text == self.field.value)
        verdict = "The test supports it." if tested.holds else "The test does not support it; test another one."
        self.feedback.value = live_note("right" if tested.holds else "wrong", f"{tested.evidence} {verdict}")
