"""Figures of money and carbon: assumptions, quotations, renting or buying, what money buys, parts of a total."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.models.break_even import BreakEven
from mlsys.models.tornado import Tornado
from mlsys.units import Q_, Quantity
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, DASHES, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mlsys.models.prices import Price

_HATCHES = ("", "///", "...", "xx")


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
    ax.margins(x=0.4)
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


@chart
def value_for_money(ax: Axes, bought: Mapping[str, Mapping[str, Quantity]]) -> Axes:
    """Draw what a unit of money buys from one machine to the next, as multiples of the first.

    Parameters
    ----------
    ax
        Axes to draw into.
    bought
        For each thing that is bought, such as arithmetic, its amount for the same money by machine; all name the same
        machines in the same order.

    Returns
    -------
    Axes
        A bar for each machine and thing, labelled with its multiple.
    """
    width = 0.8 / len(bought)
    for index, (thing, amounts) in enumerate(bought.items()):
        first, *_ = amounts.values()
        heights = [(amount / first).m_as("") for amount in amounts.values()]
        places = np.arange(len(heights)) + (index - (len(bought) - 1) / 2) * width
        bars = ax.bar(
            places, heights, 0.9 * width, color=CYCLE[index], label=thing, hatch="/" * index, edgecolor="white"
        )
        ax.bar_label(bars, [f"{height:.2f}×" for height in heights], fontsize=9, padding=2)
        ax.set_xticks(range(len(heights)), list(amounts))
    ax.set(ylabel=f"for the same money, × {next(iter(amounts))}")
    ax.margins(y=0.15)
    ax.legend(loc="upper left", fontsize=9)
    ax.grid(axis="x", visible=False)
    return ax


@chart
def cost_by_batch(ax: Axes, costs: Mapping[str, Mapping[int, Quantity]]) -> Axes:
    """Draw the cost of a token over the batch, a line for each machine.

    Parameters
    ----------
    ax
        Axes to draw into.
    costs
        For each machine, the cost of a million tokens by batch.

    Returns
    -------
    Axes
        Both axes are logarithmic.
    """
    for index, (machine, by_batch) in enumerate(costs.items()):
        dollars = [cost.m_as("USD/Mtoken") for cost in by_batch.values()]
        ax.plot(
            list(by_batch), dollars, color=CYCLE[index], linestyle=DASHES[index], marker=MARKERS[index], markersize=4,
            label=machine,
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="sequences at once", ylabel="USD for a million tokens")
    ax.legend(loc="lower left", fontsize=9)
    return ax


@chart
def stacked_parts(ax: Axes, bars: Mapping[str, Mapping[str, Quantity]], unit: str, *, label: str = "") -> Axes:
    """Draw amounts as bars that are split into their parts.

    Parameters
    ----------
    ax
        Axes to draw into.
    bars
        For each bar its parts by name; all bars have the same parts.
    unit
        Unit of the axis.
    label
        Words before it.

    Returns
    -------
    Axes
        A horizontal bar for each amount with its total at the end, the first one on top.
    """
    rows = np.arange(len(bars))
    left = np.zeros(len(bars))
    names = next(iter(bars.values()))
    for index, name in enumerate(names):
        widths = np.array([float(parts[name].m_as(unit)) for parts in bars.values()])
        ax.barh(
            rows, widths, left=left, height=0.62, color=CYCLE[index], edgecolor="white", hatch=_HATCHES[index % 4],
            label=name,
        )  # fmt: skip
        left += widths
    for row, whole in zip(rows, left, strict=True):
        ax.annotate(
            f"{whole:,.3g}" if whole < 1000 else f"{whole:,.0f}", (float(whole), float(row)), (4, 0),
            textcoords="offset points", va="center", fontsize=9,
        )  # fmt: skip
    ax.set_yticks(rows, list(bars))
    ax.invert_yaxis()
    ax.set_xlim(0, 1.15 * float(left.max()))
    short = f"{Q_(1, unit).units:~P}"
    ax.set_xlabel(f"{label}, {short}" if label else short)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9, ncols=2)
    ax.grid(axis="y", visible=False)
    return ax


@chart
def quotations_by_provider(ax: Axes, prices: Mapping[str, Price]) -> Axes:
    """Draw the quotations behind prices: a row for each provider, a mark for each kind of price.

    Parameters
    ----------
    ax
        Axes to draw into.
    prices
        For each kind, such as ``"on demand"``, what :func:`mlsys.models.cost.rent` returns.

    Returns
    -------
    Axes
        Providers are sorted by their cheapest quotation of the first kind, the cheapest on top.
    """
    quoted = [(kind, each) for kind, price in prices.items() for each in price.quotations]
    providers = list(dict.fromkeys(each.provider for _, each in quoted))
    for index, kind in enumerate(prices):
        marks = [each for name, each in quoted if name == kind]
        ax.plot(
            [each.value.m_as("USD/hour") for each in marks], [providers.index(each.provider) for each in marks],
            MARKERS[index], color=CYCLE[index], markersize=8, label=kind,
        )  # fmt: skip
        for each in marks:
            ax.annotate(
                f"{each.value.m_as('USD/hour'):.2f}", (each.value.m_as("USD/hour"), providers.index(each.provider)),
                (0, 8), textcoords="offset points", ha="center", fontsize=9,
            )  # fmt: skip
    ax.set_yticks(range(len(providers)), providers)
    ax.invert_yaxis()
    ax.margins(x=0.08, y=0.25)
    ax.set_xlim(left=0)
    ax.set_xlabel("rent, USD/hour")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9, ncols=3)
    ax.grid(axis="y", visible=False)
    return ax


@chart
def parts_by_place(ax: Axes, places: Mapping[str, Mapping[str, Quantity]], unit: str, *, label: str = "") -> Axes:
    """Draw the parts of an amount in several places as marks on one logarithmic axis.

    Parameters
    ----------
    ax
        Axes to draw into.
    places
        For each place, its parts by name; all places have the same parts.
    unit
        Unit of the axis.
    label
        Words before it.

    Returns
    -------
    Axes
        A row for each place with a mark for each part, joined by a line.
    """
    for row, parts in enumerate(places.values()):
        amounts = [amount.m_as(unit) for amount in parts.values()]
        ax.plot([min(amounts), max(amounts)], [row, row], color=COLORS["grid"], linewidth=2, zorder=1)
        for index, (name, amount) in enumerate(zip(parts, amounts, strict=True)):
            ax.plot(amount, row, MARKERS[index], color=CYCLE[index], markersize=9, label=name if row == 0 else None)
            ax.annotate(
                f"{amount:,.0f}", (amount, row), xytext=(0, 9), textcoords="offset points", ha="center", fontsize=9
            )
    ax.set(xscale="log", xlabel=f"{label}, {unit}" if label else unit)
    ax.set_yticks(range(len(places)), list(places))
    ax.invert_yaxis()
    ax.margins(x=0.15, y=0.35)
    ax.legend(loc="lower right", fontsize=9)
    ax.grid(axis="y", visible=False)
    return ax
