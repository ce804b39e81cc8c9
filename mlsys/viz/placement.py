"""Figures of a placement: the stages on each device over time, and their transfers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsys.planner.placement.thermal import heating
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mlsys.planner.placement import PlanResult


@drawn
def thermal_step(
    ax: Axes, powers: Sequence[float], *, resistance: float, capacity: float, ambient: float, limit: float
) -> Axes:
    """Draw how warm a chip becomes after it starts to work at constant power.

    Parameters
    ----------
    ax
        Axes to draw into.
    powers
        Powers, W, a curve each.
    resistance, capacity
        Thermal resistance, K/W, and heat capacity, J/K.
    ambient, limit
        Temperature at rest and highest temperature, °C.

    Returns
    -------
    Axes
        Over four time constants. A mark stands where a curve reaches the limit, with the time that it took.
    """
    constant = resistance * capacity
    at = np.linspace(0, 4 * constant, 200)
    for power, color in zip(powers, CYCLE, strict=False):
        warm = [ambient + heating(power, time, resistance=resistance, capacity=capacity) for time in at]
        ax.plot(at, warm, color=color)
        ax.annotate(f"{power:g} W", (at[-1], warm[-1]), (4, 0), textcoords="offset points", va="center", color=color)
        rise = power * resistance
        if rise > limit - ambient:
            reached = -constant * math.log1p(-(limit - ambient) / rise)
            ax.plot(reached, limit, "o", color=color, markeredgecolor="white", zorder=3)
            ax.annotate(f"{reached:.0f} s", (reached, limit), (-4, 5), textcoords="offset points", ha="right",
                        color=color)  # fmt: skip
    ax.axhline(limit, color=COLORS["RedLine"], linestyle="--", linewidth=1.2)
    ax.annotate(f"limit {limit:g} °C", (0, limit), (4, -4), textcoords="offset points", va="top", fontsize=9,
                color=COLORS["RedLine"])  # fmt: skip
    ax.set(xlim=(0, 4.35 * constant), xlabel="time at constant power, s", ylabel="temperature, °C")
    return ax


@chart
def draw_gantt(ax: Axes, bars: Sequence[tuple[str, str, float, float, float]], devices: Sequence[str]) -> Axes:
    """Draw stages on their devices over time, each preceded by the transfer that it waits for.

    Parameters
    ----------
    ax
        Axes to draw into.
    bars
        Stage, device, start of the transfer, start of the run and end, ms.
    devices
        Devices, from top to bottom.
    """
    row = {device: index for index, device in enumerate(devices)}
    span = max((end for *_, end in bars), default=1.0) or 1.0
    for stage, device, fetch, start, end in bars:
        color = CYCLE[row[device] % len(CYCLE)]
        if start > fetch:
            ax.barh(
                row[device], start - fetch, left=fetch, height=0.5, color="white", hatch="////",
                edgecolor=COLORS["RedLine"], linewidth=0.8, label="transfer",
            )  # fmt: skip
        ax.barh(row[device], end - start, left=start, height=0.5, color=color, edgecolor="white", linewidth=1.2)
        wide = (end - start) / span > 0.015 * len(stage) + 0.02
        if wide:
            ax.text((start + end) / 2, row[device], stage, ha="center", va="center", fontsize=10, color="white")
        else:
            ax.annotate(
                stage, ((start + end) / 2, row[device] - 0.26), xytext=(0, 2),
                textcoords="offset points", ha="left", rotation=20, fontsize=10, color=COLORS["primary"],
            )  # fmt: skip
    ax.set_yticks(range(len(devices)), devices)
    ax.set_ylim(len(devices) - 0.4, -0.85)
    ax.set_xlim(0, span * 1.04)
    ax.set_xlabel("time, ms (hatched: transfer, billed to the stage that receives)")
    ax.grid(False, axis="y")
    return ax


@drawn
def gantt(ax: Axes, result: PlanResult, rank: int = 1) -> Axes:
    """Draw one placement of a plan; see :func:`draw_gantt`.

    Parameters
    ----------
    ax
        Axes to draw into.
    result
        A plan with at least `rank` placements.
    rank
        1 is the best.
    """
    from mlsys.planner.placement.report import stage_rows

    listed: list[dict[str, Any]] = [row for row in stage_rows(result) if row["rank"] == rank]
    bars = [
        (row["stage"], row["device"], row["start_ms"], row["end_ms"] - row["exec_ms"], row["end_ms"]) for row in listed
    ]
    return draw_gantt(ax, bars, [device.name for device in result.scenario.devices])


def plan_alt_text(result: PlanResult, rank: int = 1) -> str:
    """Return the alternative text of the figure."""
    placed = result.placements[rank - 1].placed
    runs: list[list[str]] = []
    for stage in placed.stages:
        if runs and runs[-1][0] == stage.choice.device:
            runs[-1].append(stage.stage)
        else:
            runs.append([stage.choice.device, stage.stage])
    listed = "; ".join(f"{device} runs {', '.join(stages)}" for device, *stages in runs)
    return f"Gantt chart of {float(placed.latency):.4g} ms: {listed}."


@drawn
def plan_figure(result: PlanResult, rank: int = 1) -> Figure:
    """Return a figure of one placement."""
    from mlsys.viz.style import setup_plot

    fig, ax, _, plt = setup_plot(figsize=(8.4, 1.2 + 0.75 * len(result.scenario.devices)))
    gantt(ax, result, rank)
    plt.close(fig)
    return fig
