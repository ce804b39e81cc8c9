"""Imitate another math library: results of NumPy's and Python's functions that differ in the last digits.

NumPy calls Intel's vector library where there is AVX-512, other code on Arm, and the C library elsewhere; their results
differ by up to four units in the last place. With this folder in ``PYTHONPATH`` an interpreter loads this module first,
and moves results by up to two units, each by as much every time. Whole numbers, which all libraries return exactly,
stay.
"""

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

with contextlib.suppress(ImportError):
    import ml_dtypes  # noqa: F401  # adds its loops to NumPy's ufuncs by name, so before they are replaced

UFUNCS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "power", "float_power", "sin", "cos", "tanh", "cbrt")
MATH = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sin", "cos", "tan", "tanh", "cbrt")
_HASH, _UNITS = np.uint64(0x9E3779B97F4A7C15), 2


def moved(values: ArrayLike) -> NDArray[np.float64]:
    """Return float64 values moved by up to two units in the last place, by a hash of each."""
    exact = np.asarray(values, dtype=np.float64)
    bits = np.ascontiguousarray(exact).view(np.uint64)
    steps = ((bits * _HASH) >> np.uint64(40)) % np.uint64(2 * _UNITS + 1)
    other = (bits + steps - np.uint64(_UNITS)).view(np.float64)
    kept = ~np.isfinite(exact) | (exact == np.rint(exact)) | (np.abs(exact) < 1e-300)
    return np.where(kept, exact, other.reshape(exact.shape))


class _Ufunc:
    """A ufunc whose calls are moved; all else is that of the ufunc."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc
        self.__name__, self.__doc__ = ufunc.__name__, ufunc.__doc__

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        result = self._ufunc(*args, **named)
        if getattr(result, "dtype", None) != np.float64 or type(result) not in (np.ndarray, np.float64):
            return result
        if named.get("out") is not None:
            result[...] = moved(result)
            return result
        return moved(result) if result.ndim else np.float64(moved(result)[()])


def _other(function: Callable[..., float]) -> Callable[..., float]:
    @functools.wraps(function)
    def call(*args: float) -> float:
        return float(moved(function(*args))[()])

    return call


for _name in UFUNCS:
    setattr(np, _name, _Ufunc(getattr(np, _name)))
for _name in MATH:
    if hasattr(math, _name):
        setattr(math, _name, _other(getattr(math, _name)))
