"""Image diffusion networks: the U-Nets of Stable Diffusion, and the decoder of their latents."""

from dataclasses import dataclass

from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape

TEXT_TOKENS = 77


@dataclass(frozen=True)
class Denoiser:
    """The sizes of a diffusers U-Net (unet_2d_condition.py) with two residual blocks per level.

    Attributes
    ----------
    widths
        Channels of each level.
    blocks
        Transformer blocks after each residual block of a level.
    text
        Width of the text tokens that it attends to.
    added
        Width of the conditioning vector besides text and time step; 0 for none.
    heads
        Heads of every attention; 0 for heads of width 64.
    """

    widths: tuple[int, ...]
    blocks: tuple[int, ...]
    text: int
    added: int = 0
    heads: int = 0


# The configurations published with the weights (unet/config.json). The first version's
# ``attention_head_dim`` of 8 is the number of heads: unet_2d_condition.py says so of all such configurations.
DENOISERS = {
    "sd_v1": Denoiser((320, 640, 1280, 1280), (1, 1, 1, 0), 768, heads=8),
    "sd_v2": Denoiser((320, 640, 1280, 1280), (1, 1, 1, 0), 1024),
    "sdxl": Denoiser((320, 640, 1280), (0, 2, 10), 2048, 2816),
}
# Width of the time-step embedding.
TIME = 1280


def _conv(net: CnnBuilder, name: str, out: int, kernel: int = 3, stride: int = 1) -> None:
    net.conv(name, out, kernel, stride, norm=False, act=None)


def _normed(net: CnnBuilder, name: str, act: bool = True) -> None:
    net.norm_of_whole(f"{name} norm", net.elements, 2 * net.channels)
    if act:
        net.activation(f"{name} silu", net.elements, "silu")


def _residual(net: CnnBuilder, name: str, out: int, timed: bool = True) -> None:
    """Append ``ResnetBlock2D`` of diffusers' resnet.py; if ``timed``, it adds a projected time-step embedding."""
    start = net.shape
    _normed(net, f"{name} a")
    _conv(net, f"{name} a", out)
    if timed:
        net.activation(f"{name} time silu", net.batch * TIME, "silu")
        net.dense(f"{name} time", net.batch, TIME, out)
        net.ride_along(f"{name} time add", net.elements, 1)
    _normed(net, f"{name} b")
    _conv(net, f"{name} b", out)
    if start[0] != out:
        net.shape = start
        _conv(net, f"{name} shortcut", out, 1)
    net.shortcut(name)
    net.ride_along(f"{name} scale", net.elements, 1)


def _attending(net: CnnBuilder, name: str, repeats: int, shape: Denoiser) -> None:
    """Append transformer blocks: self-attention over pixels, cross-attention to the text, a gated feed-forward."""
    width, pixels = net.channels, net.shape[1] * net.shape[2]
    rows, heads = net.batch * pixels, shape.heads or width // 64
    _normed(net, name, act=False)
    net.dense(f"{name} in", rows, width, width)
    for _ in net.repeated(repeats):
        for kind, keys, key_width in (("self", pixels, width), ("text", TEXT_TOKENS, shape.text)):
            net.norm(f"{name} {kind} norm", rows, width)
            net.dense(f"{name} {kind} query", rows, width, width, bias=False, extra=2 * width)
            net.dense(f"{name} {kind} key and value", net.batch * keys, key_width, 2 * width, bias=False)
            net.attention(f"{name} {kind} attention", net.batch, heads, pixels, keys, width // heads)
            net.dense(f"{name} {kind} output", rows, width, width)
            net.add(f"{name} {kind} add", rows * width)
        net.norm(f"{name} inner norm", rows, width)
        net.dense(f"{name} inner", rows, width, 8 * width, extra=2 * width)
        net.activation(f"{name} gate", rows * 4 * width, "exact gelu", inputs=2)
        net.dense(f"{name} outer", rows, 4 * width, width)
        net.add(f"{name} outer add", rows * width)
    net.dense(f"{name} out", rows, width, width)
    net.add(f"{name} add", rows * width)


def denoiser(net: CnnBuilder, name: str) -> None:
    """Append one denoising step of a U-Net (Rombach et al. 2022, CVPR; Podell et al. 2023, arXiv:2307.01952)."""
    shape = DENOISERS[name]
    for embedding, width in (("time", shape.widths[0]), *((("added", shape.added),) if shape.added else ())):
        net.dense(f"{embedding} a", net.batch, width, TIME)
        net.activation(f"{embedding} silu", net.batch * TIME, "silu")
        net.dense(f"{embedding} b", net.batch, TIME, TIME)
    _conv(net, "first", shape.widths[0])
    kept: list[Shape] = [net.shape]
    for level, (width, blocks) in enumerate(zip(shape.widths, shape.blocks, strict=True)):
        for index in (0, 1):
            _residual(net, f"down {level}.{index}", width)
            if blocks:
                _attending(net, f"down {level}.{index} transformer", blocks, shape)
            kept.append(net.shape)
        if level < len(shape.widths) - 1:
            _conv(net, f"down {level} smaller", width, 3, 2)
            kept.append(net.shape)
    _residual(net, "middle a", net.channels)
    _attending(net, "middle transformer", shape.blocks[-1] or 1, shape)
    _residual(net, "middle b", net.channels)
    for level in reversed(range(len(shape.widths))):
        width, blocks = shape.widths[level], shape.blocks[level]
        for index in range(3):
            net.shape = (net.channels + kept.pop()[0], *net.shape[1:])
            _residual(net, f"up {level}.{index}", width)
            if blocks:
                _attending(net, f"up {level}.{index} transformer", blocks, shape)
        if level:
            net.shape = (
                net.channels,
                *kept[-1][1:],
            )  # the size of the skip connection it joins: twice as large, or one less
            _conv(net, f"up {level} larger", width)
    _normed(net, "last")
    _conv(net, "last", 4)


def latent_decoder(net: CnnBuilder) -> None:
    """Append the decoder from latents to an image with sides eight times as long (diffusers, autoencoder_kl.py)."""
    _conv(net, "unquantised", 4, 1)
    _conv(net, "first", 512)
    _residual(net, "middle a", 512, timed=False)
    pixels = net.shape[1] * net.shape[2]
    rows = net.batch * pixels
    _normed(net, "attention", act=False)
    net.dense("attention query, key and value", rows, 512, 3 * 512)
    net.attention("attention", net.batch, 1, pixels, pixels, 512)
    net.dense("attention output", rows, 512, 512)
    net.add("attention add", rows * 512)
    _residual(net, "middle b", 512, timed=False)
    for level, width in enumerate((512, 512, 256, 128)):
        for index in range(3):
            _residual(net, f"up {level}.{index}", width, timed=False)
        if level < 3:
            net.upsample()
            _conv(net, f"up {level} larger", width)
    _normed(net, "last")
    _conv(net, "last", 3)
