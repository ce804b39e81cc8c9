"""A roofline with fitted efficiencies: about 7,000 numbers, fitted once, stated with their held-out error.

:func:`mlsys.models.calibrated.counts.count_fitted` counts them.
"""

from mlsys.models.calibrated.limits import bound
from mlsys.models.calibrated.machine import Snapshot, snapshot
from mlsys.models.calibrated.model import KernelTimes, calibrated_times, kernel_times
from mlsys.models.calibrated.parameters import Parameters
from mlsys.models.calibrated.stack import Stack
from mlsys.models.calibrated.work import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    ATTENTION,
    CALLED,
    COLLECTIVE,
    MATMUL,
    OVERLAPPED,
    QUEUED,
    RING_REDUCE,
    VECTOR,
    Kernel,
    Work,
)

__all__ = [
    "ALL_GATHER",
    "ALL_REDUCE",
    "ALL_TO_ALL",
    "ATTENTION",
    "CALLED",
    "COLLECTIVE",
    "MATMUL",
    "OVERLAPPED",
    "QUEUED",
    "RING_REDUCE",
    "VECTOR",
    "Kernel",
    "KernelTimes",
    "Parameters",
    "Snapshot",
    "Stack",
    "Work",
    "bound",
    "calibrated_times",
    "kernel_times",
    "snapshot",
]
