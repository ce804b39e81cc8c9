"""A roofline that knows what machines attain: few parameters, fitted once, stated with their error."""

from mlsys.models.calibrated.engine import Engine, engine_of
from mlsys.models.calibrated.model import KernelTimes, Parameters, Stack, bound, kernel_times, predict
from mlsys.models.calibrated.work import COLLECTIVE, MATMUL, VECTOR, Kernel, Work

__all__ = [
    "COLLECTIVE",
    "MATMUL",
    "VECTOR",
    "Engine",
    "Kernel",
    "KernelTimes",
    "Parameters",
    "Stack",
    "Work",
    "bound",
    "engine_of",
    "kernel_times",
    "predict",
]
