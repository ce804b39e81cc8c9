"""Encoder-decoder transformers: T5's blocks, with experts instead of some feed-forward layers."""

from collections.abc import Callable
from dataclasses import dataclass

from mlsys.workloads.zoo.tape import Tape


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


def switch_transformer(tape: Tape, batch: int, tokens: int, shape: EncoderDecoder) -> None:
    """Append a Switch Transformer (Fedus et al. 2022, JMLR 23:120; huggingface/transformers).

    The decoder reads as many tokens as the encoder.
    """
    rows, width, inner = batch * tokens, shape.width, shape.heads * shape.head_dim
    tape.embedding("embedding", rows, width, shape.vocabulary * width)

    def attend(name: str, positions: int, cross: bool = False) -> None:
        start = tape.here
        tape.norm(f"{name} norm", rows, width, centred=False)
        if cross:
            tape.dense(f"{name} query", rows, width, inner, False, extra=width)
            tape.dense(f"{name} key, value", rows, width, 2 * inner, False)
        else:
            tape.dense(f"{name} query, key, value", rows, width, 3 * inner, False, extra=width)
        tape.attention(name, batch, shape.heads, tokens, tokens, shape.head_dim, extra=positions)
        tape.dense(f"{name} output", rows, inner, width, False)
        tape.add(f"{name} add", rows * width, start, tape.here)

    for half in ("encoder", "decoder"):
        if half == "decoder":
            # Encoder and decoder share one embedding table.
            tape.operators.append(tape.without_parameters(tape.operators[0]))
        for layer in range(shape.layers):
            attend(f"{half} attention", shape.buckets * shape.heads if layer == 0 else 0)
            if half == "decoder":
                attend("cross attention", 0, cross=True)
            tape.norm("feed-forward norm", rows, width, centred=False)
            if layer % 2:
                _experts(tape, batch, tokens, shape)
            else:
                _feed_forward(tape, "feed-forward", rows, shape, width)
            tape.add("feed-forward add", rows * width)
        tape.ride_along(f"{half} norm", rows * width, 7, parameters=width)
    tape.dense("logits", rows, width, shape.vocabulary, False, tied=True)


def _feed_forward(tape: Tape, name: str, rows: int, shape: EncoderDecoder, extra: int = 0) -> None:
    tape.dense(f"{name} up", rows, shape.width, shape.inner, False, extra=extra)
    tape.activation(f"{name} relu", rows * shape.inner, "relu")
    tape.dense(f"{name} down", rows, shape.inner, shape.width, False)


def _experts(tape: Tape, batch: int, tokens: int, shape: EncoderDecoder) -> None:
    """Append the experts one after the other, as the code runs them."""
    tape.dense("router", batch * tokens, shape.width, shape.experts, False, extra=shape.width)
    for _ in range(shape.experts):
        _feed_forward(tape, "expert", batch * min(tokens, shape.capacity), shape)


def writer(shape: EncoderDecoder) -> Callable[[Tape, int, int], None]:
    """Return the recipe that appends a network of the given sizes to a builder."""
    return lambda tape, batch, tokens: switch_transformer(tape, batch, tokens, shape)


# sitar-lab/NeuSight, scripts/asplos/data/DLmodel_configs/switchxl4.json.
SWITCH_XL_4 = EncoderDecoder(layers=24, width=1024, heads=32, head_dim=128, inner=16384, experts=4)
