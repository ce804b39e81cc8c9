"""Sweeps over all combinations of networks, devices, batches and number formats, with stored results."""

import sys
from types import ModuleType

from mlsys.sweep.run import load_results, sweep
from mlsys.sweep.spec import SweepSpec, Variant
from mlsys.sweep.table import COLUMNS, SweepRow, SweepTable

__all__ = ["COLUMNS", "SweepRow", "SweepSpec", "SweepTable", "Variant", "load_results", "sweep"]


class _CallableModule(ModuleType):
    """A callable package: ``mlsys.sweep(spec)`` is :func:`mlsys.sweep.run.sweep`."""

    __call__ = staticmethod(sweep)


sys.modules[__name__].__class__ = _CallableModule
