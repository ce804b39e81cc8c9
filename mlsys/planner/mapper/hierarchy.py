"""Exact search over tiles and loop orders of several memory levels, each shared by all operands.

Every level holds one tile of each operand. At each level one operand can be stationary while the others change: its
irrelevant loops go innermost (fewer inner loops would leave more loops outside and move no less). That gives three
kinds of order per level; the order of the remaining loops does not matter. For each kind, pairs of chains of the first
two sides are bounded from below by the space that they leave to the third, and only pairs whose bound beats the best
mapping so far are combined with every chain of the third side.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from mlsys.frozen import FrozenDict
from mlsys.mapping.iteration import Axis, IterationSpace
from mlsys.mapping.loopnest import LoopNest, TileLevel
from mlsys.models.dataflow.counts import movements
from mlsys.planner.mapper.chains import Numbers, sides
from mlsys.planner.mapper.two_level import smallest_tiles

Objective = Callable[[Sequence[Any]], Any]
_BLOCK = 400_000
_BATCH = 500_000
_ROW, _SUM, _COLUMN = 0, 1, 2  # sides: irrelevant to the second input, the output, the first input


@dataclass
class Best:
    """The best mapping so far, and statistics of the search."""

    value: float = math.inf
    words: tuple[int, ...] = ()
    nest: LoopNest | None = None
    bounded: int = 0
    tried: int = 0
    covered: int = 0
    proven: bool = False
    least: float = -math.inf  # lower bound of every mapping's value
    history: list[float] = field(default_factory=list)


class _Tables:
    """Precomputed tables of a space and its capacities for the bounds."""

    def __init__(self, space: IterationSpace, capacities: Sequence[int]) -> None:
        self.space, self.capacities, self.levels = space, capacities, len(capacities)
        self.groups = space.sizes.get("g", 1)
        self.side = sides(space, self.levels)
        whole = {dim: size for dim, size in space.sizes.items() if dim != "g"} | {"g": 1}
        self.weight, self.output = space.inputs[1].words(whole), space.output.words(whole)

    def first_input(self, level: int, rows: Numbers, sums: Numbers) -> tuple[Numbers, Numbers]:
        """Return footprint and words of one sweep of the first input, rows × sums."""
        footprint = sweep = np.ones((1, 1), dtype=np.int64)
        for axis in self.space.inputs[0].axes:
            if axis.dims == ("g",):
                continue
            tiles = [self._tile(dim, level, rows, sums) for dim in axis.dims]
            footprint = footprint * _extent(axis, *tiles)
            sweep = sweep * self._sweep(axis, *tiles)
        return footprint, sweep

    def _tile(self, dim: str, level: int, rows: Numbers, sums: Numbers) -> Numbers:
        is_row = dim in self.side[_ROW].tiles
        tiles: Numbers = self.side[_ROW if is_row else _SUM].tiles[dim][rows if is_row else sums, level]
        return tiles[:, None] if is_row else tiles[None, :]

    def _sweep(self, axis: Axis, *tiles: Numbers) -> Numbers:
        sizes = [self.space.sizes[dim] for dim in axis.dims]
        if len(tiles) == 1:
            return np.full((1, 1), sizes[0])
        (outer, window), total = tiles, np.zeros((1, 1), dtype=np.int64)
        for a, many in ((outer, sizes[0] // outer), (sizes[0] % outer, sizes[0] % outer > 0)):
            for b, often in ((window, sizes[1] // window), (sizes[1] % window, sizes[1] % window > 0)):
                total = total + _extent(axis, a, b) * many * often
        return total


def _extent(axis: Axis, first: Numbers, window: Numbers | None = None) -> Numbers:
    if window is None:
        return first
    return (first - 1) * np.minimum(axis.stride, window) + window


def _again(lacks: int, level: int, kinds: Sequence[int], trips: Sequence[Any], still: Sequence[Any]) -> Any:
    """Return how often the operand without one side is moved completely into a level.

    ``kinds`` names, for each level, the side whose loops are innermost there; ``trips[side][level]``
    counts tiles, ``still[side][level]`` says that no loop of the side steps.
    """
    value, through = trips[lacks][level + 1], True
    for index in range(level, -1, -1):
        others = True
        for side in range(3):
            if side != lacks:
                others = others & still[side][index]
        if kinds[index] == lacks:
            value = np.where(through, trips[lacks][index], value)
            through = through & others
        else:
            through = through & others & still[lacks][index]
    return value


def _words(tables: _Tables, kinds: Sequence[int], trips: Sequence[Any], still: Sequence[Any], sweeps: Any) -> list[Any]:
    per_level = []
    for level in range(tables.levels):
        inward, outward, across = (_again(side, level, kinds, trips, still) for side in (_ROW, _SUM, _COLUMN))
        words = tables.weight * inward + tables.output * (2 * outward - 1) + sweeps[level] * across
        per_level.append(words * tables.groups)
    return per_level


def search(
    space: IterationSpace,
    capacities: Sequence[int],
    memories: Sequence[str],
    objective: Objective,
    progress: Callable[[Best, float], None] | None = None,
    seconds: float | None = None,
) -> Best:
    """Return the mapping with the smallest objective, with a proof unless the search was stopped.

    Parameters
    ----------
    space
        The loops of an operator.
    capacities, memories
        Capacities in words, and names of the inner memories, outermost first.
    objective
        Function of the words into each memory; must not decrease when words increase.
    progress
        Called with the best so far and the fraction of the search that is done.
    seconds
        Time limit, after which the best found is returned with ``proven=False``.

    Notes
    -----
    ``KeyboardInterrupt`` stops the search in the same way.
    """
    end = math.inf if seconds is None else monotonic() + seconds
    finder = _Finder(_Tables(space, capacities), memories, objective, progress, end)
    try:
        finder.best.proven = finder.run() and finder.complete
    except KeyboardInterrupt:
        finder.best.proven = False
    return finder.exact_best()


class _Finder:
    def __init__(
        self, tables: _Tables, memories: Sequence[str], objective: Objective,
        progress: Callable[[Best, float], None] | None, end: float,
    ) -> None:  # fmt: skip
        self.tables, self.memories, self.objective, self.progress = tables, memories, objective, progress
        self.end = end
        self.best = Best()
        self.complete = all(side.complete for side in tables.side)
        self.column_bounds = np.zeros(0)
        levels = range(tables.levels)
        self.trips = [[side.trips[:, level] for level in range(tables.levels + 1)] for side in tables.side]
        self.still = [[side.still[:, level] for level in levels] for side in tables.side]
        space = tables.space
        chains = (_aligned(size, tables.levels) for size in space.sizes.values())
        covered = math.prod(chains) if self.complete else math.prod(len(side) for side in tables.side)
        self.best.covered = math.factorial(len(space.sizes)) ** tables.levels * covered

    def run(self) -> bool:
        """Search every kind of order, most promising first; return whether the search was completed."""
        jobs = []
        for kinds in itertools.product(range(3), repeat=self.tables.levels):
            bounds = self._alone(kinds, _ROW)
            order = np.argsort(bounds, kind="stable")
            order = order[np.isfinite(bounds[order])]
            if len(order):
                jobs.append((float(bounds[order[0]]), kinds, order, bounds))
        jobs.sort(key=lambda job: job[0])
        for done, (_, kinds, order, bounds) in enumerate(jobs):
            sums, self.column_bounds = self._alone(kinds, _SUM), self._alone(kinds, _COLUMN)
            kept = np.flatnonzero(sums < self.best.value)
            kept = kept[np.argsort(sums[kept], kind="stable")]
            start, size = 0, max(1, min(16, _BLOCK // max(len(kept), 1)))
            while start < len(order) and len(kept) and bounds[order[start]] < self.best.value:
                rows = order[start : start + size]
                through = self._block(kinds, rows[bounds[rows] < self.best.value], kept)
                if not through or monotonic() > self.end:
                    self._stopped(bounds[order[start:]], [job[0] for job in jobs[done + 1 :]])
                    return False
                kept = kept[sums[kept] < self.best.value]
                start, size = start + size, max(1, _BLOCK // max(len(kept), 1))
                if self.progress:
                    self.progress(self.best, (done + start / len(order)) / len(jobs))
        return True

    def exact_best(self) -> Best:
        """Return the best mapping with exact words: words that the objective ignores were only bounded."""
        best, space = self.best, self.tables.space
        if best.nest is None:
            ones = FrozenDict(dict.fromkeys(space.sizes, 1))
            best.nest = LoopNest(tuple(TileLevel(memory, ones, tuple(space.sizes)) for memory in self.memories))
        moved = movements(space, best.nest)
        levels = range(1, self.tables.levels + 1)
        best.words = tuple(sum(item.words for item in moved if item.level == level) for level in levels)
        best.value = float(self.objective(best.words))
        if best.proven:
            best.least = best.value
        return best

    def _stopped(self, rows: Numbers, others: list[float]) -> None:
        """Record the lower bound of a stopped search: unvisited mappings are no better than their bounds."""
        if self.complete:
            self.best.least = min(self.best.value, float(rows.min(initial=np.inf)), *others)

    def _alone(self, kinds: Sequence[int], known: int) -> Numbers:
        """Return the least objective of each chain of one side, for any chains of the other two."""
        tables, side = self.tables, self.tables.side[known]
        fits = np.ones(len(side), dtype=bool)
        trips: list[list[Any]] = [[1] * (tables.levels + 1) for _ in range(3)]
        still: list[list[Any]] = [[True] * tables.levels for _ in range(3)]
        trips[known], still[known] = self.trips[known], self.still[known]
        product = all(len(axis.dims) == 1 for axis in tables.space.inputs[0].axes)
        for level, capacity in enumerate(tables.capacities):
            here = side.elements[:, level]
            fits &= 2 * here + 1 <= capacity
            room = np.maximum((capacity - here) // (here + 1), 1)
            for other in {_ROW, _SUM, _COLUMN} - {known}:
                # Windows overlap, so the first input may be smaller than its product of tiles.
                if product or _COLUMN in (known, other):
                    trips[other][level + 1] = -(-tables.side[other].size // room)
        least = tables.space.inputs[0].words({**tables.space.sizes, "g": 1})
        words = _words(tables, kinds, trips, still, [least] * tables.levels)
        return np.where(fits, self.objective(words), np.inf)

    def _block(self, kinds: Sequence[int], rows: Numbers, sums: Numbers) -> bool:
        """Bound all pairs and try the promising ones; return whether all of them were processed in time."""
        tables = self.tables
        if not len(rows):
            return True
        trips: list[list[Any]] = [
            [t[rows][:, None] for t in self.trips[_ROW]],
            [t[sums][None, :] for t in self.trips[_SUM]],
        ]
        still: list[list[Any]] = [
            [t[rows][:, None] for t in self.still[_ROW]],
            [t[sums][None, :] for t in self.still[_SUM]],
        ]
        size = tables.side[_COLUMN].size
        trips.append([1])
        still.append([True] * tables.levels)
        fits, sweeps, rooms = True, [], []
        for level, capacity in enumerate(tables.capacities):
            footprint, sweep = tables.first_input(level, rows, sums)
            edge = tables.side[_ROW].elements[rows, level][:, None] + tables.side[_SUM].elements[sums, level][None, :]
            room = (capacity - footprint) // edge
            fits = fits & (room >= 1)
            room = np.clip(room, 1, size)
            sweeps.append(sweep)
            rooms.append(room)
            trips[_COLUMN].append(-(-size // room))
        bounds = np.where(fits, self.objective(_words(tables, kinds, trips, still, sweeps)), np.inf)
        self.best.bounded += bounds.size
        flat = bounds.ravel()
        kept = np.flatnonzero(flat < self.best.value)
        kept = kept[np.argsort(flat[kept], kind="stable")]
        width = len(sums)
        sweeps = [np.broadcast_to(sweep, bounds.shape) for sweep in sweeps]
        room_for = max(1, _BATCH // len(tables.side[_COLUMN]))
        start, batch = 0, min(8, room_for)
        while start < len(kept) and flat[kept[start]] < self.best.value:
            picked = kept[start : start + batch]
            picked = picked[flat[picked] < self.best.value]
            i, j = picked // width, picked % width
            self._try(kinds, rows[i], sums[j], [s[i, j] for s in sweeps], [r[i, j] for r in rooms])
            start, batch = start + batch, room_for
            if monotonic() > self.end:
                return False
        return True

    def _try(self, kinds: Sequence[int], rows: Numbers, sums: Numbers, sweeps: list[Any], rooms: list[Any]) -> None:
        """Combine pairs of chains with every chain of the third side."""
        tables, column = self.tables, self.tables.side[_COLUMN]
        promising = self.column_bounds < self.best.value
        for level, room in enumerate(rooms):
            promising &= column.elements[:, level] <= room.max()
        columns = np.flatnonzero(promising)
        if not len(columns):
            return
        trips = [[t[rows][:, None] for t in self.trips[_ROW]], [t[sums][:, None] for t in self.trips[_SUM]]]
        still = [[t[rows][:, None] for t in self.still[_ROW]], [t[sums][:, None] for t in self.still[_SUM]]]
        trips.append([t[columns][None, :] for t in self.trips[_COLUMN]])
        still.append([t[columns][None, :] for t in self.still[_COLUMN]])
        fits: Any = True
        for level, room in enumerate(rooms):
            fits = fits & (column.elements[columns, level][None, :] <= room[:, None])
        words = _words(tables, kinds, trips, still, [s[:, None] for s in sweeps])
        values = np.where(fits, self.objective(words), np.inf)
        self.best.tried += values.size
        at = int(np.argmin(values))
        i, j = divmod(at, values.shape[1])
        if values[i, j] < self.best.value:
            self.best.value = float(values[i, j])
            self.best.words = tuple(int(np.broadcast_to(w, values.shape)[i, j]) for w in words)
            self.best.nest = self._nest(kinds, (int(rows[i]), int(sums[i]), int(columns[j])))
            self.best.history.append(self.best.value)

    def _nest(self, kinds: Sequence[int], chains: tuple[int, int, int]) -> LoopNest:
        levels = []
        for level, kind in enumerate(kinds):
            tile = {dim: 1 for dim in self.tables.space.sizes if dim == "g"}
            for side, chain in zip(self.tables.side, chains, strict=True):
                tile |= {dim: int(tiles[chain, level]) for dim, tiles in side.tiles.items()}
            around = [side for side in (_ROW, _COLUMN, _SUM) if side != kind]
            order = tuple(dim for side in (*around, kind) for dim in self.tables.side[side].dims)
            order = tuple(dim for dim in tile if dim == "g") + order
            levels.append(TileLevel(self.memories[level], FrozenDict(tile), order))
        return LoopNest(tuple(levels))


def _aligned(size: int, levels: int) -> int:
    """Return the number of chains of arbitrary tiles, each a multiple of the next."""
    if levels == 1:
        return size
    total, last = 0, 0
    for tile in smallest_tiles(size):
        trips = -(-size // tile)
        largest = size if trips == 1 else -(-size // (trips - 1)) - 1
        total += (largest - last) * _aligned(trips, levels - 1)
        last = largest
    return total
