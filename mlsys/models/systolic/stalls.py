"""Time on an array whose double buffers are filled from a memory of finite bandwidth."""

from typing import Any

import numpy as np

from mlsys.choices import FoldOverlap
from mlsys.models.systolic.folds import Folds


def stalled_cycles(
    cut: Folds, reads: Any, writes: Any, fold_overlap: FoldOverlap = "none", arrays: int = 1
) -> tuple[Any, Any]:
    """Return cycles without and with waiting for memory.

    Parameters
    ----------
    cut
        The product; one case or many.
    reads, writes
        Cycles that memory takes for all that it delivers and for all that it takes back.
    fold_overlap
        How folds follow each other.
    arrays
        Arrays that share the folds evenly; a round is one fold on each.

    Returns
    -------
    tuple
        Cycles of computing alone, and of the double-buffered whole: while a round is at
        work, memory takes what the round before made and delivers what the next one needs;
        the first delivery and the last collection are hidden behind nothing.

    Notes
    -----
    Traffic is spread evenly over the rounds. The whole is never below computing, and never
    below ``reads + writes``.

    Examples
    --------
    >>> from mlsys.models.systolic.folds import folds
    >>> stalled_cycles(folds(100, 128, 128, 64, 64), reads=4000, writes=400)
    (1160, 4590.0)
    """
    rounds = -(-cut.count // arrays)
    computing = (rounds - 1) * cut.step(fold_overlap) + cut.fold_cycles
    fill, empty, step = reads / rounds, writes / rounds, cut.step(fold_overlap)
    # In the first round there is nothing to take yet, in the last nothing left to deliver.
    several = (
        np.maximum(step, fill) + np.maximum(rounds - 2, 0) * np.maximum(step, fill + empty)
        + np.maximum(cut.fold_cycles, empty)
    )  # fmt: skip
    whole = fill + np.where(rounds > 1, several, cut.fold_cycles) + empty
    return computing, whole if np.ndim(whole) else float(whole)
