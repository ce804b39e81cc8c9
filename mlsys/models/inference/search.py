"""Search of systems and layouts that meet limits on latency, the cheapest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any

from mlsys.errors import UnknownNameError
from mlsys.mapping.parallel import Layout, layouts
from mlsys.models.inference.exchange import joins
from mlsys.models.inference.formats import formats_on
from mlsys.models.inference.limits import Limits
from mlsys.models.inference.money import Money, hour_of
from mlsys.models.inference.placed import Placed, layout_record
from mlsys.models.inference.plan import InferenceRequest
from mlsys.models.inference.words import amount
from mlsys.models.record import with_units
from mlsys.units import Quantity
from mlsys.workloads.zoo.decoder import Decoder

if TYPE_CHECKING:
    from mlsys.hardware import System

_MOST_SEQUENCES = 1024
_LISTED = 15


@dataclass(frozen=True)
class Found:
    """A system and a layout that meet limits.

    Attributes
    ----------
    system
        Id of the system.
    layout, replicas, chips
        How one copy is split, how many copies the requests need, and the chips of all.
    batch
        Sequences that one copy decodes at once: the most within the limits.
    ttft_seconds, tpot_seconds, tokens_per_second
        Latency, and rate of all copies.
    requests_per_second
        Requests that all copies answer; None where the length of answers is not said.
    money
        What a million tokens cost.
    """

    system: str
    layout: Layout
    replicas: int
    chips: int
    batch: int
    ttft_seconds: float
    tpot_seconds: float
    tokens_per_second: float
    requests_per_second: float | None
    money: Money

    @property
    def usd_per_hour(self) -> float | None:
        """Rent of all chips; None where it is not known."""
        return None if self.money.usd_per_hour is None else self.chips * self.money.usd_per_hour

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "system": self.system,
            **layout_record(self.layout),
            "replicas": self.replicas,
            "chips": self.chips,
            "batch": self.batch,
            "ttft_seconds": self.ttft_seconds,
            "tpot_seconds": self.tpot_seconds,
            "tokens_per_second": self.tokens_per_second,
            "tokens_per_second_per_chip": self.tokens_per_second / self.chips,
            "requests_per_second": self.requests_per_second,
            "usd_per_hour": self.usd_per_hour,
            "usd_per_million_tokens": self.money.usd_per_million_tokens,
            "kwh_per_million_tokens": self.money.kwh_per_million_tokens,
            "gco2e_per_million_tokens": self.money.gco2e_per_million_tokens,
        }


@dataclass(frozen=True)
class Search:
    """What a search found.

    Attributes
    ----------
    model, limits
        The request, as text.
    request
        Lengths and formats.
    found
        The best layout of each system that meets the limits, the cheapest first; those without a rent last.
    without
        Why others do not, by id.
    """

    model: str
    limits: str
    request: InferenceRequest = field(repr=False)
    found: tuple[Found, ...]
    without: tuple[tuple[str, str], ...] = field(repr=False)

    def rows(self) -> list[dict[str, Any]]:
        """Return one line for each system that was found."""
        return [each.record() for each in self.found]

    def record(self) -> dict[str, Any]:
        """Return the search as plain data, for JSON."""
        tokens = self.request.tokens
        return with_units(
            {
                "model": self.model,
                "limits": self.limits,
                "sequence": tokens.sequence,
                "prompt": tokens.prompt,
                "output": tokens.output,
                "found": self.rows(),
                "without": [{"system": name, "reason": reason} for name, reason in self.without],
            }
        )

    def explain(self) -> str:
        """Return the search as text."""
        tokens = self.request.tokens
        lengths = f"{tokens.prompt} + {tokens.output}" if tokens.output else f"{tokens.sequence}"
        meeting = "1 system meets" if len(self.found) == 1 else f"{len(self.found)} systems meet"
        lines = [f"{self.model}, {lengths} tokens, {self.limits}: {meeting} this"]
        if self.found:
            lines.append(
                f"{'system':<24} {'layout':<18} {'copies':>6} {'chips':>6} {'batch':>6} {'TTFT':>9} {'TPOT':>9} "
                f"{'tokens/s':>9} {'USD/h':>8} {'USD/Mtoken':>10}"
            )
        for each in self.found[:_LISTED]:
            hourly, cost = each.usd_per_hour, each.money.usd_per_million_tokens
            lines.append(
                f"{each.system:<24} {each.layout!s:<18} {each.replicas:>6,} {each.chips:>6,} {each.batch:>6,} "
                f"{amount(each.ttft_seconds, 's'):>9} {amount(each.tpot_seconds, 's'):>9} "
                f"{each.tokens_per_second:>9,.4g} {'–' if hourly is None else f'{hourly:,.4g}':>8} "
                f"{'–' if cost is None else f'{cost:.4g}':>10}"
            )
        lines += ["Not met:", *(f"  {name}: {reason}" for name, reason in self.without)] if self.without else []
        lines.append("Each copy is busy all the time; waiting in queues comes on top: `mlsys serve-sim`")
        return "\n".join(lines)


def search(
    model: Decoder,
    among: Iterable[System],
    limits: Limits,
    request: InferenceRequest,
    *,
    words: str = "",
    requests_per_second: float | None = None,
    rent: Quantity | None = None,
    grid: str | None = None,
    sizes: dict[str, int | None] | None = None,
) -> Search:
    """Return the systems that meet limits, each in its best layout at the most sequences within the limits.

    Parameters
    ----------
    model, request
        The model, and lengths and formats; the batch and the copies are looked for.
    among
        Systems; more copies than one of them has the chips for take several of it.
    limits, words
        The limits, and how they were written.
    requests_per_second
        Requests that arrive; they need as many copies as answer them. By default one copy.
    rent, grid
        As for :func:`mlsys.models.inference.sizing.size_model`.
    sizes
        Sizes of layouts that are fixed, by name.
    """
    found, without, model = [], [], request.tokens.read_by(model)
    for system in among:
        try:
            best = _best(model, system, limits, request, requests_per_second, rent, grid, sizes or {})
        except UnknownNameError as missing:  # no such number format, no memory on record
            best = str(missing)
        if isinstance(best, str):
            without.append((system.id, best))
        else:
            found.append(best)
    ranked = sorted(found, key=_key)
    return Search(model.name, words, request, tuple(ranked), tuple(without))


def _key(found: Found) -> tuple[bool, float, int]:
    hourly = found.usd_per_hour
    cost = found.money.usd_per_million_tokens
    return cost is None, hourly or 0.0 if found.requests_per_second is not None else cost or 0.0, found.chips


def _best(
    model: Decoder,
    system: System,
    limits: Limits,
    request: InferenceRequest,
    wanted: float | None,
    rent: Quantity | None,
    grid: str | None,
    sizes: dict[str, int | None],
) -> Found | str:
    """Return the best layout of a system, or why none meets the limits."""
    if model.vocabulary < 1:
        return "it has no vocabulary"
    formats = formats_on(system.device, model, request.weight_format, request.kv_format, request.precision)
    hour = hour_of(system, rent, grid)
    fitting, reason, options = 0, "the model does not fit its memory", []
    for placed in _fewest_stages(
        Placed(system, model, each, formats, request) for each in layouts(model, system, **sizes) if joins(system, each)
    ):
        fitting += 1
        one = _within(placed, limits)
        if isinstance(one, str):
            reason = one
            continue
        options.append(_layout_or_reason(placed, one, limits, wanted, hour))
    kept = [each for each in options if not isinstance(each, str)]
    if kept:
        return min(kept, key=_key)
    return next((each for each in options if isinstance(each, str)), reason)


def _fewest_stages(placed: Iterable[Placed]) -> Iterator[Placed]:
    """Yield of layouts that differ in their stages alone the one with the fewest that fits: more only add latency."""
    seen: set[tuple[int, int, int]] = set()
    for each in sorted(placed, key=lambda one: one.layout.pp):
        key = each.layout.tp, each.layout.ep, each.layout.dp
        if key not in seen and each.largest_batch:
            seen.add(key)
            yield each


def _within(placed: Placed, limits: Limits) -> int | str:
    """Return the most sequences of one copy within the limits, or which limit a single one misses."""
    if limits.ttft is not None and placed.prefill.seconds > limits.ttft:
        return f"TTFT {amount(placed.prefill.seconds, 's')} in the layout looked at last ({placed.layout})"
    most, step, context = min(placed.largest_batch, _MOST_SEQUENCES), limits.step, placed.request.tokens.context
    if step is None or placed.times.decode_step(most, context).seconds <= step:
        return most
    least = placed.times.decode_step(1, context).seconds
    if least <= step:
        return _most_within(lambda batch: placed.times.decode_step(batch, context).seconds, step, least, most)
    return f"TPOT {amount(least, 's')} for one sequence in the layout looked at last ({placed.layout})"


def _most_within(seconds: Callable[[int], float], limit: float, least: float, most: int) -> int:
    """Return a number of sequences whose step stays within a limit, at most an eighth below the largest such one.

    ``seconds(1)`` is ``least``, within the limit, and ``seconds(most)`` is beyond it. Times grow with the batch, nearly
    in a straight line, along which the next one to try is chosen.
    """
    low, high, fast, slow = 1, most, least, seconds(most)
    while high - low > max(1, low // 8):
        middle = round(low + (high - low) * (limit - fast) / (slow - fast))
        middle = min(max(middle, low + (high - low) // 8), high - (high - low) // 8)
        middle = min(max(middle, low + 1), high - 1)
        time = seconds(middle)
        if time <= limit:
            low, fast = middle, time
        else:
            high, slow = middle, time
    return low


def _layout_or_reason(placed: Placed, batch: int, limits: Limits, wanted: float | None, hour: Money) -> Found | str:
    """Return a layout at a batch, with as many copies as the requests need, or which limit it misses."""
    rates, output = placed.at(batch), placed.request.tokens.output
    each = rates.tokens_per_second / output if output else None
    copies = max(1, ceil(wanted / each)) if wanted is not None and each is not None else 1
    rates = replace(placed, request=replace(placed.request, replicas=copies)).at(batch) if copies > 1 else rates
    chips = copies * placed.layout.chips
    money = hour.at(rates.tokens_per_second, chips)
    cost = money.usd_per_million_tokens
    if limits.chips is not None and chips > limits.chips:
        return f"{chips} chips"
    if limits.cost is not None and (cost is None or cost > limits.cost):
        return "no rent is on record" if cost is None else f"{cost:.4g} USD for a million tokens"
    assert rates.tpot is not None
    return Found(
        placed.system.id,
        placed.layout,
        copies,
        chips,
        batch,
        placed.prefill.seconds,
        rates.tpot.seconds,
        rates.tokens_per_second,
        None if each is None else each * copies,
        money,
    )
