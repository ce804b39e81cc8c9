"""Figures of communication: bus bandwidth against size, and copies beside computation over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.choices import Collective
from mlsys.hardware.system import System
from mlsys.models.collectives import collective_candidates, traffic_factor
from mlsys.models.overlap import OverlapResult
from mlsys.units import Quantity
from mlsys.viz.shown import chart
from mlsys.viz.style import COLORS, CYCLE, DASHES, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@chart
def bus_bandwidth(
    ax: Axes,
    system: System,
    operation: Collective = "all-reduce",
    chips: Sequence[int] = (),
    measured: Mapping[int, Sequence[tuple[Quantity, Quantity]]] | None = None,
) -> Axes:
    """Draw the bus bandwidth of a collective against its size, with measured points and the rate of the link.

    Parameters
    ----------
    ax
        Axes to draw into.
    system
        A system.
    operation
        Collective operation.
    chips
        Numbers of chips, a curve for each; by default all of the system.
    measured
        Pairs of size and time by number of chips, drawn as markers.

    Raises
    ------
    ArgumentError
        If the system has fewer chips.
    """
    sizes = np.logspace(3, 10, 141)
    for count, color, marker, dash in zip(chips or (system.chips,), CYCLE, MARKERS, DASHES, strict=False):
        factor = traffic_factor(operation, count)
        seconds = [collective_candidates(system, operation, float(size), count)[0].seconds for size in sizes]
        ax.plot(sizes, sizes / seconds * factor / 1e9, color=color, linestyle=dash, label=f"{count} chips, model")
        points = (measured or {}).get(count, ())
        if points:
            x = [size.m_as("byte") for size, _ in points]
            y = [size.m_as("byte") / time.m_as("s") * factor / 1e9 for size, time in points]
            ax.plot(
                x, y, marker, color=color, markeredgecolor="white", markersize=6, linestyle="none",
                label=f"{count} chips, measured",
            )  # fmt: skip
    rate = system.scale_up.bandwidth.m_as("GB/s")
    ax.axhline(rate, color=COLORS["note"], linewidth=1, linestyle=(0, (1, 2)))
    ax.annotate(
        f"{system.scale_up.kind}: {rate:,.4g} GB/s each way", (sizes[0], rate), xytext=(0, 4),
        textcoords="offset points", fontsize=9, color=COLORS["note"],
    )  # fmt: skip
    ax.set(xscale="log", xlabel="size, byte", ylabel="bus bandwidth, GB/s", xlim=(sizes[0], sizes[-1]))
    ax.set_ylim(0, max(ax.get_ylim()[1], rate * 1.15))
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, 0.86), fontsize=9)
    return ax


@chart
def copy_timeline(ax: Axes, result: OverlapResult, without: OverlapResult | None = None) -> Axes:
    """Draw what the copy engine and the compute units do over time, a bar for each step.

    Parameters
    ----------
    ax
        Axes to draw into.
    result
        Of :func:`mlsys.models.overlap.overlapped_steps`.
    without
        The same steps without overlap, drawn above for comparison.
    """
    shown = {"": (result, 0.0)} if without is None else {"one buffer": (without, 2.5), "two buffers": (result, 0.0)}
    colors = {"copy": ("OrangeL", "OrangeLine", "//"), "compute": ("BlueL", "BlueLine", "")}
    end = max(each.end for one, _ in shown.values() for each in one.timeline)
    ticks: dict[float, str] = {}
    for name, (one, base) in shown.items():
        rows = {"copy": base + 1.0, "compute": base}
        ticks |= {row: engine for engine, row in rows.items()}
        for each in one.timeline:
            fill, line, hatch = colors[each.engine]
            length = (each.end - each.start) * 1e3
            ax.barh(
                rows[each.engine], length, left=each.start * 1e3, height=0.6, color=COLORS[fill],
                edgecolor=COLORS[line], hatch=hatch, linewidth=0.9,
            )  # fmt: skip
            if each.end - each.start > end / 24:
                middle = (each.start + each.end) / 2 * 1e3
                ax.text(
                    middle, rows[each.engine], str(each.step + 1), ha="center", va="center", fontsize=9,
                    color=COLORS["primary"], bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
                )  # fmt: skip
        if name:
            ax.text(0, base + 1.62, name, fontsize=10, weight="bold", va="center")
    ax.set_yticks(list(ticks), list(ticks.values()))
    top = max(ticks) + (0.9 if without is not None else 0.5)
    ax.set(xlabel="time, ms", xlim=(0, end * 1e3), ylim=(-0.5, top))
    ax.grid(False, axis="y")
    return ax
