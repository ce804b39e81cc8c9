"""Closed forms for cycles, utilisation and accesses of a matrix product on a systolic array.

Every number equals exactly what :mod:`mlsys.models.systolic.machine` counts in simulation.
The formulas are plain arithmetic and broadcast over NumPy arrays of shapes.
"""

from typing import Any

from mlsys.choices import Convention, FoldOverlap, Stationary
from mlsys.models.systolic.accesses import Accesses, ArrayCounts
from mlsys.models.systolic.folds import CONVENTIONS, OVERLAPS, Folds, choose, exact_count, folds
from mlsys.models.systolic.scalesim import Window, scalesim_counts
from mlsys.provenance import traced
from mlsys.unit_checks import checked_choice


@traced
def count_systolic(
    m: Any,
    n: Any,
    k: Any,
    rows: Any,
    columns: Any,
    dataflow: Stationary = "ws",
    *,
    convention: Convention = "physical",
    fold_overlap: FoldOverlap = "none",
    ifmap_words: Any = None,
    filter_words: Any = None,
    ofmap_words: Any = None,
    window: Window | None = None,
) -> ArrayCounts:
    """Return cycles and accesses of an (m × k) by (k × n) product on an array.

    Parameters
    ----------
    m, n, k, rows, columns
        Sizes of product and array: integers, or arrays of them that broadcast.
    dataflow
        ``"ws"``, ``"os"`` or ``"is"``.
    convention
        ``"physical"`` counts what hardware does, including loading and draining;
        ``"scalesim"`` counts as SCALE-Sim 3.0.0 does.
    fold_overlap
        ``"none"``, ``"load"`` or ``"full"``; physical convention only.
    ifmap_words, filter_words, ofmap_words
        Capacity of each double buffer in words, both halves: one half is in use, the other
        is being filled or emptied. None means unlimited.
    window
        If the left operand is an im2col matrix: how its rows repeat the words of an image,
        which reduces DRAM traffic. For a single case, not for arrays.

    Raises
    ------
    ArgumentError
        If a size is not a positive integer, folds are to overlap in the SCALE-Sim convention,
        or the window does not yield an (m × k) matrix.
    UnknownNameError
        If dataflow, convention or fold overlap is unknown.

    Notes
    -----
    The physical count, and that of SCALE-Sim without ``ofmap_words``, is vectorised; SCALE-Sim's
    writes through a finite buffer and the windows of a convolution are simulated case by case.

    References
    ----------
    A. Samajdar et al., A systematic methodology for characterizing scalability of DNN
    accelerators using SCALE-Sim, ISPASS 2020.

    Examples
    --------
    >>> counts = count_systolic(128, 128, 128, 128, 128)
    >>> counts.cycles, f"{counts.utilisation:.1%}"
    (510, '25.1%')
    >>> count_systolic(128, 128, 128, 128, 128, convention="scalesim").cycles
    509
    """
    where = "count_systolic"
    checked_choice(where, "convention", convention, CONVENTIONS)
    checked_choice(where, "fold_overlap", fold_overlap, OVERLAPS)
    cut = folds(m, n, k, rows, columns, dataflow, where)
    buffers = {"ifmap_words": ifmap_words, "filter_words": filter_words, "ofmap_words": ofmap_words}
    sizes = {name: None if words is None else exact_count(where, name, words) for name, words in buffers.items()}
    if convention == "scalesim":
        return scalesim_counts(cut, **sizes, fold_overlap=fold_overlap, window=window)
    if window is not None:
        window.check(cut.m, cut.k)
    return physical_counts(cut, fold_overlap, **sizes, distinct_ifmap=window and min(window.words, cut.m * cut.k))


def physical_counts(
    cut: Folds, fold_overlap: FoldOverlap = "none", ifmap_words: Any = None, filter_words: Any = None,
    ofmap_words: Any = None, distinct_ifmap: Any = None,
) -> ArrayCounts:  # fmt: skip
    """Return counts in the physical convention; arguments are checked by :func:`count_systolic`.

    ``distinct_ifmap`` is the number of distinct words of the left operand if it is an im2col
    matrix, which repeats them.

    Notes
    -----
    With folds F, streamed size T and an R × C array, cycles are (F - 1)·step + T + 2R + C - 2,
    where the step is T + 2R + C - 2 without overlap, R less when loads and drains are hidden
    behind streaming, and max(T, R) when folds follow each other directly.
    A fringe fold takes as long as a full one.
    """
    cycles = (cut.count - 1) * cut.step(fold_overlap) + cut.fold_cycles
    elements = cut.array_rows * cut.array_columns
    mapping = cut.along_rows * cut.along_columns / (cut.row_folds * cut.column_folds * elements)
    return ArrayCounts(
        convention="physical",
        folds=cut,
        cycles=cycles,
        macs=cut.macs,
        utilisation=cut.macs / (cycles * elements),
        mapping_efficiency=mapping,
        compute_utilisation=None
        if fold_overlap == "full"
        else mapping * cut.streamed / (cut.fold_cycles - cut.array_rows),
        sram=_sram(cut).times(cut.copies),
        dram=_dram(cut, ifmap_words, filter_words, ofmap_words, distinct_ifmap).times(cut.copies),
        register_writes=_register_writes(cut) * cut.copies,
    )


