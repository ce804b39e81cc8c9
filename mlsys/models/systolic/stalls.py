"""Memory stalls of an array whose double buffers are filled from a memory of finite bandwidth."""

from typing import Any

import numpy as np

from mlsys.choices import FoldOverlap
from mlsys.models.systolic.folds import Folds


def stalled_cycles(
    cut: Folds, reads: Any, writes: Any, fold_overlap: FoldOverlap = "none", arrays: int = 1
) -> tuple[Any, Any]:
    """Return cycles without and with memory stalls.

    Parameters
    ----------
    cut
        Folds of the product; scalar or arrays.
    reads, writes
        Cycles that the memory needs for all reads and for all writes.
    fold_overlap
        How far consecutive folds overlap.
    arrays
        Arrays that share the folds evenly; a round is one fold on each.

    Returns
    -------
    tuple
        Compute cycles, and total cycles with double buffering: while a round computes, the
        results of the previous round are written and the inputs of the next one are read;
        the first read and the last write are exposed.

    Notes
    -----
    Traffic is spread evenly over the rounds. The total is at least the compute cycles and at
    least ``reads + writes``.

    Examples
    --------
    >>> from mlsys.models.systolic.folds import folds
    >>> stalled_cycles(folds(100, 128, 128, 64, 64), reads=4000, writes=400)
    (1160, 4590.0)
    """
    rounds = -(-cut.count // arrays)
    computing = (rounds - 1) * cut.step(fold_overlap) + cut.fold_cycles
    fill, empty, step = reads / rounds, writes / rounds, cut.step(fold_overlap)
    # The first round has nothing to write yet, the last nothing left to read.
    several = (
        np.maximum(step, fill) + np.maximum(rounds - 2, 0) * np.maximum(step, fill + empty)
        + np.maximum(cut.fold_cycles, empty)
    )  # fmt: skip
    whole = fill + np.where(rounds > 1, several, cut.fold_cycles) + empty
    return computing, whole if np.ndim(whole) else float(whole)
