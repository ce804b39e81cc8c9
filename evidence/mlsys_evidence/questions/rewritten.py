"""Networks that a source wrote for itself under the name of a published one, and passes as training runs them.

ScalingIntelligence/KernelBench, KernelBench/level3 at 423217d9f: the layers of its DenseNets are one 3 × 3 convolution
without the 1 × 1 before it (15_DenseNet121.py), its MobileNet v2 never adds its shortcuts (20_MobileNetV2.py keeps the
first of two returned), and its EfficientNet-B0 has 13 blocks, ReLU6, and no squeeze and excitation
(22_EfficientNetB0.py).
"""

from collections.abc import Callable
from functools import partial

from mlsys.models.estimate import VECTOR, Kernel, Work
from mlsys.models.estimate.lowering import Format
from mlsys.models.estimate.work import NO_WORK
from mlsys.workloads import Network
from mlsys.workloads.zoo.cnn_builder import CnnBuilder
from mlsys.workloads.zoo.entry import Entry
from mlsys.workloads.zoo.mobile import MOBILENET_V2, inverted
from mlsys_evidence.typed_rows import TypedRow

SOURCE = "KernelBench"
GROWTH = 32
DENSENETS = {121: (6, 12, 24, 16), 201: (6, 12, 48, 32)}
# channels, kernel and stride of the blocks, the first not expanded and the others six times.
EFFICIENTNET = (
    (16, 3, 1), (24, 3, 2), (24, 3, 1), (40, 5, 2), (40, 5, 1), (80, 3, 2), (80, 3, 1),
    (112, 5, 1), (112, 5, 1), (192, 5, 2), (192, 5, 1), (192, 5, 1), (320, 3, 1),
)  # fmt: skip


def own_densenet(net: CnnBuilder, depth: int) -> None:
    """Draw a DenseNet whose layers are one convolution each."""
    net.conv("conv1", 64, 7, 2)
    net.pool(3, 2, 1)
    blocks = DENSENETS[depth]
    for block, layers in enumerate(blocks):
        for layer in range(layers):
            name, (channels, height, width) = f"block {block}.{layer}", net.shape
            _normed(net, name)
            net.conv(name, GROWTH, 3, bias=False, norm=False, act=None)
            net.shape = (channels + GROWTH, height, width)
            net.ride_along(f"{name} concatenated", net.elements, 0)
        if block + 1 < len(blocks):
            _normed(net, f"transition {block}")
            net.conv(f"transition {block}", net.channels // 2, 1, bias=False, norm=False, act=None)
            net.pool(2, 2, name=f"transition {block} pool")
    _normed(net, "last")
    net.classify(10)


def _normed(net: CnnBuilder, name: str) -> None:
    net.batch_norm(f"{name} norm")
    net.activation(f"{name} relu", net.elements, "relu")


def own_efficientnet_b0(net: CnnBuilder) -> None:
    """Draw an EfficientNet-B0 without squeeze and excitation."""
    net.conv("conv1", 32, 3, 2)
    for index, (out, kernel, stride) in enumerate(EFFICIENTNET):
        inverted(net, f"block {index}", (6 if index else 1) * net.channels, out, kernel, stride, "relu6")
    net.conv("last", 1280, 1)
    net.classify(1000)


def own_mobilenet_v2(net: CnnBuilder) -> None:
    """Draw a MobileNet v2 without shortcuts."""
    net.conv("conv1", 32, 3, 2, act="relu6")
    for stage, (expansion, out, repeats, first) in enumerate(MOBILENET_V2):
        for repeat in range(repeats):
            name, wide = f"block {stage}.{repeat}", expansion * net.channels
            if expansion > 1:
                net.conv(f"{name} expand", wide, 1, act="relu6")
            net.conv(f"{name} depthwise", wide, 3, 1 if repeat else first, groups=wide, act="relu6")
            net.conv(f"{name} project", out, 1, act=None)
    net.conv("last", 1280, 1, act="relu6")
    net.classify(1000)


DRAWN: dict[str, Callable[[CnnBuilder], None]] = {
    **{f"DenseNet-{depth}": partial(own_densenet, depth=depth) for depth in DENSENETS},
    "EfficientNet-B0": own_efficientnet_b0,
    "MobileNet-v2": own_mobilenet_v2,
}
OWN = f" of {SOURCE}"


def rewritten(name: str) -> Entry | None:
    """Return the entry of a network by the name of the published one and of who wrote another under it.

    Examples
    --------
    >>> entry = rewritten("DenseNet-121 of KernelBench")
    >>> sum(operator.kind == "conv2d" for operator in entry.build())  # 1 + 58 layers + 3 transitions
    62
    """
    draw = DRAWN.get(name.removesuffix(OWN)) if name.endswith(OWN) else None
    return draw and Entry(name, name, "picture", f"ScalingIntelligence/{SOURCE}", image=(3, 224, 224), draw=draw)


def batch_statistics(row: TypedRow, network: Callable[[], Network], fmt: Format, batch: int) -> Work:
    """Return what batch normalisations do beside their own pass where a row runs forward in training mode.

    Each counts its batches in a call of its own (``num_batches_tracked.add_(1)``, torch/nn/modules/batchnorm.py), and
    reads its input once more, for the moments.

    Parameters
    ----------
    row
        Who measured.
    network
        Builds the network for one sample in FP16, with nothing fused.
    fmt, batch
        How it runs.
    """
    if not row.has("training mode"):
        return NO_WORK
    norms = [each for each in network() if each.kind == "normalisation" or each.name.endswith(" norm")]
    return Work.of(Kernel(VECTOR, 0.0, each.shape["elements"] * batch * fmt.value) for each in norms)
