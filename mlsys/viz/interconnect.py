"""Figures of links: bandwidth from memory to network, bandwidth attained by size, a ring by number of chips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.formulas import half_performance_size, ring_all_reduce_time
from mlsys.hardware.system import Link, System
from mlsys.units import Q_, Quantity
from mlsys.viz.shown import chart
from mlsys.viz.style import COLORS, CYCLE, DASHES, HALO, MARKERS
from mlsys.viz.words import device_name, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FILLS = (("BlueLine", ""), ("VioletLine", "//"), ("OrangeLine", ".."), ("GreenLine", "xx"))


def _steps(system: System) -> list[tuple[str, Quantity]]:
    if system.scale_out is None:
        raise ArgumentError(f"bandwidth_taper(): {system.name} has no network between nodes. Choose a system that has")
    levels = [("memory", system.device.memory_bw)]
    named = ((system.scale_up, "chip to chip"), (system.host, "host"), (system.scale_out, "network"))
    for link, name in named:
        short = link.kind.partition(",")[0].removesuffix(" x16")
        levels.append((f"{name} ({short})", link.bandwidth))
    return levels


@chart
def bandwidth_taper(ax: Axes, systems: Sequence[System]) -> Axes:
    """Draw the bandwidth of one chip, in one direction, from its memory out to the network: a block for each system.

    Parameters
    ----------
    ax
        Axes to draw into.
    systems
        Systems with a network between nodes.

    Returns
    -------
    Axes
        Bars on a logarithmic axis, with their values; between two bars the factor that is lost.

    Raises
    ------
    ArgumentError
        If a system has no network.
    """
    ticks: list[tuple[float, str]] = []
    top = 0.0
    for block, system in enumerate(systems):
        levels = _steps(system)
        start = block * (len(levels) + 1.4)
        rates = [rate.m_as("GB/s") for _, rate in levels]
        ax.text(1.15, start - 0.85, device_name(system.device), fontsize=11, weight="bold", va="center")
        for row, ((name, _), rate, (color, hatch)) in enumerate(zip(levels, rates, _FILLS, strict=True)):
            ax.barh(start + row, rate - 1, left=1, height=0.62, color=COLORS[color], hatch=hatch, edgecolor="white")
            ax.annotate(
                f"{rate:,.4g} GB/s", (rate, start + row), xytext=(5, 0), textcoords="offset points", va="center",
                fontsize=9,
            )  # fmt: skip
            ticks.append((start + row, name))
        for row, (outer, inner) in enumerate(pairwise(rates)):
            ax.text(2.6e5, start + row + 0.5, f"÷ {number(outer / inner, 3)}", ha="right", va="center", fontsize=10,
                    color=COLORS["RedLine"])  # fmt: skip
        top = start + len(levels)
    ax.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
    ax.set(xscale="log", xlim=(1, 3e5), ylim=(top - 0.3, -1.4), xlabel="bandwidth of one chip in one direction, GB/s")
    ax.grid(False, axis="y")
    return ax


@chart
def attained_bandwidth(ax: Axes, links: Mapping[str, Link]) -> Axes:
    """Draw the bandwidth that one message attains against its size, with the size that attains half of it.

    Parameters
    ----------
    ax
        Axes to draw into.
    links
        Links with bandwidth and latency, by the name to show.
    """
    sizes = np.logspace(2, 9, 141)
    for index, (name, link) in enumerate(links.items()):
        color, dash, marker, odd = CYCLE[index], DASHES[index], MARKERS[index], index % 2
        latency, rate = link.latency.m_as("s"), link.bandwidth.m_as("byte/s")
        ax.plot(sizes, sizes / (latency + sizes / rate) / 1e9, color=color, linestyle=dash)
        half = half_performance_size.bare(latency, rate)
        ax.plot([half], [rate / 2e9], marker, color=color, markeredgecolor="white", markersize=9)
        ax.annotate(
            f"half at {number(half / 1e3)} kB", (half, rate / 2e9), xytext=(-8, 7) if odd else (9, -9),
            textcoords="offset points", ha="right" if odd else "left", fontsize=9, color=color, bbox=HALO,
        )  # fmt: skip
        ax.annotate(
            name, (sizes[-1], rate / 1e9), xytext=(0, -5 if index == 2 else 5), textcoords="offset points", ha="right",
            va="top" if index == 2 else "bottom", fontsize=9, weight="bold", color=color,
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="size of the message, byte", ylabel="bandwidth attained, GB/s")
    ax.set(xlim=(sizes[0], sizes[-1]), ylim=(0.03, 1500))
    return ax


@chart
def ring_time(ax: Axes, message: Quantity, bandwidths: Mapping[str, Quantity], ranks: Sequence[int]) -> Axes:
    """Draw the time of an all-reduce around a ring against its number of chips, and the limit that it tends to.

    Parameters
    ----------
    ax
        Axes to draw into.
    message
        Bytes of the array of each rank.
    bandwidths
        Bandwidth of a link in one direction, by the name to show.
    ranks
        Numbers of chips, ascending.
    """
    where = list(range(len(ranks)))
    for (name, rate), color, dash, marker in zip(bandwidths.items(), CYCLE, DASHES, MARKERS, strict=False):
        times = [ring_all_reduce_time(message, count, Q_(0, "s"), rate).m_as("ms") for count in ranks]
        limit = (2 * message / rate).m_as("ms")
        ax.plot(where, times, marker, linestyle=dash, color=color, markeredgecolor="white", markersize=8)
        ax.axhline(limit, color=color, linewidth=1, linestyle=(0, (1, 2)))
        ax.annotate(
            f"{name}: limit {number(limit)} ms", (where[-1], limit), xytext=(0, 4), textcoords="offset points",
            ha="right", fontsize=9, color=color,
        )  # fmt: skip
        for at, time in zip(where, times, strict=True):
            ax.annotate(
                f"{time:.2f}", (at, time), xytext=(0, -14), textcoords="offset points", ha="center", fontsize=9,
                color=color,
            )  # fmt: skip
    ax.set_xticks(where, [f"{count}" for count in ranks])
    highest = max((2 * message / rate).m_as("ms") for rate in bandwidths.values())
    ax.set(xlabel="chips in the ring", ylabel="time of the all-reduce, ms", ylim=(0, highest * 1.15))
    return ax
