"""Mappings: the choices that join a workload to a device; choices carry no costs."""

from dataclasses import dataclass

from mlsys.mapping.dataflows import DATAFLOWS, dataflow, row_stationary
from mlsys.mapping.iteration import Axis, IterationSpace, Operand, conv_space, gemm_space, iteration_space
from mlsys.mapping.loopnest import LoopNest, TileLevel

__all__ = [
    "DATAFLOWS",
    "Axis",
    "IterationSpace",
    "LoopNest",
    "Mapping",
    "Operand",
    "TileLevel",
    "conv_space",
    "dataflow",
    "gemm_space",
    "iteration_space",
    "row_stationary",
]


@dataclass(frozen=True)
class Mapping:
    """How a workload is run on a device.

    Attributes
    ----------
    compute_precision
        Rate to compute at, when it is not the data's own: FP32 data on TF32 units.
        Its elements must have the size of the data's.
    sparsity
        ``"dense"`` or ``"2:4"``: which peak counts.
    unit
        ``"matrix"``, ``"vector"`` or None for the matrix unit where there is one.
    level
        Memory level that feeds the units; None is the main memory.
    overlap
        Whether data moves while units compute.

    Examples
    --------
    >>> Mapping(overlap=False)
    Mapping(compute_precision=None, sparsity='dense', unit=None, level=None, overlap=False)
    """

    compute_precision: str | None = None
    sparsity: str = "dense"
    unit: str | None = None
    level: str | None = None
    overlap: bool = True
