"""Prefill and decode of a language model over the chips of a system: passes of one chip's share, and exchanges."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.mapping.parallel import Layout
from mlsys.models.inference.exchange import exchange_seconds, send_seconds
from mlsys.models.inference.formats import Formats, cache_precision
from mlsys.models.inference.passes import PassTime, Timer, timer_of
from mlsys.models.inference.shard import refuse_context_parallelism, shard_of
from mlsys.provenance import remembered
from mlsys.units import ureg
from mlsys.workloads.operator import DECODE, PREFILL, Network, Operator
from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.decoder_layer import DecoderLayer
from mlsys.workloads.zoo.decoder_pass import write_encoder, write_pass
from mlsys.workloads.zoo.layer_builder import LayerBuilder
from mlsys.workloads.zoo.weight_formats import weight_bits

if TYPE_CHECKING:
    from mlsys.hardware.system import System

_VALUE = 2  # bytes of a value that chips exchange: 16 bits, whatever weights are stored in
_FEW = 16  # new tokens of a sequence that run as a step of decoding does
_MOST_CHUNKS = 3  # chunks of a prompt that are timed; their time is linear in the tokens before them


@dataclass(frozen=True)
class PhaseTime:
    """Time of a prefill or of a step of decoding, in seconds.

    Attributes
    ----------
    seconds
        The estimate: ``computing`` and ``exchanging`` one after the other.
    low, high
        Between which four measurements in five should lie.
    bound
        Least time: the rooflines of the passes, without exchanges.
    computing, exchanging
        Passes of one chip, and messages among chips.
    flops, data
        FLOP and bytes of memory traffic of all chips of one copy.
    """

    seconds: float
    low: float
    high: float
    bound: float
    computing: float
    exchanging: float
    flops: float = 0.0
    data: float = 0.0


@dataclass(frozen=True)
class InferenceModel:
    """Times of one copy of a language model on a system; every distinct pass is computed once under the same what-ifs.

    Attributes
    ----------
    system, model, layout
        What runs where.
    formats
        Of arithmetic, weights and cache.
    chunk
        Most tokens of a prompt that one pass processes.
    software
        Name of the software; None for what usually runs such passes on such a chip.

    Raises
    ------
    ArgumentError
        If the layout has context parallelism.
    """

    system: System
    model: Decoder
    layout: Layout
    formats: Formats
    chunk: int = 8192
    software: str | None = None

    def __post_init__(self) -> None:
        refuse_context_parallelism(self.layout)

    def decode_step(self, batch: int, context: int) -> PhaseTime:
        """Return the time between two tokens of a sequence, while ``batch`` sequences are decoded.

        Sequences are divided among ``dp`` copies, and among ``pp`` groups that follow each other through the stages:
        each stage works on another group. The slowest stage sets the pace.

        Parameters
        ----------
        batch
            Sequences of one copy of the model.
        context
            Tokens that each attends to, including the new one.
        """
        return self.step(batch, 1, context)

    def step(self, batch: int, queries: int, context: int) -> PhaseTime:
        """Return the time of a step that processes ``queries`` new tokens of each sequence, as verification does."""
        own = -(-batch // self.layout.dp)
        group = -(-own // self.layout.pp)
        one = self._pass(group, queries, context, group * queries)
        rows = group * queries
        exchanging = self._exchanges(rows, rows) + self._sends(rows)
        return self._piped(one, exchanging)

    def step_floors(self, batch: int, context: int) -> tuple[float, float]:
        """Return the least seconds of a step of decoding by bandwidth alone, and by the peak rate alone."""
        group = -(-batch // (self.layout.dp * self.layout.pp))
        one = self._pass(group, 1, context, group)
        bandwidth = float(self.system.device.memory_bw.m_as("byte/s"))
        return one.data / bandwidth, one.flops / self._peak

    def prefill_floor(self, prompt: int) -> float:
        """Return the least seconds of the prefill of one prompt by the peak rate alone."""
        whole = self.prefill(prompt)
        return whole.flops / self.layout.chips / self._peak

    @property
    def _peak(self) -> float:
        return float(self.system.device.peak(self.formats.computes).m_as("FLOP/s"))

    def prefill(self, prompt: int, *, before: int = 0) -> PhaseTime:
        """Return the time from the start of one prompt to its first token, on an idle system.

        Prompts longer than ``chunk`` are processed in chunks, which follow each other through the stages of a
        pipeline.

        Parameters
        ----------
        prompt
            Tokens that the decoder begins with; an encoder's pass comes before them.
        before
            Tokens that are in the cache already, as of a shared prefix.
        """
        sizes = [self.chunk] * (prompt // self.chunk) + ([prompt % self.chunk] if prompt % self.chunk else [])
        ends = [before + sum(sizes[: index + 1]) for index in range(len(sizes))]
        last = len(sizes) - 1
        times = [
            self._chunk(size, end, index == last)
            for index, (size, end) in enumerate(zip(sizes, ends, strict=True))
            if index < _MOST_CHUNKS - 1 or index >= last - 1
        ]
        if len(times) < len(sizes):  # full chunks between are linear in the tokens before them
            missing = len(sizes) - len(times)
            times += [_mean(times[1], times[-2])] * missing
        total = summed(times if self.model.encoder is None else [self.encoding, *times])
        stages = self.layout.pp
        if stages == 1:
            return total
        # All chunks follow each other through the stages; the longest one passes the other stages at the end.
        longest = max(times, key=lambda one: one.seconds)
        return _scaled_sum(total, 1 / stages, longest, (stages - 1) / stages)

    @cached_property
    def encoding(self) -> PhaseTime:
        """Time in which the encoder reads one sequence and the keys and values of cross-attention are computed.

        Raises
        ------
        ArgumentError
            If the model has no encoder.
        """
        encoder = self.model.encoder
        if encoder is None:
            raise ArgumentError(f"encoding: {self.model.name} has no encoder")
        share, builder = self._tape()
        write_encoder(share, builder, 1)
        network = Network(f"{self.model.name}, encoder", tuple(builder.operators), PREFILL)
        rows, exchanging = encoder.tokens, 0.0
        if self.layout.tp > 1:
            size = rows * self.model.hidden * _VALUE
            each = exchange_seconds(self.system, "all-reduce", size, self.layout.tp)
            exchanging = 2 * len(encoder.layers) * each
        return self._together(self._timed(network, PREFILL, 1), exchanging)

    def _chunk(self, tokens: int, keys: int, last: bool) -> PhaseTime:
        one = self._pass(1, tokens, keys, 1 if last else 0)
        exchanging = self._exchanges(tokens, 1 if last else 0) + self._sends(tokens)
        return self._together(one, exchanging)

    def _together(self, one: PassTime, exchanging: float) -> PhaseTime:
        chips = self.layout.stage_chips
        return PhaseTime(
            one.seconds + exchanging,
            one.low + exchanging,
            one.high + exchanging,
            one.bound,
            one.seconds,
            exchanging,
            chips * one.flops,
            chips * one.data,
        )

    def _piped(self, one: PassTime, exchanging: float) -> PhaseTime:
        """Return the time of a step where groups of sequences follow each other through the stages."""
        stages = self.layout.pp
        whole = self._together(one, exchanging)
        if stages == 1:
            return whole
        inside = one.seconds - one.outside
        # The last stage has the classifier beside its layers; a round of all groups takes as long as it, each time.
        slowest = stages * (inside / stages + one.outside)
        factor = max(1.0, slowest / one.seconds)
        return PhaseTime(
            factor * one.seconds + exchanging,
            factor * one.low + exchanging,
            factor * one.high + exchanging,
            one.bound,
            factor * one.seconds,
            exchanging,
            stages * whole.flops,
            stages * whole.data,
        )

    # --- passes ----------------------------------------------------------------------------------

    def network(self, batch: int, queries: int, keys: int, logits: int) -> Network:
        """Return the operators of one pass on one chip, as through all stages."""
        share, builder = self._tape()
        write_pass(share, builder, batch, queries, keys, True, max(logits, 1))
        operators = tuple(builder.operators)
        if self.layout.ep > 1:
            operators = _own_experts(operators, share, self.layout, batch * queries)
        return Network(f"{self.model.name}, pass", operators, DECODE if queries == 1 else PREFILL)

    def _tape(self) -> tuple[Decoder, LayerBuilder]:
        """Return one chip's share of the model, and a builder that counts its passes."""
        formats, share = self.formats, shard_of(self.model, self.layout)
        bits = None if formats.weights is None else weight_bits(formats.weights)
        if bits is None and share.quantization is None and formats.computes not in ("fp16", "bf16", "fp32"):
            bits = 16
        cache = cache_precision(formats.cache) or share.cache_format or _cache(formats.computes)
        return share, LayerBuilder(formats.computes, True, bits, cache, False)

    @cached_property
    def _pass(self) -> Callable[[int, int, int, int], PassTime]:
        return remembered(self._timed_pass)

    def _timed_pass(self, batch: int, queries: int, keys: int, logits: int) -> PassTime:
        network = self.network(batch, queries, keys, logits)
        # A few new tokens, each with its logits, run as a step of decoding does; a chunk of a prompt as a prompt.
        kind = DECODE if queries == 1 or (queries <= _FEW and logits == batch * queries) else PREFILL
        return self._timed(network, kind, batch)

    def _timed(self, network: Network, kind: str, batch: int) -> PassTime:
        formats = self.formats
        parts = {formats.computes: network}
        if formats.attends != formats.computes:
            attending = tuple(each for each in network if each.kind == "attention")
            rest = tuple(each for each in network if each.kind != "attention")
            parts = {formats.computes: Network(network.name, rest, network.kind)}
            if attending:
                parts[formats.attends] = Network(network.name, attending, network.kind)
        times = [self._timer(kind, precision, part).time(part, batch) for precision, part in parts.items()]
        return times[0] if len(times) == 1 else times[0].with_more(times[1])

    def _timer(self, kind: str, precision: str, network: Network) -> Timer:
        return timer_of(self.system.device, replace(network, kind=kind), precision, self.software)

    # --- exchanges -------------------------------------------------------------------------------

    def _exchanges(self, rows: int, logits: int) -> float:
        """Return the seconds of messages within stages for a pass over ``rows`` tokens of one ``dp`` copy."""
        layout, hidden = self.layout, self.model.hidden
        size, total = rows * hidden * _VALUE, 0.0
        for (mixes, feeds, active), count in self._kinds.items():
            spread = active > 0 and layout.ep > 1 and layout.dp > 1
            reduced = mixes + (feeds and not spread)
            if layout.tp > 1:
                total += count * reduced * exchange_seconds(self.system, "all-reduce", size, layout.tp)
            if spread:
                sent = -(-rows // layout.tp) * active * hidden * _VALUE
                total += 2 * count * exchange_seconds(self.system, "all-to-all", sent, layout.stage_chips)
                if layout.tp > 1:
                    total += count * exchange_seconds(self.system, "all-gather", size, layout.tp)
        if layout.tp > 1 and logits and self.model.head:
            gathered = logits * self.model.vocabulary * _VALUE
            total += exchange_seconds(self.system, "all-gather", gathered, layout.tp)
        return total

    @cached_property
    def _kinds(self) -> dict[tuple[int, bool, int], int]:
        """How many layers attend, once or also to an encoder, have a feed-forward block, and so many active experts."""
        counted: dict[tuple[int, bool, int], int] = {}
        for layer in self.model.layer_list:
            mixes = (layer.attention_kind != "none") + layer.crosses
            key = mixes, bool(layer.ffn), layer.active_experts if layer.experts else 0
            counted[key] = counted.get(key, 0) + 1
        return counted

    def _sends(self, rows: int) -> float:
        """Return the seconds in which a group's activations pass from stage to stage."""
        layout = self.layout
        if layout.pp == 1:
            return 0.0
        size = rows * self.model.hidden * _VALUE / layout.tp
        per_node = self.system.chips_per_node
        crossing = min(layout.pp - 1, max(0, -(-layout.chips // per_node) - 1))
        inside = layout.pp - 1 - crossing
        far = send_seconds(self.system, size, between_nodes=True) if crossing else 0.0
        near = send_seconds(self.system, size, between_nodes=False) if inside else 0.0
        return crossing * far + inside * near


def _cache(computes: str) -> str:
    """Return the format of a cache that nobody states: 16 bits where the arithmetic is narrower."""
    return computes if computes in ("fp16", "bf16", "fp32") else "fp16"


def busiest(mean: float, groups: int) -> float:
    """Return the expected load of the busiest of several groups that items choose at random.

    The mean of each is ``mean``, its standard deviation that of Poisson; the largest of n such is
    ``sqrt(2 ln n)`` deviations above.

    Examples
    --------
    >>> busiest(4.0, 1), round(busiest(1.0, 8), 2)
    (4.0, 2.91)
    """
    if groups == 1:
        return mean
    return mean + math.sqrt(2 * math.log(groups) * mean * (1 - 1 / groups))


def expert_load(layer: DecoderLayer, layout: Layout, rows: int) -> tuple[float, float]:
    """Return the visits, and the experts visited, of the busiest of ``ep`` groups of chips.

    Tokens of all ``dp`` copies choose ``active_experts`` of all experts, each alike.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> layer = language_model("mixtral-8x7b").layer_list[0]
    >>> expert_load(layer, Layout(), 1)
    (2.0, 2.0)
    """
    tokens = rows * layout.dp
    held = layer.experts / layout.ep
    chosen = layer.active_experts / layer.experts
    visited = held * (1 - (1 - chosen) ** tokens)
    visits = tokens * layer.active_experts / layout.ep
    if layout.ep > 1:
        spare = visited * (1 - visited / held)
        visited = min(held, visited + math.sqrt(2 * math.log(layout.ep) * max(spare, 0.0)))
        visits = min(busiest(visits, layout.ep), float(tokens * min(layer.active_experts, held)))
        visited = min(visited, visits)
    return visits, visited


def _own_experts(operators: tuple[Operator, ...], share: Decoder, layout: Layout, rows: int) -> tuple[Operator, ...]:
    """Return a pass whose experts are those of the busiest group, in place of all."""
    layer = next(layer for layer in share.layer_list if layer.experts)
    visits, visited = expert_load(layer, layout, rows)
    all_visits, all_visited = expert_load(layer, Layout(), rows)
    more, stored, own = visits / all_visits, visited / all_visited, max(1, round(visits))
    changed: dict[int, Operator] = {}
    for operator in operators:
        if not operator.name.startswith("experts ") or id(operator) in changed:
            continue
        weights = operator.weights * stored
        shape = {**operator.shape, "m": own} if "m" in operator.shape else operator.shape
        changed[id(operator)] = replace(
            operator,
            operations=ureg.Quantity(operator.operations.magnitude * more, operator.operations.units),
            data=(operator.data - operator.weights) * more + weights,
            weights=weights,
            shape=FrozenDict(shape),
        )
    return tuple(changed.get(id(operator), operator) for operator in operators)


def summed(times: list[PhaseTime]) -> PhaseTime:
    """Return the time of passes one after the other."""
    return PhaseTime(*(sum(getattr(one, name) for one in times) for name in PhaseTime.__dataclass_fields__))


def _mean(first: PhaseTime, other: PhaseTime) -> PhaseTime:
    names = PhaseTime.__dataclass_fields__
    return PhaseTime(*((getattr(first, name) + getattr(other, name)) / 2 for name in names))


def _scaled_sum(first: PhaseTime, times: float, other: PhaseTime, more: float) -> PhaseTime:
    names = PhaseTime.__dataclass_fields__
    values = {name: times * getattr(first, name) + more * getattr(other, name) for name in names}
    return PhaseTime(**{**values, "flops": first.flops, "data": first.data})
