"""What one chip holds of a decoder under a layout: its share of heads, columns, experts, layers and vocabulary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from mlsys.errors import ArgumentError
from mlsys.mapping.parallel import Layout
from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.decoder_layer import DecoderLayer, WeightMatrix
from mlsys.workloads.zoo.source_encoder import SourceEncoder
from mlsys.workloads.zoo.stored_weights import StoredWeights
from mlsys.workloads.zoo.weight_formats import weight_bits

_DEFAULT = 16  # bits per weight where neither the caller nor the model states a format


@dataclass(frozen=True)
class Shard(Decoder):
    """One chip's share of a decoder; a decoder itself, so that its passes and its cache are counted alike.

    Attributes
    ----------
    name, hidden, tied, positions, outer_parameters, embedding_width, head, head_bias, quantization, cache_format
        Of the whole model.
    vocabulary, per_layer_table
        Rows of the embedding tables and of the classifier on this chip.
    outer_matrices
        With the chip's share of their columns.
    layers
        The layers with the chip's share of their heads and columns. Their experts are all of them; see ``groups``.
    encoder
        With the chip's share of its layers; convolutions and the tables in front of them are whole on every chip.
    groups
        Groups of chips that the experts of a layer are divided among.
    """

    name: str
    hidden: int
    vocabulary: int
    layers: tuple[DecoderLayer, ...]
    tied: bool = False
    positions: int = 0
    outer_parameters: int = 0
    embedding_width: int = 0
    head: bool = True
    head_bias: bool = False
    quantization: StoredWeights | None = None
    cache_format: str | None = None
    encoder: SourceEncoder | None = None
    groups: int = 1
    outer_matrices: tuple[WeightMatrix, ...] = ()
    per_layer_table: tuple[int, ...] = ()

    @property
    def layer_list(self) -> tuple[DecoderLayer, ...]:
        """The layers."""
        return self.layers


def refuse_context_parallelism(layout: Layout) -> None:
    """Raise if a layout divides the tokens of a sequence, which no model of inference has.

    Raises
    ------
    ArgumentError
        If ``cp`` is above 1.

    Examples
    --------
    >>> refuse_context_parallelism(Layout(tp=2))
    >>> refuse_context_parallelism(Layout(cp=2))
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: Layout(cp 2): inference is modelled without context parallelism. Leave `cp` at 1
    """
    if layout.cp > 1:
        raise ArgumentError(f"Layout({layout}): inference is modelled without context parallelism. Leave `cp` at 1")


def expert_columns(layout: Layout) -> int:
    """Return over how many chips the columns of one expert are divided.

    Examples
    --------
    >>> expert_columns(Layout(tp=8)), expert_columns(Layout(tp=8, ep=8)), expert_columns(Layout(tp=8, ep=2))
    (8, 1, 4)
    """
    return layout.tp if layout.ep == 1 else max(1, layout.stage_chips // layout.ep)


@lru_cache(maxsize=512)
def shard_of(model: Decoder, layout: Layout) -> Decoder:
    """Return one chip's share of all layers of a model; the model itself on one chip.

    Column-parallel projections (query, key, value, gate, up, classifier) have ``1/tp`` of their outputs, row-parallel
    ones (attention output, down) ``1/tp`` of their inputs (Shoeybi et al. 2019, arXiv:1909.08053, section 3).
    Key-value heads are stored again on each chip where there are fewer of them than chips; a latent is on every chip.
    Recurrent layers, routers and normalisations are not divided. ``pp`` divides layers, see ``stage_of``.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> share = shard_of(language_model("llama-3-70b"), Layout(tp=16))
    >>> layer = share.layer_list[0]
    >>> layer.heads, layer.kv_heads, layer.ffn, share.vocabulary
    (4, 1, 1792, 8016)
    """
    if layout.tp == 1 and layout.ep == 1:
        return model
    shared: dict[DecoderLayer, DecoderLayer] = {}
    layers = tuple(
        shared[layer] if layer in shared else shared.setdefault(layer, _share(layer, layout))
        for layer in model.layer_list
    )
    return Shard(
        model.name,
        model.hidden,
        -(-model.vocabulary // layout.tp),
        layers,
        model.tied,
        model.positions,
        model.outer_parameters,
        model.embedding_width,
        model.head,
        model.head_bias,
        model.quantization,
        model.cache_format,
        None
        if model.encoder is None
        else replace(model.encoder, layers=tuple(_share(layer, layout) for layer in model.encoder.layers)),
        layout.ep,
        tuple(each._replace(outputs=-(-each.outputs // layout.tp)) for each in model.outer_matrices),
        tuple(-(-size // (1 if index else layout.tp)) for index, size in enumerate(model.per_layer_table)),
    )


def _share(layer: DecoderLayer, layout: Layout) -> DecoderLayer:
    columns = expert_columns(layout) if layer.experts else layout.tp
    return replace(
        layer,
        heads=-(-layer.heads // layout.tp),
        kv_heads=-(-layer.kv_heads // layout.tp),
        ffn=-(-layer.ffn // columns),
        shared_ffn=-(-layer.shared_ffn // layout.tp),
    )


def stage_of(model: Decoder, layout: Layout, stage: int) -> tuple[DecoderLayer, ...]:
    """Return the layers of one chip of a pipeline stage, counted from 0."""
    layers = shard_of(model, layout).layer_list
    each = len(layers) // layout.pp
    return layers[stage * each : (stage + 1) * each]


@lru_cache(maxsize=1024)
def stage_weights(model: Decoder, layout: Layout, weight_format: str | None) -> tuple[float, ...]:
    """Return the bytes of weights on one chip of each pipeline stage.

    The first stage holds the embedding tables, the last one the classifier, again where it is tied to the table.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> llama = language_model("llama-3-8b")
    >>> stage_weights(llama, Layout(), None)[0] == llama.weight_bytes().m_as("byte")
    True
    >>> [f"{each / 1e9:.3f}" for each in stage_weights(llama, Layout(pp=2), None)]
    ['8.030', '8.030']
    """
    if layout.chips == layout.dp and layout.ep == 1:
        return (float(model.weight_bytes(weight_format).m_as("byte")),)
    share = shard_of(model, layout)
    stored = share.quantization if weight_format is None else None
    plain = weight_bits(weight_format) if weight_format is not None else _DEFAULT
    width = share.embedding_width or share.hidden
    outside: Mapping[str, float] = stored.operator_bits(share, None, plain) if stored is not None else {}
    table = share.vocabulary * width * outside.get("embedding", plain)
    down = share.hidden * width if width != share.hidden else 0
    first = table + share.positions * share.hidden * plain + down * outside.get("embedding up", plain)
    last = share.outer_parameters * plain + down * outside.get("embedding down", plain)
    if share.head:
        last += share.vocabulary * width * outside.get("logits", plain) + share.vocabulary * share.head_bias * plain
    per_layer = math.prod(share.per_layer_table) if share.per_layer_table else 0
    first += per_layer * outside.get("embedding of layers", plain)
    first += sum(each.elements * outside.get(each.operator, plain) for each in share.outer_matrices)
    if share.encoder is not None:
        first += share.encoder.parameters(share.hidden) * plain
    if layout.pp == 1 and share.tied and share.head:
        last -= table
    each, sizes = len(share.layer_list) // layout.pp, []
    known: dict[object, float] = {}
    for stage in range(layout.pp):
        total = 0.0
        for index in range(stage * each, (stage + 1) * each):
            layer = share.layer_list[index]
            bits: Mapping[str, float] = stored.operator_bits(share, index, plain) if stored is not None else {}
            key = layer, tuple(bits.items())
            if key not in known:
                known[key] = _layer_bits(layer, share.hidden, layout.ep, plain, bits)
            total += known[key]
        sizes.append((total + (first if stage == 0 else 0.0) + (last if stage == layout.pp - 1 else 0.0)) / 8)
    return tuple(sizes)


def _layer_bits(layer: DecoderLayer, hidden: int, groups: int, plain: float, stored: Mapping[str, float]) -> float:
    """Return the bits of one layer's weights, of its experts the share of one group."""
    held = layer.experts // groups if layer.experts else None
    parameters, total = layer.parameters(hidden, held), 0.0
    for matrix in layer.matrices(hidden):
        part = held is not None and matrix.operator.startswith("experts")
        elements = matrix.elements // layer.experts * held if part and held is not None else matrix.elements
        total += elements * stored.get(matrix.operator, plain)
        parameters -= elements
    return total + parameters * plain
