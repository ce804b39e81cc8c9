"""Detectors: SSD on ResNet and MobileNet, RetinaNet, RetinaFace."""

from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape
from mlsys.workloads.zoo.mobile import mobilenet_v1_stages, mobilenet_v2_stages
from mlsys.workloads.zoo.residual import resnet_stages


def _heads(
    net: CnnBuilder, features: list[Shape], priors: tuple[int, ...], classes: int, kernel: int, stride: int = 1
) -> None:
    """Append the convolutions that predict boxes and scores for each prior of each feature map."""
    for index, (shape, boxes) in enumerate(zip(features, priors, strict=True), start=1):
        for name, outputs in (("boxes", 4), ("scores", classes)):
            net.shape = shape
            net.conv(f"head {index} {name}", boxes * outputs, kernel, stride, norm=False, act=None)


def ssd_resnet34(net: CnnBuilder) -> None:
    """Append SSD-ResNet34, MLPerf Inference's large detector (Reddi et al., ISCA 2020, table 1).

    ResNet-34 up to its third stage, which has stride 1; five more pairs of convolutions;
    heads with stride 3; 15,130 boxes for an image of 1200 × 1200, and 81 classes.
    """
    resnet_stages(net, 34, stages=2)
    for block in range(1, 7):
        start = net.shape
        net.conv(f"conv4_{block}a", 256, 3)
        net.conv(f"conv4_{block}b", 256, 3, act=None)
        if block == 1:
            net.shape = start
            net.conv(f"conv4_{block} shortcut", 256, 1, act=None)
        net.shortcut(f"conv4_{block}", "relu")
    features = [net.shape]
    for index, (narrow, out, stride, padding) in enumerate(
        ((256, 512, 2, 1), (256, 512, 2, 1), (128, 256, 2, 1), (128, 256, 2, 0), (128, 256, 1, 0)), start=1
    ):
        net.conv(f"extra {index}a", narrow, 1, norm=False)
        net.conv(f"extra {index}b", out, 3, stride, padding, norm=False)
        features.append(net.shape)
    _heads(net, features, (4, 6, 6, 6, 4, 4), 81, 3, stride=3)


def ssd300_resnet50(net: CnnBuilder) -> None:
    """Append NVIDIA's SSD300 v1.1 (NVIDIA/DeepLearningExamples, PyTorch/Detection/SSD, ssd/model.py at 729963dd).

    ResNet-50 up to its third stage, which has stride 1; five more pairs of convolutions, normalised;
    8,732 boxes for an image of 300 × 300, and 81 classes.
    """
    resnet_stages(net, 50, stages=3, last_stride=1)
    features = [net.shape]
    for index, (narrow, out, stride, padding) in enumerate(
        ((256, 512, 2, 1), (256, 512, 2, 1), (128, 256, 2, 1), (128, 256, 1, 0), (128, 256, 1, 0)), start=1
    ):
        net.conv(f"extra {index}a", narrow, 1)
        net.conv(f"extra {index}b", out, 3, stride, padding)
        features.append(net.shape)
    _heads(net, features, (4, 6, 6, 6, 4, 4), 81, 3)


def ssd_mobilenet(net: CnnBuilder, version: int, width: float = 1.0, classes: int = 91) -> None:
    """Append SSD-MobileNet of TensorFlow's object detection API (Huang et al. 2017; Liu et al. 2016)."""
    if version == 1:
        after = mobilenet_v1_stages(net, width)
        features = [after[10], after[12]]
    else:
        after = mobilenet_v2_stages(net, width)
        net.conv("last", 1280, 1, act="relu6")
        features = [(6 * after[4][0], *after[4][1:]), net.shape]
    for index, out in enumerate((512, 256, 256, 128), start=1):
        net.conv(f"extra {index}a", out // 2, 1, act="relu6")
        net.conv(f"extra {index}b", out, 3, 2, "same", act="relu6")
        features.append(net.shape)
    _heads(net, features, (3, 6, 6, 6, 6, 6), classes, 1)


def retinanet(net: CnnBuilder, classes: int = 264) -> None:
    """Append MLPerf's RetinaNet (Lin et al., ICCV 2017): ResNeXt-50 32×4d, 800 × 800, OpenImages classes."""
    _pyramid_heads(net, resnet_stages(net, 50, groups=32, width=4)[1:], classes)


def retinanet_resnet(net: CnnBuilder, depth: int) -> None:
    """Append RetinaNet (Lin et al., ICCV 2017) on a ResNet for COCO: NVIDIA/retinanet-examples, odtk/model.py."""
    _pyramid_heads(net, resnet_stages(net, depth)[1:], 80, coarse_from_backbone=True)


def _pyramid_heads(net: CnnBuilder, backbone: list[Shape], classes: int, *, coarse_from_backbone: bool = False) -> None:
    """Append a feature pyramid of five levels and its two heads of five convolutions each.

    The sixth level reads the last pyramid level, or the last backbone stage if ``coarse_from_backbone``.
    """
    pyramid = []
    for index, shape in enumerate(backbone, start=3):
        net.shape = shape
        net.conv(f"lateral {index}", 256, 1, norm=False, act=None)
        net.conv(f"pyramid {index}", 256, 3, norm=False, act=None)
        pyramid.append(net.shape)
    for index in (6, 7):
        if index == 6 and coarse_from_backbone:
            net.shape = backbone[-1]
        net.conv(f"pyramid {index}", 256, 3, 2, norm=False, act=None)
        pyramid.append(net.shape)
    for level, shape in enumerate(pyramid, start=3):
        first = len(net.operators)
        for head, outputs in (("scores", 9 * classes), ("boxes", 9 * 4)):
            net.shape = shape
            for index in range(1, 5):
                net.conv(f"{head} {level}.{index}", 256, 3, norm=False)
            net.conv(f"{head} {level}", outputs, 3, norm=False, act=None)
        if level > 3:  # all levels share the weights of the first
            net.operators[first:] = [net.without_parameters(operator) for operator in net.operators[first:]]


def retinaface(net: CnnBuilder) -> None:
    """Append RetinaFace on ResNet-50 (Deng et al., CVPR 2020; biubug6/Pytorch_Retinaface, models/net.py)."""
    laterals = []
    for index, shape in enumerate(resnet_stages(net, 50)[1:], start=3):
        net.shape = shape
        net.conv(f"lateral {index}", 256, 1)
        laterals.append(net.shape)
    for index in (4, 3):
        net.shape = laterals[index - 3]
        net.conv(f"merged {index}", 256, 3)
    for index, shape in enumerate(laterals, start=3):
        for name, into, out in (("3", 256, 128), ("5a", 256, 64), ("5b", 64, 64), ("7a", 64, 64), ("7b", 64, 64)):
            net.shape = (into, *shape[1:])
            net.conv(f"context {index}.{name}", out, 3, act="relu" if name.endswith("a") else None)
        for name, outputs in (("scores", 2), ("boxes", 4), ("landmarks", 10)):
            net.shape = shape
            net.conv(f"{name} {index}", 2 * outputs, 1, norm=False, act=None)
