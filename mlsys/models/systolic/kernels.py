"""Loops that numba compiles; the module is imported only where they are needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["flush_when_full", "least_recently_used", "operand_stationary", "output_stationary", "request_order"]


def request_order(addresses: Any, rows: int, columns: int, dataflow: str) -> Any:
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


@njit(cache=True)
def _diagonals(block: Any) -> Any:
    """Return the elements of (time × place), place j delayed by j, in order of time and then of place."""
    length, places = block.shape
    out = np.empty(length * places, block.dtype)
    at = 0
    for time in range(length + places - 1):
        for place in range(max(0, time - length + 1), min(places, time + 1)):
            out[at] = block[time - place, place]
            at += 1
    return out


@njit(cache=True)
def flush_when_full(order: Any, room: int, passes: int, words: int) -> Any:
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
                return fetched + rest // period * gain + fetched_by[earlier + rest % period] - fetched_by[earlier]
    return fetched


@njit(cache=True, inline="always")
def _copy(source: Any, target: Any) -> None:
    for at in range(target.size):
        target[at] = source[at]


@njit(cache=True, inline="always")
def _multiply_add(above: Any, stays: Any, moves: Any, out: Any, activity: Any) -> None:
    for at in range(out.size):
        out[at] = above[at] + stays[at] * moves[at]
        activity[at] += 1


@njit(cache=True)
def operand_stationary(
    x: Any, y: Any, size: int, width: int, starts: Any, trace_in: Any, trace_stay: Any, trace_out: Any
) -> Any:
    """Run x (time × rows) against words y (rows × columns) that stay, on the registers of the array."""
    streamed, along_rows = x.shape
    along_columns = y.shape[1]
    tracing = trace_in.size > 0
    banks = np.zeros((2, size, width))
    moving, sums = (
        np.zeros((2, 2, size, width)),
        np.zeros((2, 2, size, width)),
    )  # of even and odd folds, before and after
    activity = np.zeros((size, width), np.int64)
    product, seen = np.zeros((streamed, along_columns)), np.zeros((streamed, along_columns), np.bool_)
    nothing = np.zeros(width)
    reads_in, reads_stay, writes, rereads, latched = 0, 0, 0, 0, 0
    row_folds = -(-along_rows // size)
    last, first_live = starts.size - 1, 0
    end = starts[last] + streamed + size + width - 2
    for cycle in range(end):
        while cycle >= starts[first_live] + streamed + size + width - 2:
            first_live += 1
        for f in range(first_live, starts.size):
            age = cycle - starts[f]
            if age < -size:
                break
            parity, r0, c0 = f % 2, f % row_folds * size, f // row_folds * width
            rows, columns = min(size, along_rows - r0), min(width, along_columns - c0)
            bank, old, new = banks[parity], cycle % 2, 1 - cycle % 2
            right, down = moving[parity], sums[parity]
            for j in range(max(0, age + 1), min(columns, age + size + 1)):  # words that stay are pushed in
                step = age + size - j
                for i in range(step, 0, -1):
                    bank[i, j] = bank[i - 1, j]
                row = size - 1 - step
                if row < rows:
                    bank[0, j] = y[r0 + row, c0 + j]
                    if tracing:
                        trace_stay[reads_stay, 0], trace_stay[reads_stay, 1] = f, (r0 + row) * along_columns + c0 + j
                    reads_stay += 1
                latched += max(0, rows - row)
            for i in range(max(0, age - streamed - columns + 2), min(size, age + 1)):
                low, high = max(0, age - i - streamed + 1), min(columns, age - i + 1)
                if low >= high:
                    continue
                out = down[new, i, low:high]
                if i < rows:
                    if low == 0:
                        right[new, i, 0] = x[age - i, r0 + i]
                        if tracing:
                            trace_in[reads_in, 0], trace_in[reads_in, 1] = f, (age - i) * along_rows + r0 + i
                        reads_in += 1
                    near = max(low, 1)
                    _copy(right[old, i, near - 1 : high - 1], right[new, i, near:high])
                    above = down[old, i - 1, low:high] if i else nothing[low:high]
                    _multiply_add(above, bank[i, low:high], right[new, i, low:high], out, activity[i, low:high])
                    latched += 2 * (high - low)
                else:
                    _copy(down[old, i - 1, low:high], out)
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
    return product, end, activity, reads_in, reads_stay, writes, rereads, latched


@njit(cache=True)
def output_stationary(
    a: Any, b: Any, size: int, width: int, starts: Any, trace_a: Any, trace_b: Any, trace_out: Any
) -> Any:
    """Run a (m × k) against b (k × n) with sums that stay, on the registers of the array."""
    m, streamed = a.shape
    n = b.shape[1]
    tracing = trace_a.size > 0
    banks, right, down = np.zeros((2, size, width)), np.zeros((2, 2, size, width)), np.zeros((2, 2, size, width))
    activity = np.zeros((size, width), np.int64)
    product = np.zeros((m, n))
    reads_a, reads_b, writes, latched = 0, 0, 0, 0
    row_folds = -(-m // size)
    first_live = 0
    end = starts[starts.size - 1] + streamed + 2 * size + width - 2
    for cycle in range(end):
        while cycle >= starts[first_live] + streamed + 2 * size + width - 2:
            first_live += 1
        for f in range(first_live, starts.size):
            age = cycle - starts[f]
            if age < 0:
                break
            r0, c0 = f % row_folds * size, f // row_folds * width
            rows, columns = min(size, m - r0), min(width, n - c0)
            bank, old, new = banks[f % 2], cycle % 2, 1 - cycle % 2
            step_right, step_down = right[f % 2], down[f % 2]
            for i in range(max(0, age - streamed - columns + 2), min(rows, age + 1)):
                low, high = max(0, age - i - streamed + 1), min(columns, age - i + 1)
                if low >= high:
                    continue
                near = max(low, 1)
                _copy(step_right[old, i, near - 1 : high - 1], step_right[new, i, near:high])
                if low == 0:
                    step_right[new, i, 0] = a[r0 + i, age - i]
                    if tracing:
                        trace_a[reads_a, 0], trace_a[reads_a, 1] = f, (r0 + i) * streamed + age - i
                    reads_a += 1
                if i:
                    _copy(step_down[old, i - 1, low:high], step_down[new, i, low:high])
                else:
                    for j in range(low, high):
                        step_down[new, 0, j] = b[age - j, c0 + j]
                        if tracing:
                            trace_b[reads_b, 0], trace_b[reads_b, 1] = f, (age - j) * n + c0 + j
                        reads_b += 1
                sums = bank[i, low:high]
                _multiply_add(
                    sums, step_right[new, i, low:high], step_down[new, i, low:high], sums, activity[i, low:high]
                )
                latched += 3 * (high - low)
            since = age - streamed - size + 1  # since the lowest row of column 0 has finished
            for j in range(max(0, since - size + 1), min(columns, since + 1)):
                row = size - 1 - (since - j)
                if row < rows:
                    product[r0 + row, c0 + j] = bank[size - 1, j]
                    if tracing:
                        trace_out[writes, 0], trace_out[writes, 1] = f, (r0 + row) * n + c0 + j
                    writes += 1
                for i in range(size - 1, size - 1 - row, -1):
                    bank[i, j] = bank[i - 1, j]
                bank[size - 1 - row, j] = 0.0
                latched += min(row, rows)
    return product, end, activity, reads_a, reads_b, writes, 0, latched


@njit(cache=True)
def _by_fold(trace: Any) -> Any:
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


@njit(cache=True)
def least_recently_used(trace: Any, room: int, words: int) -> Any:
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
