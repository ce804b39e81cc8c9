"""The compiled simulator, for large matrix products and for thousands of small ones.

It moves the same values through the same registers as :mod:`mlsys.models.systolic.machine`
and is tested to return the same results; it keeps no frames.
"""

import numpy as np
import numpy.typing as npt

from mlsys.choices import FoldOverlap, Stationary
from mlsys.models.systolic.accesses import Accesses
from mlsys.models.systolic.machine import RequestTrace, Run, operands
from mlsys.provenance import traced


@traced
def simulate_fast(
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    rows: int,
    columns: int,
    dataflow: Stationary = "ws",
    fold_overlap: FoldOverlap = "none",
    trace: bool = False,
) -> Run:
    """Multiply two matrices on an array, cycle by cycle, in compiled code.

    Parameters
    ----------
    left, right, rows, columns, dataflow, fold_overlap
        As in :func:`mlsys.models.systolic.simulate_array`.
    trace
        Whether to keep the trace of requested addresses, which takes memory.

    Examples
    --------
    >>> run = simulate_fast(np.eye(64), np.ones((64, 64)), 16, 16)
    >>> bool((run.product == 1).all()), run.cycles
    (True, 1760)
    """
    from mlsys.models.systolic import registers

    cut, a, b = operands("simulate_fast", left, right, rows, columns, dataflow, fold_overlap)
    first = 0 if dataflow == "os" else cut.array_rows
    starts = first + np.arange(cut.count, dtype=np.int64) * int(cut.step(fold_overlap))
    most = trace * cut.count  # a fold requests at most its streamed words at either edge, or one word for each PE
    edge = most * cut.streamed
    words = np.int32 if max(a.size, b.size, cut.m * cut.n) < 2**31 else np.int64
    if dataflow == "os":
        room = edge * cut.array_rows, edge * cut.array_columns, most * cut.array_rows * cut.array_columns
        traces = [np.empty((length, 2), words) for length in room]
        out = registers.output_stationary(a, b, cut.array_rows, cut.array_columns, starts, *traces)
    else:
        room = edge * cut.array_rows, most * cut.array_rows * cut.array_columns, edge * cut.array_columns
        traces = [np.empty((length, 2), words) for length in room]
        x, y = (a, b) if dataflow == "ws" else (b.T, a.T)
        out = registers.operand_stationary(
            np.ascontiguousarray(x), np.ascontiguousarray(y), cut.array_rows, cut.array_columns, starts, *traces
        )
    product, cycles, activity, read_first, read_second, writes, reread, latched = out
    reads = [read_first, read_second]
    requested = [requests[:used] for requests, used in zip(traces, (*reads, writes), strict=True)] if trace else traces
    if dataflow == "is":  # the transposed product was computed: transpose results, operands and addresses back
        product, reads, requested = (
            np.ascontiguousarray(product.T),
            reads[::-1],
            [requested[1], requested[0], requested[2]],
        )
        for requests, (height, width) in zip(requested, ((cut.k, cut.m), (cut.n, cut.k), (cut.n, cut.m)), strict=True):
            requests[:, 1] = requests[:, 1] % width * height + requests[:, 1] // width
    sram = Accesses(reads[0], reads[1], writes, int(reread))
    return Run(product, int(cycles), activity, sram, int(latched), RequestTrace(*requested), ())


def dram_accesses(
    run: Run, ifmap_words: int | None = None, filter_words: int | None = None, ofmap_words: int | None = None
) -> Accesses:
    """Return the words moved to and from DRAM behind least-recently-used buffers.

    A double buffer is filled for one fold while another is processed, so folds are served whole
    and in order, even if they overlap in the array.

    Parameters
    ----------
    run
        A run with ``trace=True``.
    ifmap_words, filter_words, ofmap_words
        Size of each double buffer, half of which is in use; None means unlimited.

    Examples
    --------
    >>> run = simulate_fast(np.ones((6, 4)), np.ones((4, 5)), 2, 2, trace=True)
    >>> dram_accesses(run).ifmap_reads, dram_accesses(run, ifmap_words=20).ifmap_reads
    (24, 72)
    """
    from mlsys.models.systolic import kernels

    def misses(requests: npt.NDArray[np.int64], words: int | None) -> int:
        addresses = int(requests[:, 1].max(initial=-1)) + 1
        return int(kernels.least_recently_used(requests, addresses if words is None else words // 2, addresses))

    ifmap, filter_ = misses(run.trace.ifmap, ifmap_words), misses(run.trace.filter, filter_words)
    written = misses(run.trace.ofmap, ofmap_words)  # each word that enters, new or fetched, leaves once
    return Accesses(ifmap, filter_, written, written - run.product.size)
