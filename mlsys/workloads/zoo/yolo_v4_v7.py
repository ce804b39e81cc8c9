"""Purely convolutional single-stage detectors: YOLOv4-tiny, YOLOv6, YOLOv7-tiny, and NanoDet on RepVGG."""

from dataclasses import replace
from functools import partial

from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape
from mlsys.workloads.zoo.yolo import CLASSES, concatenated

ANCHORED = 3 * (CLASSES + 5)  # outputs of three anchors per cell


def _leaky(net: CnnBuilder, name: str, out: int, kernel: int = 1, stride: int = 1) -> None:
    net.conv(name, out, kernel, stride, act="leaky relu")


def yolo_v4_tiny(net: CnnBuilder) -> None:
    """Append YOLOv4-tiny (Wang et al. 2021, CVPR; WongKinYiu/ScaledYOLOv4, cfg/yolov4-tiny.cfg)."""
    _leaky(net, "conv 0", 32, 3, 2)
    _leaky(net, "conv 1", 64, 3, 2)
    fine = net.shape
    for stage, width in enumerate((64, 128, 256), start=1):
        _leaky(net, f"stage {stage} in", width, 3)
        whole = net.shape
        half = net.shape = (width // 2, *whole[1:])
        _leaky(net, f"stage {stage} a", width // 2, 3)
        _leaky(net, f"stage {stage} b", width // 2, 3)
        concatenated(net, half, half)
        _leaky(net, f"stage {stage} out", width)
        fine = net.shape
        concatenated(net, whole, fine)
        net.pool(2, 2)
    _leaky(net, "last", 512, 3)
    _leaky(net, "neck", 256)
    neck = net.shape
    _leaky(net, "coarse", 512, 3)
    net.conv("coarse head", ANCHORED, 1, norm=False, act=None)
    net.shape = neck
    _leaky(net, "lateral", 128)
    net.upsample()
    concatenated(net, net.shape, fine)
    _leaky(net, "fine", 256, 3)
    net.conv("fine head", ANCHORED, 1, norm=False, act=None)


def _layers_joined(net: CnnBuilder, name: str, width: int, out: int) -> None:
    """Append YOLOv7-tiny's block: two 1 × 1 and, after the second, two 3 × 3, all concatenated."""
    start = net.shape
    _leaky(net, f"{name} a", width)
    net.shape = start
    _leaky(net, f"{name} b", width)
    _leaky(net, f"{name} c", width, 3)
    _leaky(net, f"{name} d", width, 3)
    concatenated(net, *(net.shape for _ in range(4)))
    _leaky(net, f"{name} out", out)


def yolo_v7_tiny(net: CnnBuilder) -> None:
    """Append YOLOv7-tiny (Wang et al. 2023, CVPR; WongKinYiu/yolov7, cfg/deploy/yolov7-tiny.yaml), 80 classes."""
    _leaky(net, "conv 0", 32, 3, 2)
    _leaky(net, "conv 1", 64, 3, 2)
    kept = []
    for stage, width in enumerate((32, 64, 128, 256), start=2):
        if stage > 2:
            net.pool(2, 2)
        _layers_joined(net, f"stage {stage}", width, 2 * width)
        kept.append(net.shape)
    coarse = net.shape
    _leaky(net, "pooling side", 256)
    net.shape = coarse
    _leaky(net, "pooling in", 256)
    part = net.shape
    for kernel in (5, 9, 13):
        net.shape = part
        net.pool(kernel, 1, kernel // 2)
    concatenated(net, part, part, part, part)
    _leaky(net, "pooling out", 256)
    concatenated(net, part, part)
    _leaky(net, "pooling last", 256)
    ways = [net.shape]
    for level, width, earlier in ((4, 64, kept[2]), (3, 32, kept[1])):
        _leaky(net, f"lateral {level}", 2 * width)
        net.upsample()
        above = net.shape
        net.shape = earlier
        _leaky(net, f"route {level}", 2 * width)
        concatenated(net, net.shape, above)
        _layers_joined(net, f"up {level}", width, 2 * width)
        ways.append(net.shape)
    ends = [net.shape]
    for level, width, earlier in ((4, 64, ways[1]), (5, 128, ways[0])):
        _leaky(net, f"down again {level}", 2 * width, 3, 2)
        concatenated(net, net.shape, earlier)
        _layers_joined(net, f"out {level}", width, 2 * width)
        ends.append(net.shape)
    for level, end in enumerate(ends, start=3):
        net.shape = end
        _leaky(net, f"wide {level}", 2 * end[0], 3)
        net.conv(f"head {level}", ANCHORED, 1, norm=False, act=None)


def _repeated(net: CnnBuilder, name: str, out: int, times: int) -> None:
    """Append 3 × 3 convolutions into which the other branches of RepVGG are folded."""
    for index in range(times):
        net.conv(f"{name}.{index}", out, 3, norm=False)


def _transposed(net: CnnBuilder, name: str) -> None:
    """Append a transposed 2 × 2 convolution, which doubles height and width: four products per pixel."""
    channels, height, width = net.shape
    net.conv(name, 4 * channels, 1, norm=False, act=None)
    net.operators[-1] = replace(net.operators[-1], parameters=4 * channels**2 + channels)
    net.shape = (channels, 2 * height, 2 * width)


def yolo_v6(net: CnnBuilder, width: float) -> None:
    """Append YOLOv6-N or -S of release 0.2 (Li et al. 2022, arXiv:2209.02976) as deployed, with branches folded."""

    def wide(channels: int) -> int:
        return int(channels * width)

    net.conv("stem", wide(64), 3, 2, norm=False)
    kept: list[Shape] = []
    for level, (channels, times) in enumerate(((128, 2), (256, 4), (512, 6), (1024, 2)), start=2):
        net.conv(f"down {level}", wide(channels), 3, 2, norm=False)
        _repeated(net, f"stage {level}", wide(channels), times)
        kept.append(net.shape)
    half = wide(512)
    net.conv("pooling in", half, 1)
    part = net.shape
    for _ in range(3):
        net.pool(5, 1, 2)
    concatenated(net, part, part, part, part)
    net.conv("pooling out", wide(1024), 1)
    laterals = []
    for level, channels, earlier in ((4, 256, kept[2]), (3, 128, kept[1])):
        net.conv(f"lateral {level}", wide(channels), 1)
        laterals.append(net.shape)
        _transposed(net, f"up {level}")
        concatenated(net, net.shape, earlier)
        _repeated(net, f"up {level}", wide(channels), 4)
    ends = [net.shape]
    for level, channels, lateral in ((4, 128, laterals[1]), (5, 256, laterals[0])):
        net.conv(f"down again {level}", wide(channels), 3, 2)
        concatenated(net, net.shape, lateral)
        _repeated(net, f"out {level}", wide(2 * channels), 4)
        ends.append(net.shape)
    head = partial(net.conv, act="silu")
    for level, end in enumerate(ends, start=3):
        net.shape = end
        head(f"head {level}", end[0], 1)
        for name, outputs in (("classes", CLASSES), ("boxes", 4)):
            head(f"{name} {level} a", end[0], 3)
            net.conv(f"{name} {level}", outputs, 1, norm=False, act=None)
            net.shape = end


# The last stage of RepVGG in Hailo's model zoo: with 512 channels, not the paper's 1,280, the published totals are
# reproduced for both A0 and A1.
NANODET_LAST = 512
# Widths of RepVGG's first stages: Ding et al. 2021, CVPR, table 2.
REPVGG = {"a0": (48, 48, 96, 192), "a1": (64, 64, 128, 256)}


def nanodet_repvgg(net: CnnBuilder, size: str) -> None:
    """Append NanoDet on RepVGG (RangiLyu/nanodet, config/RepVGG), branches folded; 80 classes, 11 bins per side."""
    stem, *widths = REPVGG[size]
    net.conv("stem", stem, 3, 2, norm=False)
    grids = []
    for stage, (width, times) in enumerate(zip((*widths, NANODET_LAST), (2, 4, 14, 1), strict=True), start=1):
        net.conv(f"down {stage}", width, 3, 2, norm=False)
        _repeated(net, f"stage {stage}", width, times - 1)
        grids.append(net.shape)
    for level, grid in enumerate(grids[1:], start=3):
        net.shape = grid
        net.conv(f"lateral {level}", 128, 1, norm=False, act=None)
        _repeated(net, f"head {level}", 128, 2)
        net.conv(f"head {level}", CLASSES + 4 * 11, 1, norm=False, act=None)
