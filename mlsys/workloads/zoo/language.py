"""Decoder language models whose layers follow one pattern, as papers print them."""

from dataclasses import dataclass
from functools import cached_property

from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.decoder_layer import DecoderLayer
from mlsys.workloads.zoo.weight_formats import WEIGHT_FORMATS, weight_bits

__all__ = ["WEIGHT_FORMATS", "LanguageModel", "weight_bits"]


@dataclass(frozen=True)
class LanguageModel(Decoder):
    """The shape of a decoder-only transformer.

    Attributes
    ----------
    name
        What papers call it.
    layers, hidden, heads, kv_heads, head_dim
        Blocks, width, heads of queries, heads of keys and values, width of a head.
    ffn
        Inner width of the feed-forward layer, or of one expert.
    vocabulary
        Rows of the table of tokens.
    gated
        Feed-forward of three matrices (SwiGLU, GeGLU) instead of two.
    tied
        The classifier uses the table of tokens.
    positions
        Rows of a learned table of positions; 0 for rotary embeddings or ALiBi.
    biases
        Which layers have one: ``"qkv"``, ``"output"``, ``"ffn"``, ``"head"``.
    norms
        Normalisations in a block, over ``hidden``.
    norm_size
        Parameters of a normalisation for each of its elements: 1 (RMS), 2 (with bias).
    sinks
        Each head has one learned score that no key answers.
    head_norms
        Normalisations of ``head_dim`` in a block, for queries and keys.
    other_norms
        Normalisations outside the blocks.
    experts, active_experts
        Experts in a layer and how many a token visits; 0 for a dense model.
    shared_ffn
        Inner width of an expert that every token visits.
    dense_layers, dense_ffn
        How many of the layers have a plain feed-forward layer instead, and its inner width.
    latent, rotary, query_latent, value_dim
        Of multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1; 0 for none): width of what is
        cached in the place of keys and values, width of the rotary key beside it that all heads share, inner width of
        the queries' two matrices (0 for one matrix), and width of a value. ``head_dim`` is then that of a key
        without its rotary part.
    window, full_every
        Reach of local attention in tokens, and that every n-th layer sees everything
        (0: none does); window 0 means all do.
    act
        Activation.

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

    @cached_property
    def layer_list(self) -> tuple[DecoderLayer, ...]:
        """The layers, those without experts first, and local attention where the pattern has it."""
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
