"""Mobile networks: MobileNet v1 to v3, MnasNet, ShuffleNet v2."""

from collections.abc import Sequence

from mlsys.workloads.zoo.cnn_builder import CnnBuilder, divisible

# (channels, stride) of the separable convolutions, Howard et al. 2017, table 1.
MOBILENET_V1 = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
    *[(512, 1)] * 5, (1024, 2), (1024, 1),
)  # fmt: skip


def mobilenet_v1(net: CnnBuilder, width: float = 1.0, classes: int = 1000, bias: bool = False) -> None:
    """Append MobileNet v1 (Howard et al., arXiv:1704.04861, table 1; ReLU as in figure 3)."""
    mobilenet_v1_stages(net, width, bias)
    net.classify(classes)


def mobilenet_v1_stages(net: CnnBuilder, width: float = 1.0, bias: bool = False) -> list[tuple[int, int, int]]:
    """Append all but the classifier; return the shape after each separable convolution."""
    net.conv("conv1", divisible(32 * width), 3, 2, "same", bias=bias)
    after = []
    for index, (out, stride) in enumerate(MOBILENET_V1, start=2):
        into = net.channels
        net.conv(f"conv{index} depthwise", into, 3, stride, "same", groups=into, bias=bias)
        net.conv(f"conv{index} pointwise", divisible(out * width), 1, bias=bias)
        after.append(net.shape)
    return after


def inverted(
    net: CnnBuilder,
    label: str,
    expanded: int,
    out: int,
    kernel: int,
    stride: int,
    act: str,
    squeezed: int = 0,
) -> None:
    """Append an inverted residual: expand, depthwise, (squeeze and excite,) project; a shortcut if shapes agree."""
    start, before = net.here, net.shape
    if expanded != net.channels:
        net.conv(f"{label} expand", expanded, 1, act=act)
    net.conv(f"{label} depthwise", expanded, kernel, stride, "same", groups=expanded, act=act)
    if squeezed:
        net.excite(label, squeezed, "relu", "hard sigmoid")
    net.conv(f"{label} project", out, 1, act=None)
    if net.shape == before:
        net.shortcut(label, None, start, net.here)


# expansion, channels, repeats, stride: Sandler et al. 2018, table 2.
MOBILENET_V2 = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2(net: CnnBuilder, width: float = 1.0, classes: int = 1000, thin: bool = False) -> None:
    """Append MobileNet v2 (Sandler et al., CVPR 2018, table 2); ``thin`` also scales the last convolution below 1."""
    mobilenet_v2_stages(net, width)
    net.conv("last", divisible(1280 * (width if thin else max(width, 1.0))), 1, act="relu6")
    net.classify(classes)


def mobilenet_v2_stages(net: CnnBuilder, width: float = 1.0, coarsest: int = 32) -> list[tuple[int, int, int]]:
    """Append the inverted residuals; return the shape after each stage, downsampled at most ``coarsest`` times."""
    net.conv("conv1", divisible(32 * width), 3, 2, "same", act="relu6")
    after, smaller = [], 2
    for stage, (expansion, out, repeats, first_stride) in enumerate(MOBILENET_V2, start=1):
        first = first_stride if smaller * first_stride <= coarsest else 1
        smaller *= first
        for repeat in range(1, repeats + 1):
            stride = first if repeat == 1 else 1
            expanded = expansion * net.channels
            inverted(net, f"block {stage}.{repeat}", expanded, divisible(out * width), 3, stride, "relu6")
        after.append(net.shape)
    return after


def deeplab_mobile(net: CnnBuilder, classes: int = 21) -> None:
    """Append DeepLab v3 on MobileNet v2 (Sandler et al. 2018, section 6.3): output stride 16, no atrous pyramid.

    tensorflow/models, research/deeplab, mobilenetv2_coco_voc_trainaug: the last stages dilate instead of striding;
    two 1 × 1 convolutions, one of them on the global average, and the classes of PASCAL VOC.
    """
    mobilenet_v2_stages(net, coarsest=16)
    whole = net.shape
    net.global_pool()
    net.conv("of the average", 256, 1)
    net.shape = whole
    net.conv("of the pixels", 256, 1)
    net.shape = (2 * 256, *net.shape[1:])
    net.conv("both", 256, 1)
    net.conv("classes", classes, 1, norm=False, act=None)


