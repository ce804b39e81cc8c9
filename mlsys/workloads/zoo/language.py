"""Decoder language models: their parameters, the cache of a token, prefill and decode."""

from dataclasses import dataclass, replace

from mlsys.door import checked_count
from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.precision import PRECISIONS, element_size
from mlsys.units import Q_, Quantity
from mlsys.workloads.operator import DECODE, PREFILL, Network
from mlsys.workloads.zoo.tape import Tape

# Bits that one weight takes with the scales of its block. Block formats: 8 × bytes of the block over its weights
# (ggml-common.h of llama.cpp: q4_0 18 B of 32, q8_0 34 B of 32, q6_K 210 B of 256, …; OCP MX v1.0: one 8-bit scale
# for 32; NVFP4: one FP8 scale for 16). Mixed "K_M", "K_S" files: measured over Llama 2 7B, the quantize README of
# llama.cpp. "int4 g32" and "int4 g128": one 16-bit scale for 32 or 128 weights, symmetric.
WEIGHT_FORMATS: dict[str, float] = {
    "q4_0": 4.5, "q4_1": 5.0, "q5_0": 5.5, "q5_1": 6.0, "q8_0": 8.5,
    "q2_k": 2.625, "q3_k": 3.4375, "q4_k": 4.5, "q5_k": 5.5, "q6_k": 6.5625,
    "q3_k_m": 3.91, "q4_k_s": 4.58, "q4_k_m": 4.84, "q5_k_s": 5.52, "q5_k_m": 5.68,
    "mxfp4": 4.25, "mxfp8": 8.25, "nvfp4": 4.5, "int4 g32": 4.5, "int4 g128": 4.125,
}  # fmt: skip


