"""Chips without a memory of their own: what stays on them, and what their host sends for each pass."""

import re

import numpy as np
from numpy.typing import NDArray

from mlsys.hardware.device import Device
from mlsys.models.calibrated.work import Work

# Bytes of parameters that an Edge TPU caches: its compiler's documentation, on caching of parameter data, has "almost
# 8 MB" of SRAM, of which some 6.9 MiB are left by the network's executable.
CACHED_BY_EDGE_TPU = 6.9 * 2**20
# A dataflow chip keeps weights of so many bytes; of a larger network it loads one part after the other.
KEPT_BY_DATAFLOW = 16e6

_EDGE_TPU, _DATAFLOW = re.compile("Edge TPU"), re.compile("Dataflow of control")


def times_sent(device: Device, weights: float, samples: float = 1.0) -> float | None:
    """Return how often a host sends each byte of a network's weights in one pass; None of a device with a memory.

    What passes between layers stays on such a chip. A dataflow chip is loaded once for all samples of a pass; an
    Edge TPU takes one after the other.

    Parameters
    ----------
    device
        A twin.
    weights
        Of the whole network, byte.
    samples
        Of one pass.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> [times_sent(Hardware.Edge.Coral, 2 * CACHED_BY_EDGE_TPU, samples) for samples in (1, 8)]
    [0.5, 4.0]
    >>> times_sent(Hardware.Cloud.A100, 3.5e6) is None
    True
    """
    if device.kind != "NPU":
        return None
    if _EDGE_TPU.match(device.architecture):
        return max(0.0, 1.0 - CACHED_BY_EDGE_TPU / max(weights, 1.0)) * samples
    if _DATAFLOW.match(device.architecture):
        return float(weights > KEPT_BY_DATAFLOW)
    return None


def sent_bytes(times: float, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the bytes that cross for each kernel: of its weights, and of its command one at least."""
    return np.maximum(times * weights, 1.0)


def resident(work: Work, device: Device, samples: float = 1.0) -> Work:
    """Return the kernels with the bytes that cross the link of a chip without a memory; of others as they are.

    Steps of a recurrence find the weights of their layer on the chip, and have none sent again.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.models.calibrated.work import VECTOR, Kernel
    >>> layer = Work.of([Kernel(VECTOR, flops=1e6, moved=5e4, weights=1e4)])
    >>> [float(resident(layer, device)["moved"][0]) for device in (Hardware.Edge.Coral, Hardware.Cloud.A100)]
    [1.0, 50000.0]
    """
    times = times_sent(device, work.weights, samples)
    if times is None:
        return work
    columns = work.columns.copy()
    column = Work.FIELDS.index
    columns[column("moved")] = sent_bytes(times, work["weights"])
    columns[column("weights")] = np.where(work["further"] > 0, 0.0, times * work["weights"])
    return Work(columns)