def _sram(cut: Folds) -> Accesses:
    left, right, out = cut.m * cut.k, cut.k * cut.n, cut.m * cut.n
    if cut.dataflow == "os":
        return Accesses(cut.column_folds * left, cut.row_folds * right, out, out * 0)
    ifmap, filter_ = (cut.column_folds * left, right) if cut.dataflow == "ws" else (left, cut.column_folds * right)
    return Accesses(ifmap, filter_, cut.row_folds * out, (cut.row_folds - 1) * out)


def _dram(cut: Folds, ifmap_words: Any, filter_words: Any, ofmap_words: Any, distinct_ifmap: Any) -> Accesses:
    """Return DRAM words behind LRU buffers: a reused operand is fetched once if it fits, else on every pass."""
    left, right, out = cut.m * cut.k, cut.k * cut.n, cut.m * cut.n
    once = left if distinct_ifmap is None else distinct_ifmap
    if cut.dataflow == "os":
        ifmap = choose(_fits(once, ifmap_words), once, cut.column_folds * left)
        return Accesses(ifmap, _by_column(cut, cut.k, filter_words, 1, cut.row_folds), out, out * 0)
    if cut.dataflow == "ws":
        ifmap, filter_ = choose(_fits(once, ifmap_words), once, cut.column_folds * left), right
    else:
        ifmap = choose(_fits(once, ifmap_words), once, left)
        filter_ = choose(_fits(right, filter_words), right, cut.column_folds * right)
    # Complete sums are written once; partial sums that do not fit are written and read back for each fold.
    written = _by_column(cut, cut.streamed, ofmap_words, 1, cut.row_folds)
    return Accesses(ifmap, filter_, written, written - out)


def _fits(words: Any, buffer: Any) -> Any:
    """Return whether words fit in the half of a double buffer that is in use."""
    return True if buffer is None else words <= buffer // 2


def _by_column(cut: Folds, length: Any, buffer: Any, once: int, again: Any) -> Any:
    """Return the words moved for all columns of an operand: ``once`` per word if its fold fits, else ``again``."""
    full = cut.column_folds - 1
    fringe = cut.along_columns - full * cut.array_columns
    moved = choose(_fits(length * cut.array_columns, buffer), once, again) * full * cut.array_columns * length
    return moved + choose(_fits(length * fringe, buffer), once, again) * fringe * length


def _register_writes(cut: Folds) -> Any:
    """Return the words latched: moving operands, sums, and the shifts that load or drain stationary words."""
    macs = cut.m * cut.n * cut.k
    size, count = cut.array_rows, cut.row_folds
    last = cut.along_rows - (count - 1) * size
    if cut.dataflow == "os":  # two operands and a sum per MAC; then row i drains in R - 1 - i steps
        down = (count - 1) * (size * (size - 1) // 2) + last * (size - 1) - last * (last - 1) // 2
        return 3 * macs + down * cut.along_columns
    # One operand per MAC, a sum in every row that it crosses, and i + 1 steps to load the word that stays in row i.
    loads = (count - 1) * (size * (size + 1) // 2) + last * (last + 1) // 2
    return macs + cut.streamed * cut.along_columns * count * size + loads * cut.along_columns


def activity(cut: Folds) -> Any:
    """Return the useful multiply-accumulates of every processing element, shape (rows, columns), for one case.

    Examples
    --------
    >>> activity(folds(4, 3, 3, 2, 2)).tolist()
    [[16, 8], [8, 4]]
    """
    import numpy as np

    row = -(-(cut.along_rows - np.arange(cut.array_rows)) // cut.array_rows)
    column = -(-(cut.along_columns - np.arange(cut.array_columns)) // cut.array_columns)
    return cut.streamed * np.outer(np.maximum(row, 0), np.maximum(column, 0))
