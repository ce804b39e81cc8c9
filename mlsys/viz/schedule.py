"""Figures of plans over time: live memory, memory maps, and stream schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlsys.planner.memory import MemoryPlan
from mlsys.planner.streams import Schedule
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, setup_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FILLS = ("BlueL", "OrangeL", "GreenL", "VioletL", "RedL")
_LINES = ("BlueLine", "OrangeLine", "GreenLine", "VioletLine", "RedLine")
_PREFIXES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "byte"))


def _unit(most: float) -> tuple[float, str]:
    return next((pair for pair in _PREFIXES if most >= pair[0]), _PREFIXES[-1])


@chart
def live_chart(ax: Axes, plan: MemoryPlan, *, first_step: int = 0, last_step: int | None = None) -> Axes:
    """Draw the bytes in use at each step, with the peak of the plan and the lower bound.

    Parameters
    ----------
    ax
        Axes to draw into.
    plan
        A plan.
    first_step, last_step
        First and last step to show, inclusive; by default all.
    """
    scale, unit = _unit(float(plan.peak.m_as("byte")))
    live = np.array(plan.live)[first_step : None if last_step is None else last_step + 1] / scale
    steps = np.arange(first_step, first_step + len(live))
    ax.fill_between(steps, live, step="mid", color=COLORS["BlueL"])
    ax.step(steps, live, where="mid", color=COLORS["BlueLine"], linewidth=1.4, label="in use")
    peak, least = plan.peak.m_as("byte") / scale, plan.lower_bound.m_as("byte") / scale
    ax.axhline(least, color=COLORS["GreenLine"], linestyle="--", label=f"lower bound {least:.4g} {unit}")
    ax.axhline(peak, color=COLORS["OrangeLine"], linestyle=":", label=f"block of the plan {peak:.4g} {unit}")
    ax.set_ylim(0, 1.25 * peak)
    ax.set(xlabel="step", ylabel=f"in use, {unit}")
    ax.legend(loc="upper right", fontsize=9, ncols=3)
    return ax


@chart
def memory_map(
    ax: Axes, plan: MemoryPlan, *, first_step: int = 0, last_step: int | None = None, names: bool = False
) -> Axes:
    """Draw every buffer as a rectangle of its lifetime (steps) and its address range.

    Parameters
    ----------
    ax
        Axes to draw into.
    plan
        A plan.
    first_step, last_step
        First and last step to show, inclusive; by default all.
    names
        Whether to write the name of the first value into rectangles that are large enough.
    """
    scale, unit = _unit(float(plan.peak.m_as("byte")))
    final = len(plan.liveness.steps) - 1 if last_step is None else last_step
    peak = plan.peak.m_as("byte") / scale
    for number, buffer in enumerate(plan.placements):
        if buffer.last < first_step or buffer.first > final or not buffer.bytes:
            continue
        look = number % len(_FILLS)
        bottom, height, width = buffer.offset / scale, buffer.bytes / scale, buffer.last - buffer.first + 1
        ax.bar(
            buffer.first - 0.5,
            height,
            width,
            bottom,
            align="edge",
            color=COLORS[_FILLS[look]],
            edgecolor=COLORS[_LINES[look]],
            linewidth=0.7,
        )
        if names and height > 0.05 * peak and width * 55 > (final - first_step + 1) * len(buffer.name) * 0.9:
            ax.text(
                buffer.first - 0.5 + width / 2,
                bottom + height / 2,
                buffer.name,
                ha="center",
                va="center",
                fontsize=9,
                clip_on=True,
            )
    ax.axhline(peak, color=COLORS["OrangeLine"], linestyle=":", linewidth=1.5)
    ax.set(xlim=(first_step - 0.5, final + 0.5), ylim=(0, 1.05 * peak))
    ax.set(xlabel="step", ylabel=f"address in the block, {unit}")
    ax.grid(False)
    return ax


@drawn
def memory_figure(plan: MemoryPlan) -> Figure:
    """Return a figure of two panels: bytes in use by step, and the memory map."""
    figure, whole, _, plt = setup_plot(figsize=(8.4, 6.4))
    whole.remove()
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 3))
    live_chart(upper, plan)
    upper.set(xlabel="")
    upper.set_title(f"{plan.network}: bytes in use at each step")
    memory_map(lower, plan)
    lower.set_title(f"Where they lie (strategy {plan.strategy})")
    plt.close(figure)
    return figure


@chart
def stream_gantt(ax: Axes, schedule: Schedule, *, names: bool = True) -> Axes:
    """Draw the operators on their streams over time, with the critical path highlighted.

    Parameters
    ----------
    ax
        Axes to draw into.
    schedule
        A schedule.
    names
        Whether to write names into bars that are wide enough.
    """
    span = schedule.makespan.m_as("s") or 1.0
    scale, unit = next(pair for pair in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")) if span >= pair[0])
    critical = set(schedule.critical)
    looks = (
        (True, "OrangeL", "OrangeLine", "///", "on the critical path"),
        (False, "BlueL", "BlueLine", "", "beside it"),
    )
    for on_path, fill, line, hatch, label in looks:
        tasks = [task for task in schedule.tasks if (task.operator in critical) == on_path]
        ax.barh(
            [task.stream for task in tasks],
            [(task.end - task.start) / scale for task in tasks],
            left=[task.start / scale for task in tasks],
            height=0.6,
            color=COLORS[fill],
            edgecolor=COLORS[line],
            linewidth=0.7,
            hatch=hatch,
            label=label,
        )
    if names:
        for task in schedule.tasks:
            name = schedule.graph.operators[task.operator].name
            if (task.end - task.start) / span > 0.013 * len(name):
                middle = (task.start + task.end) / 2 / scale
                ax.text(middle, task.stream, name, ha="center", va="center", fontsize=9, clip_on=True,
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8})  # fmt: skip
    bound = schedule.lower_bound.m_as("s") / scale
    ax.axvline(bound, color=COLORS["GreenLine"], linestyle="--", label=f"no schedule ends before {bound:.4g} {unit}")
    ax.set_yticks(range(schedule.streams), [f"stream {stream}" for stream in range(schedule.streams)])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.02 * span / scale)
    ax.set(xlabel=f"time, {unit}")
    ax.grid(axis="y", visible=False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.28), fontsize=9, ncols=3)
    return ax
