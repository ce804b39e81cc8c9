"""Offsets of buffers in one memory block: heuristics over sizes and lifetimes.

Two buffers may share addresses if their lifetimes do not overlap. Finding the smallest block is NP-hard (dynamic
storage allocation: Garey & Johnson, problem SR2), so there are heuristics; ``smallest.py`` searches further.
"""

import heapq
from collections.abc import Callable, Sequence

import numpy as np

from mlsys.deadline import Deadline
from mlsys.frozen import FrozenDict
from mlsys.planner.memory.liveness import live_bytes


def place_in_order(
    order: Sequence[int],
    sizes: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    *,
    lowest: bool = False,
    deadline: Deadline | None = None,
) -> np.ndarray:
    """Return offsets when buffers are placed one by one, each into the smallest gap that holds it.

    Parameters
    ----------
    order
        Indices of the buffers, in the order of placement.
    sizes
        Bytes of each buffer, shape (buffers,).
    first, last
        Steps between which each is in use, both included, shape (buffers,).
    lowest
        Whether to use the lowest gap that holds it instead of the smallest.
    deadline
        Time limit.

    Returns
    -------
    numpy.ndarray
        Offsets in bytes, shape (buffers,).

    Raises
    ------
    TimeIsUpError
        If the time limit expires.

    Examples
    --------
    >>> sizes, first, last = np.array([4, 2, 4]), np.array([0, 1, 2]), np.array([1, 2, 3])
    >>> place_in_order([0, 1, 2], sizes, first, last).tolist()
    [0, 4, 0]
    """
    offsets = np.zeros(len(sizes), np.int64)
    placed = np.zeros(len(sizes), bool)
    for item in order:
        if deadline is not None:
            deadline.check()
        size = sizes[item]
        if size:
            near = np.flatnonzero(placed & (first <= last[item]) & (first[item] <= last))
            near = near[np.argsort(offsets[near], kind="stable")]
            tops = np.maximum.accumulate(np.concatenate(([0], offsets[near] + sizes[near])))
            gaps = offsets[near] - tops[:-1]
            fitting = np.flatnonzero(gaps >= size)
            if fitting.size:
                offsets[item] = tops[fitting[0] if lowest else fitting[np.argmin(gaps[fitting])]]
            else:
                offsets[item] = tops[-1]
            placed[item] = True
    return offsets


def peak_of(offsets: np.ndarray, sizes: np.ndarray) -> int:
    """Return the size of the block that holds all buffers, bytes."""
    return int(np.max(offsets + sizes, initial=0))


def equal_offsets(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return optimal offsets of buffers of one byte each: the block is as large as the peak of live buffers.

    Each takes the lowest free place when it begins, as in interval-graph colouring.

    Examples
    --------
    >>> equal_offsets(np.array([0, 0, 2]), np.array([1, 3, 3])).tolist()
    [0, 1, 0]
    """
    offsets = np.zeros(len(first), np.int64)
    free: list[int] = []
    alive: list[tuple[int, int]] = []
    used = 0
    for item in np.argsort(first, kind="stable").tolist():
        while alive and alive[0][0] < first[item]:
            heapq.heappush(free, heapq.heappop(alive)[1])
        if free:
            place = heapq.heappop(free)
        else:
            place, used = used, used + 1
        offsets[item] = place
        heapq.heappush(alive, (int(last[item]), place))
    return offsets


def _by_size(sizes: np.ndarray, first: np.ndarray, last: np.ndarray, deadline: Deadline | None = None) -> np.ndarray:
    return place_in_order(np.lexsort((first, -sizes)).tolist(), sizes, first, last, deadline=deadline)


def _by_breadth(sizes: np.ndarray, first: np.ndarray, last: np.ndarray, deadline: Deadline | None = None) -> np.ndarray:
    breadth = live_bytes(sizes.tolist(), first.tolist(), last.tolist(), int(last.max(initial=0)) + 1)
    by_size = np.lexsort((first, -sizes))
    order: dict[int, None] = {}
    for step in np.argsort(-breadth, kind="stable"):
        if deadline is not None:
            deadline.check()
        order.update(dict.fromkeys(by_size[(first[by_size] <= step) & (step <= last[by_size])].tolist()))
    return place_in_order(list(order), sizes, first, last, deadline=deadline)


def _by_lifetime(
    sizes: np.ndarray, first: np.ndarray, last: np.ndarray, deadline: Deadline | None = None
) -> np.ndarray:
    return place_in_order(np.lexsort((first, -sizes, first - last)).tolist(), sizes, first, last, deadline=deadline)


def _first_come(sizes: np.ndarray, first: np.ndarray, last: np.ndarray, deadline: Deadline | None = None) -> np.ndarray:
    return place_in_order(np.lexsort((-sizes, first)).tolist(), sizes, first, last, deadline=deadline)


STRATEGIES: FrozenDict[str, Callable[..., np.ndarray]] = FrozenDict(
    {"size": _by_size, "breadth": _by_breadth, "lifetime": _by_lifetime, "first-come": _first_come}
)
"""Rules that place one buffer after the other into the smallest gap that holds it: the largest first; by the
operator at which most is alive; the longest-lived first; in the order of running, as an allocator does that
cannot see ahead. The first two are the greedy ones of Pisarchyk & Lee 2020 (arXiv:2001.03288)."""
