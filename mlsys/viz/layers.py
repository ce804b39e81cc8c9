"""Figures of a network layer by layer: its kinds of operators, and the distribution of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError
from mlsys.hardware.device import Device
from mlsys.models.result import Result
from mlsys.viz.roofline import roofs
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, HALO, MARKERS
from mlsys.workloads import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FILLS = (
    ("BlueLine", ""),
    ("OrangeL", "//"),
    ("GreenLine", ""),
    ("VioletL", "\\\\"),
    ("RedLine", ""),
    ("BlueL", ".."),
    ("OrangeLine", "xx"),
    ("GreenL", "--"),
)
_BOUNDS = (("compute", "BlueLine", ""), ("memory", "OrangeL", "///"), ("launch", "VioletL", "..."))


def kinds_of(workload: Workload, most: int = len(_FILLS)) -> tuple[str, ...]:
    """Return the kinds of operators of a workload, most work first, at most ``most``."""
    return tuple(row.kind for row in workload.by_kind())[:most]


def _matched(where: str, workload: Workload, result: Result) -> None:
    if len(result.children) != len(workload):
        raise ArgumentError(
            f"{where}(): `result` must have one child for each of the {len(workload)} operators of "
            f"{workload.name!r}, got {len(result.children)}. Write e.g. result=roofline(device, workload)"
        )


@chart
def shares_by_kind(ax: Axes, workload: Workload, result: Result) -> Axes:
    """Draw three bars, operations, bytes and time, each divided by kind of operator.

    Parameters
    ----------
    ax
        Axes to draw into.
    workload
        A captured network.
    result
        Result of a model on that network, with one child per operator.

    Raises
    ------
    ArgumentError
        If the result is not of that network.
    """
    _matched("shares_by_kind", workload, result)
    rows = ("operations", "bytes moved", "least time")
    kinds = kinds_of(workload)
    totals = [0.0, 0.0, 0.0]
    sums = {kind: [0.0, 0.0, 0.0] for kind in kinds}
    for operator, child in zip(workload.operators, result.children, strict=True):
        values = (
            float(operator.flops.m_as("FLOP")),
            float(operator.data.m_as("byte")),
            float(child.time.m_as("s")),
        )
        for index, value in enumerate(values):
            totals[index] += value
            if operator.kind in sums:
                sums[operator.kind][index] += value
    left = [0.0, 0.0, 0.0]
    for kind, (fill, hatch) in zip(kinds, _FILLS, strict=False):
        widths = [100 * value / total for value, total in zip(sums[kind], totals, strict=True)]
        bars = ax.barh(
            rows, widths, left=left, color=COLORS[fill], hatch=hatch, edgecolor="white", linewidth=0.8, label=kind
        )
        for bar, width in zip(bars, widths, strict=True):
            if width >= 7:
                ax.text(
                    bar.get_x() + width / 2,
                    bar.get_y() + bar.get_height() / 2,
                    f"{width:.0f} %",
                    ha="center",
                    va="center",
                    fontsize=9,
                    color="white" if fill.endswith("Line") else COLORS["primary"],
                    bbox=None if fill.endswith("Line") else {"facecolor": "white", "edgecolor": "none", "pad": 1.2},
                )
        left = [start + width for start, width in zip(left, widths, strict=True)]
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.set(xlim=(0, 100), xlabel="share, %")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=4, fontsize=9)
    return ax


def _by_intensity(points: list[tuple[float, Result]]) -> list[list[tuple[float, Result]]]:
    """Return points grouped by intensity, within five per cent of the first of a group."""
    groups: list[list[tuple[float, Result]]] = []
    for point in sorted(points, key=lambda pair: pair[0]):
        if groups and point[0] <= 1.05 * groups[-1][0][0]:
            groups[-1].append(point)
        else:
            groups.append([point])
    return groups


@drawn
def layers_under_roof(ax: Axes, device: Device, workload: Workload, result: Result, precision: str = "fp16") -> Axes:
    """Draw operators at their intensity and attainable rate, with areas that grow with the share of the time.

    Operators of one kind and nearly equal intensity are drawn as one.

    Parameters
    ----------
    ax
        Axes to draw into.
    device, precision
        Device and precision of the roof.
    workload, result
        A captured network, and a model's result on it with one child per operator.

    Raises
    ------
    ArgumentError
        If the result is not of that network.
    """
    _matched("layers_under_roof", workload, result)
    pairs = [
        (operator, child) for operator, child in zip(workload.operators, result.children, strict=True) if operator.flops
    ]
    at = [float(child.figures["intensity"].m_as("FLOP/byte")) for _, child in pairs]
    ridge = float(device.ridge_point(precision).m_as("FLOP/byte"))
    roofs(ax, [device], (), precision, (min(*at, ridge) / 2, max(*at, ridge) * 2.5))
    whole = float(result.time.m_as("s"))
    dots = []
    for kind, marker, (fill, _) in zip(kinds_of(workload), MARKERS, _FILLS, strict=False):
        color = COLORS[fill if fill.endswith("Line") else f"{fill[:-1]}Line"]
        own = [(x, child) for x, (operator, child) in zip(at, pairs, strict=True) if operator.kind == kind]
        if own:
            ax.plot([], [], marker, color=color, label=f"{kind}: {len(own)}")
        for group in _by_intensity(own):
            share = sum(float(child.time.m_as("s")) for _, child in group) / whole
            x, child = group[0]
            dots.append((share, x, float(child.figures["attained"].m_as("TFLOP/s")), marker, color))
    for share, x, y, marker, color in sorted(dots, reverse=True):
        ax.scatter(x, y, s=24 + 2600 * share, marker=marker, color=color, edgecolor="white", alpha=0.85, zorder=3)
    for text in ax.texts:  # the roof's name stands where the largest marks are
        text.set(zorder=5, bbox=HALO)
    ax.legend(loc="upper left", fontsize=9)
    return ax


@drawn
def layer_panels(
    figure: Figure, device: Device, networks: Sequence[tuple[Workload, Result]], precision: str = "fp16"
) -> Figure:
    """Draw :func:`layers_under_roof` of several networks side by side, on one scale of rates.

    Parameters
    ----------
    figure
        Cleared, then drawn into.
    device, precision
        Device and precision of the roof.
    networks
        Captured networks, each with a model's result on it.
    """
    figure.clear()
    panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
    for ax, (workload, result) in zip(panels, networks, strict=True):
        layers_under_roof(ax, device, workload, result, precision)
        ax.set_title(workload.name)
    for ax in panels[1:]:
        ax.set_ylabel("")
    return figure


@chart
def time_strip(ax: Axes, results: Sequence[Result]) -> Axes:
    """Draw each network as a strip along its least time, coloured by the bound of each operator.

    Parameters
    ----------
    ax
        Axes to draw into.
    results
        Results of a model on networks, each with children in execution order.
    """
    seen: dict[str, float] = {}
    for row, result in enumerate(results):
        whole, start = float(result.time.m_as("s")), 0.0
        for child in result.children:
            width = 100 * float(child.time.m_as("s")) / whole
            seen[child.bound_by] = seen.get(child.bound_by, 0.0) + width
            fill, hatch = next((fill, hatch) for bound, fill, hatch in _BOUNDS if bound == child.bound_by)
            ax.barh(row, width, left=start, height=0.6, color=COLORS[fill], hatch=hatch, edgecolor="white", linewidth=0)
            start += width
    for bound, fill, hatch in _BOUNDS:
        if bound in seen:
            ax.barh(0, 0, color=COLORS[fill], hatch=hatch, edgecolor="white", label=f"bound by {bound}")
    ax.set_yticks(range(len(results)), [result.workload for result in results])
    ax.invert_yaxis()
    ax.grid(False)
    ax.set(xlim=(0, 100), xlabel="least time from first layer to last, % of each network's own")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=3, fontsize=9)
    return ax
