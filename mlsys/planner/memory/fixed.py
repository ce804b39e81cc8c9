"""Placement of buffers with given lifetimes within a given capacity: offsets, or a proof that none exist."""

from __future__ import annotations

import bisect
import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlsys.deadline import Deadline
from mlsys.errors import ArgumentError, ScenarioFileError, UnreadableError
from mlsys.inputs import csv_records
from mlsys.planner.memory.offsets import peak_of
from mlsys.planner.memory.sections import FOUND, NONE, STOPPED, Sections

_FIRST_STATES = 20_000
_TURNS = 6
_MOST = 2**53
_EXACT = 2**62  # limit of a 64-bit sum


@dataclass(frozen=True, eq=False)
class FixedBuffers:
    """Buffers by size and lifetime.

    Attributes
    ----------
    ids
        Names, in the order of the file.
    lower, upper
        First step in which each is in use, and first step after that, shape (buffers,).
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
            If the file is unreadable or invalid; every error is reported with its line.
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
                faults.append(f"{path}:{line}: expected {len(heads)} cells, got {len(row)}")
                continue
            cells = dict(zip(heads, (cell.strip() for cell in row), strict=True))
            columns = [_whole(cells[name]) for name in wanted[1:]]
            faults += [
                f"{path}:{line}: {name}: must be a whole number from 0 to 2^53, got {cells[name]!r}"
                for name, value in zip(wanted[1:], columns, strict=True)
                if value is None
            ]
            if cells["id"] in ids:
                faults.append(f"{path}:{line}: id: duplicate buffer {cells['id']!r}, first on line {ids[cells['id']]}")
            ids.setdefault(cells["id"], line)
            whole = [value for value in columns if value is not None]
            if len(whole) == 3:
                if whole[1] <= whole[0]:
                    faults.append(f"{path}:{line}: upper: must be greater than lower ({whole[0]}), got {whole[1]}")
                if whole[2] == 0:
                    faults.append(f"{path}:{line}: size: must be at least 1 byte, got 0")
                numbers.append(whole)
        if not numbers and not faults:
            faults.append(f"{path}: there are no buffers after the first line")
        if faults:
            raise ScenarioFileError("\n".join(faults))
        table = np.array(numbers, np.int64)
        return cls(tuple(ids), table[:, 0], table[:, 1], table[:, 2])

    @property
    def largest_live(self) -> int:
        """Bytes live at the peak step: a lower bound of the block."""
        times = np.unique(np.concatenate((self.lower, self.upper)))
        change = np.zeros(len(times), object if int(self.size.max(initial=0)) * len(self.size) > _EXACT else np.int64)
        np.add.at(change, np.searchsorted(times, self.lower), self.size)
        np.subtract.at(change, np.searchsorted(times, self.upper), self.size)
        return int(np.cumsum(change).max())

    def overlapping(self, offsets: np.ndarray) -> tuple[int, int] | None:
        """Return two buffers that are live together and share an address, or None.

        Live buffers are kept in order of their addresses: a new one can only overlap its neighbours.
        """
        begins, ends = np.argsort(self.lower, kind="stable").tolist(), np.argsort(self.upper, kind="stable").tolist()
        alive: list[tuple[int, int]] = []
        gone = 0
        for item in begins:
            while self.upper[ends[gone]] <= self.lower[item]:
                old = ends[gone]
                alive.pop(bisect.bisect_left(alive, (int(offsets[old]), old)))
                gone += 1
            entry = int(offsets[item]), item
            place = bisect.bisect_left(alive, entry)
            for other in alive[max(place - 1, 0) : place + 1]:
                low, high = min(other, entry), max(other, entry)
                if low[0] + int(self.size[low[1]]) > high[0]:
                    return other[1], item
            alive.insert(place, entry)
        return None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 17 and int(text) <= _MOST else None


@dataclass(frozen=True, eq=False)
class CapacityPlan:
    """Result of placing buffers within a capacity.

    Attributes
    ----------
    buffers, capacity
        The problem.
    offsets
        Offset of each buffer, shape (buffers,); None if none were found.
    proved
        Whether the answer is final: offsets were found, or it is proved that none exist.
    states
        Partial packings visited by the deciding attempt and those before it.
    smallest
        Bytes of the smallest block found by a heuristic; None if the time was too short.
    """

    buffers: FixedBuffers
    capacity: int
    offsets: np.ndarray | None
    proved: bool
    states: int
    smallest: int | None = None

    @property
    def fits(self) -> bool:
        """Whether all buffers were placed."""
        return self.offsets is not None


def plan_below(
    buffers: FixedBuffers, capacity: int, *, seconds: float = 55.0, seed: int = 0, threads: int = 2,
    progress: Callable[[int], object] = lambda states: None,
) -> CapacityPlan:  # fmt: skip
    """Return offsets within a capacity, or a proof that none exist, or neither if the time limit expires.

    Heuristics come first. Then every attempt is a complete search with another preference of buffers (long-lived,
    large, or live at the peak; later randomised), stopped after a growing number of states. An attempt that completes
    without offsets is a proof.

    Parameters
    ----------
    buffers
        Sizes and lifetimes.
    capacity
        Capacity of the block, bytes.
    seconds
        Time limit, s. The first search on a machine is compiled first, which takes some seconds; if that uses up the
        time, 3 s of search follow.
    seed
        Random seed.
    threads
        Number of parallel attempts. Of several deciding attempts the first in number counts, so that the offsets depend
        on the seed and the number of threads, but not on which finished first.
    progress
        Called after each round of attempts with the number of partial packings visited.

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
    deadline = Deadline(seconds)
    if buffers.largest_live > capacity:
        return CapacityPlan(buffers, capacity, None, True, 0)
    sections = Sections(buffers.lower, buffers.upper, buffers.size, capacity)
    offsets = sections.by_rules(deadline)
    smallest = None if offsets is None else int(peak_of(offsets, buffers.size))
    if offsets is not None and smallest is not None and smallest <= capacity:
        return _checked(buffers, capacity, offsets, 0)
    if deadline.passed:
        return CapacityPlan(buffers, capacity, None, False, 0, smallest)
    outcome, fitting, states = _search(sections, deadline.end, seed, threads, progress)
    if outcome == FOUND:
        return _checked(buffers, capacity, fitting, states)
    return CapacityPlan(buffers, capacity, None, outcome == NONE, states, smallest)


