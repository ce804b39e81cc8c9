"""Reports of an edge run: CSV files, three figures, Markdown, and one self-contained HTML file."""

import html
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mlsys.cli.page import whole_page, wide_table
from mlsys.edge.config import Config
from mlsys.edge.evaluate import VariantMeasurement
from mlsys.edge.layers import LAYER_COLUMNS, SUMMARY_COLUMNS, HardwareSummary, LayerRow
from mlsys.edge.points import EdgePoint, points_of
from mlsys.edge.tables import LIMITS, TRADEOFF_COLUMNS, csv_files, edge_advice, lead, markdown, named, tradeoffs
from mlsys.files import write_bytes


def report_files(config: Config, measured: Sequence[VariantMeasurement], machine: str) -> dict[str, bytes]:
    """Return every file of the report by name; nothing is written until all of them are complete.

    Parameters
    ----------
    config, measured
        Configuration of the run, and its results.
    machine
        Description of the machine.
    """
    import io

    from mlsys.edge.evaluate import base_workload
    from mlsys.edge.layers import layer_stats, summarize_hardware
    from mlsys.units import Q_
    from mlsys.viz.edge import edge_figures

    points = points_of(config, measured)
    first = lead(points)
    assert first.statistics is not None
    work = base_workload(config)
    layers = layer_stats(work)
    summary = summarize_hardware(work, Q_(first.statistics.p50, "ms"), config.bandwidth, batch=config.batch)
    files = {name: text.encode() for name, text in csv_files(config, measured, points, layers, summary).items()}
    figures = edge_figures(layers, points, config.active_budget.m_as("MB"))
    for name, (figure, _) in figures.items():
        stream = io.BytesIO()
        figure.savefig(stream, format="png", metadata={"Software": None})
        files[name] = stream.getvalue()
    files["report.md"] = markdown(config, points, layers, summary, machine).encode()
    files["report.html"] = edge_page(config, points, layers, summary, machine, figures).encode()
    return files


def write_reports(config: Config, measured: Sequence[VariantMeasurement], folder: Path) -> None:
    """Write every file of the report into a folder, each atomically."""
    from mlsys.edge.run import machine_of

    for name, content in report_files(config, measured, machine_of(folder)).items():
        write_bytes(folder / name, content)


def edge_page(
    config: Config,
    points: Sequence[EdgePoint],
    layers: Sequence[LayerRow],
    summary: Sequence[HardwareSummary],
    machine: str,
    figures: dict[str, tuple[Any, str]],
) -> str:
    """Return the report as one HTML file."""
    from mlsys.viz.analysis import inline_svg

    advice = "<br>".join(map(html.escape, edge_advice(config, points, summary)))
    latency = "measured here" if config.device is None else f"modelled for {config.device}"
    facts = [
        ("Network", f"{config.network} on {config.source}, batch {config.batch}, seed {config.seed}"),
        ("Latency", f"{latency}; medians of raw samples" if config.device is None else latency),
        ("Machine", machine),
        (
            "Budget",
            f"{config.active_budget:~}; others reported: {', '.join(f'{budget:~}' for budget in config.budgets)}",
        ),
        ("Power", f"static {config.static_power:.3g~P}, dynamic by format in points.csv; {config.power_rests_on}"),
    ]
    parts = ["<dl>" + "".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in facts) + "</dl>"]
    parts.append(f"<p class='first'>{advice}</p>")
    parts.append(_figure(inline_svg, figures["precision_tradeoffs.png"], "Trade-offs of each variant"))
    front = [_row(point) for point in points if point.pareto]
    parts.append(_wide("Pareto-optimal among the accepted points.", front))
    parts.append("<h2>By number format</h2>")
    means = [[_text(row[name]) for name in TRADEOFF_COLUMNS] for row in tradeoffs(points)]
    parts.append(wide_table("Means over all points of a format, all clocks.", TRADEOFF_COLUMNS, means))
    parts.append("<h2>All points</h2>")
    parts.append(_wide("Accepted, or the reason for rejection.", [_row(point) for point in points]))
    parts.append(_figure(inline_svg, figures["layerwise_activation_memory.png"], "Layers"))
    parts.append(f"<figure>{inline_svg(*figures['layerwise_macs.png'])}</figure>")
    rows = [[_text(asdict(row)[name]) for name in LAYER_COLUMNS] for row in layers]
    caption = f"Layers with weights, {named(lead(points))}, one batch."
    parts.append(wide_table(caption, LAYER_COLUMNS, rows))
    rates = [[_text(asdict(row)[name]) for name in SUMMARY_COLUMNS] for row in summary]
    caption = "Three ways of counting the bytes, for a batch and for one sample."
    parts.append("<h2>Rates</h2>" + wide_table(caption, SUMMARY_COLUMNS, rates))
    parts.append("<h2>Limitations</h2><ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in LIMITS) + "</ul>")
    return whole_page(config.name, parts)


def _figure(inline_svg: Any, figure: tuple[Any, str], head: str) -> str:
    return f"<h2>{head}</h2>\n<figure>{inline_svg(*figure)}</figure>"


def _wide(caption: str, rows: list[list[str]]) -> str:
    columns = ("variant", "clock", "right, %", "time, ms", "p95, ms", "p99, ms", "energy, mJ", "memory, MB", "accepted")
    return wide_table(caption, columns, rows)


def _row(point: EdgePoint) -> list[str]:
    times = point.statistics
    accepted = "yes" if point.accepted else "; ".join(point.reasons)
    if times is None:
        return [str(point.measured.variant), f"{point.clock.scale:g}", *("—",) * 6, accepted]
    tails = [f"{time:.4g}" if time is not None else "—" for time in (times.p95, times.p99)]
    energy, memory = point.objectives[2], point.memory / 1e6
    return [
        str(point.measured.variant),
        f"{point.clock.scale:g}" + (f" at {point.clock.voltage:g} V/V" if point.clock.voltage != 1 else ""),
        f"{100 * point.objectives[0]:.2f}",
        f"{times.p50:.4g}",
        *tails,
        f"{energy:.4g}",
        f"{memory:.4g}",
        accepted,
    ]


def _text(value: Any) -> str:
    return "—" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
