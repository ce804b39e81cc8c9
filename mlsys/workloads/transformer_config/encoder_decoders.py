"""Configurations of encoder-decoders as models that generate tokens: T5, BART and their like, Whisper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

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
    known = ENCODER_DECODERS[kind]
    names = given.get("architectures") or [known.generates]
    if names not in ([known.generates], [f"{known.stem}Model"]):
        raise fault(
            f"`architectures` is {short(names)}: of {kind}, {known.generates} generates tokens. Or use mlsys flops"
        )
    if given.get("quantization_config") is not None:
        raise fault(
            f"`quantization_config` of {kind} is not known here. Remove it, and give the format of the weights, such "
            "as int8"
        )
    read = Fields(given, kind)
    return replace(
        known.reader(read), name=names[0], head=names[0] == known.generates, dtype=stated_dtype(given),
        assumed=tuple(read.assumed.values()),
    )  # fmt: skip


def read_t5(read: Fields) -> TransformerConfig:
    """T5, mT5 and UMT5: relative positions in the first layer of each half or in all, RMS norms, no biases."""
    proj = read.text("feed_forward_proj") or "relu"
    gate, _, name = proj.rpartition("-")
    if name not in _T5_ACTIVATIONS or gate not in ("", "gated"):
        raise fault(f"`feed_forward_proj` is {proj!r}. Known: {', '.join(_T5_ACTIVATIONS)}, and gated- before each")
    hidden, heads = read.whole("hidden_size"), read.whole("num_attention_heads")
    layers = read.whole("num_hidden_layers")
    buckets, all_have = read.whole("relative_attention_num_buckets") * heads, read.model_type == "umt5"
    own, outer = (buckets, hidden) if all_have else (0, hidden + buckets)
    layer = DecoderLayer(
        heads, heads, read.whole("head_dim"), read.whole("intermediate_size"), gated=bool(gate), small=2 * hidden + own,
        act="exact gelu" if name == "gelu" and not gate else _T5_ACTIVATIONS[name],
    )  # fmt: skip
    return TransformerConfig(
        read.model_type,
        read.model_type,
        hidden,
        read.whole("vocab_size"),
        (replace(layer, crosses=True, small=3 * hidden + own),) * (read.optional("num_decoder_layers") or layers),
        # Checkpoints that say false, such as Flan-T5's, have a classifier of their own.
        tied=read.value("tie_word_embeddings") is not False,
        outer_parameters=outer,
        encoder=SourceEncoder((layer,) * layers, small=outer),
    )


def read_whisper(read: Fields) -> TransformerConfig:
    """Whisper: two convolutions over a spectrogram of 30 s, an encoder, and a decoder with learned positions."""
    hidden, mels = read.whole("hidden_size"), read.whole("num_mel_bins")
    source, most = read.whole("max_source_positions"), read.whole("max_target_positions")
    encoder, decoder = _halves(read, hidden, biases=2)  # keys have none
    stem = (Convolution("stem", mels, hidden, 2, 1), Convolution("downsample", hidden, hidden, 1, 2))
    return TransformerConfig(
        read.model_type,
        read.model_type,
        hidden,
        read.whole("vocab_size"),
        decoder,
        tied=read.flag("tie_word_embeddings"),
        positions=most,
        learned=most,
        context=most,
        outer_parameters=2 * hidden,
        encoder=SourceEncoder(encoder, source, True, stem, 2 * hidden + source * hidden + 2 * hidden),
    )


def read_bart(read: Fields) -> TransformerConfig:
    """BART and related models: a table of positions for each half; norms after the embedding, the last layer, or both.

    The tables of Pegasus and Marian hold sines and end like learned ones; M2M100 computes as many as are needed.
    """
    kind, hidden, most = read.model_type, read.whole("hidden_size"), read.whole("max_position_embeddings")
    extra_rows, norms = _BART[kind]
    rows = 0 if extra_rows is None else most + extra_rows
    encoder, decoder = _halves(read, hidden, biases=3)
    vocabulary = source = read.whole("vocab_size")
    shared = True
    if kind == "marian":
        vocabulary = read.optional("decoder_vocab_size") or source
        shared = read.flag("share_encoder_decoder_embeddings")
        if shared and vocabulary != source:
            raise fault(
                f"`decoder_vocab_size` is {vocabulary} and `vocab_size` is {source}, but both halves share one table. "
                "Mend one, or set `share_encoder_decoder_embeddings` to false"
            )
    own_table = 0 if shared else source * hidden
    return TransformerConfig(
        kind,
        kind,
        hidden,
        vocabulary,
        decoder,
        tied=read.flag("tie_word_embeddings"),
        positions=rows,
        learned=most if rows else 0,
        context=most,
        outer_parameters=2 * norms * hidden,
        encoder=SourceEncoder(encoder, small=(rows + 2 * norms) * hidden + own_table),
    )


def _halves(read: Fields, hidden: int, biases: int) -> tuple[tuple[DecoderLayer, ...], tuple[DecoderLayer, ...]]:
    """Return the layers of encoder and decoder: layer norms, and ``biases`` of queries, keys and values."""
    halves = []
    for half, attentions in (("encoder", 1), ("decoder", 2)):
        heads = read.whole(f"{half}_attention_heads")
        if hidden % heads:
            raise fault(f"`d_model` is {hidden}, no multiple of the {heads} of `{half}_attention_heads`")
        layer = DecoderLayer(
            heads, heads, hidden // heads, read.whole(f"{half}_ffn_dim"), gated=False,
            biases=frozenset(("output", "ffn")), centred=True, crosses=half == "decoder", act=activation(read),
            small=2 * hidden * (attentions + 1) + biases * hidden * attentions,
        )  # fmt: skip
        halves.append((layer,) * read.whole(f"{half}_layers"))
    return halves[0], halves[1]


# Rows of the table of positions beyond those that sequences use, None without a table; and norms outside the layers.
_BART: dict[str, tuple[int | None, int]] = {
    "bart": (2, 1), "blenderbot": (0, 1), "blenderbot-small": (0, 1), "m2m_100": (None, 1), "marian": (0, 0),
    "mbart": (2, 2), "pegasus": (0, 1), "plbart": (2, 1),
}  # fmt: skip


class EncoderDecoderKind(NamedTuple):
    """How a ``model_type`` is read.

    Attributes
    ----------
    stem
        Beginning of the names of its classes.
    generates
        The class that generates tokens.
    reader
        What reads its fields.
    """

    stem: str
    generates: str
    reader: Callable[[Fields], TransformerConfig]


def _kind(stem: str, reader: Callable[[Fields], TransformerConfig], generates: str = "") -> EncoderDecoderKind:
    return EncoderDecoderKind(stem, generates or f"{stem}ForConditionalGeneration", reader)


ENCODER_DECODERS: dict[str, EncoderDecoderKind] = {
    "bart": _kind("Bart", read_bart), "blenderbot": _kind("Blenderbot", read_bart),
    "blenderbot-small": _kind("BlenderbotSmall", read_bart), "m2m_100": _kind("M2M100", read_bart),
    "marian": _kind("Marian", read_bart, "MarianMTModel"), "mbart": _kind("MBart", read_bart),
    "mt5": _kind("MT5", read_t5), "pegasus": _kind("Pegasus", read_bart),
    "plbart": _kind("PLBart", read_bart), "t5": _kind("T5", read_t5), "umt5": _kind("UMT5", read_t5),
    "whisper": _kind("Whisper", read_whisper),
}  # fmt: skip
"""Classes and reader by ``model_type``."""
