"""Pint, imported without Dask.

Pint imports Dask where that is installed, for quantities that hold Dask's arrays: a sixth of the time of a short
command. Here Dask is imported when one of the functions that need it is first called.
"""

import importlib
import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_FUNCTIONS = ("compute", "persist", "visualize")


class _DaskArray:
    """Stands in for the module ``dask.array``, which it imports when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("dask.array"), name)


def _later(name: str) -> Callable[..., Any]:
    """Return a function of ``dask.base`` that is imported when it is called."""
    return lambda *given, **named: getattr(importlib.import_module("dask.base"), name)(*given, **named)


def import_pint() -> ModuleType:
    """Import pint, which works with arrays of Dask as ever, and return it.

    Examples
    --------
    >>> import_pint().compat.HAS_DASK == (find_spec("dask") is not None)
    True
    """
    if "pint" in sys.modules or "dask" in sys.modules or find_spec("dask") is None:
        return importlib.import_module("pint")
    sys.modules["dask"] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        pint = importlib.import_module("pint")
    finally:
        del sys.modules["dask"]
    for name in ("pint.compat", "pint.facets.dask"):
        module: Any = importlib.import_module(name)
        module.dask_array = _DaskArray()
        for function in _FUNCTIONS:
            setattr(module, function, _later(function))
    pint.compat.HAS_DASK = True
    return pint


import_pint()
