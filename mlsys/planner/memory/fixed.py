"""Buffers of given lifetimes below a given capacity: offsets for all of them, or a proof that none fit."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlsys.errors import ArgumentError, ScenarioFileError, UnreadableError
from mlsys.inputs import csv_records

__all__ = ["CapacityPlan", "FixedBuffers", "plan_below"]

_HEURISTICS = ("TWA", "WAT", "TAW", "SWT", "AWT", "ATW")
_FIRST_NODES = 100_000
_MOST = 2**53


@dataclass(frozen=True, eq=False)
class FixedBuffers:
    """Buffers by size and lifetime.

    Attributes
    ----------
    ids
        Names, in the order of the file.
    lower, upper
        First step at which each is in use, and first one at which it no longer is, shape (buffers,).
    size
        Bytes of each, shape (buffers,).
    """

    ids: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    size: np.ndarray

    @classmethod
    def load(cls, path: str | Path) -> FixedBuffers:
        """Read a CSV file with the columns id, lower, upper (exclusive) and size, as google/minimalloc writes it.

        Raises
        ------
        ScenarioFileError
            If the file is unreadable or has faults; every fault is told with its line.
        """
        path = Path(path)
        try:
            rows = csv_records(path)
        except UnreadableError as error:
            raise ScenarioFileError(str(error)) from None
        heads = [head.strip() for head in rows[0][1]] if rows else []
        wanted = ("id", "lower", "upper", "size")
        missing = [name for name in wanted if name not in heads]
        if missing:
            raise ScenarioFileError(
                f"{path}:1: columns missing: {', '.join(missing)}. The first line must be id,lower,upper,size"
            )
        faults: list[str] = []
        ids: dict[str, int] = {}
        numbers: list[list[int]] = []
        for line, row in rows[1:]:
            if len(row) != len(heads):
                faults.append(f"{path}:{line}: wanted {len(heads)} cells, got {len(row)}")
                continue
            cells = dict(zip(heads, (cell.strip() for cell in row), strict=True))
            found = [_whole(cells[name]) for name in wanted[1:]]
            faults += [
                f"{path}:{line}: {name}: must be a whole number from 0 to 2^53, got {cells[name]!r}"
                for name, value in zip(wanted[1:], found, strict=True)
                if value is None
            ]
            if cells["id"] in ids:
                faults.append(
                    f"{path}:{line}: id: buffer {cells['id']!r} is there twice, first on line {ids[cells['id']]}"
                )
            ids.setdefault(cells["id"], line)
            whole = [value for value in found if value is not None]
            if len(whole) == 3:
                if whole[1] <= whole[0]:
                    faults.append(f"{path}:{line}: upper: must lie after lower ({whole[0]}), got {whole[1]}")
                if whole[2] == 0:
                    faults.append(f"{path}:{line}: size: must be at least 1 byte, got 0")
                numbers.append(whole)
        if not numbers and not faults:
            faults.append(f"{path}: there is no buffer under the first line")
        if faults:
            raise ScenarioFileError("\n".join(faults))
        table = np.array(numbers, np.int64)
        return cls(tuple(ids), table[:, 0], table[:, 1], table[:, 2])

    @property
    def largest_live(self) -> int:
        """Bytes in use at the fullest step: no block is smaller."""
        steps = np.unique(self.lower)
        alive = (self.lower[None] <= steps[:, None]) & (steps[:, None] < self.upper[None])
        return int((alive * self.size).sum(1).max())

    def overlapping(self, offsets: np.ndarray) -> tuple[int, int] | None:
        """Return two buffers that are alive together and share an address, or None."""
        for one in range(len(self.size)):
            both = (self.lower < self.upper[one]) & (self.lower[one] < self.upper)
            both &= (offsets < offsets[one] + self.size[one]) & (offsets[one] < offsets + self.size)
            both[one] = False
            if both.any():
                return one, int(np.argmax(both))
        return None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 17 and int(text) <= _MOST else None


@dataclass(frozen=True, eq=False)
class CapacityPlan:
    """Whether buffers fit below a capacity.

    Attributes
    ----------
    buffers, capacity
        What was asked.
    offsets
        Of each buffer, shape (buffers,); None where none were found.
    proved
        Whether that is settled: offsets were found, or it is proved that there are none.
    nodes
        Partial placements that the search looked at.
    """

    buffers: FixedBuffers
    capacity: int
    offsets: np.ndarray | None
    proved: bool
    nodes: int

    @property
    def fits(self) -> bool:
        """Whether all buffers were placed."""
        return self.offsets is not None


def plan_below(
    buffers: FixedBuffers, capacity: int, *, seconds: float = 55.0, seed: int = 0, threads: int = 2
) -> CapacityPlan:
    """Return offsets below a capacity, or a proof that there are none, or neither when the time is over.

    Every attempt is a complete search in another order of buffers (by lifetime, by area, by the fullest step
    that they live at), stopped after a number of nodes that grows; later orders are shaken by chance. An
    attempt that ends by itself without offsets is a proof.

    Parameters
    ----------
    buffers
        Sizes and lifetimes.
    capacity
        Bytes of the block.
    seconds
        Most time that is spent, s.
    seed
        Of the chances.
    threads
        Attempts at once. Which attempt finds offsets first depends on neither; the first in number counts.

    Raises
    ------
    ArgumentError
        If the capacity is not positive.

    Examples
    --------
    >>> three = FixedBuffers(("a", "b", "c"), np.array([0, 1, 2]), np.array([2, 3, 4]), np.array([4, 2, 4]))
    >>> plan_below(three, 6).offsets.tolist()
    [0, 4, 0]
    >>> plan_below(three, 5).proved, plan_below(three, 5).fits
    (True, False)
    """
    if capacity < 1:
        raise ArgumentError(
            f"plan_below(): `capacity` must be at least 1 byte, got {capacity}. Write e.g. capacity=1048576"
        )
    if buffers.largest_live > capacity:
        return CapacityPlan(buffers, capacity, None, True, 0)
    until = time.monotonic() + seconds
    problem = _Problem(buffers, capacity)
    spent = 0
    allowed = _FIRST_NODES
    with ThreadPoolExecutor(threads) as executor:
        problem.attempt(0, 1, seed)  # compiles
        for begin in itertools.count(0, threads):
            answers = list(
                executor.map(problem.attempt, range(begin, begin + threads), [allowed] * threads, [seed] * threads)
            )
            spent += sum(nodes for _, nodes, _ in answers)
            for outcome, _, offsets in answers:
                if outcome == 1:
                    return CapacityPlan(buffers, capacity, offsets, True, spent)
                if outcome == 0:
                    return CapacityPlan(buffers, capacity, None, True, spent)
            if time.monotonic() > until:
                return CapacityPlan(buffers, capacity, None, False, spent)
            if begin % 12 == 12 - threads:
                allowed = min(2 * allowed, 10 * _FIRST_NODES)
    raise AssertionError("unreachable")


class _Problem:
    """Buffers as the compiled search wants them; steps are those at which something begins or ends."""

    def __init__(self, buffers: FixedBuffers, capacity: int) -> None:
        lower, upper, self.size = buffers.lower, buffers.upper, buffers.size
        steps = np.unique(np.concatenate((lower, upper)))
        self.first, self.last = np.searchsorted(steps, lower), np.searchsorted(steps, upper)
        self.steps, self.capacity, self.number = len(steps), capacity, len(lower)
        meet = (lower[:, None] < upper) & (lower < upper[:, None])
        np.fill_diagonal(meet, False)
        self.near_starts = np.concatenate(([0], np.cumsum(meet.sum(1))))
        self.near = np.nonzero(meet)[1]
        live = np.zeros(self.steps, np.int64)
        for begin, end, size in zip(self.first, self.last, self.size, strict=True):
            live[begin:end] += size
        fullest = np.array([live[begin:end].max() for begin, end in zip(self.first, self.last, strict=True)])
        span = (upper - lower).astype(float)
        self.keys = {"W": span, "A": span * self.size, "T": fullest.astype(float), "S": self.size.astype(float)}

    def order(self, turn: int, seed: int) -> np.ndarray:
        """Return the order in which an attempt prefers buffers."""
        keys = [self.keys[letter] for letter in _HEURISTICS[turn % len(_HEURISTICS)]]
        if turn >= len(_HEURISTICS):
            chance = np.random.default_rng((seed, turn))
            strength = chance.choice((0.02, 0.1, 0.3, 0.6))
            keys = [key * np.exp(chance.normal(0, strength, self.number)) for key in keys]
        return np.lexsort([-key for key in reversed(keys)])

    def attempt(self, turn: int, allowed: int, seed: int) -> tuple[int, int, np.ndarray]:
        """Return what came of one search (1 found, 0 none exist, -1 stopped), its nodes, and the offsets."""
        from mlsys.planner.memory.packing import search_offsets

        order = self.order(turn, seed)
        rank = np.empty(self.number, np.int64)
        rank[order] = np.arange(self.number)
        offsets = np.zeros(self.number, np.int64)
        outcome, nodes = search_offsets(  # type: ignore[no-untyped-call]
            order,
            self.size,
            self.first,
            self.last,
            rank,
            self.near_starts,
            self.near,
            self.capacity,
            offsets,
            self.steps,
            allowed,
        )
        return int(outcome), int(nodes), offsets
