"""Configurations of encoders and encoder-decoders, read without torch: BERT and its like, ViT, T5, Whisper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mlsys.faults import short
from mlsys.workloads.transformer_config.common import activation
from mlsys.workloads.transformer_config.fields import Fields, fault
from mlsys.workloads.zoo.cnn_builder import CnnBuilder
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


class _Stack(NamedTuple):
    """Sizes of an encoder or of a decoder that reads one.

    Attributes
    ----------
    layers, heads, head_dim, inner
        Layers, heads, width of a head, and inner width of the feed-forward part.
    """

    layers: int
    heads: int
    head_dim: int
    inner: int


class _Style(NamedTuple):
    """What tells encoder-decoders apart.

    Attributes
    ----------
    width, act
        Width of the residual stream, and activation.
    gated, biased, centred
        Whether feed-forward parts have a gate, dense layers have biases (but for keys), and norms subtract the mean.
    """

    width: int
    act: str
    gated: bool
    biased: bool
    centred: bool

    @property
    def norm_parameters(self) -> int:
        """Parameters of a normalisation."""
        return self.width * (2 if self.centred else 1)


def _attention(
    builder: LayerBuilder, style: _Style, stack: _Stack, sizes: tuple[int, int, int], name: str, extra: int = 0
) -> None:
    """Append attention of ``sizes[1]`` tokens to themselves, or to ``sizes[2]`` others that an encoder left."""
    batch, queries, keys = sizes
    rows, wide, width = batch * queries, stack.heads * stack.head_dim, style.width
    cross, small = name == "cross attention", style.norm_parameters + (2 * wide if style.biased else 0)
    builder.norm(f"{name} norm", rows, width, centred=style.centred)
    if cross:
        builder.dense(f"{name} query", rows, width, wide, False, small)
        builder.dense(f"{name} key, value", batch * keys, width, 2 * wide, False)
    else:
        builder.dense(f"{name} query, key, value", rows, width, 3 * wide, False, small)
    builder.attention(name, batch, stack.heads, queries, keys, stack.head_dim, extra=extra)
    builder.dense(f"{name} output", rows, wide, width, style.biased)
    builder.add(f"{name} add", rows * width)


def _stack(
    builder: LayerBuilder, style: _Style, stack: _Stack, sizes: tuple[int, int, int], buckets: int, *, reads: bool
) -> None:
    """Append the layers of an encoder, or of a decoder that reads one, and its last normalisation."""
    batch, queries, _ = sizes
    rows, width = batch * queries, style.width
    for layer in range(stack.layers):
        positions = buckets * stack.heads if layer == 0 else 0
        _attention(builder, style, stack, (batch, queries, queries), "attention", positions)
        if reads:
            _attention(builder, style, stack, sizes, "cross attention")
        builder.norm("feed-forward norm", rows, width, centred=style.centred)
        up = stack.inner * (2 if style.gated else 1)
        builder.dense("feed-forward up", rows, width, up, style.biased, style.norm_parameters)
        builder.activation(f"feed-forward {style.act}", rows * stack.inner, style.act, 2 if style.gated else 1)
        builder.dense("feed-forward down", rows, stack.inner, width, style.biased)
        builder.add("feed-forward add", rows * width)
    builder.ride_along("last norm", rows * width, 7, parameters=style.norm_parameters)


def _t5(read: Fields, given: Mapping[str, Any], named: str, source: str) -> Entry:
    """T5 and Flan-T5: relative positions in the first layer, no biases, and one table of tokens for both halves."""
    proj = read.text("feed_forward_proj") or "relu"
    gate, _, name = proj.rpartition("-")
    acts = {"relu": "relu", "gelu": "gelu" if gate else "exact gelu", "silu": "silu"}
    if name not in acts or gate not in ("", "gated"):
        raise fault(f"`feed_forward_proj` is {proj!r}. Known: {', '.join(acts)}, and gated- before each")
    style = _Style(read.whole("hidden_size"), acts[name], bool(gate), biased=False, centred=False)
    layers = read.whole("num_hidden_layers")
    half = _Stack(layers, read.whole("num_attention_heads"), read.whole("head_dim"), read.whole("intermediate_size"))
    later = half._replace(layers=read.optional("num_decoder_layers") or layers)
    vocabulary, buckets = read.whole("vocab_size"), read.whole("relative_attention_num_buckets")
    table = vocabulary * style.width
    tied = read.value("tie_word_embeddings") is not False  # those that say false, as Flan-T5's, have a classifier

    def write(builder: LayerBuilder, batch: int, tokens: int) -> None:
        sizes, rows = (batch, tokens, tokens), batch * tokens
        builder.embedding("embedding", rows, style.width, table)
        _stack(builder, style, half, sizes, buckets, reads=False)
        if named.endswith("EncoderModel"):
            return
        builder.embedding("embedding", rows, style.width, 0)
        _stack(builder, style, later, sizes, buckets, reads=True)
        if not named.endswith("Model"):
            builder.dense("logits", rows, style.width, vocabulary, False, tied=tied)

    return Entry(named, named, "text", source, sequence=_USUAL, write=write)


def _whisper(read: Fields, given: Mapping[str, Any], named: str, source: str) -> Entry:
    """Whisper: two convolutions over a spectrogram of 30 s, an encoder, and a decoder of ``sequence`` tokens."""
    width, mels = read.whole("hidden_size"), read.whole("num_mel_bins")
    style = _Style(width, activation(read), gated=False, biased=True, centred=True)
    stacks = {}
    for half in ("encoder", "decoder"):
        heads = read.whole(f"{half}_attention_heads")
        if width % heads:
            raise fault(f"`d_model` is {width}, no multiple of the {heads} of `{half}_attention_heads`")
        layers, inner = read.whole(f"{half}_layers"), read.whole(f"{half}_ffn_dim")
        stacks[half] = _Stack(layers, heads, width // heads, inner)
    source_length, most = read.whole("max_source_positions"), read.whole("max_target_positions")
    vocabulary = read.whole("vocab_size")

    def write(builder: LayerBuilder, batch: int, tokens: int) -> None:
        for name, inputs, length, stride in (("stem", mels, 2, 1), ("downsample", width, 1, 2)):
            _convolution(builder, name, batch, (inputs, width), length * source_length, stride)
            builder.activation(f"{name} gelu", batch * length * source_length * width, style.act)
        builder.ride_along("positions", batch * source_length * width, 1, 2, parameters=source_length * width)
        _stack(builder, style, stacks["encoder"], (batch, source_length, source_length), 0, reads=False)
        lengths = [vocabulary, most]
        builder.embedding("embedding", batch * tokens, width, (vocabulary + most) * width, 2, lengths)
        _stack(builder, style, stacks["decoder"], (batch, tokens, source_length), 0, reads=True)
        if not named.endswith("Model"):
            builder.dense("logits", batch * tokens, width, vocabulary, False, tied=True)

    return Entry(named, named, "speech and sensors", source, sequence=min(_USUAL, most), write=write, longest=most)


def _convolution(
    builder: LayerBuilder, name: str, batch: int, channels: tuple[int, int], length: int, stride: int, kernel: int = 3
) -> None:
    """Append a one-dimensional convolution with a bias to ``length`` outputs."""
    inputs, outputs = channels
    taps = kernel * inputs * outputs
    weights = taps * builder.weight_size_of(name)
    shape = {"batch": batch, "groups": 1, "in_channels": inputs, "out_channels": outputs, "out_height": 1}
    shape |= {"out_width": length, "kernel_height": 1, "kernel_width": kernel}
    moved = weights + batch * length * (stride * inputs + outputs) * builder.size
    builder.write(name, "conv2d", 2 * batch * length * taps, moved, weights, taps + outputs, shape)


_TEXT = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
_Reader = Callable[[Fields, Mapping[str, Any], str, str], Entry]
ENCODERS: dict[str, tuple[str, tuple[str, ...], _Reader]] = {
    "bert": ("Bert", _TEXT, _bert), "camembert": ("Camembert", _TEXT, _bert), "roberta": ("Roberta", _TEXT, _bert),
    "xlm-roberta": ("XLMRoberta", _TEXT, _bert), "vit": ("ViT", ("Model", "ForImageClassification"), _vit),
    "t5": ("T5", ("Model", "EncoderModel", "ForConditionalGeneration"), _t5),
    "whisper": ("Whisper", ("Model", "ForConditionalGeneration"), _whisper),
}  # fmt: skip
"""Stem of the class names, the endings that are read, and the reader, by ``model_type``."""
