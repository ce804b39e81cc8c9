"""Figures of fusion: passes over memory, their cost, and their share in whole networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.formulas import attainable_performance, chain_bytes
from mlsys.hardware.device import Device
from mlsys.mapping.fusion import FusedWorkload
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FILLS = ("BlueL", "OrangeL", "GreenL", "VioletL", "RedL")
_LINES = ("BlueLine", "OrangeLine", "GreenLine", "VioletLine", "RedLine")
_HATCHES = ("", "//", "..", "\\\\", "xx", "--")


@drawn
def memory_passes(ax: Axes, operators: Sequence[str]) -> Axes:
    """Draw a chain of element-wise operators unfused and, below, as one kernel, with an arrow per memory pass.

    Parameters
    ----------
    ax
        Axes to draw into.
    operators
        Names of the operators, in order.
    """
    count = len(operators)
    ax.set(xlim=(-0.9, 2 * count + 1.5), ylim=(0, 8))
    ax.set_axis_off()
    _passes(ax, operators, [(index, index + 1) for index in range(count)], 4.2, "one by one")
    _passes(ax, operators, [(0, count)], 0.0, "fused")
    return ax


def _passes(ax: Axes, operators: Sequence[str], kernels: Sequence[tuple[int, int]], floor: float, label: str) -> None:
    ax.axhspan(floor + 1.75, floor + 2.85, color=COLORS["grid"], alpha=0.45, linewidth=0)
    several = "kernel" if len(kernels) == 1 else "kernels"
    title = f"{label}: {2 * len(kernels)} passes, {len(kernels)} {several}"
    ax.text(-0.85, floor + 3.2, title, fontsize=10, fontweight="bold", va="center")
    right = 2 * len(operators) + 1.42
    for height, level in ((2.3, "memory"), (0.55, "chip")):
        ax.text(right, floor + height, level, fontsize=9, va="center", ha="right", color=COLORS["note"])
    edges = sorted({edge for kernel in kernels for edge in kernel})
    for tensor in edges:
        name = "X" if tensor == 0 else "Y" if tensor == len(operators) else "X" + "′" * tensor
        _box(ax, 2 * tensor, floor + 2.3, name, COLORS["BlueL"], COLORS["BlueLine"], 0.45)
    for first, end in kernels:
        left, right = 2 * first + 1, 2 * end - 1
        text = " · ".join(operators[first:end])
        _box(
            ax, (left + right) / 2, floor + 0.55, text, COLORS["GreenL"], COLORS["GreenLine"], (right - left) / 2 + 0.6
        )
        _arrow(ax, (2 * first + 0.15, floor + 1.98), (left - 0.3, floor + 0.9), COLORS["OrangeLine"], "read")
        _arrow(ax, (right + 0.3, floor + 0.9), (2 * end - 0.15, floor + 1.98), COLORS["VioletLine"], "write")


def _box(ax: Axes, x: float, y: float, text: str, fill: str, line: str, half: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0.02,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((x - half, y - 0.32), 2 * half, 0.64, boxstyle=style, facecolor=fill, edgecolor=line))
    ax.text(x, y, text, ha="center", va="center", fontsize=9)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], color: str, label: str) -> None:
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 1.6})
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    side, align = (-0.1, "right") if label == "read" else (0.1, "left")
    ax.text(x + side, y, label, fontsize=9, color=color, va="center", ha=align)


@chart
def speedup_by_chain(
    ax: Axes,
    device: Device,
    tensor_bytes: float,
    element_bytes: int = 2,
    precision: str = "fp16",
    work: Sequence[float] = (1, 10, 40),
    longest: int = 16,
    launch: float = 0.0,
) -> Axes:
    """Draw the speedup of fusing a chain of n element-wise operators.

    Parameters
    ----------
    ax
        Axes to draw into.
    device
        Device whose vector peak and main memory bandwidth are used.
    tensor_bytes
        Size of the tensor, byte.
    element_bytes, precision
        Size and number format of an element.
    work
        FLOP per element and operator, one curve each.
    longest
        Longest chain, operators.
    launch
        Kernel launch time, s.
    """
    lengths = np.arange(1, longest + 1)
    bandwidth = device.memory_bw.m_as("byte/s")
    rate = device.peak(precision, unit="vector").m_as("FLOP/s")
    ax.plot(lengths, lengths, color=COLORS["axis"], linewidth=1.2, linestyle=":", label="n: 2n passes become 2")
    for each, color, marker in zip(work, CYCLE, MARKERS, strict=False):
        computing = each * tensor_bytes / element_bytes / rate
        unfused = max(chain_bytes.bare(1, tensor_bytes) / bandwidth, computing) + launch
        fused = np.maximum(chain_bytes.bare(1, tensor_bytes) / bandwidth, lengths * computing) + launch
        ax.plot(
            lengths, lengths * unfused / fused, marker=marker, color=color, markersize=5, label=f"{each:g} FLOP each"
        )
    ax.set(xlabel="element-wise operators in the chain, n", ylabel="times faster when fused", xlim=(0.5, longest + 0.5))
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper left", fontsize=9)
    return ax


@chart
def intensity_shift(ax: Axes, device: Device, fused: FusedWorkload, precision: str = "fp16") -> Axes:
    """Draw a network's operators under the roof before and after fusion, grouped by pattern.

    Each arrow is one pattern: from the total intensity of its unfused operators (open) to that of
    its fused kernels (filled). Both ends are at the attainable rate of the device.

    Parameters
    ----------
    ax
        Axes to draw into.
    device
        Device whose roof is drawn.
    fused
        A fused network, counted in ``precision``.
    precision
        Precision of the peak.
    """
    if any(operator.precision != precision for operator in fused if operator.flops.magnitude):
        raise ArgumentError(
            f"intensity_shift(): {fused.name!r} is not counted in {precision}. Capture it with precision={precision!r}"
        )
    peak, bandwidth = device.peak(precision).m_as("TFLOP/s"), device.memory_bw.m_as("TB/s")
    x = np.geomspace(0.1, 1000, 400)
    ax.plot(x, attainable_performance.bare(x, peak, bandwidth), color=COLORS["primary"], label=device.name)
    work: dict[str, float] = {}
    for group, kernel in zip(fused.groups, fused, strict=True):
        work[group.pattern] = work.get(group.pattern, 0.0) + kernel.flops.m_as("FLOP")
    rows = [row for row in fused.by_pattern() if row.pattern != "unfused"]
    ends = [[work[row.pattern] / moved.m_as("byte") for moved in (row.before, row.after)] for row in rows]
    lowest = peak
    for number, (row, intensities) in enumerate(zip(rows, ends, strict=True)):
        color, marker = CYCLE[number % len(CYCLE)], MARKERS[number % len(MARKERS)]
        before, after = ((end, float(attainable_performance.bare(end, peak, bandwidth))) for end in intensities)
        arrow = {"arrowstyle": "-|>", "color": color, "linewidth": 1.8, "shrinkA": 6, "shrinkB": 6}
        ax.annotate("", after, before, arrowprops=arrow | {"connectionstyle": "arc3,rad=0.35"})
        ax.plot(*before, marker, color="white", markeredgecolor=color, markeredgewidth=1.6, markersize=9, zorder=3)
        ax.plot(*after, marker, color=color, markeredgecolor="white", markersize=10, label=row.pattern, zorder=3)
        lowest = min(lowest, before[1])
    left = min((before for before, _ in ends), default=1.0) / 2
    ax.set(xscale="log", yscale="log", xlim=(left, 1000), ylim=(lowest / 2, 2 * peak))
    ax.set(xlabel="arithmetic intensity, FLOP/byte", ylabel=f"attainable, TFLOP/s ({precision}, dense)")
    ax.legend(loc="upper left", fontsize=9, title="open: one by one, filled: fused", title_fontsize=9)
    return ax


@chart
def bytes_by_pattern(ax: Axes, networks: Sequence[FusedWorkload]) -> Axes:
    """Draw the traffic of networks unfused and fused, in percent of the former, divided by pattern.

    Parameters
    ----------
    ax
        Axes to draw into.
    networks
        Fused networks; two bars each.
    """
    names = list(dict.fromkeys(row.pattern for network in networks for row in network.by_pattern()))
    names = [name for name in names if name != "unfused"] + ["unfused"]
    labels, seen = [], set[str]()
    for index, network in enumerate(networks):
        whole = network.unfused.data.m_as("byte")
        for half, attribute in enumerate(("before", "after")):
            y, left = -(2.5 * index + half), 0.0
            rows = {row.pattern: getattr(row, attribute).m_as("byte") for row in network.by_pattern()}
            for number, name in enumerate(names):
                if name not in rows:
                    continue
                share = 100 * rows[name] / whole
                fill = COLORS["grid"] if name == "unfused" else COLORS[_FILLS[number % len(_FILLS)]]
                edge = COLORS["axis"] if name == "unfused" else COLORS[_LINES[number % len(_LINES)]]
                ax.barh(
                    y,
                    share,
                    left=left,
                    height=0.85,
                    color=fill,
                    edgecolor=edge,
                    hatch="" if name == "unfused" else _HATCHES[number % len(_HATCHES)],
                    label=None if name in seen else name,
                )
                seen.add(name)
                left += share
            count = len(network.unfused) if attribute == "before" else network.kernels
            ax.text(left + 1, y, f"{count} kernels", va="center", fontsize=9)
            labels.append((y, f"{network.name}, {'one by one' if attribute == 'before' else 'fused'}"))
    ax.set_yticks([y for y, _ in labels], [text for _, text in labels])
    ax.set(xlabel="bytes moved, % of those one by one", xlim=(0, 122))
    ax.grid(False, axis="y")
    handles, texts = ax.get_legend_handles_labels()
    order = sorted(range(len(texts)), key=lambda index: names.index(texts[index]))
    legend = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": 9}
    ax.legend([handles[label] for label in order], [texts[label] for label in order], **legend)
    return ax
