"""A sizing as one self-contained HTML file."""

from __future__ import annotations

import html
from collections.abc import Sequence

from mlsys.cli.page import whole_page, wide_table
from mlsys.models.inference.pareto import Choice, choices, pareto_front
from mlsys.models.inference.result import Sizing
from mlsys.models.inference.words import amount, summary

_LAYOUTS, _WIDTH, _HEIGHT, _LEFT, _BOTTOM = 8, 640, 380, 70, 50


def size_page(sizing: Sizing, overrides: Sequence[str] = ()) -> str:
    """Return the page: the summary, the Pareto front of latency against cost, layouts, the curve and assumptions."""
    points = choices(sizing, _LAYOUTS)
    front = pareto_front(points)
    listed = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in summary(sizing))
    notes = "".join(f"<li>{html.escape(text)}</li>" for text in sizing.assumptions)
    parts = [f"<p>{html.escape(sizing.workload)}; {html.escape(str(sizing.layout))}</p>", f"<dl>{listed}</dl>"]
    if points:
        parts += [
            f"<h2>Latency against cost</h2>\n<figure>{_picture(points, front)}</figure>",
            _front_table(front),
        ]
    parts += [
        f"<h2>Layouts</h2>\n{_layouts(sizing)}",
        f"<h2>Assumptions</h2>\n<ul>{notes}</ul>",
    ]
    if overrides:
        parts.append(f"<p><b>User overrides</b>: {html.escape('; '.join(overrides))}</p>")
    return whole_page(f"{sizing.model} on {sizing.device}", parts)


def _front_table(front: Sequence[Choice]) -> str:
    heads = ("layout", "chips", "batch", "TPOT", "tokens/s a chip", "USD per million tokens")
    rows = [
        (
            str(each.layout),
            each.chips,
            f"{each.batch:,}",
            amount(each.tpot_seconds, "s"),
            f"{each.tokens_per_second_per_chip:,.4g}",
            "–" if each.usd_per_million_tokens is None else f"{each.usd_per_million_tokens:.4g}",
        )
        for each in front
    ]
    return wide_table("The Pareto front: no other choice is both faster and cheaper.", heads, rows)


def _layouts(sizing: Sizing) -> str:
    heads = ("layout", "chips", "bytes a chip", "fits", "most sequences", "TTFT", "TPOT", "tokens/s a chip")
    rows = []
    for placed in sizing.placed:
        rates = placed.rates
        rows.append(
            (
                str(placed.layout),
                placed.chips,
                amount(placed.per_chip.needed, "byte"),
                "yes" if placed.fits else "no",
                f"{placed.largest_batch:,}",
                amount(None if rates.ttft is None else rates.ttft.seconds, "s"),
                amount(None if rates.tpot is None else rates.tpot.seconds, "s"),
                f"{rates.tokens_per_second / placed.chips:,.4g}" if placed.holds_a_layer else "–",
            )
        )
    return wide_table("At the requested batch, the best first.", heads, rows)


def _picture(points: Sequence[Choice], front: Sequence[Choice]) -> str:
    """Return the choices as an SVG on logarithmic axes: time between tokens against cost, or chip-seconds a token."""
    from math import log10

    across = [log10(each.tpot_seconds) for each in points]
    up = [log10(_cost(each)) for each in points]
    (left, right), (low, high) = _ends(across), _ends(up)

    def place(each: Choice) -> tuple[float, float]:
        x = _LEFT + (log10(each.tpot_seconds) - left) / (right - left) * (_WIDTH - _LEFT - 20)
        y = _HEIGHT - _BOTTOM - (log10(_cost(each)) - low) / (high - low) * (_HEIGHT - _BOTTOM - 20)
        return x, y

    dots = "".join(
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='#8a8a8a'><title>{html.escape(str(each))}</title></circle>"
        for each in points
        for x, y in [place(each)]
    )
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, front))
    marks = "".join(
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4.5' fill='#006395'><title>{html.escape(str(each))}</title></circle>"
        for each in front
        for x, y in [place(each)]
    )
    unit = "USD per million tokens" if points[0].usd_per_million_tokens is not None else "chip-seconds per token"
    ticks = "".join(
        f"<text x='{_LEFT + (value - left) / (right - left) * (_WIDTH - _LEFT - 20):.1f}' y='{_HEIGHT - 30}' "
        f"text-anchor='middle'>{amount(10**value, 's')}</text>"
        for value in _ticks(left, right)
    ) + "".join(
        f"<text x='{_LEFT - 8}' y='{_HEIGHT - _BOTTOM - (value - low) / (high - low) * (_HEIGHT - _BOTTOM - 20):.1f}' "
        f"text-anchor='end'>{10**value:.3g}</text>"
        for value in _ticks(low, high)
    )
    label = f"Time between tokens against {unit}; the front has {len(front)} of {len(points)} choices."
    return (
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img' aria-label='{html.escape(label, quote=True)}' "
        f"font-family='sans-serif' font-size='12'>"
        f"<path d='M{_LEFT},20 V{_HEIGHT - _BOTTOM} H{_WIDTH - 20}' fill='none' stroke='#8a8a8a'/>"
        f"<polyline points='{path}' fill='none' stroke='#006395'/>{dots}{marks}{ticks}"
        f"<text x='{(_WIDTH + _LEFT) / 2}' y='{_HEIGHT - 8}' text-anchor='middle'>time between tokens</text>"
        f"<text x='14' y='{_HEIGHT / 2}' text-anchor='middle' transform='rotate(-90 14 {_HEIGHT / 2})'>{unit}</text>"
        "</svg>"
    )


def _cost(choice: Choice) -> float:
    """Return the cost of a million tokens; without a rent, the chip-seconds of a token."""
    cost = choice.usd_per_million_tokens
    return 1 / choice.tokens_per_second_per_chip if cost is None else cost


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis, with a margin."""
    low, high = min(values), max(values)
    margin = max(0.05 * (high - low), 0.05)
    return low - margin, high + margin


def _ticks(low: float, high: float) -> list[float]:
    """Return four places on an axis."""
    return [low + (high - low) * part for part in (0.05, 0.35, 0.65, 0.95)]
