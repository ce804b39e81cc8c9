"""Single-stage detectors YOLOv5, YOLOv8 and YOLOX, in their published sizes."""

import math
from collections.abc import Callable, Sequence

from mlsys.errors import ArgumentError
from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape

# Depth and width multiples of each size, and version 8's limit on channels; version 5's largest size is deeper.
SIZES: dict[str, tuple[float, float, int]] = {
    "n": (0.33, 0.25, 1024),
    "s": (0.33, 0.50, 1024),
    "m": (0.67, 0.75, 768),
    "l": (1.00, 1.00, 512),
    "x": (1.00, 1.25, 512),
}
DEEPEST = {"x": 1.33}
# Depth and width multiples of the sizes of YOLOX: Megvii-BaseDetection/YOLOX, exps/default.
YOLOX = {
    "nano": (0.33, 0.25), "tiny": (0.33, 0.375), "s": (0.33, 0.50), "m": (0.67, 0.75), "l": (1.00, 1.00),
    "x": (1.33, 1.25),
}  # fmt: skip
CLASSES = 80
ConvOf = Callable[..., None]  # of a builder, a name, channels, kernel and stride
# Bins of the distribution by which version 8 predicts each side of a box.
BINS = 16


def _scales(depth: float, width: float, widest: float = math.inf) -> tuple[Callable[[int], int], Callable[[int], int]]:
    """Return the functions that scale nominal channels and repeats to a size."""
    return lambda channels: int(min(channels, widest) * width), lambda repeats: max(1, round(repeats * depth))


def silu_conv(
    net: CnnBuilder, name: str, out: int, kernel: int = 1, stride: int = 1, padding: int | None = None
) -> None:
    """Append a convolution with batch normalisation and SiLU."""
    net.conv(name, out, kernel, stride, padding, act="silu")


def concatenated(net: CnnBuilder, *shapes: Shape) -> None:
    """Concatenate images along their channels.

    Raises
    ------
    ArgumentError
        If heights or widths differ: an odd side was halved, rounded and doubled again.
    """
    if len({shape[1:] for shape in shapes}) > 1:
        sizes = " and ".join(f"{shape[1]} × {shape[2]}" for shape in shapes)
        raise ArgumentError(
            f"network(): the sides of `image` must be multiples of 32: after {len(net.operators)} operators, feature "
            f"maps of {sizes} cannot be concatenated. Give 320, 416 or 640, or leave `image` out for the usual size"
        )
    net.shape = (sum(shape[0] for shape in shapes), *shapes[0][1:])


def _separable(net: CnnBuilder, name: str, out: int, kernel: int = 3, stride: int = 1) -> None:
    """Append a depthwise separable convolution: depthwise, then 1 × 1, each with SiLU."""
    net.conv(f"{name} depthwise", net.channels, kernel, stride, groups=net.channels, act="silu")
    silu_conv(net, name, out)


def _csp(
    net: CnnBuilder, name: str, out: int, repeats: int, *, shortcut: bool = True, wide_conv: ConvOf = silu_conv
) -> None:
    """Append a cross-stage partial block: two halves, one of which passes through bottlenecks of 1 × 1 and 3 × 3."""
    into, half = net.shape, out // 2
    silu_conv(net, f"{name} one", half)
    shape = net.shape
    for index in range(repeats):
        silu_conv(net, f"{name} bottleneck {index} a", half)
        wide_conv(net, f"{name} bottleneck {index} b", half, 3)
        if shortcut:
            net.shortcut(f"{name} bottleneck {index}")
    net.shape = into
    silu_conv(net, f"{name} two", half)
    concatenated(net, shape, shape)
    silu_conv(net, f"{name} three", out)


def csp_fast(net: CnnBuilder, name: str, out: int, repeats: int, *, shortcut: bool = True) -> None:
    """Append version 8's block (C2f): bottlenecks of two 3 × 3, whose outputs are all concatenated."""
    half = out // 2
    silu_conv(net, f"{name} in", 2 * half)
    part = (half, *net.shape[1:])
    for index in range(repeats):
        net.shape = part
        silu_conv(net, f"{name} bottleneck {index} a", half, 3)
        silu_conv(net, f"{name} bottleneck {index} b", half, 3)
        if shortcut:
            net.shortcut(f"{name} bottleneck {index}")
    concatenated(net, *(part for _ in range(2 + repeats)))
    silu_conv(net, f"{name} out", out)


def pooled_thrice(net: CnnBuilder, out: int) -> None:
    """Append spatial pyramid pooling over 1, 5, 9 and 13 pixels (SPPF)."""
    half = net.channels // 2
    silu_conv(net, "pooling in", half)
    part = net.shape
    for _ in range(3):
        net.pool(5, 1, 2)
    concatenated(net, part, part, part, part)
    silu_conv(net, "pooling out", out)


