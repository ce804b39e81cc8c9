"""Mobile detectors on ShuffleNet v2: NanoDet, and NanoDet-Plus with a pyramid of ghost blocks."""

from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape
from mlsys.workloads.zoo.mobile import shufflenet_v2_stages
from mlsys.workloads.zoo.yolo import CLASSES, concatenated

_LEAKY = "leaky relu"
BINS = 8  # of the distribution that predicts each side of a box
# Channels of the pyramid, by the width of the backbone: RangiLyu/nanodet, config.
PYRAMIDS = {"1.0": 96, "1.5": 128}


def _separable(net: CnnBuilder, name: str, out: int, kernel: int, stride: int = 1) -> None:
    """Append a depthwise and a 1 × 1 convolution, each with normalisation and activation."""
    net.conv(f"{name} depthwise", net.channels, kernel, stride, groups=net.channels, act=_LEAKY)
    net.conv(name, out, 1, act=_LEAKY)


def _ghost(net: CnnBuilder, name: str, out: int, act: str | None) -> None:
    """Append a 1 × 1 convolution to half of the channels, and a depthwise one that derives the other half from them."""
    net.conv(name, out // 2, 1, act=act)
    half = net.shape
    net.conv(f"{name} cheap", out // 2, 3, groups=out // 2, act=act)
    concatenated(net, half, net.shape)


def _ghost_block(net: CnnBuilder, name: str, out: int) -> None:
    """Append a ghost bottleneck of stride 1, whose shortcut is a depthwise 5 × 5 and a 1 × 1 convolution."""
    start = net.shape
    _ghost(net, f"{name} a", out, _LEAKY)
    _ghost(net, f"{name} b", out, None)
    net.shape = start
    net.conv(f"{name} shortcut depthwise", net.channels, 5, groups=net.channels, act=None)
    net.conv(f"{name} shortcut", out, 1, act=None)
    net.shortcut(name)


def _heads(net: CnnBuilder, levels: list[Shape], width: int, kernel: int) -> None:
    for level, shape in enumerate(levels, start=3):
        net.shape = shape
        for part in "ab":
            _separable(net, f"head {level} {part}", width, kernel)
        net.conv(f"head {level}", CLASSES + 4 * BINS, 1, norm=False, act=None)


def nanodet_plus(net: CnnBuilder, width: str) -> None:
    """Append NanoDet-Plus-m (RangiLyu/nanodet, config/nanodet-plus-m) without the auxiliary training head."""
    channels = PYRAMIDS[width]
    levels = []
    for level, shape in enumerate(shufflenet_v2_stages(net, width, _LEAKY), start=3):
        net.shape = shape
        net.conv(f"lateral {level}", channels, 1, act=_LEAKY)
        levels.append(net.shape)
    coarsest = levels[-1]
    for level in (1, 0):
        net.shape = levels[level]
        concatenated(net, net.shape, net.shape)
        _ghost_block(net, f"up {level + 3}", channels)
    for level in (0, 1):
        net.shape = levels[level]
        _separable(net, f"down {level + 4}", channels, 5, 2)
        concatenated(net, net.shape, levels[level + 1])
        _ghost_block(net, f"down {level + 4} block", channels)
    for name in ("input", "output"):
        net.shape = coarsest
        _separable(net, f"coarse {name}", channels, 5, 2)
    levels.append(net.shape)
    _heads(net, levels, channels, 5)


def nanodet(net: CnnBuilder, width: str) -> None:
    """Append NanoDet-m (RangiLyu/nanodet, config/legacy_v0.x_configs), whose pyramid only adds."""
    channels = PYRAMIDS[width]
    levels = []
    for level, shape in enumerate(shufflenet_v2_stages(net, width, _LEAKY), start=3):
        net.shape = shape
        net.conv(f"lateral {level}", channels, 1, norm=False, act=None)
        levels.append(net.shape)
    _heads(net, levels, channels, 3)
