"""Figure of mistakes: by which factor wrong numbers miss the right ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError
from mlsys.formatting import natural
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@drawn
def error_factors(ax: Axes, factors: Mapping[str, Sequence[float]]) -> Axes:
    """Draw by which factors wrong numbers miss the right ones, a row for each name, on a logarithmic axis.

    Parameters
    ----------
    ax
        Axes to draw into.
    factors
        For each name the wrong values over the right ones, positive; the first name is drawn on top.

    Returns
    -------
    Axes
        Points right of one are too high and orange, those left of it too low and blue; the furthest point of each
        row carries its factor, by which it is too high or too low.

    Raises
    ------
    ArgumentError
        If there is nothing to draw, or a factor is not a positive number.

    Examples
    --------
    >>> from mlsys import viz
    >>> figure, ax, _, plt = viz.setup_plot()
    >>> _ = viz.error_factors(ax, {"a sparse peak": [2.0], "too small": [0.25, 0.5]})
    >>> [text.get_text() for text in ax.texts]
    ['2×', '4×', 'too low', 'too high']
    >>> plt.close(figure)
    """
    values = [value for row in factors.values() for value in row]
    if not values or not all(factors.values()) or not all(math.isfinite(value) and value > 0 for value in values):
        raise ArgumentError("error_factors(): give at least one factor for each name, and positive numbers only")
    for row, each in enumerate(factors.values()):
        ax.hlines(row, min(1.0, *each), max(1.0, *each), color=COLORS["grid"], linewidth=2.0, zorder=1)
        colors = [COLORS["OrangeLine"] if value > 1 else COLORS["BlueLine"] for value in each]
        ax.scatter(each, [row] * len(each), c=colors, s=30, zorder=2)
        furthest = max(each, key=lambda value: abs(math.log(value)))
        ax.annotate(
            f"{natural(max(furthest, 1 / furthest), 2)}×",
            (furthest, row),
            xytext=(6 if furthest > 1 else -6, 0),
            textcoords="offset points",
            ha="left" if furthest > 1 else "right",
            va="center",
            fontsize=9,
        )
    ax.axvline(1.0, color=COLORS["primary"], linewidth=1.0, zorder=0)
    ax.set_xscale("log")
    low, high = min(1.0, *values), max(1.0, *values)
    ax.set_xlim(low / max(6, (high / low) ** 0.25), high * max(5, (high / low) ** 0.2))  # room for the factors
    ax.xaxis.set_major_formatter(lambda value, _: "1" if value == 1 else f"{natural(max(value, 1 / value))}×")
    ax.xaxis.set_minor_formatter(lambda value, _: "")
    ax.set_xlabel("factor between the wrong and the right value")
    ax.set_yticks(range(len(factors)), list(factors))
    ax.set_ylim(len(factors) - 0.5, -1.1)
    ax.grid(False, axis="y")
    for words, side, align in (("too low", -6, "right"), ("too high", 6, "left")):
        color = COLORS["OrangeLine"] if side > 0 else COLORS["BlueLine"]
        text = ax.annotate(words, (1.0, -0.75), xytext=(side, 0), textcoords="offset points", color=color, fontsize=9)
        text.set(ha=align, va="center")
    return ax
