"""Transformer encoders: the BERT family, vision transformers, Swin, ConvNeXt and the MLP-Mixer."""

from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.workloads.zoo.cnn_builder import CnnBuilder
from mlsys.workloads.zoo.layer_builder import LayerBuilder


def block(
    builder: LayerBuilder, batch: int, tokens: int, width: int, heads: int, inner: int, before: bool = True
) -> None:
    """Append one encoder block, attention and a feed-forward layer, with pre- or post-normalisation."""
    rows, start = batch * tokens, builder.here
    if before:
        builder.norm("attention norm", rows, width)
    builder.dense("query, key, value", rows, width, 3 * width, extra=2 * width)
    builder.attention("attention", batch, heads, tokens, tokens, width // heads)
    builder.dense("attention output", rows, width, width)
    builder.add("attention add", rows * width, start, builder.here)
    if not before:
        builder.norm_after("attention norm", rows, width)
    feed_forward(builder, rows, width, inner, before)


def feed_forward(builder: LayerBuilder, rows: int, width: int, inner: int, before: bool = True) -> None:
    """Append two dense layers with an activation between them, with pre- or post-normalisation."""
    start = builder.here
    if before:
        builder.norm("feed-forward norm", rows, width)
    builder.dense("feed-forward up", rows, width, inner, extra=2 * width)
    builder.activation("feed-forward gelu", rows * inner, "exact gelu")
    builder.dense("feed-forward down", rows, inner, width)
    builder.add("feed-forward add", rows * width, start, builder.here)
    if not before:
        builder.norm_after("feed-forward norm", rows, width)


@dataclass(frozen=True)
class TextEncoder:
    """The sizes of a text encoder such as BERT.

    ``vocabulary`` is 0 for the encoder blocks alone. ``embedding`` is the width of the embedding
    tables if not ``width``; ``shared`` means that all layers use the same weights.
    """

    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int = 30522
    positions: int = 512
    types: int = 2
    pooler: bool = True
    embedding: int = 0
    shared: bool = False


def bert(builder: LayerBuilder, batch: int, tokens: int, shape: TextEncoder) -> None:
    """Append BERT (Devlin et al., NAACL 2019), RoBERTa, ALBERT or DistilBERT, which differ in tables and sharing."""
    width, rows = shape.width, batch * tokens
    if shape.vocabulary:
        embedding = shape.embedding or width
        table = (shape.vocabulary + shape.positions + shape.types) * embedding + 2 * embedding
        lengths = [length for length in (shape.vocabulary, shape.positions, shape.types) if length]
        builder.embedding("embedding", rows, embedding, table, len(lengths), lengths)
        builder.norm_after("embedding norm", rows, embedding)
        if shape.embedding:
            builder.dense("embedding to width", rows, embedding, width)
    for _ in builder.repeated(1 if shape.shared else shape.layers):
        block(builder, batch, tokens, width, shape.heads, shape.inner, before=False)
    if shape.shared:
        later = LayerBuilder(builder.precision, builder.fused, whole=builder.whole)
        block(later, batch, tokens, width, shape.heads, shape.inner, before=False)
        builder.operators += [builder.without_parameters(operator) for operator in later.operators] * (shape.layers - 1)
    if shape.pooler:
        builder.hand_back()
        builder.first_token()
        builder.dense("pooler", batch, width, width)
        builder.activation("pooler tanh", batch * width, "tanh")


# layers, width, heads, patch: Dosovitskiy et al. 2021, table 1; tiny and small from Touvron et al. 2021, table 1.
VITS = {
    "tiny": (12, 192, 3),
    "small": (12, 384, 6),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
    "huge": (32, 1280, 16),
}


def vit(net: CnnBuilder, size: str, patch: int) -> None:
    """Append ViT (Dosovitskiy et al., ICLR 2021): patches and a class token, which alone is classified."""
    layers, width, heads = VITS[size]
    net.conv("patches", width, patch, patch, 0, norm=False, act=None)
    tokens = net.shape[1] * net.shape[2] + 1
    net.as_tokens(tokens, width)
    for _ in net.repeated(layers):
        block(net, net.batch, tokens, width, heads, 4 * width)
    net.norm("last norm", net.batch * tokens, width)
    net.first_token()
    net.dense("classifier", net.batch, width, 1000, extra=2 * width)


def clip_picture(net: CnnBuilder) -> None:
    """Append the image encoder of CLIP, ViT-B/32 (Radford et al., ICML 2021; openai/CLIP, clip/model.py)."""
    layers, width, heads = VITS["base"]
    net.conv("patches", width, 32, 32, 0, bias=False, norm=False, act=None)
    tokens = net.shape[1] * net.shape[2] + 1
    net.as_tokens(tokens, width)
    net.ride_along("first norm", net.batch * tokens * width, 7, parameters=2 * width)
    for _ in net.repeated(layers):
        block(net, net.batch, tokens, width, heads, 4 * width)
    net.norm("last norm", net.batch * tokens, width)
    net.first_token()
    net.dense("projection", net.batch, width, 512, bias=False, extra=2 * width)


def mixer(net: CnnBuilder, patch: int, layers: int, width: int, inner: tuple[int, int]) -> None:
    """Append MLP-Mixer (Tolstikhin et al., NeurIPS 2021, table 1): MLPs across patches and across channels."""
    net.conv("patches", width, patch, patch, 0, norm=False, act=None)
    tokens = net.shape[1] * net.shape[2]
    for _ in net.repeated(layers):
        for name, rows, length, hidden in (
            ("across patches", net.batch * width, tokens, inner[0]),
            ("across channels", net.batch * tokens, width, inner[1]),
        ):
            net.norm(f"{name} norm", net.batch * tokens, width)
            net.dense(f"{name} up", rows, length, hidden, extra=2 * width)
            net.activation(f"{name} gelu", rows * hidden, "exact gelu")
            net.dense(f"{name} down", rows, hidden, length)
            net.add(f"{name} add", net.batch * tokens * width)
    net.norm("last norm", net.batch * tokens, width)
    net.dense("classifier", net.batch, width, 1000, extra=2 * width)


# layers in the stages, width and heads of the first: Liu et al. 2021, section 3.3.
SWINS = {"tiny": ((2, 2, 6, 2), 96, 3), "small": ((2, 2, 18, 2), 96, 3), "base": ((2, 2, 18, 2), 128, 4)}


def swin(net: CnnBuilder, size: str, window: int = 7) -> None:
    """Append Swin (Liu et al., ICCV 2021): attention in windows, with a relative position table per block."""
    depths, width, heads = SWINS[size]
    net.conv("patches", width, 4, 4, 0, norm=False, act=None, extra=2 * width)
    side = net.shape[1]
    for stage, depth in enumerate(depths):
        if stage:
            side //= 2
            rows = net.batch * side * side
            net.norm(f"merge {stage} norm", rows, 4 * width)
            net.dense(f"merge {stage}", rows, 4 * width, 2 * width, bias=False, extra=8 * width)
            width, heads = 2 * width, 2 * heads
        if side % window:
            raise ArgumentError(
                f"network(): `image` must be a multiple of {32 * window} for a Swin transformer, whose windows tile "
                f"every stage, got a side of {side} at stage {stage + 1}. Write e.g. image={32 * window}"
            )
        rows, windows = net.batch * side * side, (side // window) ** 2
        for _ in net.repeated(depth):
            net.norm("attention norm", rows, width)
            net.dense("query, key, value", rows, width, 3 * width, extra=2 * width)
            table = (2 * window - 1) ** 2 * heads
            net.attention("attention", net.batch * windows, heads, window**2, window**2, width // heads, extra=table)
            net.dense("attention output", rows, width, width)
            net.add("attention add", rows * width)
            feed_forward(net, rows, width, 4 * width)
    net.norm("last norm", rows, width)
    net.dense("classifier", net.batch, width, 1000, extra=2 * width)


# blocks and widths of the stages: Liu et al. 2022, section 3.
CONVNEXTS = {
    "tiny": ((3, 3, 9, 3), (96, 192, 384, 768)),
    "small": ((3, 3, 27, 3), (96, 192, 384, 768)),
    "base": ((3, 3, 27, 3), (128, 256, 512, 1024)),
    "large": ((3, 3, 27, 3), (192, 384, 768, 1536)),
}


def convnext(net: CnnBuilder, size: str) -> None:
    """Append ConvNeXt (Liu et al., CVPR 2022): depthwise 7 × 7, normalisation, two pointwise layers, layer scale."""
    depths, widths = CONVNEXTS[size]
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        if stage:
            net.norm(f"downsample {stage} norm", net.elements // net.channels, net.channels)
            net.conv(f"downsample {stage}", width, 2, 2, 0, norm=False, act=None, extra=2 * net.channels)
        else:
            net.conv("stem", width, 4, 4, 0, norm=False, act=None, extra=2 * width)
        for _ in net.repeated(depth):
            net.conv("depthwise", width, 7, groups=width, norm=False, act=None, extra=2 * width)
            rows = net.elements // width
            net.norm("norm", rows, width)
            net.dense("pointwise up", rows, width, 4 * width)
            net.activation("gelu", 4 * rows * width, "exact gelu")
            net.dense("pointwise down", rows, 4 * width, width, extra=width)
            net.add("add", rows * width)
    net.global_pool()
    net.dense("classifier", net.batch, net.channels, 1000, extra=2 * net.channels)
