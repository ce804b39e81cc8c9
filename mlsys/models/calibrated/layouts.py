"""Copies that a library makes to have numbers lie as its kernels read them, beside what a network computes.

A library's convolutions want inputs, outputs and weights in an order of their own. A compiler that sees the whole
network orders them once; a framework that hands over one layer at a time has them copied at every call.
"""

from collections.abc import Container

from mlsys.models.calibrated.lowering import Format
from mlsys.models.calibrated.work import VECTOR, Kernel, Work
from mlsys.workloads import Network

_SIDES = ("kernel", "kernel_height", "kernel_width")


def turned_kernels(network: Network, fmt: Format, narrowest: int = 2) -> Work:
    """Return the kernels that turn inputs and outputs of dense convolutions from planes to pixels, and back.

    Matrix units multiply channels that lie side by side (NHWC: NVIDIA, Convolutional Layers User's Guide, "Tensor
    Layouts"); networks in PyTorch lie in planes (NCHW) unless asked otherwise. Where a convolution sees one pixel,
    planes are rows of its product as they lie.

    Parameters
    ----------
    network
        Built in FP16, with nothing fused.
    fmt
        Bytes of a value.
    narrowest
        Pixels that a filter is wide at least; with one pixel, gradients of weights sum over pixels all the same.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> network, half = zoo.network("resnet50", precision="fp16", fused=False), Format("fp16", 2, 2)
    >>> int(turned_kernels(network, half)["count"].sum())  # the first of its convolutions, and one in each of 16 blocks
    34
    """
    arrays = network.arrays
    kernels = []
    for row, operator in zip(arrays.order.tolist(), network.operators, strict=True):
        shape = operator.shape
        dense = operator.kind == "conv2d" and shape.get("groups", 1) == 1
        if dense and max(shape.get(side, 1) for side in _SIDES) >= narrowest:
            both, outputs = float(arrays.data[row] - arrays.weights[row]) / 2, float(arrays.m[row] * arrays.n[row])
            for values in (both - outputs, outputs):
                kernels.append(Kernel(VECTOR, flops=0.0, moved=2 * values * fmt.value))
    return Work.of(kernels)


def blocked_weights(network: Network, fmt: Format, others: Container[str] = ()) -> Work:
    """Return the kernels that copy the weights of convolutions into blocks, before each pass.

    oneDNN's convolutions read weights in blocks of a vector of filters. PyTorch keeps them as planes, and hands them
    over at each call, eager or from what torch.compile makes, unless a model was frozen (intel/ideep issue 7 and
    pytorch/pytorch pull request 88988 are of these copies).

    Parameters
    ----------
    network
        Built in FP16, with nothing fused.
    fmt
        Bytes of a weight.
    others
        Names of operators that are written as convolutions, too.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> network, single = zoo.network("resnet50", precision="fp16", fused=False), Format("fp32", 4, 4)
    >>> copies = blocked_weights(network, single)
    >>> f"{copies.launches:.0f} copies, {(copies['moved'] * copies['count']).sum() / 1e6:.0f} MB"
    '53 copies, 188 MB'
    """
    arrays = network.arrays
    return Work.of(
        Kernel(VECTOR, flops=0.0, moved=2 * float(arrays.weights[row]) * fmt.weight / 2)
        for row, operator in zip(arrays.order.tolist(), network.operators, strict=True)
        if operator.kind == "conv2d" or operator.name in others
    )
