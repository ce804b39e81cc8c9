"""Traces of loop nests: matrix products, convolutions, strided reads and gathers."""

from collections.abc import Sequence

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.models.access import Layout, layout_strides
from mlsys.models.cache.geometry import whole_bytes
from mlsys.models.cache.trace import Trace, refuse_long, trace_of
from mlsys.models.tiling.traffic import ConvTile, gemm_tile, loop_order
from mlsys.unit_checks import Argument, checked_count, checked_number
from mlsys.units import Quantity

_ALIGNMENT = 4096
_STRIDE = Argument("", low=0, whole=True)
_PADDING = Argument("", low=0, whole=True)


def _bases(sizes: Sequence[int], element: int) -> np.ndarray:
    """Return the base addresses of consecutive arrays of ``sizes`` elements, each aligned to a page."""
    pages = [-(-count * element // _ALIGNMENT) * _ALIGNMENT for count in sizes]
    return np.cumsum([0, *pages[:-1]]).astype(np.int64)


def gemm_trace(
    m: int,
    n: int,
    k: int,
    element_size: Quantity,
    tile: int | tuple[int, int, int] | None = None,
    order: str = "mnk",
    inner: str | None = None,
    registers: bool = False,
) -> Trace:
    """Return the accesses of C += A·B, row-major, with a given loop order, blocked or not.

    Each multiply-accumulate reads an element of A, B and C, and writes that of C.

    Parameters
    ----------
    m, n, k
        Rows and columns of C, and length of the reduction.
    element_size
        Bytes of an element.
    tile
        Edge of a cube, or (tm, tn, tk); None for the plain, unblocked nest.
    order
        Loops over tiles, outermost first.
    inner
        Loops inside a tile, outermost first; by default as ``order``.
    registers
        Whether to keep the operand that the innermost loop does not index in a register, as a
        compiler does: with ``"mnk"`` the element of C, read before and written after the loop.
        This saves a quarter to half of the accesses, with nearly the same misses.

    Returns
    -------
    Trace
        Accesses to the operands ``A``, ``B``, ``C``, which are stored one after the other, page-aligned.

    Raises
    ------
    ArgumentError
        If a size or an order is invalid, or the trace would be longer than ``MOST_ACCESSES``.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> gemm_trace(64, 64, 64, Q_(4, "byte"))
    <trace of 1,048,576 accesses: A, B, C>
    >>> gemm_trace(64, 64, 64, Q_(4, "byte"), registers=True)
    <trace of 532,480 accesses: A, B, C>
    >>> gemm_trace(1000, 1000, 1000, Q_(4, "byte"))
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: gemm_trace(): the trace would have 4,000,000,000 accesses, more than the 50,000,000 ...
    """
    where = "gemm_trace"
    sizes = [checked_count(where, name, size) for name, size in zip("mnk", (m, n, k), strict=True)]
    edges = [min(pair) for pair in zip(sizes, sizes if tile is None else gemm_tile(where, tile), strict=True)]
    outer = loop_order(where, order)
    within = outer if inner is None else loop_order(where, inner)
    element = whole_bytes(where, "element_size", element_size)
    loops, steps = (np.array(["mnk".index(letter) for letter in text]) for text in (outer, within))
    first, second, last = (int(step) for step in steps)
    rounds = sizes[first] * sizes[second] * -(-sizes[last] // edges[last])
    macs = sizes[0] * sizes[1] * sizes[2]
    lean = 2 * macs + 2 * rounds if last == 2 else 3 * macs + rounds
    accesses = lean if registers else 4 * macs
    refuse_long(
        where,
        accesses,
        "Use gemm_traffic() for the closed form, or a smaller product with a cache smaller in proportion",
    )
    from mlsys.models.cache.kernels import fill_gemm

    addresses, kinds = np.empty(accesses, np.int64), np.empty(accesses, np.uint8)
    bases = _bases((sizes[0] * sizes[2], sizes[2] * sizes[1], sizes[0] * sizes[1]), element)
    fill_gemm(np.array(sizes), np.array(edges), loops, steps, bases, element, bool(registers), addresses, kinds)
    return Trace(addresses, kinds, ("A", "B", "C"), element)


def conv2d_trace(
    batch: int,
    in_channels: int,
    out_channels: int,
    size: int,
    kernel: int,
    element_size: Quantity,
    tile: ConvTile | None = None,
    stride: int = 1,
    padding: int | None = None,
    layout: Layout = "NCHW",
) -> Trace:
    """Return the accesses of a direct square convolution, blocked or not.

    Loops over tiles are those of :func:`mlsys.models.tiling.conv2d_traffic`; inside a tile they run
    over output channel, row, column, then input channel and the kernel's rows and columns, during
    which the output stays in a register. Padding is not read.

    Parameters
    ----------
    batch, in_channels, out_channels, size, kernel, stride, padding
        As in :func:`mlsys.workloads.conv2d`, one group.
    element_size
        Bytes of an element.
    tile
        Block of outputs and channels; None for the plain, unblocked nest.
    layout
        ``"NCHW"`` or ``"NHWC"``, for images and for the weights of each filter.

    Returns
    -------
    Trace
        Accesses to the operands ``input``, ``weights`` and ``output``.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> conv2d_trace(1, 8, 8, 14, 3, Q_(4, "byte"))
    <trace of 207,936 accesses: input, weights, output>
    """
    where = "conv2d_trace"
    names = ("batch", "in_channels", "out_channels", "size", "kernel", "stride")
    values = (batch, in_channels, out_channels, size, kernel, stride)
    images, into, filters, edge, taps, step = (
        checked_count(where, name, value) for name, value in zip(names, values, strict=True)
    )
    pad = taps // 2 if padding is None else int(checked_number(where, "padding", padding, _PADDING, {}))
    if taps > edge + 2 * pad:
        raise ArgumentError(
            f"{where}(): `kernel` of {taps} does not fit into {edge} with a padding of {pad}. "
            f"Write e.g. padding={taps // 2}"
        )
    out = (edge + 2 * pad - taps) // step + 1
    block = ConvTile(out, out, filters, into) if tile is None else tile
    element = whole_bytes(where, "element_size", element_size)
    outputs = images * filters * out * out
    most = 2 * outputs * (into * taps * taps + -(-into // block.in_channels))
    refuse_long(
        where,
        most,
        "Use conv2d_traffic() for the closed form, or fewer channels with a cache smaller in proportion",
    )
    from mlsys.models.cache.kernels import fill_conv

    addresses, kinds = np.empty(most, np.int64), np.empty(most, np.uint8)
    bases = _bases((images * into * edge * edge, filters * into * taps * taps, outputs), element)
    strides = np.array(
        [
            layout_strides(into, edge, edge, layout),
            layout_strides(into, taps, taps, layout),
            layout_strides(filters, out, out, layout),
        ]
    )
    shape = np.array([images, into, filters, edge, out, taps, step, pad])
    cut = np.array([block.rows, block.columns, block.out_channels, block.in_channels])
    accesses = fill_conv(shape, cut, strides, bases, element, addresses, kinds)
    return Trace(addresses[:accesses].copy(), kinds[:accesses].copy(), ("input", "weights", "output"), element)


def strided_trace(elements: int, stride: int, element_size: Quantity, passes: int = 1) -> Trace:
    """Return a trace of ``passes`` passes over ``elements`` elements that are ``stride`` elements apart.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> strided_trace(4, 16, Q_(4, "byte")).addresses.tolist()
    [0, 64, 128, 192]
    """
    where = "strided_trace"
    number, rounds = checked_count(where, "elements", elements), checked_count(where, "passes", passes)
    step = int(checked_number(where, "stride", stride, _STRIDE, {}))
    refuse_long(where, number * rounds, "Read fewer elements, or pass over them fewer times")
    size = whole_bytes(where, "element_size", element_size)
    return trace_of(np.tile(np.arange(number, dtype=np.int64) * step * size, rounds), element_size)


def gathered_trace(rows: Sequence[int] | np.ndarray, row_elements: int, element_size: Quantity) -> Trace:
    """Return a trace of reads of whole table rows in the order of ``rows``: an embedding look-up.

    Parameters
    ----------
    rows
        Indices of the rows read, shape (look-ups,).
    row_elements
        Elements of a row.
    element_size
        Bytes of an element.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> gathered_trace([7, 0], 2, Q_(4, "byte")).addresses.tolist()
    [56, 60, 0, 4]
    """
    where = "gathered_trace"
    width, size = checked_count(where, "row_elements", row_elements), whole_bytes(where, "element_size", element_size)
    which = np.asarray(rows)
    if which.ndim != 1 or not which.size or which.dtype.kind not in "iu" or which.min() < 0:
        raise ArgumentError(f"{where}(): `rows` must be a list of whole numbers >= 0. Write e.g. rows=[7, 0, 3]")
    refuse_long(where, len(which) * width, "Look up fewer rows")
    return trace_of((which.astype(np.int64)[:, None] * width + np.arange(width)).ravel() * size, element_size)
