"""Every combination of networks, devices, batches and number formats, evaluated and kept."""

from mlsys.planner.sweep.run import load, sweep
from mlsys.planner.sweep.spec import SweepSpec, Variant
from mlsys.planner.sweep.table import COLUMNS, Row, SweepTable

__all__ = ["COLUMNS", "Row", "SweepSpec", "SweepTable", "Variant", "load", "sweep"]
