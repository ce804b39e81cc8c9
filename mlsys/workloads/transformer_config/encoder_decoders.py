"""Configurations of encoder-decoders as models that generate tokens: T5 and its like, Whisper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mlsys.faults import short
from mlsys.workloads.transformer_config.common import activation
from mlsys.workloads.transformer_config.fields import Fields, fault
from mlsys.workloads.transformer_config.read import stated_dtype
from mlsys.workloads.transformer_config.structure import TransformerConfig
from mlsys.workloads.zoo.decoder_layer import DecoderLayer
from mlsys.workloads.zoo.source_encoder import Convolution, SourceEncoder

_T5_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu"}


def read_encoder_decoder(given: Mapping[str, Any]) -> TransformerConfig | None:
    """Return the encoder-decoder that a configuration describes; None for others.

    Parameters
    ----------
    given
        The JSON object of a ``config.json``.

    Raises
    ------
    ArgumentError
        If a field is missing, impossible, or contradicts another; if the class named generates nothing; or if it
        states how weights are stored.

    Examples
    --------
    >>> whisper = read_encoder_decoder({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"]})
    >>> print(f"{whisper.parameters():,}", whisper.encoder.tokens)
    37,760,640 param 1500
    """
    kind = given.get("model_type")
    if not isinstance(kind, str) or kind not in ENCODER_DECODERS:
        return None
    stem, reader = ENCODER_DECODERS[kind]
    usual = f"{stem}ForConditionalGeneration"
    names = given.get("architectures") or [usual]
    if names != [usual]:
        raise fault(f"`architectures` is {short(names)}: of {kind}, {usual} generates tokens. Or use mlsys flops")
    if given.get("quantization_config") is not None:
        raise fault(
            f"`quantization_config` of {kind} is not known here. Remove it, and give the format of the weights, such "
            "as int8"
        )
    read = Fields(given, kind)
    return replace(reader(read), name=usual, dtype=stated_dtype(given), assumed=tuple(read.assumed.values()))


def read_t5(read: Fields) -> TransformerConfig:
    """T5 and Flan-T5: relative positions in the first layer of each half, RMS norms, no biases."""
    proj = read.text("feed_forward_proj") or "relu"
    gate, _, name = proj.rpartition("-")
    if name not in _T5_ACTIVATIONS or gate not in ("", "gated"):
        raise fault(f"`feed_forward_proj` is {proj!r}. Known: {', '.join(_T5_ACTIVATIONS)}, and gated- before each")
    hidden, heads = read.whole("hidden_size"), read.whole("num_attention_heads")
    layers = read.whole("num_hidden_layers")
    layer = DecoderLayer(
        heads, heads, read.whole("head_dim"), read.whole("intermediate_size"), gated=bool(gate), small=2 * hidden,
        act="exact gelu" if name == "gelu" and not gate else _T5_ACTIVATIONS[name],
    )  # fmt: skip
    buckets = read.whole("relative_attention_num_buckets") * heads
    return TransformerConfig(
        read.model_type,
        read.model_type,
        hidden,
        read.whole("vocab_size"),
        (replace(layer, crosses=True, small=3 * hidden),) * (read.optional("num_decoder_layers") or layers),
        # Checkpoints that say false, such as Flan-T5's, have a classifier of their own.
        tied=read.value("tie_word_embeddings") is not False,
        outer_parameters=hidden + buckets,
        encoder=SourceEncoder((layer,) * layers, small=hidden + buckets),
    )


def read_whisper(read: Fields) -> TransformerConfig:
    """Whisper: two convolutions over a spectrogram of 30 s, an encoder, and a decoder with learned positions."""
    hidden, mels, act = read.whole("hidden_size"), read.whole("num_mel_bins"), activation(read)
    source, most = read.whole("max_source_positions"), read.whole("max_target_positions")
    halves = {}
    for half, attentions in (("encoder", 1), ("decoder", 2)):
        heads = read.whole(f"{half}_attention_heads")
        if hidden % heads:
            raise fault(f"`d_model` is {hidden}, no multiple of the {heads} of `{half}_attention_heads`")
        layer = DecoderLayer(
            heads, heads, hidden // heads, read.whole(f"{half}_ffn_dim"), gated=False,
            biases=frozenset(("output", "ffn")), centred=True, crosses=half == "decoder", act=act,
            # Norms of two parameters an element, and biases of queries and values; keys have none.
            small=2 * hidden * (attentions + 1) + 2 * hidden * attentions,
        )  # fmt: skip
        halves[half] = (layer,) * read.whole(f"{half}_layers")
    stem = (Convolution("stem", mels, hidden, 2, 1), Convolution("downsample", hidden, hidden, 1, 2))
    return TransformerConfig(
        read.model_type,
        read.model_type,
        hidden,
        read.whole("vocab_size"),
        halves["decoder"],
        tied=read.flag("tie_word_embeddings"),
        positions=most,
        learned=most,
        context=most,
        outer_parameters=2 * hidden,
        encoder=SourceEncoder(halves["encoder"], source, True, stem, 2 * hidden + source * hidden + 2 * hidden),
    )


ENCODER_DECODERS: dict[str, tuple[str, Callable[[Fields], TransformerConfig]]] = {
    "t5": ("T5", read_t5), "whisper": ("Whisper", read_whisper),
}  # fmt: skip
"""Stem of the class names, and the reader, by ``model_type``."""
