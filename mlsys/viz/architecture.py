"""Figures of architecture models: tiles, time against energy, energy breakdown, and traffic by memory level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsys.models.architecture import ENERGY_PARTS, ArchitectureResult, TilingStrategy
from mlsys.viz.narrow import redraw_narrow
from mlsys.viz.shown import chart
from mlsys.viz.style import COLORS, CYCLE, DASHES, MARKERS
from mlsys.workloads.operator import Operator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PART_COLORS = (COLORS["BlueLine"], COLORS["GreenLine"], COLORS["OrangeLine"], COLORS["grid"])
_HATCHES = ("", "//", "..", "xx")


@chart
def tiles_by_footprint(ax: Axes, strategies: Sequence[TilingStrategy], operators: Sequence[Sequence[Operator]]) -> Axes:
    """Draw the number of tiles per strategy over the footprint of the matrix product.

    Parameters
    ----------
    ax
        Axes to draw into.
    strategies
        Tiling strategies, each for its device.
    operators
        Operators to tile, by strategy.
    """
    for strategy, members, color, marker in zip(strategies, operators, CYCLE, MARKERS, strict=False):
        plans = [strategy.plan(operator) for operator in members]
        footprints = [operator.data.m_as("MiB") for operator in members]
        ax.plot(
            footprints,
            [plan.count for plan in plans],
            marker=marker,
            markersize=5,
            markeredgecolor="white",
            color=color,
            label=f"{strategy.name.upper()}, tiles of {'×'.join(map(str, plans[-1].tile))}",
        )
    ax.set(xscale="log", yscale="log", xlabel="bytes the product touches, MiB", ylabel="tiles")
    ax.legend(loc="upper left", fontsize=9)
    return ax


@chart
def latency_energy(ax: Axes, pairs: Sequence[Sequence[tuple[ArchitectureResult, ArchitectureResult]]]) -> Axes:
    """Draw time against energy, with an arrow from each unfused network to its fused form.

    Parameters
    ----------
    ax
        Axes to draw into.
    pairs
        For each device a row of (unfused, fused) results, the same networks in the same order.
    """
    for row, color in zip(pairs, CYCLE, strict=False):
        for (before, after), marker in zip(row, MARKERS, strict=False):
            start, end = _point(before), _point(after)
            ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": color, "linewidth": 1.1, "shrinkB": 4})
            ax.plot(*start, marker, color="white", markeredgecolor=color, markersize=6, zorder=3)
            ax.plot(*end, marker, color=color, markeredgecolor="white", markeredgewidth=0.5, markersize=8.5, zorder=4)
        for after in (row[0][1], row[-1][1]):  # identification must not depend on colour alone
            name = after.device.rpartition(" ")[2]
            ax.annotate(name, _point(after), (7, -10), textcoords="offset points", color=color, fontsize=9)
    ax.set(xscale="log", yscale="log", xlabel="time of one pass, ms", ylabel="energy of one pass, mJ")
    devices = [
        ax.plot([], [], "-", color=color, linewidth=5, label=row[0][0].device)[0]
        for row, color in zip(pairs, CYCLE, strict=False)
    ]
    networks = [
        ax.plot([], [], marker, color=COLORS["primary"], label=after.workload)[0]
        for (_, after), marker in zip(pairs[0], MARKERS, strict=False)
    ]
    ax.legend(handles=[*devices, *networks], loc="upper center", bbox_to_anchor=(0.5, -0.11), fontsize=9, ncols=3)
    _power_lines(ax)
    return ax


def _thousands(value: float, _: int) -> str:
    return f"{value:,.0f}"


def _point(result: ArchitectureResult) -> tuple[float, float]:
    return float(result.time.m_as("ms")), float(result.spent.m_as("mJ"))


def _power_lines(ax: Axes) -> None:
    """Draw lines of equal average power, one for each power of ten."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    for watts in 10.0 ** np.arange(-1, 4):
        ax.plot([left, right], [watts * left, watts * right], ":", color=COLORS["axis"], linewidth=1, zorder=1)
        label_x = 4 * max(left, bottom / watts)
        if label_x < right and watts * label_x < top:
            ax.annotate(
                f"{watts:,g} W", (label_x, watts * label_x), fontsize=9, color=COLORS["note"], ha="center", va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0}, zorder=2,
            )  # fmt: skip
    ax.set(xlim=(left, right), ylim=(bottom, top))


@chart
def energy_by_intensity(ax: Axes, results: Sequence[ArchitectureResult]) -> Axes:
    """Draw the energy of an operation with its main memory traffic over arithmetic intensity, a point for each result.

    Parameters
    ----------
    ax
        Axes to draw into.
    results
        Passes; machines with equal prices share a line.

    Returns
    -------
    Axes
        Each line is the price of an operation plus that of a byte over the intensity; the open mark, at twice the
        price of an operation, is where the two are equal.
    """
    lines: dict[tuple[float, float], list[tuple[str, float]]] = {}
    for result in results:
        flops = float((result.figures["intensity"] * result.figures["moved"]).m_as("FLOP"))
        operation = float(result.energy["compute"].m_as("pJ")) / flops
        byte = float((result.energy["off-chip"] / result.figures["moved"]).m_as("pJ/byte"))
        point = result.device.rpartition(" ")[2], float(result.figures["intensity"].m_as("FLOP/byte"))
        lines.setdefault((round(operation, 6), round(byte, 6)), []).append(point)
    intensities = np.geomspace(1, 10_000, 200)
    for (operation, byte), color, dash, marker in zip(lines, CYCLE, DASHES, MARKERS, strict=False):
        names = " and ".join(name for name, _ in lines[operation, byte])
        ax.plot(intensities, operation + byte / intensities, linestyle=dash, color=color, label=names)
        ax.plot(byte / operation, 2 * operation, marker, color="white", markeredgecolor=color, markersize=9, zorder=3)
        for name, intensity in lines[operation, byte]:
            height = operation + byte / intensity
            ax.plot(intensity, height, marker, color=color, markeredgecolor="white", markersize=9, zorder=4)
            ax.annotate(name, (intensity, height), (5, 5), textcoords="offset points", color=color, fontsize=9)
    ax.set(xscale="log", yscale="log", xlim=(1, 10_000), xlabel="arithmetic intensity, FLOP/byte",
           ylabel="energy of an operation, pJ")  # fmt: skip
    ax.legend(loc="upper right", fontsize=9)
    return ax