def _up_and_down(
    net: CnnBuilder, kept: Sequence[Shape], wide: Callable[[int], int], deep: Callable[[int], int],
    wide_conv: ConvOf = silu_conv,
) -> list[Shape]:  # fmt: skip
    """Append the path aggregation network, up to finer grids and down again; return its three output shapes."""
    laterals = []
    for level, channels, earlier in ((4, 512, kept[2]), (3, 256, kept[1])):
        silu_conv(net, f"lateral {level}", wide(channels))
        laterals.append(net.shape)
        net.upsample()
        concatenated(net, net.shape, earlier)
        _csp(net, f"up {level}", wide(channels), deep(3), shortcut=False, wide_conv=wide_conv)
    shapes = [net.shape]
    for level, channels, lateral in ((4, 256, laterals[1]), (5, 512, laterals[0])):
        wide_conv(net, f"down again {level}", wide(channels), 3, 2)
        concatenated(net, net.shape, lateral)
        _csp(net, f"out {level}", wide(2 * channels), deep(3), shortcut=False, wide_conv=wide_conv)
        shapes.append(net.shape)
    return shapes


def yolo_v5(net: CnnBuilder, size: str) -> None:
    """Append YOLOv5 release 6: three anchors per cell on grids of stride 8, 16 and 32."""
    wide, deep = _scales(DEEPEST.get(size, SIZES[size][0]), SIZES[size][1])
    silu_conv(net, "stem", wide(64), 6, 2, 2)
    kept = []
    for level, (channels, repeats) in enumerate(((128, 3), (256, 6), (512, 9), (1024, 3)), start=2):
        silu_conv(net, f"down {level}", wide(channels), 3, 2)
        _csp(net, f"stage {level}", wide(channels), deep(repeats))
        kept.append(net.shape)
    pooled_thrice(net, wide(1024))
    shapes = _up_and_down(net, kept, wide, deep)
    for level, shape in enumerate(shapes, start=3):
        net.shape = shape
        net.conv(f"head {level}", 3 * (CLASSES + 5), 1, norm=False, act=None)


def yolo_v8(net: CnnBuilder, size: str) -> None:
    """Append YOLOv8: anchor-free, separate heads for boxes and classes, box sides predicted as distributions."""
    wide, deep = _scales(*SIZES[size])
    silu_conv(net, "stem", wide(64), 3, 2)
    kept = []
    for level, (channels, repeats) in enumerate(((128, 3), (256, 6), (512, 6), (1024, 3)), start=2):
        silu_conv(net, f"down {level}", wide(channels), 3, 2)
        csp_fast(net, f"stage {level}", wide(channels), deep(repeats))
        kept.append(net.shape)
    pooled_thrice(net, wide(1024))
    last = net.shape
    for level, channels, earlier in ((4, 512, kept[2]), (3, 256, kept[1])):
        net.upsample()
        concatenated(net, net.shape, earlier)
        csp_fast(net, f"up {level}", wide(channels), deep(3), shortcut=False)
        kept[level - 2] = net.shape
    shapes = [net.shape]
    for level, channels, lateral in ((4, 256, kept[2]), (5, 512, last)):
        silu_conv(net, f"down again {level}", wide(channels), 3, 2)
        concatenated(net, net.shape, lateral)
        csp_fast(net, f"out {level}", wide(2 * channels), deep(3), shortcut=False)
        shapes.append(net.shape)
    boxes, classes = max(16, shapes[0][0] // 4, 4 * BINS), max(shapes[0][0], min(CLASSES, 100))
    for level, shape in enumerate(shapes, start=3):
        for name, inner, outputs in (("boxes", boxes, 4 * BINS), ("classes", classes, CLASSES)):
            net.shape = shape
            silu_conv(net, f"{name} {level} a", inner, 3)
            silu_conv(net, f"{name} {level} b", inner, 3)
            net.conv(f"{name} {level}", outputs, 1, norm=False, act=None)


def yolox(net: CnnBuilder, size: str) -> None:
    """Append YOLOX (Ge et al. 2021): anchor-free, separate heads for boxes and classes.

    The nano size has depthwise separable convolutions instead of 3 × 3 ones, except in the stem.
    """
    wide, deep = _scales(*YOLOX[size])
    wide_conv: ConvOf = _separable if size == "nano" else silu_conv
    net.shape = (
        4 * net.channels,
        net.shape[1] // 2,
        net.shape[2] // 2,
    )  # 2 × 2 pixels become channels (space to depth)
    silu_conv(net, "stem", wide(64), 3)
    kept = []
    for level, (channels, repeats) in enumerate(((128, 3), (256, 9), (512, 9), (1024, 3)), start=2):
        wide_conv(net, f"down {level}", wide(channels), 3, 2)
        if level == 5:
            pooled_thrice(net, wide(channels))
        _csp(net, f"stage {level}", wide(channels), deep(repeats), shortcut=level < 5, wide_conv=wide_conv)
        kept.append(net.shape)
    shapes = _up_and_down(net, kept, wide, deep, wide_conv)
    for level, shape in enumerate(shapes, start=3):
        net.shape = shape
        silu_conv(net, f"head {level}", wide(256))
        stem = net.shape
        for name, outputs in (("classes", (CLASSES,)), ("boxes", (4, 1))):
            net.shape = stem
            wide_conv(net, f"{name} {level} a", wide(256), 3)
            wide_conv(net, f"{name} {level} b", wide(256), 3)
            inner = net.shape
            for index, count in enumerate(outputs):
                net.shape = inner
                net.conv(f"{name} {level} {index}", count, 1, norm=False, act=None)
