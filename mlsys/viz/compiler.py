"""Figures of compilation: the gain of each pass, kernels before and after, measured against predicted speed-ups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from mlsys.frozen import FrozenDict
from mlsys.measure.compile.passes import PASSES, PassResult
from mlsys.measure.compile.result import CompileResult
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, apply_style
from mlsys.viz.words import number, times

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

_PLATE = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1}
_LOOKS = {False: ("o", COLORS["BlueLine"], "weights as inputs"), True: ("s", COLORS["OrangeLine"], "weights frozen")}


LOOKS = FrozenDict(
    {
        "measured": ("BlueL", "BlueLine", ""),
        "predicted": ("VioletL", "VioletLine", ".."),
        "gain": ("GreenL", "GreenLine", "//"),
        "loss": ("OrangeL", "OrangeLine", "xx"),
    }
)
"""Fill, edge and hatch of bars for measurements, predictions, and gains and losses of a pass."""


def dress(bar: Rectangle, look: str) -> None:
    """Give a bar one of :data:`LOOKS`."""
    fill, line, hatch = LOOKS[look]
    bar.set(facecolor=COLORS[fill], edgecolor=COLORS[line], hatch=hatch)


def time_text(seconds: float) -> str:
    """Return a time as text in a suitable unit.

    Examples
    --------
    >>> time_text(0.0123), time_text(1.4e-5)
    ('12.3 ms', '14 µs')
    """
    return f"{number(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{number(seconds * 1e6)} µs"


def result_label(result: CompileResult) -> str:
    """Return network and batch, such as ``"resnet18, batch 8"``."""
    return f"{result.model}, batch {result.batch}"


class Waterfall:
    """Waterfall of the time saved by each pass, from eager to all passes; drawn once and updated often.

    Parameters
    ----------
    ax
        Axes to draw into; lengths are shares of the longest time.
    names
        Names of the steps: the first before any pass, then one per pass.
    """

    def __init__(self, ax: Axes, names: Sequence[str] = PASSES) -> None:
        from matplotlib.patches import Rectangle

        apply_style(ax)
        rows = (*names, "all passes")
        ax.set(xlim=(0, 1.5), ylim=(len(rows) - 0.4, -0.6))
        ax.set_yticks(range(len(rows)), rows)
        ax.set_xticks([])
        ax.grid(False)
        ax.spines["bottom"].set_visible(False)
        self.bars = [Rectangle((0, row - 0.32), 0, 0.64, zorder=3) for row in range(len(rows))]
        for bar in self.bars:
            ax.add_patch(bar)
        self.texts = [ax.text(0, row, "", va="center", fontsize=9, color=COLORS["primary"]) for row in range(len(rows))]
        self.steps = [
            ax.plot([0, 0], [row - 0.32, row + 1.32], ":", color=COLORS["axis"], linewidth=1, zorder=2)[0]
            for row in range(len(names))
        ]
        self.artists: tuple[Artist, ...] = (*self.steps, *self.bars, *self.texts)

    def hide(self) -> None:
        """Hide everything that shows a measurement."""
        for artist in self.artists:
            artist.set_visible(False)

    def show(self, result: PassResult) -> None:
        """Update the waterfall: factors beside the bars, times and kernel counts at both ends."""
        for artist in self.artists:
            artist.set_visible(True)
        seconds = [step.timing.median.m_as("s") for step in result.steps]
        most, first, last = max(seconds), result.steps[0], result.steps[-1]
        spans = [(0.0, seconds[0]), *pairwise(seconds), (0.0, seconds[-1])]
        says = [
            f"{time_text(seconds[0])}, {first.kernels} kernels",
            *(times(factor.value) for factor in result.factors),
            f"{time_text(seconds[-1])}, {last.kernels} kernels: {times(result.total.value)}",
        ]
        for index, (bar, text, span, words) in enumerate(zip(self.bars, self.texts, spans, says, strict=True)):
            left, right = (end / most for end in sorted(span))
            whole = index in (0, len(spans) - 1)
            dress(bar, "measured" if whole else "gain" if span[1] <= span[0] else "loss")
            bar.set(x=left, width=right - left)
            text.set(x=right + 0.02, text=words)
        for step, after in zip(self.steps, seconds, strict=True):
            step.set_xdata([after / most] * 2)


@drawn
def pass_waterfall(ax: Axes, result: PassResult) -> Axes:
    """Draw the time saved by each pass, from eager to all passes together.

    Parameters
    ----------
    ax
        Axes to draw into.
    result
        Measurements of a network with one more pass at a time.

    Returns
    -------
    Axes
        With the factor of each pass beside its bar, and the number of remaining kernels.
    """
    from matplotlib.ticker import MaxNLocator

    Waterfall(ax, [step.name for step in result.steps]).show(result)
    longest = max(step.timing.median.m_as("ms") for step in result.steps)
    ticks = [tick for tick in MaxNLocator(5).tick_values(0, longest) if tick <= longest]
    ax.set_xticks([tick / longest for tick in ticks], [number(tick) for tick in ticks])
    ax.spines["bottom"].set_visible(True)
    ax.spines["bottom"].set_bounds(0, 1)
    ax.set_xlabel("time of one call, ms (medians)", x=1 / 3)
    return ax


@chart
def kernel_bars(ax: Axes, results: Sequence[CompileResult]) -> Axes:
    """Draw the kernel count of a call: eager, compiled with the weights as inputs, and compiled with frozen weights.

    Parameters
    ----------
    ax
        Axes to draw into.
    results
        Results at one batch size per network, frozen and not.
    """
    plain = {result.model: result for result in results if not result.frozen}
    frozen = {result.model: result for result in results if result.frozen}
    names = sorted((name for name in plain if name in frozen), key=lambda name: plain[name].operators)
    groups = (
        ("eager", [plain[name].operators for name in names], COLORS["primary"], ""),
        ("compiled", [plain[name].kernels for name in names], COLORS["BlueLine"], "//"),
        ("compiled, weights frozen", [frozen[name].kernels for name in names], COLORS["OrangeLine"], ".."),
    )
    for shift, (label, counts, color, hatch) in zip((0.27, 0.0, -0.27), groups, strict=True):
        places = np.arange(len(names)) + shift
        ax.barh(places, counts, height=0.26, color=color, edgecolor="white", hatch=hatch, label=label)
        for index, count in zip(places, counts, strict=True):
            ax.text(count, index, f" {count}", va="center", fontsize=9)
    ax.set_yticks(np.arange(len(names)), names)
    ax.set(xlabel="kernels of one call")
    ax.grid(False, axis="y")
    ax.legend(loc="lower right", fontsize=9)
    return ax


@chart
def speedup_scatter(ax: Axes, results: Sequence[CompileResult], labels: Sequence[tuple[str, int, bool]] = ()) -> Axes:
    """Draw measured against predicted speed-up, with the interval of each measurement.

    Parameters
    ----------
    ax
        Axes to draw into.
    results
        Results; those without a prediction are not drawn.
    labels
        (network, batch, frozen) of the points to label.

    Returns
    -------
    Axes
        With the line of agreement and a band of a factor of 1.25 on either side.
    """
    for kind, (marker, color, name) in _LOOKS.items():
        chosen = [result for result in results if result.predicted is not None and result.frozen is kind]
        ratios = [result.speedup for result in chosen]
        xs = [result.predicted.speedup for result in chosen if result.predicted]
        ys = [ratio.value for ratio in ratios]
        below = [max(ratio.value - ratio.low, 0) for ratio in ratios]
        above = [max(ratio.high - ratio.value, 0) for ratio in ratios]
        ax.errorbar(
            xs, ys, yerr=(below, above), fmt=marker, color=color, markersize=7, markeredgecolor="white",
            elinewidth=1.2, label=name, zorder=3,
        )  # fmt: skip
        for result, x, y in zip(chosen, xs, ys, strict=True):
            if (result.model, result.batch, result.frozen) in labels:
                ax.annotate(
                    result_label(result),
                    (x, y),
                    xytext=(-8 if kind else 8, -3),
                    textcoords="offset points",
                    ha="right" if kind else "left",
                    fontsize=9,
                    color=color,
                    bbox=_PLATE,
                    zorder=2,
                )
    ax.set(xscale="log", yscale="log")
    low = 0.85 * min(ax.get_xlim()[0], ax.get_ylim()[0])
    high = 1.15 * max(ax.get_xlim()[1], ax.get_ylim()[1])
    ends = np.array([low, high])
    ax.fill_between(ends, ends / 1.25, ends * 1.25, color=COLORS["GreenL"], alpha=0.6, linewidth=0, zorder=1)
    ax.plot(ends, ends, color=COLORS["primary"], linewidth=1, zorder=2, label="as predicted, ± a quarter")
    ax.axhline(1, color=COLORS["axis"], linewidth=1, linestyle=":", zorder=1)
    ticks = [tick for tick in (0.25, 0.5, 1, 2, 4, 8) if low <= tick <= high]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}×" for tick in ticks])
        axis.set_ticks([], minor=True)
    ax.set(xlim=ends, ylim=ends, xlabel="predicted speed-up", ylabel="measured speed-up")
    ax.legend(loc="upper left", fontsize=9)
    return ax