@chart
def energy_split(ax: Axes, groups: Sequence[Sequence[ArchitectureResult]]) -> Axes:
    """Draw the energy breakdown of each result, in percent.

    Parameters
    ----------
    ax
        Axes to draw into.
    groups
        For each network a row of results, one for each device.
    """
    _energy_bars(ax, groups, lying=False)
    redraw_narrow(ax.get_figure(root=True), lambda narrow: _energy_bars(narrow, groups, lying=True))
    return ax


def _energy_bars(ax: Axes, groups: Sequence[Sequence[ArchitectureResult]], *, lying: bool) -> None:
    """Draw the bars of :func:`energy_split` upright, or, for a phone, lying."""
    places: list[float] = []
    for number, group in enumerate(groups):
        start = places[-1] + (2.0 if lying else 1.7) if number else 0.0
        places += [start + row for row in range(len(group))]
        name = group[0].workload.partition(",")[0]
        if lying:
            ax.annotate(name, (0, start - 0.5), xytext=(0, 2), textcoords="offset points", va="bottom", fontsize=9,
                        fontweight="bold", annotation_clip=False)  # fmt: skip
        else:
            ax.annotate(name, (start + (len(group) - 1) / 2, 0), xytext=(0, -28), textcoords="offset points",
                        ha="center", va="top", annotation_clip=False)  # fmt: skip
    results = [result for group in groups for result in group]
    ends = np.zeros(len(results))
    for part, color, hatch in zip(ENERGY_PARTS, _PART_COLORS, _HATCHES, strict=True):
        shares = np.array([float((result.energy[part] / result.spent).m_as("")) * 100 for result in results])
        if shares.any():
            style: dict[str, Any] = {
                "color": color,
                "hatch": hatch,
                "edgecolor": "white",
                "linewidth": 0.6,
                "label": part,
            }
            if lying:
                ax.barh(places, shares, 0.8, left=ends, **style)
            else:
                ax.bar(places, shares, 0.8, bottom=ends, **style)
        ends += shares
    for place, result in zip(places, results, strict=True):
        spent = f"{result.spent.to_compact():.3g~P}"
        if lying:
            ax.annotate(spent, (101, place), va="center", fontsize=9, annotation_clip=False)
        else:  # the unit below, as bars are narrower than both beside each other
            ax.annotate(spent.replace(" ", "\n"), (place, 101), ha="center", va="bottom", fontsize=9, linespacing=1.0)
    names = [result.device.removeprefix("Generic ") for result in results]
    ax.grid(False, axis="y" if lying else "x")
    if lying:
        ax.set_yticks(places, names, fontsize=9)
        ax.set(xlim=(0, 118), ylim=(places[-1] + 0.6, -1.1), xlabel="part of the energy, %")
        ax.set_xticks(range(0, 101, 25))
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=9, ncols=2)
    else:
        ax.set_xticks(places, names, fontsize=9)
        ax.set(ylim=(0, 116), ylabel="part of the energy, %")
        ax.set_yticks(range(0, 101, 20))
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=9)


@chart
def bytes_by_level(ax: Axes, results: Sequence[ArchitectureResult]) -> Axes:
    """Draw the bytes that each memory level sends inward, from the main memory to the units.

    Parameters
    ----------
    ax
        Axes to draw into.
    results
        One line each.
    """
    deepest = max(len(result.moved) for result in results)
    for result, color, marker in zip(results, CYCLE, MARKERS, strict=False):
        moved = [float(amount.m_as("MB")) for amount in result.moved.values()]
        ax.plot(
            moved, marker=marker, color=color, markeredgecolor="white", markersize=7,
            label=f"{result.device}: {', '.join(result.moved)}",
        )  # fmt: skip
    ax.set_xticks(range(deepest), ["main memory", *(f"level {index} inside" for index in range(1, deepest))])
    ax.set(yscale="log", ylabel="bytes that leave the level, MB", xlim=(-0.25, deepest - 0.75))
    ax.legend(loc="upper left", fontsize=9)
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, top * 12)
    return ax


@chart
def bytes_by_onchip(ax: Axes, sizes: Sequence[float], results: Sequence[Sequence[ArchitectureResult]]) -> Axes:
    """Draw main memory traffic over the size of the on-chip memory.

    Parameters
    ----------
    ax
        Axes to draw into.
    sizes
        On-chip memory sizes, MiB.
    results
        One line per row, with one result per size.
    """
    for row, color, marker in zip(results, CYCLE, MARKERS, strict=False):
        moved = [result.figures["moved"].m_as("MB") for result in row]
        name = row[0].device.partition(",")[0]
        ax.plot(sizes, moved, marker=marker, color=color, markeredgecolor="white", label=f"{row[0].workload}, {name}")
    ax.set(yscale="log", xlabel="memory on the chip, MiB", ylabel="bytes at the main memory, MB")
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(sizes), [f"{size:g}" for size in sizes])
    for axis in ("major", "minor"):
        getattr(ax.yaxis, f"set_{axis}_formatter")(_thousands)
    ax.legend(loc="upper right", fontsize=9)
    return ax
