"""Analytical counts of the words that a loop nest moves.

A tile is loaded where the code of the nest would load it: outside all trailing loops that do
not change it. Loops of one step are ignored. Edge tiles count with their true size.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mlsys.mapping.iteration import Axis, IterationSpace, Operand
from mlsys.mapping.loopnest import LoopNest
from mlsys.provenance import traced


@dataclass(frozen=True)
class Movement:
    """Words of one operand moved between a memory and the next outer memory that keeps it.

    Attributes
    ----------
    operand, memory, source
        The operand, the memory, and the outer memory.
    level
        Position of the memory in the nest, 1 next to main memory.
    reads
        Words read from the source; a word multicast to several instances is read once.
    fills
        Words written into all instances of the memory.
    drains
        Words read from all instances, towards the source.
    writes
        Words written to the source, after partial sums of several instances are reduced.
    """

    operand: str
    memory: str
    source: str
    level: int
    reads: int
    fills: int
    drains: int
    writes: int

    @property
    def words(self) -> int:
        """Words that cross the boundary of the source, in both directions."""
        return self.reads + self.writes

    @property
    def multicast(self) -> float:
        """Average number of instances that receive a word read."""
        return self.fills / self.reads if self.reads else 1.0


@traced
def movements(space: IterationSpace, nest: LoopNest) -> tuple[Movement, ...]:
    """Return the data movement of every operand at every level that keeps it.

    Parameters
    ----------
    space
        Iteration space of an operator.
    nest
        Tiling, order and unrolling of its loops.

    Raises
    ------
    ArgumentError
        If the nest does not match the space; see :meth:`LoopNest.resolved`.

    Examples
    --------
    >>> from mlsys.mapping import dataflow, gemm_space
    >>> [moved.words for moved in movements(gemm_space(32, 256, 512), dataflow("ws", 32))]
    [131072, 131072, 253952]
    """
    counter = _Counter(space, nest.resolved(space))
    counts = []
    for number, level in enumerate(counter.nest.levels, start=1):
        for name in level.keeps:
            operand = space.operand(name)
            around, source = counter.source(number, name)
            drained = counter.words(operand, number, around, each_instance=True)
            written = counter.words(operand, number, around, each_instance=False)
            if operand is space.output:
                back = written - counter.words(operand, number, around, each_instance=False, first=True)
                counts.append(Movement(name, level.memory, source, number, back, back, drained, written))
            else:
                counts.append(Movement(name, level.memory, source, number, written, drained, 0, 0))
    return tuple(counts)


@dataclass(frozen=True)
class _Counter:
    space: IterationSpace
    nest: LoopNest

    def source(self, number: int, operand: str) -> tuple[int, str]:
        """Return number and name of the nearest outer memory that keeps the operand; 0 is main memory."""
        for around in range(number - 1, 0, -1):
            if operand in self.nest.levels[around - 1].keeps:
                return around, self.nest.levels[around - 1].memory
        return 0, "main"

    def step(self, number: int, dim: str) -> int:
        level = self.nest.levels[number - 1]
        return level.tile[dim] * level.unroll.get(dim, 1)

    def moving_loops(self, operand: Operand, number: int) -> set[tuple[int, str]]:
        """Return the loops, as (level, dim), inside which the operand's tile must be loaded."""
        loops, outer = [], self.space.sizes
        for index, level in enumerate(self.nest.levels[:number], start=1):
            loops += [(index, dim) for dim in level.order if outer[dim] > self.step(index, dim)]
            outer = level.tile
        while loops and loops[-1][1] not in operand.dims:
            loops.pop()
        return set(loops)

    def words(self, operand: Operand, number: int, around: int, each_instance: bool, first: bool = False) -> int:
        """Return the words that enter (or leave) a level, counted at its instances or at its source.

        With ``first``, count only first visits.
        """
        moving = set() if first else self.moving_loops(operand, number)
        words = 1
        for dim in self.space.sizes:
            if dim not in operand.dims:
                words *= self.visits(dim, number, around, each_instance, moving)
        for axis in operand.axes:
            words *= self.along(axis, number, around, each_instance)
        return words

    def visits(self, dim: str, number: int, around: int, each_instance: bool, moving: set[tuple[int, str]]) -> int:
        """Return how often a loop that does not index the operand makes it move."""
        pieces = Counter({self.space.sizes[dim]: 1})
        for index, level in enumerate(self.nest.levels[:number], start=1):
            step, tile = self.step(index, dim), level.tile[dim]
            pieces = _cut(pieces, step) if (index, dim) in moving else _first(pieces, step)
            pieces = _cut(pieces, tile) if each_instance or index <= around else _first(pieces, tile)
        return pieces.total()

    def along(self, axis: Axis, number: int, around: int, each_instance: bool) -> int:
        """Return the sum over all tiles of the number of indices that they touch on one axis."""
        if len(axis.dims) == 1:
            return self.space.sizes[axis.dims[0]]
        shared = any(
            self.nest.levels[index].unroll.get(dim, 1) > 1 for index in range(around, number) for dim in axis.dims
        )
        if shared and not each_instance:
            return self.shared_along(axis, number, around)
        outer, window = (self.tiles(dim, number) for dim in axis.dims)
        return sum(
            axis.extent({axis.dims[0]: a, axis.dims[1]: b}) * many * often
            for a, many in outer.items()
            for b, often in window.items()
        )

    def tiles(self, dim: str, number: int) -> Counter[int]:
        """Return the tiles of one loop at a level, as counts by tile size."""
        pieces = Counter({self.space.sizes[dim]: 1})
        for index in range(1, number + 1):
            pieces = _cut(_cut(pieces, self.step(index, dim)), self.nest.levels[index - 1].tile[dim])
        return pieces

    def shared_along(self, axis: Axis, number: int, around: int) -> int:
        """Return the result of :meth:`along` when overlapping instances share a word (multicast)."""
        total = 0
        outer, window = (self.groups(dim, number, around) for dim in axis.dims)
        for firsts in outer:
            for seconds in window:
                total += len({axis.stride * first + second for first in firsts for second in seconds})
        return total

    def groups(self, dim: str, number: int, around: int) -> list[set[int]]:
        """Return, for every time step and source instance, the indices that its instances work on."""
        members: dict[tuple[int, ...], set[int]] = {}
        for key, start, size in self.walk(dim, number, around, 1, (), 0, self.space.sizes[dim]):
            members.setdefault(key, set()).update(range(start, start + size))
        return list(members.values())

    def walk(
        self, dim: str, number: int, around: int, level: int, key: tuple[int, ...], start: int, size: int
    ) -> Iterator[tuple[tuple[int, ...], int, int]]:
        if level > number:
            yield key, start, size
            return
        step, tile = self.step(level, dim), self.nest.levels[level - 1].tile[dim]
        for at in range(0, size, step):
            for lane, inner in enumerate(range(at, min(at + step, size), tile)):
                where = (*key, at, lane) if level <= around else (*key, at)
                left = min(tile, at + step - inner, size - inner)
                yield from self.walk(dim, number, around, level + 1, where, start + inner, left)


def _cut(pieces: Counter[int], step: int) -> Counter[int]:
    """Return every piece cut into steps and a remainder."""
    cut: Counter[int] = Counter()
    for size, many in pieces.items():
        whole, rest = divmod(size, step)
        if whole:
            cut[step] += whole * many
        if rest:
            cut[rest] += many
    return cut


def _first(pieces: Counter[int], step: int) -> Counter[int]:
    """Return the first step of every piece."""
    kept: Counter[int] = Counter()
    for size, many in pieces.items():
        kept[min(size, step)] += many
    return kept
