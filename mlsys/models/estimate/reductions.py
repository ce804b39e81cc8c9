"""Main-memory reads of PyTorch's normalisations, and the time of normalisations with few rows."""

import numpy as np

from mlsys.hardware import Device, Hardware
from mlsys.hardware.view import view
from mlsys.models.estimate.work import MATMUL, VECTOR, Work
from mlsys.provenance import as_recorded, comparing
from mlsys.workloads import LAYER_NORM_OPERATIONS

# ``vectorized_layer_norm_kernel`` reads a row once for its moments and once for its result, in blocks of 128 threads:
# 16 per unit, 8 on Turing (aten/src/ATen/native/cuda/layer_norm_kernel.cu). The second read hits in the last-level
# cache for the rows that fit there; writes pass through it, too. Thresholds on the ratio of the bytes of active rows to
# the cache capacity, from NeuSight's 533 normalisations on seven GPUs (sitar-lab/NeuSight,
# scripts/asplos/data/dataset/test/ln.csv@6945927d9): rows are read once below a third (rows of 2,048 values on an A100
# attain 0.79 to 0.85 of the memory's rate, of 5,120 on an L4 0.79), and twice above two thirds (0.58 and 0.59; rows of
# 1,024 values and more on a V100 and a P100 0.6 and 0.48).
BLOCKS, FEW_BLOCKS, ALL_KEPT, NONE_KEPT = 16.0, 8.0, 0.3, 0.7


def norm_reads(twin: Device, row: float) -> float:
    """Return how often a PyTorch normalisation reads each row from an NVIDIA GPU's main memory, 1 to 2.

    Parameters
    ----------
    twin
        The GPU.
    row
        Bytes of a row.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> [norm_reads(Hardware[name], 4 * 2048) for name in ("A100_40GB_PCIe", "V100_PCIe_32GB")]
    [1.09375, 2.0]
    """
    blocks = FEW_BLOCKS if twin.architecture.startswith("Turing") else BLOCKS
    machine = view(twin)
    with comparing():
        kept = max((level.capacity or 0.0 for level in machine.levels if level.name == "L2"), default=0.0)
        at_work = blocks * machine.require("units") * row
    if not kept:
        return 2.0
    return 1.0 + float(np.clip((at_work / kept - ALL_KEPT) / (NONE_KEPT - ALL_KEPT), 0.0, 1.0))


# Each thread of a block has one load of four FP32 values in flight.
IN_FLIGHT = 128 * 16.0
WITH_LATENCY = "A100_80GB"


def few_rows(twin: Device, rows: float, moved: float) -> float:
    """Return the least seconds of a PyTorch normalisation with few rows, where latency limits the bandwidth.

    Each block handles one row and has 2 KiB of it in flight at once: by Little's law the rate is at most the bytes in
    flight of the active blocks over the memory latency. The A100's latency is used where a GPU has none on record,
    since latencies of GPUs are similar.

    Parameters
    ----------
    twin
        The GPU.
    rows
        Rows that are normalised.
    moved
        Bytes read and written, for all rows together.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> round(few_rows(Hardware["A100_80GB"], 16, 3 * 16 * 2.0**24), 3)  # KernelBench: 0.0102
    0.01
    """
    if twin.vendor != "NVIDIA":
        return 0.0
    blocks = FEW_BLOCKS if twin.architecture.startswith("Turing") else BLOCKS
    machine = view(twin)
    with as_recorded():
        usual = view(Hardware[WITH_LATENCY]).main.latency
    with comparing():
        latency = machine.main.latency or usual or 0.0
        at_work = min(rows, blocks * machine.require("units"))
    return moved * latency / (at_work * IN_FLIGHT)


def rows_read_again(work: Work, twin: Device, width: float, forward: Work | None = None) -> Work:
    """Return a transformer's eager operators with the bytes that its normalisations read again.

    Parameters
    ----------
    work
        Kernels.
    twin
        The device whose memory they are read from.
    width
        Bytes of a value.
    forward
        Kernels of the forward pass, where ``work`` has gradients too: the narrowest sum of a layer is the length of
        rows.
    """
    passed = work if forward is None else forward
    layers = (passed["kind"] == MATMUL) & (passed["weights"] > 0)
    if twin.vendor != "NVIDIA" or not layers.any():
        return work
    each = sum(LAYER_NORM_OPERATIONS.values()) / (2 * width)
    norms = (work["kind"] == VECTOR) & (work["moved"] > 0) & np.isclose(work["flops"], each * work["moved"])
    again = norm_reads(twin, float(passed["k"][layers].min()) * width) - 1.0
    moved = work["moved"] * (1 + np.where(norms, again / 2, 0.0))
    return Work(np.array([moved if name == "moved" else work[name] for name in Work.FIELDS]))
