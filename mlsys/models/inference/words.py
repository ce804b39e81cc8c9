"""A sizing as text: memory by part, times with their ranges, layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsys.formatting import natural
from mlsys.units import Q_

if TYPE_CHECKING:
    from mlsys.models.inference.placed import Placed
    from mlsys.models.inference.result import Sizing
    from mlsys.models.inference.speculative import SpeculativeStep

_LISTED = 12


def explained(sizing: Sizing) -> str:
    """Return a sizing as text."""
    where = f" on {sizing.device}, {sizing.layout}" if sizing.device else ""
    if sizing.device and sizing.request.replicas > 1:
        where += f", {sizing.request.replicas} copies"
    lines = [f"{sizing.model}{where}: {sizing.workload}"]
    lines += [f"  {name:<13} {text}" for name, text in summary(sizing)]
    if sizing.best is not None:
        lines += ["", *_layouts(sizing), "", *_curve(sizing)]
    lines += ["Assumptions:", *(f"  - {text}" for text in sizing.assumptions)]
    return "\n".join(lines)


def amount(number: float | None, unit: str) -> str:
    """Return a number with its unit, in four digits; a dash for None.

    Examples
    --------
    >>> amount(16060522496, "byte"), amount(0.0123, "s"), amount(None, "s")
    ('16.06 GB', '12.3 ms', '–')
    """
    return "–" if number is None else f"{Q_(float(number), unit).to_compact():.4g~P}"


def summary(sizing: Sizing) -> list[tuple[str, str]]:
    """Return what is known, by name, as text."""
    active = sizing.active_parameters
    parts = sizing.per_chip if sizing.device else sizing.memory
    named = {
        "weights": parts.weights,
        "KV cache": parts.kv_cache,
        "states": parts.states,
        "activations": parts.activations,
    }
    split = " + ".join(f"{name} {amount(size, 'byte')}" for name, size in named.items() if size)
    rows = [
        (
            "parameters",
            f"{sizing.parameters:,}" + (f", {active:,} active" if active != sizing.parameters else ""),
        ),
        ("weights", amount(sizing.weight_bytes, "byte")),
        (
            "KV cache",
            f"{sizing.kv_cache_bytes_per_token:,} B per token; {amount(sizing.kv_cache_bytes, 'byte')} in all",
        ),
    ]
    if sizing.cross_cache_bytes:
        rows.append(("of these", f"{amount(sizing.cross_cache_bytes, 'byte')} for cross-attention"))
    if not sizing.device:
        return [*rows, ("needed", f"{amount(sizing.needed_bytes, 'byte')}: {split}")]
    room = f"of {amount(sizing.request.usable * (sizing.capacity_bytes or 0), 'byte')} that may be filled"
    verdict = "fits" if sizing.fits else "does not fit"
    rows.append(("each chip", f"{amount(parts.needed, 'byte')} {room}: {verdict} ({split})"))
    sequence = "no limit" if sizing.largest_sequence is None else f"{sizing.largest_sequence:,} tokens"
    rows.append(("largest", f"batch {sizing.largest_batch:,} at this sequence; sequence of {sequence} at this batch"))
    for name, which in (("TTFT", "ttft"), ("TPOT", "tpot")):
        middle = getattr(sizing, f"{which}_seconds")
        if middle is not None:
            low, high = (amount(getattr(sizing, f"{which}_seconds_{end}"), "s") for end in ("low", "high"))
            rows.append((name, f"{amount(middle, 's')}, {low} to {high} (80 % interval)"))
    if sizing.rates is None:
        return rows
    drafted = sizing.speculative
    if drafted is not None:
        spent = f"{amount(drafted.drafted * drafted.draft.seconds, 's')} + {amount(drafted.verify.seconds, 's')}"
        rows.append(("drafted", f"{drafted.tokens:.3g} tokens in a round of {spent}; {_gain(drafted)}"))
    ends = "tokens_per_second", "tokens_per_second_per_chip", "tokens_per_second_low", "tokens_per_second_high"
    rate, each, slowest, fastest = (natural(getattr(sizing, end), 4) for end in ends)
    rows.append(("rate", f"{rate} tokens/s, {slowest} to {fastest}; {each} per chip"))
    rows.append(("limited by", sizing.bound_by))
    money = [
        (sizing.usd_per_million_tokens, "USD"),
        (sizing.kwh_per_million_tokens, "kWh"),
        (sizing.gco2e_per_million_tokens, "g CO2e"),
    ]
    known = ", ".join(f"{natural(number, 4)} {unit}" for number, unit in money if number is not None)
    return [*rows, ("1 M tokens", known or "cost and energy unknown")]


def _gain(drafted: SpeculativeStep) -> str:
    plain = amount(drafted.plain.seconds, "s")
    if drafted.speedup < 1:
        return f"slower than without, {plain}: {drafted.speedup:.2f}×"
    return f"{drafted.speedup:.2f}× as fast as without, {plain}"


def _layouts(sizing: Sizing) -> list[str]:
    """Return the table of layouts."""
    heads = f"{'layout':<22} {'chips':>5} {'each chip':>10} {'most seq.':>9} {'TTFT':>9} {'TPOT':>9} {'tok/s/chip':>10}"
    rows = [heads, *(_layout(placed) for placed in sizing.placed[:_LISTED])]
    rest = len(sizing.placed) - _LISTED
    return [*rows, f"and {rest} more layouts"] if rest > 0 else rows


def _layout(placed: Placed) -> str:
    rates = placed.rates
    first, each = (None if one is None else one.seconds for one in (rates.ttft, rates.tpot))
    per_chip = f"{rates.tokens_per_second / placed.chips:,.4g}" if placed.holds_a_layer else "–"
    return (
        f"{placed.layout!s:<22} {placed.chips:>5} {amount(placed.per_chip.needed, 'byte'):>10} "
        f"{placed.largest_batch:>9,} {amount(first, 's'):>9} {amount(each, 's'):>9} {per_chip:>10}"
    )


def _curve(sizing: Sizing) -> list[str]:
    """Return latency and rate against batch."""
    if not sizing.curve or sizing.request.phase == "prefill":
        return []
    rows = [f"{'batch':>7} {'TPOT':>9} {'tokens/s':>10} {'USD/Mtoken':>10}"]
    for rates in sizing.curve:
        money = sizing.money.at(rates.tokens_per_second, sizing.chips or 1).usd_per_million_tokens
        step = None if rates.tpot is None else rates.tpot.seconds
        cost = "–" if money is None else f"{money:.4g}"
        rows.append(f"{rates.batch:>7,} {amount(step, 's'):>9} {rates.tokens_per_second:>10,.5g} {cost:>10}")
    return [*rows, ""]
