"""Numba kernels of the array's registers, which simulate a block of cycles row by row.

A row depends on the row above it only through the words handed down one cycle earlier. So each row can run a block
of cycles before the next row does, which keeps its registers in the L1 cache. Every register still takes every value
that it takes cycle by cycle, and words cross the edges of the array in order of time.

Shift registers are ring buffers: the head moves, not the words. The register right of PE (i, j) is
``moving[i, head + j]``, where ``head`` decreases by one each cycle. The word that steps down to PE (i, j) is in line
``i - cycle`` of a ring that is one block longer than the array is high, so the top row can be a block ahead.
"""

import numpy as np

from mlsys.compiled import njit

# Product, cycles, MACs of each PE, words read of both operands, written, read again, and latched.
Traced = tuple[np.ndarray, int, np.ndarray, int, int, int, int, int]
_BLOCK = 32  # cycles


@njit()
def _banks(starts: np.ndarray) -> int:
    """Return the number of banks needed for stationary words or sums.

    One fold computes while another loads and a third drains; within a block, further folds may load early.
    """
    if starts.size < 2:
        return int(starts.size)
    step = starts[1] - starts[0]
    return int(min(starts.size, 3 + -(-_BLOCK // step)))


@njit()
def _turned(moving: np.ndarray, width: int, head: int) -> int:
    """Return the index of the first word of each row; at the start of their ring buffer, rows move to its end."""
    if head >= 0:
        return head
    span: int = moving.shape[1] - width
    for i in range(moving.shape[0]):
        for j in range(width - 1):
            moving[i, span + 1 + j] = moving[i, j]
    return span


@njit(inline="always")
def _multiply_add(sums: np.ndarray, stays: np.ndarray, moves: np.ndarray) -> None:
    for at in range(sums.size):
        sums[at] += stays[at] * moves[at]


@njit()
def _worked(changes: np.ndarray) -> np.ndarray:
    """Return how often each PE multiplied, from the changes at both ends of the busy range of its row."""
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
    """Stream x (time × rows) past stationary words y (rows × columns); sums step down.

    ``starts`` are the cycles in which the folds start to stream. Each trace receives a row (fold, word) for each word
    that crosses an edge, or is empty if no trace is kept.
    """
    streamed, along_rows = x.shape
    along_columns = y.shape[1]
    row_folds = -(-along_rows // size)
    tracing = trace_in.size > 0
    banks = np.zeros((_banks(starts), size, width))
    moving = np.zeros((size, max(width, _BLOCK) + width))
    lines = size + _BLOCK
    sums = np.zeros((lines, width))
    changes = np.zeros((size, width + 1), np.int64)
    product, seen = np.zeros((streamed, along_columns)), np.zeros((streamed, along_columns), np.bool_)
    reads_in, reads_stay, writes, rereads, latched = 0, 0, 0, 0, 0
    lasting = streamed + size + width - 2
    end = starts[-1] + lasting
    cycle, head, first, last = 0, -1, 0, 0
    while cycle < end:
        head = _turned(moving, width, head)
        stop = min(cycle + min(_BLOCK, head + 1), end)
        while cycle >= starts[first] + lasting:
            first += 1
        while last < starts.size and starts[last] - size < stop:
            last += 1
        for now in range(cycle, stop):  # words entering
            begin = head - (now - cycle)
            for f in range(first, last):
                age = now - starts[f]
                r0, c0 = f % row_folds * size, f // row_folds * width
                rows, columns = min(size, along_rows - r0), min(width, along_columns - c0)
                bank = banks[f % banks.shape[0]]
                for j in range(max(0, age + 1), min(columns, age + size + 1)):  # stationary words are shifted in
                    row = j - age - 1  # the lowest row goes first
                    if row < rows:
                        bank[row, j] = y[r0 + row, c0 + j]
                        if tracing:
                            trace_stay[reads_stay, 0] = f
                            trace_stay[reads_stay, 1] = (r0 + row) * along_columns + c0 + j
                        reads_stay += 1
                        latched += rows - row
                for i in range(max(0, age - streamed + 1), min(rows, age + 1)):
                    moving[i, begin] = x[age - i, r0 + i]
                    if tracing:
                        trace_in[reads_in, 0], trace_in[reads_in, 1] = f, (age - i) * along_rows + r0 + i
                    reads_in += 1
        for i in range(size):
            for f in range(first, last):
                r0, c0 = f % row_folds * size, f // row_folds * width
                columns = min(width, along_columns - c0)
                works = i < along_rows - r0
                stays, passes, change = banks[f % banks.shape[0], i], moving[i], changes[i]
                start = max(cycle, starts[f] + i)
                age, begin, line = start - starts[f] - i, head - (start - cycle), (i - start) % lines
                for _ in range(start, min(stop, starts[f] + i + streamed + columns - 1)):
                    low, high = max(0, age - streamed + 1), min(columns, age + 1)
                    if i == 0:
                        sums[line, low:high] = 0.0
                    if works:
                        _multiply_add(sums[line, low:high], stays[low:high], passes[begin + low : begin + high])
                        change[low] += 1
                        change[high] -= 1
                        latched += high - low
                    latched += high - low
                    age, begin, line = age + 1, begin - 1, (line if line else lines) - 1
        for now in range(cycle, stop):  # words leaving
            line = (size - 1 - now) % lines
            for f in range(first, last):
                age = now - starts[f] - size + 1
                c0 = f // row_folds * width
                for j in range(max(0, age - streamed + 1), min(min(width, along_columns - c0), age + 1)):
                    t, out_column = age - j, c0 + j
                    if tracing:
                        trace_out[writes, 0], trace_out[writes, 1] = f, t * along_columns + out_column
                    rereads += seen[t, out_column]
                    seen[t, out_column] = True
                    product[t, out_column] += sums[line, j]
                    writes += 1
        head -= stop - cycle
        cycle = stop
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
    """Multiply a (m × k) by b (k × n) with stationary sums; a steps right, b down. See :func:`operand_stationary`."""
    m, streamed = a.shape
    n = b.shape[1]
    row_folds = -(-m // size)
    tracing = trace_a.size > 0
    banks = np.zeros((_banks(starts), size, width))
    moving = np.zeros((size, max(width, _BLOCK) + width))
    lines = size + _BLOCK
    down = np.zeros((lines, width))
    changes = np.zeros((size, width + 1), np.int64)
    product = np.zeros((m, n))
    reads_a, reads_b, writes, latched = 0, 0, 0, 0
    lasting = streamed + 2 * size + width - 2
    end = starts[-1] + lasting
    cycle, head, first, last = 0, -1, 0, 0
    while cycle < end:
        head = _turned(moving, width, head)
        stop = min(cycle + min(_BLOCK, head + 1), end)
        while cycle >= starts[first] + lasting:
            first += 1
        while last < starts.size and starts[last] < stop:
            last += 1
        for now in range(cycle, stop):  # words entering
            begin, line = head - (now - cycle), -now % lines
            for f in range(first, last):
                age = now - starts[f]
                r0, c0 = f % row_folds * size, f // row_folds * width
                for i in range(max(0, age - streamed + 1), min(min(size, m - r0), age + 1)):
                    moving[i, begin] = a[r0 + i, age - i]
                    if tracing:
                        trace_a[reads_a, 0], trace_a[reads_a, 1] = f, (r0 + i) * streamed + age - i
                    reads_a += 1
                for j in range(max(0, age - streamed + 1), min(min(width, n - c0), age + 1)):
                    down[line, j] = b[age - j, c0 + j]
                    if tracing:
                        trace_b[reads_b, 0], trace_b[reads_b, 1] = f, (age - j) * n + c0 + j
                    reads_b += 1
        for i in range(size):
            for f in range(first, last):
                r0, c0 = f % row_folds * size, f // row_folds * width
                if i >= m - r0:
                    continue
                columns = min(width, n - c0)
                sums, passes, change = banks[f % banks.shape[0], i], moving[i], changes[i]
                start = max(cycle, starts[f] + i)
                age, begin, line = start - starts[f] - i, head - (start - cycle), (i - start) % lines
                for _ in range(start, min(stop, starts[f] + i + streamed + columns - 1)):
                    low, high = max(0, age - streamed + 1), min(columns, age + 1)
                    _multiply_add(sums[low:high], passes[begin + low : begin + high], down[line, low:high])
                    change[low] += 1
                    change[high] -= 1
                    latched += 3 * (high - low)
                    age, begin, line = age + 1, begin - 1, (line if line else lines) - 1
        for now in range(cycle, stop):  # words leaving
            for f in range(first, last):
                r0, c0 = f % row_folds * size, f // row_folds * width
                rows, columns = min(size, m - r0), min(width, n - c0)
                bank = banks[f % banks.shape[0]]
                since = now - starts[f] - streamed - size + 1  # since the lowest row of column 0 has finished
                for j in range(max(0, since - size + 1), min(columns, since + 1)):
                    row = size - 1 - (since - j)  # the lowest row leaves first
                    latched += min(row, rows)
                    if row < rows:
                        product[r0 + row, c0 + j] = bank[row, j]
                        bank[row, j] = 0.0
                        if tracing:
                            trace_out[writes, 0], trace_out[writes, 1] = f, (r0 + row) * n + c0 + j
                        writes += 1
        head -= stop - cycle
        cycle = stop
    return product, end, _worked(changes), reads_a, reads_b, writes, 0, latched
