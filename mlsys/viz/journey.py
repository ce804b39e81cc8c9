"""Figures of one request's way through a GPU: its time, the energy of each leg, price against number of reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlsys.models.journey import JourneyResult
from mlsys.viz.shown import chart
from mlsys.viz.style import COLORS, HALO
from mlsys.viz.words import number, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHORT = {"Registers": "registers", "matrix units": "units"}


def _name(text: str) -> str:
    for long, short in _SHORT.items():
        text = text.replace(long, short)
    return text


@chart
def journey_time(ax: Axes, result: JourneyResult) -> Axes:
    """Draw the parts of a request's time one after the other, from the copy in to the copy out.

    Parameters
    ----------
    ax
        Axes to draw into.
    result
        Of :func:`mlsys.models.journey.request_journey`.
    """
    total = result.time.m_as("us")
    fills = (("OrangeLine", "//"), ("note", ".."), ("VioletLine", "xx"), ("BlueLine", ""), ("GreenLine", "\\\\"))
    start = 0.0
    for row, (time, (color, hatch)) in enumerate(zip(result.parts.values(), fills, strict=True)):
        length = time.m_as("us")
        ax.barh(row, length, left=start, height=0.66, color=COLORS[color], hatch=hatch, edgecolor="white")
        text = f"{number(length)} µs, {percent(length / total, 2)}"
        left = start + length > 0.62 * total
        ax.annotate(
            text, (start if left else start + length, row), xytext=(-5 if left else 5, 0), textcoords="offset points",
            va="center", ha="right" if left else "left", fontsize=9,
        )  # fmt: skip
        start += length
    ax.set_yticks(range(len(result.parts)), list(result.parts))
    ax.set(xlabel="time, µs", xlim=(0, total * 1.02), ylim=(len(result.parts) - 0.5, -0.5))
    ax.grid(False, axis="y")
    return ax


@chart
def journey_energy(ax: Axes, result: JourneyResult) -> Axes:
    """Draw the energy of each leg: that of the request's own bytes beside that of the weights.

    Parameters
    ----------
    ax
        Axes to draw into.
    result
        Of :func:`mlsys.models.journey.request_journey`.
    """
    names = [_name(leg.name) for leg in result.legs] + ["arithmetic"]
    own = [leg.request_energy.m_as("uJ") for leg in result.legs] + [0.0]
    heavy = [(leg.energy - leg.request_energy).m_as("uJ") for leg in result.legs] + [0.0]
    arithmetic = result.energy["arithmetic"].m_as("uJ")
    floor = 10 ** np.floor(np.log10(min(value for value in (*own, *heavy) if value > 0)))
    series = ((own, -0.2, "OrangeLine", "//", "the request's own bytes"), (heavy, 0.2, "BlueLine", "", "weights"))
    for values, offset, color, hatch, label in series:
        rows = [row for row, value in enumerate(values) if value > 0]
        ax.barh(
            [row + offset for row in rows], [values[row] - floor for row in rows], left=floor, height=0.38,
            color=COLORS[color], hatch=hatch, edgecolor="white", label=label,
        )  # fmt: skip
        for row in rows:
            ax.annotate(number(values[row]), (values[row], row + offset), xytext=(4, 0), textcoords="offset points",
                        va="center", fontsize=9)  # fmt: skip
    last = len(names) - 1
    ax.barh(
        last, arithmetic - floor, left=floor, height=0.38, color=COLORS["VioletLine"], hatch="xx", edgecolor="white"
    )
    ax.annotate(
        number(arithmetic), (arithmetic, last), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9
    )
    ax.set_yticks(range(len(names)), names)
    ax.set(xscale="log", xlim=(floor, max(heavy + own) * 6), ylim=(last + 0.6, -0.6), xlabel="energy, µJ")
    ax.grid(False, axis="y")
    ax.legend(loc="lower right", fontsize=9)
    return ax


@chart
def price_by_passes(ax: Axes, result: JourneyResult) -> Axes:
    """Draw the price of a byte against how often each byte of the request passes, for each hop and the arithmetic.

    Parameters
    ----------
    ax
        Axes to draw into.
    result
        Of :func:`mlsys.models.journey.request_journey`.

    Returns
    -------
    Axes
        Logarithmic axes; along a dotted line a byte of the request costs the same energy in all.
    """
    legs = result.legs[:-2]
    uses = result.figures["uses"].m_as("")
    each = (result.energy["arithmetic"] / result.figures["request"]).m_as("pJ/byte") / uses
    names = [*(_name(leg.name) for leg in legs), "arithmetic"]
    passes = np.array([*(leg.passes for leg in legs), uses])
    prices = np.array([*(leg.price.m_as("pJ/byte") for leg in legs), each])
    left, right = passes.min() / 1.8, passes.max() * 6
    bottom, top = prices.min() / 3, prices.max() * 2.5
    for level, at in ((10, 2), (100, 6), (1000, 12)):
        ax.plot([left, right], [level / left, level / right], ":", color=COLORS["axis"], linewidth=1)
        ax.annotate(f"{level:,} pJ in all", (at, level / at), fontsize=9, color=COLORS["note"], va="bottom")
    ax.plot(passes, prices, "o-", color=COLORS["BlueLine"], markersize=9, markeredgecolor="white", linewidth=1.2)
    for index, (name, x, y) in enumerate(zip(names, passes, prices, strict=True)):
        before = x > np.sqrt(left * right) and index % 2 == 1
        ax.annotate(
            name, (x, y), xytext=(-11 if before else 11, 0), textcoords="offset points", va="center",
            ha="right" if before else "left", fontsize=9, weight="bold", color=COLORS["BlueLine"], bbox=HALO,
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    ax.set(xlabel="times that each byte of the request passes", ylabel="price of a byte, pJ")
    return ax
