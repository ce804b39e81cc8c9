"""Whole networks written down layer by layer."""

from __future__ import annotations

from mlsys.workloads.operator import Network, Operator
from mlsys.workloads.operators import conv2d, dense

__all__ = ["resnet50"]

# (width of the bottleneck, blocks, stride of the first block), He et al. 2016, table 1.
_RESNET50_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def resnet50(batch: int = 1, precision: str = "fp16") -> Network:
    """Return the convolutions and the classifier of ResNet-50 for 224 × 224 images.

    Batch normalisation, rectifiers, additions and pooling are taken as fused or left
    out: they are the subject of the chapter on fusion. The stride of a stage sits in
    the 3 × 3 convolution of its first block (the variant known as v1.5).

    Parameters
    ----------
    batch
        Images.
    precision
        Number format of weights and activations.

    References
    ----------
    K. He, X. Zhang, S. Ren, J. Sun, Deep residual learning for image recognition,
    CVPR 2016, table 1.

    Examples
    --------
    >>> network = resnet50(batch=32)
    >>> len(network), sum(operator.kind == "conv2d" for operator in network)
    (54, 53)
    """
    layers: list[Operator] = []

    def conv(label: str, channels_in: int, channels_out: int, size: int, kernel: int, stride: int = 1) -> int:
        layer = conv2d(batch, channels_in, channels_out, size, kernel, stride, precision=precision, name=label)
        layers.append(layer)
        return layer.shape["out_size"]

    size = conv("conv1", 3, 64, 224, 7, 2)
    size //= 2  # max pooling, 3 × 3, stride 2
    channels = 64
    for stage, (width, blocks, first_stride) in enumerate(_RESNET50_STAGES, start=2):
        for block in range(1, blocks + 1):
            stride = first_stride if block == 1 else 1
            label = f"conv{stage}_{block}"
            conv(f"{label}a", channels, width, size, 1)
            out = conv(f"{label}b", width, width, size, 3, stride)
            conv(f"{label}c", width, 4 * width, out, 1)
            if block == 1:
                conv(f"{label} shortcut", channels, 4 * width, size, 1, stride)
            size, channels = out, 4 * width
    layers.append(dense(batch, channels, 1000, precision, name="classifier"))
    return Network("ResNet-50", tuple(layers))
