"""Graphs of networks that the catalogue writes down: the same lines that count their products draw their edges."""

from mlsys.workloads.drawn.drawing import DrawnTape
from mlsys.workloads.drawn.rows import DrawnRows
from mlsys.workloads.drawn.sketch import DrawnCall, Sheet, Sketch

__all__ = ["DrawnCall", "DrawnRows", "DrawnTape", "Sheet", "Sketch"]
