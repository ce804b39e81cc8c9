"""Sweeps over networks × devices × batches × formats, or over language models × systems × layouts × batches."""

import sys
from types import ModuleType

from mlsys.sweep.kinds import load_spec
from mlsys.sweep.point_table import PointTable
from mlsys.sweep.run import load_results, sweep
from mlsys.sweep.sizing_spec import SizingSpec
from mlsys.sweep.sizing_table import SIZING_COLUMNS, SizingRow, SizingTable
from mlsys.sweep.spec import SweepSpec, Variant
from mlsys.sweep.table import COLUMNS, SweepRow, SweepTable

__all__ = [
    "COLUMNS",
    "SIZING_COLUMNS",
    "PointTable",
    "SizingRow",
    "SizingSpec",
    "SizingTable",
    "SweepRow",
    "SweepSpec",
    "SweepTable",
    "Variant",
    "load_results",
    "load_spec",
    "sweep",
]


class _CallableModule(ModuleType):
    """A callable package: ``mlsys.sweep(spec)`` is :func:`mlsys.sweep.run.sweep`."""

    __call__ = staticmethod(sweep)


sys.modules[__name__].__class__ = _CallableModule
