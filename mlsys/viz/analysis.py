"""Pictures of an analysis: every layer under the roof, and what each takes of the time."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from mlsys.hardware.device import Device
from mlsys.models.analysis import Analysis
from mlsys.viz.roofline import layer_scatter, roofs
from mlsys.viz.style import COLORS, setup_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["analysis_alt_text", "analysis_figure", "estimates_under_roof", "inline_svg"]

_CAUSES = (
    ("compute", "^", COLORS["BlueLine"]),
    ("memory", "o", COLORS["OrangeLine"]),
    ("launch", "s", COLORS["VioletLine"]),
)


def estimates_under_roof(ax: Axes, analysis: Analysis, device: Device) -> Axes:
    """Draw the rate that every operator is expected to attain, under the roof of the device.

    Parameters
    ----------
    ax
        Axes to draw into.
    analysis
        Of a network on ``device``; operators without arithmetic have no place under a roof.
    device
        The device.
    """
    placed = [one for one in analysis.operators if one.flops.magnitude > 0]
    at = [float(one.intensity.m_as("FLOP/byte")) for one in placed] or [1.0]
    ridge = float(analysis.ridge.m_as("FLOP/byte"))
    roofs(ax, [device], (), analysis.precision, (min(*at, ridge, 0.5) / 2, max(*at, ridge) * 3))
    rates = [float((one.flops / one.estimate).m_as("TFLOP/s")) for one in placed]
    for cause, marker, color in _CAUSES:
        here = [one for one in placed if one.held_by == cause]
        if here:
            ax.scatter(
                [float(one.intensity.m_as("FLOP/byte")) for one in here],
                [float((one.flops / one.estimate).m_as("TFLOP/s")) for one in here],
                s=[18 + 900 * one.share for one in here],
                marker=marker,
                color=color,
                edgecolor="white",
                alpha=0.85,
                label=f"held by {cause}: {len(here)}",
                zorder=3,
            )
    ax.set_ylim(bottom=min([ax.get_ylim()[0], *(low / 3 for low in rates)]))
    ax.set(ylabel=f"rate, TFLOP/s ({analysis.precision}, dense)")
    ax.legend(loc="upper left", fontsize=8)
    return ax


def analysis_figure(analysis: Analysis, device: Device) -> Figure:
    """Return a figure of two panels: the layers under the roof, and their shares of the least time."""
    figure, whole, _, plt = setup_plot(figsize=(7.2, 7.6))
    whole.remove()
    upper, lower = figure.subplots(2, 1)
    estimates_under_roof(upper, analysis, device)
    upper.set_title("Calibrated estimate: every layer under the roof")
    layer_scatter(lower, analysis.roofline, float(analysis.ridge.m_as("FLOP/byte")))
    lower.set_title("Roofline: each layer's share of the least time")
    plt.close(figure)
    return figure


def analysis_alt_text(analysis: Analysis) -> str:
    """Return what the figure shows, in words."""
    side = "above" if analysis.intensity >= analysis.ridge else "below"
    causes = ", ".join(f"{analysis.share_held_by(cause):.0%} by {cause}" for cause, _, _ in _CAUSES)
    return (
        f"Roofline of {analysis.device} in {analysis.precision} with the {len(analysis.operators)} operators of "
        f"{analysis.workload}: as a whole {analysis.intensity.m_as('FLOP/byte'):.3g} FLOP/byte, {side} the ridge of "
        f"{analysis.ridge.m_as('FLOP/byte'):.3g}. Of the estimated time {causes}. Below: each operator's share of "
        "the least time over its intensity."
    )


def inline_svg(figure: Figure, alt: str) -> str:
    """Return a figure as an SVG element for an HTML page, with its text alternative and no outside link."""
    import html

    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    label = html.escape(alt, quote=True)
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
