"""Building blocks of the labs, compatible with ipywidgets 7.7 and 8."""

import html
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

import ipywidgets

from mlsys.inputs import shipped_text
from mlsys.viz.style import COLORS

GROUPS = ("Workload", "Mapping", "Hardware", "View")
"""The order of the controls in every lab."""

_TOOLTIP = "tooltip" if int(ipywidgets.__version__.split(".")[0]) >= 8 else "description_tooltip"
_TEXT_FOLLOWS = 5.0
"""Seconds within which a text belongs to the key before it."""
_LABEL = {"description_width": "initial"}

STYLE = f"<style>\n{Template(shipped_text('mlsys.widgets', 'lab.css')).substitute(COLORS)}</style>"


@dataclass(frozen=True)
class Control:
    """A control: its name in the state, its group, its widget."""

    name: str
    group: str
    widget: Any

    @property
    def value(self) -> Any:
        """The current value."""
        return self.widget.value

    known: tuple[Any, ...] = ()
    """All possible values, if the widget does not always offer all of them."""

    def accepts(self, value: object) -> bool:
        """Return whether ``value`` is a possible value of the control."""
        if isinstance(self.widget, ipywidgets.Checkbox):
            return isinstance(value, bool)
        known = self.known or options_of(self.widget)
        return any(type(value) is type(each) and value == each for each in known)

    def label_of(self, value: object) -> str:
        """Return the label of a value in the widget."""
        options = [option if isinstance(option, tuple) else (str(option), option) for option in self.widget.options]
        return next(str(label) for label, each in options if each == value)


def options_of(widget: Any) -> list[Any]:
    """Return the values of a selection widget, whose options are values or (label, value) pairs."""
    return [option[1] if isinstance(option, tuple) else option for option in widget.options]


def slider(name: str, group: str, label: str, options: Iterable[tuple[str, Any]], value: object, help: str) -> Control:
    """Return a slider over listed values: the arrow keys step through them, Home and End go to the ends."""
    widget = ipywidgets.SelectionSlider(
        options=list(options),
        value=value,
        description=label,
        continuous_update=True,
        style=_LABEL,
        layout={"width": "100%", "max_width": "30em"},
        **{_TOOLTIP: help},
    )
    widget.add_class("mlsys-control")
    return Control(name, group, widget)


def choice(name: str, group: str, label: str, options: Sequence[Any], value: object, help: str) -> Control:
    """Return a drop-down list."""
    widget = ipywidgets.Dropdown(
        options=list(options),
        value=value,
        description=label,
        style=_LABEL,
        layout={"width": "100%", "max_width": "30em"},
        **{_TOOLTIP: help},
    )
    widget.add_class("mlsys-control")
    return Control(name, group, widget)


def switch(name: str, group: str, label: str, value: bool, help: str) -> Control:
    """Return a checkbox."""
    widget = ipywidgets.Checkbox(value=value, description=label, indent=False, **{_TOOLTIP: help})
    return Control(name, group, widget)


def button(label: str, style: str = "") -> Any:
    """Return a button sized to its label."""
    return ipywidgets.Button(
        description=label,
        button_style=style,
        layout={"width": "auto", "align_self": "flex-start", "padding": "0 1.2em"},
    )


def on_enter(field: Any, do: Callable[[], None]) -> None:
    """Call ``do`` when Enter is pressed in a text field.

    A browser sends the key before the text that was typed, so that ``do`` waits for the text. Where the script of
    the labs runs, it presses the button instead, and sends no key.
    """
    if not isinstance(field, ipywidgets.Text):
        return
    pressed = [-math.inf]

    def key(_: Any, content: dict[str, Any], __: Any) -> None:
        if content.get("event") == "submit":
            pressed[0] = time.monotonic()

    def changed(_: Any) -> None:
        if time.monotonic() - pressed[0] < _TEXT_FOLLOWS:
            pressed[0] = -math.inf
            do()

    field.on_msg(key)
    field.observe(changed, names="value")


def heading(text: str) -> Any:
    """Return the heading of a stage."""
    return ipywidgets.HTML(f'<h3 class="mlsys-stage">{html.escape(text)}</h3>')


def text(markup: str) -> Any:
    """Return a static block of HTML."""
    return ipywidgets.HTML(markup)


def live_note(kind: str, message: str) -> str:
    """Return a message, ``"right"``, ``"wrong"`` or ``"note"``, that a screen reader speaks when it appears."""
    return f'<div class="mlsys-{kind}" role="status" aria-live="polite">{html.escape(message)}</div>'


def live_region(message: str) -> str:
    """Return a summary that a screen reader speaks when it changes."""
    return f'<p role="status" aria-live="polite">{html.escape(message)}</p>'


def style_sheet() -> Any:
    """Return the style sheet of the labs."""
    return ipywidgets.HTML(STYLE)
