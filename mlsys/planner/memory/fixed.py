"""Buffers of given lifetimes below a given capacity: offsets for all of them, or a proof that none fit."""

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
_EXACT = 2**62  # more than that a sum of 64 bits may not be


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
            columns = [_whole(cells[name]) for name in wanted[1:]]
            faults += [
                f"{path}:{line}: {name}: must be a whole number from 0 to 2^53, got {cells[name]!r}"
                for name, value in zip(wanted[1:], columns, strict=True)
                if value is None
            ]
            if cells["id"] in ids:
                faults.append(
                    f"{path}:{line}: id: buffer {cells['id']!r} is there twice, first on line {ids[cells['id']]}"
                )
            ids.setdefault(cells["id"], line)
            whole = [value for value in columns if value is not None]
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
        times = np.unique(np.concatenate((self.lower, self.upper)))
        change = np.zeros(len(times), object if int(self.size.max(initial=0)) * len(self.size) > _EXACT else np.int64)
        np.add.at(change, np.searchsorted(times, self.lower), self.size)
        np.subtract.at(change, np.searchsorted(times, self.upper), self.size)
        return int(np.cumsum(change).max())

    def overlapping(self, offsets: np.ndarray) -> tuple[int, int] | None:
        """Return two buffers that are alive together and share an address, or None.

        Those alive are kept in the order of their addresses: a new one can only share one with its neighbours.
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
    """Whether buffers fit below a capacity.

    Attributes
    ----------
    buffers, capacity
        What was asked.
    offsets
        Of each buffer, shape (buffers,); None where none were found.
    proved
        Whether that is settled: offsets were found, or it is proved that there are none.
    states
        Partial packings looked at by the attempt that settled it, and by those before it.
    smallest
        Bytes of the smallest block into which a rule of thumb put all buffers; None where the time was too short.
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
    """Return offsets below a capacity, or a proof that there are none, or neither when the time is over.

    First come the rules of thumb. Then every attempt is a complete search that prefers other buffers (long-lived
    ones, large ones, those of the fullest steps; later shaken by chance), stopped after a number of states that
    grows. An attempt that ends by itself without offsets is a proof.

    Parameters
    ----------
    buffers
        Sizes and lifetimes.
    capacity
        Bytes of the block.
    seconds
        Most time that is spent, s. The first search on a machine is compiled meanwhile, for some seconds; should that
        take all of the time, 3 s of search follow.
    seed
        Of the chances.
    threads
        Attempts at once. Of those that settle it the first in number counts, so that the offsets depend on the
        seed and the threads but not on which was faster.
    progress
        Called after each round of attempts with the partial packings looked at so far.

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
    """Return the plan after a look at every pair of buffers."""
    if buffers.overlapping(offsets) or offsets.min() < 0 or int((offsets + buffers.size).max()) > capacity:
        raise AssertionError("the search for offsets returned an overlap: this is a fault of mlsys")
    return CapacityPlan(buffers, capacity, offsets, True, states)


def _search(
    sections: Sections, until: float, seed: int, threads: int, progress: Callable[[int], object]
) -> tuple[int, np.ndarray, int]:
    """Run attempts side by side, round by round; return what came of the first that settles it, and all states."""
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
                if not job.done() or job.result()[0] != STOPPED:  # too late, or settled: the later ones need not go on
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
