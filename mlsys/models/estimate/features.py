"""Features of a kernel's shape on which a library's speed depends smoothly, and the curves over them."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.batch import CaseBatch
from mlsys.models.estimate.effects import CURVES, MOST, curves_of
from mlsys.models.estimate.limits import bound
from mlsys.models.estimate.model import KernelTimes

Array = NDArray[np.float64]
_LITTLE = 1e-12


def features(stack: CaseBatch, times: KernelTimes) -> dict[str, Array]:
    """Return the features of each case, of shape (cases,).

    ``rows``, ``columns``, ``depth`` and ``copies`` are binary logarithms of the shape, weighted by FLOP;
    ``intensity`` that of the arithmetic bound over the traffic's;
    ``launch`` and ``cached`` parts of the time and of the bytes; ``time`` the decimal logarithm of seconds.

    Parameters
    ----------
    stack
        Cases.
    times
        Times of their kernels, from the parameters alone.
    """
    kernels = stack.kernels
    work = np.maximum(stack.total(kernels["flops"]), _LITTLE)

    def weighted(values: Array) -> Array:
        mean: Array = stack.total(values * kernels["flops"]) / work
        return mean

    whole = np.maximum(stack.total(times.seconds), _LITTLE)
    arithmetic, traffic = bound(stack)
    logs = {name: np.log2(np.maximum(kernels[name], 1.0)) for name in ("m", "n", "k", "batch")}
    return {
        "rows": weighted(logs["m"]),
        "columns": weighted(logs["n"]),
        "depth": weighted(logs["k"]),
        "copies": weighted(logs["batch"]),
        "intensity": np.log2(np.maximum(arithmetic, _LITTLE) / np.maximum(traffic, _LITTLE)),
        "launch": stack.total(times.launch) / whole,
        "cached": stack.total(stack.near) / np.maximum(stack.total(stack.near + stack.main), 1.0),
        "time": np.log10(whole),
    }


def hats(name: str, values: Array) -> tuple[NDArray[np.intp], Array]:
    """Return the index of the knot below each value of a feature, and the fractional position to the next knot."""
    lowest, highest, step = CURVES[name]
    steps_up = (np.clip(values, lowest, highest) - lowest) / step
    below = np.floor(steps_up).astype(np.intp)
    return below, steps_up - below


def knots(name: str) -> int:
    """Return the number of knots of a feature's curve."""
    lowest, highest, step = CURVES[name]
    return int(np.floor((highest - lowest) / step)) + 2


def curve_factors(stack: CaseBatch, times: KernelTimes, settings: Sequence[str]) -> Array:
    """Return the shape factor of each case's time, of shape (cases,)."""
    logs = np.zeros(stack.cases)
    names = np.array(settings, dtype=object)
    measured = features(stack, times) if stack.cases else {}
    for setting in set(settings):
        curves: Mapping[str, list[float]] = curves_of(setting)
        here = names == setting
        for name, values in curves.items():
            below, part = hats(name, measured[name][here])
            at = np.array(values)
            logs[here] += (1 - part) * at[below] + part * at[below + 1]
    limit = np.log(MOST)
    factors: Array = np.exp(np.clip(logs, -limit, limit))
    return factors
