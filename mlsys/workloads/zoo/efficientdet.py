"""EfficientDet: detectors on EfficientNet with repeated bidirectional feature pyramids (BiFPN)."""

import math
from dataclasses import dataclass

from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape, divisible

# Kernel, expansion, channels, repeats and stride of each stage of EfficientNet-B0: Tan & Le 2019, ICML, table 1.
STAGES = (
    (3, 1, 16, 1, 1), (3, 6, 24, 2, 2), (5, 6, 40, 2, 2), (3, 6, 80, 3, 2), (5, 6, 112, 3, 1), (5, 6, 192, 4, 2),
    (3, 6, 320, 1, 1),
)  # fmt: skip
# Width and depth of the sizes of EfficientNet: tensorflow/tpu, efficientnet_builder.py.
SCALES = (
    (1.0, 1.0), (1.0, 1.1), (1.1, 1.2), (1.2, 1.4), (1.4, 1.8), (1.6, 2.2), (1.8, 2.6), (2.0, 3.1),
)  # fmt: skip
ANCHORS, CLASSES = 9, 90


@dataclass(frozen=True)
class Size:
    """One size of EfficientDet (Tan et al. 2020, CVPR, table 1).

    Attributes
    ----------
    side
        Side of the image, pixels.
    backbone
        Size of the EfficientNet, 0 for B0.
    width, times
        Channels of the BiFPN, and its repetitions.
    deep
        Convolutions in a head.
    levels
        Pyramid levels, from the third.
    light
        Whether the backbone is EfficientNet-Lite: no squeeze and excitation, ReLU6, first and last stage the same
        in all sizes, and unweighted sums.
    """

    side: int
    backbone: int
    width: int
    times: int
    deep: int
    levels: int = 5
    light: bool = False

    @property
    def act(self) -> str:
        """The activation after convolutions."""
        return "relu6" if self.light else "silu"


SIZES = {
    "d0": Size(512, 0, 64, 3, 3), "d1": Size(640, 1, 88, 4, 3), "d2": Size(768, 2, 112, 5, 3),
    "d3": Size(896, 3, 160, 6, 4), "d4": Size(1024, 4, 224, 7, 4), "d5": Size(1280, 5, 288, 7, 4),
    "d6": Size(1280, 6, 384, 8, 5), "d7": Size(1536, 6, 384, 8, 5), "d7x": Size(1536, 7, 384, 8, 5, levels=6),
    "lite0": Size(320, 0, 64, 3, 3, light=True), "lite1": Size(384, 1, 88, 4, 3, light=True),
}  # fmt: skip


def _backbone(net: CnnBuilder, made: Size) -> list[Shape]:
    """Append EfficientNet without its last convolution; return the shapes at 1/8, 1/16 and 1/32 resolution."""
    width, depth = SCALES[made.backbone]
    net.conv("stem", divisible(32 * width), 3, 2, "same", act=made.act)
    after: list[Shape] = []
    for stage, (kernel, expansion, out, repeats, first_stride) in enumerate(STAGES, start=1):
        fixed = made.light and stage in (1, len(STAGES))
        for repeat in range(1, (repeats if fixed else math.ceil(repeats * depth)) + 1):
            label, before, into = f"block {stage}.{repeat}", net.shape, net.channels
            if expansion > 1:
                net.conv(f"{label} expand", expansion * into, 1, act=made.act)
            stride = first_stride if repeat == 1 else 1
            net.conv(f"{label} depthwise", net.channels, kernel, stride, "same", groups=net.channels, act=made.act)
            if not made.light:
                net.excite(label, max(1, into // 4), "silu", "sigmoid")
            net.conv(f"{label} project", divisible(out * width), 1, act=None)
            if net.shape == before:
                net.shortcut(label)
        after.append(net.shape)
    return [after[2], after[4], after[6]]


def _separable(net: CnnBuilder, name: str, out: int, *, norm: bool = True, act: str | None = None) -> None:
    """Append a depthwise 3 × 3 and a 1 × 1 convolution with biases."""
    net.conv(f"{name} depthwise", net.channels, 3, groups=net.channels, bias=False, norm=False, act=None)
    net.conv(name, out, 1, bias=True, norm=norm, act=act)


def _node(net: CnnBuilder, name: str, shape: Shape, inputs: int, made: Size) -> None:
    """Append a pyramid node: a sum of its inputs (weighted unless ``light``) and a separable convolution."""
    net.shape = shape
    operations, weights = (inputs - 1, 0) if made.light else (2 * inputs, inputs)
    net.ride_along(f"{name} sum", net.elements, operations, inputs, parameters=weights)
    net.activation(f"{name} {made.act}", net.elements, made.act)
    _separable(net, name, shape[0])


def efficientdet(net: CnnBuilder, size: str) -> None:
    """Append EfficientDet (Tan et al., CVPR 2020; google/automl, efficientdet): 90 classes, nine anchors per cell.

    The Lite variants follow rwightman/efficientdet-pytorch, ``effdet/config/model_config.py``.
    """
    made = SIZES[size]
    third, fourth, fifth = _backbone(net, made)
    levels = []
    for level, shape in enumerate((third, fourth, fifth), start=3):
        for copy in range(
            1 if level == 3 else 2
        ):  # two nodes read the fourth and fifth level, each through its own lateral
            net.shape = shape
            net.conv(f"lateral {level}.{copy}", made.width, 1, bias=True, act=None)
        levels.append(net.shape)
    net.shape = fifth
    net.conv("lateral 6", made.width, 1, bias=True, act=None)
    for _ in range(made.levels - 3):
        net.pool(3, 2, "same")
        levels.append(net.shape)
    for time in range(made.times):
        for level in reversed(range(made.levels - 1)):
            _node(net, f"pyramid {time} up {level + 3}", levels[level], 2, made)
        for level in range(1, made.levels):
            inputs = 2 if level == made.levels - 1 else 3
            _node(net, f"pyramid {time} down {level + 3}", levels[level], inputs, made)
    for level, shape in enumerate(levels):
        first = len(net.operators)
        for head, outputs in (("classes", ANCHORS * CLASSES), ("boxes", ANCHORS * 4)):
            net.shape = shape
            for index in range(made.deep):
                _separable(net, f"{head} {level + 3}.{index}", made.width, act=made.act)
            _separable(net, f"{head} {level + 3}", outputs, norm=False)
        if level > 0:  # levels share the weights of the first, but each has its own normalisations
            shared = net.operators[first:]
            net.operators[first:] = [net.without_parameters(operator) for operator in shared]
            net.ride_along(f"norms {level + 3}", 0, 0, parameters=2 * made.deep * 2 * made.width)
