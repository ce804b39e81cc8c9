"""A plan as text, CSV and plain data for JSON, byte-identical for the same scenario."""

from collections.abc import Sequence
from typing import Any

from mlsys.files import csv_text
from mlsys.models.user_overrides import with_user_overrides
from mlsys.planner.placement.result import PlanResult
from mlsys.planner.placement.thermal import peak_temperatures, sustained_rate
from mlsys.planner.placement.words import decimal_text

COLUMNS = (
    "rank",
    "stage",
    "device",
    "format",
    "exec_ms",
    "xfer_ms",
    "total_ms",
    "exec_mj",
    "xfer_mj",
    "memory_mb",
    "start_ms",
    "end_ms",
)


def _plain(value: Any) -> float | int:
    number = round(float(value), 9)
    return int(number) if number == int(number) else number


def stage_rows(result: PlanResult) -> list[dict[str, Any]]:
    """Return one row per stage of each placement, the best placement first."""
    rows = []
    for rank, placement in enumerate(result.placements, start=1):
        spans = _spans(placement.placed)
        for stage, (start, end) in zip(placement.placed.stages, spans, strict=True):
            choice = stage.choice
            values = (choice.latency, stage.transfer_latency, stage.latency, choice.energy, stage.transfer_energy)
            rows.append(
                {
                    "rank": rank,
                    "stage": stage.stage,
                    "device": choice.device,
                    "format": choice.format,
                    **dict(zip(COLUMNS[4:9], map(_plain, values), strict=True)),
                    "memory_mb": _plain(choice.memory),
                    "start_ms": _plain(start),
                    "end_ms": _plain(end),
                }
            )
    return rows


def _spans(placed: Any) -> list[tuple[Any, Any]]:
    """Return when each stage starts to fetch its input and when it ends, ms."""
    if hasattr(placed, "spans"):
        return list(placed.spans)
    spans, now = [], 0
    for stage in placed.stages:
        spans.append((now, now + stage.latency))
        now = now + stage.latency
    return spans


def record(result: PlanResult) -> dict[str, Any]:
    """Return the record printed by `mlsys plan --format json`."""
    scenario = result.scenario
    listed = stage_rows(result)
    placements = []
    for rank, placement in enumerate(result.placements, start=1):
        placed = placement.placed
        held = [
            {
                "device": device.name,
                "memory_mb": _plain(placed.memory.get(device.name, 0)),
                "budget_mb": _plain(device.memory),
            }
            for device in scenario.devices
        ]
        entry: dict[str, Any] = {
            "score": _plain(placement.score),
            "latency_ms": _plain(placed.latency),
            "energy_mj": _plain(placed.energy),
            "switches": placed.switches,
            "stages": [
                {key: value for key, value in row.items() if key != "rank"} for row in listed if row["rank"] == rank
            ],
            "memory": held,
            "bottleneck_ms": _plain(placed.bottleneck),
            "throughput_hz": _plain(1000 / placed.bottleneck),
        }
        if any(device.resistance is not None for device in scenario.devices):
            rate = sustained_rate(scenario, placed)
            entry["sustained_hz"] = rate
            entry["peak_c"] = peak_temperatures(scenario, placed, rate) if rate else {}
        if scenario.most_loss is not None or placed.loss:
            entry["accuracy_loss"] = _plain(placed.loss)
        placements.append(entry)
    return {
        "pipeline": scenario.name,
        "goal": result.goal,
        "strategy": result.strategy,
        "optimal": result.optimal,
        "lower_bound": _plain(result.bound) if result.placements else None,
        "gap": _plain(result.gap),
        "placements": placements,
        **({"stopped": True} if result.stopped and not result.optimal else {}),
        "binding": list(result.binding),
    }


def as_csv(result: PlanResult, overrides: Sequence[str] = ()) -> str:
    """Return one line per stage of each placement."""
    if overrides:
        return csv_text(with_user_overrides(stage_rows(result), overrides), (*COLUMNS, "user_overrides"))
    return csv_text(stage_rows(result), COLUMNS)


def plan_text(result: PlanResult) -> str:
    """Return the header, a table for each placement, and the justification of the best one."""
    if not result.placements and not result.impossible:
        return f"{result.scenario.name}: {result.binding[0]}"
    if not result.placements:
        known = "proven" if result.optimal else "the set of caps is not proven to be minimal"
        return "\n".join(
            (
                f"{result.scenario.name}: no feasible placement ({known}). Conflicting constraints:",
                *(f"  {text}" for text in result.binding),
            )
        )
    known = "proven optimal" if result.optimal else f"gap at most {100 * result.gap:.3g} %"
    known += "; stopped by the time limit" if result.stopped and not result.optimal else ""
    blocks = [f"pipeline  {result.scenario.name}\ngoal      {result.goal}\nstrategy  {result.strategy}, {known}"]
    listed = stage_rows(result)
    for rank, placement in enumerate(result.placements, start=1):
        placed = placement.placed
        head = (
            f"#{rank}  score {placement.score:.6g}   latency {decimal_text(placed.latency)} "
            f"ms   energy {decimal_text(placed.energy)} mJ   "
            f"switches {placed.switches}"
        )
        blocks.append(head + "\n" + _table([row for row in listed if row["rank"] == rank]))
        held = ", ".join(
            f"{device.name} {decimal_text(placed.memory[device.name])} of {decimal_text(device.memory)} MB"
            for device in result.scenario.devices
            if device.name in placed.memory
        )
        lines = [f"memory: {held}", f"as a pipeline: one result every {decimal_text(placed.bottleneck)} ms"]
        if any(device.resistance is not None for device in result.scenario.devices):
            rate = sustained_rate(result.scenario, placed)
            warm = peak_temperatures(result.scenario, placed, rate) if rate else {}
            warmest = ", ".join(f"{name} {degrees:.1f} °C" for name, degrees in warm.items())
            lines.append(f"sustained: {rate:.4g} runs/s{f', at most {warmest}' if warmest else ''}")
        if placed.loss:
            lines.append(f"accuracy lost: {decimal_text(placed.loss)} percentage points")
        blocks.append("\n".join(lines))
    blocks.append("\n".join(result.why))
    return "\n\n".join(blocks)


def _table(listed: list[dict[str, Any]]) -> str:
    formats = any(row["format"] for row in listed)
    columns = ["stage", "device", *(["format"] if formats else []), *COLUMNS[4:10]]
    titles = {
        "exec_ms": "exec ms",
        "xfer_ms": "xfer ms",
        "total_ms": "total ms",
        "exec_mj": "exec mJ",
        "xfer_mj": "xfer mJ",
        "memory_mb": "memory MB",
    }
    cells = [[titles.get(head, head) for head in columns]]
    cells += [[row[head] if isinstance(row[head], str) else f"{row[head]:,.2f}" for head in columns] for row in listed]
    wide = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    return "\n".join(
        "  ".join(
            cell.ljust(size) if index < len(columns) - 6 else cell.rjust(size)
            for index, (cell, size) in enumerate(zip(line, wide, strict=True))
        ).rstrip()
        for line in cells
    )
