"""N:M structured sparsity: pruning, compressed storage, and what it saves.

Of every *m* consecutive weights at most *n* are non-zero. Hardware stores the *n* values and, for each, its position
among the *m*. Tensor cores from Ampere on multiply 2:4 blocks at twice their dense rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb, log2

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlsys.errors import ArgumentError
from mlsys.precision import PRECISIONS, precision_name
from mlsys.unit_checks import checked_counts


@dataclass(frozen=True)
class SparseBlocks:
    """A matrix in N:M form: the values that are kept, and their positions.

    Attributes
    ----------
    values
        Kept values, shape (rows, blocks, n).
    positions
        Position of each within its block, rising, same shape.
    n, m
        Values kept of each block, and values of a block.
    """

    values: NDArray[np.float64]
    positions: NDArray[np.int64]
    n: int
    m: int

    def decompress(self) -> NDArray[np.float64]:
        """Return the matrix with its zeros, shape (rows, columns)."""
        rows, blocks, _ = self.values.shape
        dense = np.zeros((rows, blocks, self.m))
        np.put_along_axis(dense, self.positions, self.values, axis=2)
        return dense.reshape(rows, blocks * self.m)

    def stored_bits(self, precision: str) -> int:
        """Return the bits that values and positions take in a number format.

        Examples
        --------
        >>> blocks = compress(prune(np.ones((1, 8))))
        >>> blocks.stored_bits("fp16"), blocks.stored_bits("int8")
        (72, 40)
        """
        return self.values.size * (PRECISIONS[precision_name(precision)] + index_bits(self.m))


def index_bits(m: int) -> int:
    """Return the bits of a position among ``m`` values.

    Examples
    --------
    >>> index_bits(4)
    2
    """
    (m,) = checked_counts("index_bits", m=m)
    return ceil(log2(m))


def pattern_count(n: int = 2, m: int = 4) -> int:
    """Return the number of ways to choose the kept values of a block.

    Examples
    --------
    >>> pattern_count(2, 4)
    6
    """
    n, m = _checked("pattern_count", n, m)
    return comb(m, n)


def stored_fraction(precision: str, n: int = 2, m: int = 4) -> float:
    """Return the stored bits of an N:M matrix over those of the dense one.

    Parameters
    ----------
    precision
        Number format of the values.
    n, m
        Values kept of each block, and values of a block.

    Examples
    --------
    >>> stored_fraction("fp16"), stored_fraction("int8")
    (0.5625, 0.625)
    """
    n, m = _checked("stored_fraction", n, m)
    width = PRECISIONS[precision_name(precision)]
    return n * (width + index_bits(m)) / (m * width)


def prune(weights: ArrayLike, n: int = 2, m: int = 4) -> NDArray[np.float64]:
    """Return weights with all but the ``n`` largest magnitudes of each block of ``m`` set to zero.

    Parameters
    ----------
    weights
        Matrix, shape (rows, columns); blocks run along the columns, which ``m`` must divide.
    n, m
        Values kept of each block, and values of a block.

    Raises
    ------
    ArgumentError
        If it is not a matrix whose columns ``m`` divides, or ``n`` exceeds ``m``.

    Examples
    --------
    >>> prune([[3, -1, 2, -4]])
    array([[ 3.,  0.,  0., -4.]])
    """
    blocks, (n, m) = _blocks("prune", weights, n, m)
    order = np.argsort(-np.abs(blocks), axis=2, kind="stable")
    pruned = blocks.copy()
    np.put_along_axis(pruned, order[..., n:], 0.0, axis=2)
    return pruned.reshape(blocks.shape[0], -1)


def compress(weights: ArrayLike, n: int = 2, m: int = 4) -> SparseBlocks:
    """Return a matrix in N:M form.

    Parameters
    ----------
    weights
        Matrix with at most ``n`` non-zero values in each block, shape (rows, columns).
    n, m
        Values kept of each block, and values of a block.

    Raises
    ------
    ArgumentError
        If a block has more than ``n`` non-zero values, or as in :func:`prune`.

    Examples
    --------
    >>> compress([[3, 0, 0, -4]]).positions.tolist()
    [[[0, 3]]]
    """
    blocks, (n, m) = _blocks("compress", weights, n, m)
    most = int((blocks != 0).sum(axis=2).max(initial=0))
    if most > n:
        raise ArgumentError(
            f"compress: weights must have at most {n} non-zero values in each block of {m}, got a block with {most}. "
            "Prune them first: prune(weights)"
        )
    kept = np.sort(np.argsort(blocks == 0, axis=2, kind="stable")[..., :n], axis=2)
    return SparseBlocks(np.take_along_axis(blocks, kept, axis=2), kept, n, m)


def _blocks(where: str, weights: ArrayLike, n: int, m: int) -> tuple[NDArray[np.float64], tuple[int, int]]:
    n, m = _checked(where, n, m)
    matrix = np.asarray(weights)
    if matrix.ndim != 2 or matrix.dtype.kind not in "iuf" or matrix.shape[1] % m:
        raise ArgumentError(
            f"{where}: weights must be a matrix of numbers with columns in blocks of {m}, got {matrix.dtype} of shape "
            f"{matrix.shape}. Pad the columns with zeros"
        )
    return matrix.astype(np.float64).reshape(matrix.shape[0], matrix.shape[1] // m, m), (n, m)


def _checked(where: str, n: int, m: int) -> tuple[int, int]:
    n, m = checked_counts(where, n=n, m=m)
    if n > m:
        raise ArgumentError(f"{where}: n must be at most m, got n = {n} of m = {m}")
    return n, m
