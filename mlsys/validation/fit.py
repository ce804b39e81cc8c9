"""Fitting the parameters of the calibrated model, and asking how well they carry over.

One setting, a kind of software on a class of machine, is one least-squares problem: the
logarithms of predicted over measured time, with a soft loss for outliers, and a prior for
each parameter that keeps it near its physical value where the rows do not speak.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.models.calibrated import Parameters, Stack, predict
from mlsys.validation.cases import Case

__all__ = ["PRIORS", "Prior", "fit", "held_out"]

Array = NDArray[np.float64]
# More parts than this are left out several at a time.
MOST_FOLDS = 20


@dataclass(frozen=True)
class Prior:
    """Where a parameter is expected, how far it may be from there, and its limits."""

    centre: float
    factor: float  # one standard deviation, as a factor
    lowest: float
    highest: float
    why: str


PRIORS: dict[str, Prior] = {
    "compute": Prior(0.75, 1.6, 0.005, 1.05, "a tuned inner loop issues most cycles; 1.05 allows for boost clocks"),
    "vector": Prior(0.4, 2.5, 0.005, 1.05, "element-wise loops rarely fill the vector unit"),
    "bandwidth": Prior(0.85, 1.3, 0.1, 1.0, "STREAM attains 80 to 95 % of the pins' rate"),
    "reuse": Prior(0.6, 2.0, 0.05, 30.0, "part of the shared cache's rate; above 1 where nearer levels feed the tiles"),
    "launch": Prior(5e-6, 4.0, 1e-8, 5e-3, "a kernel of CUDA costs microseconds; an eager operator tens of them"),
    "ramp": Prior(64.0, 3.0, 1.0, 4096.0, "filling and draining a block's pipeline: a few dozen steps"),
    "link": Prior(0.7, 1.3, 0.1, 1.0, "ring all-reduce attains 70 to 90 % of its links"),
    "hop": Prior(2e-6, 2.5, 1e-7, 1e-3, "one step of a collective: a launch and a flight"),
    "energy": Prior(1.3e-12, 1.15, 1e-13, 1e-11, "A100: 400 W at about 300 TFLOP/s; with the design power a ceiling"),
}


def _stack(cases: Sequence[Case]) -> Stack:
    return Stack.of([(case.engine, case.work, case.stays) for case in cases])


def fit(cases: Sequence[Case]) -> Parameters:
    """Return the parameters that fit the cases of one setting.

    Parameters
    ----------
    cases
        At least one; all of one setting.
    """
    from scipy.optimize import least_squares

    stack = _stack(cases)
    measured = np.log([case.seconds for case in cases])
    waiting = np.array([case.at_least for case in cases])
    # A sweep speaks once for each row, but a hundred rows of one sweep are not a hundred opinions.
    sizes: dict[tuple[str, str], int] = {}
    for case in cases:
        key = (case.twin, case.kind)
        sizes[key] = sizes.get(key, 0) + 1
    weight = np.array([sizes[case.twin, case.kind] ** -0.25 for case in cases])
    names = Parameters.names()
    centres = np.log([PRIORS[name].centre for name in names])
    spreads = np.log([PRIORS[name].factor for name in names])

    def residuals(point: Array) -> Array:
        predicted = np.maximum(predict(stack, np.exp(point)), waiting)
        apart = (np.log(predicted) - measured) * weight / 0.15
        return np.concatenate([apart, (point - centres) / spreads])

    low = np.log([PRIORS[name].lowest for name in names])
    high = np.log([PRIORS[name].highest for name in names])
    start = np.clip(centres, low + 1e-6, high - 1e-6)
    found = least_squares(
        residuals, start, bounds=(low, high), loss="soft_l1", diff_step=1e-3, max_nfev=40, x_scale=spreads
    )
    return Parameters(*(float(value) for value in np.exp(found.x)))


def _folded(parts: list[str]) -> NDArray[np.intp]:
    """Return a number for each row's part; many parts share ``MOST_FOLDS`` numbers, whole part by whole part."""
    order = {name: index for index, name in enumerate(dict.fromkeys(parts))}
    folds = min(len(order), MOST_FOLDS)
    return np.array([order[name] % folds for name in parts])


def held_out(cases: Sequence[Case], part: Callable[[Case], str], progress: Callable[[], None] = lambda: None) -> Array:
    """Return each case's time as predicted from parameters fitted without its part.

    Parameters
    ----------
    cases
        Of one setting.
    part
        What is left out together: the device, or the sweep.
    progress
        Called after each fit.

    Returns
    -------
    array
        Seconds; NaN where leaving out the part leaves fewer than three rows.
    """
    parts = _folded([part(case) for case in cases])
    predicted = np.full(len(cases), np.nan)
    for fold in np.unique(parts):
        rest = [case for case, own in zip(cases, parts, strict=True) if own != fold]
        here = np.flatnonzero(parts == fold)
        if len(rest) >= 3:
            chosen = [cases[index] for index in here.tolist()]
            waiting = [case.at_least for case in chosen]
            predicted[here] = np.maximum(predict(_stack(chosen), fit(rest).vectorised()), waiting)
        progress()
    return predicted
