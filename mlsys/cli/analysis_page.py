"""HTML report of an analysis, in one self-contained file."""

import html
from collections.abc import Sequence

from mlsys.cli.page import whole_page, wide_table
from mlsys.formatting import natural
from mlsys.hardware.device import Device
from mlsys.models.analysis import Analysis
from mlsys.models.analysis.answer import SAMPLES


def analysis_page(analysis: Analysis, device: Device, overrides: Sequence[str] = ()) -> str:
    """Return the page: totals, advice, the roofline with every layer, and tables."""
    from mlsys.viz.analysis import analysis_alt_text, analysis_figure, inline_svg

    title = f"{analysis.workload} on {analysis.device}"
    causes = ", ".join(f"{cause} {analysis.share_limited_by(cause):.0%}" for cause in ("compute", "memory", "launch"))
    totals = (
        ("Number format", analysis.precision),
        (
            "Batch",
            f"{analysis.samples if analysis.batched else 'no batch axis'}; "
            f"{natural(analysis.rate.m_as('1/s'))} {SAMPLES[analysis.kind]}/s at the estimate",
        ),
        ("At least", f"{analysis.bound.to_compact():.4g} (roofline, bound by {analysis.roofline.bound_by})"),
        ("Estimate", f"{analysis.estimate.to_compact():.4g} (calibrated: {analysis.calibration})"),
        (
            "80 % range",
            " to ".join(f"{time.to_compact():.3g}" for time in analysis.range) + f" ({analysis.interval.why})",
        ),
        ("Energy", _energy(analysis)),
        ("Limited by", causes),
        ("Work", f"{analysis.flops.to_compact():.4g}, {analysis.utilisation:.1%} of {analysis.peak:.4g}"),
        ("Bytes", f"{analysis.data.to_compact():.4g}, weights {analysis.weights.to_compact():.4g}"),
        ("Memory", str(analysis.memory)),
        ("Intensity", f"{analysis.intensity:.4g}; the ridge is {analysis.ridge:.4g}"),
    )
    listed = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in totals)
    assumptions = "".join(f"<li>{html.escape(text)}</li>" for text in analysis.assumptions)
    figure = inline_svg(analysis_figure(analysis, device), analysis_alt_text(analysis))
    parts = [
        f"<dl>{listed}</dl>",
        f"<p class='first'>{html.escape(analysis.first)}</p>",
        f"<h2>Every layer under the roof</h2>\n<figure>{figure}</figure>",
        f"<h2>What if</h2>\n{_changes(analysis)}",
        f"<h2>Operators</h2>\n{_operators(analysis)}",
        f"<h2>Assumptions</h2>\n<ul>{assumptions}</ul>",
    ]
    if overrides:
        parts.append(f"<p><b>User overrides</b>: {html.escape('; '.join(overrides))}</p>")
    return whole_page(title, parts)


def _energy(analysis: Analysis) -> str:
    energy = analysis.energy
    if energy is None:
        return "not estimated: no power under load is known for this device or its class"
    low, high = (f"{bound.to_compact():.3g}" for bound in energy.range)
    return (
        f"{energy.energy.to_compact():.3g} per pass, {low} to {high}; {energy.static_share:.0%} of it is "
        f"idle power ({energy.power.why})"
    )


def _changes(analysis: Analysis) -> str:
    columns = ("operators", "if", "share, %", "time after", "speedup", "limit")
    rows = [
        (
            change.target,
            change.change,
            f"{100 * change.share:.1f}",
            f"{change.time.to_compact():.3g}",
            f"{change.speedup:.2f}",
            f"{change.limit:.2f}" if change.limit != float("inf") else "—",
        )
        for change in analysis.changes
    ]
    caption = "Largest gain first. Speedup of the network; the limit is Amdahl's, for operators in zero time."
    return wide_table(caption, columns, rows)


def _operators(analysis: Analysis) -> str:
    columns = (
        *("operator", "kind", "share, %", "estimate, µs", "at least, µs", "MFLOP", "kB", "FLOP/byte"),
        *("of peak, %", "bound by", "limited by"),
    )
    rows = [
        (
            operator.name,
            operator.kind,
            f"{100 * operator.share:.2f}",
            f"{operator.estimate.m_as('us'):.2f}",
            f"{operator.bound.m_as('us'):.2f}",
            f"{operator.flops.m_as('MFLOP'):.2f}",
            f"{operator.data.m_as('kB'):.1f}",
            f"{operator.intensity.m_as('FLOP/byte'):.2f}",
            f"{100 * operator.utilisation:.1f}",
            operator.bound_by,
            operator.limited_by,
        )
        for operator in analysis.operators
    ]
    return wide_table("In execution order. Bound by: the roofline. Limited by: the estimate.", columns, rows)
