"""Numba kernels; imported lazily by the functions that need them."""

import numpy as np

from mlsys.choices import Stationary
from mlsys.compiled import njit


def request_order(addresses: np.ndarray, rows: int, columns: int, dataflow: Stationary) -> np.ndarray:
    """Return the addresses of an im2col matrix in the order in which SCALE-Sim's array requests them in one pass.

    When they are streamed (``ws``, ``os``), a fold is read along diagonals; when they are
    stationary (``is``), row by row from the far end of the fold.
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
    """Return the elements of a (time × lane) block in order of time and lane, with lane j delayed by j."""
    length, lanes = block.shape
    out = np.empty(length * lanes, block.dtype)
    at = 0
    for time in range(length + lanes - 1):
        for index in range(max(0, time - length + 1), min(lanes, time + 1)):
            out[at] = block[time - index, index]
            at += 1
    return out


@njit()
def flush_when_full(order: np.ndarray, room: int, passes: int, words: int) -> int:
    """Return the words fetched into a buffer that is flushed whenever it holds ``room`` words.

    ``order`` is read ``passes`` times. Once a pass starts in the same buffer state as an earlier
    one, the passes repeat with that period and the rest is extrapolated.
    """
    filled_in = np.full(words, -1, np.int64)  # the epoch in which a word was last fetched
    epoch, held, fetched = 0, 0, 0
    flushed_at = np.full(passes, -1, np.int64)  # position of the last flush of each pass
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


@njit()
def _by_fold(trace: np.ndarray) -> np.ndarray:
    """Return the words of a (fold, word) trace sorted by fold, in order of time within each fold."""
    starts = np.zeros(trace[:, 0].max() + 2, np.int64)
    words = np.empty(trace.shape[0], np.int32)
    in_order = True
    for at in range(trace.shape[0]):
        starts[trace[at, 0] + 1] += 1
        words[at] = trace[at, 1]
        in_order &= at == 0 or trace[at - 1, 0] <= trace[at, 0]
    if in_order:
        return words
    starts = np.cumsum(starts)
    for at in range(trace.shape[0]):
        fold = trace[at, 0]
        words[starts[fold]] = trace[at, 1]
        starts[fold] += 1
    return words


@njit()
def least_recently_used(trace: np.ndarray, room: int, words: int) -> int:
    """Return the misses of a least-recently-used buffer of ``room`` words; trace rows are (fold, word).

    The least recently used word is that of the first request that is still the last one of its word.
    """
    if room == 0:
        return int(trace.shape[0])
    used = np.full(words, -1, np.int64)  # position of the last request of each resident word
    count, misses, first = 0, 0, 0
    if room >= words:  # nothing is ever evicted
        for at in range(trace.shape[0]):
            misses += used[trace[at, 1]] < 0
            used[trace[at, 1]] = at
        return misses
    order = _by_fold(trace)
    for at in range(order.size):
        word = order[at]
        if used[word] < 0:
            misses += 1
            if count == room:
                while used[order[first]] != first:
                    first += 1
                used[order[first]] = -1
                first += 1
            else:
                count += 1
        used[word] = at
    return misses
