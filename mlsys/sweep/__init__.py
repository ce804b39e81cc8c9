"""Every combination of networks, devices, batches and number formats, evaluated and kept."""

from mlsys.sweep.run import load_results, sweep
from mlsys.sweep.spec import SweepSpec, Variant
from mlsys.sweep.table import COLUMNS, SweepRow, SweepTable

__all__ = ["COLUMNS", "SweepRow", "SweepSpec", "SweepTable", "Variant", "load_results", "sweep"]
