"""Conversion of buffers for the compiled search: steps with maximal live sets, sizes in their common unit."""

import contextlib

import numpy as np

from mlsys.deadline import Deadline, TimeIsUpError
from mlsys.planner.memory.offsets import STRATEGIES, equal_offsets, peak_of

FOUND, NONE, STOPPED = 1, 0, -1
"""Result of a search: offsets, a proof that there are none, or neither."""

_PREFERENCES = ("WAT", "AWT", "SWT", "TWA", "NAT", "BWT")
_SHAKEN = (0.02, 0.1, 0.3, 0.6)
_REMEMBERED = 20


class Sections:
    """Buffers ordered by the first step of their lives, with dominated steps removed.

    A step is dominated if all buffers live there are also live at another step: buffers that do not overlap at the
    other step overlap at neither.

    Parameters
    ----------
    lower, upper
        First step, and step after the last one, of each buffer, shape (buffers,).
    size
        Bytes, shape (buffers,).
    capacity
        Bytes of the block.

    Attributes
    ----------
    first, last, size, start, capacity
        As for :func:`~mlsys.planner.memory.packing.search_offsets`.
    """

    def __init__(self, lower: np.ndarray, upper: np.ndarray, size: np.ndarray, capacity: int) -> None:
        times = np.unique(np.concatenate((lower, upper)))
        kept = (
            np.isin(times, lower)[:-1] & np.isin(times, upper)[1:]
        )  # some buffer begins, and some buffer ends after it
        before = np.concatenate(([0], np.cumsum(kept)))
        first, last = before[np.searchsorted(times, lower)], before[np.searchsorted(times, upper)]
        self._order = np.lexsort((last, first))
        self.first, self.last = first[self._order], last[self._order]
        self._unit = int(np.gcd.reduce(size))
        self.size = size[self._order] // self._unit
        self.capacity = capacity // self._unit
        self.start = np.searchsorted(self.first, np.arange(before[-1] + 1))
        change = np.zeros(before[-1] + 1, np.int64)
        np.add.at(change, self.first, self.size)
        np.add.at(change, self.last, -self.size)
        live = np.cumsum(change)
        fullest = _range_maxima(live, self.first, self.last)
        span = (upper - lower)[self._order].astype(float)
        steps = (self.last - self.first).astype(float)
        self._keys = {
            "W": span, "A": span * self.size, "T": fullest.astype(float), "S": self.size.astype(float),
            "N": steps, "B": steps * self.size,
        }  # fmt: skip
        self._failed: dict[int, np.ndarray] = {}

    def by_rules(self, deadline: Deadline) -> np.ndarray | None:
        """Return the offsets of the best heuristic, bytes, in the order of the input.

        Heuristics that do not finish before the deadline are skipped; None if none does.
        """
        if (self.size == 1).all():
            return self._in_bytes(equal_offsets(self.first, self.last - 1))
        plans = []
        with contextlib.suppress(TimeIsUpError):
            for rule in STRATEGIES.values():
                plans.append(rule(self.size, self.first, self.last - 1, deadline))
        if not plans:
            return None
        return self._in_bytes(min(plans, key=lambda offsets: peak_of(offsets, self.size)))

    def _in_bytes(self, units: np.ndarray) -> np.ndarray:
        offsets = np.empty(len(units), np.int64)
        offsets[self._order] = units * self._unit
        return offsets

    def rank(self, turn: int, seed: int) -> np.ndarray:
        """Return the preference order of buffers in an attempt: by lifetime, area, peak step or size."""
        keys = [self._keys[letter] for letter in _PREFERENCES[turn % len(_PREFERENCES)]]
        if turn >= len(_PREFERENCES):
            chance = np.random.default_rng((seed, turn))
            strength = chance.choice(_SHAKEN)
            keys = [key * np.exp(chance.normal(0, strength, len(key))) for key in keys]
        rank = np.empty(len(self.size), np.int64)
        rank[np.lexsort([-key for key in reversed(keys)])] = np.arange(len(rank))
        return rank

    def attempt(self, turn: int, allowed: int, seed: int, worker: int, stop: np.ndarray) -> tuple[int, int, np.ndarray]:
        """Search once; successive attempts of one worker share their failed states.

        Parameters
        ----------
        turn
            Index of the attempt.
        allowed
            Number of states after which it stops.
        seed
            Random seed.
        worker
            Index of the parallel worker.
        stop
            Stops when the only entry is not 0.

        Returns
        -------
        tuple
            Result, number of states visited, and the offsets in bytes in the order of the input.
        """
        from mlsys.planner.memory.packing import search_offsets

        if worker not in self._failed:
            self._failed[worker] = np.zeros(1 << min(_REMEMBERED, 8 + 2 * len(self.size).bit_length()), np.uint64)
        offsets = np.zeros(len(self.size), np.int64)
        outcome, looked = search_offsets(
            self.first, self.last, self.size, self.start, self.rank(turn, seed), self.capacity,
            self._failed[worker], offsets, allowed, stop,
        )  # fmt: skip
        return int(outcome), int(looked), self._in_bytes(offsets)


def _range_maxima(values: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the maximum of each range, end excluded, from maxima of ranges of 1, 2, 4, … values."""
    tables = [values]
    while 2 ** len(tables) <= len(values):
        half = 2 ** (len(tables) - 1)
        tables.append(np.maximum(tables[-1][:-half], tables[-1][half:]))
    level = np.frexp((end - begin).astype(float))[1] - 1
    found = np.empty(len(begin), values.dtype)
    for power in np.unique(level):
        of = np.flatnonzero(level == power)
        found[of] = np.maximum(tables[power][begin[of]], tables[power][end[of] - 2**power])
    return found
