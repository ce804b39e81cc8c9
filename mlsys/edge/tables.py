"""Results of a run as tables for CSV files, advice in words, and a report in Markdown."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from mlsys.edge.config import Config
from mlsys.edge.evaluate import VariantMeasurement
from mlsys.edge.layers import LAYER_COLUMNS, SUMMARY_COLUMNS, HardwareSummary, LayerRow
from mlsys.edge.points import EdgePoint, point_columns
from mlsys.errors import ArgumentError
from mlsys.escaping import markdown_table, markdown_text
from mlsys.files import csv_text

TRADEOFF_COLUMNS = (
    *("precision", "accuracy_mean", "latency_ms_mean", "memory_mb_mean", "energy_proxy_j_mean", "accepted_ratio"),
    "points",
)
LIMITS = (
    "Memory is planned, not measured: live activations and inputs, weights, statistics and the reserve; a runtime "
    "may need more. Only weights are stored, no gradients.",
    "Zeros from unstructured pruning are computed and stored like any other weight: operations, time and "
    "memory stay the same. The size in a sparse format is listed in a column of its own.",
    "A lower clock slows only the core: the memory keeps its bandwidth, and the voltage is as given.",
    "Memory traffic is that of fused operators, each tensor once: caches, re-use within an operator, dispatch, "
    "heat and other programs are not modelled.",
    "Power is given, not measured: energies rank variants on one machine and are not measurements.",
    "On a GPU, measure the peak instead: torch.cuda.max_memory_allocated counts PyTorch's allocations.",
)


def tradeoffs(points: Sequence[EdgePoint]) -> list[dict[str, Any]]:
    """Return one row per number format: means over its points, and the fraction accepted.

    Points that failed count as not accepted and are excluded from the means.
    """
    rows = []
    for precision in dict.fromkeys(point.measured.precision for point in points):
        here = [point for point in points if point.measured.precision == precision]
        made = [point.objectives for point in here if point.statistics is not None]
        accuracy, latency, energy, memory = zip(*made, strict=True) if made else ((), (), (), ())
        rows.append(
            {
                "precision": precision,
                "accuracy_mean": fmean(accuracy) if made else None,
                "latency_ms_mean": fmean(latency) if made else None,
                "memory_mb_mean": fmean(memory) / 1e6 if made else None,
                "energy_proxy_j_mean": fmean(energy) / 1e3 if made else None,
                "accepted_ratio": fmean(point.accepted for point in here),
                "points": len(here),
            }
        )
    return rows


def csv_files(
    config: Config,
    measured: Sequence[VariantMeasurement],
    points: Sequence[EdgePoint],
    layers: Sequence[LayerRow],
    summary: Sequence[HardwareSummary],
) -> dict[str, str]:
    """Return the CSV files of a run by name.

    ``samples.csv`` holds every raw time at the reference clock, so that percentiles can be computed again; at
    another clock a sample of t ms counts as (t − memory_time_ms) / clock_scale + memory_time_ms.
    """
    samples = [
        {"pruning_method": measurement.method, "pruning_level": measurement.level, "precision": measurement.precision,
         "sample": index, "latency_ms": time}
        for measurement in measured
        for index, time in enumerate(measurement.samples_ms)
    ]  # fmt: skip
    return {
        "layerwise_breakdown.csv": csv_text((row.record() for row in layers), LAYER_COLUMNS),
        "precision_tradeoffs.csv": csv_text(tradeoffs(points), TRADEOFF_COLUMNS),
        "hardware_summary.csv": csv_text((row.record() for row in summary), SUMMARY_COLUMNS),
        "points.csv": csv_text((point.record(config) for point in points), point_columns(config)),
        "samples.csv": csv_text(samples, ("pruning_method", "pruning_level", "precision", "sample", "latency_ms")),
    }


def lead(points: Sequence[EdgePoint]) -> EdgePoint:
    """Return the point whose layers and rates are reported: the first variant that succeeded, at its first clock.

    Raises
    ------
    ArgumentError
        If all variants failed, with the reason.
    """
    made = next((point for point in points if point.statistics is not None), None)
    if made is None:
        why = next((point.reasons[0] for point in points if point.reasons), "there is none")
        raise ArgumentError(f"all variants failed: {why}")
    return made


def edge_advice(config: Config, points: Sequence[EdgePoint], summary: Sequence[HardwareSummary]) -> list[str]:
    """Return recommendations, each sentence with its numbers."""
    accepted = [point for point in points if point.accepted]
    lines = [f"{len(accepted)} of {len(points)} points meet every budget."]
    few = config.advice("least_accepted")
    if len(accepted) < few * len(points):
        causes: dict[str, int] = {}
        for point in points:
            for reason in point.reasons:
                causes[reason.split()[0].rstrip(":")] = causes.get(reason.split()[0].rstrip(":"), 0) + 1
        most = ", ".join(f"{name} {number}" for name, number in sorted(causes.items(), key=lambda cause: -cause[1]))
        lines.append(
            f"That is less than {few:.0%}; the budgets may be stricter than intended. Most rejections: {most}."
        )
    if accepted:
        least = min(point.memory for point in accepted) / 1e6
        room = config.active_budget.m_as("MB")
        lines.append(f"The smallest accepted needs {least:.4g} MB, {least / room:.0%} of the budget of {room:g} MB.")
        best = max(accepted, key=lambda point: (point.objectives[0], *(-value for value in point.objectives[1:])))
        lines.append(f"Most accurate accepted point: {named(best)}, {best.objectives[0]:.2%}.")
        frugal = min(accepted, key=lambda point: point.objectives[2])
        lines.append(f"Accepted point of least energy: {named(frugal)}, {frugal.objectives[2]:.4g} mJ.")
    room = _sram(config)
    if room is not None:
        share = config.active_budget.m_as("byte") / room
        low, high = config.advice("least_sram_share"), config.advice("most_sram_share")
        fit = "within" if low <= share <= high else "outside"
        lines.append(
            f"The budget is {share:.0%} of the working memory of {config.device}, {fit} the {low:.0%} to {high:.0%} "
            "that leave room for stack and runtime."
        )
    fused = next(row for row in summary if row.traffic == "fused")
    shares = {
        "memory": "it is limited by memory: fewer bytes make it faster",
        "compute": "it is limited by arithmetic: fewer operations make it faster",
        "overhead": "neither memory nor arithmetic explains its time: look for overhead",
        "not memory": "it is not limited by memory: arithmetic, caches or overhead limit it",
    }[fused.bound_by]
    lines.append(f"Fused operators use {100 * fused.utilisation:.3g} % of the bandwidth; {shares}.")
    return lines


def _sram(config: Config) -> float | None:
    if config.device is None:
        return None
    from mlsys.hardware import Hardware
    from mlsys.hardware.view import view

    return view(Hardware[config.device]).main.capacity


def named(point: EdgePoint) -> str:
    """Return the variant and clock of a point, in words."""
    return f"{point.measured.variant} at {point.clock.scale:g} of the clock"


def markdown(
    config: Config,
    points: Sequence[EdgePoint],
    layers: Sequence[LayerRow],
    summary: Sequence[HardwareSummary],
    machine: str,
) -> str:
    """Return the report in Markdown, which refers to three figures."""
    front = [point for point in points if point.pareto]
    first = lead(points)
    lines = [f"# {markdown_text(config.name)}", ""]
    lines += [markdown_text(f"{config.network} on {config.source}, batch {config.batch}, seed {config.seed}.")]
    lines += [
        markdown_text(
            f"Latency: {'measured here' if config.device is None else f'modelled for {config.device}'}. {machine}"
        ),
        "",
    ]
    lines += [f"- {markdown_text(sentence)}" for sentence in edge_advice(config, points, summary)]
    lines += ["", "## Pareto-optimal points", "", "In accuracy, time, energy and memory, among accepted points.", ""]
    columns = ("variant", "clock", "accuracy, %", "time, ms", "energy, mJ", "static, mJ", "dynamic, mJ", "memory, MB")
    lines += markdown_table(columns, [_cells(point) for point in front])
    lines += ["", "![Accuracy over memory](precision_tradeoffs.png)", "", "## All points", ""]
    short = ("variant", "clock", "accuracy, %", "time, ms", "energy, mJ", "memory, MB", "accepted, or why not")
    rows = []
    for point in points:
        cells = _cells(point)
        rows.append((*cells[:5], cells[7], "yes" if point.accepted else "; ".join(point.reasons)))
    lines += markdown_table(short, rows)
    lines += ["", "## Layers", "", f"{markdown_text(named(first))}, one batch of {config.batch}.", ""]
    lines += markdown_table(LAYER_COLUMNS, [[str(row.record()[name]) for name in LAYER_COLUMNS] for row in layers])
    lines += ["", "![Bytes of activations by layer](layerwise_activation_memory.png)", ""]
    lines += ["![Multiply-accumulates by layer](layerwise_macs.png)", "", "## Rates", ""]
    shown = [row.record() for row in summary]
    lines += markdown_table(SUMMARY_COLUMNS, [[_short(row[name]) for name in SUMMARY_COLUMNS] for row in shown])
    lines += ["", "## Limitations", "", *(f"- {markdown_text(text)}" for text in LIMITS), ""]
    return "\n".join(lines)


def _cells(point: EdgePoint) -> tuple[str, ...]:
    clock = f"{point.clock.scale:g}" + (f" at {point.clock.voltage:g} V/V" if point.clock.voltage != 1 else "")
    if point.statistics is None:
        return (str(point.measured.variant), clock, *("—",) * 6)
    accuracy, latency, energy, memory = point.objectives
    static, dynamic = point.energies
    values = (f"{100 * accuracy:.2f}", *(f"{value:.4g}" for value in (latency, energy, static, dynamic)))
    return (str(point.measured.variant), clock, *values, f"{memory / 1e6:.4g}")


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
