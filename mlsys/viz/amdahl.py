"""Figures of Amdahl's law: the map of speedups, and the breakdown of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.formulas import (
    amdahl_ceiling,
    amdahl_speedup,
    device_bound_fraction,
    gustafson_speedup,
    required_parallel_fraction,
)
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, HALO, apply_style, vector_colorbar
from mlsys.viz.words import percent, times

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text

_LEVELS = (1, 2, 5, 10, 20, 50, 100, 200, 500)


@drawn
def speedup_map(
    ax: Axes, marks: Iterable[tuple[float, float, str]] = (), fractions: tuple[float, float] = (0.8, 0.999)
) -> Axes:
    """Draw the end-to-end speedup over accelerator speedup and accelerated share.

    Parameters
    ----------
    ax
        Axes to draw into.
    marks
        Points (accelerator speedup, parallel fraction, label) to mark.
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
            ax.text(600, 1 - share, f"{level}×", color="white" if level < 50 else COLORS["primary"], fontsize=9,
                    ha="center", va="bottom")  # fmt: skip
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
    vector_colorbar(filled, ax, label="end-to-end speedup", ticks=_LEVELS, format="%g×")
    return ax


class TimeBars:
    """Stacked bars of host and accelerated time for several runs of a program; drawn once and updated often.

    Parameters
    ----------
    ax
        Axes to draw into; its vertical axis is the share of the original time.
    names
        Names of the runs, one bar each.
    """

    def __init__(self, ax: Axes, names: Sequence[str]) -> None:
        from matplotlib.patches import Rectangle

        apply_style(ax)
        ax.set(xlim=(-0.55, len(names) - 0.45), ylim=(0, 128))
        ax.set_xticks(range(len(names)), names)
        ax.set_yticks(range(0, 101, 25), [f"{share}%" for share in range(0, 101, 25)])
        ax.grid(False, axis="x")
        self.bars: list[tuple[Rectangle, Rectangle]] = []
        self.labels: list[tuple[Text, ...]] = []
        for index in range(len(names)):
            parts = (("host, stays serial", "Orange", "///"), ("accelerated part", "Blue", ""))
            host, device = (
                Rectangle((index - 0.32, 0), 0.64, 0, facecolor=COLORS[f"{color}L"], edgecolor=COLORS[f"{color}Line"],
                          hatch=hatch, linewidth=1.2, zorder=3, label=None if index else name)
                for name, color, hatch in parts
            )  # fmt: skip
            ax.add_patch(host)
            ax.add_patch(device)
            self.bars.append((host, device))
            self.labels.append(
                tuple(
                    ax.text(index, 0, "", ha="center", va=va, fontsize=9, weight=weight, color=COLORS["primary"],
                            bbox=HALO if va == "center" else None, zorder=4)
                    for va, weight in (("center", "normal"), ("center", "normal"), ("bottom", "bold"))
                )
            )  # fmt: skip
        ax.legend(
            handles=list(self.bars[0])[::-1], loc="upper right", fontsize=9, frameon=False, borderaxespad=0,
            handlelength=1.6,
        )  # fmt: skip
        (self.guide,) = ax.plot([-0.32, len(names) - 0.68], [0, 0], ":", color=COLORS["OrangeLine"], zorder=3.5)
        self.guide.set_linewidth(1)
        bars, labels = ([artist for row in rows for artist in row] for rows in (self.bars, self.labels))
        self.artists: tuple[Artist, ...] = (*bars, self.guide, *labels)

    def show(self, parallel_fraction: float, speedups: Sequence[float]) -> None:
        """Update the bars for an accelerated share and a speedup per run; speedup 1 is the original program."""
        host = 100 * (1 - parallel_fraction)
        self.guide.set_ydata([host, host])
        for pair, labels, gain in zip(self.bars, self.labels, speedups, strict=True):
            device = 100 * parallel_fraction / gain
            pair[0].set_height(host)
            pair[1].set(y=host, height=device)
            for label, height, middle in zip(labels, (host, device), (host / 2, host + device / 2), strict=False):
                label.set(visible=gain == 1 and height > 9, y=middle, text=percent(height / 100))
            labels[2].set(y=host + device + 2, text=percent((host + device) / 100), visible=gain > 1)


@drawn
def time_bars(ax: Axes, parallel_fraction: float, speedups: Sequence[float]) -> Axes:
    """Draw stacked bars of host and accelerated time, before and after acceleration.

    Parameters
    ----------
    ax
        Axes to draw into.
    parallel_fraction
        Accelerated share of the original time.
    speedups
        Accelerator speedups, one bar each; 1 is the original program.
    """
    TimeBars(ax, ["before" if gain == 1 else f"S = {gain:,.0f}" for gain in speedups]).show(parallel_fraction, speedups)
    ax.set(ylabel="run time, share of the original")
    return ax


class SpeedupCurve:
    """Curve of program speedup against accelerator speedup, with its ceiling.

    Parameters
    ----------
    ax
        Axes with both scales logarithmic and their limits set.
    """

    def __init__(self, ax: Axes) -> None:
        left, right = ax.get_xlim()
        self.gains = np.geomspace(left, right, 91)
        red = COLORS["RedLine"]
        (self.ceiling,) = ax.plot([left, right], [1, 1], "--", color=red, linewidth=1.4, zorder=2.5)
        (self.curve,) = ax.plot(self.gains, self.gains, color=COLORS["BlueLine"], linewidth=2.4, zorder=3)
        self.label = ax.text(left * 1.1, 1, "", color=red, va="bottom", fontsize=9, bbox=HALO, zorder=4)
        self.artists: tuple[Artist, ...] = (self.ceiling, self.label, self.curve)

    def show(self, parallel_fraction: float) -> None:
        """Update the curve for an accelerated share."""
        ceiling = amdahl_ceiling.bare(parallel_fraction)
        self.curve.set_ydata(amdahl_speedup.bare(parallel_fraction, self.gains))
        self.ceiling.set_ydata([ceiling, ceiling])
        self.label.set(y=min(ceiling * 1.04, 0.7 * self.gains[-1]), text=f"ceiling {times(ceiling)}")


@chart
def scaling_laws(ax: Axes, parallel_fraction: float, largest: float = 1000) -> Axes:
    """Draw Amdahl's (fixed problem) and Gustafson's (scaled problem) speedup over the number of processors.

    Parameters
    ----------
    ax
        Axes to draw into.
    parallel_fraction
        Parallel share: of the time on one processor for Amdahl, on many for Gustafson.
    largest
        Number of processors at the right edge.
    """
    ax.set(xscale="log", yscale="log", xlabel="processors", ylabel="speedup", xlim=(1, largest), ylim=(0.8, largest))
    fixed = SpeedupCurve(ax)
    fixed.show(parallel_fraction)
    fixed.curve.set_label("problem stays the same (Amdahl)")
    ax.plot(
        fixed.gains, gustafson_speedup.bare(parallel_fraction, fixed.gains), "-.", color=COLORS["OrangeLine"],
        label="problem grows with the machine (Gustafson)", zorder=3,
    )  # fmt: skip
    ax.legend(loc="upper left")
    return ax
