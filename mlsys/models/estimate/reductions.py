"""How often PyTorch's normalisations read their rows from the main memory, and how few are slow."""

import numpy as np

from mlsys.hardware import Device, Hardware
from mlsys.hardware.view import view
from mlsys.models.estimate.work import MATMUL, VECTOR, Work
from mlsys.provenance import as_recorded, comparing
from mlsys.workloads import LAYER_NORM_OPERATIONS

# ``vectorized_layer_norm_kernel`` reads a row for its moments and again for its result, by blocks of 128 threads: 16 on
# a unit, 8 on Turing's (aten/src/ATen/native/cuda/layer_norm_kernel.cu). What the last cache holds of all rows at work
# is found there; what they write passes through it, too. Of the bytes of rows at work over the cache's, in NeuSight's
# 533 normalisations on seven GPUs (sitar-lab/NeuSight, scripts/asplos/data/dataset/test/ln.csv@6945927d9): rows are
# read once below a third (an A100's of 2,048 values attain 0.79 to 0.85 of the memory's rate, an L4's of 5,120 0.79),
# and twice above two thirds (0.58 and 0.59; a V100's and a P100's of 1,024 values and more 0.6 and 0.48).
BLOCKS, FEW_BLOCKS, ALL_KEPT, NONE_KEPT = 16.0, 8.0, 0.3, 0.7


def norm_reads(twin: Device, row: float) -> float:
    """Return how often a normalisation by PyTorch reads each row from an NVIDIA GPU's memory, 1 to 2.

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


# Each of a block's threads has one load of four FP32 values under way.
IN_FLIGHT = 128 * 16.0
WITH_LATENCY = "A100_80GB"


def few_rows(twin: Device, rows: float, moved: float) -> float:
    """Return the seconds that PyTorch's normalisation of so few rows takes, however fast the memory is.

    A block has a row to itself, and 2 KiB of it under way at once: by Little's law the blocks at work draw no more than
    these over the memory's latency; an A100's where the GPU has none on record, for they are much alike.

    Parameters
    ----------
    twin
        The GPU.
    rows
        How many are normalised.
    moved
        Bytes read and written, all rows together.

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
    """Return a transformer's operators, run one by one, with what its normalisations read again.

    Parameters
    ----------
    work
        Kernels.
    twin
        Whose memory they are read from.
    width
        Bytes of a value.
    forward
        Those of the pass forward, where ``work`` has gradients too: the narrowest sum of a layer is the length of rows.
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
