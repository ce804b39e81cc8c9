"""A reference executor: runs a loop nest with explicit buffers, computes the product and counts every word.

Slow and simple: the oracle for :func:`mlsys.models.dataflow.counts.movements`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsys.mapping.iteration import IterationSpace, Operand
from mlsys.mapping.loopnest import LoopNest
from mlsys.models.dataflow.counts import Movement

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ranges = dict[str, range]
Index = tuple[int, ...]


@dataclass(frozen=True)
class Execution:
    """Result of an execution: the product, the data movement and the multiply-accumulates."""

    product: NDArray[Any]
    moved: tuple[Movement, ...]
    macs: int


def random_operands(space: IterationSpace, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two random inputs of small integers, so that every order of summation is exact."""
    rng = np.random.default_rng(seed)
    shapes = ([_length(space, axis.dims, axis.stride) for axis in operand.axes] for operand in space.inputs)
    left, right = (rng.integers(-4, 5, shape) for shape in shapes)
    return left, right


def _length(space: IterationSpace, dims: tuple[str, ...], stride: int) -> int:
    first = space.sizes[dims[0]]
    return first if len(dims) == 1 else (first - 1) * stride + space.sizes[dims[1]]


def reference_product(space: IterationSpace, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the product computed by its definition, one multiply-accumulate at a time."""
    product = np.zeros([space.sizes[axis.dims[0]] for axis in space.output.axes], dtype=np.int64)
    for point in itertools.product(*(range(size) for size in space.sizes.values())):
        at = dict(zip(space.sizes, point, strict=True))
        product[_index(space.output, at)] += left[_index(space.inputs[0], at)] * right[_index(space.inputs[1], at)]
    return product


def _index(operand: Operand, at: dict[str, int]) -> Index:
    return tuple(
        at[axis.dims[0]] * (axis.stride if len(axis.dims) > 1 else 1) + sum(at[dim] for dim in axis.dims[1:])
        for axis in operand.axes
    )


@dataclass
class _Buffer:
    """One operand in one instance of one memory."""

    tag: Any = None
    words: dict[Index, int] = field(default_factory=dict)


class _Machine:
    """Memories as dictionaries from index to value, with counters of every transfer."""

    def __init__(self, space: IterationSpace, nest: LoopNest, left: NDArray[Any], right: NDArray[Any]) -> None:
        self.space, self.nest = space, nest
        self.main = dict(zip((operand.name for operand in space.inputs), (left, right), strict=True))
        self.product = np.zeros([space.sizes[axis.dims[0]] for axis in space.output.axes], dtype=np.int64)
        self.buffers: dict[tuple[int, str, tuple[int, ...]], _Buffer] = {}
        self.requested: dict[Any, set[Index]] = {}
        self.seen: dict[Any, set[Index]] = {}
        self.fills: Counter[tuple[int, str]] = Counter()
        self.drains: Counter[tuple[int, str]] = Counter()
        self.back: Counter[tuple[int, str]] = Counter()
        self.macs = 0
        self.hoisted = {
            (number, name): self._reuse_depth(number, space.operand(name))
            for number, level in enumerate(nest.levels, start=1)
            for name in level.keeps
        }

    def _reuse_depth(self, number: int, operand: Operand) -> int:
        """Return the depth of the innermost loop around a level that its tile of an operand depends on."""
        depends, count, outer = 0, 0, dict(self.space.sizes)
        for level in self.nest.levels[:number]:
            for dim in level.order:
                count += 1
                moves = outer[dim] > level.tile[dim] * level.unroll.get(dim, 1)
                if moves and dim in operand.dims:
                    depends = count
            outer = dict(level.tile)
        return depends

    def run(self) -> None:
        whole = {dim: range(size) for dim, size in self.space.sizes.items()}
        self._level(1, whole, (), ())
        for number, name, lanes in sorted(self.buffers, key=lambda key: key[:1], reverse=True):
            if name == self.space.output.name:
                self._drain(number, name, lanes)

    def _level(self, number: int, ranges: Ranges, times: Index, lanes: Index) -> None:
        if number > len(self.nest.levels):
            self._compute(ranges, lanes)
            return
        level = self.nest.levels[number - 1]
        steps = {d: level.tile[d] * level.unroll.get(d, 1) for d in ranges}
        for corner in itertools.product(*(ranges[dim][:: steps[dim]] for dim in level.order)):
            at = dict(zip(level.order, corner, strict=True))
            outer = {d: ranges[d] if d not in at else _clip(at[d], steps[d], ranges[d]) for d in ranges}
            now = (*times, *((at[dim] - ranges[dim].start) // steps[dim] for dim in level.order))
            for lane in itertools.product(*(range(n) for n in level.unroll.values())):
                mine = dict(outer)
                for dim, index in zip(level.unroll, lane, strict=True):
                    mine[dim] = _clip(outer[dim].start + index * level.tile[dim], level.tile[dim], outer[dim])
                if all(len(span) for span in mine.values()):
                    here = (*lanes, *lane)
                    for name in level.keeps:
                        self._hold(number, name, mine, now, here)
                    self._level(number + 1, mine, now, here)

    def _hold(self, number: int, name: str, ranges: Ranges, now: Index, here: Index) -> None:
        """Ensure that a buffer holds its tile: keep it, or evict it and load the next."""
        buffer = self.buffers.setdefault((number, name, here), _Buffer())
        tag = now[: self.hoisted[number, name]]
        if buffer.tag == tag:
            return
        operand = self.space.operand(name)
        tile = set(_points(operand, ranges))
        around = self._around(number, name)
        source_lane = here[: self._lanes(around)]
        taken = self.requested.setdefault((number, name, source_lane, tag), set())
        if operand is self.space.output:
            self._drain(number, name, here)
            buffer.words = dict.fromkeys(tile, 0)
            seen = self.seen.setdefault((number, source_lane), set())
            self.back[number, name] += len((tile - taken) & seen)
            seen |= tile
        else:
            source = self._source(around, name, source_lane)
            buffer.words = {index: int(source[index]) for index in tile}
            self.fills[number, name] += len(tile)
        buffer.tag = tag
        taken |= tile

    def _drain(self, number: int, name: str, here: Index) -> None:
        """Add the partial sums of a buffer, and of the buffers inside it, to its source."""
        lanes = self._lanes(number)
        for inner, operand, lane in self.buffers:
            if operand == name and self._around(inner, name) == number and lane[:lanes] == here:
                self._drain(inner, name, lane)
        buffer, around = self.buffers[number, name, here], self._around(number, name)
        target = self._source(around, name, here[: self._lanes(around)])
        for index, value in buffer.words.items():
            target[index] += value
        self.drains[number, name] += len(buffer.words)
        buffer.words, buffer.tag = {}, None

    def _around(self, number: int, name: str) -> int:
        return max((n for n in range(1, number) if name in self.nest.levels[n - 1].keeps), default=0)

    def _lanes(self, number: int) -> int:
        return sum(len(level.unroll) for level in self.nest.levels[:number])

    def _source(self, around: int, name: str, lane: Index) -> Any:
        if around:
            return self.buffers[around, name, lane].words
        return self.product if name == self.space.output.name else self.main[name]

    def _compute(self, ranges: Ranges, lanes: Index) -> None:
        """Multiply and accumulate on the innermost tile, using the innermost buffers only."""
        left, right, sums = (self._innermost(operand.name, lanes) for operand in self.space.operands)
        for point in itertools.product(*ranges.values()):
            at = dict(zip(ranges, point, strict=True))
            value = left[_index(self.space.inputs[0], at)] * right[_index(self.space.inputs[1], at)]
            sums[_index(self.space.output, at)] += int(value)
            self.macs += 1

    def _innermost(self, name: str, lanes: Index) -> Any:
        around = self._around(len(self.nest.levels) + 1, name)
        return self._source(around, name, lanes[: self._lanes(around)])

    def moved(self) -> Iterator[Movement]:
        for number, level in enumerate(self.nest.levels, start=1):
            for name in level.keeps:
                around = self._around(number, name)
                source = self.nest.levels[around - 1].memory if around else "main"
                crossed = sum(len(words) for key, words in self.requested.items() if key[:2] == (number, name))
                if name == self.space.output.name:
                    back, drained = self.back[number, name], self.drains[number, name]
                    yield Movement(name, level.memory, source, number, back, back, drained, crossed)
                else:
                    yield Movement(name, level.memory, source, number, crossed, self.fills[number, name], 0, 0)


def _clip(start: int, length: int, inside: range) -> range:
    return range(start, min(start + length, inside.stop))


def _points(operand: Operand, ranges: Ranges) -> Iterator[Index]:
    axes = []
    for axis in operand.axes:
        if len(axis.dims) == 1:
            axes.append(list(ranges[axis.dims[0]]))
        else:
            first, window = (ranges[dim] for dim in axis.dims)
            axes.append(sorted({axis.stride * a + b for a in first for b in window}))
    return itertools.product(*axes)


def execute(space: IterationSpace, nest: LoopNest, left: NDArray[Any], right: NDArray[Any]) -> Execution:
    """Run a loop nest on actual data.

    Parameters
    ----------
    space, nest
        The iteration space, and the loop nest to run it with.
    left, right
        The inputs, integer arrays with the axes of ``space.inputs``.

    Returns
    -------
    Execution
        Product, data movement and number of multiply-accumulates.

    Examples
    --------
    >>> from mlsys.mapping import dataflow, gemm_space
    >>> space = gemm_space(4, 4, 4)
    >>> run = execute(space, dataflow("os", 2), *random_operands(space))
    >>> bool((run.product == reference_product(space, *random_operands(space))).all()), run.macs
    (True, 64)
    """
    machine = _Machine(space, nest.resolved(space), left, right)
    machine.run()
    return Execution(machine.product, tuple(machine.moved()), machine.macs)
