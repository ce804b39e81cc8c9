"""The mapping of least energy as a shortest path, for machines with separate operand memories.

A mapping is read from the innermost loop outward: a state is the tile covered by the loops so far, a step adds a loop.
An operand leaves a memory with the first step that makes its tile too large, which determines the words that cross: all
of the operand, once per tile of its irrelevant loops. The cost of a step thus depends on the state alone, so the best
order and sizes of any number of loops are a shortest path from one element to the whole operator. Memories shared by
several operands are divided by branch and bound.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.mapping.iteration import IterationSpace, Operand
from mlsys.planner.mapper.accelerator import Accelerator, Store
from mlsys.planner.mapper.borders import Border, Problem
from mlsys.planner.mapper.chains import Numbers
from mlsys.planner.mapper.two_level import divisors, smallest_tiles

_LARGEST_LATTICE = 400_000
_MOST_DIVISIONS = 400


@dataclass(frozen=True)
class LeastEnergy:
    """A mapping of least energy.

    Attributes
    ----------
    energy
        pJ, including arithmetic.
    loops
        Innermost first: loop, tile before, tile after.
    held
        Tile held for each (operand, memory).
    bound
        pJ: lower bound of all mappings of the searched space.
    proven
        Whether every tile size was searched and the bound is met.
    states
        Number of tiles in the searched lattice.
    """

    energy: float
    loops: tuple[tuple[str, int, int], ...]
    held: tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...]
    bound: float
    proven: bool
    states: int


class _Way(NamedTuple):
    """States from one element to the whole operator, and the last one that each border holds."""

    states: Numbers
    last: Numbers


def least_energy(
    machine: Accelerator, space: IterationSpace, tile_sets: tuple[Literal["few", "all"], ...] = ("few", "all")
) -> LeastEnergy:
    """Return the mapping of least energy of a convolution, or of a matrix product written as one.

    Parameters
    ----------
    machine
        One of :func:`accelerator`.
    space
        From :func:`conv_space`; a product of m × k by k × n is one with batch m and 1 × 1 pixels.
    tile_sets
        Tile sets to search in turn: ``"few"`` contains divisors and the smallest tile of each trip count, ``"all"``
        every tile size, unless the lattice would be too large.

    Raises
    ------
    ArgumentError
        If the space is not a convolution.

    Examples
    --------
    >>> from mlsys.mapping import conv_space
    >>> from mlsys.planner.mapper.accelerator import accelerator
    >>> best = least_energy(accelerator("tpu_like"), conv_space(128, 128, 128, 1, 1, 1, 1))
    >>> best.proven, round(best.energy / 1e6, 2)
    (True, 4.96)
    """
    if "c" not in space.sizes:
        raise ArgumentError(
            "least_energy(): `space` must be a convolution, got a product of m, n, k. "
            "Write e.g. conv_space(batch=m, in_channels=k, out_channels=n, out_height=1, out_width=1, "
            "kernel_height=1, kernel_width=1)"
        )
    best: LeastEnergy | None = None
    for tile_set in tile_sets:
        lattice = _Lattice(machine, space, tile_set)
        if best is not None and lattice.states > _LARGEST_LATTICE:
            break
        mapping = lattice.solve()
        if best is None or mapping.energy < best.energy or (mapping.proven and mapping.energy <= best.energy):
            best = mapping
    assert best is not None
    return best


class _Lattice:
    def __init__(self, machine: Accelerator, space: IterationSpace, tile_set: Literal["few", "all"]) -> None:
        self.machine, self.space = machine, space
        # As few lanes as the steps need: lanes that are idle at the end would only hold copies.
        self.steps = {dim: -(-size // machine.array.get(dim, 1)) for dim, size in space.sizes.items()}
        self.lanes = {dim: -(-size // self.steps[dim]) for dim, size in space.sizes.items()}
        self.dims = tuple(dim for dim in space.sizes if self.steps[dim] > 1)
        every = {dim: range(1, self.steps[dim] + 1) for dim in self.dims}
        few = {dim: sorted({*smallest_tiles(self.steps[dim]), *divisors(self.steps[dim])}) for dim in self.dims}
        self.nodes = {dim: np.array(few[dim] if tile_set == "few" else every[dim], dtype=np.int64) for dim in self.dims}
        self.complete = all(len(self.nodes[dim]) == self.steps[dim] for dim in self.dims)
        self.shape = tuple(len(self.nodes[dim]) for dim in self.dims)
        self.states = math.prod(self.shape)
        self.jumps = {dim: self._jumps(dim) for dim in self.dims}
        self.steps_into = self._steps_into()

    def _jumps(self, dim: str) -> list[tuple[int, int]]:
        """Return the steps between adjacent nodes: longer ones cost no less."""
        nodes, last = self.nodes[dim].tolist(), len(self.nodes[dim]) - 1
        jumps = []
        for i in range(last):
            above = [j for j in range(i + 1, last + 1) if nodes[j] % nodes[i] == 0]
            near = [j for n, j in enumerate(above) if not any(nodes[j] % nodes[k] == 0 for k in above[:n])]
            jumps += [(i, j) for j in near or [last]]
        return jumps

    # -- what a state means ---------------------------------------------------------------

    def temporal(self, dim: str) -> Any:
        """Return the steps inside a state, along the axis of its loop."""
        if dim not in self.dims:
            return 1
        shape = [1] * len(self.dims)
        shape[self.dims.index(dim)] = -1
        return self.nodes[dim].reshape(shape)

    def tile(self, dim: str) -> Any:
        return np.minimum(self.temporal(dim) * self.lanes[dim], self.space.sizes[dim])

    def visits(self, dim: str) -> Any:
        return -(-self.steps[dim] // self.temporal(dim))

    def copies(self, dim: str, store: Store | None) -> Any:
        """Return the number of tiles of a loop, counted per lane with its own memory."""
        visits, lanes = self.visits(dim), self.lanes[dim]
        if store is None or lanes == 1 or dim in store.shared_along:
            return visits
        rest = self.space.sizes[dim] - (visits - 1) * self.temporal(dim) * lanes
        return (visits - 1) * lanes + np.minimum(lanes, rest)

    def footprint(self, operand: Operand, store: Store) -> Any:
        words: Any = 1
        for axis in operand.axes:
            sizes = [self.tile(d) if d in store.shared_along else self.temporal(d) for d in axis.dims]
            words = words * (sizes[0] if len(sizes) == 1 else _window(axis.stride, *sizes))
        return words

    def tile_words(self, operand: Operand) -> Any:
        """Return the words of all tiles of an operand."""
        words: Any = 1
        for axis in operand.axes:
            if len(axis.dims) == 1:
                words = words * self.space.sizes[axis.dims[0]]
                continue
            total: Any = 0
            (outer, inner), sizes = (self.tile(d) for d in axis.dims), [self.space.sizes[d] for d in axis.dims]
            for a, many in ((outer, sizes[0] // outer), (sizes[0] % outer, sizes[0] % outer > 0)):
                for b, often in ((inner, sizes[1] // inner), (sizes[1] % inner, sizes[1] % inner > 0)):
                    total = total + _window(axis.stride, a, b) * many * often
            words = words * total
        return words

    # -- borders ----------------------------------------------------------------------------

    def borders(self, finished: bool) -> tuple[list[Border], float]:
        """Return the borders of all operands, and the energy that no mapping changes."""
        inputs = [*self._input_borders(0, "input"), *self._input_borders(1, "weight")]
        output, fixed = self._output_borders(finished)
        return inputs + output, fixed + self.machine.mac_energy * self.space.macs

    def _input_borders(self, number: int, name: str) -> list[Border]:
        operand, bits = self.space.inputs[number], self.machine.bits[name]
        lacking = [dim for dim in self.space.sizes if dim not in operand.dims]
        swept = self.tile_words(operand) * bits
        still = np.array(True)
        for dim in operand.dims:
            still = still & (self.temporal(dim) == 1)
        borders = []
        stores: list[Store | None] = [*self.machine.paths[name], None]
        for outer, inner in itertools.pairwise(stores):
            assert outer is not None
            read = swept * outer.read * _product(self.copies(dim, outer) for dim in lacking)
            if inner is None:
                borders.append(self._border(name, None, still, np.array(0), read))
                continue
            fill = swept * inner.write * _product(self.copies(dim, inner) for dim in lacking)
            held = self.footprint(operand, inner) * bits
            borders.append(self._border(name, inner, np.array(True), held, read + fill))
        return borders

    def _output_borders(self, finished: bool) -> tuple[list[Border], float]:
        bits, output = self.machine.bits, self.space.output
        size, reduced = output.words(self.space.sizes), self.space.reduction
        stores = self.machine.paths["output"]
        borders = []
        visits = _product(self.visits(dim) for dim in reduced)
        for outer, inner in itertools.pairwise(stores):
            innermost = inner is stores[-1]
            drained = size * _product(self.copies(dim, inner) for dim in reduced)
            written, back = (
                (visits - 1) * size * bits["partial"] + size * bits["output"],
                (visits - 1) * size * bits["partial"],
            )
            sums = drained * np.where(visits == 1, bits["output"], bits["partial"])
            cost = sums * inner.read + written * outer.write + back * (outer.read + inner.write)
            if finished and innermost:
                cost = np.where(visits == 1, cost, np.inf)
            width = bits["output"] if finished and not innermost else bits["partial"]
            borders.append(self._border("output", inner, np.array(True), self.footprint(output, inner) * width, cost))
        register = stores[-1]
        adds = size * math.prod(
            self.steps[dim] if dim in register.shared_along else self.space.sizes[dim] for dim in reduced
        )
        return borders, bits["partial"] * (adds * register.write + (adds - size) * register.read)

    def _border(self, operand: str, store: Store | None, fits: Any, bits: Any, cost: Any) -> Border:
        every = [np.broadcast_to(np.asarray(item), self.shape) for item in (fits, bits, cost)]
        return Border(operand, store, every[0], every[1], every[2].astype(float))

    # -- search -------------------------------------------------------------------------------

    def solve(self) -> LeastEnergy:
        """Return the best mapping, with finished or partial sums leaving the innermost memory.

        Memories shared by several operands are divided by branch and bound, the least bound first: an operand that
        holds too much gets either at most half of that, or more, which limits the others to the rest. Shares move
        between tile sizes, since all shares between two sizes are equivalent.
        """
        problems = [Problem.of(*self.borders(finished)) for finished in (True, False)]
        queue: list[tuple[float, int, int, tuple[float, ...], tuple[float, ...], _Way]] = []
        for number, problem in enumerate(problems):
            energy, way = self._shortest(problem, problem.full)
            if math.isfinite(energy):
                heapq.heappush(queue, (energy, number, number, problem.full, (0,) * len(problem.full), way))
        for count in range(1, _MOST_DIVISIONS):
            if not queue:
                raise ArgumentError(
                    f"least_energy(): the memories of {self.machine.name} cannot hold one word of each operand that "
                    "passes through them. Increase their capacity"
                )
            energy, _, number, high, low, way = heapq.heappop(queue)
            problem = problems[number]
            held = [float(bits) for bits in problem.bits[way.last, range(len(high))]]
            crowd = problem.overfull(held)
            if crowd is None:
                return self._answer(problem, way, energy, energy)
            for part, (tops, lows) in enumerate(problem.divided(crowd, held, high, low)):
                cost, path = self._shortest(problem, tops)
                if math.isfinite(cost):
                    heapq.heappush(queue, (cost, 2 * count + part, number, tops, lows, path))
        bound = min((entry[0] for entry in queue), default=math.inf)
        tries = [(*self._shortest(problem, problem.even), number) for number, problem in enumerate(problems)]
        energy, way, number = min(tries, key=lambda each: each[0])
        return self._answer(problems[number], way, energy, bound)

    def _shortest(self, problem: Problem, room: tuple[float, ...]) -> tuple[float, _Way]:
        """Return the energy and the path from one element to the whole operator."""
        from mlsys.planner.mapper.kernels import shortest_path

        energy, states, last = shortest_path(
            np.array(self.shape), *self.steps_into, problem.bits, problem.cost, np.array(room), problem.fixed
        )
        return float(energy), _Way(states, last)

    def _steps_into(self) -> tuple[Numbers, Numbers]:
        """Return, for every node of every loop, its predecessors and their offsets."""
        begins = np.zeros((len(self.dims), max(self.shape, default=0) + 1), dtype=np.int64)
        before: list[int] = []
        for number, dim in enumerate(self.dims):
            begins[number, 0] = len(before)
            for node in range(self.shape[number]):
                before += [i for i, j in self.jumps[dim] if j == node]
                begins[number, node + 1] = len(before)
        return begins, np.array(before, dtype=np.int64)

    def _nodes(self, state: Any) -> tuple[int, ...]:
        """Return the node of each loop in a state."""
        return tuple(int(node) for node in np.unravel_index(state, self.shape))

    def _answer(self, problem: Problem, way: _Way, energy: float, bound: float) -> LeastEnergy:
        def tile(dim: str, node: int) -> int:
            return int(min(self.nodes[dim][node] * self.lanes[dim], self.space.sizes[dim]))

        held = tuple(
            (
                b.operand,
                b.store.name,
                tuple((d, tile(d, n)) for d, n in zip(self.dims, self._nodes(state), strict=True)),
            )
            for b, state in zip(problem.borders, way.last, strict=True)
            if b.store is not None
        )
        loops = tuple(
            (dim, tile(dim, i), tile(dim, j))
            for before, after in itertools.pairwise(map(self._nodes, way.states))
            for dim, i, j in zip(self.dims, before, after, strict=True)
            if i != j
        )
        proven = self.complete and energy <= bound * (1 + 1e-12)
        return LeastEnergy(energy, loops, held, bound, proven, self.states)


def _window(stride: int, first: Any, window: Any) -> Any:
    return (first - 1) * np.minimum(stride, window) + window


def _product(factors: Any) -> Any:
    return math.prod(factors, start=np.array(1))
