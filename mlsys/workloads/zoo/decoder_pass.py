"""One forward pass of a decoder language model, appended to a builder operator by operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError
from mlsys.precision import PRECISIONS
from mlsys.workloads.zoo.decoder_layer import DecoderLayer
from mlsys.workloads.zoo.layer_builder import LayerBuilder
from mlsys.workloads.zoo.recurrence import STATE_FORMAT, Recurrence

if TYPE_CHECKING:
    from mlsys.workloads.zoo.decoder import Decoder

_FEW = 16  # new tokens that attend to latents as they are, where others came before


def write_pass(
    model: Decoder, builder: LayerBuilder, batch: int, queries: int, keys: int, causal: bool, logits: int
) -> None:
    """Append one forward pass of ``queries`` new tokens per sequence, which attend to up to ``keys`` tokens.

    Parameters
    ----------
    model, builder
        The model, and the builder that the operators are appended to.
    batch, queries, keys
        Number of sequences, new tokens of each, and tokens that the last of these attends to.
    causal
        Whether to count only the scores that a causal mask keeps.
    logits
        Tokens for which logits over the vocabulary are computed.
    """
    rows, hidden, layers = batch * queries, model.hidden, model.layer_list
    source = _source(model)
    outside = _operator_bits(model, builder, None)
    builder.operator_bits = outside
    width = model.embedding_width or hidden
    # Without a head no product follows the last normalisation, so its parameters are counted with the table.
    unassigned = 0 if model.head else model.outer_parameters
    parameters = model.vocabulary * width + model.positions * hidden + unassigned
    lengths = [length for length in (model.vocabulary, model.positions) if length]
    builder.embedding("embedding", rows, width, parameters, len(lengths), lengths)
    if width != hidden:
        builder.dense("embedding up", rows, width, hidden, False)
    if model.per_layer_table:
        length, wide = model.per_layer_table
        builder.embedding("embedding of layers", rows, wide, length * wide)
    for matrix in model.outer_matrices:
        builder.dense(matrix.operator, rows, matrix.inputs, matrix.outputs, False)
    if not model.positions:
        rotating = next((layer for layer in layers if layer.attends), None)
        if rotating is not None:
            builder.rotary_positions(queries, rotating.rotary or rotating.head_dim)
    blocks = {}
    for index in builder.repeated(len(layers)) if builder.draws else range(len(layers)):
        bits = _operator_bits(model, builder, index)
        chosen = layers[index], tuple((bits or {}).items())
        if chosen not in blocks or builder.draws:
            first, builder.operator_bits = len(builder.operators), bits
            _layer(layers[index], builder, hidden, (batch, queries, keys), causal, source)
            blocks[chosen] = builder.operators[first:]
        else:
            builder.operators += blocks[chosen]
    builder.operator_bits = outside
    if not model.head:
        builder.norm_after("last norm", rows, hidden)
        if width != hidden:
            builder.dense("embedding down", rows, hidden, width, False)
        return
    builder.norm("last norm", rows, hidden, centred=layers[-1].centred)
    if width != hidden:
        builder.dense("embedding down", logits, hidden, width, False)
    builder.dense("logits", logits, width, model.vocabulary, model.head_bias, model.outer_parameters, tied=model.tied)


def write_encoder(model: Decoder, builder: LayerBuilder, batch: int, *, crossed: bool = True) -> None:
    """Append the pass of an encoder over ``batch`` sequences, and the keys and values that the decoder's layers cache.

    Parameters
    ----------
    model, builder
        The model, and the builder that the operators are appended to.
    batch
        Number of sequences.
    crossed
        Whether a decoder follows, which needs these keys and values; if not, the encoder is all there is.

    Raises
    ------
    ArgumentError
        If it is not said how many tokens the encoder reads.
    """
    encoder, hidden = model.encoder, model.hidden
    assert encoder is not None
    tokens = _source(model)
    rows = batch * tokens
    outside = _operator_bits(model, builder, None)
    builder.operator_bits = None if outside is None else defaultdict(lambda: outside["logits"])
    for each in encoder.stem:
        length, weights = each.length * tokens, each.elements * builder.weight_size_of(each.name)
        shape = {"batch": batch, "groups": 1, "in_channels": each.inputs, "out_channels": each.outputs}
        shape |= {"out_height": 1, "out_width": length, "kernel_height": 1, "kernel_width": each.kernel}
        moved = weights + batch * length * (each.stride * each.inputs + each.outputs) * builder.size
        builder.write(each.name, "conv2d", 2 * batch * length * each.elements, moved, weights, each.elements, shape)
        builder.activation(f"{each.name} {encoder.layers[0].act}", batch * length * each.outputs, encoder.layers[0].act)
    if encoder.stem:
        builder.ride_along("positions", rows * hidden, 1, 2)
    else:
        builder.embedding("embedding", rows, hidden, 0 if crossed else model.vocabulary * hidden)
    for layer in encoder.layers:
        _layer(layer, builder, hidden, (batch, tokens, tokens), False)
    if not crossed:
        builder.norm_after("encoder norm", rows, hidden)
        builder.ride_along("encoder norm", 0, 0, parameters=encoder.small)
        return
    builder.norm("encoder norm", rows, hidden, centred=encoder.layers[0].centred)
    for index, layer in enumerate(model.layer_list):
        small = encoder.small if index == 0 else 0  # read the last norm's output, so that its parameters count here
        builder.dense("cross attention key, value", rows, hidden, layer.cross_elements, False, small, tied=True)
    builder.operator_bits = None


def _source(model: Decoder) -> int:
    """Return the tokens that the encoder of a model reads; 0 without one."""
    if model.encoder is None:
        return 0
    if not model.encoder.tokens:
        raise ArgumentError(f"{model.name}: say how many tokens its encoder reads, such as model.reading(512)")
    return model.encoder.tokens


def _operator_bits(model: Decoder, builder: LayerBuilder, layer: int | None) -> Mapping[str, float] | None:
    """Return bits per stored weight by operator, of a layer or outside the layers; None if all are equal."""
    if model.quantization is None or builder.uniform_weights:
        return None
    return model.quantization.operator_bits(model, layer, 8 * builder.size)


def _layer(
    layer: DecoderLayer,
    builder: LayerBuilder,
    hidden: int,
    sizes: tuple[int, int, int],
    causal: bool,
    source: int = 0,
) -> None:
    batch, queries, keys = sizes
    rows, start = batch * queries, builder.here
    pairs = scores_computed(queries, keys, layer.window or layer.selects, causal)
    if layer.window:
        keys = min(keys, layer.window + queries - 1)
    if layer.recurrence is not None or layer.attends:
        builder.norm("attention norm", rows, hidden, centred=layer.centred)
        if layer.recurrence is not None:
            _recur(layer.recurrence, builder, batch, queries, 0 if layer.attends else layer.small)
        if layer.index_heads:
            _index(layer, builder, (batch, queries, keys), scores_computed(queries, keys, 0, causal))
        if layer.latent:
            _attend_to_latents(layer, builder, hidden, (batch, queries, keys), pairs)
        elif layer.attends:
            _attend(layer, builder, hidden, (batch, queries, keys), pairs)
        if layer.attends:
            wide = layer.heads * layer.value_width
            if layer.gated_query:
                builder.ride_along("attention gate", rows * wide, 5, inputs=2)
            builder.dense("attention output", rows, wide, hidden, "output" in layer.biases)
        if layer.recurrence is not None and layer.attends:
            builder.ride_along("mixer add", rows * hidden, 1, inputs=2)
        builder.add("attention add", rows * hidden, start, builder.here)
        start = builder.here
    if layer.crosses:
        _cross(layer, builder, hidden, (batch, queries, source))
    if layer.streams:
        builder.batched("streams predicted", hidden, layer.streams, layer.streams, rows)
    for index, matrix in enumerate(layer.side):
        repeated = matrix in layer.side[:index]
        builder.dense(matrix.operator, rows, matrix.inputs, matrix.outputs, False, tied=repeated)
    if not layer.ffn:
        return
    if layer.norms > 1 or start is None:
        builder.norm("feed-forward norm", rows, hidden, centred=layer.centred)
    extra = 0 if layer.attends or layer.recurrence is not None else layer.small
    if layer.experts:
        builder.dense("router", rows, hidden, layer.experts, "router" in layer.biases, extra)
        if layer.shared_ffn:
            _feed_forward(layer, builder, "shared expert", hidden, rows, layer.shared_ffn)
        if layer.shared_gate:
            builder.dense("shared expert gate", rows, hidden, 1, False)
        _experts(layer, builder, hidden, rows)
    else:
        _feed_forward(layer, builder, "feed-forward", hidden, rows, layer.ffn, extra)
    builder.add("feed-forward add", rows * hidden, start, builder.here)


def _recur(recurrence: Recurrence, builder: LayerBuilder, batch: int, queries: int, small: int) -> None:
    """Append a recurrence: projections, the depthwise convolution, the scan over the tokens, the output projection.

    The scan reads and writes each token's values once, and the state of each sequence once, however many tokens there
    are, as fused kernels do; it is no matrix product.
    """
    rows, kept = batch * queries, batch * recurrence.convolution_elements * builder.size
    extra = small + recurrence.small
    for each in recurrence.into:
        builder.dense(each.operator, rows, each.inputs, each.outputs, each.bias, extra)
        extra = 0
    short = recurrence.kind == "short convolution"
    if short:
        builder.ride_along("convolution gate", rows * recurrence.channels, 1, inputs=2)
    if recurrence.kernel:
        channels, taps = recurrence.channels, recurrence.channels * recurrence.kernel
        stored = taps * builder.weight_size_of("convolution")
        shape = {"batch": batch, "groups": channels, "in_channels": channels, "out_channels": channels}
        shape |= {"out_height": 1, "out_width": queries, "kernel_height": 1, "kernel_width": recurrence.kernel}
        moved = stored + 2 * rows * channels * builder.size + kept
        held = recurrence.convolution_parameters
        builder.write("convolution", "conv2d", 2 * rows * taps, moved, stored, held, shape)
        if not short:
            builder.activation("convolution silu", rows * channels, "silu")
    for each in recurrence.gates:
        if each.blocks > 1:
            builder.heads_apart(each.operator, rows, each.inputs, each.outputs, each.blocks)
            builder.ride_along(f"{each.operator} bias", 0, 0, parameters=each.outputs * each.blocks)
        else:
            builder.dense(each.operator, rows, each.inputs, each.outputs, each.bias)
    if recurrence.state:
        moved = rows * (max(recurrence.channels, 3 * recurrence.width) + recurrence.width) * builder.size
        moved += batch * recurrence.state * PRECISIONS[STATE_FORMAT] / 8 * (2 if queries == 1 else 1)
        builder.write(
            f"{recurrence.kind} scan", "elementwise", rows * recurrence.scan_operations, moved,
            shape={"elements": rows * recurrence.width, "state": recurrence.state},
        )  # fmt: skip
    builder.ride_along("recurrence gate", rows * recurrence.out[0].inputs, 1 if short else 6, inputs=2)
    for each in recurrence.out:
        builder.dense(each.operator, rows, each.inputs, each.outputs, each.bias)


def _attend(layer: DecoderLayer, builder: LayerBuilder, hidden: int, sizes: tuple[int, int, int], pairs: int) -> None:
    batch, queries, keys = sizes
    wide, keyed = layer.heads * layer.head_dim * (1 + layer.gated_query), layer.kv_heads * layer.head_dim
    rotary, valued = layer.rotary > 0, layer.kv_heads * layer.value_width * (not layer.keys_as_values)
    parts = {"query": wide, "key": keyed, "value": valued} if rotary else None
    builder.dense(
        "query, key, value",
        batch * queries,
        hidden,
        wide if layer.shares_cache else wide + keyed + valued,
        "qkv" in layer.biases,
        layer.small,
        parts=parts,
    )
    # Keys and values of different widths: two products of the mean width cost the same.
    width = (layer.head_dim + layer.value_width) // 2
    builder.attention(
        "attention", batch, layer.heads, queries, keys, width, layer.kv_heads, pairs,
        causal=True, rotary=rotary,
    )  # fmt: skip


def _cross(layer: DecoderLayer, builder: LayerBuilder, hidden: int, sizes: tuple[int, int, int]) -> None:
    """Append attention to the keys and values that an encoder left in the cache; the pass computes queries alone.

    The weights of these keys and values count as parameters here, where the layer is, and are read by the encoder's
    pass alone.
    """
    batch, queries, source = sizes
    rows, wide, start = batch * queries, layer.heads * layer.head_dim, builder.here
    kept = 2 * hidden * layer.kv_heads * layer.head_dim
    builder.norm("cross attention norm", rows, hidden, centred=layer.centred)
    builder.dense("cross attention query", rows, hidden, wide, False, kept)
    builder.attention("cross attention", batch, layer.heads, queries, source, layer.head_dim, layer.kv_heads)
    builder.dense("cross attention output", rows, wide, hidden, "output" in layer.biases)
    builder.add("cross attention add", rows * hidden, start, builder.here)


def _attend_to_latents(
    layer: DecoderLayer, builder: LayerBuilder, hidden: int, sizes: tuple[int, int, int], pairs: int
) -> None:
    """Append multi-head latent attention: expanded into heads for a prompt, absorbed for a few tokens after others.

    When absorbed, the up-projections are applied to the query and the output of each head instead of to the cache,
    and all heads share one key as wide as the cache (arXiv:2405.04434, section 2.1.2; deepseek-ai/DeepSeek-V3,
    inference/model.py). A later chunk of a prompt expands the latents of all tokens before it again, as vLLM does
    (vllm/model_executor/layers/attention/mla_attention.py). Sparse attention is absorbed as soon as there are more keys
    than it selects (DeepSeek-V3.2, arXiv:2512.02556, section 2.1): each token then reads its own.
    """
    batch, queries, keys = sizes
    rows, width, values, bias = batch * queries, layer.key_width, layer.value_width, "latent" in layer.biases
    if layer.query_latent:
        builder.dense("query down", rows, hidden, layer.query_latent, bias)
        builder.norm("query norm", rows, layer.query_latent, centred=False)
    builder.dense("query", rows, layer.query_latent or hidden, layer.heads * width, False)
    builder.dense("latent", rows, hidden, layer.latent + layer.rotary, bias, layer.small)
    builder.norm("latent norm", rows, layer.latent, centred=False)
    if layer.selects and keys > layer.selects:
        keys = layer.selects if queries == 1 else keys
    elif queries == keys > 1 or queries > _FEW:
        builder.dense("key and value", batch * keys, layer.latent, layer.heads * (layer.head_dim + values), False)
        # Keys and values have different widths; two products of the mean width cost the same.
        builder.attention("attention", batch, layer.heads, queries, keys, (width + values) // 2, None, pairs)
        return
    builder.heads_apart("query absorbed", rows, layer.head_dim, layer.latent, layer.heads)
    shared = (2 * layer.latent + layer.rotary) // 2
    # All heads share the same keys, so kernels treat the heads as rows of one product.
    builder.attention(
        "attention", batch, 1, queries * layer.heads, keys, shared, 1, pairs * layer.heads,
        values_among_keys=layer.latent,
    )  # fmt: skip
    builder.heads_apart("value absorbed", rows, layer.latent, values, layer.heads)


def _index(layer: DecoderLayer, builder: LayerBuilder, sizes: tuple[int, int, int], pairs: int) -> None:
    """Append the scores by which sparse attention selects keys, weighted and summed over the heads in one kernel.

    Each chip of a tensor-parallel group scores with all heads, as vLLM does.
    """
    batch, queries, keys = sizes
    heads, width = layer.index_heads, layer.index_width
    scored = -(-pairs // queries)  # keys of a query on average
    moved = batch * (queries * heads * (width + 1) * builder.size + keys * width * builder.cache_size)
    moved += 2 * batch * queries * scored * builder.size  # written, and read for the choice
    shape = {"m": queries * heads, "n": scored, "k": width + 1, "copies": batch}  # one more for the weight of a head
    builder.write("index scores", "gemm", 2 * batch * queries * heads * scored * (width + 1), moved, shape=shape)


def _feed_forward(
    layer: DecoderLayer, builder: LayerBuilder, name: str, hidden: int, rows: int, inner: int, extra: int = 0
) -> None:
    width, bias = inner * (2 if layer.gated else 1), ("experts" if name == "experts" else "ffn") in layer.biases
    parts = {f"{name} gate": inner, f"{name} up": inner} if layer.gated else None
    first = f"{name} gate and up" if layer.gated else f"{name} up"
    builder.dense(first, rows, hidden, width, bias, extra, parts=parts)
    builder.activation(f"{name} {layer.act}", rows * inner, layer.act, 2 if layer.gated else 1)
    builder.dense(f"{name} down", rows, inner, hidden, bias)


def _experts(layer: DecoderLayer, builder: LayerBuilder, hidden: int, rows: int) -> None:
    """Append the experts as grouped products over all routed tokens, reading the weights of the active experts."""
    visits = rows * layer.active_experts
    visited = layer.experts * (1 - (1 - layer.active_experts / layer.experts) ** rows)
    first = len(builder.operators)
    _feed_forward(layer, builder, "experts", hidden, visits, layer.ffn)
    for index in range(first, len(builder.operators)):
        operator = builder.operators[index]
        if operator.kind == "gemm":
            weights = operator.weights * visited
            builder.operators[index] = replace(
                operator,
                weights=weights,
                data=operator.data - operator.weights + weights,
                parameters=operator.parameters * layer.experts,
            )


def scores_computed(queries: int, keys: int, window: int, causal: bool) -> int:
    """Return the number of attention scores computed when the last query attends to the last key."""
    reach = min(window, keys) if window else keys
    if not causal:
        return queries * reach
    first = keys - queries + 1  # keys of the first query; each later query has one more, up to its reach
    growing = min(queries, max(0, reach - first))
    return growing * first + growing * (growing - 1) // 2 + (queries - growing) * reach
