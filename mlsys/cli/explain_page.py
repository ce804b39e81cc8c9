"""HTML report of an explained measurement, self-contained, with figures and raw data."""

import html
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mlsys.cli.page import whole_page, wide_table
from mlsys.files import atomically
from mlsys.measure import Attribution, Log, doubts
from mlsys.measure.attribution import attribution_or_reason
from mlsys.measure.doubts import integer_summary
from mlsys.measure.hypotheses import standard_claims
from mlsys.measure.recommend.platforms import Platform, platform_of, published
from mlsys.measure.recommend.whatif import what_ifs
from mlsys.measure.summary import agreement, summary

OPERATOR_COLUMNS = (
    "layer", "kind", "time_ms", "share_percent", "compute_ms", "memory_ms", "launch_ms", "residual_ms", "limited_by",
    "macs", "weight_bytes", "read_bytes", "write_bytes", "ops_per_byte", "giga_ops_per_s",
)  # fmt: skip


class Drawing:
    """A figure that can be drawn, or the reason why it cannot.

    Parameters
    ----------
    file
        File name without extension.
    title
        Title of the figure.
    draw
        Function that returns the figure.
    alt
        Alternative text.
    absent
        Reason why it cannot be drawn; ``draw`` is then never called.
    """

    def __init__(self, file: str, title: str, draw: Callable[[], Any], alt: str, absent: str = "") -> None:
        self.file, self.title, self.draw, self.alt, self.absent = file, title, draw, alt, absent


