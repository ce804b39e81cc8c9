"""Deduplication of equal columns, so that each distinct column is computed once."""

from functools import cache

import numpy as np
from numpy.typing import NDArray


def distinct_columns(numbers: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of the distinct columns, and for each column the index of its representative.

    Columns are hashed by weighted sums of their bits; in case of a hash collision, all columns are returned.

    Examples
    --------
    >>> numbers = np.array([[1.0, 2.0, 1.0], [5.0, 5.0, 5.0]])
    >>> first, which = distinct_columns(numbers)
    >>> len(first), bool((numbers[:, first][:, which] == numbers).all())
    (2, True)
    """
    sums = (numbers.view(np.uint64) * _scattered(len(numbers))).sum(axis=0)
    _, first, which = np.unique(sums, return_index=True, return_inverse=True)
    if np.array_equal(numbers[:, first][:, which], numbers):
        return first, which
    every = np.arange(numbers.shape[1])
    return every, every


@cache
def _scattered(rows: int) -> NDArray[np.uint64]:
    """Return an odd number for each row, of shape (rows, 1)."""
    odd: NDArray[np.uint64] = 2 * np.random.default_rng(1).integers(0, 2**63, size=(rows, 1), dtype=np.uint64) + 1
    return odd
