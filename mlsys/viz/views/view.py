"""Views: a figure, a summary in words, and an alternative text."""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import matplotlib
import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mlsys.viz.style import COLORS, HALO, decades
from mlsys.viz.words import number, percent, times

__all__ = ["HALO", "Guess", "Scene", "View", "decades", "new_figure", "number", "percent", "times"]

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


class Guess:
    """The mark of a reader's prediction across an Axes: a line for a value, a band for a range, with a label.

    A value beyond the edge of the Axes is drawn at the edge.

    Parameters
    ----------
    ax
        The Axes, with its limits and scale set.
    along
        The axis that the prediction is a value of.
    place
        Where the label stands along the other axis, from 0 to 1.
    label, color
        Words of the label, and the colour of the mark.
    span
        Ends of the mark along the other axis, from 0 to 1.
    over
        Whether a range is a dashed frame in front of bars, where a band behind them would be hidden.

    Examples
    --------
    >>> ax = Figure().add_subplot(xlim=(0, 10))
    >>> guess = Guess(ax, "x")
    >>> guess.show(4)
    >>> guess.visible, guess.fraction(4)
    (True, 0.4)
    """

    def __init__(
        self,
        ax: Axes,
        along: Literal["x", "y"],
        place: float = 0.96,
        label: str = "your prediction",
        color: str = COLORS["VioletLine"],
        span: tuple[float, float] = (0.0, 1.0),
        *,
        over: bool = False,
    ) -> None:
        self.ax, self.along, self.place, self.span = ax, along, place, span
        # Both in fractions of the Axes, so that a line reads the same on any scale.
        look: dict[str, Any] = {
            "facecolor": COLORS["VioletL"],
            "hatch": "..",
            "linewidth": 0.8,
            "alpha": 0.7,
            "zorder": 1.5,
        }
        if over:
            look = {"fill": False, "linestyle": (0, (4, 1.5)), "linewidth": 2.0, "zorder": 8}
        self._band = Rectangle((0, 0), 0, 0, transform=ax.transAxes, edgecolor=color, **look)
        ax.add_artist(self._band)
        (self._line,) = ax.plot([], [], linestyle=(0, (5, 1, 1, 1)), linewidth=1.8, color=color, zorder=8,
                                transform=ax.transAxes)  # fmt: skip
        self._label = ax.text(0, 0, label, transform=ax.transAxes, fontsize=9, color=color, zorder=9, bbox=HALO)
        self.artists: tuple[Artist, ...] = (self._band, self._line, self._label)
        self.hide()

    @property
    def visible(self) -> bool:
        """Whether it is shown."""
        return self._label.get_visible()

    @property
    def label(self) -> str:
        """Words of the label."""
        return self._label.get_text()

    @label.setter
    def label(self, words: str) -> None:
        self._label.set_text(words)

    def fraction(self, value: float) -> float:
        """Return where a value lies along the axis, from 0 to 1, at the edge if it is beyond."""
        limits = self.ax.get_xlim() if self.along == "x" else self.ax.get_ylim()
        transform = self.ax.xaxis.get_transform() if self.along == "x" else self.ax.yaxis.get_transform()
        low, high = sorted(limits)
        start, end, at = (float(transform.transform(each)) for each in (*limits, min(max(value, low), high)))
        return (at - start) / (end - start)

    def hide(self) -> None:
        """Hide the mark."""
        for artist in self.artists:
            artist.set_visible(False)

    def show(self, low: float, high: float | None = None) -> None:
        """Mark a value, or the range from ``low`` to ``high``."""
        self.hide()
        start, end = sorted((self.fraction(low), self.fraction(low if high is None else high)))
        middle = (start + end) / 2
        across = self.along == "x"
        low_end, high_end = self.span
        if high is None:
            self._line.set_data(*(([start] * 2, self.span) if across else (self.span, [start] * 2)))
            self._line.set_visible(True)
        else:
            along, beyond = (start, end - start), (low_end, high_end - low_end)
            (x, width), (y, height) = (along, beyond) if across else (beyond, along)
            self._band.set_bounds(x, y, width, height)
            self._band.set_visible(True)
        left = middle <= 0.5
        if across:
            beside = end + 0.008 if left else start - 0.008
            self._label.set(x=beside, y=self.place, ha="left" if left else "right", va="top")
        else:
            beside = end + 0.012 if left else start - 0.012
            self._label.set(x=self.place, y=beside, ha="right", va="bottom" if left else "top")
        self._label.set_visible(True)


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
    guess
        The mark of the reader's prediction, one of the moving artists; None if the figure does not show what is
        predicted.
    here
        The mark of what was measured on the reader's machine; None if the lab does not measure.
    """

    figure: Figure
    moving: tuple[Artist, ...]
    blank: str
    guess: Guess | None = None
    here: Guess | None = None


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure with Matplotlib's defaults, whatever the notebook has set."""
    with matplotlib.style.context("default"):
        return Figure(figsize=(width, height), dpi=DPI)
