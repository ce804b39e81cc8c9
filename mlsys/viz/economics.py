"""Figures of money and carbon: the tornado of assumptions, and buying against renting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.models.break_even import BreakEven
from mlsys.models.tornado import Tornado
from mlsys.units import Q_
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@drawn
def tornado_bars(
    ax: Axes, answer: Tornado, unit: str, *, label: str = "", names: Mapping[str, str] | None = None, most: int = 8
) -> Axes:
    """Draw the effects of assumptions: a bar for each from the answer at its low to that at its high value.

    Parameters
    ----------
    ax
        Axes to draw into.
    answer
        What :func:`mlsys.models.tornado.tornado` returns.
    unit
        Unit of the horizontal axis.
    label
        What is shown, for its label.
    names
        Words for the names of assumptions.
    most
        Number of bars at most; the largest are kept.

    Returns
    -------
    Axes
        The largest effect on top; blue towards the low value of an assumption, orange towards its high value.
    """
    swings = answer.swings[:most]
    base = answer.base.m_as(unit)
    words = names or {}
    reach = max((abs(end.m_as(unit) - base) for each in swings for end in (each.at_low, each.at_high)), default=0.0)
    for row, each in enumerate(swings):
        for end, value, color in (
            (each.at_low, each.low, COLORS["BlueLine"]),
            (each.at_high, each.high, COLORS["OrangeLine"]),
        ):
            width = end.m_as(unit) - base
            if abs(width) > 1e-3 * reach:
                ax.barh(row, width, left=base, color=color, height=0.6)
            side = 1 if width > 0 or (width == 0 and end is each.at_high) else -1
            ax.annotate(
                f"{value:.4g~P}" if hasattr(value, "units") else f"{value}",
                (base + width, row),
                xytext=(4 * side, 0),
                textcoords="offset points",
                ha="left" if side > 0 else "right",
                va="center",
                fontsize=9,
            )
    ax.axvline(base, color=COLORS["primary"], linewidth=1.0)
    ax.set_yticks(range(len(swings)), [words.get(each.name, each.name.replace("_", " ")) for each in swings])
    ax.invert_yaxis()
    ax.margins(x=0.3)
    if base >= 0 and all(end.m >= 0 for each in swings for end in (each.at_low, each.at_high)):
        ax.set_xticks([tick for tick in ax.get_xticks() if tick >= 0])
    for color, which in ((COLORS["BlueLine"], "low"), (COLORS["OrangeLine"], "high")):
        ax.plot([], [], color=color, linewidth=6, label=f"at its {which} value")
    ax.legend(fontsize=9, loc="lower right")
    ax.set_xlabel(f"{label}, {unit}" if label else unit)
    ax.grid(axis="y", visible=False)
    return ax


@drawn
def rent_or_buy(ax: Axes, answers: Sequence[BreakEven], months: float = 48) -> Axes:
    """Draw what renting costs over time for several utilisations, and what owning costs.

    Parameters
    ----------
    ax
        Axes to draw into.
    answers
        What :func:`mlsys.models.cost.break_even` returns of one machine, for one or more utilisations.
    months
        Length of the horizontal axis.

    Returns
    -------
    Axes
        Renting as lines through the origin, owning as lines from the purchase price on; a mark where they cross.
    """
    if not answers:
        raise ArgumentError(
            "rent_or_buy(): `answers` must have at least one, got none. Write e.g. [break_even(device)]"
        )
    at = np.array([0.0, months])
    thousands = max(float(each.renting_until(Q_(months, "month")).m_as("USD")) for each in answers) > 20_000
    unit = "kUSD" if thousands else "USD"
    shades = [COLORS["BlueLine"], COLORS["GreenLine"], COLORS["VioletLine"], COLORS["RedLine"]]
    for number, each in enumerate(answers):
        color = shades[number % len(shades)]
        rented = [each.renting_until(Q_(float(month), "month")).m_as(unit) for month in at]
        owned = [each.owning_until(Q_(float(month), "month")).m_as(unit) for month in at]
        used = f"{each.utilisation:.0%} of the time"
        ax.plot(at, rented, color=color, label=f"rent, used {used}")
        ax.plot(at, owned, color=color, linestyle="--", label=f"buy, used {used}")
        crossing = each.time.m_as("month")
        if math.isfinite(crossing) and crossing <= months:
            ax.plot(crossing, each.renting_until(each.time).m_as(unit), "o", color=color, markeredgecolor="white")
            ax.annotate(
                f"{crossing:.0f} months" if crossing >= 10 else f"{crossing:.1f} months",
                (crossing, each.renting_until(each.time).m_as(unit)),
                xytext=(5, -14),
                textcoords="offset points",
                ha="left",
                fontsize=9,
                color=color,
            )
    ax.set_xlim(0, months)
    highest = max(float(each.owning_until(Q_(months, "month")).m_as(unit)) for each in answers)
    ax.set_ylim(0, min(ax.get_ylim()[1], 3 * highest))
    ax.set_xlabel("time, months")
    ax.set_ylabel(f"paid so far, {unit}")
    ax.legend(fontsize=9, loc="upper left")
    return ax
