"""Figures of history: a time line, growth of demand and supply, power density by generation, steps of a peak rate."""

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


@chart
def power_density(ax: Axes, rules: Mapping[str, Sequence[float]]) -> Axes:
    """Draw the power per area over process generations, a line for each rule of scaling.

    Parameters
    ----------
    ax
        Axes to draw into; the vertical axis is logarithmic.
    rules
        Name of a rule to the power per area of each generation, relative to the first.
    """
    for index, (name, powers) in enumerate(rules.items()):
        color = CYCLE[index]
        ax.plot(range(len(powers)), powers, color=color, linestyle=DASHES[index], marker=MARKERS[index],
                markeredgecolor="white")  # fmt: skip
        ax.annotate(f"{name}: {powers[-1]:.3g}×", (len(powers) - 1, powers[-1]), xytext=(0, 9),
                    textcoords="offset points", ha="right", fontsize=9, color=color, bbox=HALO)  # fmt: skip
    ax.set(yscale="log", xlabel="generations after the first", ylabel="power per area, first = 1")
    ax.set_xticks(range(max(map(len, rules.values()))))
    ticks = [2**power for power in range(0, 11) if 2**power <= 2 * max(max(powers) for powers in rules.values())]
    ax.set_yticks(ticks, [f"{tick}" for tick in ticks])
    ax.minorticks_off()
    ax.margins(x=0.06, y=0.12)
    return ax


@chart
def rate_steps(ax: Axes, steps: Mapping[str, float]) -> Axes:
    """Draw a peak rate that grows in steps, each a factor on the one before, on a logarithmic axis.

    Parameters
    ----------
    ax
        Axes to draw into.
    steps
        Name of each step, from the top, to the rate that it reaches relative to the first device.

    Returns
    -------
    Axes
        A bar per step from the rate before it to its own, with its factor behind it.
    """
    before = 1.0
    for index, reached in enumerate(steps.values()):
        color = CYCLE[index % len(CYCLE)]
        ax.plot([before, reached], [index, index], color=color, linewidth=11, solid_capstyle="butt")
        ax.annotate(f"× {reached / before:.3g}", (reached, index), xytext=(6, 0), textcoords="offset points",
                    va="center", fontsize=10, color=color, bbox=HALO)  # fmt: skip
        if index < len(steps) - 1:
            ax.plot([reached, reached], [index, index + 1], color=COLORS["axis"], linewidth=0.9, linestyle=":")
        before = reached
    ax.set_yticks(range(len(steps)), list(steps))
    ax.set(xscale="log", xlim=(1, before * 3), ylim=(len(steps) - 0.4, -0.6), xlabel="peak rate, first device = 1")
    ticks = [10**power for power in range(0, 8) if 10**power <= before * 3]
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.minorticks_off()
    return ax
