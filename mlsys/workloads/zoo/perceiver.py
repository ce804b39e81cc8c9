"""Perceiver IO: a few latent vectors that look at every pixel once, and then at each other."""

from mlsys.workloads.zoo.picture import Picture
from mlsys.workloads.zoo.tape import Tape

# Jaegle et al. 2022, ICLR, ImageNet; huggingface/transformers, models/perceiver, of deepmind/vision-perceiver-*.
LATENTS, WIDTH, BLOCKS, LAYERS, HEADS, CLASSES = 512, 1024, 8, 6, 8, 1000
# Sines and cosines of 64 bands of each side, and the place itself; or a vector of each place that is learned.
FOURIER, LEARNED = 2 * 2 * 64 + 2, 256


def perceiver(net: Picture, learned: bool) -> None:
    """Draw the classifier whose pixels come with their place: as waves (``learned`` false), or as it was learned."""
    batch, places = net.batch, net.shape[1] * net.shape[2]
    channels = net.channels + FOURIER
    held = LATENTS * WIDTH
    if learned:
        channels = 2 * LEARNED
        net.conv("pixels", LEARNED, 1, norm=False, act=None)
        # As many numbers as there are places, and their projection, which is the same for all pictures of a batch.
        net.dense("places", batch * places, LEARNED, LEARNED, extra=places * LEARNED)
    _attend(net, "pixels attention", batch, (LATENTS, WIDTH), (places, channels), (1, channels), held)
    for block in range(BLOCKS):
        first = len(net.operators)
        for _ in range(LAYERS):
            _attend(net, "attention", batch, (LATENTS, WIDTH), (LATENTS, WIDTH), (HEADS, WIDTH), 0)
        if block:  # all blocks have the weights of the first
            net.operators[first:] = [net.without_parameters(each) for each in net.operators[first:]]
    _attend(net, "class attention", batch, (1, WIDTH), (LATENTS, WIDTH), (1, WIDTH), WIDTH)
    net.dense("classes", batch, WIDTH, CLASSES)


def _attend(
    tape: Tape, name: str, batch: int, asks: tuple[int, int], seen: tuple[int, int], shape: tuple[int, int], held: int
) -> None:
    """Append attention of so many vectors of a width to others, in so many heads and channels; and feed forward.

    ``held`` parameters are what asks, where it is learned.
    """
    (queries, width), (keys, wide), (heads, inner) = asks, seen, shape
    rows, others = batch * queries, batch * keys
    tape.norm(f"{name} norm", rows, width)
    tape.dense(f"{name} query", rows, width, inner, extra=2 * width + held)
    if seen != asks:
        tape.norm(f"{name} norm of what is seen", others, wide)
    tape.dense(f"{name} key, value", others, wide, 2 * inner, extra=0 if seen == asks else 2 * wide)
    tape.attention(name, batch, heads, queries, keys, inner // heads)
    tape.dense(f"{name} output", rows, inner, width)
    tape.add(f"{name} add", rows * width)
    tape.norm(f"{name} feed-forward norm", rows, width)
    tape.dense(f"{name} feed-forward up", rows, width, width, extra=2 * width)
    tape.activation(f"{name} feed-forward gelu", rows * width, "exact gelu")
    tape.dense(f"{name} feed-forward down", rows, width, width)
    tape.add(f"{name} feed-forward add", rows * width)
