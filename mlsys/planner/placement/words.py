"""Sentences of a plan: caps, reasons, text tables."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlsys.planner.placement.result import PlanResult
    from mlsys.planner.placement.scenario import Scenario

_CAPS = {
    "latency_ms": ("constraints.latency_ms", "ms"),
    "energy_mj": ("constraints.energy_mj", "mJ"),
    "loss": ("constraints.accuracy", "percentage points of loss"),
    "memory_mb": ("memory_mb of {}", "MB"),
    "heat_mj": ("thermal limit of {}", "mJ a run"),
    "busy_ms": ("constraints.rate_hz on {}", "ms a run"),
}


def decimal_text(value: float | Fraction) -> str:
    """Return a number with up to six decimals, without trailing zeros.

    Examples
    --------
    >>> decimal_text(Fraction("1030")), decimal_text(27.97)
    ('1,030', '27.97')
    """
    text = f"{float(value):,.6f}".rstrip("0").rstrip(".")
    return text or "0"


def cap_in_words(scenario: Scenario, name: str, limit: Fraction, least: Fraction | None) -> str:
    """Return a cap in words: its limit, and the least feasible value if known."""
    kind, _, device = name.partition(" ")
    words, unit = _CAPS[kind]
    text = f"{words.format(device)}: at most {decimal_text(limit)} {unit}"
    if least is not None:
        text += f", and the least under the other caps is {decimal_text(least)} {unit}"
    return text


def why(result: PlanResult) -> tuple[str, ...]:
    """Return the justification of the best placement."""
    if not result.placements:
        return tuple(f"No placement meets {text}." for text in result.binding)
    best, scenario = result.placements[0], result.scenario
    placed = best.placed
    words = {
        "latency": f"No placement within the caps takes less than {decimal_text(placed.latency)} ms.",
        "efficiency": f"No placement within the caps takes less than {decimal_text(placed.energy)} mJ.",
        "balanced": f"The score is {result.weight:g} × time / least time + "
        f"{1 - result.weight:g} × energy / least energy; "
        "1 means optimal in both.",
        "throughput": f"No placement within the caps has a busiest device below {decimal_text(placed.bottleneck)} ms.",
    }
    if result.optimal:
        proof = words[result.goal] + (
            " Proven." if result.goal != "balanced" else " No lower score is possible: proven."
        )
    else:
        proof = (
            f"Heuristic: no placement scores below {result.bound:.6g}, so the gap is at most {100 * result.gap:.2g} %."
        )
    lines = [proof]
    moved = sum((stage.transfer_latency for stage in placed.stages), Fraction(0))
    if placed.switches and not scenario.is_graph:
        lines.append(
            f"{_counted(placed.switches, 'change')} of device cost{'s' * (placed.switches == 1)} "
            f"{decimal_text(moved)} ms, "
            f"{100 * float(moved / placed.latency):.1f} % of the "
            "time; transfers are attributed to the receiving stage."
        )
    for cap, used, unit in (("latency_ms", placed.latency, "ms"), ("energy_mj", placed.energy, "mJ")):
        limit = scenario.cap(cap)
        if limit is not None:
            lines.append(
                f"{cap}: {decimal_text(used)} of {decimal_text(limit)} {unit}, {decimal_text(limit - used)} to spare."
            )
    return tuple(lines)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
