"""MaxViT: inverted bottlenecks, and attention within windows and across a grid of the image."""

from mlsys.errors import ArgumentError
from mlsys.workloads.zoo.cnn_builder import CnnBuilder
from mlsys.workloads.zoo.encoders import feed_forward

# Blocks and widths of the stages: huggingface/pytorch-image-models, timm/models/maxxvit.py, ``maxvit_*_tf``.
MAXVITS = {"base": ((2, 6, 14, 2), (96, 192, 384, 768))}
STEM, OF_A_HEAD, EXPANDED = 64, 32, 4


def _bottleneck(net: CnnBuilder, label: str, out: int, stride: int) -> None:
    """Append a pre-normalised inverted bottleneck with squeeze and excitation to a quarter of its outputs."""
    start, into = net.here, net.channels
    net.batch_norm(f"{label} first norm")
    net.conv(f"{label} expand", EXPANDED * out, 1, act="gelu")
    net.conv(f"{label} depthwise", EXPANDED * out, 3, stride, "same", groups=EXPANDED * out, act="gelu")
    net.excite(label, out // 4, "silu")
    net.conv(f"{label} project", out, 1, norm=False, act=None)
    body = net.here
    net.go_to(start)
    if stride > 1:
        net.pool(2, stride, "same", name=f"{label} shortcut pool")
    if into != out:
        net.conv(f"{label} shortcut", out, 1, norm=False, act=None)
    net.shortcut(label, None, body, net.here)


def _attend(net: CnnBuilder, label: str, window: int) -> None:
    """Append attention among ``window``² tokens, with a relative position table, and a feed-forward layer."""
    width, tokens = net.channels, net.shape[1] * net.shape[2]
    rows, heads = net.batch * tokens, width // OF_A_HEAD
    net.norm(f"{label} norm", rows, width)
    net.dense(f"{label} query, key, value", rows, width, 3 * width, extra=2 * width)
    table = (2 * window - 1) ** 2 * heads
    net.attention(label, rows // window**2, heads, window**2, window**2, OF_A_HEAD, extra=table)
    net.dense(f"{label} output", rows, width, width)
    net.add(f"{label} add", rows * width)
    feed_forward(net, rows, width, EXPANDED * width)


def maxvit(net: CnnBuilder, size: str, window: int = 7) -> None:
    """Append MaxViT (Tu et al., ECCV 2022): each block has a convolution, then window and grid attention."""
    depths, widths = MAXVITS[size]
    if any(side % (32 * window) for side in net.shape[1:]):
        raise ArgumentError(
            f"network(): `image` must be a multiple of {32 * window} for a MaxViT, whose windows tile every stage, "
            f"got {net.shape[1]} × {net.shape[2]}. Write e.g. image={32 * window}"
        )
    net.conv("stem 1", STEM, 3, 2, "same", bias=True, act="gelu")
    net.conv("stem 2", STEM, 3, 1, "same", norm=False, act=None)
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=True), start=1):
        for block in range(1, depth + 1):
            label = f"block {stage}.{block}"
            _bottleneck(net, label, width, 2 if block == 1 else 1)
            _attend(net, f"{label} windows", window)
            _attend(net, f"{label} grid", window)
    width = net.channels
    net.global_pool()
    net.norm("last norm", net.batch, width)
    net.dense("hidden", net.batch, width, width, extra=2 * width)
    net.activation("hidden tanh", net.batch * width, "tanh")
    net.dense("classifier", net.batch, width, 1000)
