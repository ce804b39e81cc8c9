"""Networks found by neural architecture search for small devices: MCUNet and ProxylessNAS."""

from mlsys.workloads.zoo.cnn_builder import CnnBuilder
from mlsys.workloads.zoo.mobile import inverted

# Channels of the first convolution; then kernel, expansion, channels and stride of each block.
# mit-han-lab/tinyml, mcunet/assets/configs (March 2021); for visual wake words, mit-han-lab/tinyengine,
# assets/vww.tflite (vww1), and the fixed architecture of the Wake Vision challenge's data-centric track (vww2).
MCUNET: dict[str, tuple[int, tuple[tuple[int, int, int, int], ...]]] = {
    "in0": (24, (
        (3, 1, 16, 1), (5, 4, 16, 2), (3, 3, 16, 1), (3, 4, 16, 1), (7, 5, 24, 2), (5, 4, 24, 1), (5, 5, 24, 1),
        (7, 5, 48, 2), (5, 4, 48, 1), (3, 5, 56, 1), (5, 4, 56, 1), (3, 5, 56, 1), (3, 6, 112, 2), (5, 4, 112, 1),
        (3, 6, 192, 1),
    )),
    "in1": (16, (
        (3, 1, 8, 1), (3, 4, 16, 2), (3, 3, 16, 1), (7, 3, 24, 2), (3, 5, 24, 1), (3, 5, 40, 2), (7, 4, 40, 1),
        (5, 4, 48, 1), (3, 3, 48, 1), (3, 4, 48, 1), (7, 5, 96, 2), (5, 4, 96, 1), (5, 4, 96, 1), (3, 6, 160, 1),
    )),
    "in2": (16, (
        (3, 1, 8, 1), (5, 3, 16, 2), (7, 6, 16, 1), (3, 5, 16, 1), (5, 5, 16, 1), (3, 5, 24, 2), (7, 6, 24, 1),
        (5, 6, 24, 1), (7, 4, 40, 2), (5, 5, 40, 1), (3, 5, 48, 1), (5, 5, 48, 1), (3, 4, 48, 1), (5, 6, 96, 2),
        (5, 4, 96, 1), (5, 3, 96, 1), (3, 4, 96, 1), (5, 5, 160, 1),
    )),
    "in3": (16, (
        (3, 1, 8, 1), (7, 3, 16, 2), (3, 5, 16, 1), (7, 5, 16, 1), (5, 4, 16, 1), (5, 5, 24, 2), (5, 5, 24, 1),
        (5, 5, 24, 1), (3, 5, 40, 2), (7, 6, 40, 1), (5, 4, 40, 1), (5, 5, 48, 1), (7, 5, 48, 1), (3, 5, 48, 1),
        (3, 6, 96, 2), (7, 5, 96, 1), (3, 4, 96, 1), (7, 5, 160, 1),
    )),
    "in4": (32, (
        (3, 1, 16, 1), (7, 3, 24, 2), (3, 5, 24, 1), (5, 4, 24, 1), (7, 5, 40, 2), (3, 4, 40, 1), (7, 4, 40, 1),
        (7, 3, 80, 2), (3, 3, 80, 1), (7, 3, 80, 1), (3, 4, 96, 1), (5, 3, 96, 1), (5, 3, 96, 1), (7, 4, 192, 2),
        (7, 3, 192, 1), (5, 3, 192, 1), (5, 4, 320, 1),
    )),
    "vww1": (16, (
        (3, 1, 8, 1), (3, 6, 16, 2), (3, 3, 16, 1), (3, 3, 16, 1), (7, 3, 24, 2), (3, 6, 24, 1), (5, 5, 24, 1),
        (7, 6, 40, 2), (7, 6, 40, 1), (3, 6, 48, 1), (3, 4, 48, 1), (5, 5, 96, 2), (3, 5, 96, 1), (3, 4, 96, 1),
        (7, 3, 160, 1),
    )),
    "vww2": (16, (
        (3, 1, 8, 1), (3, 3, 16, 2), (3, 5, 16, 1), (5, 6, 16, 1), (3, 3, 16, 1), (7, 5, 24, 2), (5, 4, 24, 1),
        (3, 4, 24, 1), (7, 6, 24, 1), (3, 6, 40, 2), (7, 6, 40, 1), (5, 4, 40, 1), (3, 5, 40, 1), (5, 5, 48, 1),
        (5, 3, 48, 1), (3, 4, 48, 1), (5, 3, 48, 1), (3, 4, 96, 2), (5, 5, 96, 1), (5, 4, 96, 1), (3, 4, 96, 1),
        (3, 5, 160, 1),
    )),
}  # fmt: skip

# For each stage of the mobile network its stride, and kernel and expansion of each block; then the widths of the
# stages: same repository, proxyless_mobile, proxyless-w0.3-r176.
PROXYLESS_MOBILE: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = (
    (1, ((3, 1),)), (2, ((5, 3), (3, 3))), (2, ((7, 3), (3, 3), (5, 3), (5, 3))),
    (2, ((7, 6), (5, 3), (5, 3), (5, 3))), (1, ((5, 6), (5, 3), (5, 3), (5, 3))),
    (2, ((7, 6), (7, 6), (7, 3), (7, 3))), (1, ((7, 6),)),
)  # fmt: skip
PROXYLESS_WIDTHS = {"1.0": (32, 16, 32, 40, 80, 96, 192, 320, 1280), "0.3": (16, 8, 16, 16, 24, 32, 64, 96, 384)}


def mcunet(net: CnnBuilder, name: str, classes: int) -> None:
    """Append MCUNet (Lin et al., NeurIPS 2020): inverted residuals of searched sizes, without a last convolution."""
    first, blocks = MCUNET[name]
    net.conv("conv1", first, 3, 2, act="relu6")
    for index, (kernel, expansion, out, stride) in enumerate(blocks, start=1):
        inverted(net, f"block {index}", expansion * net.channels, out, kernel, stride, "relu6")
    net.classify(classes)


def proxyless_mobile(net: CnnBuilder, width: str) -> None:
    """Append ProxylessNAS Mobile (Cai et al., ICLR 2019) at width 1.0 or 0.3."""
    first, *stages, last = PROXYLESS_WIDTHS[width]
    net.conv("conv1", first, 3, 2, act="relu6")
    for stage, (out, (stride, blocks)) in enumerate(zip(stages, PROXYLESS_MOBILE, strict=True), start=1):
        for index, (kernel, expansion) in enumerate(blocks, start=1):
            expanded = expansion * net.channels
            inverted(net, f"block {stage}.{index}", expanded, out, kernel, stride if index == 1 else 1, "relu6")
    net.conv("last", last, 1, act="relu6")
    net.classify(1000)
