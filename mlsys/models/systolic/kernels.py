"""Loops that numba compiles; the module is imported only where they are needed."""

from __future__ import annotations

import numpy as np

from mlsys.choices import Stationary
from mlsys.compiled import njit

# Product, end, busy PEs of each cycle, words read of both operands, written, read again, and latched.
Traced = tuple[np.ndarray, int, np.ndarray, int, int, int, int, int]
_BANKS = 3  # of words or sums that stay: one at work, one on its way in, one on its way out

__all__ = ["flush_when_full", "least_recently_used", "operand_stationary", "output_stationary", "request_order"]


def request_order(addresses: np.ndarray, rows: int, columns: int, dataflow: Stationary) -> np.ndarray:
    """Return the addresses of an im2col matrix in the order in which SCALE-Sim's array asks for them, one pass.

    Where they stream (``ws``, ``os``), a fold is read along diagonals; where they stay
    (``is``), row by row from the far end of the fold.
    """
    m, k = addresses.shape
    if dataflow == "is":
        pieces = [
            addresses[c : c + columns, r : r + rows][:, ::-1].T.ravel()
            for c in range(0, m, columns)
            for r in range(0, k, rows)
        ]
    elif dataflow == "ws":
        pieces = [_diagonals(addresses[:, r : r + rows]) for r in range(0, k, rows)]
    else:
        pieces = [_diagonals(addresses[r : r + rows].T) for r in range(0, m, rows)]
    order = np.concatenate(pieces)
    return np.ascontiguousarray(order[order >= 0])


@njit()
def _diagonals(block: np.ndarray) -> np.ndarray:
    """Return the elements of (time × place), place j delayed by j, in order of time and then of place."""
    length, places = block.shape
    out = np.empty(length * places, block.dtype)
    at = 0
    for time in range(length + places - 1):
        for place in range(max(0, time - length + 1), min(places, time + 1)):
            out[at] = block[time - place, place]
            at += 1
    return out


