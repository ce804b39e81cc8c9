"""Graph builders for the networks of the catalogue: the recipe that counts the operators also records the edges."""

from mlsys.workloads.drawn.drawing import DrawnTape
from mlsys.workloads.drawn.rows import DrawnRows
from mlsys.workloads.drawn.sketch import DrawnCall, Sheet, Sketch

__all__ = ["DrawnCall", "DrawnRows", "DrawnTape", "Sheet", "Sketch"]
