"""Counts of a matrix product as SCALE-Sim 3.0.0 reports them, quirks included.

Differences from the physical count:

- ``cycles`` is the index, from zero, of the last row of demands: one less than their number;
- with stationary outputs, the drain cycles are left out, and every fold writes R + C
  words too many to the output buffer;
- folds never overlap;
- partial sums of ``ws`` and ``is`` are written to DRAM and never read back;
- words written to DRAM are padded to lines of C words whenever a buffer is flushed;
- a read buffer holds 50 sets of 1/100 of its size, and is flushed when they are full.

The counts were verified against recorded runs of the tool (``tests/oracles``); the arithmetic is
reimplemented, no code of the tool is used.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlsys.choices import FoldOverlap
from mlsys.errors import ArgumentError
from mlsys.models.systolic.accesses import Accesses, ArrayCounts
from mlsys.models.systolic.folds import Folds, ceil_div, choose

_LARGEST_MATRIX = 2**28  # words of the largest im2col matrix that is simulated


@dataclass(frozen=True)
class Window:
    """Geometry by which an im2col matrix repeats the words of an image.

    Attributes
    ----------
    height, width, channels
        Size of the image, including padding, and channels that one filter reads.
    kernel_height, kernel_width, stride
        Size and stride of the window.
    """

    height: int
    width: int
    channels: int
    kernel_height: int
    kernel_width: int
    stride: int

    @property
    def output(self) -> tuple[int, int]:
        """Rows and columns of windows; SCALE-Sim rounds up, so the last window may extend past the edge."""
        return (
            ceil_div(self.height - self.kernel_height + self.stride, self.stride),
            ceil_div(self.width - self.kernel_width + self.stride, self.stride),
        )

    @property
    def words(self) -> int:
        """Words of the image."""
        return self.height * self.width * self.channels

    def check(self, m: Any, k: Any) -> None:
        """Raise an ArgumentError unless the window yields an (m × k) matrix."""
        rows, columns = self.output
        volume = self.kernel_height * self.kernel_width * self.channels
        if (rows * columns, volume) != (m, k):
            raise ArgumentError(
                f"count_systolic(): `window` must give {m} windows of {k} words, got {rows * columns} of {volume}."
                " Give the image with its padding"
            )

    def addresses(self) -> Any:
        """Return the image word of each element of the im2col matrix, -1 for none, shape (windows, kernel volume)."""
        rows, columns = self.output
        window = np.arange(rows * columns, dtype=np.int32)[:, None]
        tap = np.arange(self.kernel_height * self.kernel_width * self.channels, dtype=np.int32)[None, :]
        y = window // columns * self.stride + tap // (self.kernel_width * self.channels)
        x = window % columns * self.stride + tap // self.channels % self.kernel_width
        word = (y * self.width + x) * self.channels + tap % self.channels
        return np.where((y < self.height) & (x < self.width), word, np.int32(-1))


def read_buffer_words(words: Any) -> Any:
    """Return how many words a read buffer of ``words`` in total holds before it is flushed.

    Examples
    --------
    >>> read_buffer_words(64 * 1024)
    32750
    """
    return 50 * (words // 100)


def scalesim_counts(
    cut: Folds, ifmap_words: Any = None, filter_words: Any = None, ofmap_words: Any = None,
    fold_overlap: FoldOverlap = "none", window: Window | None = None,
) -> ArrayCounts:  # fmt: skip
    """Return counts as SCALE-Sim 3.0.0 reports them; sizes are checked by the caller.

    With an unlimited buffer, everything it serves moves once.

    Raises
    ------
    ArgumentError
        If folds are to overlap, or the window does not match the product's shape.
    """
    if fold_overlap != "none":
        raise ArgumentError(
            f"count_systolic(): `fold_overlap` must be 'none' in the SCALE-Sim convention, got {fold_overlap!r}. "
            "Write convention='physical' to let folds overlap"
        )
    fold = cut.fold_cycles - (cut.array_rows if cut.dataflow == "os" else 0)
    cycles = cut.count * fold - 1
    macs, elements = cut.m * cut.n * cut.k, cut.array_rows * cut.array_columns
    mapping = cut.along_rows * cut.along_columns / (cut.count * elements)
    skewed = fold if cut.dataflow == "os" else fold + cut.array_columns - 1
    left, right, out = cut.m * cut.k, cut.k * cut.n, cut.m * cut.n
    once = out * 0
    if cut.dataflow == "os":
        extra = cut.count * (cut.array_rows + cut.array_columns)
        sram = Accesses(cut.column_folds * left, cut.row_folds * right, out + extra, once)
        filter_ = _filter_of_os(cut, filter_words)
        written = out
    elif cut.dataflow == "ws":
        sram = Accesses(cut.column_folds * left, right, cut.row_folds * out, once)
        filter_, written = right, cut.row_folds * out
    else:
        sram = Accesses(left, cut.column_folds * right, cut.row_folds * out, once)
        filter_, written = _passes(right, cut.column_folds, filter_words), cut.row_folds * out
    if window is None:
        ifmap = left if cut.dataflow == "is" else _passes(left, cut.column_folds, ifmap_words)
    else:
        ifmap = _windows(cut, window, ifmap_words)
    dram = Accesses(ifmap, filter_, _writes(written, cut, ofmap_words), once)
    utilisation = macs / (cycles * elements) if np.ndim(cycles) or cycles else float("nan")
    return ArrayCounts("scalesim", cut, cycles, macs, utilisation, mapping, mapping * cut.streamed / skewed, sram, dram)


def _passes(words: Any, passes: Any, buffer: Any) -> Any:
    """Return the words fetched when an operand is read from end to end ``passes`` times."""
    if buffer is None:
        return words
    room = read_buffer_words(buffer)
    return choose((room == 0) | (words < room), words, passes * words)


def _filter_of_os(cut: Folds, buffer: Any) -> Any:
    """Return the words fetched when each block of columns in turn is read once per row fold.

    A block that fits is fetched once, but the buffer is flushed when it is full: the part of a
    block fetched before is then fetched a second time.
    """
    right = cut.k * cut.n
    if buffer is None:
        return right
    room = read_buffer_words(buffer)
    block, full = cut.k * cut.array_columns, cut.column_folds - 1
    last = cut.k * (cut.along_columns - full * cut.array_columns)
    fitting = choose(block < room, ceil_div(room, block) - 1, 1)  # blocks fetched before it is flushed
    emptied = choose(full > 0, (full - 1) // fitting, 0)
    again = emptied * (room - fitting * block)
    held = choose(full > 0, block * ((full - 1) % fitting + 1), 0)
    again = again + choose(held + last >= room, room - held, 0)
    # If full blocks do not fit but the last one does, the full ones leave (their words mod room) in the buffer.
    behind = cut.row_folds * full * block % choose(room == 0, 1, room)
    large = cut.row_folds * full * block + choose(
        last < room, last + choose(behind + last >= room, room - behind, 0), cut.row_folds * last
    )
    several = choose(block < room, right + again, large)
    return choose((room == 0) | (cut.row_folds == 1), right, several)


def _writes(words: Any, cut: Folds, buffer: Any) -> Any:
    if buffer is None:
        return words
    if np.ndim(words):
        flat = [dram_writes(int(w), int(c), int(b)) for w, c, b in np.broadcast(words, cut.array_columns, buffer)]
        return np.array(flat).reshape(np.broadcast(words, cut.array_columns, buffer).shape)
    return dram_writes(words, cut.array_columns, buffer)


def dram_writes(words: int, columns: int, buffer: int) -> int:
    """Return the words that SCALE-Sim writes to DRAM, including padding.

    Words are queued in lines of ``columns``. When half of the buffer overflows, the current line
    is closed and as many lines are written as that half holds; their padding counts, except in
    the last line.

    Parameters
    ----------
    words
        Words that the array writes.
    columns
        Words in a line.
    buffer
        Capacity of the output buffer in words, both halves.

    Examples
    --------
    >>> dram_writes(12544 * 64, 32, 64 * 1024)
    802847
    """
    half = buffer // 2
    chunk = ceil_div(half, columns)
    queued: list[list[int]] = []  # runs of [lines, words in each]
    moved, arriving = 0, half + 1
    seen: dict[tuple[Any, ...], tuple[int, int]] = {}
    while words >= arriving > 0:
        words -= arriving
        _arrive(queued, arriving, columns)
        left = _leave(queued, chunk, columns)
        moved, arriving = moved + left, left
        state = (arriving, *map(tuple, queued))
        if state in seen:  # periodic from here on
            words_then, moved_then = seen.pop(state)
            turns = words // (words_then - words)
            words, moved = words - turns * (words_then - words), moved + turns * (moved - moved_then)
            seen.clear()
        seen[state] = words, moved
    _arrive(queued, words, columns)
    while queued:
        moved += _leave(queued, chunk, columns)
    return moved


def _arrive(queued: list[list[int]], words: int, columns: int) -> None:
    queued += [run for run in ([words // columns, columns], [1, words % columns]) if run[0] and run[1]]


def _leave(queued: list[list[int]], chunk: int, columns: int) -> int:
    """Remove up to ``chunk`` lines from the front and return the words that they count as."""
    lines, last = 0, columns
    while queued and lines < chunk:
        taken = min(queued[0][0], chunk - lines)
        lines, last = lines + taken, queued[0][1]
        queued[0][0] -= taken
        if not queued[0][0]:
            queued.pop(0)
    return lines * columns - (columns - last)


def _windows(cut: Folds, window: Window, buffer: Any) -> int:
    """Return the words fetched for the left operand of a convolution, whose windows share words."""
    window.check(cut.m, cut.k)
    if cut.m * cut.k > _LARGEST_MATRIX:
        raise ArgumentError(
            f"count_systolic(): `window` makes an im2col matrix of {cut.m * cut.k:,} words, more than the "
            f"{_LARGEST_MATRIX:,} that are simulated. Leave out `window` or `ifmap_words`"
        )
    from mlsys.models.systolic.kernels import flush_when_full, request_order

    addresses = window.addresses()
    distinct = len(np.unique(addresses[addresses >= 0]))
    room = read_buffer_words(buffer) if buffer is not None else 0
    if room == 0 or distinct < room:
        return distinct
    order = request_order(addresses, int(cut.array_rows), int(cut.array_columns), cut.dataflow)
    passes = 1 if cut.dataflow == "is" else int(cut.column_folds)
    return int(flush_when_full(order, room, passes, window.words))
