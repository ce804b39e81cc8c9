"""Single-stage detectors with attention: YOLOv10 and YOLO11."""

from functools import partial

from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape
from mlsys.workloads.zoo.yolo import BINS, CLASSES, concatenated, csp_fast, pooled_thrice, silu_conv

# Depth and width multiples of each size of YOLO11, and its limit on channels.
SIZES_11: dict[str, tuple[float, float, int]] = {
    "n": (0.50, 0.25, 1024), "s": (0.50, 0.50, 1024), "m": (0.50, 1.00, 512), "l": (1.00, 1.00, 512),
    "x": (1.00, 1.50, 512),
}  # fmt: skip


def _depthwise(net: CnnBuilder, name: str, kernel: int, stride: int = 1, act: str | None = "silu") -> None:
    net.conv(name, net.channels, kernel, stride, groups=net.channels, act=act)


def _attention(net: CnnBuilder, name: str) -> None:
    """Append attention over all pixels: heads of 64 values and 32 keys, with a depthwise convolution for positions."""
    channels, height, width = net.shape
    heads, pixels = channels // 64, height * width
    start = net.shape
    net.conv(f"{name} qkv", 2 * channels, 1, act=None)
    net.batched(f"{name} scores", pixels, pixels, 32, net.batch * heads)
    net.ride_along(f"{name} softmax", net.batch * heads * pixels * pixels, 5)
    net.batched(f"{name} values", pixels, 64, pixels, net.batch * heads)
    net.shape = start
    _depthwise(net, f"{name} positions", 3, act=None)
    net.shortcut(f"{name} positions")
    net.conv(f"{name} output", channels, 1, act=None)
    net.shortcut(name)


