"""Weight residency: chips without external memory, and the bytes that their host sends for each pass."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.hardware.device import Device
from mlsys.models.estimate.work import ATTENTION, MATMUL, STREAMED, Work
from mlsys.provenance import as_recorded, comparing

# Bytes of parameters that an Edge TPU caches: its compiler's documentation, on caching of parameter data, states
# "almost 8 MB" of SRAM, of which some 6.9 MiB are left by the network's executable.
CACHED_BY_EDGE_TPU = 6.9 * 2**20
# A dataflow chip distributes blocks of memory, control and compute among the layers; a network that needs more of any
# than it has is loaded in several parts (Hailo staff, community.hailo.ai/t/multi-context-flow/8017). The numbers of
# blocks are not published, but within a design they are proportional to the peak (a Hailo-8L has half the elements of a
# Hailo-8 and is "otherwise the same", .../t/1675), and a network that fits runs at one rate at any batch size. On 53
# pairs of chips of 7, 13, 20 and 26 TOP/s and convolutional networks (hailo_model_zoo@c83fc030e, and one of MLPerf),
# the use of each layer and byte per TOP/s separates networks that fit from those that do not, with four exceptions.
BYTES_OF_A_TOP, LAYERS_OF_A_TOP = 1.56e6, 5.7

_EDGE_TPU, _DATAFLOW = re.compile("Edge TPU"), re.compile(r"Hailo-\d+ dataflow")


@dataclass(frozen=True)
class Residence:
    """Part of a network that stays on a chip without external memory.

    Attributes
    ----------
    times
        Number of times that a host sends each byte of the weights in one pass.
    streams
        Whether the chip holds all layers at once: each layer processes the next sample while others process the last,
        without launches of single layers.
    """

    times: float
    streams: bool = False


def held_on(device: Device, work: Work, samples: float = 1.0) -> Residence | None:
    """Return the residency of a network on a chip without external memory; None for a device with one.

    Activations between layers stay on such a chip. A dataflow chip that does not hold the whole network is loaded once
    for all samples of a pass; an Edge TPU processes samples one after the other. Attention needs all its keys and
    cannot be streamed.

    Parameters
    ----------
    device
        The device.
    work
        The kernels of the whole network.
    samples
        Samples of one pass.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.models.estimate.work import VECTOR, Kernel
    >>> large = Work.of([Kernel(VECTOR, flops=1e9, moved=2e7, weights=2 * CACHED_BY_EDGE_TPU)])
    >>> [held_on(Hardware.Edge.Coral, large, samples).times for samples in (1, 8)]
    [0.5, 4.0]
    >>> large = Work.of([Kernel(VECTOR, flops=1e9, moved=2.5e7, weights=2.2e7)])
    >>> held_on(Hardware.Edge.Hailo8L, large), held_on(Hardware.Edge.Hailo8, large)
    (Residence(times=1.0, streams=False), Residence(times=0.0, streams=True))
    >>> held_on(Hardware.Cloud.A100, large) is None
    True
    """
    if device.kind != "NPU":
        return None
    if _EDGE_TPU.match(device.architecture):
        return Residence(max(0.0, 1.0 - CACHED_BY_EDGE_TPU / max(work.weights, 1.0)) * samples)
    if _DATAFLOW.match(device.architecture):
        with as_recorded(), comparing():
            tops = device.peak(device.headline).m_as("FLOP/s") / 1e12
        attends = bool(((work["kind"] == ATTENTION) | ((work["kind"] == MATMUL) & (work["weights"] == 0))).any())
        used = work.weights / BYTES_OF_A_TOP + work.launches / LAYERS_OF_A_TOP
        return Residence(0.0, True) if used <= tops and not attends else Residence(1.0)
    return None


def sent_bytes(times: float, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the bytes that the link carries for each kernel: its weights, and at least one for its command."""
    return np.maximum(times * weights, 1.0)


def resident(work: Work, device: Device, samples: float = 1.0) -> Work:
    """Return kernels with the link traffic of a chip without external memory; kernels of other devices unchanged.

    Steps of a recurrence find the weights of their layer on the chip; they are not sent again.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.models.estimate.work import VECTOR, Kernel
    >>> layer = Work.of([Kernel(VECTOR, flops=1e6, moved=5e4, weights=1e4)])
    >>> [float(resident(layer, device)["moved"][0]) for device in (Hardware.Edge.Coral, Hardware.Cloud.A100)]
    [1.0, 50000.0]
    """
    held = held_on(device, work, samples)
    if held is None:
        return work
    columns = work.columns.copy()
    column = Work.FIELDS.index
    columns[column("moved")] = sent_bytes(held.times, work["weights"])
    columns[column("weights")] = np.where(work["extra_steps"] > 0, 0.0, held.times * work["weights"])
    if held.streams:
        columns[column("ranks")] = STREAMED
    return Work(columns)
