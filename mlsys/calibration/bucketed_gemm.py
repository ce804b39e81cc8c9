"""Products padded to a larger bucket: if more rows take less time, fewer rows need not take longer.

A library's curve over shapes is fitted to single products with few measurements each, and may fall with the number of
rows where weight traffic dominates. A program whose product would be slower than a neighbour with more rows may pad it
to a power of two, the granularity of tiles.
"""

from collections.abc import Callable
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case
from mlsys.models.estimate import CaseBatch
from mlsys.models.estimate.work import MATMUL

Array = NDArray[np.float64]

# Ratio of times below which a product is not padded any further: no curve falls that much.
GIVEN_UP = 1.5


def is_one_product(case: Case) -> bool:
    """Return whether a case is a single matrix product, possibly with other kernels."""
    return int((case.work["kind"] == MATMUL).sum()) == 1


def filled_up(stack: CaseBatch, step: int) -> CaseBatch:
    """Return products padded to a power of two rows: the next one at ``step`` 0, larger ones at further steps.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware import view
    >>> from mlsys.models.estimate.work import Kernel, Work
    >>> product = Work.of([Kernel(MATMUL, 2.0 * 3 * 8 * 4, 2.0 * (12 + 32 + 24), m=3, n=8, k=4)])
    >>> stack = CaseBatch.of([(view(Hardware.Cloud.A100, "fp16"), product, 0.0)])
    >>> filled = [filled_up(stack, step).kernels for step in (0, 1)]
    >>> [(float(kernels["m"][0]), float(kernels["moved"][0])) for kernels in filled]
    [(4.0, 160.0), (8.0, 256.0)]
    """
    kernels = stack.kernels
    product = kernels["kind"] == MATMUL
    m, n, k = (kernels[name] for name in "mnk")
    rows = np.where(product, 2.0 ** (np.floor(np.log2(m)) + 1 + step), m)
    more = (rows * (k + n) + k * n) / (m * (k + n) + k * n)
    return stack.doing(m=rows, flops=kernels["flops"] * rows / m, moved=kernels["moved"] * more)


def least_when_filled_up(
    stack: CaseBatch, seconds: Array, time: Callable[[CaseBatch, NDArray[np.intp]], Array]
) -> Array:
    """Return the least of the times of products without and with padding, of shape (cases,).

    Parameters
    ----------
    stack
        Single products.
    seconds
        Time of each product without padding.
    time
        Function that returns the seconds of a batch, for the cases with these indices.
    """
    least, left = seconds.copy(), np.arange(stack.cases)
    for step in count():
        if not len(left):
            break
        filled = time(filled_up(stack.of_cases(left), step), left)
        least[left] = np.minimum(least[left], filled)
        left = left[filled < GIVEN_UP * seconds[left]]
    return least
