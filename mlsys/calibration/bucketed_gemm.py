"""Products filled up with rows of nothing: what more rows do in less time, fewer do as well.

The curve of a library over shapes is fitted to single products, each of which says little, and may fall with the rows
where the transfer of weights leaves time as it is. A program that has fewer rows than its neighbour in the curve, and
would be slower for it, may fill them up: to a power of two, as the sides of tiles are.
"""

from collections.abc import Callable
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case
from mlsys.models.estimate import CaseBatch
from mlsys.models.estimate.work import MATMUL

Array = NDArray[np.float64]

# Times as long as it takes as it is, from which a product is filled up no further: no curve falls so far.
GIVEN_UP = 1.5


def is_one_product(case: Case) -> bool:
    """Return whether a case is a single product of matrices, whatever else stands beside it."""
    return int((case.work["kind"] == MATMUL).sum()) == 1


def filled_up(stack: CaseBatch, step: int) -> CaseBatch:
    """Return products whose rows are filled up to a power of two: the next above at ``step`` 0, then those after it.

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
    """Return the least of the times of products as they are and filled up, of shape (cases,).

    Parameters
    ----------
    stack
        Single products.
    seconds
        What each takes as it is.
    time
        Returns what such a stack takes, seconds, of the cases of these numbers.
    """
    least, left = seconds.copy(), np.arange(stack.cases)
    for step in count():
        if not len(left):
            break
        filled = time(filled_up(stack.of_cases(left), step), left)
        least[left] = np.minimum(least[left], filled)
        left = left[filled < GIVEN_UP * seconds[left]]
    return least
