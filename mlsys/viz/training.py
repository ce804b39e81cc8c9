"""Figures of parallel training: pipeline time lines, and the memory of a chip by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.models.training import Timeline, TrainingStep
from mlsys.viz.shown import chart
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


@chart
def pipeline_timeline(ax: Axes, line: Timeline, *, names: bool = True) -> Axes:
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
    """
    span = float(line.time.m_as("s"))
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
