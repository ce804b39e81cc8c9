"""What a sizing answers with: memory by part, latency, rate, money and carbon, and the layouts ranked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from mlsys.frozen import FrozenDict
from mlsys.mapping.parallel import Layout
from mlsys.models.inference.memory import MemoryModel, MemoryParts
from mlsys.models.inference.money import Money
from mlsys.models.inference.phases import PhaseTime
from mlsys.models.inference.placed import Placed, Rates, batches_up_to, layout_record
from mlsys.models.inference.plan import InferenceRequest
from mlsys.models.inference.speculative import SpeculativeStep, accepted_tokens
from mlsys.models.record import facts_behind, with_units
from mlsys.provenance import Fact
from mlsys.units import Q_, Quantity
from mlsys.workloads.zoo.decoder import Decoder


@dataclass(frozen=True)
class Sizing:
    """Memory, latency, rate and cost of a language model, on a system if one is given.

    Plain numbers, each in the unit that its name ends with; without a system those that need one are None. Times and
    rates are those of ``layout``.

    Attributes
    ----------
    model, device, workload
        Names of the model and the system (empty without one), and the request in words.
    request
        The request.
    layout
        How one copy of the model is split: of the layouts of a system the best one.
    chips
        Chips that all copies take; None without a system.
    memory
        Bytes of one copy of the model on all of its chips, by part; what is stored on several chips counts on each.
    per_chip
        Bytes of the fullest chip, by part.
    capacity_bytes
        Main memory of one chip; None without a system.
    placed
        The layouts that fit, the best one first; where none does, the one that comes nearest.
    rates, money
        Of the best layout at the requested batch.
    assumptions
        In words.
    """

    model: str
    device: str
    workload: str
    decoder: Decoder = field(repr=False)
    request: InferenceRequest = field(repr=False)
    layout: Layout
    chips: int | None
    memory: MemoryParts
    per_chip: MemoryParts
    capacity_bytes: float | None
    placed: tuple[Placed, ...] = field(repr=False)
    rates: Rates | None = field(repr=False)
    money: Money = field(repr=False)
    assumptions: tuple[str, ...] = field(repr=False)

    # --- the model --------------------------------------------------------------------------------

    @property
    def parameters(self) -> int:
        """Parameters of the model."""
        return int(self.decoder.parameters().magnitude)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token uses: of experts, the active ones."""
        return int(self.decoder.active_parameters().magnitude)

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights, each stored once."""
        return _whole(self.decoder.weight_bytes(self.request.weight_format).m_as("byte"))

    @property
    def context(self) -> int | None:
        """Tokens that the model is made for; None where that is not stated."""
        return getattr(self.decoder, "context", 0) or self.decoder.positions or None

    @property
    def kv_cache_bytes_per_token(self) -> float:
        """Bytes that one token adds to the cache of all layers, before any window is full."""
        return _whole(self._model_memory.kv_cache_per_token)

    @property
    def kv_cache_bytes(self) -> float:
        """Bytes of the cache at the requested sequence and batch, each key and value stored once."""
        return _whole(self._model_memory.kv_cache(self.request.tokens.cached, self.request.batch))

    @property
    def cross_cache_bytes(self) -> float:
        """Bytes of the cache that hold what an encoder left for cross-attention; 0 without an encoder."""
        return _whole(self._model_memory.cross_cache(self.request.batch))

    @property
    def state_bytes(self) -> float:
        """Bytes of the states of recurrent layers."""
        return _whole(self._model_memory.states(self.request.batch))

    @property
    def kv_cache_bytes_per_token_per_chip(self) -> float:
        """Bytes that one token adds to the cache of the chip that caches most."""
        return _whole(self._memory_model.kv_cache_per_token_per_chip)

    @property
    def activation_bytes(self) -> float:
        """Bytes of the values that one pass holds at once, on all chips of one copy."""
        return _whole(self.memory.activations)

    @property
    def needed_bytes(self) -> float:
        """Bytes that one copy of the model needs on all of its chips."""
        return _whole(self.memory.needed)

    @property
    def needed_bytes_per_chip(self) -> float:
        """Bytes that the fullest chip needs."""
        return _whole(self.per_chip.needed)

    # --- on a system ------------------------------------------------------------------------------

    @property
    def best(self) -> Placed | None:
        """The layout ranked first; None without a system."""
        return self.placed[0] if self.placed else None

    @property
    def fits(self) -> bool | None:
        """Whether the best layout fits; None without a system."""
        return None if self.best is None else self.best.fits

    @property
    def largest_batch(self) -> int | None:
        """Most sequences that one copy of the model can hold; 0 if not one fits."""
        return None if self.best is None else self.best.largest_batch

    @property
    def largest_sequence(self) -> int | None:
        """Most tokens of each sequence that fit at the requested batch; None without a limit, or without a system."""
        return None if self.best is None else self.best.largest_sequence

    @property
    def ttft_seconds(self) -> float | None:
        """Time to the first token of one prompt on an idle system."""
        return _of(self.rates, "ttft", "seconds")

    @property
    def ttft_seconds_low(self) -> float | None:
        """Lower end of the range of the time to the first token."""
        return _of(self.rates, "ttft", "low")

    @property
    def ttft_seconds_high(self) -> float | None:
        """Upper end of the range of the time to the first token."""
        return _of(self.rates, "ttft", "high")

    @property
    def tpot_seconds(self) -> float | None:
        """Time between two tokens of a sequence."""
        return _of(self.rates, "tpot", "seconds")

    @property
    def tpot_seconds_low(self) -> float | None:
        """Lower end of the range of the time between two tokens."""
        return _of(self.rates, "tpot", "low")

    @property
    def tpot_seconds_high(self) -> float | None:
        """Upper end of the range of the time between two tokens."""
        return _of(self.rates, "tpot", "high")

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens per second of all copies: generated ones, or of prompts if only prefill is requested."""
        return None if self.rates is None else self.rates.tokens_per_second

    @property
    def tokens_per_second_low(self) -> float | None:
        """Lower end of the range of the rate."""
        return None if self.rates is None else self.rates.low

    @property
    def tokens_per_second_high(self) -> float | None:
        """Upper end of the range of the rate."""
        return None if self.rates is None else self.rates.high

    @property
    def tokens_per_second_per_user(self) -> float | None:
        """Tokens per second that one sequence gets while it is decoded."""
        return None if self.tpot_seconds is None else 1 / self.tpot_seconds

    @property
    def tokens_per_second_per_chip(self) -> float | None:
        """Tokens per second over the chips of all copies."""
        return None if self.rates is None or not self.chips else self.rates.tokens_per_second / self.chips

    @property
    def speculative(self) -> SpeculativeStep | None:
        """A round of speculative decoding at the batch requested; None without a draft model or a system."""
        best = self.best
        return None if best is None or not best.holds_a_layer else best.speculative(self.request.batch)

    @property
    def usd_per_million_tokens(self) -> float | None:
        """Rent of the chips for a million tokens; None where no rent is known."""
        return self.money.usd_per_million_tokens

    @property
    def kwh_per_million_tokens(self) -> float | None:
        """Energy of the data centre for a million tokens."""
        return self.money.kwh_per_million_tokens

    @property
    def gco2e_per_million_tokens(self) -> float | None:
        """Emissions of that energy."""
        return self.money.gco2e_per_million_tokens

    # --- members of every result ------------------------------------------------------------------

    @property
    def phase_time(self) -> PhaseTime | None:
        """The step of decoding, or the prefill if only that is requested; None without a system."""
        return None if self.rates is None else self.rates.tpot or self.rates.ttft

    @property
    def time(self) -> Quantity:
        """Time between two tokens, or of a prefill alone, s; not a number without a system."""
        return Q_(float("nan") if self.phase_time is None else self.phase_time.seconds, "s")

    @property
    def range(self) -> tuple[Quantity, Quantity]:
        """Between which times four measurements in five should lie, s."""
        one = self.phase_time
        return (self.time, self.time) if one is None else (Q_(one.low, "s"), Q_(one.high, "s"))

    @property
    def parts(self) -> FrozenDict[str, Quantity]:
        """Seconds by cause; they sum to ``time``."""
        one = self.phase_time
        if one is None:
            return FrozenDict({})
        return FrozenDict({"computing": Q_(one.computing, "s"), "exchanging": Q_(one.exchanging, "s")})

    @property
    def bound_by(self) -> str:
        """What takes most of ``time``: ``"compute"``, ``"memory"`` or ``"network"``; empty without a system."""
        one, best = self.phase_time, self.best
        if one is None or best is None:
            return ""
        if one.exchanging > one.computing:
            return "network"
        device = best.system.device
        peak = float(device.peak(best.formats.computes).m_as("FLOP/s"))
        bandwidth = float(device.memory_bw.m_as("byte/s"))
        return "compute" if one.flops / peak >= one.data / bandwidth else "memory"

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the result depends on, without duplicates."""
        return facts_behind(self)

    # --- more answers -----------------------------------------------------------------------------

    @property
    def curve(self) -> tuple[Rates, ...]:
        """Latency and rate of the best layout against batch, up to the largest that fits."""
        best = self.best
        return () if best is None else tuple(best.at(batch) for batch in batches_up_to(best.largest_batch))

    def record(self) -> dict[str, Any]:
        """Return the sizing as plain data, for JSON; numbers stand in the unit that their name ends with."""
        request = self.request
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return with_units(
            {
                "model": self.model,
                "device": self.device or None,
                "workload": self.workload,
                "sequence": request.tokens.sequence,
                "prompt": request.tokens.prompt,
                "output": request.tokens.output,
                "batch": request.batch,
                "phase": request.phase,
                "weight_format": request.weight_format,
                "kv_format": request.kv_format,
                "precision": None if self.best is None else self.best.formats.computes,
                **numbers,
                "draft": _draft(self),
                "bound_by": self.bound_by or None,
                "layout": layout_record(self.layout),
                "replicas": request.replicas,
                "chips": self.chips,
                "memory_per_chip": _parts(self.per_chip),
                "capacity_bytes": self.capacity_bytes,
                "usable": request.usable,
                "layouts": [self._row(placed) for placed in self.placed],
                "curve": [self._point(rates) for rates in self.curve],
                "assumptions": list(self.assumptions),
                "facts": sorted({fact.name for fact in self.facts}),
            }
        )

    def explain(self) -> str:
        """Return the sizing as text, for people."""
        from mlsys.models.inference.words import explained

        return explained(self)

    def layout_rows(self) -> list[dict[str, Any]]:
        """Return one line for each layout, the best one first, for tables."""
        return [self._row(placed) for placed in self.placed]

    @property
    def _model_memory(self) -> MemoryModel:
        request = self.request
        return MemoryModel(
            self.decoder, Layout(), request.weight_format, request.kv_format, request.windows, request.chunk
        )

    @property
    def _memory_model(self) -> MemoryModel:  # of the model itself, without its draft
        return replace(self._model_memory, layout=self.layout)

    def _row(self, placed: Placed) -> dict[str, Any]:
        money = Money() if self.rates is None else self.money.at(placed.rates.tokens_per_second, placed.chips)
        return {**placed.record(), "usd_per_million_tokens": money.usd_per_million_tokens}

    def _point(self, rates: Rates) -> dict[str, Any]:
        money = self.money.at(rates.tokens_per_second, self.chips or 1)
        return {
            "batch": rates.batch,
            "tpot_seconds": None if rates.tpot is None else rates.tpot.seconds,
            "tokens_per_second": rates.tokens_per_second,
            "tokens_per_second_per_chip": rates.tokens_per_second / (self.chips or 1),
            "usd_per_million_tokens": money.usd_per_million_tokens,
        }


NUMBERS = (
    "parameters", "active_parameters", "weight_bytes", "context", "kv_cache_bytes_per_token", "kv_cache_bytes",
    "kv_cache_bytes_per_token_per_chip", "cross_cache_bytes", "state_bytes", "activation_bytes", "needed_bytes",
    "needed_bytes_per_chip",
    "fits", "largest_batch", "largest_sequence", "ttft_seconds", "ttft_seconds_low", "ttft_seconds_high",
    "tpot_seconds", "tpot_seconds_low", "tpot_seconds_high", "tokens_per_second", "tokens_per_second_low",
    "tokens_per_second_high", "tokens_per_second_per_user", "tokens_per_second_per_chip", "usd_per_million_tokens",
    "kwh_per_million_tokens", "gco2e_per_million_tokens",
)  # fmt: skip
"""Members of a sizing that are plain numbers, in the order in which a record states them."""


def _draft(sizing: Sizing) -> dict[str, Any] | None:
    """Return what a draft model gives as plain data; None without one."""
    draft, drafted = sizing.request.draft, sizing.speculative
    if draft is None:
        return None
    times = dict.fromkeys(("draft_seconds", "verify_seconds", "plain_tpot_seconds", "speedup"))
    if drafted is not None:
        spent = drafted.drafted * drafted.draft.seconds
        times = dict(zip(times, (spent, drafted.verify.seconds, drafted.plain.seconds, drafted.speedup), strict=True))
    return {
        "model": draft.model.name,
        "tokens": draft.tokens,
        "acceptance": draft.acceptance,
        "tokens_per_round": accepted_tokens(draft.acceptance, draft.tokens),
        **times,
    }


def _parts(parts: MemoryParts) -> dict[str, float]:
    return {
        "weights": _whole(parts.weights),
        "kv_cache": _whole(parts.kv_cache),
        "states": _whole(parts.states),
        "activations": _whole(parts.activations),
        "needed": _whole(parts.needed),
    }


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


def _of(rates: Rates | None, phase: str, which: str) -> float | None:
    one: PhaseTime | None = None if rates is None else getattr(rates, phase)
    return None if one is None else float(getattr(one, which))