def _figure(draw: Callable[[Any], object], size: tuple[float, float], polar: bool = False, panels: int = 1) -> Any:
    from mlsys.viz import setup_plot

    fig, ax, _, plt = setup_plot(figsize=size)
    if panels > 1:
        ax.remove()
        draw(fig.subplots(2, panels // 2).ravel())
    elif polar:
        ax.remove()
        draw(fig.add_subplot(projection="polar"))
    else:
        draw(ax)
    plt.close(fig)
    return fig


def pictures(logs: Sequence[Log], rows: Sequence[Platform]) -> list[Drawing]:
    """Return every figure, those of the first log first; figures without data carry a reason.

    Parameters
    ----------
    logs
        At least one; the first is explained.
    rows
        Platforms to compare.
    """
    from mlsys.viz import explain, explain_logs

    log = logs[0]
    attribution, why = attribution_or_reason(log)
    each = attribution.shares if attribution else {}
    shares = ", ".join(f"{cause} {share:.0f} %" for cause, share in each.items())
    mean = sum(log.energies) / len(log.energies) if log.energies else 0.0
    no_energy = "" if log.energies else f"no energy was measured: {log.energy['reason']}"
    counted = any((sample.counters or {}).get("accesses") for sample in log.layers)
    same = [entry for entry in logs if (entry.model, entry.platform) == (log.model, log.platform)]
    medians = ", ".join(f"{entry.name} {entry.median:.3g} ms" for entry in same)
    full = [row for row in rows if row.latency_ms is not None and row.energy_mj is not None]
    listed = "; ".join(f"{row.platform} {row.latency_ms:.3g} ms {row.energy_mj:.3g} mJ" for row in full)

    def drawn(
        chart: Callable[..., Any], size: tuple[float, float], *given: Any, polar: bool = False, panels: int = 1
    ) -> Any:
        return lambda: _figure(lambda ax: chart(ax, *given), size, polar, panels)

    return [
        Drawing("waterfall", "Layers in order", drawn(explain.layer_waterfall, (8, 4.5), attribution),
                f"Waterfall of the layers of {log.name}: {shares}.", why),
        Drawing("attribution_sunburst", "By cause, then by layer", drawn(explain.sunburst, (6.5, 5), attribution),
                f"Two rings, causes inside and layers outside: {shares}.", why),
        Drawing("roofline", "Layers under the measured roof", drawn(explain.layer_roofline, (7.5, 4.5), attribution),
                f"Roofline of the measured rates with the layers of {log.name}.", why),
        Drawing("latency_timeline", "Every sample", drawn(explain_logs.latency_timeline, (8, 3.6), log),
                f"Latencies of {log.name} in order; median {log.median:.4g} ms."),
        Drawing("energy_pie", "Energy by cause", drawn(explain.energy_by_cause, (8, 2.2), attribution, mean),
                f"One bar of {mean:.3g} mJ by cause: {shares}.", no_energy or why),
        Drawing("memory_access_patterns", "Misses", drawn(explain_logs.miss_rates, (8, 3.6), log),
                f"Share of accesses that missed, by layer of {log.name}.",
                "" if counted else f"no accesses were counted: {log.counters['reason']}"),
        Drawing("optimization_timeline", "From one variant to the next",
                drawn(explain_logs.step_timeline, (9, 4), same),
                f"Medians: {medians}.", "" if len(same) > 1 else "only one log of this network was given"),
        Drawing("hardware_comparison_radar", "Platforms, normalised to the best",
                drawn(explain_logs.radar, (8, 4.5), full, polar=True), f"Radar of {listed}.",
                "" if len(full) > 1 else "fewer than two platforms have time and energy"),
        Drawing("comparison_dashboard", "Platforms side by side",
                drawn(explain_logs.dashboard, (12, 1.6 + 0.55 * len(rows)), rows, panels=4),
                f"Bars of latency, energy, memory and spread of {len(rows)} platforms."),
    ]  # fmt: skip


def operator_table(attribution: Attribution, log: Log) -> list[dict[str, Any]]:
    """Return one row per layer, as in ``operators.csv``."""
    works = {work.name: work for work in log.works}
    rows = []
    for layer in attribution.layers:
        work = works[layer.name]
        values = (
            layer.name, layer.kind, layer.time, 100 * layer.time / attribution.total, layer.compute, layer.memory,
            layer.parts["launch"], layer.parts["residual"], layer.bound, work.macs, work.weight_bytes, work.read_bytes,
            work.write_bytes, layer.intensity, layer.rate / 1e9,
        )  # fmt: skip
        rows.append(dict(zip(OPERATOR_COLUMNS, values, strict=True)))
    return rows


def explain_page(logs: Sequence[Log], extra: Sequence[Platform] = (), command: str = "") -> str:
    """Return the page: measurement, attribution, possible gains, claims, platforms, and an appendix.

    Parameters
    ----------
    logs
        At least one; the first is explained by layer.
    extra
        Further platforms to compare with the logs and the published microcontrollers.
    command
        Command that made the page, for the appendix.
    """
    from mlsys.viz.analysis import inline_svg

    log, rows = logs[0], [*map(platform_of, logs), *extra]
    if any(log.model == "ds-cnn" for log in logs):
        rows += [row for row in published() if row.platform.startswith("STM32")]
    attribution, why = attribution_or_reason(log)
    parts = [_totals(log), _paragraph(log, attribution, why)]
    parts += [_table("Doubts", ("detected automatically",), [(text,) for text in doubts(log)], "No doubts.")]
    for picture in pictures(logs, rows):
        parts.append(f"<h2>{html.escape(picture.title)}</h2>")
        if picture.absent:
            parts.append(f"<p>Absent: {html.escape(picture.absent)}.</p>")
        else:
            parts.append(f"<figure>{inline_svg(picture.draw(), picture.alt)}</figure>")
    if attribution is not None:
        cells = [[_cell(value) for value in row.values()] for row in operator_table(attribution, log)]
        parts.append(wide_table("Layers, in order", OPERATOR_COLUMNS, cells))
        parts.append("<h2>What if</h2>" + _gains(attribution, log))
    verdicts = [(claim.verdict, claim.explain().partition(": ")[2]) for claim in standard_claims(logs)]
    parts += ["<h2>Claims</h2>", _table("Judged by these logs", ("verdict", "claim"), verdicts, "No pair of logs.")]
    parts += ["<h2>Platforms</h2>", _platforms(rows), _agreements(logs), "<h2>Appendix</h2>", _appendix(logs, command)]
    return whole_page(f"Why is it slow? {log.name}", parts)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _known(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _totals(log: Log) -> str:
    data = summary(log)
    latency, cold = data["latency_ms"], data["cold"]
    load = "not numbers" if cold is None or cold["load_ms"] is None else f"{cold['load_ms']:.4g} ms"
    listed = [
        ("Where, when", f"{log.platform}, {log.day}"),
        ("Median", f"{latency['p50']:.4g} ms (95 %: {latency['low']:.4g} to {latency['high']:.4g})"),
        ("p95", f"{latency['p95']:.4g} ms"),
        ("p99", f"{latency['p99']:.4g} ms" if latency["p99"] else f"not reported: {data['p99_reason']}"),
        ("Samples", f"{data['samples']} in {data['runs']} runs after {log.protocol['warmup']} warm-up inferences each"),
        ("Between runs", "one run only" if data["between_runs"] is None else f"{data['between_runs']:.1%}"),
        ("Cold start", f"load {load}, first inference {cold['first_ms']:.4g} ms" if cold else "not measured"),
        ("Energy", f"{data['energy_mj']['mean']:.4g} mJ" if log.energies else f"absent: {log.energy['reason']}"),
        ("Counters", f"{log.counters['source'] or 'absent'}; {log.counters['reason']}"),
        ("Layers", log.layer_times["source"] or f"absent: {log.layer_times['reason']}"),
        *((("Integer arithmetic", words),) if (words := integer_summary(log)) else ()),
    ]  # fmt: skip
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in listed) + "</dl>"


def _paragraph(log: Log, attribution: Attribution | None, why: str) -> str:
    text = attribution.explain() if attribution is not None else f"Not attributed: {why}"
    return "<p class='first'>" + "<br>".join(map(html.escape, text.splitlines())) + "</p>"


def _table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]], none: str) -> str:
    return wide_table(caption, columns, rows) if rows else f"<p>{caption}: {none}</p>"


