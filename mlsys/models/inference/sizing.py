"""Sizing: memory, latency, rate, money and carbon of a language model on a system, with its layouts ranked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.mapping.parallel import Layout, layouts
from mlsys.models.inference.formats import formats_on
from mlsys.models.inference.memory import MemoryModel, MemoryParts
from mlsys.models.inference.money import Money, hour_of
from mlsys.models.inference.phases import PhaseTime
from mlsys.models.inference.placed import Placed, Rates, batches_up_to, layout_record
from mlsys.models.inference.plan import InferenceRequest
from mlsys.models.record import with_units
from mlsys.provenance import Fact, origin_of, traced
from mlsys.unit_checks import checked_choice
from mlsys.units import Q_, Quantity
from mlsys.workloads.zoo.decoder import Decoder

if TYPE_CHECKING:
    from mlsys.hardware.system import System

Ranking = Literal["latency", "throughput"]
"""What layouts are ranked by: time between tokens at the batch asked for, or tokens per second and chip at the most."""
_NONE = Money()


@dataclass(frozen=True)
class Sizing:
    """Memory, latency, rate and cost of a language model, on a system if one is given.

    Plain numbers, each in the unit that its name ends with; without a system those that need one are None. Times and
    rates are those of the layout ranked first, ``layout``.

    Attributes
    ----------
    model, device, workload
        Names of the model and the system (empty without one), and what is asked, in words.
    request
        What is asked.
    chips
        Chips that all copies take; None without a system.
    memory
        Bytes of one copy of the model on all of its chips, by part; what is stored on several chips counts on each.
    per_chip
        Bytes of the fullest chip, by part.
    capacity_bytes
        Main memory of one chip; None without a system.
    placed
        The layouts, the best one first; those that do not fit last.
    rates, money
        Of the best layout at the batch asked for.
    assumptions
        In words.
    """

    model: str
    device: str
    workload: str
    decoder: Decoder = field(repr=False)
    request: InferenceRequest = field(repr=False)
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
        """Bytes of the cache at the sequence and batch asked for, each key and value stored once."""
        return _whole(self._model_memory.kv_cache(self.request.tokens.sequence, self.request.batch))

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
    def layout(self) -> Layout:
        """How one copy of the model is split."""
        return self.best.layout if self.best is not None else Layout()

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
        """Most tokens of each sequence that fit at the batch asked for; None without a limit, or without a system."""
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
        """Tokens per second of all copies: generated ones, or of prompts where only prefill is asked for."""
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
        """The step of decoding, or where only prefill is asked for the prefill; None without a system."""
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
        own = origin_of(self)
        return () if own is None else tuple(dict.fromkeys(own.facts()))

    # --- more answers -----------------------------------------------------------------------------

    @property
    def curve(self) -> tuple[Rates, ...]:
        """Latency and rate of the best layout against batch, up to the largest that fits."""
        best = self.best
        return () if best is None else tuple(best.at(batch) for batch in batches_up_to(best.largest_batch))

    def record(self) -> dict[str, Any]:
        """Return the sizing as plain data, for JSON; numbers stand in the unit that their name ends with."""
        asked = self.request
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return with_units(
            {
                "model": self.model,
                "device": self.device or None,
                "workload": self.workload,
                "sequence": asked.tokens.sequence,
                "prompt": asked.tokens.prompt,
                "output": asked.tokens.output,
                "batch": asked.batch,
                "phase": asked.phase,
                "weight_format": asked.weight_format,
                "kv_format": asked.kv_format,
                "precision": None if self.best is None else self.best.formats.computes,
                **numbers,
                "bound_by": self.bound_by or None,
                "layout": layout_record(self.layout),
                "replicas": asked.replicas,
                "chips": self.chips,
                "memory_per_chip": _parts(self.per_chip),
                "capacity_bytes": self.capacity_bytes,
                "usable": asked.usable,
                "layouts": [self._row(placed) for placed in self.placed],
                "curve": [self._point(rates) for rates in self.curve],
                "assumptions": list(self.assumptions),
                "facts": [fact.name for fact in self.facts],
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
        asked = self.request
        return MemoryModel(self.decoder, Layout(), asked.weight_format, asked.kv_format, asked.windows, asked.chunk)

    @property
    def _memory_model(self) -> MemoryModel:
        return replace(self._model_memory, layout=self.layout)

    def _row(self, placed: Placed) -> dict[str, Any]:
        money = self.money.at(placed.rates.tokens_per_second, placed.chips)
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
    "kv_cache_bytes_per_token_per_chip", "state_bytes", "activation_bytes", "needed_bytes", "needed_bytes_per_chip",
    "fits", "largest_batch", "largest_sequence", "ttft_seconds", "ttft_seconds_low", "ttft_seconds_high",
    "tpot_seconds", "tpot_seconds_low", "tpot_seconds_high", "tokens_per_second", "tokens_per_second_low",
    "tokens_per_second_high", "tokens_per_second_per_user", "tokens_per_second_per_chip", "usd_per_million_tokens",
    "kwh_per_million_tokens", "gco2e_per_million_tokens",
)  # fmt: skip
"""Members of a sizing that are plain numbers, in the order in which a record states them."""


@traced
def size_model(
    model: Decoder,
    system: System | None,
    request: InferenceRequest,
    *,
    layout: Layout | None = None,
    tp: int | None = None,
    pp: int | None = None,
    ep: int | None = None,
    dp: int | None = None,
    rank: Ranking = "latency",
    rent: Quantity | None = None,
    region: str | None = None,
) -> Sizing:
    """Return the sizing of a language model on a system, or of the model alone.

    Parameters
    ----------
    model
        A decoder language model.
    system
        A system; None for what needs none.
    request
        Lengths, batch, formats and copies.
    layout
        How one copy is split; None ranks all layouts that ``system`` has the chips for.
    tp, pp, ep, dp
        Sizes that are fixed while the others vary.
    rank
        ``"latency"``: least time between tokens at the batch asked for, fewer chips first where it is the same;
        ``"throughput"``: most tokens per second and chip at the largest batch that fits.
    rent
        Rent of one chip, USD/hour, instead of the recorded one.
    region
        Grid whose carbon intensity counts; None for the world's mean.

    Raises
    ------
    ArgumentError
        If a layout does not divide the model or needs more chips than there are.
    UnknownNameError
        If a number format is unknown, or the chip lacks the requested one.
    """
    checked_choice("size", "rank", rank, get_args(Ranking))
    if layout is not None and any(size is not None for size in (tp, pp, ep, dp)):
        raise ArgumentError("size(): give either `layout` or its sizes tp, pp, ep and dp, not both")
    if system is None:
        chosen = layout or Layout(tp=tp or 1, pp=pp or 1, ep=ep or 1, dp=dp or _copies(tp, ep))
        chosen.check(model)
        return _alone(model, chosen, request)
    if layout is not None or (tp is not None and pp is not None and ep is not None):
        wanted = layout or Layout(tp=tp or 1, pp=pp or 1, ep=ep or 1, dp=dp or _copies(tp, ep))
        wanted.check(model, system)
        found: tuple[Layout, ...] = (wanted,)
    else:
        found = layouts(model, system, tp=tp, pp=pp, ep=ep, dp=dp)
        if not found:
            Layout(tp=tp or 1, pp=pp or 1, ep=ep or 1, dp=dp or _copies(tp, ep)).check(model, system)
            raise ArgumentError(f"no layout of {model.name} has the sizes that are fixed. Leave some of them out")
    copies = request.replicas
    found = tuple(each for each in found if each.chips * copies <= system.chips)
    if not found:
        raise ArgumentError(
            f"{copies} copies of {model.name} need more than the {system.chips} chips of {system.name}. "
            "Give fewer replicas, or more nodes"
        )
    formats = formats_on(system.device, model, request.weight_format, request.kv_format, request.precision)
    placed = [Placed(system, model, each, formats, request) for each in found]
    fitting = [each for each in placed if each.fits]
    if not fitting:  # what comes nearest: the others cannot be better
        placed = sorted(placed, key=lambda each: (each.per_chip.needed, each.chips))[:1]
    ranked = sorted(fitting or placed, key=_key(rank))
    ranked += [each for each in placed if fitting and not each.fits][:0]
    best = ranked[0]
    money = hour_of(system, rent, region).at(best.rates.tokens_per_second, best.chips)
    assumptions = _assumptions(best, money, bool(fitting))
    return Sizing(
        model.name,
        system.name,
        _words(request),
        model,
        request,
        best.chips,
        best.memory_model.in_all(request.tokens.sequence, request.batch, request.tokens.prompt),
        best.per_chip,
        best.capacity,
        tuple(ranked),
        best.rates,
        money,
        assumptions,
    )


def _copies(tp: int | None, ep: int | None) -> int:
    """Return the copies of attention that expert parallelism joins where nothing is said of them."""
    return max(1, (ep or 1) // (tp or 1))


def _key(rank: str) -> Any:
    if rank == "latency":
        return lambda each: (_seconds(each), each.chips)
    return lambda each: (-each.at(max(1, min(each.largest_batch, 4096))).tokens_per_second / each.chips, each.chips)


def _seconds(placed: Placed) -> float:
    one = placed.rates.tpot or placed.rates.ttft
    return 0.0 if one is None else one.seconds


def _alone(model: Decoder, layout: Layout, request: InferenceRequest) -> Sizing:
    memory = MemoryModel(model, layout, request.weight_format, request.kv_format, request.windows, request.chunk)
    tokens = request.tokens
    return Sizing(
        model.name,
        "",
        _words(request),
        model,
        request,
        layout.chips * request.replicas if layout != Layout() else None,
        memory.in_all(tokens.sequence, request.batch, tokens.prompt),
        memory.per_chip(tokens.sequence, request.batch, tokens.prompt),
        None,
        (),
        None,
        _NONE,
        _memory_assumptions(model, request),
    )


def _memory_assumptions(model: Decoder, request: InferenceRequest) -> tuple[str, ...]:
    local = any(layer.window for layer in model.layer_list)
    own = getattr(model, "assumed", ())
    left = getattr(model, "left_out", ())
    stored = request.weight_format or (str(model.quantization) if model.quantization is not None else "16 bits")
    return (
        f"weights in {stored}, cache in {request.kv_format or model.cache_format or '16 bits'}",
        *(
            ["local layers keep their window of the cache" if request.windows else "local layers keep all tokens"]
            if local
            else []
        ),
        f"a pass processes at most {request.chunk} tokens of a prompt",
        *(f"assumed, as the configuration does not say: {words}" for words in own),
        *([f"its language model alone, without {', '.join(left)}"] if left else []),
    )


def _assumptions(best: Placed, money: Money, fits: bool) -> tuple[str, ...]:
    asked, layout, model = best.request, best.layout, best.model
    context = getattr(model, "context", 0)
    texts = [
        *([] if fits else ["it does not fit: times are as if it did"]),
        *_memory_assumptions(model, asked),
        f"weights, cache and activations fill at most {asked.usable:.0%} of a chip's memory",
        *best.formats.notes,
        "time to first token is that of one prompt on an idle system; queues are for `mlsys serve-sim`",
    ]
    if layout.tp > 1:
        kinds = dict.fromkeys(model.layer_list)
        if any(layer.latent for layer in kinds):
            texts.append("the latent of attention is stored on every chip of a tensor-parallel group")
        elif any(layer.kv_heads < layout.tp and layer.attention_kind != "none" for layer in kinds):
            texts.append("key-value heads are fewer than chips: each is stored on several")
        if any(getattr(layer, "recurrence", None) is not None or layer.convolution for layer in kinds):
            texts.append("recurrent layers and convolutions are not divided by tensor parallelism")
    if layout.pp > 1:
        texts.append(f"groups of sequences follow each other through the {layout.pp} stages")
    if layout.ep > 1:
        texts.append("tokens choose experts at random, all alike; the busiest group of chips sets the pace")
    if layout.chips > 1:
        texts.append("messages among chips and passes do not overlap")
    if context and asked.tokens.sequence > context:
        texts.append(f"the model is made for {context} tokens, fewer than the {asked.tokens.sequence} asked for")
    return (*texts, *money.notes)


def _words(request: InferenceRequest) -> str:
    tokens = request.tokens
    lengths = f"{tokens.prompt} + {tokens.output} tokens" if tokens.output else f"{tokens.sequence} tokens"
    phase = f"{request.phase} of " if request.phase else ""
    return f"{phase}batch {request.batch}, {lengths}"


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
