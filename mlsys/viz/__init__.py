"""Pictures: functions that take an Axes, draw, and give it back."""

from mlsys.viz.style import COLORS, apply_style, setup_plot

__all__ = ["COLORS", "apply_style", "setup_plot"]