def _gains(attribution: Attribution, log: Log) -> str:
    columns = ("change", "affected, %", "speed-up of the whole, at most", "limit by Amdahl", "why")
    rows = [
        (gain.change, f"{100 * gain.share:.1f}", f"{gain.speedup:.2f}", f"{gain.limit:.2f}", gain.why)
        if gain.applies
        else (gain.change, "—", "not applicable", "—", gain.why)
        for gain in what_ifs(attribution, log)
    ]
    return wide_table("Upper bounds, not predictions", columns, rows)


def _platforms(rows: Sequence[Platform]) -> str:
    columns = ("platform", "latency, ms", "energy, mJ", "mean power, mW", "memory, kB", "between runs", "source")
    cells = [
        (
            row.platform, *(("not known" if value is None else f"{value:.4g}") for value in
                            (row.latency_ms, row.energy_mj, row.power_mw, row.memory_kb)),
            "not known" if row.between_runs is None else f"{row.between_runs:.1%}", row.source,
        )
        for row in rows
    ]  # fmt: skip
    return wide_table("Measured here, and published", columns, cells)


def _agreements(logs: Sequence[Log]) -> str:
    rows = [(first, other, f"{difference:.2g}") for first, other, difference in agreement(logs)]
    return _table(
        "Differences of outputs, relative to the largest output", ("of", "and", "differ by"), rows, "one log only."
    )


def _appendix(logs: Sequence[Log], command: str) -> str:
    parts = [f"<p>Made by <code>{html.escape(command)}</code>.</p>"] if command else []
    for log in logs:
        written = json.dumps(
            {"protocol": dict(log.protocol), "environment": dict(log.environment), "rates": log.rates},
            indent=1, ensure_ascii=False,
        )  # fmt: skip
        raw = "\n".join(
            ["run,iteration,latency_ms,energy_mj"]
            + [
                f"{s.run},{s.iteration},{s.latency_ms:.6g},{'' if s.energy_mj is None else s.energy_mj}"
                for s in log.samples
            ]
        )
        parts.append(
            f"<details><summary>{html.escape(log.name)}: versions, settings, raw samples</summary>"
            f"<pre>{html.escape(written)}</pre><pre>{html.escape(raw)}</pre></details>"
        )
    return "\n".join(parts)


def write_pictures(logs: Sequence[Log], folder: Path) -> tuple[list[Path], list[str]]:
    """Write every figure that the data allow as a 300-dpi PNG; return the files, and reasons for the missing ones."""
    rows = [*map(platform_of, logs), *(row for row in published() if row.platform.startswith("STM32"))]
    written, absent = [], []
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures(logs, rows):
        if picture.absent:
            absent.append(f"{picture.file}.png: {picture.absent}")
            continue
        path = folder / f"{picture.file}.png"
        figure = picture.draw()
        atomically(path, lambda draft, figure=figure: figure.savefig(draft, format="png", dpi=300))  # type: ignore[misc]
        written.append(path)
    return written, absent
