"""A roofline with about 7,000 fitted efficiencies, published with their held-out error.

:func:`mlsys.models.estimate.counts.count_fitted` counts them.
"""

from mlsys.models.estimate.batch import CaseBatch
from mlsys.models.estimate.limits import bound
from mlsys.models.estimate.machine import Snapshot, snapshot
from mlsys.models.estimate.model import KernelTimes, calibrated_times, kernel_times
from mlsys.models.estimate.parameters import Parameters
from mlsys.models.estimate.work import (
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
    "CaseBatch",
    "Kernel",
    "KernelTimes",
    "Parameters",
    "Snapshot",
    "Work",
    "bound",
    "calibrated_times",
    "kernel_times",
    "snapshot",
]
