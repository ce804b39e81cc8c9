"""One layer of a decoder: its sizes, weight matrices and cache entries."""

from dataclasses import dataclass
from typing import NamedTuple

from mlsys.workloads.zoo.recurrence import Recurrence


class WeightMatrix(NamedTuple):
    """A weight matrix, or several of one shape.

    Attributes
    ----------
    operator
        The operator of :mod:`mlsys.workloads.zoo.decoder_pass` that reads it.
    name
        Its name in most checkpoints, such as ``"self_attn.q_proj"``.
    inputs, outputs
        Its input and output features.
    copies
        Number of matrices of this shape: the experts of a layer, or the blocks of a matrix with blocks.
    """

    operator: str
    name: str
    inputs: int
    outputs: int
    copies: int = 1

    @property
    def elements(self) -> int:
        """Number of weights in all copies."""
        return self.inputs * self.outputs * self.copies


@dataclass(frozen=True)
class DecoderLayer:
    """Sizes of one decoder layer: attention, a recurrence, or both side by side, then a feed-forward block.

    Attributes
    ----------
    heads, kv_heads, head_dim
        Query heads, key-value heads, and width of a head; 0 heads for a layer without attention.
    ffn
        Inner width of the feed-forward block, or of one expert; 0 for a layer without one.
    gated
        Whether the feed-forward block has three matrices (SwiGLU, GeGLU) instead of two.
    biases
        Which parts have biases: ``"qkv"``, ``"output"``, ``"ffn"`` (also of a shared expert), ``"experts"``,
        ``"router"``, and ``"latent"``, those of the projections to the latents.
    norms
        Number of normalisations over ``hidden``.
    centred
        Whether they subtract the mean (LayerNorm); otherwise they only scale (RMSNorm).
    small
        Parameters that are neither matrices nor biases: normalisations, attention sinks.
    experts, active_experts
        Number of experts, and how many are active per token; 0 for a dense layer.
    shared_ffn, shared_gate
        Inner width of the shared expert, and whether a learned gate scales its output.
    latent, rotary, query_latent
        Of multi-head latent attention; see :class:`~mlsys.workloads.zoo.LanguageModel`.
    value_dim
        Width of a value where it is not that of a key; 0 for the same.
    selects, index_heads, index_width
        Of sparse attention: keys that a token attends to at most, those with the highest scores of an indexer with so
        many heads of such a width (DeepSeek-V3.2); no heads where the choice of an earlier layer is reused.
    window
        Window of local attention in tokens; 0 for full attention.
    recurrence
        Mixer with a state of fixed size: instead of attention, or beside it where the layer also has heads.
    shares_cache
        Whether it attends to the keys and values of an earlier layer and so has no projections for them.
    keys_as_values
        Whether values are taken from the projection of the keys; both are cached.
    gated_query
        Whether the query projection also gives a gate of the attention's output.
    side
        Further matrices, which every token meets; one that it meets twice is listed twice and stored once.
    crosses
        Whether it also attends to what an encoder left, between attention and the feed-forward block.
    streams
        Residual streams that the layer predicts and corrects (AltUp, arXiv:2301.13310); 0 for one.
    act
        Activation.
    """

    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    gated: bool = True
    biases: frozenset[str] = frozenset()
    norms: int = 2
    centred: bool = False
    small: int = 0
    experts: int = 0
    active_experts: int = 0
    shared_ffn: int = 0
    shared_gate: bool = False
    latent: int = 0
    rotary: int = 0
    query_latent: int = 0
    value_dim: int = 0
    selects: int = 0
    index_heads: int = 0
    index_width: int = 0
    window: int = 0
    recurrence: Recurrence | None = None
    shares_cache: bool = False
    keys_as_values: bool = False
    gated_query: bool = False
    side: tuple[WeightMatrix, ...] = ()
    crosses: bool = False
    streams: int = 0
    act: str = "silu"

    @property
    def attends(self) -> bool:
        """Whether the layer has attention."""
        return self.heads > 0

    @property
    def convolution(self) -> int:
        """Kernel of the convolution of a layer that has one in place of attention; 0 for others."""
        return 0 if self.attends or self.recurrence is None else self.recurrence.kernel

    @property
    def attention_kind(self) -> str:
        """How heads share keys: ``multi-head``, ``grouped``, ``multi-query``, ``latent`` or ``none``."""
        if not self.attends:
            return "none"
        if self.latent:
            return "latent"
        if self.kv_heads == self.heads:
            return "multi-head"
        return "multi-query" if self.kv_heads == 1 else "grouped"

    @property
    def key_width(self) -> int:
        """Width of a key, including a separate rotary part."""
        return self.head_dim + self.rotary if self.latent else self.head_dim

    @property
    def value_width(self) -> int:
        """Width of a value."""
        return self.value_dim or self.head_dim

    @property
    def cached_elements(self) -> int:
        """Elements that one token adds to the cache of this layer."""
        if not self.attends or self.shares_cache:
            return 0
        if self.latent:
            return self.latent + self.rotary + self.index_width
        return self.kv_heads * (self.head_dim + self.value_width)

    @property
    def cross_elements(self) -> int:
        """Elements that one token of an encoder leaves in the cache of this layer, once for a sequence."""
        return 2 * self.kv_heads * self.head_dim if self.crosses else 0

    def matrices(self, hidden: int) -> tuple[WeightMatrix, ...]:
        """Return the weight matrices of the layer in execution order."""
        return (
            *self._recurrence(),
            *self._attention(hidden),
            *self._cross(hidden),
            *self._feed_forward(hidden),
            *dict.fromkeys(self.side),
        )

    def bias_parameters(self, hidden: int, experts: int | None = None) -> int:
        """Return the parameters in biases, counting ``experts`` experts (by default all)."""
        count, total = self.experts if experts is None else experts, 0
        if "qkv" in self.biases:
            shared = self.kv_heads * (self.head_dim + self.value_width * (not self.keys_as_values))
            shared = 0 if self.shares_cache else shared
            total += self.heads * (1 + self.gated_query) * self.head_dim + shared
        if "latent" in self.biases:
            total += self.query_latent + self.latent + self.rotary
        if "output" in self.biases:
            total += hidden * (1 + self.crosses)
        if "router" in self.biases:
            total += self.experts
        if "ffn" in self.biases:
            total += self._bias_width(hidden, self.shared_ffn if self.experts else self.ffn)
        if "experts" in self.biases:
            total += count * self._bias_width(hidden, self.ffn)
        return total

    def parameters(self, hidden: int, experts: int | None = None) -> int:
        """Return the parameters of the layer, counting ``experts`` experts (by default all)."""
        total = self.small + self.bias_parameters(hidden, experts)
        if self.recurrence is not None:
            total += self.recurrence.small + self.recurrence.convolution_parameters
            total += sum(each.outputs * each.blocks for each in self.recurrence.projections if each.bias)
        for matrix in self.matrices(hidden):
            part = experts is not None and matrix.operator.startswith("experts")
            total += matrix.inputs * matrix.outputs * (experts or 0) if part else matrix.elements
        return total

    def _bias_width(self, hidden: int, inner: int) -> int:
        return (2 if self.gated else 1) * inner + hidden if inner else 0

    def _recurrence(self) -> tuple[WeightMatrix, ...]:
        projections = () if self.recurrence is None else self.recurrence.projections
        return tuple(
            WeightMatrix(each.operator, each.name, each.inputs, each.outputs, each.blocks) for each in projections
        )

    def _attention(self, hidden: int) -> tuple[WeightMatrix, ...]:
        if not self.attends:
            return ()
        matrix = WeightMatrix
        output = matrix("attention output", "self_attn.o_proj", self.heads * self.value_width, hidden)
        if self.latent:
            query_width = self.heads * self.key_width
            query = (
                (
                    matrix("query down", "self_attn.q_a_proj", hidden, self.query_latent),
                    matrix("query", "self_attn.q_b_proj", self.query_latent, query_width),
                )
                if self.query_latent
                else (matrix("query", "self_attn.q_proj", hidden, query_width),)
            )
            expanded = self.heads * (self.head_dim + self.value_width)
            return (
                *query,
                matrix("latent", "self_attn.kv_a_proj_with_mqa", hidden, self.latent + self.rotary),
                matrix("key and value", "self_attn.kv_b_proj", self.latent, expanded),
                output,
            )
        sides: tuple[tuple[str, int], ...] = (
            ("q", self.heads * self.head_dim * (1 + self.gated_query)),
            ("k", self.kv_heads * self.head_dim),
            ("v", self.kv_heads * self.value_width),
        )
        if self.shares_cache:
            sides = sides[:1]
        elif self.keys_as_values:
            sides = sides[:2]
        rows = (matrix("query, key, value", f"self_attn.{side}_proj", hidden, width) for side, width in sides)
        return (*rows, output)

    def _cross(self, hidden: int) -> tuple[WeightMatrix, ...]:
        if not self.crosses:
            return ()
        wide, shared, matrix = self.heads * self.head_dim, self.kv_heads * self.head_dim, WeightMatrix
        return (
            matrix("cross attention query", "encoder_attn.q_proj", hidden, wide),
            matrix("cross attention key, value", "encoder_attn.k_proj", hidden, shared),
            matrix("cross attention key, value", "encoder_attn.v_proj", hidden, shared),
            matrix("cross attention output", "encoder_attn.o_proj", wide, hidden),
        )

    def _feed_forward(self, hidden: int) -> tuple[WeightMatrix, ...]:
        if not self.experts:
            return self._inner("feed-forward", "mlp", hidden, self.ffn, 1)
        gate = (WeightMatrix("shared expert gate", "mlp.shared_expert_gate", hidden, 1),) if self.shared_gate else ()
        return (
            WeightMatrix("router", "mlp.gate", hidden, self.experts),
            *self._inner("shared expert", "mlp.shared_experts", hidden, self.shared_ffn, 1),
            *gate,
            *self._inner("experts", "mlp.experts", hidden, self.ffn, self.experts),
        )

    def _inner(self, operator: str, name: str, hidden: int, inner: int, copies: int) -> tuple[WeightMatrix, ...]:
        if not inner:
            return ()
        first = f"{operator} gate and up" if self.gated else f"{operator} up"
        rows = [WeightMatrix(first, f"{name}.up_proj", hidden, inner, copies)]
        if self.gated:
            rows.insert(0, WeightMatrix(first, f"{name}.gate_proj", hidden, inner, copies))
        return (*rows, WeightMatrix(f"{operator} down", f"{name}.down_proj", inner, hidden, copies))
