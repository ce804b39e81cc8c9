"""The base class of decoders: parameters, weight bytes, key-value cache, prefill and decode."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from mlsys.errors import ArgumentError
from mlsys.precision import element_size, precision_name
from mlsys.unit_checks import checked_count
from mlsys.units import Q_, Quantity
from mlsys.workloads.operator import DECODE, NETWORK, PREFILL, Network
from mlsys.workloads.zoo.decoder_layer import DecoderLayer, WeightMatrix
from mlsys.workloads.zoo.decoder_pass import write_encoder, write_pass
from mlsys.workloads.zoo.layer_builder import LayerBuilder
from mlsys.workloads.zoo.recurrence import STATE_FORMAT
from mlsys.workloads.zoo.source_encoder import SourceEncoder
from mlsys.workloads.zoo.stored_weights import StoredWeights, UniformWeights
from mlsys.workloads.zoo.weight_formats import weight_bits

if TYPE_CHECKING:
    pass


class Decoder(ABC):
    """A transformer that generates tokens, with or without an encoder in front; subclasses define its layers.

    Attributes
    ----------
    name
        Name used in results.
    hidden, vocabulary
        Width of the residual stream, and rows of the token embedding table.
    tied
        Whether the classifier shares the token embedding table.
    positions
        Rows of a learned position embedding table; 0 for none.
    embedding_width
        Width of the token embedding table if not ``hidden``; 0 for ``hidden``.
    head, head_bias
        Whether the pass ends in logits over the vocabulary, and whether they have a bias.
    outer_parameters
        Parameters of normalisations outside the layers.
    layer_list
        The layers.
    quantization
        How weights are stored when not all have one format.
    cache_format
        Number format of the key-value cache, if the model states one.
    outer_matrices
        Matrices outside the layers, besides embeddings and classifier, that every token meets.
    per_layer_table
        Rows and width of a second embedding table whose rows feed all layers; empty for none.
    encoder
        The encoder that the decoder reads; None for a decoder alone.
    """

    name: str
    hidden: int
    vocabulary: int
    tied: bool
    positions: int
    embedding_width: int = 0
    head: bool = True
    quantization: StoredWeights | None = None
    cache_format: str | None = None
    outer_matrices: tuple[WeightMatrix, ...] = ()
    per_layer_table: tuple[int, ...] = ()
    encoder: SourceEncoder | None = None

    @property
    @abstractmethod
    def head_bias(self) -> bool:
        """Whether the classifier has a bias."""

    @property
    @abstractmethod
    def outer_parameters(self) -> int:
        """Parameters of normalisations outside the layers."""

    @property
    @abstractmethod
    def layer_list(self) -> tuple[DecoderLayer, ...]:
        """The layers in execution order."""

    def unquantised(self) -> Self:
        """Return the same model with all weights in one format."""
        return replace(self, quantization=None) if self.quantization is not None else self  # type: ignore[type-var]

    def in_formats(self, weight_format: str | None = None, kv_format: str | None = None) -> Self:
        """Return the same model with all weights, or the key-value cache, in another number format.

        Parameters
        ----------
        weight_format
            A number format or a block format, such as ``"q4_k_m"``; None keeps the model's own.
        kv_format
            A number format; None keeps the model's own.

        Raises
        ------
        UnknownNameError
            If a format is unknown.

        Examples
        --------
        >>> from mlsys.workloads.zoo import language_model
        >>> llama = language_model("llama-3-8b").in_formats("int4 g128", "fp8")
        >>> print(f"{llama.weight_bytes().to('GB'):.2f}, {llama.kv_cache_per_token().to('KiB')}")
        4.14 GB, 64 KiB
        """
        changes: dict[str, object] = {}
        if weight_format is not None:
            changes["quantization"] = UniformWeights(str(weight_format).lower(), weight_bits(weight_format))
        if kv_format is not None:
            changes["cache_format"] = precision_name(kv_format)
        return replace(self, **changes) if changes else self  # type: ignore[type-var]

    def reading(self, tokens: int) -> Self:
        """Return the same model, whose encoder reads sequences of so many tokens.

        Raises
        ------
        ArgumentError
            If it has no encoder, or one that always reads another number.
        """
        encoder = self.encoder
        tokens = checked_count("reading", "tokens", tokens)
        if encoder is None or (encoder.fixed and tokens != encoder.tokens):
            why = "no encoder" if encoder is None else f"an encoder that always reads {encoder.tokens} tokens"
            raise ArgumentError(f"reading(): {self.name} has {why}, got {tokens}")
        return replace(self, encoder=replace(encoder, tokens=tokens))  # type: ignore[type-var]

    # --- parameters and memory -------------------------------------------------------------

    def parameters(self, positions: int | None = None) -> Quantity:
        """Return the parameter count, param; ``positions`` overrides the rows of a learned position table."""
        more = 0 if positions is None else (positions - self.positions) * self.hidden
        kinds = {id(layer): layer for layer in self.layer_list}  # most layers of a model are one object
        counts = Counter(map(id, self.layer_list))
        layers = sum(count * kinds[key].parameters(self.hidden) for key, count in counts.items())
        return Q_(self.outside_parameters() + more + layers, "param")

    def active_parameters(self) -> Quantity:
        """Return the parameters that one token uses, param: of the experts, only the active ones."""
        layers = (layer.parameters(self.hidden, layer.active_experts) for layer in self.layer_list)
        return Q_(self.outside_parameters() + sum(layers), "param")

    def outside_parameters(self) -> int:
        """Return the parameters outside the layers: embedding tables, classifier, normalisations."""
        width = self.embedding_width or self.hidden
        tables = self.vocabulary * width + self.positions * self.hidden
        tables += 2 * self.hidden * width if width != self.hidden else 0
        head = self.vocabulary * width * (not self.tied) + self.vocabulary * self.head_bias if self.head else 0
        more = sum(matrix.elements for matrix in self.outer_matrices) + math.prod(self.per_layer_table or (0,))
        more += self.encoder.parameters(self.hidden) if self.encoder is not None else 0
        return tables + head + more + self.outer_parameters

    def weight_bytes(self, weight_format: str | None = None) -> Quantity:
        """Return the bytes of all parameters in ``weight_format``; by default the model's own format, or 16 bits.

        Examples
        --------
        >>> from mlsys.workloads.zoo import language_model
        >>> print(f"{language_model('llama-2-7b').weight_bytes('q4_0').to('GB'):.2f}")
        3.79 GB
        """
        if weight_format is None and self.quantization is not None:
            return Q_(self.quantization.weight_bytes(self, 16), "byte")
        return Q_(self.parameters().magnitude * weight_bits(weight_format or "fp16") / 8, "byte")

    def kv_cache_per_token(self, precision: str | None = None) -> Quantity:
        """Return the bytes of keys and values, or of their latent, that one token adds to the cache of all layers.

        Local layers evict tokens beyond their window; :meth:`kv_cache` accounts for that.

        Parameters
        ----------
        precision
            Number format of the cache; by default the model's own, or FP16.

        Examples
        --------
        >>> from mlsys.workloads.zoo import language_model
        >>> print(language_model("deepseek-v3").kv_cache_per_token("bf16").to("kB"))
        70.272 kB
        """
        return Q_(sum(layer.cached_elements for layer in self.layer_list) * self._cache_size(precision), "byte")

    def kv_cache(self, tokens: int, *, batch: int = 1, precision: str | None = None, windows: bool = True) -> Quantity:
        """Return the bytes of the key-value cache after ``tokens`` tokens of each sequence.

        Parameters
        ----------
        tokens, batch
            Tokens of each sequence, and number of sequences.
        precision
            Number format of the cache; by default the model's own, or FP16.
        windows
            Whether local layers keep only their window; False for servers that keep all tokens.

        Raises
        ------
        ArgumentError
            If a count is not a positive integer.
        UnknownNameError
            If the number format is unknown.

        Examples
        --------
        >>> from mlsys.workloads.zoo import language_model
        >>> gpt_oss = language_model("gpt-oss-120b")
        >>> for windows in (True, False):
        ...     print(f"{gpt_oss.kv_cache(131_072, windows=windows).to('GiB'):.3f}")
        4.504 GiB
        9.000 GiB
        """
        tokens, batch = checked_count("kv_cache", "tokens", tokens), checked_count("kv_cache", "batch", batch)
        kept = sum(
            layer.cached_elements * (min(tokens, layer.window) if windows and layer.window else tokens)
            for layer in self.layer_list
        )
        return Q_(batch * (kept + self.cross_elements()) * self._cache_size(precision), "byte")

    def cross_elements(self) -> int:
        """Return the elements that an encoder leaves in the cache of all layers for one sequence; 0 without one."""
        read = self.encoder.tokens if self.encoder is not None else 0
        return read * sum(layer.cross_elements for layer in self.layer_list)

    def state_bytes(self, batch: int = 1, *, precision: str = "fp16", state_precision: str = STATE_FORMAT) -> Quantity:
        """Return the bytes of the states of fixed size that recurrent layers keep beside the key-value cache.

        State-space layers, linear attention and convolutions keep as much after one token as after a million, so
        this is no part of :meth:`kv_cache`; a server holds both. Zero where all layers have attention alone.

        Parameters
        ----------
        batch
            Number of sequences.
        precision, state_precision
            Number formats of the convolutions' last inputs, and of the recurrent states: FP32 as transformers and
            the reference kernels keep these; some servers keep them in 16 bits.

        Raises
        ------
        ArgumentError
            If ``batch`` is not a positive integer.
        UnknownNameError
            If a number format is unknown.

        Examples
        --------
        >>> from mlsys.workloads.transformer_config import read_config
        >>> jamba = read_config({"model_type": "jamba", "architectures": ["JambaForCausalLM"]})
        >>> print(jamba.kv_cache_per_token().to("KiB"), jamba.state_bytes().to("MiB"))
        16 KiB 15.75 MiB
        """
        batch = checked_count("state_bytes", "batch", batch)
        mixers = [layer.recurrence for layer in self.layer_list if layer.recurrence is not None]
        columns = sum(mixer.convolution_elements for mixer in mixers) * element_size(precision)
        states: Quantity = batch * (columns + sum(mixer.state for mixer in mixers) * element_size(state_precision))
        return states

    def _cache_size(self, precision: str | None) -> float:
        size: float = element_size(precision or self.cache_format or "fp16").m_as("byte")
        return int(size) if size == int(size) else size

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
        """Return one forward pass over prompts of equal length.

        Parameters
        ----------
        batch, prompt
            Number of sequences, and tokens of each.
        precision
            Number format of activations and cache.
        weight_format
            Format in which weights are stored; by default the model's own, or ``precision``.
        causal
            Whether to count only the scores that a causal mask keeps; by default all, as most counters do.
        last_logits
            Whether to compute logits for the last token only, as generation needs.
        fused, whole
            As in :class:`~mlsys.workloads.zoo.layer_builder.LayerBuilder`.

        Raises
        ------
        ArgumentError
            If a count is not a positive integer.
        UnknownNameError
            If a format is unknown.

        Notes
        -----
        With an encoder, the pass begins with its own over the tokens that it reads, and with the keys and values of
        cross-attention; ``prompt`` is then what the decoder begins with, often one token.

        A token is routed to ``active_experts`` of the experts. The weights read are those of the
        experts that at least one token is expected to visit under uniform routing.
        """
        batch, prompt = checked_count("prefill", "batch", batch), checked_count("prefill", "prompt", prompt)
        builder = self._tape(precision, weight_format, None, fused, whole)
        if self.encoder is not None:
            write_encoder(self, builder, batch)
        write_pass(self, builder, batch, prompt, prompt, causal, batch if last_logits else batch * prompt)
        # Software for language models is timed as such; the encoder's attention has no causal mask.
        kind = PREFILL if self.head and self.encoder is None else NETWORK
        return Network(f"{self.name}, prefill of {batch} × {prompt}", tuple(builder.operators), kind)

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
        """Return one decoding step: one new token per sequence.

        Parameters
        ----------
        batch, context
            Number of sequences, and tokens that each attends to, including the new one.
        precision
            Number format of activations.
        weight_format, cache_precision
            Formats in which weights and the key-value cache are stored; by default the model's own, or ``precision``.
        fused, whole
            As in :class:`~mlsys.workloads.zoo.layer_builder.LayerBuilder`.

        Raises
        ------
        ArgumentError
            If a count is not a positive integer.
        UnknownNameError
            If a format is unknown.

        Examples
        --------
        >>> from mlsys.workloads.zoo import language_model
        >>> step = language_model("llama-3-8b").decode(context=1024, weight_format="q4_k_m")
        >>> print(f"{step.data.to('GB'):.2f}, {step.intensity:.2f}")
        4.68 GB, 3.32 FLOP/B
        """
        batch, context = checked_count("decode", "batch", batch), checked_count("decode", "context", context)
        builder = self._tape(precision, weight_format, cache_precision, fused, whole)
        write_pass(self, builder, batch, 1, context, True, batch)
        return Network(f"{self.name}, decode step of {batch} at {context}", tuple(builder.operators), DECODE)

    def write(self, builder: LayerBuilder, batch: int, prompt: int) -> None:
        """Append one pass over prompts of equal length to a builder, counting all scores."""
        write_pass(self, builder, batch, prompt, prompt, False, batch * prompt)

    def _tape(
        self, precision: str, weight_format: str | None, cache: str | None, fused: bool, whole: bool
    ) -> LayerBuilder:
        bits = None if weight_format is None else weight_bits(weight_format)
        return LayerBuilder(precision, fused, bits, cache or self.cache_format, whole)
