"""Make a network small enough: prune it, store it in fewer bits, slow the clock, and see what that costs.

Importing it loads no torch; training, pruning and measuring do.
"""

from mlsys.edge.budgets import memory_violations
from mlsys.edge.clock import Clock, ClockLaw, PowerPoint, SplitEnergy, best_clock, split_energy
from mlsys.edge.config import Config, Variant, example
from mlsys.edge.layers import HardwareSummary, LayerRow, layer_stats, summarize_hardware
from mlsys.edge.pareto import pareto_front

__all__ = [
    "Clock",
    "ClockLaw",
    "Config",
    "HardwareSummary",
    "LayerRow",
    "PowerPoint",
    "SplitEnergy",
    "Variant",
    "best_clock",
    "example",
    "layer_stats",
    "memory_violations",
    "pareto_front",
    "split_energy",
    "summarize_hardware",
]