def _checked(buffers: FixedBuffers, capacity: int, offsets: np.ndarray, states: int) -> CapacityPlan:
    """Return the plan after checking every pair of buffers."""
    if buffers.overlapping(offsets) or offsets.min() < 0 or int((offsets + buffers.size).max()) > capacity:
        raise AssertionError("the search for offsets returned an overlap: this is an error in mlsys")
    return CapacityPlan(buffers, capacity, offsets, True, states)


def _search(
    sections: Sections, until: float, seed: int, threads: int, progress: Callable[[int], object]
) -> tuple[int, np.ndarray, int]:
    """Run attempts in parallel, round by round; return the first final result and the number of states."""
    spent = 0
    allowed = _FIRST_STATES
    with ThreadPoolExecutor(threads) as executor:
        for begin in itertools.count(0, threads):
            stops = [np.zeros(1, np.int64) for _ in range(threads)]
            jobs = [
                executor.submit(sections.attempt, begin + worker, allowed, seed, worker, stops[worker])
                for worker in range(threads)
            ]
            for worker, job in enumerate(jobs):
                wait([job], max(0.0, until - time.monotonic()))
                if not job.done() or job.result()[0] != STOPPED:  # time is up, or decided: later attempts may stop
                    for stop in stops[worker:]:
                        stop[0] = 1
            answers = [job.result() for job in jobs]
            for outcome, looked, offsets in answers:
                spent += looked
                if outcome != STOPPED:
                    return outcome, offsets, spent
            progress(spent)
            if time.monotonic() > until:
                return STOPPED, answers[0][2], spent
            if begin // _TURNS != (begin + threads) // _TURNS:
                allowed = allowed * 3 // 2
    raise AssertionError("unreachable")
