"""Which ten measurements of a machine tell most of all that one wants to know of it, before any is taken.

The list of what could be measured is also what will be asked. In the order of their software and times it is cut into
five parts of the same length, and two are taken of each, so that no software and no length is left out. Which two: one
after the other, that which leaves least open of the whole list, by what is known of machines before
(:mod:`mlsys.calibration.learning`). Open is the logarithm of a row's variance; its sum falls most by the row whose mean
marginal information gain is the greatest.

D. J. C. MacKay, Information-based objective functions for active data selection, Neural Computation 4(4), 1992.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration import learning
from mlsys.calibration.case import Case
from mlsys.calibration.learning import effects_of, sensitivities

Array = NDArray[np.float64]
TEN, PARTS = 10, 5
# What a measurement says of no other, in logarithm of time.
SCATTER = max(learning.SCATTER)
# Of so many rows each is compared with each.
MOST = 2000


def likely_errors(cases: Sequence[Case], base: Array, follows: Array | None = None) -> Array:
    """Return how estimates of one machine may be off together before any is measured, shape (cases, cases).

    Covariances of the logarithms of measured over predicted time, without the scatter of each row.

    Parameters
    ----------
    cases
        Of one machine; what was measured of them is not read.
    base
        Parameters that their predictions follow, one row each.
    follows
        How they follow them, where :func:`~mlsys.calibration.learning.sensitivities` said so already.
    """
    effects = effects_of(cases, sensitivities(cases, base) if follows is None else follows)
    variances = np.mean(np.square(effects.widths), axis=0)
    names = list(dict.fromkeys((case.setting, case.version) for case in cases))
    version = np.array([names.index((case.setting, case.version)) for case in cases])
    covariances: Array = (effects.design * variances) @ effects.design.T
    covariances += max(learning.OF_VERSIONS) ** 2 * (version[:, None] == version)
    return covariances


def advised(
    cases: Sequence[Case], seconds: Sequence[float], base: Array, ten: int = TEN, follows: Array | None = None
) -> list[int]:
    """Return which measurements to take, in the order of how much they tell.

    Parameters
    ----------
    cases
        What could be measured, and will be asked, of one machine; what was measured of them is not read.
    seconds
        How long each is predicted to take.
    base
        Parameters that the predictions follow, one row each.
    ten
        How many to choose.
    follows
        As for :func:`likely_errors`.

    Examples
    --------
    >>> advised([], [], np.zeros((0, 11)))
    []
    """
    if len(cases) <= ten:
        return list(range(len(cases)))
    return most_telling(likely_errors(cases, base, follows), parts_of(cases, seconds), ten)


def parts_of(cases: Sequence[Case], seconds: Sequence[float], parts: int = PARTS) -> NDArray[np.intp]:
    """Return the part of each row, in the order of software and time."""
    order = sorted(range(len(cases)), key=lambda index: (cases[index].setting, seconds[index]))
    part = np.empty(len(cases), dtype=np.intp)
    part[order] = np.arange(len(cases)) * parts // len(cases)
    return part


def most_telling(covariances: Array, part: NDArray[np.intp], ten: int) -> list[int]:
    """Return the rows whose measurements leave the least open, as many of each part, the first the most telling.

    Examples
    --------
    >>> most_telling(np.diag([4.0, 1.0, 9.0]), np.zeros(3, dtype=np.intp), 2)
    [2, 0]
    """
    left, taken = covariances.copy(), list[int]()
    free = np.full(int(part.max()) + 1, -(-ten // (int(part.max()) + 1)))
    for _ in range(ten):
        alone = np.diagonal(left)
        after = np.maximum(alone - left**2 / (alone + SCATTER**2)[:, None], 0.0)
        open_ = np.log(after + SCATTER**2).sum(axis=1)
        open_[free[part] == 0] = np.inf
        open_[taken] = np.inf
        best = int(open_.argmin())
        taken.append(best)
        free[part[best]] -= 1
        left -= np.outer(left[:, best], left[best]) / (left[best, best] + SCATTER**2)
    return taken
