"""What a view is: a figure, a summary in words, and a text alternative."""

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
"""Pixels of the picture for each pixel it is shown at: letters stay clear on dense screens."""
DPI = 100 * SHARPNESS

Values = TypeVar("Values")


@dataclass(frozen=True)
class View(Generic[Values]):
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
    values: Values


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
