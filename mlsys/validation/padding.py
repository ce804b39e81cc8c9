"""Products filled up with rows of nothing: what more rows do in less time, fewer do as well.

The curve of a library over shapes is fitted to single products, each of which says little, and may fall with the rows
where the transfer of weights leaves time as it is. A program that has fewer rows than its neighbour in the curve, and
would be slower for it, may fill them up: to a power of two, as the sides of tiles are.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mlsys.models.calibrated.work import MATMUL, Work
from mlsys.validation.cases import Case

Array = NDArray[np.float64]

# Times as long as it takes as it is, from which a product is filled up no further: no curve falls so far.
GIVEN_UP = 1.5


def is_one_product(case: Case) -> bool:
    """Return whether a case is a single product of matrices, whatever else stands beside it."""
    return int((case.work["kind"] == MATMUL).sum()) == 1


def filled_up(work: Work, step: int) -> Work:
    """Return a product whose rows are filled up to a power of two: the next at ``step`` 0, then those after it.

    Examples
    --------
    >>> from mlsys.models.calibrated.work import Kernel
    >>> product = Work.of([Kernel(MATMUL, 2.0 * 3 * 8 * 4, 2.0 * (12 + 32 + 24), m=3, n=8, k=4)])
    >>> [(float(filled["m"][0]), float(filled["moved"][0])) for filled in (filled_up(product, step) for step in (0, 1))]
    [(4.0, 160.0), (8.0, 256.0)]
    """
    product, columns = work["kind"] == MATMUL, work.columns.copy()
    m, n, k = (work[name] for name in "mnk")
    rows = 2 ** (np.ceil(np.log2(m)) + step)
    more = (rows * (k + n) + k * n) / (m * (k + n) + k * n)
    for name, values in (("m", rows), ("flops", work["flops"] * rows / m), ("moved", work["moved"] * more)):
        columns[Work.FIELDS.index(name)] = np.where(product, values, work[name])
    return Work(columns)


def least_when_filled_up(cases: Sequence[Case], seconds: Array, time: Callable[[Sequence[Case]], Array]) -> Array:
    """Return the least of the times of products as they are and filled up, of shape (cases,).

    Parameters
    ----------
    cases
        Single products.
    seconds
        What each takes as it is.
    time
        Returns what such cases take, seconds.
    """
    least, left = seconds.copy(), np.arange(len(cases))
    for step in count():
        if not len(left):
            break
        filled = time([replace(cases[at], work=filled_up(cases[at].work, step)) for at in left.tolist()])
        least[left] = np.minimum(least[left], filled)
        left = left[filled < GIVEN_UP * seconds[left]]
    return least
