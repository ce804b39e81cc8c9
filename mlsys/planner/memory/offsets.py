"""Where in one block of memory each buffer lies: strategies over sizes and lifetimes in plain numbers.

Two buffers may share addresses if their lifetimes do not meet. Finding the smallest block is NP-hard
(dynamic storage allocation: Garey & Johnson, problem SR2), so there are rules of thumb and, for small
cases, a solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.planner.memory.liveness import live_bytes

__all__ = ["EXACT_PAIRS", "STRATEGIES", "exact_offsets", "peak_of", "place_in_order"]

EXACT_PAIRS = 1000
"""Pairs of buffers alive together beyond which the exact strategy refuses."""


def place_in_order(
    order: Sequence[int], sizes: np.ndarray, first: np.ndarray, last: np.ndarray, *, lowest: bool = False
) -> np.ndarray:
    """Return offsets when buffers are placed one by one, each into the smallest gap that holds it.

    Parameters
    ----------
    order
        Places of the buffers, in the order in which they are placed.
    sizes
        Bytes of each buffer, shape (buffers,).
    first, last
        Steps between which each is in use, both included, shape (buffers,).
    lowest
        Take the lowest gap that holds it instead of the smallest.

    Returns
    -------
    numpy.ndarray
        Offsets in bytes, shape (buffers,).

    Examples
    --------
    >>> sizes, first, last = np.array([4, 2, 4]), np.array([0, 1, 2]), np.array([1, 2, 3])
    >>> place_in_order([0, 1, 2], sizes, first, last).tolist()
    [0, 4, 0]
    """
    offsets = np.zeros(len(sizes), np.int64)
    placed = np.zeros(len(sizes), bool)
    for one in order:
        size = sizes[one]
        if size:
            near = np.flatnonzero(placed & (first <= last[one]) & (first[one] <= last))
            near = near[np.argsort(offsets[near], kind="stable")]
            tops = np.maximum.accumulate(np.concatenate(([0], offsets[near] + sizes[near])))
            gaps = offsets[near] - tops[:-1]
            fitting = np.flatnonzero(gaps >= size)
            if fitting.size:
                offsets[one] = tops[fitting[0] if lowest else fitting[np.argmin(gaps[fitting])]]
            else:
                offsets[one] = tops[-1]
            placed[one] = True
    return offsets


def peak_of(offsets: np.ndarray, sizes: np.ndarray) -> int:
    """Return the bytes of the block that holds all buffers."""
    return int(np.max(offsets + sizes, initial=0))


def _by_size(sizes: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    return place_in_order(np.lexsort((first, -sizes)).tolist(), sizes, first, last)


def _by_breadth(sizes: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    breadth = live_bytes(sizes.tolist(), first.tolist(), last.tolist(), int(last.max(initial=0)) + 1)
    by_size = np.lexsort((first, -sizes))
    order: dict[int, None] = {}
    for step in np.argsort(-breadth, kind="stable"):
        order.update(dict.fromkeys(by_size[(first[by_size] <= step) & (step <= last[by_size])].tolist()))
    return place_in_order(list(order), sizes, first, last)


def _by_lifetime(sizes: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    return place_in_order(np.lexsort((first, -sizes, first - last)).tolist(), sizes, first, last)


def _first_come(sizes: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    return place_in_order(np.lexsort((-sizes, first)).tolist(), sizes, first, last)


def exact_offsets(
    sizes: np.ndarray, first: np.ndarray, last: np.ndarray, *, where: str = "exact_offsets", seconds: float = 60.0
) -> tuple[np.ndarray, bool]:
    """Return offsets of the smallest block, and whether it is proved to be the smallest.

    A mixed-integer program says of each two buffers that are alive together which one lies below. Its
    answer is read as that order alone; the offsets are then reckoned anew in whole numbers.

    Raises
    ------
    ArgumentError
        If more than ``EXACT_PAIRS`` pairs are alive together.
    """
    rules = [rule(sizes, first, last) for rule in STRATEGIES.values()]
    best = min(rules, key=lambda offsets: peak_of(offsets, sizes))
    most = peak_of(best, sizes)
    steps = int(last.max(initial=0)) + 1
    least = int(live_bytes(sizes.tolist(), first.tolist(), last.tolist(), steps).max(initial=0))
    if most == least:
        return best, True
    below, above = np.nonzero(np.triu((first[:, None] <= last) & (first <= last[:, None]), 1))
    kept = (sizes[below] > 0) & (sizes[above] > 0)
    below, above = below[kept], above[kept]
    if len(below) > EXACT_PAIRS:
        raise ArgumentError(
            f"{where}(): `strategy` 'exact' is for small networks: {len(below):,} pairs of buffers are alive "
            f"together, more than {EXACT_PAIRS}. Write e.g. strategy='best'"
        )
    unit = math.gcd(*map(int, sizes))
    ordered, bound = _solve(sizes // unit, below, above, least // unit, most // unit, seconds)
    if ordered is None:
        return best, False
    offsets = place_in_order(ordered.tolist(), sizes, first, last, lowest=True)
    if peak_of(offsets, sizes) > most:
        offsets = best
    return offsets, peak_of(offsets, sizes) <= unit * math.ceil(bound - 1e-3)


def _solve(
    sizes: np.ndarray, below: np.ndarray, above: np.ndarray, least: int, most: int, seconds: float
) -> tuple[np.ndarray | None, float]:
    """Return the buffers by offset in the best packing found, and a bound that no packing beats."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    number, pairs = len(sizes), len(below)
    rows = np.arange(pairs)
    columns = number + 1 + pairs  # offsets, the peak, one choice for each pair
    choice = number + 1 + rows
    ones, many = np.ones(pairs), np.full(pairs, float(most))
    apart = coo_array(  # offset_i + size_i <= offset_j + most (1 - choice), and the other way round
        (
            np.concatenate((ones, -ones, many, -ones, ones, -many)),
            (
                np.concatenate((rows, rows, rows, rows + pairs, rows + pairs, rows + pairs)),
                np.concatenate((below, above, choice, below, above, choice)),
            ),
        ),
        shape=(2 * pairs, columns),
    )
    limit = np.concatenate((most - sizes[below], -sizes[above])).astype(float)
    every = np.arange(number)
    under = coo_array(
        (
            np.concatenate((np.ones(number), -np.ones(number))),
            (np.tile(every, 2), np.r_[every, np.full(number, number)]),
        ),
        shape=(number, columns),
    )
    cost = np.zeros(columns)
    cost[number] = 1
    found = milp(
        cost,
        integrality=np.r_[np.zeros(number + 1), np.ones(pairs)],
        bounds=Bounds(
            np.r_[np.zeros(number), least, np.zeros(pairs)], np.r_[(most - sizes).astype(float), most, np.ones(pairs)]
        ),
        constraints=[LinearConstraint(apart, -np.inf, limit), LinearConstraint(under, -np.inf, -sizes.astype(float))],
        options={"time_limit": seconds, "mip_rel_gap": 0},
    )
    bound = max(float(least), float(found.mip_dual_bound or least))
    return (None if found.x is None else np.argsort(found.x[:number], kind="stable")), bound


STRATEGIES: FrozenDict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = FrozenDict(
    {"size": _by_size, "breadth": _by_breadth, "lifetime": _by_lifetime, "first-come": _first_come}
)
"""Rules that place one buffer after the other into the smallest gap that holds it: the largest first; by the
operator at which most is alive; the longest-lived first; in the order of running, as an allocator does that
cannot see ahead. The first two are the greedy ones of Pisarchyk & Lee 2020 (arXiv:2001.03288)."""
