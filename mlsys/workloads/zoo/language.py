"""Decoder language models whose layers follow one pattern, described by the sizes that papers publish."""

from dataclasses import dataclass
from functools import cached_property

from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.decoder_layer import DecoderLayer
from mlsys.workloads.zoo.stored_weights import StoredWeights
from mlsys.workloads.zoo.weight_formats import WEIGHT_FORMATS, weight_bits

__all__ = ["WEIGHT_FORMATS", "LanguageModel", "weight_bits"]


@dataclass(frozen=True)
class LanguageModel(Decoder):
    """The sizes of a decoder-only transformer.

    Attributes
    ----------
    name
        Name used in papers.
    layers, hidden, heads, kv_heads, head_dim
        Blocks, width, query heads, key-value heads, width of a head.
    ffn
        Inner width of the feed-forward block, or of one expert.
    vocabulary
        Rows of the token embedding table.
    gated
        Whether the feed-forward block has three matrices (SwiGLU, GeGLU) instead of two.
    tied
        Whether the classifier shares the token embedding table.
    positions
        Rows of a learned position table; 0 for rotary embeddings or ALiBi.
    biases
        Which layers have a bias: ``"qkv"``, ``"output"``, ``"ffn"``, ``"head"``.
    norms
        Normalisations in a block, over ``hidden``.
    norm_size
        Parameters of a normalisation per element: 1 (RMSNorm), 2 (with bias).
    sinks
        Whether each head has a learned attention-sink logit.
    head_norms
        Normalisations over ``head_dim`` in a block (of queries and keys).
    other_norms
        Normalisations outside the blocks.
    experts, active_experts
        Experts in a layer, and how many are active per token; 0 for a dense model.
    shared_ffn
        Inner width of a shared expert, which every token visits.
    dense_layers, dense_ffn
        How many of the layers have a dense feed-forward block instead, and its inner width.
    latent, rotary, query_latent, value_dim
        Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1; 0 for none): width of the latent
        cached instead of keys and values, width of the rotary key that all heads share, inner width of the low-rank
        query projection (0 for a full-rank one), and width of a value. ``head_dim`` is then the width of a key
        without its rotary part.
    window, full_every
        Window of local attention in tokens (0: all layers have full attention), and n if every n-th layer has full
        attention (0: none has).
    act
        Activation.
    quantization, cache_format
        As of :class:`~mlsys.workloads.zoo.decoder.Decoder`: how weights and cache are stored, where one chose it.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> llama = language_model("Llama 2 7B")
    >>> print(f"{llama.parameters():,}; {llama.kv_cache_per_token().to('KiB')}")
    6,738,415,616 param; 512 KiB
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    gated: bool = True
    tied: bool = False
    positions: int = 0
    biases: tuple[str, ...] = ()
    norms: int = 2
    norm_size: int = 1
    head_norms: int = 0
    other_norms: int = 1
    experts: int = 0
    active_experts: int = 0
    shared_ffn: int = 0
    dense_layers: int = 0
    dense_ffn: int = 0
    latent: int = 0
    rotary: int = 0
    query_latent: int = 0
    value_dim: int = 0
    window: int = 0
    full_every: int = 0
    sinks: bool = False
    act: str = "silu"
    quantization: StoredWeights | None = None
    cache_format: str | None = None

    @cached_property
    def layer_list(self) -> tuple[DecoderLayer, ...]:
        """The layers in execution order: those without experts first, with local attention where the pattern has it."""
        kinds = {key: self._layer(*key) for key in ((dense, full) for dense in (False, True) for full in (False, True))}
        return tuple(
            kinds[
                index < self.dense_layers,
                not self.window or (self.full_every > 0 and (index + 1) % self.full_every == 0),
            ]
            for index in range(self.layers)
        )

    @property
    def head_bias(self) -> bool:
        """Whether the classifier has a bias."""
        return "head" in self.biases

    @property
    def outer_parameters(self) -> int:
        """Parameters of normalisations outside the layers."""
        return self.other_norms * self.norm_size * self.hidden

    def _layer(self, dense: bool, full: bool) -> DecoderLayer:
        experts = 0 if dense else self.experts
        norms = self.norms * self.norm_size * self.hidden + self.head_norms * self.head_dim
        biases = {name for name in self.biases if name != "head"}
        return DecoderLayer(
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            ffn=self.dense_ffn if dense else self.ffn,
            gated=self.gated,
            biases=frozenset(biases | ({"router", "experts"} if experts and "ffn" in biases else set())),
            norms=self.norms,
            centred=self.norm_size > 1,
            small=norms + self.latent + self.query_latent + (self.heads if self.sinks else 0),
            experts=experts,
            active_experts=self.active_experts if experts else 0,
            shared_ffn=self.shared_ffn if experts else 0,
            latent=self.latent,
            rotary=self.rotary or (0 if self.positions else self.head_dim),
            query_latent=self.query_latent,
            value_dim=self.value_dim,
            window=0 if full else self.window,
            act=self.act,
        )
