"""Lowering of operators to matrix products, including im2col for convolutions."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mlsys.choices import Stationary
from mlsys.errors import ArgumentError
from mlsys.models.systolic.folds import Folds, ceil_div, exact_count, folds
from mlsys.workloads.operator import Operator


def array_folds(
    operator: Operator, rows: Any, columns: Any, dataflow: Stationary, where: str = "systolic"
) -> list[tuple[Folds, int | None]]:
    """Return the matrix products of an operator cut for an array, each with its distinct input words or None.

    Convolutions are lowered by im2col, group by group, which repeats input words; attention is
    two products per head.

    Raises
    ------
    ArgumentError
        If the operator has no matrix product.

    Examples
    --------
    >>> from mlsys.workloads import conv2d
    >>> ((cut, distinct),) = array_folds(conv2d(1, 64, 64, size=56, kernel=3), 128, 128, "ws")
    >>> cut.m, cut.n, cut.k, distinct
    (3136, 64, 576, 200704)
    """
    products = operator.products
    if products is None:
        raise ArgumentError(
            f"{where}(): `workload` must hold matrix products alone, got {operator.name!r} ({operator.kind}). "
            "Keep what the array can run: Network(name, tuple(op for op in network if op.products))"
        )
    m, n, k, copies = products.m, math.ceil(products.n), products.k, products.copies
    distinct = None
    shapes = [(m, n, k, copies)]
    if operator.kind == "attention":
        shapes = [(m, n, k, copies // 2), (m, k, n, copies // 2)]
    elif operator.kind == "conv2d":
        shape = operator.shape
        pixels = shape["size"] ** 2 if "size" in shape else shape["height"] * shape["width"]
        distinct = min(shape["batch"] * shape["in_channels"] // shape["groups"] * pixels, m * k)
    return [
        (replace(folds(rows_out, columns_out, length, rows, columns, dataflow, where), copies=times), distinct)
        for rows_out, columns_out, length, times in shapes
    ]


def conv2d_matrices(
    image: npt.ArrayLike, filters: npt.ArrayLike, stride: int = 1, padding: int = 0, groups: int = 1
) -> list[tuple[Any, Any]]:
    """Return, for each group, the two matrices whose product is the convolution.

    Parameters
    ----------
    image
        Input, shape (channels, height, width).
    filters
        Weights, shape (filters, channels // groups, kernel height, kernel width).
    stride, padding, groups
        Parameters of the convolution; a depthwise one has as many groups as channels.

    Returns
    -------
    list of tuple
        For each group the im2col matrix, shape (output pixels, kernel volume), and the
        filters, shape (kernel volume, filters of the group).

    Raises
    ------
    ArgumentError
        If the shapes do not match.

    Examples
    --------
    >>> ((left, right),) = conv2d_matrices(np.ones((3, 5, 5)), np.ones((8, 3, 3, 3)))
    >>> left.shape, right.shape, float((left @ right).max())
    ((9, 27), (27, 8), 27.0)
    """
    x, w = np.asarray(image, dtype=float), np.asarray(filters, dtype=float)
    stride, groups = exact_count("conv2d_matrices", "stride", stride), exact_count("conv2d_matrices", "groups", groups)
    pad = (
        padding
        if padding == 0 and not isinstance(padding, bool)
        else exact_count("conv2d_matrices", "padding", padding)
    )
    fits = x.ndim == 3 and w.ndim == 4 and x.shape[0] == w.shape[1] * groups and w.shape[0] % groups == 0
    if not fits or x.shape[1] + 2 * pad < w.shape[2] or x.shape[2] + 2 * pad < w.shape[3]:
        raise ArgumentError(
            f"conv2d_matrices(): `filters` must fit `image` in {groups} groups, got image {x.shape} and filters "
            f"{w.shape}. Write image (channels, height, width), filters (filters, channels // groups, height, width)"
        )
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(1, 2))[:, ::stride, ::stride]
    depth, made = w.shape[1], ceil_div(w.shape[0], groups)
    pairs = []
    for group in range(groups):
        block = windows[group * depth : (group + 1) * depth].transpose(1, 2, 0, 3, 4)
        left = block.reshape(block.shape[0] * block.shape[1], -1)
        pairs.append((left, w[group * made : (group + 1) * made].reshape(made, -1).T))
    return pairs
