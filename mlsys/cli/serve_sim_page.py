"""A simulated service as one self-contained HTML file."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import numpy as np

from mlsys.cli.page import whole_page, wide_table
from mlsys.models.serving.answer import ServingResult
from mlsys.models.serving.requests import Floats

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 320, 60, 45
_COLOURS = {"TTFT": "#1f6feb", "end to end": "#b35900"}


def serving_page(result: ServingResult) -> str:
    """Return the page: the summary, the distribution of latencies, the table of percentiles and assumptions."""
    text = result.explain().splitlines()
    table = result.table()
    body = [
        line for line in text if line.startswith(("mean latency", "busy", "static batching")) or "requests in" in line
    ]
    body += [line for line in text if " meet " in line]
    notes = "".join(f"<li>{html.escape(line)}</li>" for line in result.assumptions)
    parts = [
        f"<p>{html.escape(result.workload)}</p>",
        wide_table("Latency over all requests.", table.columns, table.rows),
        *(f"<p>{html.escape(line)}</p>" for line in body),
        f"<h2>Share of the requests by latency</h2>\n<figure>{_picture(result)}</figure>",
        f"<h2>Assumptions</h2>\n<ul>{notes}</ul>",
    ]
    return whole_page(f"{result.model} on {result.device}", parts)


def _picture(result: ServingResult) -> str:
    """Return the cumulative distributions of TTFT and end-to-end latency as an SVG, on a logarithmic axis of time."""
    curves = {"TTFT": np.sort(result.run.ttft), "end to end": np.sort(result.run.latency)}
    low = float(np.log10(max(min(values[0] for values in curves.values()), 1e-9)))
    high = float(np.log10(max(values[-1] for values in curves.values())))
    low, high = np.floor(low), max(np.ceil(high), np.floor(low) + 1)

    def across(seconds: float) -> float:
        return float(_LEFT + (np.log10(max(seconds, 1e-9)) - low) / (high - low) * (_WIDTH - _LEFT - 20))

    def up(share: float) -> float:
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - 20)

    lines = "".join(
        f"<polyline fill='none' stroke='{_COLOURS[name]}' stroke-width='2' points='{_points(values, across, up)}'/>"
        f"<text x='{_LEFT + 10}' y='{30 + 16 * index}' fill='{_COLOURS[name]}' font-size='13'>{name}</text>"
        for index, (name, values) in enumerate(curves.items())
    )
    ticks = "".join(
        f"<text x='{across(10.0**power):.0f}' y='{_HEIGHT - _BOTTOM + 18}' font-size='12' text-anchor='middle'>"
        f"{_tick(power)}</text>"
        f"<line x1='{across(10.0**power):.0f}' x2='{across(10.0**power):.0f}' y1='20' y2='{_HEIGHT - _BOTTOM}' "
        "stroke='#ddd'/>"
        for power in range(int(low), int(high) + 1)
    )
    shares = "".join(
        f"<text x='{_LEFT - 8}' y='{up(share) + 4:.0f}' font-size='12' text-anchor='end'>{share:.0%}</text>"
        for share in (0, 0.5, 0.9, 1)
    )
    return (
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img' aria-label='share of the requests by latency'>"
        f"{ticks}{shares}{lines}<text x='{_WIDTH / 2:.0f}' y='{_HEIGHT - 6}' font-size='12' text-anchor='middle'>"
        "latency</text></svg>"
    )


def _points(values: Floats, across: Callable[[float], float], up: Callable[[float], float], most: int = 400) -> str:
    shares = np.linspace(0, 1, min(len(values), most))
    chosen = values[np.round(shares * (len(values) - 1)).astype(int)]
    return " ".join(
        f"{across(float(value)):.1f},{up(float(share)):.1f}" for value, share in zip(chosen, shares, strict=True)
    )


def _tick(power: int) -> str:
    units: Sequence[tuple[int, str]] = ((0, "s"), (-3, "ms"), (-6, "µs"), (-9, "ns"))
    for least, unit in units:
        if power >= least:
            return f"{10 ** (power - least):g} {unit}"
    return f"1e{power} s"
