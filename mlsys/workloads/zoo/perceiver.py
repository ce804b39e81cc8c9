"""Perceiver IO: a few latent vectors cross-attend to all pixels once, then attend to each other."""

from mlsys.workloads.zoo.cnn_builder import CnnBuilder
from mlsys.workloads.zoo.layer_builder import LayerBuilder

# Jaegle et al. 2022, ICLR, ImageNet; huggingface/transformers, models/perceiver, of deepmind/vision-perceiver-*.
LATENTS, WIDTH, BLOCKS, LAYERS, HEADS, CLASSES = 512, 1024, 8, 6, 8, 1000
# Sines and cosines of 64 frequency bands per axis, and the position itself; or a learned vector per position.
FOURIER, LEARNED = 2 * 2 * 64 + 2, 256


def perceiver(net: CnnBuilder, learned: bool) -> None:
    """Append the classifier, with learned position embeddings or (``learned`` false) Fourier features."""
    batch, pixels = net.batch, net.shape[1] * net.shape[2]
    channels = net.channels + FOURIER
    latents = LATENTS * WIDTH
    if learned:
        channels = 2 * LEARNED
        net.conv("pixels", LEARNED, 1, norm=False, act=None)
        # One embedding per pixel position, and its projection, which all images of a batch share.
        net.dense("places", batch * pixels, LEARNED, LEARNED, extra=pixels * LEARNED)
    _attend(net, "pixels attention", batch, (LATENTS, WIDTH), (pixels, channels), (1, channels), latents)
    for block in range(BLOCKS):
        first = len(net.operators)
        for _ in range(LAYERS):
            _attend(net, "attention", batch, (LATENTS, WIDTH), (LATENTS, WIDTH), (HEADS, WIDTH), 0)
        if block:  # all blocks share the weights of the first
            net.operators[first:] = [net.without_parameters(each) for each in net.operators[first:]]
    _attend(net, "class attention", batch, (1, WIDTH), (LATENTS, WIDTH), (1, WIDTH), WIDTH)
    net.dense("classes", batch, WIDTH, CLASSES)


def _attend(
    builder: LayerBuilder, name: str, batch: int, target: tuple[int, int], source: tuple[int, int],
    shape: tuple[int, int], learned: int,
) -> None:  # fmt: skip
    """Append attention of ``target`` to ``source``, each (vectors, width), and a feed-forward layer.

    ``shape`` is (heads, channels of all heads); ``learned`` the parameters of learned target vectors.
    """
    (queries, width), (keys, wide), (heads, inner) = target, source, shape
    rows, others = batch * queries, batch * keys
    builder.norm(f"{name} norm", rows, width)
    builder.dense(f"{name} query", rows, width, inner, extra=2 * width + learned)
    if source != target:
        builder.norm(f"{name} norm of what is seen", others, wide)
    builder.dense(f"{name} key, value", others, wide, 2 * inner, extra=0 if source == target else 2 * wide)
    builder.attention(name, batch, heads, queries, keys, inner // heads)
    builder.dense(f"{name} output", rows, inner, width)
    builder.add(f"{name} add", rows * width)
    builder.norm(f"{name} feed-forward norm", rows, width)
    builder.dense(f"{name} feed-forward up", rows, width, width, extra=2 * width)
    builder.activation(f"{name} feed-forward gelu", rows * width, "exact gelu")
    builder.dense(f"{name} feed-forward down", rows, width, width)
    builder.add(f"{name} feed-forward add", rows * width)
