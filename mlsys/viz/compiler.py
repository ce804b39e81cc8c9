"""Pictures of compilation: what each pass is worth, kernels before and after, measured against predicted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from mlsys.bench.passes import PassResult
from mlsys.bench.result import CompileResult
from mlsys.viz.style import COLORS, apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["kernel_bars", "label_of", "pass_waterfall", "speedup_scatter"]

_PLATE = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
_LOOKS = {False: ("o", COLORS["BlueLine"], "weights as inputs"), True: ("s", COLORS["OrangeLine"], "weights frozen")}


def label_of(result: CompileResult) -> str:
    """Return network and batch, such as ``"resnet18, batch 8"``."""
    return f"{result.model}, batch {result.batch}"


def pass_waterfall(ax: Axes, result: PassResult) -> Axes:
    """Draw the time that each pass takes away, from eager down to all passes together.

    Parameters
    ----------
    ax
        Axes to draw into.
    result
        A network under one pass more at a time.

    Returns
    -------
    Axes
        With the factor of each pass beside its bar, and the kernels that are left.
    """
    apply_style(ax)
    times = [step.timing.median.m_as("ms") for step in result.steps]
    places = np.arange(len(times) + 1)
    names = [step.name for step in result.steps] + ["all passes"]
    ax.barh(places[0], times[0], height=0.6, color=COLORS["BlueL"], edgecolor=COLORS["BlueLine"])
    for place, (before, after) in enumerate(pairwise(times), start=1):
        gains = after <= before
        fill, line, hatch = ("GreenL", "GreenLine", "//") if gains else ("OrangeL", "OrangeLine", "..")
        left, width = min(before, after), abs(before - after)
        ax.barh(place, width, left=left, height=0.6, color=COLORS[fill], edgecolor=COLORS[line], hatch=hatch)
        ax.plot([after, after], [place - 0.3, place + 1.3], color=COLORS["axis"], linewidth=1, linestyle=":")
        factor = result.factors[place - 1]
        ax.text(max(before, after), place, f"  {factor.value:.2f}×", va="center", ha="left", fontsize=9)
    ax.plot([times[0], times[0]], [0.3, 1.3], color=COLORS["axis"], linewidth=1, linestyle=":")
    ax.barh(places[-1], times[-1], height=0.6, color=COLORS["BlueL"], edgecolor=COLORS["BlueLine"])
    total = f"  {times[-1]:.3g} ms, {result.total.value:.2f}× in all, {result.steps[-1].kernels} kernels"
    ax.text(times[-1], places[-1], total, va="center", ha="left", fontsize=9)
    ax.text(times[0], 0, f"  {times[0]:.3g} ms, {result.steps[0].kernels} kernels", va="center", ha="left", fontsize=9)
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.32 * max(times)), xlabel="time of one call, ms (medians)")
    ax.grid(False, axis="y")
    return ax


def kernel_bars(ax: Axes, results: Sequence[CompileResult]) -> Axes:
    """Draw the kernels of a call: eager, compiled with the weights as inputs, and frozen.

    Parameters
    ----------
    ax
        Axes to draw into.
    results
        At one batch of each network, frozen and not.
    """
    apply_style(ax)
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
        for place, count in zip(places, counts, strict=True):
            ax.text(count, place, f" {count}", va="center", fontsize=7.5)
    ax.set_yticks(np.arange(len(names)), names)
    ax.set(xlabel="kernels of one call")
    ax.grid(False, axis="y")
    ax.legend(loc="lower right", fontsize=9)
    return ax


def speedup_scatter(ax: Axes, results: Sequence[CompileResult], labels: Sequence[tuple[str, int, bool]] = ()) -> Axes:
    """Draw measured over predicted speed-up, with the interval of each measurement.

    Parameters
    ----------
    ax
        Axes to draw into.
    results
        Those with a prediction are drawn.
    labels
        Network, batch and whether frozen, of the points to name.

    Returns
    -------
    Axes
        With the line where both agree and a band of a quarter to either side.
    """
    apply_style(ax)
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
                    label_of(result),
                    (x, y),
                    xytext=(8, -3),
                    textcoords="offset points",
                    fontsize=8,
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
