"""Systolic arrays: a cycle-by-cycle simulator, closed forms that reproduce it, and the energy that arrays save.

:func:`simulate_array` runs a matrix product through an array cycle by cycle; :func:`count_systolic`
gives the same cycles and accesses in closed form, or as SCALE-Sim counts them;
:func:`systolic` is the performance model, called like the others.
"""

from mlsys.models.systolic.accesses import Accesses, ArrayCounts
from mlsys.models.systolic.array import SystolicArray
from mlsys.models.systolic.bulk import dram_accesses, simulate_fast
from mlsys.models.systolic.counts import activity, count_systolic
from mlsys.models.systolic.energy import (
    BASELINES,
    EnergyPerMac,
    Levels,
    energy_baselines,
    energy_systolic,
)
from mlsys.models.systolic.folds import (
    CONVENTIONS,
    DATAFLOWS,
    OVERLAPS,
    Convention,
    FoldOverlap,
    Folds,
    Stationary,
    folds,
)
from mlsys.models.systolic.lowering import array_folds, conv2d_matrices
from mlsys.models.systolic.machine import Frame, Run, simulate_array
from mlsys.models.systolic.model import systolic
from mlsys.models.systolic.scalesim import Window, scalesim_counts
from mlsys.models.systolic.stalls import stalled_cycles

__all__ = [
    "BASELINES",
    "CONVENTIONS",
    "DATAFLOWS",
    "OVERLAPS",
    "Accesses",
    "ArrayCounts",
    "Convention",
    "EnergyPerMac",
    "FoldOverlap",
    "Folds",
    "Frame",
    "Levels",
    "Run",
    "Stationary",
    "SystolicArray",
    "Window",
    "activity",
    "array_folds",
    "conv2d_matrices",
    "count_systolic",
    "dram_accesses",
    "energy_baselines",
    "energy_systolic",
    "folds",
    "scalesim_counts",
    "simulate_array",
    "simulate_fast",
    "stalled_cycles",
    "systolic",
]
