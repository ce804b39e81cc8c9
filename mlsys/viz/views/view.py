"""Views: a figure, a summary in words, and an alternative text."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import matplotlib
import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from mlsys.viz.style import HALO, decades
from mlsys.viz.words import number, percent, times

__all__ = ["HALO", "Scene", "View", "decades", "new_figure", "number", "percent", "times"]

SHARPNESS = 1.5
"""Device pixel ratio of the figure, which keeps text sharp on dense screens."""
DPI = 100 * SHARPNESS

Values = TypeVar("Values")


@dataclass(frozen=True)
class View(Generic[Values]):
    """One state of a figure.

    Attributes
    ----------
    figure
        The picture.
    summary
        What it shows, in one to three self-contained sentences.
    alt
        Alternative text: the kind of figure, then the summary.
    values
        The computed numbers behind the figure, by name.
    """

    figure: Figure
    summary: str
    alt: str
    values: Values


class Scene:
    """A figure whose moving artists are made once and updated afterwards.

    Each scene has an ``update`` method with its own parameters, which updates the artists and returns a
    :class:`View` of what they show.

    Attributes
    ----------
    figure
        The picture.
    moving
        The artists that ``update`` moves.
    blank
        Alternative text of the figure without them: a description of its axes.
    """

    figure: Figure
    moving: tuple[Artist, ...]
    blank: str


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure with Matplotlib's defaults, whatever the notebook has set."""
    with matplotlib.style.context("default"):
        return Figure(figsize=(width, height), dpi=DPI)
