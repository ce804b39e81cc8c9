"""How much of an error is the scale of a whole sweep, which no question that is new can know."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.provenance import remembered, traced
from mlsys_evidence.evaluate.report import Prediction
from mlsys_evidence.fit.refit import held_out_predictions

# Sweeps with fewer rows do not say what their scale is.
FEWEST_ROWS = 3
FEWEST_SWEEPS, FEWEST_IN_CLASS = 3, 50


@dataclass(frozen=True)
class ErrorDecomposition:
    """The error of one class of machine and kind of work, with and without the scale of its sweeps.

    Attributes
    ----------
    group
        Class of machine and kind of work.
    rows, sweeps
        Of sweeps with three rows or more.
    error
        Median error with the whole sweep left out of the fit, as a part of the published value.
    known
        The same, were the median ratio of the sweep's other rows known: what shapes alone leave.
    """

    group: str
    rows: int
    sweeps: int
    error: float
    known: float


def without_scale(residuals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithms of one sweep, each less the median of the others.

    Examples
    --------
    >>> without_scale(np.array([1.0, 1.0, 1.0, 3.0])).tolist()
    [0.0, 0.0, 0.0, 2.0]
    """
    others = [float(np.median(np.delete(residuals, row))) for row in range(len(residuals))]
    return np.asarray(residuals - np.array(others), dtype=np.float64)


def _error(each: Prediction, residual: float) -> float:
    """Return the error of the published value, for a predicted time off by ``residual`` in logarithm."""
    inverse = each.case is not None and each.case.inverse
    return abs(float(np.expm1(-residual if inverse else residual)))


def _decomposition(group: str, chosen: Sequence[Prediction]) -> ErrorDecomposition | None:
    sweeps: dict[str, list[Prediction]] = {}
    for each in chosen:
        sweeps.setdefault(each.row.group or each.row.device, []).append(each)
    whole = [sweep for sweep in sweeps.values() if len(sweep) >= FEWEST_ROWS]
    rows = [each for sweep in whole for each in sweep]
    if len(whole) < FEWEST_SWEEPS or len(rows) < FEWEST_IN_CLASS:
        return None
    plain = [np.log([each.ratio for each in sweep]) for sweep in whole]
    shapes = np.concatenate([without_scale(residuals) for residuals in plain])
    errors = [_error(each, residual) for each, residual in zip(rows, np.concatenate(plain).tolist(), strict=True)]
    known = [_error(each, residual) for each, residual in zip(rows, shapes.tolist(), strict=True)]
    return ErrorDecomposition(group, len(rows), len(whole), float(np.median(errors)), float(np.median(known)))


@remembered
@traced
def error_decompositions() -> tuple[ErrorDecomposition, ...]:
    """Return every class of machine and kind of work with rows enough to part its error.

    Examples
    --------
    >>> all(group.sweeps >= 3 and 0 < group.known < 1 for group in error_decompositions())
    True
    """
    groups: dict[str, list[Prediction]] = {}
    for each in held_out_predictions("sweep"):
        groups.setdefault(f"{each.row.device_class}: {each.kind}", []).append(each)
    parts = (_decomposition(name, groups[name]) for name in sorted(groups))
    return tuple(group for group in parts if group is not None)
