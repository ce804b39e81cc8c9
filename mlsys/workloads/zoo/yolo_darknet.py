"""Single-stage detectors of Darknet: YOLOv3, YOLOv3-tiny, YOLOv3-SPP and YOLOv4."""

from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape
from mlsys.workloads.zoo.yolo import concatenated
from mlsys.workloads.zoo.yolo_v4_v7 import ANCHORED

_LEAKY = "leaky relu"
# Width and residual blocks of each stage of Darknet-53; each stage halves the resolution.
STAGES = ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4))


def _conv(net: CnnBuilder, name: str, out: int, kernel: int = 1, stride: int = 1, act: str = _LEAKY) -> None:
    net.conv(name, out, kernel, stride, act=act)


def _head(net: CnnBuilder, name: str, width: int) -> None:
    """Append a head, a 3 × 3 convolution and the outputs of three anchors per cell, and return to its input."""
    before = net.shape
    _conv(net, f"{name} 3x3", width, 3)
    net.conv(name, ANCHORED, 1, norm=False, act=None)
    net.shape = before


def _narrow_and_wide(net: CnnBuilder, name: str, width: int, convolutions: int) -> None:
    """Append alternating 1 × 1 convolutions to ``width`` and 3 × 3 ones to twice ``width``."""
    for index in range(convolutions):
        _conv(net, f"{name}.{index}", width * (1 + index % 2), 1 + 2 * (index % 2))


def _pooled(net: CnnBuilder) -> None:
    """Append spatial pyramid pooling over 1, 5, 9 and 13 pixels."""
    part = net.shape
    for kernel in (5, 9, 13):
        net.shape = part
        net.pool(kernel, 1, kernel // 2)
    concatenated(net, part, part, part, part)


def _up_to(net: CnnBuilder, name: str, width: int, earlier: Shape, lateral: bool) -> None:
    """Upsample and concatenate with an earlier stage, directly or through a lateral convolution."""
    _conv(net, f"{name} up", width)
    net.upsample()
    above = net.shape
    net.shape = earlier
    if lateral:
        _conv(net, f"{name} lateral", width)
    concatenated(net, above, net.shape)


def yolo_v3(net: CnnBuilder, pooled: bool = False) -> None:
    """Append YOLOv3 (Redmon & Farhadi 2018; pjreddie/darknet, cfg/yolov3.cfg), or, if ``pooled``, yolov3-spp.cfg."""
    _conv(net, "stem", 32, 3)
    kept = []
    for stage, (width, blocks) in enumerate(STAGES, start=1):
        _conv(net, f"down {stage}", width, 3, 2)
        for block in range(1, blocks + 1):
            _narrow_and_wide(net, f"stage {stage}.{block}", width // 2, 2)
            net.shortcut(f"stage {stage}.{block}")
        kept.append(net.shape)
    if pooled:
        _narrow_and_wide(net, "coarse in", 512, 3)
        _pooled(net)
        _narrow_and_wide(net, "coarse out", 512, 3)
    else:
        _narrow_and_wide(net, "coarse", 512, 5)
    _head(net, "coarse head", 1024)
    for name, width, earlier in (("middle", 256, kept[3]), ("fine", 128, kept[2])):
        _up_to(net, name, width, earlier, lateral=False)
        _narrow_and_wide(net, name, width, 5)
        _head(net, f"{name} head", 2 * width)


def yolo_v3_tiny(net: CnnBuilder) -> None:
    """Append YOLOv3-tiny (pjreddie/darknet, cfg/yolov3-tiny.cfg)."""
    _conv(net, "conv 0", 16, 3)
    for index, width in enumerate((32, 64, 128, 256, 512), start=1):
        net.pool(2, 2)
        _conv(net, f"conv {index}", width, 3)
        if width == 256:
            fine = net.shape
    _conv(net, "wide", 1024, 3)  # after max pooling of stride 1
    _conv(net, "neck", 256)
    _head(net, "coarse head", 512)
    _up_to(net, "fine", 128, fine, lateral=False)
    _head(net, "fine head", 256)


def _csp_stage(net: CnnBuilder, name: str, width: int, blocks: int) -> None:
    """Append a stage of CSPDarknet-53 with Mish: one half bypasses the residual blocks, the other passes through."""

    def mish(part: str, out: int, kernel: int = 1, stride: int = 1) -> None:
        _conv(net, f"{name} {part}", out, kernel, stride, act="mish")

    mish("down", width, 3, 2)
    whole, half = net.shape, width if blocks == 1 else width // 2  # the first stage keeps its width
    mish("around", half)
    around = net.shape
    net.shape = whole
    mish("through", half)
    for block in range(1, blocks + 1):
        mish(f"{block}a", width // 2)
        mish(f"{block}b", half, 3)
        net.shortcut(f"{name} {block}")
    mish("after", half)
    concatenated(net, net.shape, around)
    mish("out", width)


def yolo_v4(net: CnnBuilder) -> None:
    """Append YOLOv4 (Bochkovskiy et al. 2020, arXiv:2004.10934; AlexeyAB/darknet, cfg/yolov4.cfg)."""
    _conv(net, "stem", 32, 3, act="mish")
    kept = []
    for stage, (width, blocks) in enumerate(STAGES, start=1):
        _csp_stage(net, f"stage {stage}", width, blocks)
        kept.append(net.shape)
    _narrow_and_wide(net, "pooling in", 512, 3)
    _pooled(net)
    _narrow_and_wide(net, "pooling out", 512, 3)
    above = [net.shape]
    for name, width, earlier in (("middle", 256, kept[3]), ("fine", 128, kept[2])):
        _up_to(net, name, width, earlier, lateral=True)
        _narrow_and_wide(net, name, width, 5)
        above.append(net.shape)
    _head(net, "fine head", 256)
    for name, width, lateral in (("middle", 256, above[1]), ("coarse", 512, above[0])):
        _conv(net, f"{name} down", width, 3, 2)
        concatenated(net, net.shape, lateral)
        _narrow_and_wide(net, f"{name} again", width, 5)
        _head(net, f"{name} head", 2 * width)
