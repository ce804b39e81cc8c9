"""Figures of history: a time line of milestones, and the growth of demand and supply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mlsys.models.trends import Growth
from mlsys.units import Quantity
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, DASHES, HALO, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEVELS = (1.0, -1.0, 2.1, -2.1)


@drawn
def timeline(ax: Axes, events: Sequence[tuple[float, str]]) -> Axes:
    """Draw events along the years, with their names above and below the line in turn.

    Parameters
    ----------
    ax
        Axes to draw into.
    events
        Years, with fractions, and names, in any order; a newline breaks a name.
    """
    ordered = sorted(events)
    first, last = ordered[0][0], ordered[-1][0]
    ax.plot([first - 1, last + 1], [0, 0], color=COLORS["axis"], linewidth=1.5)
    for index, (year, name) in enumerate(ordered):
        level = _LEVELS[index % len(_LEVELS)]
        ax.plot([year, year], [0, level], color=COLORS["grid"], linewidth=1)
        ax.plot(year, 0, marker="o", color=COLORS["BlueLine"])
        ax.text(year, level, f"{name}\n{year:.0f}", ha="center", va="bottom" if level > 0 else "top", fontsize=9,
                color=COLORS["primary"])  # fmt: skip
    ax.set(xlim=(first - 4, last + 4), ylim=(-3.4, 3.4))
    ax.set_axis_off()
    return ax


@chart
def growth_lines(
    ax: Axes, series: Mapping[str, Sequence[tuple[float, Quantity, str]]], fits: Mapping[str, Growth]
) -> Axes:
    """Draw dated values as multiples of each series' fit in its first year, and the fits.

    Parameters
    ----------
    ax
        Axes to draw into.
    series
        For each name, the points: year, value, and label.
    fits
        The growth fitted to each series, by the same names.

    Returns
    -------
    Axes
        Both series begin at one in the same year, so that the distance between the lines is the gap. Points are
        data, lines are fits.
    """
    start = max(min(year for year, _, _ in points) for points in series.values())
    for index, (name, points) in enumerate(series.items()):
        fit, color = fits[name], CYCLE[index]
        base, unit = fit.at(start), fit.unit
        end = max(year for year, _, _ in points)
        years = [min(year for year, _, _ in points), end]
        heights = [(fit.at(year) / base).m_as("") for year in years]
        ax.plot(years, heights, color=color, linestyle=DASHES[index], label=f"{name}: {fit.per_year:.2g}× a year")
        for year, value, label in points:
            height = value.m_as(unit) / base.m_as(unit)
            ax.plot(year, height, marker=MARKERS[index], color=color, markeredgecolor="white", linestyle="none")
            ax.annotate(label, (year, height), xytext=(5, -10), textcoords="offset points", fontsize=9, color=color,
                        bbox=HALO)  # fmt: skip
    ax.set(yscale="log", ylabel=f"multiple of the fit in {start:.0f}")
    ax.margins(x=0.08)
    ax.legend(loc="upper left", fontsize=9)
    return ax
