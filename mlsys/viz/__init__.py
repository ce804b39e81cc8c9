"""Pictures: functions that take an Axes, draw, and give it back."""

from mlsys.viz.amdahl import scaling_laws, speedup_map, time_bars
from mlsys.viz.roofline import device_map, intensity_by_batch, layer_scatter, roofs
from mlsys.viz.style import COLORS, apply_style, setup_plot

__all__ = [
    "COLORS",
    "apply_style",
    "device_map",
    "intensity_by_batch",
    "layer_scatter",
    "roofs",
    "scaling_laws",
    "setup_plot",
    "speedup_map",
    "time_bars",
]
