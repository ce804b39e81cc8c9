"""Figures of a placement: the stages on each device over time, and their transfers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mlsys.planner.placement import PlanResult


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
