"""Figures of an attribution: the breakdown of time by layer and by cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsys.measure.attribution import CAUSES, Attribution, Cause, LayerShare
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, HALO, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS: dict[Cause, tuple[str, str, str]] = {
    "compute": ("BlueLine", "", "arithmetic"),
    "memory": ("OrangeLine", "//", "bytes"),
    "launch": ("VioletLine", "..", "entering kernels"),
    "residual": ("RedLine", "xx", "not explained"),
}
"""Colour, hatch and label of each cause, the same in every figure."""
_HELD_BY = (
    ("compute", MARKERS[0], "BlueLine"),
    ("memory", MARKERS[1], "OrangeLine"),
    ("overhead", MARKERS[2], "RedLine"),
)


def _fill(cause: Cause) -> dict[str, Any]:
    color, hatch, _ = LOOKS[cause]
    return {"facecolor": COLORS[color], "hatch": hatch, "edgecolor": "white", "linewidth": 0.6}


@chart
def layer_waterfall(ax: Axes, attribution: Attribution) -> Axes:
    """Draw a waterfall of the layers' times divided by cause, ending with the time outside layers.

    Parameters
    ----------
    ax
        Axes to draw into.
    attribution
        Breakdown of the time.
    """
    names, left = [layer.name for layer in attribution.layers], 0.0
    rows = [layer.parts for layer in attribution.layers]
    rest: dict[Cause, float] = {"launch": attribution.entry, "residual": attribution.between}
    if sum(rest.values()) > 0:
        names, rows = [*names, "outside layers"], [*rows, {cause: rest.get(cause, 0.0) for cause in CAUSES}]
    for index, parts in enumerate(rows):
        for cause in CAUSES:
            if parts[cause] > 0:
                ax.barh(index, parts[cause], left=left, height=0.72, **_fill(cause))
                left += parts[cause]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(0, max(left, attribution.total) * 1.02)
    ax.set_xlabel("time from the start of the inference, ms")
    ax.grid(False, axis="y")
    _cause_legend(ax, attribution.shares)
    return ax


def _cause_legend(ax: Axes, shares: Mapping[Cause, float], at: tuple[float, float] = (1.0, 1.0)) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(**_fill(cause), label=f"{LOOKS[cause][2]}: {shares[cause]:.0f} %") for cause in CAUSES]
    ax.legend(handles=handles, fontsize=10, loc="upper right", bbox_to_anchor=at)


@drawn
def sunburst(ax: Axes, attribution: Attribution) -> Axes:
    """Draw two rings: causes inside, the layers' shares of each cause outside.

    Parameters
    ----------
    ax
        Axes to draw into; its frame is switched off.
    attribution
        Breakdown of the time.
    """
    shares = attribution.shares
    causes = [cause for cause in CAUSES if shares[cause] > 0.05]
    ax.pie(
        [shares[cause] for cause in causes], radius=0.62, startangle=90, counterclock=False,
        labels=[f"{LOOKS[cause][2]}\n{shares[cause]:.0f} %" if shares[cause] >= 22 else "" for cause in causes],
        labeldistance=0.45,
        textprops={"fontsize": 8, "ha": "center", "va": "center", "color": "white", "weight": "bold"},
        wedgeprops={"edgecolor": "white", "linewidth": 1.2}, colors=[COLORS[LOOKS[cause][0]] for cause in causes],
    )  # fmt: skip
    sizes, labels, colors = [], [], []
    for cause in causes:
        parts = [(layer.name, layer.parts[cause]) for layer in attribution.layers]
        outside = attribution.entry if cause == "launch" else attribution.between if cause == "residual" else 0.0
        for name, size in [*sorted(parts, key=lambda part: -part[1]), ("outside layers", outside)]:
            if size > 0:
                sizes.append(size)
                labels.append(name if size / attribution.total > 0.03 else "")
                colors.append(COLORS[LOOKS[cause][0].replace("Line", "L")])
    ax.pie(
        sizes, radius=1.0, startangle=90, counterclock=False, labels=labels, labeldistance=1.04, colors=colors,
        textprops={"fontsize": 8}, wedgeprops={"width": 0.36, "edgecolor": "white", "linewidth": 0.8},
    )  # fmt: skip
    ax.set(aspect="equal")
    _cause_legend(ax, shares, (1.28, 1.05))
    return ax


@chart
def layer_roofline(ax: Axes, attribution: Attribution) -> Axes:
    """Draw the rate that each layer attained under its roof.

    Data that fit in a cache move faster than those in main memory, and the attribution uses the bandwidth at each
    layer's size. So the slanted roof is a band from the main memory bandwidth to the fastest bandwidth used, and a
    bar above each layer marks its own roof.

    Parameters
    ----------
    ax
        Axes to draw into; both become logarithmic.
    attribution
        Breakdown of the time; layers without arithmetic are not drawn.
    """
    placed = [layer for layer in attribution.layers if layer.rate > 0 and layer.intensity > 0]
    _slanted_roofs(ax, attribution, placed)
    for bound, marker, color in _HELD_BY:
        here = [layer for layer in placed if layer.bound == bound]
        if here:
            at, rates = [layer.intensity for layer in here], [layer.rate / 1e9 for layer in here]
            own = [attribution.roof(layer) / 1e9 for layer in here]
            ax.vlines(at, rates, own, color=COLORS[color], linewidth=0.9, alpha=0.7, zorder=2)
            ax.plot(at, own, "_", color=COLORS[color], markersize=15, markeredgewidth=2.2, zorder=4)
            areas = [20 + 500 * layer.time / attribution.total for layer in here]
            edges = [COLORS["primary"] if layer.beats else "white" for layer in here]
            above = sum(layer.beats for layer in here)
            message = f"limited by {bound}: {len(here)}" + (
                f", {above} of them faster than their roof" if above else ""
            )
            ax.scatter(at, rates, areas, COLORS[color], marker=marker, edgecolors=edges, label=message, zorder=3)
    spots: dict[tuple[int, int], list[LayerShare]] = {}
    for layer in placed:
        spot = round(8 * np.log10(layer.intensity)), round(5 * np.log10(layer.rate))
        spots.setdefault(spot, []).append(layer)
    for group in spots.values():
        names = [layer.name for layer in group]
        words = ", ".join(names) if len(names) < 3 else f"{names[0]} … {names[-1]}"
        at_here = group[0].intensity, group[0].rate / 1e9
        ax.annotate(words, at_here, xytext=(8, -14), textcoords="offset points", fontsize=10, bbox=HALO)
    ax.set(xscale="log", yscale="log", xlabel="operations for each byte", ylabel="operations a second, G")
    ax.plot([], [], "_", color=COLORS["primary"], markersize=15, markeredgewidth=2.2, label="bar: a layer's own roof")
    ax.set_ylim(bottom=ax.get_ylim()[0] / 1.8)  # room for the name of the lowest
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    ax.legend(fontsize=9, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
    return ax


def _slanted_roofs(ax: Axes, attribution: Attribution, placed: Sequence[LayerShare]) -> None:
    """Draw the roof of the main memory, and that of the fastest bandwidth used for a layer."""
    at = [layer.intensity for layer in placed] or [attribution.ridge]
    span = np.geomspace(min(*at, attribution.ridge) / 3, max(*at, attribution.ridge) * 3, 200)

    def under(bandwidth: float) -> np.ndarray:
        return np.minimum(attribution.ops_per_s, bandwidth * span) / 1e9

    slowest, color = attribution.bytes_per_s, COLORS["primary"]
    fastest = max((layer.bandwidth for layer in placed), default=slowest)
    cached = fastest > 1.02 * slowest
    where = "if bytes come from main memory" if cached else "whatever the bytes"
    ax.plot(span, under(slowest), color=color, linewidth=2, label=f"roof {where}: {slowest / 1e9:.3g} GB/s", zorder=2)
    if cached:
        label = f"roof if they fit into a cache: {fastest / 1e9:.3g} GB/s"
        ax.plot(span, under(fastest), "--", color=color, linewidth=1.4, label=label, zorder=2)
        ax.fill_between(span, under(slowest), under(fastest), color=COLORS["grid"], alpha=0.5, zorder=1)


@chart
def energy_by_cause(ax: Axes, attribution: Attribution, energy_mj: float) -> Axes:
    """Draw the energy of an inference by cause as one bar, assuming constant power.

    Parameters
    ----------
    ax
        Axes to draw into.
    attribution
        Breakdown of the time.
    energy_mj
        Energy of one inference, mJ.
    """
    left, shares = 0.0, attribution.shares
    for cause in CAUSES:
        size = energy_mj * shares[cause] / 100
        ax.barh(0, size, left=left, height=0.5, **_fill(cause))
        left += size
    ax.set_yticks([])
    ax.set_ylim(-0.6, 1.4)
    ax.set_xlabel("energy of one inference, mJ (by time: power taken as constant)")
    _cause_legend(ax, shares)
    return ax
