"""HTML report of a plan, in one self-contained file."""

import html
from collections.abc import Sequence

from mlsys.cli.page import whole_page, wide_table
from mlsys.planner.placement import PlanResult
from mlsys.planner.placement.report import COLUMNS, stage_rows
from mlsys.planner.placement.words import decimal_text


def plan_page(result: PlanResult, overrides: Sequence[str] = ()) -> str:
    """Return the page: totals, reasons, a Gantt chart of the best placement, and a table of each."""
    from mlsys.viz.analysis import inline_svg
    from mlsys.viz.placement import plan_alt_text, plan_figure

    title = f"{result.scenario.name}: where each stage runs"
    known = "proven optimal" if result.optimal else f"gap at most {100 * result.gap:.3g} %"
    totals: list[tuple[str, str]] = [("Goal", result.goal), ("Strategy", f"{result.strategy}, {known}")]
    if result.placements:
        best = result.placements[0]
        totals += [
            ("Score", f"{best.score:.6g}"),
            ("Latency", f"{decimal_text(best.placed.latency)} ms"),
            ("Energy", f"{decimal_text(best.placed.energy)} mJ"),
            ("Switches", str(best.placed.switches)),
        ]
    parts = ["<dl>" + "".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in totals) + "</dl>"]
    parts.append("<p class='first'>" + "<br>".join(map(html.escape, result.why)) + "</p>")
    if result.placements:
        parts.append(f"<h2>When</h2>\n<figure>{inline_svg(plan_figure(result), plan_alt_text(result))}</figure>")
    listed = stage_rows(result)
    for rank, placement in enumerate(result.placements, start=1):
        caption = (
            f"#{rank}: score {placement.score:.6g}, {decimal_text(placement.placed.latency)} ms, "
            f"{decimal_text(placement.placed.energy)} mJ, "
            f"{placement.placed.switches} switch{'es' * (placement.placed.switches != 1)}. "
            "Transfers are attributed to the receiving stage."
        )
        table = [[row[name] for name in COLUMNS[1:]] for row in listed if row["rank"] == rank]
        parts.append(wide_table(caption, COLUMNS[1:], table))
        held = [
            (device.name, decimal_text(placement.placed.memory.get(device.name, 0)), decimal_text(device.memory))
            for device in result.scenario.devices
        ]
        parts.append(wide_table("Memory held", ("device", "held, MB", "budget, MB"), held))
    if overrides:
        parts.append(f"<p><b>User overrides</b>: {html.escape('; '.join(overrides))}</p>")
    return whole_page(title, parts)
