"""Configurations of encoders and encoder-decoders, read without torch: BERT and its like, ViT, T5, BART, Whisper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mlsys.faults import short
from mlsys.workloads.transformer_config.common import activation
from mlsys.workloads.transformer_config.encoder_decoders import ENCODER_DECODERS
from mlsys.workloads.transformer_config.fields import Fields, fault
from mlsys.workloads.zoo.cnn_builder import CnnBuilder
from mlsys.workloads.zoo.decoder_pass import write_encoder
from mlsys.workloads.zoo.encoders import TextEncoder, bert, block
from mlsys.workloads.zoo.entry import Entry
from mlsys.workloads.zoo.layer_builder import LayerBuilder

_USUAL = 128  # tokens, as for encoders of the catalogue


def encoder_entry(given: Mapping[str, Any], source: str) -> Entry | None:
    """Return the recipe of an encoder or encoder-decoder that a configuration describes; None for others.

    Parameters
    ----------
    given
        The JSON object of a ``config.json``.
    source
        Where it comes from, in words.

    Raises
    ------
    ArgumentError
        If a field is missing, impossible, or contradicts another.

    Examples
    --------
    >>> entry = encoder_entry({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "a test")
    >>> print(f"{entry.parameters:,}")
    109,514,298 param
    """
    kind = given.get("model_type")
    names = given.get("architectures") or [None]
    if not isinstance(names, list) or kind not in ENCODERS:
        return None
    stem, suffixes, reader = ENCODERS[kind]
    named = names[0] or f"{stem}Model"
    if not isinstance(named, str) or named.removeprefix(stem) not in suffixes or not named.startswith(stem):
        return None
    read = Fields(given, kind)
    return reader(read, given, named, source)


def _labels(given: Mapping[str, Any]) -> int:
    """Return the number of classes: the length of ``id2label``, or ``num_labels``, or two."""
    names, stated = given.get("id2label"), given.get("num_labels")
    count = len(names) if isinstance(names, Mapping) else 2 if stated is None else stated
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise fault(f"`num_labels` must be a whole number from 1, got {short(stated)}")
    return count


def _width(read: Fields) -> tuple[int, int]:
    """Return the width and the heads, which must divide it."""
    width, heads = read.whole("hidden_size"), read.whole("num_attention_heads")
    if width % heads:
        raise fault(f"`{read.spelled('hidden_size')}` is {width}, no multiple of the {heads} heads")
    return width, heads


def _bert(read: Fields, given: Mapping[str, Any], named: str, source: str) -> Entry:
    width, heads = _width(read)
    positions, roberta = read.whole("max_position_embeddings"), not named.startswith("Bert")
    bare = named.endswith("Model")
    classified = named.endswith("ForSequenceClassification")
    act = activation(read)
    if act != "exact gelu":
        raise fault(f"`hidden_act` is {read.text('hidden_act')!r}: of {read.model_type}, gelu alone is known here")
    shape = TextEncoder(
        read.whole("num_hidden_layers"), width, heads, read.whole("intermediate_size"), read.whole("vocab_size"),
        positions, read.whole("type_vocab_size"), pooler=bare or (classified and not roberta),
    )  # fmt: skip
    labels = 0 if bare or named.endswith("ForMaskedLM") else _labels(given)
    hidden_head = classified and roberta

    def write(builder: LayerBuilder, batch: int, tokens: int) -> None:
        bert(builder, batch, tokens, shape)
        rows = batch if classified else batch * tokens
        if hidden_head:
            builder.first_token()
            builder.dense("classifier hidden", batch, width, width)
            builder.activation("classifier tanh", batch * width, "tanh")
        if labels:
            builder.dense("classifier", rows, width, labels)
        elif not bare:
            builder.dense("transform", rows, width, width)
            builder.activation("transform gelu", rows * width, act)
            builder.norm("transform norm", rows, width)
            builder.dense("logits", rows, width, shape.vocabulary, extra=2 * width, tied=True)

    longest = positions - (2 if roberta else 0)
    return Entry(named, named, "text", source, sequence=min(_USUAL, longest), write=write, longest=longest)


def _vit(read: Fields, given: Mapping[str, Any], named: str, source: str) -> Entry:
    width, heads = _width(read)
    side, patch, channels = read.whole("image_size"), read.whole("patch_size"), read.whole("num_channels")
    if side % patch:
        raise fault(f"`image_size` is {side}, no multiple of the `patch_size` {patch}")
    layers, inner = read.whole("num_hidden_layers"), read.whole("intermediate_size")
    if activation(read) != "exact gelu" or not read.flag("qkv_bias"):
        raise fault("`hidden_act` other than gelu, or `qkv_bias` false, is not known here for vit")
    bare, labels = named.endswith("Model"), 0 if named.endswith("Model") else _labels(given)
    pooled = read.optional("pooler_output_size") or width
    tokens = (side // patch) ** 2 + 1

    def draw(net: CnnBuilder) -> None:
        if net.shape[1] != side:
            raise fault(f"a ViT with learned positions for images of side {side} takes no others. Leave the size out")
        net.conv("patches", width, patch, patch, 0, norm=False, act=None)
        net.as_tokens(tokens, width)
        for _ in net.repeated(layers):
            block(net, net.batch, tokens, width, heads, inner)
        net.norm("last norm", net.batch * tokens, width)
        net.first_token()
        if bare:
            net.dense("pooler", net.batch, width, pooled, extra=2 * width)
            net.activation("pooler tanh", net.batch * pooled, "tanh")
        else:
            net.dense("classifier", net.batch, width, labels, extra=2 * width)

    return Entry(named, named, "picture", source, image=(channels, side, side), draw=draw)


def _both(read: Fields, given: Mapping[str, Any], named: str, source: str) -> Entry:
    """Encoder-decoders: both halves read as many tokens, but for Whisper, whose encoder always reads 30 s."""
    known = ENCODER_DECODERS[read.model_type]
    model = replace(known.reader(read), name=named, head=named == known.generates)
    assert model.encoder is not None
    family, most = "speech and sensors" if model.encoder.fixed else "text", model.learned
    if named.endswith("EncoderModel"):

        def write(builder: LayerBuilder, batch: int, tokens: int) -> None:
            write_encoder(model.reading(tokens), builder, batch, crossed=False)

        return Entry(named, named, family, source, sequence=_USUAL, write=write)
    return Entry(named, named, family, source, sequence=min(_USUAL, most or _USUAL), model=model, longest=most)


_TEXT = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
_Reader = Callable[[Fields, Mapping[str, Any], str, str], Entry]
ENCODERS: dict[str, tuple[str, tuple[str, ...], _Reader]] = {
    "bert": ("Bert", _TEXT, _bert), "camembert": ("Camembert", _TEXT, _bert), "roberta": ("Roberta", _TEXT, _bert),
    "xlm-roberta": ("XLMRoberta", _TEXT, _bert), "vit": ("ViT", ("Model", "ForImageClassification"), _vit),
    **{kind: (known.stem, ("Model", known.generates.removeprefix(known.stem)), _both)
       for kind, known in ENCODER_DECODERS.items() if "t5" not in kind},
    **{kind: (known.stem, ("Model", "EncoderModel", "ForConditionalGeneration"), _both)
       for kind, known in ENCODER_DECODERS.items() if "t5" in kind},
}  # fmt: skip
"""Stem of the class names, the endings that are read, and the reader, by ``model_type``."""