@njit()
def flush_when_full(order: np.ndarray, room: int, passes: int, words: int) -> int:
    """Return words fetched into a buffer that is emptied whole when ``room`` words are in it.

    ``order`` is read ``passes`` times. A pass that finds the buffer as an earlier one found
    it ends like that one, so that the rest need not be run.
    """
    filled_in = np.full(words, -1, np.int64)  # the epoch in which a word came in last
    epoch, held, fetched = 0, 0, 0
    flushed_at = np.full(passes, -1, np.int64)  # where in the order the last flush of a pass was
    fetched_by = np.zeros(passes, np.int64)
    for turn in range(passes):
        for at in range(order.size):
            if filled_in[order[at]] != epoch:
                filled_in[order[at]] = epoch
                fetched += 1
                held += 1
                if held == room:
                    epoch, held = epoch + 1, 0
                    flushed_at[turn] = at
        fetched_by[turn] = fetched
        for earlier in range(turn):
            if flushed_at[earlier] == flushed_at[turn] and flushed_at[turn] >= 0:
                period, gain = turn - earlier, fetched - fetched_by[earlier]
                rest = passes - 1 - turn
                return int(fetched + rest // period * gain + fetched_by[earlier + rest % period] - fetched_by[earlier])
    return fetched


@njit(inline="always")
def _multiply_add(sums: np.ndarray, stays: np.ndarray, moves: np.ndarray) -> None:
    for at in range(sums.size):
        sums[at] += stays[at] * moves[at]


@njit()
def _turn(moving: np.ndarray, head: int) -> int:
    """Move every operand one PE to the right and return where the rows of registers begin now.

    What shifts as a whole is a ring: its beginning moves, not its words, but for the turn at the end.
    """
    if head:
        return head - 1
    size, span = moving.shape
    width: int = span // 2
    for i in range(size):
        for j in range(width - 1):
            moving[i, width + 1 + j] = moving[i, j]
    return width


@njit()
def _worked(changes: np.ndarray) -> np.ndarray:
    """Return how often each PE multiplied, from where the working stretch of its row began and ended."""
    size, width = changes.shape[0], changes.shape[1] - 1
    activity = np.empty((size, width), np.int64)
    for i in range(size):
        working = 0
        for j in range(width):
            working += changes[i, j]
            activity[i, j] = working
    return activity


@njit()
def operand_stationary(
    x: np.ndarray,
    y: np.ndarray,
    size: int,
    width: int,
    starts: np.ndarray,
    trace_in: np.ndarray,
    trace_stay: np.ndarray,
    trace_out: np.ndarray,
) -> Traced:
    """Run x (time × rows) against words y (rows × columns) that stay, on the registers of the array.

    The register right of PE (i, j) is ``moving[i, head + j]``, the sum below it ``sums[(i - cycle) % size, j]``: a
    word that moves keeps its place, and the beginning moves. Words that stay are pushed in from the top while those
    of the fold two before may still be at work at the bottom, so that there are three banks of them.
    """
    streamed, along_rows = x.shape
    along_columns = y.shape[1]
    tracing = trace_in.size > 0
    banks = np.zeros((min(_BANKS, starts.size), size, width))
    moving, sums = np.zeros((size, 2 * width)), np.zeros((size, width))
    changes = np.zeros((size, width + 1), np.int64)
    product, seen = np.zeros((streamed, along_columns)), np.zeros((streamed, along_columns), np.bool_)
    reads_in, reads_stay, writes, rereads, latched = 0, 0, 0, 0, 0
    row_folds = -(-along_rows // size)
    last, first_live, head = starts.size - 1, 0, width
    end = starts[last] + streamed + size + width - 2
    for cycle in range(end):
        head = _turn(moving, head)
        top = -cycle % size
        while cycle >= starts[first_live] + streamed + size + width - 2:
            first_live += 1
        for f in range(first_live, starts.size):
            age = cycle - starts[f]
            if age < -size:
                break
            r0, c0 = f % row_folds * size, f // row_folds * width
            rows, columns = min(size, along_rows - r0), min(width, along_columns - c0)
            bank = banks[f % _BANKS]
            for j in range(max(0, age + 1), min(columns, age + size + 1)):  # words that stay are pushed in
                row = j - age - 1  # the lowest row goes first
                if row < rows:
                    bank[row, j] = y[r0 + row, c0 + j]
                    if tracing:
                        trace_stay[reads_stay, 0], trace_stay[reads_stay, 1] = f, (r0 + row) * along_columns + c0 + j
                    reads_stay += 1
                    latched += rows - row
            for i in range(max(0, age - streamed - columns + 2), min(size, age + 1)):
                low, high = max(0, age - i - streamed + 1), min(columns, age - i + 1)
                if low >= high:
                    continue
                at = top + i
                if at >= size:
                    at -= size
                out = sums[at, low:high]
                if i == 0:
                    out[:] = 0.0
                if i < rows:
                    if low == 0:
                        moving[i, head] = x[age - i, r0 + i]
                        if tracing:
                            trace_in[reads_in, 0], trace_in[reads_in, 1] = f, (age - i) * along_rows + r0 + i
                        reads_in += 1
                    _multiply_add(out, bank[i, low:high], moving[i, head + low : head + high])
                    changes[i, low] += 1
                    changes[i, high] -= 1
                    latched += 2 * (high - low)
                else:
                    latched += high - low
                if i == size - 1:
                    for j in range(low, high):
                        t, place = age - i - j, c0 + j
                        if tracing:
                            trace_out[writes, 0], trace_out[writes, 1] = f, t * along_columns + place
                        rereads += seen[t, place]
                        seen[t, place] = True
                        product[t, place] += out[j - low]
                        writes += 1
    return product, end, _worked(changes), reads_in, reads_stay, writes, rereads, latched


@njit()
def output_stationary(
    a: np.ndarray,
    b: np.ndarray,
    size: int,
    width: int,
    starts: np.ndarray,
    trace_a: np.ndarray,
    trace_b: np.ndarray,
    trace_out: np.ndarray,
) -> Traced:
    """Run a (m × k) against b (k × n) with sums that stay, on the registers of the array.

    As in :func:`operand_stationary`, what moves is held in rings: a in ``moving``, b in ``down``.
    """
    m, streamed = a.shape
    n = b.shape[1]
    tracing = trace_a.size > 0
    banks = np.zeros((min(_BANKS, starts.size), size, width))
    moving, down = np.zeros((size, 2 * width)), np.zeros((size, width))
    changes = np.zeros((size, width + 1), np.int64)
    product = np.zeros((m, n))
    reads_a, reads_b, writes, latched = 0, 0, 0, 0
    row_folds = -(-m // size)
    first_live, head = 0, width
    end = starts[starts.size - 1] + streamed + 2 * size + width - 2
    for cycle in range(end):
        head = _turn(moving, head)
        top = -cycle % size
        while cycle >= starts[first_live] + streamed + 2 * size + width - 2:
            first_live += 1
        for f in range(first_live, starts.size):
            age = cycle - starts[f]
            if age < 0:
                break
            r0, c0 = f % row_folds * size, f // row_folds * width
            rows, columns = min(size, m - r0), min(width, n - c0)
            bank = banks[f % _BANKS]
            for i in range(max(0, age - streamed - columns + 2), min(rows, age + 1)):
                low, high = max(0, age - i - streamed + 1), min(columns, age - i + 1)
                if low >= high:
                    continue
                at = top + i
                if at >= size:
                    at -= size
                if low == 0:
                    moving[i, head] = a[r0 + i, age - i]
                    if tracing:
                        trace_a[reads_a, 0], trace_a[reads_a, 1] = f, (r0 + i) * streamed + age - i
                    reads_a += 1
                if i == 0:
                    for j in range(low, high):
                        down[at, j] = b[age - j, c0 + j]
                        if tracing:
                            trace_b[reads_b, 0], trace_b[reads_b, 1] = f, (age - j) * n + c0 + j
                        reads_b += 1
                _multiply_add(bank[i, low:high], moving[i, head + low : head + high], down[at, low:high])
                changes[i, low] += 1
                changes[i, high] -= 1
                latched += 3 * (high - low)
            since = age - streamed - size + 1  # since the lowest row of column 0 has finished
            for j in range(max(0, since - size + 1), min(columns, since + 1)):
                row = size - 1 - (since - j)  # the lowest row leaves first
                latched += min(row, rows)
                if row < rows:
                    product[r0 + row, c0 + j] = bank[row, j]
                    bank[row, j] = 0.0
                    if tracing:
                        trace_out[writes, 0], trace_out[writes, 1] = f, (r0 + row) * n + c0 + j
                    writes += 1
    return product, end, _worked(changes), reads_a, reads_b, writes, 0, latched


@njit()
def _by_fold(trace: np.ndarray) -> np.ndarray:
    """Return the words of a trace of (fold, word), fold after fold, in the order of time within each."""
    starts = np.zeros(trace[:, 0].max() + 2, np.int64)
    for at in range(trace.shape[0]):
        starts[trace[at, 0] + 1] += 1
    starts = np.cumsum(starts)
    words = np.empty(trace.shape[0], np.int64)
    for at in range(trace.shape[0]):
        fold = trace[at, 0]
        words[starts[fold]] = trace[at, 1]
        starts[fold] += 1
    return words


@njit()
def least_recently_used(trace: np.ndarray, room: int, words: int) -> int:
    """Return misses of a buffer of ``room`` words that drops what was used longest ago; trace rows are (fold, word)."""
    held = np.zeros(words, np.bool_)
    count, misses = 0, 0
    if room >= words:  # nothing is ever dropped
        for at in range(trace.shape[0]):
            misses += not held[trace[at, 1]]
            held[trace[at, 1]] = True
        return misses
    older, newer = np.empty(words + 1, np.int64), np.empty(words + 1, np.int64)
    older[words] = newer[words] = words  # a ring that begins and ends at a mark
    for word in _by_fold(trace):
        if held[word]:
            newer[older[word]], older[newer[word]] = newer[word], older[word]
        else:
            misses += 1
            if room == 0:
                continue
            if count == room:
                oldest = newer[words]
                newer[words], older[newer[oldest]] = newer[oldest], words
                held[oldest] = False
                count -= 1
            held[word] = True
            count += 1
        newest = older[words]
        newer[newest], older[word], newer[word], older[words] = word, newest, words, word
    return misses
