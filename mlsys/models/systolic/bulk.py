"""The same machine, compiled: for products of a thousand and for ten thousand small ones.

It moves the same values through the same registers as :mod:`mlsys.models.systolic.machine`
and is tested equal to it in all that it returns; it keeps no frames.
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
        Whether to keep the addresses that were asked for, which takes memory.

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
    most = trace * cut.count  # requests of a fold, at most: its streamed words at either edge, or one for each PE
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
    asked = [requests[:used] for requests, used in zip(traces, (*reads, writes), strict=True)] if trace else traces
    if dataflow == "is":  # the product was turned around: so are its operands, and every address
        product, reads, asked = np.ascontiguousarray(product.T), reads[::-1], [asked[1], asked[0], asked[2]]
        for requests, (height, width) in zip(asked, ((cut.k, cut.m), (cut.n, cut.k), (cut.n, cut.m)), strict=True):
            requests[:, 1] = requests[:, 1] % width * height + requests[:, 1] // width
    sram = Accesses(reads[0], reads[1], writes, int(reread))
    return Run(product, int(cycles), activity, sram, int(latched), RequestTrace(*asked), ())


def dram_accesses(
    run: Run, ifmap_words: int | None = None, filter_words: int | None = None, ofmap_words: int | None = None
) -> Accesses:
    """Return the words that DRAM moves behind buffers which keep what was used last.

    A double buffer is filled for one fold while another is at work: folds are served whole
    and in their order, also where they overlap in the array.

    Parameters
    ----------
    run
        A run with its trace.
    ifmap_words, filter_words, ofmap_words
        Size of each double buffer; half of it is in use. None is a buffer without limit.

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
    written = misses(run.trace.ofmap, ofmap_words)  # each word that comes in, new or fetched, goes out once
    return Accesses(ifmap, filter_, written, written - run.product.size)
