"""Memory of inference by part: weights, key-value cache, states, activations; of one chip and of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from mlsys.mapping.parallel import Layout
from mlsys.models.inference.shard import refuse_context_parallelism, shard_of, stage_of, stage_weights
from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.decoder_layer import DecoderLayer
from mlsys.workloads.zoo.weight_formats import weight_bits

# Bytes of a value between operators: kernels for narrower weights and caches take and give 16 bits.
_VALUE, _LOGIT = 2, 4
_MOST = 1 << 40
"""Largest batch and sequence that are looked for."""


@dataclass(frozen=True)
class MemoryParts:
    """Bytes by part.

    Attributes
    ----------
    weights, kv_cache, states, activations
        Weights; keys and values, or their latents, within windows; states of recurrent layers; the values that one
        pass holds at once.
    """

    weights: float
    kv_cache: float
    states: float
    activations: float

    @property
    def needed(self) -> float:
        """All parts together, bytes."""
        return self.weights + self.kv_cache + self.states + self.activations

    def beside(self, other: MemoryParts) -> MemoryParts:
        """Return the memory of two models that share chips and run in turn, with one buffer of activations.

        Examples
        --------
        >>> MemoryParts(8.0, 4.0, 0.0, 2.0).beside(MemoryParts(1.0, 1.0, 0.0, 1.0))
        MemoryParts(weights=9.0, kv_cache=5.0, states=0.0, activations=2.0)
        """
        return MemoryParts(
            self.weights + other.weights,
            self.kv_cache + other.kv_cache,
            self.states + other.states,
            max(self.activations, other.activations),
        )


@dataclass(frozen=True)
class MemoryModel:
    """What a model needs under a layout.

    Attributes
    ----------
    model, layout
        The model, and how one copy of it is split.
    weight_format, kv_format
        Formats in which weights and cache are stored; by default the model's own, or 16 bits.
    windows
        Whether local layers keep only their window of the cache.
    chunk
        Most tokens that one pass processes: longer prompts are processed in chunks.
    new_tokens
        New tokens of each sequence in a step: more than one where drafted tokens are verified.
    draft
        Draft model on the same chips, whose memory is counted with that of the model; None without one.

    Raises
    ------
    ArgumentError
        If the layout has context parallelism.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> split = MemoryModel(language_model("llama-3-70b"), Layout(tp=16))
    >>> split.kv_cache_per_token / 1024, split.kv_cache_per_token_per_chip / 1024
    (320.0, 40.0)
    """

    model: Decoder
    layout: Layout = field(default_factory=Layout)
    weight_format: str | None = None
    kv_format: str | None = None
    windows: bool = True
    chunk: int = 8192
    new_tokens: int = 1
    draft: MemoryModel | None = None

    def __post_init__(self) -> None:
        refuse_context_parallelism(self.layout)

    @property
    def cache_bytes(self) -> float:
        """Bytes of one value in the cache."""
        return weight_bits(self.kv_format or self.model.cache_format or "fp16") / 8

    @property
    def kv_cache_per_token(self) -> float:
        """Bytes that one token adds to the cache of all layers, each key and value counted once."""
        return sum(layer.cached_elements for layer in self.model.layer_list) * self.cache_bytes

    @property
    def kv_cache_per_token_per_chip(self) -> float:
        """Bytes that one token adds to the cache on a chip of the stage that caches most."""
        return max(_elements(stage, 0) for stage in self._stages) * self.cache_bytes

    def kv_cache(self, tokens: int, batch: int = 1) -> float:
        """Return the bytes of the cache of ``batch`` sequences of ``tokens`` tokens, each key and value once.

        What an encoder left for cross-attention is part of it.
        """
        own = _elements(self._whole, tokens, self.windows) + self.model.cross_elements()
        return batch * own * self.cache_bytes

    def cross_cache(self, batch: int = 1) -> float:
        """Return the bytes that an encoder leaves in the cache of ``batch`` sequences; 0 without one."""
        return batch * self.model.cross_elements() * self.cache_bytes

    def states(self, batch: int = 1) -> float:
        """Return the bytes of the states of recurrent layers."""
        return batch * self._state

    def rows(self, batch: int, prompt: int) -> int:
        """Return the most tokens that one pass processes: a chunk of a prompt, or the new tokens of each sequence.

        An encoder reads all of its tokens in one pass, as each attends to all.
        """
        read = self.model.encoder.tokens if self.model.encoder is not None else 0
        return max(min(prompt, self.chunk), batch * self.new_tokens, read)

    def of_stage(self, stage: int, tokens: int, batch: int = 1, prompt: int | None = None) -> MemoryParts:
        """Return what one chip of a pipeline stage needs; sequences are divided among ``dp`` copies."""
        own = -(-batch // self.layout.dp)
        share = self.states(own) / self.layout.pp
        return MemoryParts(
            self._weights[stage],
            own * (_elements(self._stages[stage], tokens, self.windows) + self._crossing) * self.cache_bytes,
            share,
            self._activations(self.rows(own, tokens if prompt is None else prompt), own),
        )

    @cached_property
    def _weights(self) -> tuple[float, ...]:
        return stage_weights(self.model, self.layout, self.weight_format)

    @cached_property
    def _crossing(self) -> int:
        """Elements that an encoder leaves in the cache of one chip for each sequence."""
        return shard_of(self.model, self.layout).cross_elements()

    @cached_property
    def _state(self) -> float:
        return float(self.model.state_bytes().m_as("byte"))

    @cached_property
    def _whole(self) -> Kinds:
        return _kinds(self.model.layer_list)

    @cached_property
    def _stages(self) -> tuple[Kinds, ...]:
        return tuple(_kinds(stage_of(self.model, self.layout, stage)) for stage in range(self.layout.pp))

    @cached_property
    def _values(self) -> float:
        """Values of a token in the widest layer; see :func:`values_at_once`."""
        return values_at_once(self.model, self.layout)

    def _activations(self, rows: int, sequences: int) -> float:
        """Return the bytes of the values that one chip holds at once in a pass over ``rows`` tokens.

        At the end, logits of the last token of each sequence, or of all that are verified, are held in 16 and in 32
        bits, as samplers need them.
        """
        scored = sequences * self.new_tokens
        logits = scored * -(-self.model.vocabulary // self.layout.tp) * (_VALUE + _LOGIT) if self.model.head else 0
        return max(rows * self._values * _VALUE, logits + rows * self.model.hidden * _VALUE)

    def per_chip(self, tokens: int, batch: int = 1, prompt: int | None = None) -> MemoryParts:
        """Return what the fullest chip needs."""
        stages = (self.of_stage(stage, tokens, batch, prompt) for stage in range(self.layout.pp))
        fullest = max(stages, key=lambda parts: parts.needed)
        return fullest if self.draft is None else fullest.beside(self.draft.per_chip(tokens, batch, prompt))

    def in_all(self, tokens: int, batch: int = 1, prompt: int | None = None) -> MemoryParts:
        """Return what all chips of one copy of the model need together, what is stored twice counted twice."""
        stages = [self.of_stage(stage, tokens, batch, prompt) for stage in range(self.layout.pp)]
        chips = self.layout.stage_chips
        whole = MemoryParts(
            *(
                chips * sum(getattr(parts, name) for parts in stages)
                for name in ("weights", "kv_cache", "states", "activations")
            )
        )
        return whole if self.draft is None else whole.beside(self.draft.in_all(tokens, batch, prompt))

    def largest_batch(self, tokens: int, room: float, prompt: int | None = None) -> int:
        """Return the most sequences of ``tokens`` tokens with which no chip needs more than ``room`` bytes.

        Examples
        --------
        >>> from mlsys.workloads.zoo import language_model
        >>> llama = MemoryModel(language_model("llama-3-8b"))
        >>> most = llama.largest_batch(4096, 80e9)
        >>> [llama.per_chip(4096, batch).needed <= 80e9 for batch in (most, most + 1)]
        [True, False]
        """
        return largest(lambda batch: self.per_chip(tokens, batch, prompt).needed <= room)

    def largest_sequence(self, room: float, batch: int = 1) -> int | None:
        """Return the most tokens of each sequence with which no chip needs more than ``room`` bytes.

        None where the cache stops to grow before it is full: windows in all layers, or recurrent layers alone.
        """
        most = largest(lambda tokens: self.per_chip(tokens, batch).needed <= room)
        return None if most >= _MOST else most


def largest(holds: Callable[[int], bool]) -> int:
    """Return the largest whole number that a condition holds for, or 0; it must fail for all larger ones.

    Examples
    --------
    >>> largest(lambda number: number**2 <= 1000), largest(lambda number: False)
    (31, 0)
    """
    if not holds(1):
        return 0
    low, high = 1, 2
    while high < _MOST and holds(high):
        low, high = high, 2 * high
    if high >= _MOST:
        return _MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


Kinds = tuple[tuple[int, int, int], ...]
"""Elements that a token adds to the cache of a layer, its window, and how many such layers there are."""


def _kinds(layers: tuple[DecoderLayer, ...]) -> Kinds:
    counted: dict[tuple[int, int], int] = {}
    for layer in layers:
        key = layer.cached_elements, layer.window
        counted[key] = counted.get(key, 0) + 1
    return tuple((elements, window, count) for (elements, window), count in counted.items())


def _elements(kinds: Kinds, tokens: int, windows: bool = True) -> int:
    """Return the elements that layers cache after so many tokens; with 0, those that one token adds."""
    return sum(
        count * elements * ((min(tokens, window) if windows and window else tokens) if tokens else 1)
        for elements, window, count in kinds
    )


def values_at_once(model: Decoder, layout: Layout) -> float:
    """Return the most values of a token that one chip holds at once.

    Layers run one after the other and reuse one buffer, so that the fullest moment of the widest layer counts: the
    residual stream and the input of a block, beside what attention projects, or the outputs of the gate and up
    projections and of the activation (of the experts, those of all visits).

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> values_at_once(language_model("llama-3-8b"), Layout()) == 2 * 4096 + 3 * 14336
    True
    """
    hidden, most, share = model.hidden, 0.0, shard_of(model, layout)
    for layer in dict.fromkeys((*share.layer_list, *(share.encoder.layers if share.encoder is not None else ()))):
        most = max(most, _attention_values(layer, hidden), _feed_forward_values(layer, hidden, layout))
    return 2 * hidden + most


def _attention_values(layer: DecoderLayer, hidden: int) -> float:
    """Return the values of a token beside residual stream and input while a layer attends."""
    if layer.attention_kind == "none":
        return 3 * hidden
    outputs = layer.heads * layer.value_width
    if layer.latent:
        queries = layer.heads * layer.key_width
        return layer.query_latent + queries + layer.latent + layer.rotary + 2 * queries + outputs
    return (layer.heads + 2 * layer.kv_heads) * layer.head_dim + outputs


def _feed_forward_values(layer: DecoderLayer, hidden: int, layout: Layout) -> float:
    """Return the values of a token beside residual stream and input while the feed-forward block runs."""
    inner = (2 + layer.gated) * layer.ffn
    if not layer.experts:
        return inner
    # Each group of chips gets the tokens of all copies, an ep-th of their visits.
    visits = layer.active_experts * (layout.dp / layout.ep if layout.ep > 1 else 1.0)
    return visits * (2 * hidden + inner) + (2 + layer.gated) * layer.shared_ffn
