"""Blocks of the one size that a library has for batched products in FP32."""

import numpy as np

from mlsys.hardware import Device
from mlsys.models.calibrated import MATMUL, Work

# Rows and columns of the one tile that cuBLAS has for batched products of FP32 on the vector units of Ampere and Ada:
# an A100's rows follow it within 3 %, where a menu of smaller tiles is 16 % off. Other machines have smaller ones.
BATCHED_TILE = 128.0
_ONE_TILE = ("Ampere", "Ada")


def has_one_tile(twin: Device) -> bool:
    """Tell whether batched products of FP32 on a machine's vector units have one tile only."""
    return twin.architecture.startswith(_ONE_TILE)


def filled_attention(work: Work, twin: Device, computes: str) -> Work:
    """Return a network's kernels with the products of its attention, one for each head, in whole tiles.

    Parameters
    ----------
    work
        Kernels, attention written out.
    twin
        Whose vector units run them.
    computes
        The format they compute in.
    """
    if computes != "fp32" or not has_one_tile(twin):
        return work
    here = (work["kind"] == MATMUL) & (work["batch"] > 1)
    columns = work.columns.copy()
    for name in "mn":
        row = Work.FIELDS.index(name)
        columns[row] = np.where(here, np.ceil(work[name] / BATCHED_TILE) * BATCHED_TILE, work[name])
    return Work(columns)
