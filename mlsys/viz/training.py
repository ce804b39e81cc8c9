"""Figures of parallel training: pipelines, memory and time of a step by part, hidden reductions, scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.formulas import data_parallel_speedup, ring_all_reduce_time
from mlsys.models.overlap import simulate_steps
from mlsys.models.training import Timeline, TrainingStep
from mlsys.units import Quantity
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_LOOKS = {"forward": ("BlueL", "BlueLine", ""), "backward": ("GreenL", "GreenLine", "///")}
_PARTS = {
    "weights": ("BlueLine", ""),
    "gradients": ("GreenLine", "///"),
    "optimizer": ("OrangeLine", "..."),
    "activations": ("VioletLine", "xx"),
    "logits": ("RedLine", "\\\\"),
    "buffers": ("grid", ""),
}
_CAUSES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "arithmetic": ("BlueLine", "", ("products", "attention", "classifier")),
    "recomputation": ("BlueL", "///", ("recomputation",)),
    "memory": ("GreenLine", "...", ("element-wise", "optimizer")),
    "bubble": ("grid", "", ("pipeline bubble",)),
    "tensor messages": ("OrangeLine", "xx", ("tensor communication",)),
    "pipeline messages": ("VioletL", "\\\\", ("pipeline messages",)),
    "data messages": ("RedLine", "++", ("data communication",)),
    "expert messages": ("VioletLine", "--", ("expert communication",)),
    "sequence messages": ("OrangeL", "oo", ("context communication",)),
}


@chart
def pipeline_timeline(ax: Axes, line: Timeline, *, names: bool = True, until: Quantity | None = None) -> Axes:
    """Draw a simulated pipeline step: one row for each stage, a bar for each pass, gaps where a stage idles.

    Parameters
    ----------
    ax
        Axes to draw into.
    line
        A time line of :func:`~mlsys.models.training.simulate_schedule`.
    names
        Whether to write the number of the micro-batch into bars that are wide enough. Passes of a second and later
        chunk have thicker edges.
    until
        Where the axis ends, so that several figures share a scale; by default where the step does.
    """
    span = float((line.time if until is None else until).m_as("s"))
    scale, unit = next((pair for pair in _UNITS if span >= pair[0]), _UNITS[-1])
    for kind, (fill, edge, hatch) in _LOOKS.items():
        slots = [slot for slot in line.slots if slot.task.kind == kind]
        ax.barh(
            [slot.stage for slot in slots],
            [(slot.end - slot.start) / scale for slot in slots],
            left=[slot.start / scale for slot in slots],
            height=0.8,
            color=COLORS[fill],
            edgecolor=COLORS[edge],
            linewidth=[0.7 + 0.9 * min(slot.task.chunk, 2) for slot in slots],
            hatch=hatch,
            label=kind,
        )
    if names:
        for slot in line.slots:
            text = str(slot.task.micro_batch + 1)
            if (slot.end - slot.start) / span > 0.009 * (len(text) + 1):
                middle = (slot.start + slot.end) / 2 / scale
                ax.text(middle, slot.stage, text, ha="center", va="center", fontsize=9, clip_on=True,
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8})  # fmt: skip
    ax.set_yticks(range(line.stages), [f"stage {stage + 1}" for stage in range(line.stages)])
    ax.set_ylim(line.stages - 0.4, -0.6)
    ax.set_xlim(0, span / scale)
    ax.set(xlabel=f"time, {unit}; idle {line.bubble_share:.1%}")
    ax.grid(axis="y", visible=False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9, ncols=2)
    return ax


@chart
def training_memory(ax: Axes, steps: Sequence[TrainingStep], labels: Sequence[str]) -> Axes:
    """Draw the memory of the fullest chip by part, a bar for each step, and the capacity of the chip.

    Parameters
    ----------
    ax
        Axes to draw into.
    steps
        Training steps on chips of one kind.
    labels
        A name for each.
    """
    rows = np.arange(len(steps))
    left = np.zeros(len(steps))
    for part, (color, hatch) in _PARTS.items():
        sizes = np.array([float(step.memory[part].m_as("GB")) for step in steps])
        if sizes.any():
            ax.barh(rows, sizes, left=left, height=0.6, color=COLORS[color], edgecolor="white", hatch=hatch, label=part)
            left += sizes
    capacity = float(steps[0].capacity.m_as("GB"))
    ax.axvline(capacity, color=COLORS["RedLine"], linestyle="--", label=f"capacity {capacity:.4g} GB")
    ax.set_yticks(rows, labels)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.05 * max(capacity, left.max()))
    ax.set(xlabel="memory of the fullest chip, GB")
    ax.grid(axis="y", visible=False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9, ncols=3)
    return ax


@chart
def step_parts(ax: Axes, steps: Sequence[TrainingStep], labels: Sequence[str]) -> Axes:
    """Draw the time of training steps by cause, a bar for each.

    Parameters
    ----------
    ax
        Axes to draw into.
    steps
        Training steps.
    labels
        A name for each.

    Returns
    -------
    Axes
        Communication is that which no computation hides.
    """
    rows = np.arange(len(steps))
    left = np.zeros(len(steps))
    longest = max(float(step.time.m_as("s")) for step in steps)
    for name, (color, hatch, parts) in _CAUSES.items():
        times = np.array([sum(float(step.parts[part].m_as("s")) for part in parts if part in step.parts)
                          for step in steps])  # fmt: skip
        times[times < longest / 500] = 0.0  # too short to be seen
        if times.any():
            ax.barh(rows, times, left=left, height=0.6, color=COLORS[color], edgecolor="white", hatch=hatch, label=name)
            left += times
    for row, step in enumerate(steps):
        ax.text(left[row] + longest / 100, row, f"MFU {step.figures['MFU'].magnitude:.0%}", va="center", fontsize=9)
    ax.set_yticks(rows, labels)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.17 * longest)
    ax.set(xlabel="time of a step, s")
    ax.grid(axis="y", visible=False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), fontsize=9, ncols=4, columnspacing=1.2)
    return ax


@chart
def gradient_buckets(ax: Axes, backward: Quantity, reduction: Quantity, buckets: int) -> Axes:
    """Draw a backward pass in pieces, and the reduction of each piece's gradients beside the next.

    Parameters
    ----------
    ax
        Axes to draw into.
    backward, reduction
        Time of the whole backward pass, and of reducing all gradients.
    buckets
        Pieces.

    Returns
    -------
    Axes
        A reduction begins when its gradients are there and the one before has ended.
    """
    times = [float(each.m_as("ms")) for each in (backward, reduction)]
    line = simulate_steps(times[0] / buckets, times[1] / buckets, buckets, buckets)
    looks = {"copy": (1.0, "Blue", ""), "compute": (0.0, "Orange", "//")}
    for each in line:
        row, color, hatch = looks[each.engine]
        ax.barh(row, each.end - each.start, left=each.start, height=0.6, color=COLORS[f"{color}L"],
                edgecolor=COLORS[f"{color}Line"], hatch=hatch, linewidth=0.9)  # fmt: skip
    end = max(each.end for each in line)
    ax.axvline(times[0], color=COLORS["RedLine"], linestyle="--", linewidth=1.3)
    ax.text(times[0], 1.55, f"exposed: {end - times[0]:.2g} ms", color=COLORS["RedLine"], ha="right", fontsize=9.5)
    ax.set_yticks([1, 0], ["backward", "reductions"])
    ax.set(xlabel="time, ms", xlim=(0, sum(times) * 1.02), ylim=(-0.5, 1.9))
    ax.grid(False, axis="y")
    return ax


@drawn
def scaling_panels(
    figure: Figure,
    computation: Quantity,
    message: Quantity,
    latency: Quantity,
    bandwidth: Quantity,
    most: int = 128,
    batch: int = 8,
) -> Figure:
    """Draw the speedup over the number of chips at three overlaps, for a batch that grows and one that does not.

    Parameters
    ----------
    figure
        Cleared, then drawn into.
    computation
        Time that one chip computes on its share of the batch.
    message
        Gradients that a ring sums in each step.
    latency, bandwidth
        Of a message to the next chip, in one direction.
    most
        Largest number of chips.
    batch
        Number of chips at which the fixed batch of the second panel gives each chip that share.
    """
    figure.clear()
    panels = figure.subplots(1, 2, sharey=True)
    chips = np.arange(1, most + 1)
    ring = ring_all_reduce_time.bare(message.m_as("byte"), chips, latency.m_as("s"), bandwidth.m_as("byte/s"), 0.0)
    one = float(computation.m_as("s"))
    looks = ((1.0, "all hidden", "GreenLine", "-"), (0.5, "half hidden", "OrangeLine", "--"),
             (0.0, "none hidden", "BlueLine", "-."))  # fmt: skip
    for ax, strong in zip(panels, (False, True), strict=True):
        apply_style(ax)
        each = one * batch / chips if strong else one
        ax.plot(chips, chips, color=COLORS["note"], linewidth=1, linestyle=":", label="as many times as chips")
        for overlap, name, color, dash in looks:
            speedup = data_parallel_speedup.bare(each, ring, chips, overlap)
            ax.plot(chips, speedup, color=COLORS[color], linestyle=dash, label=name)
        ax.set(xlabel="chips", xlim=(0, most), ylim=(0, most))
        ax.set_title("the batch is fixed" if strong else "the batch grows with the chips")
    panels[0].set_ylabel("speedup")
    panels[1].legend(loc="upper left", fontsize=9)
    return figure
