"""Times of cases side by side, at parameters that are known."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case
from mlsys.models.estimate import CaseBatch, calibrated_times

Array = NDArray[np.float64]


def stack_of(cases: Sequence[Case]) -> CaseBatch:
    """Return cases side by side, as the model takes them."""
    return CaseBatch.of([(case.engine, case.work, case.cached) for case in cases])


def with_latency(cases: Sequence[Case], seconds: Array) -> Array:
    """Return times of cases, none below what latency takes whatever the rates."""
    times: Array = np.maximum(seconds, [case.at_least for case in cases])
    return times


def case_times(cases: Sequence[Case], parameters: Array, stack: CaseBatch | None = None) -> Array:
    """Return the time of each case, seconds.

    Parameters
    ----------
    cases
        As :func:`~mlsys.calibration.questions.interpret` returns them.
    parameters
        One row for each case, as :meth:`Parameters.vectorised` has it.
    stack
        Of the same cases, where there is one already.
    """
    return with_latency(cases, calibrated_times(stack_of(cases) if stack is None else stack, parameters))
