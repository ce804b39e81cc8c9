"""What a view is: a figure, a summary in words, and a text alternative."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import matplotlib
import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from mlsys.formatting import natural
from mlsys.units import Quantity
from mlsys.viz.style import COLORS, apply_style

__all__ = ["HALO", "Scene", "View", "decades", "new_figure", "number", "percent", "times"]

SHARPNESS = 1.5
"""Pixels of the picture for each pixel it is shown at: letters stay clear on dense screens."""
DPI = 100 * SHARPNESS
HALO = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.2}
"""The plate behind a label, so that lines do not cross its letters."""


@dataclass(frozen=True)
class View:
    """One state of a picture.

    Attributes
    ----------
    figure
        The picture.
    summary
        What it shows now, in one to three sentences that stand without the picture.
    alt
        Text alternative: what kind of picture it is, then the summary.
    values
        The computed numbers behind the picture, by name.
    """

    figure: Figure
    summary: str
    alt: str
    values: dict[str, Any] = field(default_factory=dict)


class Scene:
    """A figure whose moving artists are made once and updated afterwards.

    Each scene has an ``update`` with parameters of its own, which moves the artists and returns a
    :class:`View` of what they show.

    Attributes
    ----------
    figure
        The picture.
    moving
        The artists that ``update`` moves.
    blank
        Text alternative of the picture without them: what its axes are.
    """

    figure: Figure
    moving: tuple[Artist, ...]
    blank: str


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure in matplotlib's own defaults, whatever the notebook has set."""
    with matplotlib.style.context("default"):
        return Figure(figsize=(width, height), dpi=DPI)


def decades(ax: Axes, which: str, low: int, high: int, sign: str = "") -> None:
    """Make one axis logarithmic over whole decades, with a tick at each and none between."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    (ax.set_xlim if which == "x" else ax.set_ylim)(10.0**low, 10.0**high)
    axis.set_major_locator(FixedLocator([10.0**power for power in range(low, high + 1)]))
    axis.set_minor_locator(NullLocator())  # minor ticks cost more than all else in the axes
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}{sign}"))
    axis.set_tick_params(labelsize=9, colors=COLORS["primary"])
    apply_style(ax)


def number(value: Quantity | float, digits: int = 3) -> str:
    """Return about ``digits`` significant digits, without the dust of floating point.

    Examples
    --------
    >>> number(20.000000000000018), number(16.8067)
    ('20', '16.8')
    """
    return natural(float(f"{float(getattr(value, 'magnitude', value)):.12g}"), digits)


def times(value: Quantity | float) -> str:
    """Return a factor, such as ``'16.8×'``."""
    return f"{number(value)}×"


def percent(value: Quantity | float, digits: int = 3) -> str:
    """Return a share in percent, such as ``'84.0%'``.

    Examples
    --------
    >>> percent(0.95), percent(1 / 3)
    ('95%', '33.3%')
    """
    return f"{number(100 * float(getattr(value, 'magnitude', value)), digits)}%"
