"""Figures of an analysis: every layer under the roof, and its share of the time."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlsys.hardware.device import Device
from mlsys.models.analysis import Analysis
from mlsys.viz.roofline import layer_scatter, roofs
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, setup_plot
from mlsys.viz.words import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CAUSES = (
    ("compute", "^", COLORS["BlueLine"]),
    ("memory", "o", COLORS["OrangeLine"]),
    ("launch", "s", COLORS["VioletLine"]),
)


@drawn
def estimates_under_roof(ax: Axes, analysis: Analysis, device: Device) -> Axes:
    """Draw the estimated rate of every operator under the roof of the device.

    Parameters
    ----------
    ax
        Axes to draw into.
    analysis
        Analysis of a network on ``device``; operators without arithmetic are not drawn.
    device
        The device.
    """
    placed = [operator for operator in analysis.operators if operator.flops.magnitude > 0]
    at = [float(point.intensity.m_as("FLOP/byte")) for point in placed] or [1.0]
    ridge = float(analysis.ridge.m_as("FLOP/byte"))
    roofs(ax, [device], (), analysis.precision, (min(*at, ridge, 0.5) / 2, max(*at, ridge) * 3))
    rates = [float((point.flops / point.estimate).m_as("TFLOP/s")) for point in placed]
    for cause, marker, color in _CAUSES:
        here = [point for point in placed if point.limited_by == cause]
        if here:
            ax.scatter(
                [float(point.intensity.m_as("FLOP/byte")) for point in here],
                [float((point.flops / point.estimate).m_as("TFLOP/s")) for point in here],
                s=[18 + 900 * point.share for point in here],
                marker=marker,
                color=color,
                edgecolor="white",
                alpha=0.85,
                label=f"limited by {cause}: {len(here)}",
                zorder=3,
            )
    ax.set_ylim(bottom=min([ax.get_ylim()[0], *(low / 3 for low in rates)]))
    ax.set(ylabel=f"rate, TFLOP/s ({analysis.precision}, dense)")
    ax.legend(loc="upper left", fontsize=9)
    return ax


@chart
def estimate_ranges(ax: Axes, analyses: Sequence[Analysis]) -> Axes:
    """Draw the estimate of each analysis with its 80 % range, over a bar up to the least time.

    Parameters
    ----------
    ax
        Axes to draw into.
    analyses
        Analyses of one network on one or several devices.
    """
    rows = range(len(analyses))
    times = [
        [float(time.m_as("ms")) for time in (analysis.bound, analysis.estimate, *analysis.range)]
        for analysis in analyses
    ]
    bounds, estimates, lows, highs = zip(*times, strict=True)
    ax.barh(rows, bounds, height=0.5, color=COLORS["BlueL"], edgecolor=COLORS["BlueLine"], label="at least (roofline)")
    ax.hlines(rows, lows, highs, color=COLORS["OrangeLine"], linewidth=2.2, label="80 % range", zorder=3)
    for ends in (lows, highs):
        ax.plot(ends, rows, "|", color=COLORS["OrangeLine"], markersize=11, markeredgewidth=2, zorder=3)
    ax.plot(estimates, rows, "D", color=COLORS["OrangeLine"], markeredgecolor="white", markersize=8, label="estimate",
            zorder=4)  # fmt: skip
    for row, (_, estimate, low, high) in enumerate(times):
        message = f"{number(estimate)} ms ({number(low)} to {number(high)}){_speed(analyses[row], analyses[0])}"
        ax.annotate(message, (high, row), xytext=(8, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(rows, [analysis.device for analysis in analyses])
    wide = max(highs) > 30 * min(bounds)
    ax.set(xlabel="time of one pass, ms", ylim=(len(analyses) - 0.5, -0.6), xscale="log" if wide else "linear")
    ax.set_xlim(min(bounds) / 2 if wide else 0, max(highs) * (12 if wide else 1.6))
    ax.grid(False, axis="y")
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, fontsize=9)
    return ax


def _speed(analysis: Analysis, first: Analysis) -> str:
    """Return the speed relative to the first device, or that the difference is not significant; empty for the first."""
    if analysis is first:
        return ""
    if not analysis.differs_from(first):
        return "\nno significant difference from the first"
    _, low, high = analysis.speed_over(first)
    probably = "probably " if analysis.overlaps(first) else ""
    return f"\n{probably}{number(low)} to {number(high)} times as fast as the first"


@drawn
def comparison_figure(analyses: Sequence[Analysis]) -> Figure:
    """Return a figure of the estimates of one network on several devices, with their 80 % ranges."""
    first = analyses[0]
    figure, ax, _, plt = setup_plot(figsize=(7.6, 1.6 + 0.45 * len(analyses)))
    estimate_ranges(ax, analyses)
    ax.set_title(f"{first.workload}, {first.batch_in_words}, {first.precision}", pad=26)
    plt.close(figure)
    return figure


@drawn
def analysis_figure(analysis: Analysis, device: Device) -> Figure:
    """Return a figure of three panels: layers under the roof, their shares of the bound, and the total time."""
    figure, whole, _, plt = setup_plot(figsize=(7.2, 9.2))
    whole.remove()
    upper, lower, last = figure.subplots(3, 1, height_ratios=(4, 4, 1))
    estimate_ranges(last, [analysis])
    last.set_yticks([])
    last.set_title("Whole network", pad=24)
    estimates_under_roof(upper, analysis, device)
    upper.set_title("Calibrated estimate: every layer under the roof")
    layer_scatter(lower, analysis.roofline, float(analysis.ridge.m_as("FLOP/byte")))
    lower.set_title("Roofline: each layer's share of the least time")
    plt.close(figure)
    return figure


def analysis_alt_text(analysis: Analysis) -> str:
    """Return the alternative text of the figure."""
    side = "above" if analysis.intensity >= analysis.ridge else "below"
    causes = ", ".join(f"{analysis.share_limited_by(cause):.0%} by {cause}" for cause, _, _ in _CAUSES)
    times = (analysis.bound, analysis.estimate, *analysis.range)
    least, estimate, low, high = (number(time.m_as("ms")) for time in times)
    return (
        f"Roofline of {analysis.device} in {analysis.precision} with the {len(analysis.operators)} operators of "
        f"{analysis.workload}: as a whole {analysis.intensity.m_as('FLOP/byte'):.3g} FLOP/byte, {side} the ridge of "
        f"{analysis.ridge.m_as('FLOP/byte'):.3g}. Of the estimated time {causes}. Below: each operator's share of "
        f"the least time over its intensity, and the whole network: at least {least} ms, estimated {estimate} ms, 80 % "
        f"range {low} to {high} ms."
    )


def inline_svg(figure: Figure, alt: str) -> str:
    """Return a figure as an SVG element for an HTML page, with alternative text and no external links."""
    import html

    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    label = html.escape(alt, quote=True)
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
