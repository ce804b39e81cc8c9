"""One pass over a decoder language model, written to a tape operator by operator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mlsys.workloads.zoo.decoder_parameters import key_width, small_parameters
from mlsys.workloads.zoo.tape import Tape

if TYPE_CHECKING:
    from mlsys.workloads.zoo.language import LanguageModel


def write_pass(
    model: LanguageModel, tape: Tape, batch: int, queries: int, keys: int, causal: bool, judged: int
) -> None:
    """Append one pass over so many new tokens of each sequence, each of which sees up to ``keys``.

    Parameters
    ----------
    model, tape
        What is written, and where.
    batch, queries, keys
        Sequences, new tokens of each, and tokens that the last of them sees.
    causal
        Whether only the scores that a causal mask keeps are counted.
    judged
        Tokens that are compared with the vocabulary.
    """
    rows = batch * queries
    parameters = (model.vocabulary + model.positions) * model.hidden
    lengths = [length for length in (model.vocabulary, model.positions) if length]
    tape.embedding("embedding", rows, model.hidden, parameters, len(lengths), lengths)
    if not model.positions:
        tape.rotary_positions(queries, model.rotary or model.head_dim)
    plain, local = scores_computed(queries, keys, 0, causal), scores_computed(queries, keys, model.window, causal)
    blocks = {}
    for layer in tape.repeated(model.layers) if tape.draws else range(model.layers):
        full = not model.window or (model.full_every > 0 and (layer + 1) % model.full_every == 0)
        chosen = full, layer < model.dense_layers
        if chosen not in blocks or tape.draws:
            first = len(tape.operators)
            seen = keys if full else min(keys, model.window + queries - 1)
            _block(model, tape, batch, queries, seen, plain if full else local, dense=chosen[1])
            blocks[chosen] = tape.operators[first:]
        else:
            tape.operators += blocks[chosen]
    tape.norm("last norm", rows, model.hidden, centred=model.norm_size > 1)
    norms = model.other_norms * model.norm_size * model.hidden
    tape.dense("logits", judged, model.hidden, model.vocabulary, "head" in model.biases, norms, tied=model.tied)


def _block(model: LanguageModel, tape: Tape, batch: int, queries: int, keys: int, pairs: int, dense: bool) -> None:
    rows, hidden = batch * queries, model.hidden
    centred, start = model.norm_size > 1, tape.here
    tape.norm("attention norm", rows, hidden, centred=centred)
    if model.latent:
        _attend_to_latents(model, tape, batch, queries, keys, pairs)
    else:
        _attend(model, tape, batch, queries, keys, pairs)
    wide = model.heads * (model.value_dim or model.head_dim)
    tape.dense("attention output", rows, wide, hidden, "output" in model.biases)
    tape.add("attention add", rows * hidden, start, tape.here)
    start = tape.here
    if model.norms > 1:
        tape.norm("feed-forward norm", rows, hidden, centred=centred)
    if model.experts and not dense:
        tape.dense("router", rows, hidden, model.experts, "ffn" in model.biases)
        if model.shared_ffn:
            _feed_forward(model, tape, "shared expert", rows, model.shared_ffn)
        _experts(model, tape, rows)
    else:
        _feed_forward(model, tape, "feed-forward", rows, model.dense_ffn if dense else model.ffn)
    tape.add("feed-forward add", rows * hidden, start, tape.here)


def _attend(model: LanguageModel, tape: Tape, batch: int, queries: int, keys: int, pairs: int) -> None:
    rows, hidden = batch * queries, model.hidden
    wide, shared = model.heads * model.head_dim, model.kv_heads * model.head_dim
    parts = None if model.positions else {"query": wide, "key": shared, "value": shared}
    tape.dense(
        "query, key, value",
        rows,
        hidden,
        wide + 2 * shared,
        "qkv" in model.biases,
        small_parameters(model),
        parts=parts,
    )
    tape.attention(
        "attention", batch, model.heads, queries, keys, model.head_dim, model.kv_heads, pairs,
        causal=True, rotary=not model.positions,
    )  # fmt: skip


def _attend_to_latents(model: LanguageModel, tape: Tape, batch: int, queries: int, keys: int, pairs: int) -> None:
    """Append multi-head latent attention: expanded into heads for a prompt, absorbed for one more token.

    Absorbed, the matrices that would expand the cache meet the query and the result of each head instead, and all
    heads share one key as wide as the cache (arXiv:2405.04434, section 2.1.2; deepseek-ai/DeepSeek-V3,
    inference/model.py).
    """
    rows, width, values = batch * queries, key_width(model), model.value_dim
    if model.query_latent:
        tape.dense("query down", rows, model.hidden, model.query_latent, False)
        tape.norm("query norm", rows, model.query_latent, centred=False)
    tape.dense("query", rows, model.query_latent or model.hidden, model.heads * width, False)
    tape.dense("latent", rows, model.hidden, model.latent + model.rotary, False, small_parameters(model))
    tape.norm("latent norm", rows, model.latent, centred=False)
    if queries > 1:
        tape.dense("key and value", rows, model.latent, model.heads * (model.head_dim + values), False)
        # Products with keys and with values are of different widths; their sum is that of two of the mean.
        tape.attention("attention", batch, model.heads, queries, keys, (width + values) // 2, None, pairs)
        return
    tape.heads_apart("query absorbed", rows, model.head_dim, model.latent, model.heads)
    shared = (2 * model.latent + model.rotary) // 2
    # All heads ask the same keys: they are rows of one product, as kernels for it have them.
    tape.attention(
        "attention", batch, 1, queries * model.heads, keys, shared, 1, pairs * model.heads,
        values_among_keys=model.latent,
    )  # fmt: skip
    tape.heads_apart("value absorbed", rows, model.latent, values, model.heads)


def _feed_forward(model: LanguageModel, tape: Tape, name: str, rows: int, inner: int) -> None:
    width, bias = inner * (2 if model.gated else 1), "ffn" in model.biases
    parts = {f"{name} gate": inner, f"{name} up": inner} if model.gated else None
    tape.dense(f"{name} gate and up" if model.gated else f"{name} up", rows, model.hidden, width, bias, parts=parts)
    tape.activation(f"{name} {model.act}", rows * inner, model.act, 2 if model.gated else 1)
    tape.dense(f"{name} down", rows, inner, model.hidden, bias)


def _experts(model: LanguageModel, tape: Tape, rows: int) -> None:
    """Append the experts as two products over all visits, with the weights of those that are visited."""
    visits = rows * model.active_experts
    visited = model.experts * (1 - (1 - model.active_experts / model.experts) ** rows)
    first = len(tape.operators)
    _feed_forward(model, tape, "experts", visits, model.ffn)
    for index in range(first, len(tape.operators)):
        operator = tape.operators[index]
        if operator.kind == "gemm":
            weights = operator.weights * visited
            tape.operators[index] = replace(
                operator,
                weights=weights,
                data=operator.data - operator.weights + weights,
                parameters=operator.parameters * model.experts,
            )


def scores_computed(queries: int, keys: int, window: int, causal: bool) -> int:
    """Return how many scores are computed, where the last query sees the last key."""
    reach = min(window, keys) if window else keys
    if not causal:
        return queries * reach
    first = keys - queries + 1  # keys that the first query sees; each later one sees one more, up to its reach
    growing = min(queries, max(0, reach - first))
    return growing * first + growing * (growing - 1) // 2 + (queries - growing) * reach
