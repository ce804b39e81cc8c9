"""Pictures of Amdahl's law: the map of speedups, and where the time goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.formulas import amdahl_speedup, device_bound_fraction, gustafson_speedup, required_parallel_fraction
from mlsys.viz.style import COLORS, CYCLE, apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["scaling_laws", "speedup_map", "time_bars"]

_LEVELS = (1, 2, 5, 10, 20, 50, 100, 200, 500)


def speedup_map(
    ax: Axes, marks: Iterable[tuple[float, float, str]] = (), fractions: tuple[float, float] = (0.8, 0.999)
) -> Axes:
    """Draw the end-to-end speedup over accelerator speedup and accelerated share.

    Parameters
    ----------
    ax
        Axes to draw into.
    marks
        Points (accelerator speedup, parallel fraction, label) to point out.
    fractions
        Smallest and largest parallel fraction, both below 1.

    Returns
    -------
    Axes
        With the host-bound side below the dashed line and the device-bound side above.
    """
    # The axis is the serial share 1 - p on a log scale: that is what bounds the speedup.
    serial = np.geomspace(1 - fractions[0], 1 - fractions[1], 200)
    gain = np.geomspace(1, 1000, 200)
    total = amdahl_speedup.bare(1 - serial[:, None], gain[None, :])
    filled = ax.contourf(gain, serial, total, levels=[*_LEVELS, 1000], norm="log", cmap="cividis", alpha=0.9)
    ax.contour(gain, serial, total, levels=_LEVELS[1:], colors="white", linewidths=0.9)
    for level in _LEVELS[2:]:
        share = required_parallel_fraction.bare(level, 600.0)
        if fractions[0] < share < fractions[1]:
            ax.text(600, 1 - share, f"{level}×", color="white", fontsize=9, ha="center", va="bottom")
    ax.plot(gain, 1 - device_bound_fraction.bare(gain), color="white", linestyle="--", linewidth=1.8)
    ax.annotate("device-bound", (1.25, 0.0016), color="white", fontsize=9, weight="bold")
    ax.annotate("host-bound", (60, 0.15), color="white", fontsize=9, weight="bold")
    for speedup, fraction, label in marks:
        ax.plot(speedup, 1 - fraction, marker="o", markersize=8, color="white", markeredgecolor=COLORS["primary"])
        ax.annotate(
            label,
            (speedup, 1 - fraction),
            xytext=(8, -32),
            textcoords="offset points",
            fontsize=9,
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": COLORS["grid"], "alpha": 0.95},
        )
    ax.set(xscale="log", yscale="log", xlabel="accelerator speedup S", ylabel="accelerated share p")
    ax.set_ylim(1 - fractions[0], 1 - fractions[1])
    ticks = [fraction for fraction in (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999) if fraction <= fractions[1]]
    ax.set_yticks([1 - fraction for fraction in ticks], [f"{fraction:g}" for fraction in ticks])
    ax.minorticks_off()
    ax.grid(False)
    ax.figure.colorbar(filled, ax=ax, label="end-to-end speedup", ticks=_LEVELS, format="%g×")
    return ax


def time_bars(ax: Axes, parallel_fraction: float, speedups: Sequence[float]) -> Axes:
    """Draw where the time goes before and after: host and accelerated part, stacked.

    Parameters
    ----------
    ax
        Axes to draw into.
    parallel_fraction
        Accelerated share of the original time.
    speedups
        Accelerator speedups, one bar each; 1 is the program before.
    """
    apply_style(ax)
    labels = ["before" if gain == 1 else f"S = {gain:,.0f}" for gain in speedups]
    host = np.full(len(speedups), 1 - parallel_fraction)
    device = parallel_fraction / np.asarray(speedups, dtype=float)
    rows = np.arange(len(speedups))[::-1]
    ax.barh(rows, host, color=COLORS["OrangeLine"], label="host (stays)")
    ax.barh(
        rows,
        device,
        left=host,
        color=COLORS["BlueL"],
        edgecolor=COLORS["BlueLine"],
        hatch="//",
        label="accelerated part",
    )
    for row, before, after in zip(rows, host, device, strict=True):
        total = before + after
        ax.annotate(f"{1 / total:.1f}×", (total, row), xytext=(6, -4), textcoords="offset points", fontsize=10)
    ax.set_yticks(rows, labels)
    ax.set(xlabel="run time, share of the original", xlim=(0, 1.12))
    ax.grid(axis="y", visible=False)
    ax.legend(loc="lower right")
    return ax


def scaling_laws(ax: Axes, parallel_fraction: float, largest: float = 1000) -> Axes:
    """Draw Amdahl's fixed problem against Gustafson's growing one, over processors.

    Parameters
    ----------
    ax
        Axes to draw into.
    parallel_fraction
        Parallel share: of the time on one processor for Amdahl, on many for Gustafson.
    largest
        Number of processors at the right edge.
    """
    apply_style(ax)
    processors = np.geomspace(1, largest, 200)
    curves = (
        ("problem grows with the machine (Gustafson)", gustafson_speedup.bare(parallel_fraction, processors), "-"),
        ("problem stays the same (Amdahl)", amdahl_speedup.bare(parallel_fraction, processors), "--"),
    )
    for (label, values, line), color in zip(curves, CYCLE, strict=False):
        ax.plot(processors, values, line, color=color, label=label)
    ax.axhline(
        1 / (1 - parallel_fraction), color=COLORS["RedLine"], linewidth=1, linestyle=":", label="Amdahl's ceiling"
    )
    ax.set(xscale="log", yscale="log", xlabel="processors", ylabel="speedup", xlim=(1, largest))
    ax.legend(loc="upper left")
    return ax
