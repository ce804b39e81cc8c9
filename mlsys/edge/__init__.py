"""Network compression for small devices: pruning, quantisation and clock scaling, with their cost.

Importing this package does not load torch; training, pruning and measuring do.
"""

from mlsys.edge.budgets import memory_violations
from mlsys.edge.clock import Clock, ClockLaw, PowerPoint, SplitEnergy, best_clock, split_energy
from mlsys.edge.config import Config, EdgeVariant, example_config
from mlsys.edge.layers import HardwareSummary, LayerRow, layer_stats, summarize_hardware
from mlsys.edge.pareto import unbeaten_rows

__all__ = [
    "Clock",
    "ClockLaw",
    "Config",
    "EdgeVariant",
    "HardwareSummary",
    "LayerRow",
    "PowerPoint",
    "SplitEnergy",
    "best_clock",
    "example_config",
    "layer_stats",
    "memory_violations",
    "split_energy",
    "summarize_hardware",
    "unbeaten_rows",
]