def _attending(net: CnnBuilder, repeats: int = 1) -> None:
    """Append a cross-stage partial block, one half of which passes through attention and feed-forward layers."""
    whole = net.shape
    silu_conv(net, "attention in", whole[0])
    half = net.shape = (whole[0] // 2, *whole[1:])
    for index in range(repeats):
        _attention(net, f"attention {index}")
        silu_conv(net, f"feed-forward {index} in", 2 * half[0])
        net.conv(f"feed-forward {index} out", half[0], 1, act=None)
        net.shortcut(f"feed-forward {index}")
    net.shape = whole
    silu_conv(net, "attention out", whole[0])


def _bottleneck(net: CnnBuilder, name: str, hidden: int) -> None:
    out = net.channels
    silu_conv(net, f"{name} a", hidden, 3)
    silu_conv(net, f"{name} b", out, 3)
    net.shortcut(name)


def _csp_small(net: CnnBuilder, name: str) -> None:
    """Append a cross-stage partial block of half the width with two bottlenecks of two 3 × 3."""
    start, half = net.shape, net.channels // 2
    silu_conv(net, f"{name} one", half)
    for index in range(2):
        _bottleneck(net, f"{name} bottleneck {index}", half)
    part = net.shape
    net.shape = start
    silu_conv(net, f"{name} two", half)
    concatenated(net, part, part)
    silu_conv(net, f"{name} three", start[0])


def _csp_11(net: CnnBuilder, name: str, out: int, repeats: int, nested: bool, share: float = 0.5) -> None:
    """Append YOLO11's block: that of version 8 with bottlenecks of half the width, or with nested blocks."""
    half = int(out * share)
    silu_conv(net, f"{name} in", 2 * half)
    part = net.shape = (half, *net.shape[1:])
    for index in range(repeats):
        if nested:
            _csp_small(net, f"{name} block {index}")
        else:
            _bottleneck(net, f"{name} bottleneck {index}", half // 2)
    concatenated(net, *(part for _ in range(2 + repeats)))
    silu_conv(net, f"{name} out", out)


def _light_heads(net: CnnBuilder, shapes: list[Shape]) -> None:
    """Append box heads as in version 8, and class heads of depthwise and 1 × 1 convolutions."""
    boxes, classes = max(16, shapes[0][0] // 4, 4 * BINS), max(shapes[0][0], min(CLASSES, 100))
    for level, shape in enumerate(shapes, start=3):
        net.shape = shape
        silu_conv(net, f"boxes {level} a", boxes, 3)
        silu_conv(net, f"boxes {level} b", boxes, 3)
        net.conv(f"boxes {level}", 4 * BINS, 1, norm=False, act=None)
        net.shape = shape
        for part in "ab":
            _depthwise(net, f"classes {level} {part} depthwise", 3)
            silu_conv(net, f"classes {level} {part}", classes)
        net.conv(f"classes {level}", CLASSES, 1, norm=False, act=None)


def yolo_11(net: CnnBuilder, size: str) -> None:
    """Append YOLO11 (ultralytics, cfg/models/11/yolo11.yaml): anchor-free, attention on the coarsest grid."""
    depth, width, widest = SIZES_11[size]
    nested, repeats = size in "mlx", max(1, round(2 * depth))
    block = partial(_csp_11, net, repeats=repeats)

    def wide(channels: int) -> int:
        return int(min(channels, widest) * width)

    silu_conv(net, "stem", wide(64), 3, 2)
    kept = []
    for level, (into, out, share) in enumerate(
        ((128, 256, 0.25), (256, 512, 0.25), (512, 512, 0.5), (1024, 1024, 0.5)), start=2
    ):
        silu_conv(net, f"down {level}", wide(into), 3, 2)
        block(f"stage {level}", wide(out), nested=nested or level > 3, share=share)
        kept.append(net.shape)
    pooled_thrice(net, wide(1024))
    _attending(net, repeats)
    last = net.shape
    for level, channels, earlier in ((4, 512, kept[2]), (3, 256, kept[1])):
        net.upsample()
        concatenated(net, net.shape, earlier)
        block(f"up {level}", wide(channels), nested=nested)
        kept[level - 2] = net.shape
    shapes = [net.shape]
    for level, channels, earlier in ((4, 256, kept[2]), (5, 512, last)):
        silu_conv(net, f"down again {level}", wide(channels), 3, 2)
        concatenated(net, net.shape, earlier)
        block(f"out {level}", wide(2 * channels), nested=nested or level == 5)
        shapes.append(net.shape)
    _light_heads(net, shapes)


def _down_apart(net: CnnBuilder, name: str, out: int) -> None:
    """Append YOLOv10's decoupled downsampling: channels by a 1 × 1, resolution by a depthwise convolution."""
    silu_conv(net, f"{name} channels", out)
    _depthwise(net, f"{name} pixels", 3, 2, act=None)


def _compact(net: CnnBuilder, name: str, out: int) -> None:
    """Append YOLOv10's last block as deployed: one inverted bottleneck with depthwise convolutions up to 7 × 7."""
    half = out // 2
    silu_conv(net, f"{name} in", 2 * half)
    part = net.shape = (half, *net.shape[1:])
    _depthwise(net, f"{name} depthwise a", 3)
    silu_conv(net, f"{name} expand", 2 * half)
    _depthwise(net, f"{name} depthwise b", 7)
    silu_conv(net, f"{name} project", half)
    _depthwise(net, f"{name} depthwise c", 3)
    net.shortcut(f"{name} compact")
    concatenated(net, part, part, part)
    silu_conv(net, f"{name} out", out)


def yolo_v10_nano(net: CnnBuilder) -> None:
    """Append YOLOv10-N (Wang et al. 2024, arXiv:2405.14458) as deployed, with the NMS-free one-to-one head."""
    silu_conv(net, "stem", 16, 3, 2)
    kept = []
    for level, (out, repeats) in enumerate(((32, 1), (64, 2), (128, 2), (256, 1)), start=2):
        if level < 4:
            silu_conv(net, f"down {level}", out, 3, 2)
        else:
            _down_apart(net, f"down {level}", out)
        csp_fast(net, f"stage {level}", out, repeats)
        kept.append(net.shape)
    pooled_thrice(net, 256)
    _attending(net)
    last = net.shape
    for level, out, earlier in ((4, 128, kept[2]), (3, 64, kept[1])):
        net.upsample()
        concatenated(net, net.shape, earlier)
        csp_fast(net, f"up {level}", out, 1, shortcut=False)
        kept[level - 2] = net.shape
    shapes = [net.shape]
    silu_conv(net, "down again 4", 64, 3, 2)
    concatenated(net, net.shape, kept[2])
    csp_fast(net, "out 4", 128, 1, shortcut=False)
    shapes.append(net.shape)
    _down_apart(net, "down again 5", 128)
    concatenated(net, net.shape, last)
    _compact(net, "out 5", 256)
    shapes.append(net.shape)
    _light_heads(net, shapes)
