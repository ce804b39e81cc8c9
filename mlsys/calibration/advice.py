"""Selection of the most informative measurements of a machine before any is taken.

The list of possible measurements is also the list of future questions. Sorted by software and time it is divided into
five parts of equal length, and two rows are chosen from each, so that every software and every duration is covered.
Rows are chosen greedily: the one that leaves the least uncertainty about the whole list, given the prior knowledge of
machines (:mod:`mlsys.calibration.learning`). Uncertainty is the logarithm of a row's variance; its sum falls most by
the row with the greatest mean marginal information gain.

D. J. C. MacKay, Information-based objective functions for active data selection, Neural Computation 4(4), 1992.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration import learning
from mlsys.calibration.case import Case
from mlsys.calibration.learning import effects_of, sensitivities
from mlsys.formatting import significant

Array = NDArray[np.float64]
TEN, PARTS = 10, 5
# Standard deviation, in logarithm of time, of a row's own scatter, which is independent of all other rows.
SCATTER = max(learning.SCATTER)
# Maximum number of rows for pairwise comparison.
MOST = 2000
# Rows that are equally informative are chosen in the order of the list: beyond these digits, CPUs differ.
DIGITS = 9


def likely_errors(cases: Sequence[Case], base: Array, follows: Array | None = None) -> Array:
    """Return the prior covariances of the errors of one machine's estimates, shape (cases, cases).

    Covariances of the logarithms of measured over predicted time, without the scatter of each row.

    Parameters
    ----------
    cases
        Cases of one machine; their measured values are not used.
    base
        Parameters of the predictions, one row each.
    follows
        Sensitivities to the parameters, if known: :func:`~mlsys.calibration.learning.sensitivities`.
    """
    effects = effects_of(cases, sensitivities(cases, base) if follows is None else follows)
    variances = np.mean(np.square(effects.widths), axis=0)
    names = list(dict.fromkeys((case.setting, case.version) for case in cases))
    version = np.array([names.index((case.setting, case.version)) for case in cases])
    covariances: Array = (effects.design * variances) @ effects.design.T
    covariances += max(learning.OF_VERSIONS) ** 2 * (version[:, None] == version)
    return covariances


def most_informative(
    cases: Sequence[Case], seconds: Sequence[float], base: Array, ten: int = TEN, follows: Array | None = None
) -> list[int]:
    """Return the indices of the measurements to take, the most informative first.

    Parameters
    ----------
    cases
        Possible measurements, and future questions, of one machine; their measured values are not used.
    seconds
        Predicted time of each.
    base
        Parameters of the predictions, one row each.
    ten
        Number of measurements to choose.
    follows
        As for :func:`likely_errors`.

    Examples
    --------
    >>> most_informative([], [], np.zeros((0, 11)))
    []
    """
    if len(cases) <= ten:
        return list(range(len(cases)))
    return most_telling(likely_errors(cases, base, follows), parts_of(cases, seconds), ten)


def parts_of(cases: Sequence[Case], seconds: Sequence[float], parts: int = PARTS) -> NDArray[np.intp]:
    """Return the part that each row belongs to, in order of software and time."""
    rounded = [significant(time, DIGITS) for time in seconds]
    order = sorted(range(len(cases)), key=lambda index: (cases[index].setting, rounded[index]))
    part = np.empty(len(cases), dtype=np.intp)
    part[order] = np.arange(len(cases)) * parts // len(cases)
    return part


def most_telling(covariances: Array, part: NDArray[np.intp], ten: int) -> list[int]:
    """Return the rows whose measurement leaves the least uncertainty, equally many of each part, the best first.

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
        best = int(np.round(open_, DIGITS).argmin())
        taken.append(best)
        free[part[best]] -= 1
        left -= np.outer(left[:, best], left[best]) / (left[best, best] + SCATTER**2)
    return taken
