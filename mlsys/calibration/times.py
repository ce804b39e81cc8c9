"""Times of batches of cases at given parameters."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case
from mlsys.models.estimate import CaseBatch, calibrated_times

Array = NDArray[np.float64]


def stack_of(cases: Sequence[Case]) -> CaseBatch:
    """Return cases as a batch for the model."""
    return CaseBatch.of([(case.engine, case.work, case.cached) for case in cases])


def with_latency(cases: Sequence[Case], seconds: Array) -> Array:
    """Return times of cases, raised to their latency limits."""
    times: Array = np.maximum(seconds, [case.at_least for case in cases])
    return times


def case_times(cases: Sequence[Case], parameters: Array, stack: CaseBatch | None = None) -> Array:
    """Return the time of each case, seconds.

    Parameters
    ----------
    cases
        As returned by :func:`~mlsys.calibration.questions.interpret`.
    parameters
        One row per case, as returned by :meth:`Parameters.vectorised`.
    stack
        Batch of the same cases, if already built.
    """
    return with_latency(cases, calibrated_times(stack_of(cases) if stack is None else stack, parameters))
