"""The first convolutional networks: AlexNet, VGG, GoogLeNet, SqueezeNet, the Inceptions."""

from mlsys.workloads.zoo.cnn_builder import CnnBuilder


def alexnet_convolutions(net: CnnBuilder) -> None:
    """Append AlexNet's convolutions (Krizhevsky et al., NeurIPS 2012, section 3.5): two towers, hence two groups."""
    net.conv("conv1", 96, 11, 4, 0)
    net.pool(3, 2)
    net.conv("conv2", 256, 5, groups=2)
    net.pool(3, 2)
    net.conv("conv3", 384, 3)
    net.conv("conv4", 384, 3, groups=2)
    net.conv("conv5", 256, 3, groups=2)


def vgg16_convolutions(net: CnnBuilder) -> None:
    """Append only the convolutions of VGG-16 (Simonyan & Zisserman, ICLR 2015, table 1, column D)."""
    for stage, (convolutions, out) in enumerate(zip((2, 2, 3, 3, 3), (64, 128, 256, 512, 512), strict=True), 1):
        for index in range(1, convolutions + 1):
            net.conv(f"conv{stage}_{index}", out, 3)
        net.pool(2, 2)


# Convolutions of each of the five stages: Simonyan & Zisserman 2015, table 1, columns A, B, D and E.
VGGS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def vgg_normalised(net: CnnBuilder, depth: int) -> None:
    """Append VGG with batch normalisation after each convolution, as in torchvision (not in the paper)."""
    for stage, (convolutions, out) in enumerate(zip(VGGS[depth], (64, 128, 256, 512, 512), strict=True), 1):
        for index in range(1, convolutions + 1):
            net.conv(f"conv{stage}_{index}", out, 3, bias=True)
        net.pool(2, 2)
    channels, height, width = net.shape
    net.pool(height // 7, width // 7)
    inputs = channels * 7 * 7
    for index, outputs in enumerate((4096, 4096, 1000), start=1):
        net.dense(f"dense {index}", net.batch, inputs, outputs)
        if index < 3:
            net.activation(f"dense {index} relu", net.batch * outputs, "relu")
        inputs = outputs


# 1×1; 3×3 reduce, 3×3; 5×5 reduce, 5×5; pool projection. Szegedy et al. 2015, table 1.
INCEPTION_V1 = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def googlenet(net: CnnBuilder, five: int = 5) -> None:
    """Append GoogLeNet (Szegedy et al., CVPR 2015, table 1) without the auxiliary classifiers.

    ``five=3`` replaces the 5 × 5 convolutions by 3 × 3, as the code of Google and torchvision does.
    """
    net.conv("conv1", 64, 7, 2)
    net.pool(3, 2, ceil=True)
    net.conv("conv2 reduce", 64, 1)
    net.conv("conv2", 192, 3)
    net.pool(3, 2, ceil=True)
    for name, (pointwise, reduce3, three, reduce5, last, projection) in INCEPTION_V1.items():
        _branches(
            net,
            f"inception {name}",
            [[(pointwise, 1)], [(reduce3, 1), (three, 3)], [(reduce5, 1), (last, five)], [(projection, 1)]],
        )
        if name in ("3b", "4e"):
            net.pool(3 if name == "3b" else 2, 2, ceil=True)
    net.classify(1000)


# A branch is a list of (channels, kernel); a kernel may be a pair, and a third number is the stride of
# an unpadded reduction. A tuple of branches inside a branch forks its end.
def _branches(net: CnnBuilder, name: str, branches: list[list[tuple]], keep: int = 0) -> None:
    """Append branches that read the same image and are concatenated, with ``keep`` channels pooled through."""
    start, out, end = net.shape, keep, net.shape
    for index, branch in enumerate(branches, start=1):
        net.shape = start
        for step, (channels, kernel, *stride) in enumerate(branch, start=1):
            label = f"{name} {index}.{step}"
            if isinstance(channels, tuple):  # a fork: both convolutions read the same image
                fork = net.shape
                for number, (width, shape) in enumerate(zip(channels, kernel, strict=True)):
                    net.shape = fork
                    net.conv(f"{label}{'ab'[number]}", width, shape)
                net.shape = (sum(channels), *net.shape[1:])
            elif stride:
                net.conv(label, channels, kernel, stride[0], 0)
            else:
                net.conv(label, channels, kernel)
        out, end = out + net.channels, net.shape
    net.shape = (out, *end[1:])


_FORK = ((1, 3), (3, 1))


def inception_v3(net: CnnBuilder) -> None:
    """Append Inception v3 (Szegedy et al., CVPR 2016, table 1, figures 5 to 7) without the auxiliary classifier."""
    net.conv("conv1", 32, 3, 2, 0)
    net.conv("conv2", 32, 3, 1, 0)
    net.conv("conv3", 64, 3)
    net.pool(3, 2)
    net.conv("conv4", 80, 1)
    net.conv("conv5", 192, 3, 1, 0)
    net.pool(3, 2)
    for index, pooled in enumerate((32, 64, 64), start=1):
        _branches(net, f"mixed 5.{index}", [[(64, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)], [(pooled, 1)]])
    _branches(net, "mixed 6.0", [[(384, 3, 2)], [(64, 1), (96, 3), (96, 3, 2)]], keep=net.channels)
    for index, c in enumerate((128, 160, 160, 192), start=1):
        seven = [(c, 1), (c, (1, 7)), (192, (7, 1))]
        double = [(c, 1), (c, (7, 1)), (c, (1, 7)), (c, (7, 1)), (192, (1, 7))]
        _branches(net, f"mixed 6.{index}", [[(192, 1)], seven, double, [(192, 1)]])
    _branches(
        net,
        "mixed 7.0",
        [[(192, 1), (320, 3, 2)], [(192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2)]],
        keep=net.channels,
    )
    for index in (1, 2):
        forked = [(384, 1), ((384, 384), _FORK)]
        deeper = [(448, 1), (384, 3), ((384, 384), _FORK)]
        _branches(net, f"mixed 7.{index}", [[(320, 1)], forked, deeper, [(192, 1)]])
    net.classify(1000)


def inception_v4(net: CnnBuilder) -> None:
    """Append Inception v4 (Szegedy et al., AAAI 2017, figures 3 to 9)."""
    net.conv("stem 1", 32, 3, 2, 0)
    net.conv("stem 2", 32, 3, 1, 0)
    net.conv("stem 3", 64, 3)
    _branches(net, "stem 4", [[(96, 3, 2)]], keep=64)
    _branches(net, "stem 5", [[(64, 1), (96, 3, 1)], [(64, 1), (64, (1, 7)), (64, (7, 1)), (96, 3, 1)]])
    _branches(net, "stem 6", [[(192, 3, 2)]], keep=192)
    for index in range(1, 5):
        _branches(net, f"A{index}", [[(96, 1)], [(64, 1), (96, 3)], [(64, 1), (96, 3), (96, 3)], [(96, 1)]])
    _branches(net, "reduction A", [[(384, 3, 2)], [(192, 1), (224, 3), (256, 3, 2)]], keep=net.channels)
    for index in range(1, 8):
        seven = [(192, 1), (224, (1, 7)), (256, (7, 1))]
        double = [(192, 1), (192, (7, 1)), (224, (1, 7)), (224, (7, 1)), (256, (1, 7))]
        _branches(net, f"B{index}", [[(384, 1)], seven, double, [(128, 1)]])
    _branches(
        net,
        "reduction B",
        [[(192, 1), (192, 3, 2)], [(256, 1), (256, (1, 7)), (320, (7, 1)), (320, 3, 2)]],
        keep=net.channels,
    )
    for index in range(1, 4):
        forked = [(384, 1), ((256, 256), _FORK)]
        deeper = [(384, 1), (448, (3, 1)), (512, (1, 3)), ((256, 256), _FORK)]
        _branches(net, f"C{index}", [[(256, 1)], forked, deeper, [(256, 1)]])
    net.classify(1000)
