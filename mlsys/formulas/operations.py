"""Operation counts and compulsory memory traffic of operators.

MAC and FLOP are separate units: one MAC converts to two FLOP. Bytes are compulsory
traffic: every input is read once and every output written once, with the element
size that the caller gives.
"""

import numpy as np

from mlsys.unit_checks import at_least, count, nonnegative, positive, quantity_function

_SIZE = positive("byte")


@quantity_function("MAC", m=count(), n=count(), k=count())
def gemm_macs(m: int, n: int, k: int) -> int:
    """Return the multiply-accumulates of an (m × k) by (k × n) product, m·n·k.

    Parameters
    ----------
    m, n, k
        Rows of the output, columns of the output, length of the reduction.

    Returns
    -------
    Quantity
        MAC; ``.to("FLOP")`` doubles it.

    Examples
    --------
    >>> print(gemm_macs(32, 512, 256), gemm_macs(32, 512, 256).to("FLOP"))
    4194304 MAC 8388608 FLOP
    """
    return m * n * k


@quantity_function("byte", m=count(), n=count(), k=count(), element_size=_SIZE)
def gemm_bytes(m: int, n: int, k: int, element_size: float) -> float:
    """Return the compulsory traffic of a GEMM, (m·k + k·n + m·n) elements.

    Parameters
    ----------
    m, n, k
        As in :func:`gemm_macs`.
    element_size
        Bytes per element, such as ``BYTES_FP16``.

    Returns
    -------
    Quantity
        byte: both operands read once, the product written once.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(gemm_bytes(32, 2048, 2048, Q_(2, "byte")).to("MB"))
    8.650752 MB
    """
    return (m * k + k * n + m * n) * element_size


@quantity_function("FLOP/byte", m=count(), n=count(), k=count(), element_size=_SIZE)
def gemm_intensity(m: int, n: int, k: int, element_size: float) -> float:
    """Return the arithmetic intensity of a GEMM, 2·m·n·k over its compulsory bytes.

    Parameters
    ----------
    m, n, k
        As in :func:`gemm_macs`.
    element_size
        Bytes per element.

    Returns
    -------
    Quantity
        FLOP/byte, below 2·min(m, n, k)/element_size.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{gemm_intensity(32, 2048, 2048, Q_(2, 'byte')):.2f}")
    31.03 FLOP/B
    """
    return 2 * m * n * k / ((m * k + k * n + m * n) * element_size)


