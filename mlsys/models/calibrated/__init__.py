"""A roofline that knows what machines attain: few parameters, fitted once, stated with their error."""

from mlsys.models.calibrated.engine import Engine, engine_of
from mlsys.models.calibrated.model import Parameters, Stack, bound, predict
from mlsys.models.calibrated.work import COLLECTIVE, MATMUL, VECTOR, Kernel, Work

__all__ = [
    "COLLECTIVE",
    "MATMUL",
    "VECTOR",
    "Engine",
    "Kernel",
    "Parameters",
    "Stack",
    "Work",
    "bound",
    "engine_of",
    "predict",
]
