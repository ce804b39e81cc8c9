"""Imitate another math library: results of NumPy's and Python's functions that differ in the last digits.

NumPy calls Intel's vector library where there is AVX-512, other code on Arm, and the C library elsewhere; their results
differ by up to four units in the last place. With this folder in ``PYTHONPATH`` an interpreter loads this module first,
and moves results by up to two units, each by as much every time. Whole numbers, which all libraries return exactly,
stay.
"""

import functools
import math

import numpy as np

UFUNCS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "power", "float_power", "sin", "cos", "tanh", "cbrt")
MATH = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sin", "cos", "tan", "tanh", "cbrt")
_HASH, _UNITS = np.uint64(0x9E3779B97F4A7C15), 2


def moved(values):
    """Return float64 values moved by up to two units in the last place, by a hash of each."""
    values = np.asarray(values)
    bits = np.ascontiguousarray(values).view(np.uint64)
    steps = ((bits * _HASH) >> np.uint64(40)) % np.uint64(2 * _UNITS + 1)
    other = (bits + steps - np.uint64(_UNITS)).view(np.float64)
    kept = ~np.isfinite(values) | (values == np.rint(values)) | (np.abs(values) < 1e-300)
    return np.where(kept, values, other.reshape(values.shape))


class _Ufunc:
    """A ufunc whose calls are moved; all else is that of the ufunc."""

    def __init__(self, ufunc):
        self._ufunc = ufunc
        functools.update_wrapper(self, ufunc, updated=())

    def __getattr__(self, name):
        return getattr(self._ufunc, name)

    def __call__(self, *args, **named):
        result = self._ufunc(*args, **named)
        if getattr(result, "dtype", None) != np.float64 or type(result) not in (np.ndarray, np.float64):
            return result
        if named.get("out") is not None:
            result[...] = moved(result)
            return result
        return moved(result) if result.ndim else np.float64(moved(result)[()])


def _other(function):
    @functools.wraps(function)
    def call(*args):
        return float(moved(function(*args))[()])

    return call


for _name in UFUNCS:
    setattr(np, _name, _Ufunc(getattr(np, _name)))
for _name in MATH:
    if hasattr(math, _name):
        setattr(math, _name, _other(getattr(math, _name)))