@quantity_function(
    "",
    lambda size, kernel, stride=1, padding=0, dilation=1: (
        "the kernel does not fit into the padded input. Increase `padding` or reduce `kernel`"
        if np.any(size + 2 * padding < dilation * (kernel - 1) + 1)
        else None
    ),
    size=count(),
    kernel=count(),
    stride=count(),
    padding=at_least(0),
    dilation=count(),
)
def conv_output_size(size: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Return the output length of a convolution along one axis.

    Parameters
    ----------
    size, kernel, stride, padding, dilation
        Sizes along this axis, in elements; the padding is added on both sides.

    Returns
    -------
    Quantity
        Pure number, floor((size + 2·padding − dilation·(kernel−1) − 1) / stride) + 1.

    Examples
    --------
    >>> print(conv_output_size(224, 7, stride=2, padding=3))
    112
    """
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


_CONV = {
    "batch": count(),
    "in_channels": count(),
    "out_channels": count(),
    "out_height": count(),
    "out_width": count(),
    "kernel_height": count(),
    "kernel_width": count(),
    "groups": count(),
}


def _groups_fit(in_channels: int, out_channels: int, groups: int = 1, **_: object) -> str | None:
    if np.any(in_channels % groups) or np.any(out_channels % groups):
        return "`groups` must divide both `in_channels` and `out_channels`"
    return None


@quantity_function("MAC", _groups_fit, **_CONV)
def conv2d_macs(
    batch: int,
    in_channels: int,
    out_channels: int,
    out_height: int,
    out_width: int,
    kernel_height: int,
    kernel_width: int,
    groups: int = 1,
) -> int:
    """Return the multiply-accumulates of a 2-D convolution.

    Parameters
    ----------
    batch, in_channels, out_channels
        Number of images and of input and output channels.
    out_height, out_width
        Size of the *output*, which accounts for the stride.
    kernel_height, kernel_width
        Size of the filters.
    groups
        Channel groups; ``groups=in_channels`` is a depthwise convolution.

    Returns
    -------
    Quantity
        MAC.

    Examples
    --------
    >>> print(f"{conv2d_macs(32, 128, 256, 56, 56, 3, 3).to('GFLOP'):.2f}")
    59.19 GFLOP
    """
    return batch * out_channels * out_height * out_width * (in_channels // groups) * kernel_height * kernel_width


@quantity_function("byte", _groups_fit, **_CONV, in_height=count(), in_width=count(), element_size=_SIZE)
def conv2d_bytes(
    batch: int,
    in_channels: int,
    in_height: int,
    in_width: int,
    out_channels: int,
    out_height: int,
    out_width: int,
    kernel_height: int,
    kernel_width: int,
    element_size: float,
    groups: int = 1,
) -> float:
    """Return the compulsory traffic of a 2-D convolution: input, filters, output.

    Parameters
    ----------
    batch, in_channels, in_height, in_width
        Shape of the input.
    out_channels, out_height, out_width
        Shape of the output.
    kernel_height, kernel_width, groups
        Shape of the filters.
    element_size
        Bytes per element.

    Returns
    -------
    Quantity
        byte.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> data = conv2d_bytes(32, 128, 56, 56, 256, 56, 56, 3, 3, Q_(2, "byte"))
    >>> print(f"{data.to('MB'):.2f}")
    77.66 MB
    """
    inputs = batch * in_channels * in_height * in_width
    filters = out_channels * (in_channels // groups) * kernel_height * kernel_width
    outputs = batch * out_channels * out_height * out_width
    return (inputs + filters + outputs) * element_size


@quantity_function("FLOP", elements=count(), operations_per_element=nonnegative("FLOP"))
def elementwise_flops(elements: int, operations_per_element: float) -> float:
    """Return the work of an element-wise operator or a row reduction.

    Parameters
    ----------
    elements
        Number of elements of the tensor.
    operations_per_element
        FLOP per element; the text that uses it states how they are counted.

    Returns
    -------
    Quantity
        FLOP.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(elementwise_flops(1000, Q_(3, "FLOP")))
    3000 FLOP
    """
    return elements * operations_per_element


@quantity_function("byte", elements=count(), tensors_read=at_least(0), tensors_written=at_least(0), element_size=_SIZE)
def elementwise_bytes(elements: int, tensors_read: float, tensors_written: float, element_size: float) -> float:
    """Return the memory traffic of an element-wise operator, which reads and writes whole tensors.

    Parameters
    ----------
    elements
        Number of elements of one tensor.
    tensors_read, tensors_written
        Number of tensors of that size that are read and written.
    element_size
        Bytes per element.

    Returns
    -------
    Quantity
        byte.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(elementwise_bytes(1000, 1, 1, Q_(2, "byte")))
    4000 B
    """
    return elements * (tensors_read + tensors_written) * element_size


_ATTENTION = {
    "batch": count(),
    "heads": count(),
    "queries": count(),
    "keys": count(),
    "head_dim": count(),
}


@quantity_function("MAC", **_ATTENTION)
def attention_macs(batch: int, heads: int, queries: int, keys: int, head_dim: int) -> int:
    """Return the multiply-accumulates of the two products of attention, 2·B·H·Nq·Nk·d.

    Parameters
    ----------
    batch, heads
        Number of sequences and of query heads.
    queries, keys
        Number of queries and of keys; a decode step has one query.
    head_dim
        Width of one head.

    Returns
    -------
    Quantity
        MAC of Q·Kᵀ and of the scores times V; softmax is counted separately, and a causal
        mask does not reduce the count.

    Examples
    --------
    >>> print(attention_macs(1, 1, 2048, 2048, 64).to("MFLOP"))
    1073.74182 MFLOP
    """
    return 2 * batch * heads * queries * keys * head_dim


@quantity_function("byte", **_ATTENTION, element_size=_SIZE, score_passes=at_least(0))
def attention_bytes(
    batch: int, heads: int, queries: int, keys: int, head_dim: int, element_size: float, score_passes: float = 4
) -> float:
    """Return the memory traffic of attention: Q, K, V and the output, and the scores if they leave the chip.

    Parameters
    ----------
    batch, heads, queries, keys, head_dim
        As in :func:`attention_macs`.
    element_size
        Bytes per element.
    score_passes
        Number of passes over the score matrix in memory: 4 when product, softmax and product
        are three kernels (write, read, write, read), 0 when they are fused.

    Returns
    -------
    Quantity
        byte.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(attention_bytes(1, 1, 2048, 2048, 64, Q_(2, "byte"), score_passes=0).to("MB"))
    1.048576 MB
    """
    per_head = 2 * queries * head_dim + 2 * keys * head_dim + score_passes * queries * keys
    return batch * heads * per_head * element_size