def weight_bits(weight_format: str) -> float:
    """Return the bits that one weight takes in a number format, or in a block format of ``WEIGHT_FORMATS``.

    Examples
    --------
    >>> weight_bits("fp16"), weight_bits("Q4_0"), weight_bits("q6_k")
    (16, 4.5, 6.5625)
    """
    known: dict[str, float] = {**PRECISIONS, **WEIGHT_FORMATS}
    name = str(weight_format).lower()
    if name not in known:
        raise UnknownNameError(
            f"unknown weight format {weight_format!r}. Known: {', '.join(known)}.{did_you_mean(name, known)}"
        )
    return known[name]


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

    def _block_parameters(self, expert_count: float, dense: bool = False) -> float:
        attention, norms = self._attention_parameters(), self._small
        if self.experts and not dense:
            router = self.experts * (self.hidden + ("ffn" in self.biases))
            experts = expert_count * self._ffn_parameters(self.ffn)
            return attention + norms + router + experts + self._ffn_parameters(self.shared_ffn)
        return attention + norms + self._ffn_parameters(self.dense_ffn if dense else self.ffn)

    def _attention_parameters(self) -> int:
        if self.latent:
            queries = self.heads * self._key_width
            asked = self.query_latent * (self.hidden + queries) if self.query_latent else self.hidden * queries
            cached = self.hidden * (self.latent + self.rotary)
            expanded = self.latent * self.heads * (self.head_dim + self.value_dim)
            return asked + cached + expanded + self.heads * self.value_dim * self.hidden
        queries, shared = self.heads * self.head_dim, self.kv_heads * self.head_dim
        biases = (queries + 2 * shared) * ("qkv" in self.biases) + self.hidden * ("output" in self.biases)
        return self.hidden * (2 * queries + 2 * shared) + biases

    @property
    def _key_width(self) -> int:
        """Width of a key, its rotary part included where that is apart."""
        return self.head_dim + self.rotary

    @property
    def _small(self) -> int:
        """Parameters of a block's normalisations and sinks."""
        norms = self.norms * self.norm_size * self.hidden + self.head_norms * self.head_dim
        norms += self.latent + self.query_latent
        return norms + (self.heads if self.sinks else 0)

    def _ffn_parameters(self, inner: int) -> int:
        matrices = 3 if self.gated else 2
        biases = ((matrices - 1) * inner + self.hidden) if "ffn" in self.biases and inner else 0
        return matrices * self.hidden * inner + biases

    def _outside(self) -> int:
        tables = (self.vocabulary + self.positions) * self.hidden
        head = 0 if self.tied else self.vocabulary * self.hidden
        bias = self.vocabulary if "head" in self.biases else 0
        return tables + head + bias + self.other_norms * self.norm_size * self.hidden

    def _total(self, expert_count: float) -> int:
        blocks = (self.layers - self.dense_layers) * self._block_parameters(expert_count)
        return round(blocks + self.dense_layers * self._block_parameters(0, dense=True)) + self._outside()

    def parameters(self, positions: int | None = None) -> Quantity:
        """Return all parameters, param; ``positions`` replaces the length of a learned table of positions."""
        model = self if positions is None else replace(self, positions=positions)
        return Q_(model._total(self.experts), "param")

    def active_parameters(self) -> Quantity:
        """Return the parameters that one token uses: of the experts only those it visits."""
        return Q_(self._total(self.active_experts), "param")

    def weight_bytes(self, weight_format: str = "fp16") -> Quantity:
        """Return the bytes of all parameters in ``weight_format``.

        Examples
        --------
        >>> from mlsys.workloads.zoo import language_model
        >>> print(f"{language_model('llama-2-7b').weight_bytes('q4_0').to('GB'):.2f}")
        3.79 GB
        """
        return Q_(self._total(self.experts) * weight_bits(weight_format) / 8, "byte")

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
        batch, prompt = _count("prefill", "batch", batch), _count("prefill", "prompt", prompt)
        tape = self._tape(precision, weight_format, None, fused, whole)
        self._write(tape, batch, prompt, prompt, causal, batch if last_logits else batch * prompt)
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
        batch, context = _count("decode", "batch", batch), _count("decode", "context", context)
        tape = self._tape(precision, weight_format, cache_precision, fused, whole)
        self._write(tape, batch, 1, context, True, batch)
        return Network(f"{self.name}, decode step of {batch} at {context}", tuple(tape.operators), DECODE)

    def write(self, tape: Tape, batch: int, prompt: int) -> None:
        """Append one pass over prompts that are all of one length, every score counted."""
        self._write(tape, batch, prompt, prompt, False, batch * prompt)

    def _tape(self, precision: str, weight_format: str | None, cache: str | None, fused: bool, whole: bool) -> Tape:
        return Tape(precision, fused, None if weight_format is None else weight_bits(weight_format), cache, whole)

    def _write(self, tape: Tape, batch: int, queries: int, keys: int, causal: bool, judged: int) -> None:
        rows = batch * queries
        parameters = (self.vocabulary + self.positions) * self.hidden
        lengths = [length for length in (self.vocabulary, self.positions) if length]
        tape.embedding("embedding", rows, self.hidden, parameters, len(lengths), lengths)
        if not self.positions:
            tape.rotary_positions(queries, self.rotary or self.head_dim)
        plain, local = _pairs(queries, keys, 0, causal), _pairs(queries, keys, self.window, causal)
        blocks = {}
        for layer in tape.repeated(self.layers) if tape.draws else range(self.layers):
            full = not self.window or (self.full_every > 0 and (layer + 1) % self.full_every == 0)
            chosen = full, layer < self.dense_layers
            if chosen not in blocks or tape.draws:
                first = len(tape.operators)
                seen = keys if full else min(keys, self.window + queries - 1)
                self._block(tape, batch, queries, seen, plain if full else local, dense=chosen[1])
                blocks[chosen] = tape.operators[first:]
            else:
                tape.operators += blocks[chosen]
        tape.norm("last norm", rows, self.hidden, centred=self.norm_size > 1)
        norms = self.other_norms * self.norm_size * self.hidden
        tape.dense("logits", judged, self.hidden, self.vocabulary, "head" in self.biases, norms, tied=self.tied)

    def _block(self, tape: Tape, batch: int, queries: int, keys: int, pairs: int, dense: bool) -> None:
        rows, hidden = batch * queries, self.hidden
        centred, start = self.norm_size > 1, tape.here
        tape.norm("attention norm", rows, hidden, centred=centred)
        if self.latent:
            self._attend_to_latents(tape, batch, queries, keys, pairs)
        else:
            self._attend(tape, batch, queries, keys, pairs)
        wide = self.heads * (self.value_dim or self.head_dim)
        tape.dense("attention output", rows, wide, hidden, "output" in self.biases)
        tape.add("attention add", rows * hidden, start, tape.here)
        start = tape.here
        if self.norms > 1:
            tape.norm("feed-forward norm", rows, hidden, centred=centred)
        if self.experts and not dense:
            tape.dense("router", rows, hidden, self.experts, "ffn" in self.biases)
            if self.shared_ffn:
                self._feed_forward(tape, "shared expert", rows, self.shared_ffn)
            self._experts(tape, rows)
        else:
            self._feed_forward(tape, "feed-forward", rows, self.dense_ffn if dense else self.ffn)
        tape.add("feed-forward add", rows * hidden, start, tape.here)

    def _attend(self, tape: Tape, batch: int, queries: int, keys: int, pairs: int) -> None:
        rows, hidden = batch * queries, self.hidden
        wide, shared = self.heads * self.head_dim, self.kv_heads * self.head_dim
        parts = None if self.positions else {"query": wide, "key": shared, "value": shared}
        tape.dense("query, key, value", rows, hidden, wide + 2 * shared, "qkv" in self.biases, self._small, parts=parts)
        tape.attention(
            "attention", batch, self.heads, queries, keys, self.head_dim, self.kv_heads, pairs,
            causal=True, rotary=not self.positions,
        )  # fmt: skip

    def _attend_to_latents(self, tape: Tape, batch: int, queries: int, keys: int, pairs: int) -> None:
        """Append multi-head latent attention: expanded into heads for a prompt, absorbed for one more token.

        Absorbed, the matrices that would expand the cache meet the query and the result of each head instead, and all
        heads share one key as wide as the cache (arXiv:2405.04434, section 2.1.2; deepseek-ai/DeepSeek-V3,
        inference/model.py).
        """
        rows, width, values = batch * queries, self._key_width, self.value_dim
        if self.query_latent:
            tape.dense("query down", rows, self.hidden, self.query_latent, False)
            tape.norm("query norm", rows, self.query_latent, centred=False)
        tape.dense("query", rows, self.query_latent or self.hidden, self.heads * width, False)
        tape.dense("latent", rows, self.hidden, self.latent + self.rotary, False, self._small)
        tape.norm("latent norm", rows, self.latent, centred=False)
        if queries > 1:
            tape.dense("key and value", rows, self.latent, self.heads * (self.head_dim + values), False)
            # Products with keys and with values are of different widths; their sum is that of two of the mean.
            tape.attention("attention", batch, self.heads, queries, keys, (width + values) // 2, None, pairs)
            return
        tape.heads_apart("query absorbed", rows, self.head_dim, self.latent, self.heads)
        shared = (2 * self.latent + self.rotary) // 2
        # All heads ask the same keys: they are rows of one product, as kernels for it have them.
        tape.attention(
            "attention", batch, 1, queries * self.heads, keys, shared, 1, pairs * self.heads,
            values_among_keys=self.latent,
        )  # fmt: skip
        tape.heads_apart("value absorbed", rows, self.latent, values, self.heads)

    def _feed_forward(self, tape: Tape, name: str, rows: int, inner: int) -> None:
        width, bias = inner * (2 if self.gated else 1), "ffn" in self.biases
        parts = {f"{name} gate": inner, f"{name} up": inner} if self.gated else None
        tape.dense(f"{name} gate and up" if self.gated else f"{name} up", rows, self.hidden, width, bias, parts=parts)
        tape.activation(f"{name} {self.act}", rows * inner, self.act, 2 if self.gated else 1)
        tape.dense(f"{name} down", rows, inner, self.hidden, bias)

    def _experts(self, tape: Tape, rows: int) -> None:
        """Append the experts as two products over all visits, with the weights of those that are visited."""
        visits = rows * self.active_experts
        visited = self.experts * (1 - (1 - self.active_experts / self.experts) ** rows)
        first = len(tape.operators)
        self._feed_forward(tape, "experts", visits, self.ffn)
        for index in range(first, len(tape.operators)):
            operator = tape.operators[index]
            if operator.kind == "gemm":
                weights = operator.weights * visited
                tape.operators[index] = replace(
                    operator,
                    weights=weights,
                    data=operator.data - operator.weights + weights,
                    parameters=operator.parameters * self.experts,
                )


def _pairs(queries: int, keys: int, window: int, causal: bool) -> int:
    """Return how many scores are computed, where the last query sees the last key."""
    reach = min(window, keys) if window else keys
    if not causal:
        return queries * reach
    first = keys - queries + 1  # keys that the first query sees; each later one sees one more, up to its reach
    growing = min(queries, max(0, reach - first))
    return growing * first + growing * (growing - 1) // 2 + (queries - growing) * reach


def _count(where: str, name: str, value: int) -> int:
    return checked_count(where, name, value)
