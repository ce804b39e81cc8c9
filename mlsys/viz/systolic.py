"""Figures of systolic arrays: states cycle by cycle, utilisation over size, energy by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mlsys.choices import FoldOverlap, Stationary
from mlsys.models.systolic import ArrayCounts, EnergyPerMac, Frame, Run, count_systolic
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, DASHES, MARKERS, apply_style, decades

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES = {"os": ("A", "B", "sum"), "ws": ("A", "B", "sum"), "is": ("B", "A", "sum")}
_LEVELS = {"DRAM": "OrangeLine", "SRAM": "VioletLine", "registers": "GreenLine", "arithmetic": "BlueLine"}


@drawn
def array_frame(ax: Axes, run: Run, frame: Frame, dataflow: Stationary) -> Axes:
    """Draw the state of every processing element (PE) of an array at the end of one cycle.

    Parameters
    ----------
    ax
        Axes to draw into; it is cleared.
    run
        The simulation.
    frame
        One of its frames.
    dataflow
        Dataflow of the run, which determines the second number in each PE.

    Returns
    -------
    Axes
        PEs that multiplied are filled; operands that entered are at the left, words that
        left below.
    """
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    ax.clear()
    rows, columns = frame.moving.shape
    moving, second, total = _NAMES[dataflow]
    second_color = COLORS["OrangeLine"]
    for row in range(rows):
        for column in range(columns):
            busy = bool(frame.busy[row, column])
            box = FancyBboxPatch(
                (column + 0.06, row + 0.06), 0.88, 0.88, boxstyle="round,pad=0,rounding_size=0.07",
                facecolor=COLORS["BlueL"] if busy else "white", edgecolor=COLORS["BlueLine" if busy else "axis"],
                linewidth=2 if busy else 1,
            )  # fmt: skip
            ax.add_patch(box)
            cell: tuple[tuple[npt.NDArray[Any], str, str, float], ...] = (
                (frame.moving, f"{moving} →", COLORS["BlueLine"], 0.24),
                (frame.second, f"{second} {'↓' if dataflow == 'os' else '='}", second_color, 0.5),
                (frame.sums, total, COLORS["primary"], 0.77),
            )
            for values, label, color, height in cell:
                value = values[row, column]
                if np.isnan(value):
                    continue
                ax.text(column + 0.13, row + height, label, fontsize=9, color=color, va="center")
                weight = "bold" if values is frame.sums else "normal"
                size = 13 if values is frame.sums else 11
                ax.text(
                    column + 0.88, row + height, plain_number(value),
                    fontsize=size, color=color, va="center", ha="right", weight=weight,
                )  # fmt: skip
    for row, value in frame.entering:
        ax.text(-0.42, row + 0.24, plain_number(value), fontsize=11, color=COLORS["BlueLine"], ha="right", va="center")
        ax.add_patch(_arrow(FancyArrowPatch, (-0.36, row + 0.24), (0.04, row + 0.24), COLORS["BlueLine"]))
    for column, value in frame.leaving:
        ax.add_patch(_arrow(FancyArrowPatch, (column + 0.5, rows), (column + 0.5, rows + 0.3), COLORS["GreenLine"]))
        ax.text(
            column + 0.5, rows + 0.46, plain_number(value), fontsize=12, weight="bold", color=COLORS["GreenLine"],
            ha="center", va="center",
        )  # fmt: skip
    ax.set(xlim=(-0.85, columns + 0.1), ylim=(rows + 0.7, -0.35), aspect="equal")
    ax.set_title(
        f"cycle {frame.cycle + 1} of {run.cycles}: {int(frame.busy.sum())} of {rows * columns} PEs multiply",
        fontsize=11,
        loc="center",
        color=COLORS["primary"],
    )
    ax.set_axis_off()
    return ax


def _arrow(patch: Any, start: tuple[float, float], end: tuple[float, float], color: str) -> Any:
    return patch(start, end, arrowstyle="-|>", mutation_scale=10, color=color, linewidth=1.3)


def plain_number(value: float) -> str:
    """Return an operand as text: at most four digits, with a typographic minus sign."""
    return f"{value:.4g}".replace("-", "−")


@drawn
def utilisation_teeth(
    ax: Axes,
    side: int = 128,
    largest: int = 1024,
    rest: int = 4096,
    dataflow: Stationary = "ws",
    fold_overlap: FoldOverlap = "load",
) -> Axes:
    """Draw utilisation over each of the three sizes of a matrix product, with the other two fixed.

    Parameters
    ----------
    ax
        Axes to draw into.
    side
        Rows and columns of the array.
    largest
        Right edge.
    rest
        Value of the other two sizes.
    dataflow, fold_overlap
        As in :func:`mlsys.models.systolic.count_systolic`.

    Returns
    -------
    Axes
        Sizes mapped to the array give a sawtooth, one tooth per fold; the streamed one rises smoothly.
    """
    sizes = teeth_axes(ax, side, largest)
    counted = {name: over_size(name, sizes, (rest, rest, rest), side, dataflow, fold_overlap) for name in "MNK"}
    curves: dict[bytes, list[str]] = {}  # two sizes along a square array give one curve
    for name, counts in counted.items():
        curves.setdefault(counts.utilisation.tobytes(), []).append(name)
    for names, color, dash in zip(curves.values(), CYCLE, DASHES, strict=False):
        share = 100 * counted[names[0]].utilisation
        ax.plot(sizes, share, linestyle=dash, color=color, linewidth=1.8, label=f"over {' or '.join(names)}")
    ax.set(xlabel=f"size; the other two are {rest:,}", ylabel=f"utilisation of {side} × {side} PEs, %")
    ax.legend(loc="lower right", fontsize=9)
    return ax


def teeth_axes(ax: Axes, side: int, largest: int) -> npt.NDArray[np.int64]:
    """Set up axes of utilisation in percent over a size, with a line at each fold; return the sizes."""
    apply_style(ax)
    ax.set(xlim=(0, largest), ylim=(0, 105))
    ax.set_xticks(range(0, largest + 1, side))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    return np.arange(1, largest + 1)


def over_size(
    name: str,
    sizes: npt.NDArray[np.int64],
    shape: tuple[int, int, int],
    side: int,
    dataflow: Stationary,
    fold_overlap: FoldOverlap,
) -> ArrayCounts:
    """Return the counts on a square array of products (M, N, K) of which one size varies."""
    m, n, k = (sizes if each == name else size for each, size in zip("MNK", shape, strict=True))
    return count_systolic(m, n, k, side, side, dataflow, fold_overlap=fold_overlap)


@drawn
def busy_elements(ax: Axes, runs: Mapping[str, Run]) -> Axes:
    """Draw the number of processing elements (PEs) that multiply in each cycle of a fold.

    Parameters
    ----------
    ax
        Axes to draw into.
    runs
        By label: simulations of the same array, with ``record=True``.

    Returns
    -------
    Axes
        One curve for each run; the area under it is the number of multiplications.
    """
    elements = 0
    for (label, run), color, dash in zip(runs.items(), CYCLE, DASHES, strict=False):
        busy = [int(frame.busy.sum()) for frame in run.frames]
        elements = run.frames[0].busy.size
        ax.plot(range(1, len(busy) + 1), busy, color=color, linestyle=dash, linewidth=1.8, label=label)
    ax.axhline(elements, color=COLORS["axis"], linestyle=":", linewidth=1.2)
    ax.annotate("all PEs", (1, elements), xytext=(0, 3), textcoords="offset points", color=COLORS["note"], fontsize=9)
    ax.set(xlabel="cycle", ylabel="PEs that multiply", xlim=(0, None), ylim=(0, 1.15 * elements))
    ax.legend(loc="center right", fontsize=9)
    return apply_style(ax)


@chart
def energy_per_mac_levels(ax: Axes, baselines: Sequence[EnergyPerMac]) -> Axes:
    """Draw the energy of a multiply-accumulate on several machines, with a mark per level and for the sum.

    Parameters
    ----------
    ax
        Axes to draw into.
    baselines
        Result of :func:`mlsys.models.systolic.energy_baselines`.

    Returns
    -------
    Axes
        With a logarithmic axis; levels without energy have no mark.
    """
    rows = range(len(baselines))
    totals = [float(item.total.m_as("pJ")) for item in baselines]
    ax.plot(totals, rows, "|", color=COLORS["primary"], markersize=26, markeredgewidth=2.4, label="sum", zorder=2)
    for row, total in zip(rows, totals, strict=True):
        ax.annotate(
            f"{total:,.4g} pJ", (total, row), xytext=(12, 0), textcoords="offset points", va="center", fontsize=10
        )
    for level, marker in zip(_LEVELS, MARKERS, strict=False):
        spent = [float(item.parts[level].m_as("pJ")) if level in item.parts else 0.0 for item in baselines]
        marks = [(energy, row) for row, energy in enumerate(spent) if energy]
        if marks:
            ax.plot(
                *zip(*marks, strict=True), marker, color=COLORS[_LEVELS[level]], markeredgecolor="white",
                markersize=11, label=level, zorder=3,
            )  # fmt: skip
    ax.set_yticks(list(rows), [item.name for item in baselines])
    ax.set(ylim=(len(baselines) - 0.4, -0.6), xlabel="energy of one multiply-accumulate, pJ (logarithmic)")
    decades(ax, "x", -1, 4)
    ax.set_xlim(0.1, 2e4)
    ax.tick_params(axis="y", labelsize=10)
    ax.legend(loc="lower right", fontsize=9)
    return ax
