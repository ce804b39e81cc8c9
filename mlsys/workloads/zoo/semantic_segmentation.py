"""Semantic segmentation networks: PSPNet on dilated ResNets, and torchgpipe's U-Net."""

from mlsys.workloads.zoo.cnn_builder import CnnBuilder
from mlsys.workloads.zoo.residual import RESNETS

# Sides of the pooled feature maps: Zhao et al. 2017, CVPR, section 3.2.
POOLED = (1, 2, 3, 6)
# Dilation of each stage, whatever the strides: configs/_base_/models/pspnet_r50-d8.py.
DILATIONS = (1, 1, 2, 4)


def _dilated_resnet(net: CnnBuilder, depth: int, stride: int) -> None:
    """Append a ResNet of MMSegmentation (``ResNetV1c``): deep stem, output stride at most ``stride``."""
    for index, out in enumerate((32, 32, 64), start=1):
        net.conv(f"conv1_{index}", out, 3, 2 if index == 1 else 1)
    net.pool(3, 2, 1)
    blocks, bottleneck = RESNETS[depth]
    reached = 4
    for stage, count in enumerate(blocks, start=2):
        inner = 64 * 2 ** (stage - 2)
        steps = 2 if stage > 2 and reached < stride else 1
        reached *= steps
        for block in range(1, count + 1):
            label, start, before = f"conv{stage}_{block}", net.here, net.shape
            by = steps if block == 1 else 1
            if bottleneck:
                net.conv(f"{label}a", inner, 1)
                net.conv(f"{label}b", inner, 3, by, dilation=DILATIONS[stage - 2])
                net.conv(f"{label}c", 4 * inner, 1, act=None)
            else:
                net.conv(f"{label}a", inner, 3, by, dilation=DILATIONS[stage - 2])
                net.conv(f"{label}b", inner, 3, act=None)
            body, changed = net.here, net.shape != before
            net.go_to(start)
            if changed:
                net.conv(f"{label}proj", body[0], 1, by, act=None)
            net.shortcut(label, "relu", body, net.here)


def pspnet(net: CnnBuilder, depth: int, stride: int = 8, classes: int = 19) -> None:
    """Append PSPNet (Zhao et al., CVPR 2017; open-mmlab/mmsegmentation, ``PSPHead``) without the auxiliary head.

    The feature map is average-pooled to four sizes, which are upsampled and concatenated with it for one 3 × 3.
    """
    _dilated_resnet(net, depth, stride)
    width = net.channels // 4
    whole = net.shape
    for side in POOLED:
        net.shape = whole
        net.average_to(side, f"pool {side}")
        net.conv(f"pool {side} conv", width, 1)
    net.shape = (whole[0] + len(POOLED) * width, *whole[1:])
    net.conv("bottleneck", width, 3)
    net.conv("classes", classes, 1, norm=False, act=None)


def _level(net: CnnBuilder, name: str, convs: int, inner: int, out: int) -> None:
    """Append 3 × 3 convolutions with instance normalisation; the last has ``out`` channels."""
    for index in range(1, convs + 1):
        net.conv(f"{name}.{index}", out if index == convs else inner, 3, bias=False, norm=False, act=None)
        net.norm_of_whole(f"{name}.{index} norm", net.elements)
        net.activation(f"{name}.{index} leaky", net.elements, "leaky relu")


def unet_of_gpipe(net: CnnBuilder, convs: int, width: int, halvings: int = 5, classes: int = 1) -> None:
    """Append the U-Net (B, C) of torchgpipe: B convolutions per level, C channels (Kim et al. 2020, arXiv:2004.09910).

    Upsampling is nearest-neighbour; normalisations have no parameters.
    """
    kept = []
    for level in range(halvings):
        _level(net, f"down {level}", convs, width << level, width << level)
        kept.append(net.shape)
        net.pool(2, 2)
    _level(net, "bottom", convs, width << halvings, width << (halvings - 1))
    for level in reversed(range(halvings)):
        net.upsample()
        net.shape = (net.channels + kept[level][0], *kept[level][1:])
        _level(net, f"up {level}", convs, (width << level) // 2, (width << level) // 2)
    net.conv("classes", classes, 1, bias=False, norm=False, act=None)
