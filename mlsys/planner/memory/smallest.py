"""The smallest block for buffers of given lifetimes, by bisection of capacities."""

import math

import numpy as np

from mlsys.planner.memory.liveness import live_bytes
from mlsys.planner.memory.offsets import STRATEGIES, peak_of
from mlsys.planner.memory.sections import FOUND, NONE, STOPPED, Sections

_STATES = 30_000
_ATTEMPTS = 6


def smallest_offsets(sizes: np.ndarray, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return offsets of the smallest block found, and whether it is proved that none is smaller.

    Starts with the heuristics. Then the search of :func:`~mlsys.planner.memory.fixed.plan_below` is run for the lower
    bound, and for the middle of the open interval. It stops after a number of states, not by a clock, so that the
    answer is the same on every machine.

    Parameters
    ----------
    sizes
        Bytes of each buffer, shape (buffers,); empty ones take no space.
    first, last
        Steps between which each is in use, both included, shape (buffers,).

    Examples
    --------
    >>> sizes, first, last = np.array([2, 3, 2, 4, 3]), np.array([1, 2, 0, 0, 1]), np.array([1, 2, 1, 0, 2])
    >>> best = min((rule(sizes, first, last) for rule in STRATEGIES.values()), key=lambda at: peak_of(at, sizes))
    >>> peak_of(best, sizes)
    8
    >>> offsets, proved = smallest_offsets(sizes, first, last)
    >>> peak_of(offsets, sizes), proved
    (7, True)
    """
    best = min((rule(sizes, first, last) for rule in STRATEGIES.values()), key=lambda at: peak_of(at, sizes))
    unit = math.gcd(*map(int, sizes)) or 1
    most = peak_of(best, sizes) // unit
    steps = int(last.max(initial=0)) + 1
    least = int(live_bytes(sizes.tolist(), first.tolist(), last.tolist(), steps).max(initial=0)) // unit
    some = np.flatnonzero(sizes)
    low = capacity = least  # capacities below `low` are not tried again
    never = np.zeros(1, np.int64)
    while low < most:
        sections = Sections(first[some], last[some] + 1, sizes[some], capacity * unit)
        for turn in range(_ATTEMPTS):
            outcome, _, offsets = sections.attempt(turn, _STATES, 0, 0, never)
            if outcome != STOPPED:
                break
        if outcome == FOUND:
            best = np.zeros(len(sizes), np.int64)
            best[some] = offsets
            most = peak_of(best, sizes) // unit
        else:
            low = capacity + 1
            least = low if outcome == NONE else least
        capacity = (low + most) // 2
    return best, least == most
