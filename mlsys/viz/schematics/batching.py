"""Schematics of batching: padding to buckets, blocks of a cache, and slots of static and continuous batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.formulas import padding_waste
from mlsys.unit_checks import checked_count
from mlsys.viz.schematics.shapes import box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mlsys.models.serving import ServingRun, StaticRun

_HATCH = "////"
_HUES = ("Blue", "Orange", "Green", "Violet")


@drawn
def padded_rows(ax: Axes, lengths: Sequence[int], buckets: Sequence[int]) -> Axes:
    """Draw inputs as bars, and the padding that fills each up to its bucket.

    Parameters
    ----------
    ax
        Axes to draw into.
    lengths
        Tokens of each input, one row each.
    buckets
        Sizes that inputs are padded to; a dashed line marks each.

    Returns
    -------
    Axes
        Hatched is what is computed and thrown away; its share of all is written below.
    """
    waste, sizes = padding_waste(lengths, buckets), sorted(buckets)
    for row, length in enumerate(lengths):
        bucket = next(size for size in sizes if size >= length)
        box(ax, (0, row + 0.14), (length, 0.72), f"{length}", role="tokens")
        if bucket > length:
            box(ax, (length, row + 0.14), (bucket - length, 0.72), filled=False, hatch=_HATCH, role="padding")
    for size in sizes:
        ax.plot([size, size], [-0.1, len(lengths) + 0.1], color=COLORS["RedLine"], linestyle="--", linewidth=1.2,
                zorder=0)  # fmt: skip
        note(ax, size, -0.45, f"{size}", ha="center", color=COLORS["RedLine"])
    note(ax, 0, len(lengths) + 0.5, f"padding: {waste:.1%} of what is computed")
    ax.set(xlim=(-0.02 * sizes[-1], 1.06 * sizes[-1]), ylim=(len(lengths) + 0.9, -0.9))
    ax.set_axis_off()
    return ax


@drawn
def cache_blocks(ax: Axes, lengths: Sequence[int], block_size: int, longest: int) -> Axes:
    """Draw the cache of sequences in blocks, beside the room that a reservation for the longest would take.

    Parameters
    ----------
    ax
        Axes to draw into.
    lengths
        Tokens that each sequence has stored, one row each.
    block_size
        Tokens of a block.
    longest
        Tokens that a contiguous cache would reserve for each sequence.

    Returns
    -------
    Axes
        Filled are stored tokens, hatched the free places of the last block of each sequence, dashed the reservation.

    Raises
    ------
    ArgumentError
        If a sequence is longer than the longest.
    """
    size = checked_count("cache_blocks", "block_size", block_size)
    if max(lengths) > longest:
        raise ArgumentError(f"cache_blocks(): a sequence has {max(lengths)} tokens, more than `longest`, {longest}")
    for row, length in enumerate(lengths):
        frame = box(ax, (0, row + 0.06), (longest, 0.88), filled=False, role="reserved")
        frame.set(linestyle="--", edgecolor=COLORS["RedLine"], linewidth=1.1)
        for start in range(0, length, size):
            stored = min(size, length - start)
            box(
                ax, (start, row + 0.18), (size, 0.64), filled=False, hatch=_HATCH if stored < size else "", role="block"
            )
            box(ax, (start, row + 0.18), (stored, 0.64), role="stored")
        note(ax, -0.02 * longest, row + 0.5, f"{length}", ha="right", color=COLORS["primary"])
    paged = padding_waste(lengths, range(size, longest + size, size))
    note(ax, 0, len(lengths) + 0.45, f"unused in blocks of {size}: {paged:.1%}")
    reserved = f"unused in reservations of {longest}: {padding_waste(lengths, [longest]):.1%}"
    note(ax, 0, len(lengths) + 1.1, reserved, color=COLORS["RedLine"])
    note(ax, -0.02 * longest, -0.4, "tokens", ha="right")
    ax.set(xlim=(-0.14 * longest, 1.03 * longest), ylim=(len(lengths) + 1.5, -0.8))
    ax.set_axis_off()
    return ax


@drawn
def batch_slots(ax: Axes, static: StaticRun, run: ServingRun) -> Axes:
    """Draw the same requests in the slots of a static batch, and below in those of a continuous one.

    Parameters
    ----------
    ax
        Axes to draw into.
    static, run
        Runs of the same requests; of the continuous one a single replica.

    Returns
    -------
    Axes
        One row for each slot, and the number of a request in its bar. Hatched is the time in which a static batch goes
        on decoding for a request that has all its tokens, counted as the share of its iterations.

    Raises
    ------
    ArgumentError
        If the runs are of different requests.
    """
    if static.requests is not run.requests:
        raise ArgumentError("batch_slots(): both runs must be of the same requests. Pass one `Requests` to both")
    outputs, size = run.requests.output, 0
    for start in np.unique(static.begin):
        batch = np.flatnonzero(static.begin == start)
        size = max(size, len(batch))
        longest = outputs[batch].max()
        for slot, r in enumerate(batch):
            share = (outputs[r] - 1) / (longest - 1) if longest > 1 else 1.0
            own = static.first[r] + share * (static.end[r] - static.first[r])
            _bar(ax, slot, start, own, int(r))
            if own < static.end[r]:
                box(ax, (own, slot + 0.1), (static.end[r] - own, 0.8), filled=False, hatch=_HATCH, role="unused")
    free: list[float] = []
    below = size + 2.0
    for r in np.argsort(run.begin, kind="stable"):
        slot = next((at for at, until in enumerate(free) if until <= run.begin[r]), len(free))
        free[slot : slot + 1] = [float(run.end[r])]
        _bar(ax, below + slot, run.begin[r], run.end[r], int(r))
    right = float(max(static.end.max(), run.end.max()))
    for title, top, ends, count in (
        ("static: a batch ends together", 0.0, static.end, size),
        ("continuous: a slot is refilled at once", below, run.end, len(free)),
    ):
        end = float(ends.max())
        note(ax, 0, top - 0.5, title, color=COLORS["primary"], weight="bold")
        ax.plot([end, end], [top - 0.15, top + count + 0.15], color=COLORS["RedLine"], linewidth=1.5)
        note(ax, end, top + count + 0.5, f"done at {end:.3g} s", ha="right", color=COLORS["RedLine"])
    ax.set(xlim=(-0.01 * right, 1.02 * right), ylim=(below + len(free) + 1.0, -1.1))
    ax.set_axis_off()
    return ax


def _bar(ax: Axes, row: float, begin: float, end: float, request: int) -> None:
    hue = _HUES[request % len(_HUES)]
    box(ax, (float(begin), row + 0.1), (float(end - begin), 0.8), f"{request + 1}", hue, role=f"request {request + 1}")
