"""Decoder language models: their parameters, the cache of a token, prefill and decode."""

from dataclasses import dataclass, replace

from mlsys.door import checked_count
from mlsys.precision import element_size
from mlsys.units import Q_, Quantity
from mlsys.workloads.operator import DECODE, PREFILL, Network
from mlsys.workloads.zoo.decoder_parameters import parameters_with
from mlsys.workloads.zoo.decoder_pass import write_pass
from mlsys.workloads.zoo.tape import Tape
from mlsys.workloads.zoo.weight_formats import WEIGHT_FORMATS, weight_bits

__all__ = ["WEIGHT_FORMATS", "LanguageModel", "weight_bits"]


@dataclass(frozen=True)
class LanguageModel:
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

    # --- parameters and memory -------------------------------------------------------------

    def parameters(self, positions: int | None = None) -> Quantity:
        """Return all parameters, param; ``positions`` replaces the length of a learned table of positions."""
        model = self if positions is None else replace(self, positions=positions)
        return Q_(parameters_with(model, self.experts), "param")

    def active_parameters(self) -> Quantity:
        """Return the parameters that one token uses: of the experts only those it visits."""
        return Q_(parameters_with(self, self.active_experts), "param")

    def weight_bytes(self, weight_format: str = "fp16") -> Quantity:
        """Return the bytes of all parameters in ``weight_format``.

        Examples
        --------
        >>> from mlsys.workloads.zoo import language_model
        >>> print(f"{language_model('llama-2-7b').weight_bytes('q4_0').to('GB'):.2f}")
        3.79 GB
        """
        return Q_(parameters_with(self, self.experts) * weight_bits(weight_format) / 8, "byte")

    def kv_cache_per_token(self, precision: str = "fp16") -> Quantity:
        """Return the bytes of keys and values, or of their latent, that one token leaves behind in all layers.

        Examples
        --------
        >>> from mlsys.workloads.zoo import language_model
        >>> print(language_model("deepseek-v3").kv_cache_per_token("bf16").to("kB"))
        70.272 kB
        """
        each = self.latent + self.rotary if self.latent else 2 * self.kv_heads * self.head_dim
        elements = self.layers * each
        return Q_(elements * element_size(precision).m_as("byte"), "byte")

    # --- networks ----------------------------------------------------------------------------

    def prefill(
        self,
        batch: int = 1,
        prompt: int = 512,
        precision: str = "fp16",
        *,
        weight_format: str | None = None,
        causal: bool = False,
        last_logits: bool = False,
        fused: bool = True,
        whole: bool = False,
    ) -> Network:
        """Return one pass over prompts that are all of one length.

        Parameters
        ----------
        batch, prompt
            Sequences and the tokens of each.
        precision
            Number format of activations and cache.
        weight_format
            Format in which weights are stored; by default ``precision``.
        causal
            Count only the scores that a causal mask keeps; by default all, as most counters do.
        last_logits
            Compare only the last token with the vocabulary, as generating needs.
        fused, whole
            As in :class:`~mlsys.workloads.zoo.tape.Tape`.

        Raises
        ------
        ArgumentError
            If a count is not a whole number above zero.
        UnknownNameError
            If a format does not exist.

        Notes
        -----
        A token visits ``active_experts`` of the experts. The weights read are those of the
        experts that at least one token visits, when tokens choose evenly.
        """
        batch, prompt = checked_count("prefill", "batch", batch), checked_count("prefill", "prompt", prompt)
        tape = self._tape(precision, weight_format, None, fused, whole)
        write_pass(self, tape, batch, prompt, prompt, causal, batch if last_logits else batch * prompt)
        return Network(f"{self.name}, prefill of {batch} × {prompt}", tuple(tape.operators), PREFILL)

    def decode(
        self,
        batch: int = 1,
        context: int = 512,
        precision: str = "fp16",
        *,
        weight_format: str | None = None,
        cache_precision: str | None = None,
        fused: bool = True,
        whole: bool = False,
    ) -> Network:
        """Return one decoding step: one new token for each sequence.

        Parameters
        ----------
        batch, context
            Sequences, and tokens each of them attends to, the new one included.
        precision
            Number format of activations.
        weight_format, cache_precision
            Formats in which weights and the key-value cache are stored; by default ``precision``.
        fused, whole
            As in :class:`~mlsys.workloads.zoo.tape.Tape`.

        Raises
        ------
        ArgumentError
            If a count is not a whole number above zero.
        UnknownNameError
            If a format does not exist.

        Examples
        --------
        >>> from mlsys.workloads.zoo import language_model
        >>> step = language_model("llama-3-8b").decode(context=1024, weight_format="q4_k_m")
        >>> print(f"{step.data.to('GB'):.2f}, {step.intensity:.2f}")
        4.68 GB, 3.32 FLOP/B
        """
        batch, context = checked_count("decode", "batch", batch), checked_count("decode", "context", context)
        tape = self._tape(precision, weight_format, cache_precision, fused, whole)
        write_pass(self, tape, batch, 1, context, True, batch)
        return Network(f"{self.name}, decode step of {batch} at {context}", tuple(tape.operators), DECODE)

    def write(self, tape: Tape, batch: int, prompt: int) -> None:
        """Append one pass over prompts that are all of one length, every score counted."""
        write_pass(self, tape, batch, prompt, prompt, False, batch * prompt)

    def _tape(self, precision: str, weight_format: str | None, cache: str | None, fused: bool, whole: bool) -> Tape:
        return Tape(precision, fused, None if weight_format is None else weight_bits(weight_format), cache, whole)
