"""Encoder-decoder transformers: T5's blocks, with experts instead of some feed-forward layers."""

from collections.abc import Callable
from dataclasses import dataclass

from mlsys.workloads.zoo.layer_builder import LayerBuilder


@dataclass(frozen=True)
class EncoderDecoder:
    """The sizes of a Switch Transformer; every second layer of encoder and decoder has experts.

    Attributes
    ----------
    layers, width, heads, head_dim, inner
        Sizes of the encoder, and of the decoder.
    experts
        Experts of a layer that has them; a token is routed to one.
    capacity
        Tokens of a sequence per expert, all of which it computes even if not full.
    vocabulary, buckets
        Rows of the token embedding table, which the classifier shares, and relative position buckets per head.
    """

    layers: int
    width: int
    heads: int
    head_dim: int
    inner: int
    experts: int
    capacity: int = 64
    vocabulary: int = 32128
    buckets: int = 32


def switch_transformer(builder: LayerBuilder, batch: int, tokens: int, shape: EncoderDecoder) -> None:
    """Append a Switch Transformer (Fedus et al. 2022, JMLR 23:120; huggingface/transformers).

    The decoder reads as many tokens as the encoder.
    """
    rows, width, inner = batch * tokens, shape.width, shape.heads * shape.head_dim
    builder.embedding("embedding", rows, width, shape.vocabulary * width)

    def attend(name: str, positions: int, cross: bool = False) -> None:
        start = builder.here
        builder.norm(f"{name} norm", rows, width, centred=False)
        if cross:
            builder.dense(f"{name} query", rows, width, inner, False, extra=width)
            builder.dense(f"{name} key, value", rows, width, 2 * inner, False)
        else:
            builder.dense(f"{name} query, key, value", rows, width, 3 * inner, False, extra=width)
        builder.attention(name, batch, shape.heads, tokens, tokens, shape.head_dim, extra=positions)
        builder.dense(f"{name} output", rows, inner, width, False)
        builder.add(f"{name} add", rows * width, start, builder.here)

    for half in ("encoder", "decoder"):
        if half == "decoder":
            # Encoder and decoder share one embedding table.
            builder.operators.append(builder.without_parameters(builder.operators[0]))
        for layer in range(shape.layers):
            attend(f"{half} attention", shape.buckets * shape.heads if layer == 0 else 0)
            if half == "decoder":
                attend("cross attention", 0, cross=True)
            builder.norm("feed-forward norm", rows, width, centred=False)
            if layer % 2:
                _experts(builder, batch, tokens, shape)
            else:
                _feed_forward(builder, "feed-forward", rows, shape, width)
            builder.add("feed-forward add", rows * width)
        builder.ride_along(f"{half} norm", rows * width, 7, parameters=width)
    builder.dense("logits", rows, width, shape.vocabulary, False, tied=True)


def _feed_forward(builder: LayerBuilder, name: str, rows: int, shape: EncoderDecoder, extra: int = 0) -> None:
    builder.dense(f"{name} up", rows, shape.width, shape.inner, False, extra=extra)
    builder.activation(f"{name} relu", rows * shape.inner, "relu")
    builder.dense(f"{name} down", rows, shape.inner, shape.width, False)


def _experts(builder: LayerBuilder, batch: int, tokens: int, shape: EncoderDecoder) -> None:
    """Append the experts one after the other, as the code runs them."""
    builder.dense("router", batch * tokens, shape.width, shape.experts, False, extra=shape.width)
    for _ in range(shape.experts):
        _feed_forward(builder, "expert", batch * min(tokens, shape.capacity), shape)


def writer(shape: EncoderDecoder) -> Callable[[LayerBuilder, int, int], None]:
    """Return the recipe that appends a network of the given sizes to a builder."""
    return lambda builder, batch, tokens: switch_transformer(builder, batch, tokens, shape)


# sitar-lab/NeuSight, scripts/asplos/data/DLmodel_configs/switchxl4.json.
SWITCH_XL_4 = EncoderDecoder(layers=24, width=1024, heads=32, head_dim=128, inner=16384, experts=4)
