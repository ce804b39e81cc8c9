"""Residual networks: ResNet, ResNeXt, Wide ResNet, RegNet."""

import math

from mlsys.workloads.zoo.cnn_builder import CnnBuilder

# Blocks in each stage, and whether they are bottlenecks: He et al. 2016, table 1.
RESNETS = {
    18: ((2, 2, 2, 2), False),
    34: ((3, 4, 6, 3), False),
    50: ((3, 4, 6, 3), True),
    101: ((3, 4, 23, 3), True),
    152: ((3, 8, 36, 3), True),
}


def resnet(net: CnnBuilder, depth: int, *, groups: int = 1, width: int = 64, early_stride: bool = False) -> None:
    """Append ResNet (He et al., CVPR 2016, table 1), or ResNeXt (Xie et al. 2017) with ``groups`` of ``width``.

    ``early_stride`` puts the stride of a bottleneck in its first convolution, as in the paper (v1),
    instead of in the 3 × 3 (v1.5).
    """
    resnet_stages(net, depth, groups=groups, width=width, early_stride=early_stride)
    net.classify(1000)


def resnet_stages(
    net: CnnBuilder, depth: int, *, groups: int = 1, width: int = 64, early_stride: bool = False, stages: int = 4,
    last_stride: int = 2,
) -> list[tuple[int, int, int]]:  # fmt: skip
    """Append the stem and the first ``stages`` stages; return the shape after each stage.

    ``last_stride=1`` keeps the resolution in the last stage, as some detectors do.
    """
    net.conv("conv1", 64, 7, 2)
    net.pool(3, 2, 1)
    after = []
    blocks, bottleneck = RESNETS[depth]
    for stage, count in enumerate(blocks[:stages], start=2):
        base = 64 * 2 ** (stage - 2)
        inner = base * width // 64 * groups if bottleneck else base
        out = 4 * base if bottleneck else base
        for block in range(1, count + 1):
            label, start, before = f"conv{stage}_{block}", net.here, net.shape
            stride = (last_stride if stage == stages + 1 else 2) if block == 1 and stage > 2 else 1
            if bottleneck:
                net.conv(f"{label}a", inner, 1, stride if early_stride else 1)
                net.conv(f"{label}b", inner, 3, 1 if early_stride else stride, groups=groups)
                net.conv(f"{label}c", out, 1, act=None)
            else:
                net.conv(f"{label}a", out, 3, stride)
                net.conv(f"{label}b", out, 3, act=None)
            body, changed = net.here, net.shape != before
            net.go_to(start)
            if changed:
                net.conv(f"{label}proj", out, 1, stride, act=None)
            net.shortcut(label, "relu", body, net.here)
        after.append(net.shape)
    return after


def resnet_deep_stem(net: CnnBuilder, depth: int) -> None:
    """Append ResNet-D (He et al. 2019, CVPR, figure 2 d; PaddlePaddle's ``vd``): deep stem, pooled shortcuts."""
    for index, out in enumerate((32, 32, 64), start=1):
        net.conv(f"conv1_{index}", out, 3, 2 if index == 1 else 1)
    net.pool(3, 2, 1)
    for stage, count in enumerate(RESNETS[depth][0], start=2):
        inner = 64 * 2 ** (stage - 2)
        for block in range(1, count + 1):
            label, start = f"conv{stage}_{block}", net.shape
            stride = 2 if block == 1 and stage > 2 else 1
            net.conv(f"{label}a", inner, 1)
            net.conv(f"{label}b", inner, 3, stride)
            net.conv(f"{label}c", 4 * inner, 1, act=None)
            if block == 1:
                net.shape = start
                if stride == 2:
                    net.pool(2, 2)
                net.conv(f"{label}proj", 4 * inner, 1, act=None)
            net.shortcut(label, "relu")
    net.classify(1000)


# depth, w0, wa, wm, width of a group: Radosavovic et al. 2020, with the rounding of the released models.
REGNETS = {
    "x_3_2gf": (25, 88, 26.31, 2.25, 48),
    "y_200mf": (13, 24, 36.44, 2.49, 8),
    "y_400mf": (16, 48, 27.89, 2.09, 8),
    "y_800mf": (14, 56, 38.84, 2.4, 16),
    "y_3_2gf": (21, 80, 42.63, 2.66, 24),
    "y_16gf": (18, 200, 106.23, 2.48, 112),
}


def regnet(net: CnnBuilder, name: str) -> None:
    """Append RegNet (Radosavovic et al., CVPR 2020, section 3.3): quantised linear widths; Y has squeeze-excitation."""
    depth, first, slope, step, group = REGNETS[name]
    widths = []
    for block in range(depth):
        power = round(math.log((first + slope * block) / first) / math.log(step))
        exact = first * step**power
        fitted = round(exact / 8) * 8
        widths.append(round(fitted / group) * group)
    net.conv("stem", 32, 3, 2)
    for index, width in enumerate(widths, start=1):
        label, start = f"block {index}", net.shape
        stride = 2 if index == 1 or width != widths[index - 2] else 1
        net.conv(f"{label} a", width, 1)
        net.conv(f"{label} b", width, 3, stride, groups=width // group)
        if name.startswith("y"):
            net.excite(label, round(0.25 * start[0]))
        net.conv(f"{label} c", width, 1, act=None)
        if start != net.shape:
            net.shape = start
            net.conv(f"{label} shortcut", width, 1, stride, act=None)
        net.shortcut(label, "relu")
    net.classify(1000)
