"""Small pieces that every lab is made of; they work with ipywidgets 7.7 and 8."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets

from mlsys.viz.style import COLORS

__all__ = [
    "GROUPS",
    "STYLE",
    "Control",
    "button",
    "choice",
    "heading",
    "slider",
    "spoken",
    "spoken_note",
    "style_sheet",
    "switch",
    "text",
]

GROUPS = ("Workload", "Mapping", "Hardware", "View")
"""The order of the controls in every lab."""

_TOOLTIP = "tooltip" if int(ipywidgets.__version__.split(".")[0]) >= 8 else "description_tooltip"
_LABEL = {"description_width": "initial"}

STYLE = f"""<style>
.mlsys-lab {{ max-width: 860px; }}
.mlsys-lab h3.mlsys-stage {{ margin: 1em 0 0.4em; padding-bottom: 0.15em; font-size: 1.2em;
  border-bottom: 2px solid {COLORS["BlueLine"]}; }}
.mlsys-lab p {{ line-height: 1.5; margin: 0.25em 0; max-width: 50em; }}
.mlsys-lab .widget-html-content {{ white-space: normal; line-height: 1.5; }}
.mlsys-lab .mlsys-group {{ margin: 0.5em 0 0.1em; font-weight: 600; }}
.mlsys-lab .mlsys-control {{ flex-wrap: wrap; height: auto; margin: 1px 2px 5px; }}
.mlsys-lab .mlsys-control > .widget-label {{ flex: 1 0 100%; text-align: left; line-height: 1.5; height: auto; }}
.mlsys-lab .mlsys-control > select {{ max-width: 20em; height: 28px; }}
.mlsys-picture {{ margin-top: 0.8em; }}
.mlsys-picture img {{ background: white; border-radius: 4px; }}
.mlsys-lab .mlsys-check {{ margin-bottom: 1.1em; overflow: visible; }}
.mlsys-right, .mlsys-wrong, .mlsys-told {{ margin-top: 0.3em; padding: 0.45em 0.8em; border-left: 4px solid;
  border-radius: 3px; color: {COLORS["primary"]}; }}
.mlsys-right {{ border-color: {COLORS["GreenLine"]}; background: {COLORS["GreenL"]}; }}
.mlsys-wrong {{ border-color: {COLORS["OrangeLine"]}; background: {COLORS["OrangeL"]}; }}
.mlsys-told {{ border-color: {COLORS["BlueLine"]}; background: {COLORS["BlueL"]}; }}
.mlsys-lab button:focus-visible, .mlsys-lab .noUi-handle:focus, .mlsys-lab .ui-slider-handle:focus,
.mlsys-lab input:focus-visible, .mlsys-lab select:focus-visible {{
  outline: 3px solid {COLORS["BlueLine"]} !important; outline-offset: 2px; }}
.mlsys-lab .widget-radio-box label {{ white-space: normal; height: auto; line-height: 1.45; padding: 0.12em 0; }}
.mlsys-lab .mlsys-code, .mlsys-lab-static .mlsys-code {{ padding: 0.5em; overflow-x: auto; }}
.mlsys-lab.jupyter-widgets-disconnected::before {{ content: "This lab has lost its kernel: the sliders are dead. \
Run all cells again; your work comes back."; display: block; padding: 0.45em 0.8em; margin-bottom: 0.5em;
  border-left: 4px solid {COLORS["OrangeLine"]}; background: {COLORS["OrangeL"]}; color: {COLORS["primary"]}; }}
.mlsys-comparison .widget-html-content:focus {{ outline: 3px solid {COLORS["BlueLine"]}; outline-offset: 2px; }}
.mlsys-lab-static .mlsys-stack {{ position: relative; max-width: 840px; }}
.mlsys-lab-static .mlsys-stack img {{ display: block; background: white; border-radius: 4px; }}
.mlsys-lab-static .mlsys-stack img.mlsys-layer {{ position: absolute; inset: 0; width: 100%; max-width: 100%;
  height: auto; background: none; }}
.mlsys-lab-static .mlsys-panel {{ display: grid; gap: 0.2em 2em; margin-bottom: 0.6em; }}
.mlsys-lab-static .mlsys-panel label {{ display: flex; flex-wrap: wrap; gap: 0 0.6em; align-items: center; }}
.mlsys-lab-static .mlsys-panel input {{ flex: 1 1 12em; max-width: 24em; }}
.mlsys-lab-static .mlsys-panel output {{ min-width: 6em; font-weight: 600; }}
.mlsys-lab-static .mlsys-choice {{ display: block; margin: 0.15em 0; }}
.mlsys-lab-static button {{ margin: 0.3em 0.6em 0.3em 0; padding: 0.3em 0.9em; border: 1px solid; border-radius: 4px;
  background: none; color: inherit; }}
.mlsys-lab-static button:disabled {{ opacity: 0.6; }}
</style>"""


@dataclass(frozen=True)
class Control:
    """One thing the reader can set: its name in the state, its group, its widget."""

    name: str
    group: str
    widget: Any

    @property
    def value(self) -> Any:
        """The value set now."""
        return self.widget.value

    known: tuple[Any, ...] = ()
    """All values it may ever take, where the widget does not offer all of them always."""

    def accepts(self, value: object) -> bool:
        """Whether ``value`` is one of the values the control can take."""
        if isinstance(self.widget, ipywidgets.Checkbox):
            return isinstance(value, bool)
        known = self.known or offered(self.widget)
        return any(type(value) is type(each) and value == each for each in known)

    def label_of(self, value: object) -> str:
        """Return what the widget shows for a value."""
        options = [option if isinstance(option, tuple) else (str(option), option) for option in self.widget.options]
        return next(str(label) for label, each in options if each == value)


def offered(widget: Any) -> list[Any]:
    """Return the values a selection offers; its options are values or (label, value) pairs."""
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
    """Return a tick box."""
    widget = ipywidgets.Checkbox(value=value, description=label, indent=False, **{_TOOLTIP: help})
    return Control(name, group, widget)


def button(label: str, style: str = "") -> Any:
    """Return a button as wide as its label."""
    return ipywidgets.Button(
        description=label,
        button_style=style,
        layout={"width": "auto", "align_self": "flex-start", "padding": "0 1.2em"},
    )


def heading(text: str) -> Any:
    """Return the heading of a stage."""
    return ipywidgets.HTML(f'<h3 class="mlsys-stage">{html.escape(text)}</h3>')


def text(markup: str) -> Any:
    """Return a block of HTML that does not change."""
    return ipywidgets.HTML(markup)


def spoken_note(kind: str, message: str) -> str:
    """Return a message, ``"right"``, ``"wrong"`` or ``"told"``, that a screen reader speaks when it appears."""
    return f'<div class="mlsys-{kind}" role="status" aria-live="polite">{html.escape(message)}</div>'


def spoken(message: str) -> str:
    """Return a summary that a screen reader speaks when it changes."""
    return f'<p role="status" aria-live="polite">{html.escape(message)}</p>'


def style_sheet() -> Any:
    """Return the rules that every lab brings along."""
    return ipywidgets.HTML(STYLE)
