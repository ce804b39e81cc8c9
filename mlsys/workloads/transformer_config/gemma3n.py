"""How the layers of Gemma 3n follow from its fields: shared caches, several residual streams, layer embeddings."""

from __future__ import annotations

from dataclasses import replace

from mlsys.faults import short
from mlsys.workloads.transformer_config.common import ArchitectureFields, Common
from mlsys.workloads.transformer_config.fields import fault
from mlsys.workloads.zoo.decoder_layer import WeightMatrix


def resolve_gemma3n(of: Common) -> ArchitectureFields:
    """Return the layers of a Gemma 3n model.

    The last layers attend to the keys and values of an earlier one and have none of their own. Each layer predicts
    and corrects several residual streams (AltUp), has a low-rank branch beside attention, and adds an embedding of its
    own (transformers, models/gemma3n/modeling_gemma3n.py).

    Raises
    ------
    ArgumentError
        If a field is impossible.
    """
    read, hidden = of.fields, of.hidden
    streams, rank, each = (
        read.whole(name) for name in ("altup_num_inputs", "laurel_rank", "hidden_size_per_layer_input")
    )
    router = WeightMatrix("stream router", "altup.modality_router", hidden, streams)
    side = (
        router,
        WeightMatrix("stream prediction", "altup.prediction_coefs", streams, streams**2),
        WeightMatrix("low-rank down", "laurel.linear_left", hidden, rank),
        WeightMatrix("low-rank up", "laurel.linear_right", rank, hidden),
        router,
        WeightMatrix("stream correction", "altup.correction_coefs", streams, streams),
        WeightMatrix("layer embedding gate", "per_layer_input_gate", hidden, each),
        WeightMatrix("layer embedding up", "per_layer_projection", each, hidden),
    )
    inner = read.value("intermediate_size")
    widths = inner if isinstance(inner, list) else [read.whole("intermediate_size")] * of.layers
    if len(widths) != of.layers or not all(isinstance(width, int) and width > 0 for width in widths):
        raise fault(
            f"`intermediate_size` must be a whole number or {of.layers}, one for each layer, got {short(inner)}"
        )
    windows = of.windows(of.pattern(5))
    first = of.layers - (read.optional("num_kv_shared_layers", least=0) or 0)
    if not {bool(window) for window in windows[:first]} >= {bool(window) for window in windows}:
        raise fault("`num_kv_shared_layers` leaves no earlier layer of a kind whose cache the last ones could share")
    more = 2 * of.head_dim + 4 * hidden  # queries and keys; router, low-rank branch, layer embedding, scale of streams
    layers = []
    for index, (window, width) in enumerate(zip(windows, widths, strict=True)):
        shares = index >= first
        layers.append(
            of.layer(
                *of.attention_biases("qkv", "output"), norms=4, ffn=width, window=window, side=side, streams=streams,
                more=more - of.head_dim * shares, shares_cache=shares,
            )
        )  # fmt: skip
    square = WeightMatrix("streams in", "altup_projections", hidden, hidden)
    back = square._replace(operator="streams out", name="altup_unembed_projections")
    projection = WeightMatrix("layer embedding projection", "per_layer_model_projection", hidden, of.layers * each)
    outer = (projection, *[square] * (streams - 1), *[back] * (streams - 1))
    resolved = of.resolved(layers, outer_matrices=outer)
    table = (read.whole("vocab_size_per_layer_input"), of.layers * each)
    return replace(resolved, outer=resolved.outer + each, per_layer_table=table)