# kernel, expanded, out, squeeze and excite, activation, stride: Howard et al. 2019, tables 1 and 2.
_RE, _HS = "relu", "hard swish"
MOBILENET_V3 = {
    "large": (
        (3, 16, 16, 0, _RE, 1), (3, 64, 24, 0, _RE, 2), (3, 72, 24, 0, _RE, 1), (5, 72, 40, 1, _RE, 2),
        (5, 120, 40, 1, _RE, 1), (5, 120, 40, 1, _RE, 1), (3, 240, 80, 0, _HS, 2), (3, 200, 80, 0, _HS, 1),
        (3, 184, 80, 0, _HS, 1), (3, 184, 80, 0, _HS, 1), (3, 480, 112, 1, _HS, 1), (3, 672, 112, 1, _HS, 1),
        (5, 672, 160, 1, _HS, 2), (5, 960, 160, 1, _HS, 1), (5, 960, 160, 1, _HS, 1),
    ),
    "small": (
        (3, 16, 16, 1, _RE, 2), (3, 72, 24, 0, _RE, 2), (3, 88, 24, 0, _RE, 1), (5, 96, 40, 1, _HS, 2),
        (5, 240, 40, 1, _HS, 1), (5, 240, 40, 1, _HS, 1), (5, 120, 48, 1, _HS, 1), (5, 144, 48, 1, _HS, 1),
        (5, 288, 96, 1, _HS, 2), (5, 576, 96, 1, _HS, 1), (5, 576, 96, 1, _HS, 1),
    ),
}  # fmt: skip


def mobilenet_v3(net: CnnBuilder, size: str) -> None:
    """Append MobileNet v3 (Howard et al., ICCV 2019, tables 1 (large) and 2 (small))."""
    net.conv("conv1", 16, 3, 2, act=_HS)
    for index, (kernel, expanded, out, excited, act, stride) in enumerate(MOBILENET_V3[size], start=1):
        squeezed = divisible(expanded / 4) if excited else 0
        inverted(net, f"block {index}", expanded, out, kernel, stride, act, squeezed)
    net.conv("last", 6 * net.channels, 1, act=_HS)
    net.global_pool()
    hidden = 1280 if size == "large" else 1024
    net.dense("hidden", net.batch, net.channels, hidden)
    net.activation("hidden hard swish", net.batch * hidden, _HS)
    net.dense("classifier", net.batch, hidden, 1000)


# kernel, expansion, channels, repeats, stride: Tan et al. 2019 (MnasNet-B1).
MNASNET = ((3, 3, 24, 3, 2), (5, 3, 40, 3, 2), (5, 6, 80, 3, 2), (3, 6, 96, 2, 1), (5, 6, 192, 4, 2), (3, 6, 320, 1, 1))


def mnasnet(net: CnnBuilder, width: float = 1.0) -> None:
    """Append MnasNet-B1 (Tan et al., CVPR 2019), the variant without squeeze and excitation."""
    net.conv("conv1", divisible(32 * width), 3, 2)
    net.conv("separable depthwise", net.channels, 3, groups=net.channels)
    net.conv("separable project", divisible(16 * width), 1, act=None)
    for stage, (kernel, expansion, out, repeats, first_stride) in enumerate(MNASNET, start=1):
        for repeat in range(1, repeats + 1):
            stride = first_stride if repeat == 1 else 1
            expanded = expansion * net.channels
            inverted(net, f"block {stage}.{repeat}", expanded, divisible(out * width), kernel, stride, "relu")
    net.conv("last", 1280, 1)
    net.classify(1000)


# Channels of the stages: Ma et al. 2018, table 5.
SHUFFLENET_V2: dict[str, Sequence[int]] = {
    "0.5": (48, 96, 192, 1024), "1.0": (116, 232, 464, 1024), "1.5": (176, 352, 704, 1024),
    "2.0": (244, 488, 976, 2048),
}  # fmt: skip


def shufflenet_v2(net: CnnBuilder, width: str) -> None:
    """Append ShuffleNet v2 (Ma et al., ECCV 2018, table 5 and figure 3 (c) and (d))."""
    shufflenet_v2_stages(net, width)
    net.conv("conv5", SHUFFLENET_V2[width][-1], 1)
    net.classify(1000)


def shufflenet_v2_stages(net: CnnBuilder, width: str, act: str = "relu") -> list[tuple[int, int, int]]:
    """Append all but the last convolution; return the shape after each stage."""
    *stages, _ = SHUFFLENET_V2[width]
    after = []
    net.conv("conv1", 24, 3, 2, act=act)
    net.pool(3, 2, 1)
    for stage, (out, repeats) in enumerate(zip(stages, (4, 8, 4), strict=True), start=2):
        half = out // 2
        for repeat in range(1, repeats + 1):
            label, stride, start = f"stage {stage}.{repeat}", 2 if repeat == 1 else 1, net.shape
            if repeat == 1:
                net.conv(f"{label} left depthwise", start[0], 3, 2, groups=start[0], act=None)
                net.conv(f"{label} left", half, 1, act=act)
                net.shape = start
            else:
                net.shape = (half, *start[1:])
            net.conv(f"{label} a", half, 1, act=act)
            net.conv(f"{label} depthwise", half, 3, stride, groups=half, act=None)
            net.conv(f"{label} b", half, 1, act=act)
            net.shape = (out, *net.shape[1:])
        after.append(net.shape)
    return after
