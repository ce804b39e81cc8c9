"""The mapping of least energy as a shortest path, where operands have memories of their own.

A mapping is read from the innermost loop outward: a state is the tile that the loops so
far cover, a step adds a loop. An operand leaves a memory with the first step that makes
its tile too large, and then the words that cross are known: all of the operand, once for
each tile of the loops that it lacks. What a step costs thus depends on the state alone,
so the best order and sizes of any number of loops are a shortest path from one element
to the whole operator. Memories of several operands are divided by branch and bound.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.mapping.iteration import IterationSpace, Operand
from mlsys.planner.mapper.accelerator import Accelerator, Store
from mlsys.planner.mapper.chains import Numbers
from mlsys.planner.mapper.two_level import divisors, smallest_tiles

__all__ = ["LeastEnergy", "least_energy"]

_LARGEST_LATTICE = 400_000
_MOST_DIVISIONS = 200


@dataclass(frozen=True)
class LeastEnergy:
    """A mapping of least energy.

    Attributes
    ----------
    energy
        pJ, arithmetic included.
    loops
        Innermost first: loop, tile before, tile after.
    held
        (operand, memory) to the tile that it holds.
    bound
        pJ: no mapping of the space that was searched takes less.
    proven
        Whether every tile size was searched and the bound is met.
    states
        Tiles in the lattice that was searched.
    """

    energy: float
    loops: tuple[tuple[str, int, int], ...]
    held: tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...]
    bound: float
    proven: bool
    states: int


@dataclass(frozen=True)
class _Border:
    """Between a memory of one operand and the memory (or the array) inside it."""

    operand: str
    store: Store | None
    fits: Numbers
    bits: Numbers
    cost: Numbers


def least_energy(
    machine: Accelerator, space: IterationSpace, tile_sets: tuple[str, ...] = ("few", "all")
) -> LeastEnergy:
    """Return the mapping of least energy of a convolution, or of a matrix product written as one.

    Parameters
    ----------
    machine
        One of :func:`accelerator`.
    space
        From :func:`conv_space`; a product of m × k by k × n is one with batch m and 1 × 1 pixels.
    tile_sets
        Searched one after the other: ``"few"`` keeps divisors and the smallest tile of each trip
        count, ``"all"`` every tile size, where the lattice is not too large for that.

    Raises
    ------
    ArgumentError
        If the space is no convolution.

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
        found = lattice.solve()
        if best is None or found.energy < best.energy or (found.proven and found.energy <= best.energy):
            best = found
    assert best is not None
    return best


class _Lattice:
    def __init__(self, machine: Accelerator, space: IterationSpace, tile_set: str) -> None:
        self.machine, self.space = machine, space
        # As few lanes as the steps need: a lane that is idle at the end would only hold copies.
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
        self.tolls: dict[Any, Numbers] = {}

    def _jumps(self, dim: str) -> list[tuple[int, int]]:
        """Return the steps between nodes that have none between them: longer ones cost no less."""
        nodes, last = self.nodes[dim].tolist(), len(self.nodes[dim]) - 1
        found = []
        for i in range(last):
            above = [j for j in range(i + 1, last + 1) if nodes[j] % nodes[i] == 0]
            near = [j for n, j in enumerate(above) if not any(nodes[j] % nodes[k] == 0 for k in above[:n])]
            found += [(i, j) for j in near or [last]]
        return found

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
        """Return the tiles of a loop, counted once for each lane that has a memory of its own."""
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

    def swept(self, operand: Operand) -> Any:
        """Return the words of all tiles of an operand together."""
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

    def borders(self, finished: bool) -> tuple[list[_Border], float]:
        """Return the borders of all operands, and the energy that no mapping changes."""
        found = [*self._input_borders(0, "input"), *self._input_borders(1, "weight")]
        output, fixed = self._output_borders(finished)
        return found + output, fixed + self.machine.mac_energy * self.space.macs

    def _input_borders(self, number: int, name: str) -> list[_Border]:
        operand, bits = self.space.inputs[number], self.machine.bits[name]
        lacking = [dim for dim in self.space.sizes if dim not in operand.dims]
        swept = self.swept(operand) * bits
        still = np.array(True)
        for dim in operand.dims:
            still = still & (self.temporal(dim) == 1)
        found = []
        stores: list[Store | None] = [*self.machine.paths[name], None]
        for outer, inner in itertools.pairwise(stores):
            assert outer is not None
            read = swept * outer.read * _product(self.copies(dim, outer) for dim in lacking)
            if inner is None:
                found.append(self._border(name, None, still, np.array(0), read))
                continue
            fill = swept * inner.write * _product(self.copies(dim, inner) for dim in lacking)
            held = self.footprint(operand, inner) * bits
            found.append(self._border(name, inner, np.array(True), held, read + fill))
        return found

    def _output_borders(self, finished: bool) -> tuple[list[_Border], float]:
        bits, output = self.machine.bits, self.space.output
        size, reduced = output.words(self.space.sizes), self.space.reduction
        stores = self.machine.paths["output"]
        found = []
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
            found.append(self._border("output", inner, np.array(True), self.footprint(output, inner) * width, cost))
        register = stores[-1]
        adds = size * math.prod(
            self.steps[dim] if dim in register.shared_along else self.space.sizes[dim] for dim in reduced
        )
        return found, bits["partial"] * (adds * register.write + (adds - size) * register.read)

    def _border(self, operand: str, store: Store | None, fits: Any, bits: Any, cost: Any) -> _Border:
        every = [np.broadcast_to(np.asarray(item), self.shape) for item in (fits, bits, cost)]
        return _Border(operand, store, every[0], every[1], every[2].astype(float))

    # -- search -------------------------------------------------------------------------------

    def solve(self) -> LeastEnergy:
        best, bound = None, math.inf
        for finished in (True, False):
            self.tolls.clear()
            borders, fixed = self.borders(finished)
            found, least = self._divide(borders, fixed, best.energy if best else math.inf)
            bound = min(bound, least)
            if found is not None and (best is None or found.energy < best.energy):
                best = found
        assert best is not None
        proven = self.complete and best.energy <= bound * (1 + 1e-12)
        return LeastEnergy(best.energy, best.loops, best.held, bound, proven, self.states)

    def _divide(self, borders: list[_Border], fixed: float, incumbent: float) -> tuple[LeastEnergy | None, float]:
        """Divide shared memories among operands: split the share of one until shares fit together."""
        shared = [
            [i for i, b in enumerate(borders) if b.store is not None and b.store.name == name]
            for name in dict.fromkeys(b.store.name for b in borders if b.store is not None)
        ]
        full = tuple(math.inf if b.store is None or b.store.capacity is None else b.store.capacity for b in borders)
        low: tuple[float, ...] = (0,) * len(borders)
        best: LeastEnergy | None = None
        energy, path = self._shortest(borders, full, fixed)
        queue = [(energy, 0, full, low, path)]
        for count in range(1, _MOST_DIVISIONS):
            if not queue or queue[0][0] >= incumbent:
                return best, min(incumbent, queue[0][0] if queue else math.inf)
            energy, _, high, low, path = heapq.heappop(queue)
            held = self._held(borders, path, high)
            crowd = next((g for g in shared if sum(held[i] for i in g) > full[g[0]]), None)
            if crowd is None:
                if energy < incumbent:
                    best, incumbent = self._found(borders, path, high, energy), energy
                return best, energy
            widest = max(crowd, key=lambda i: (held[i] - low[i], held[i]))
            middle = (low[widest] + held[widest]) // 2
            for part in range(2):
                tops, lows = list(high), list(low)
                if part:
                    lows[widest] = middle + 1
                    for other in crowd:
                        if other != widest:
                            tops[other] = min(tops[other], full[widest] - sum(lows[i] for i in crowd if i != other))
                else:
                    tops[widest] = middle
                if min(t - b for t, b in zip(tops, lows, strict=True)) >= 0:
                    cost, way = self._shortest(borders, tuple(tops), fixed)
                    if cost < incumbent:
                        heapq.heappush(queue, (cost, 2 * count + part, tuple(tops), tuple(lows), way))
        return best, queue[0][0] if queue else incumbent

    def _shortest(self, borders: list[_Border], room: tuple[float, ...], fixed: float) -> tuple[float, list[Any]]:
        """Return energy and path, as (dim, from, to) in node numbers, innermost first."""
        start = (0,) * len(self.dims)
        if not all(b.fits[start] and b.bits[start] <= limit for b, limit in zip(borders, room, strict=True)):
            return math.inf, []
        edges = {dim: self._edges(borders, room, dim) for dim in self.dims}
        distance = np.full(self.shape, np.inf)
        distance[start] = fixed
        changed = True
        while changed:
            changed = False
            for axis, dim in enumerate(self.dims):
                moved = np.moveaxis(distance, axis, 0)
                before = moved.copy()
                for (i, j), cost in zip(self.jumps[dim], edges[dim], strict=True):
                    np.minimum(moved[j], moved[i] + cost, out=moved[j])
                changed = changed or not np.array_equal(before, moved)
        end = tuple(length - 1 for length in self.shape)
        last = sum(
            float(b.cost[end]) for b, limit in zip(borders, room, strict=True) if b.fits[end] and b.bits[end] <= limit
        )
        total = float(distance[end]) + last
        return total, self._way(distance, edges, end) if math.isfinite(total) else []

    def _edges(self, borders: list[_Border], room: tuple[float, ...], dim: str) -> Numbers:
        """Return what each step along a loop costs: what the operands pay that leave a memory on the way."""
        total = np.zeros(1)
        for number, (border, limit) in enumerate(zip(borders, room, strict=True)):
            key = (number, limit, dim)
            if key not in self.tolls:
                axis, (before, after) = self.dims.index(dim), np.array(self.jumps[dim]).T
                fits = np.moveaxis(border.fits & (border.bits <= limit), axis, 0)
                stays = np.array_equal(fits[0], fits[-1])
                paid = np.where(fits, np.moveaxis(border.cost, axis, 0), 0.0)
                self.tolls[key] = np.zeros(1) if stays else np.where(fits[after], 0.0, paid[before])
            total = total + self.tolls[key]
        return np.broadcast_to(total, (len(self.jumps[dim]), *self._others(dim)))

    def _others(self, dim: str) -> tuple[int, ...]:
        return tuple(length for name, length in zip(self.dims, self.shape, strict=True) if name != dim)

    def _way(self, distance: Numbers, edges: dict[str, Numbers], at: tuple[int, ...]) -> list[Any]:
        way: list[tuple[str, int, int]] = []
        while any(at):
            for axis, dim in enumerate(self.dims):
                rest = at[:axis] + at[axis + 1 :]
                came = next(
                    (
                        (dim, i, j)
                        for (i, j), cost in zip(self.jumps[dim], edges[dim], strict=True)
                        if j == at[axis]
                        and abs(distance[(*at[:axis], i, *at[axis + 1 :])] + cost[rest] - distance[at])
                        <= 1e-13 * distance[at]
                    ),
                    None,
                )
                if came is not None:
                    way.append(came)
                    at = (*at[:axis], came[1], *at[axis + 1 :])
                    break
            else:
                raise AssertionError("every state of the lattice is reached by a step")
        return way[::-1]

    def _tiles(self, borders: list[_Border], path: list[Any], room: tuple[float, ...]) -> list[tuple[int, ...]]:
        """Return, for every border, the state in which its operand leaves (or the whole)."""
        at, states = [0] * len(self.dims), [(0,) * len(self.dims)]
        for dim, _, to in path:
            at[self.dims.index(dim)] = to
            states.append(tuple(at))
        return [
            next(s for s in reversed(states) if border.fits[s] and border.bits[s] <= limit)
            for border, limit in zip(borders, room, strict=True)
        ]

    def _held(self, borders: list[_Border], path: list[Any], room: tuple[float, ...]) -> list[float]:
        return [float(b.bits[s]) for b, s in zip(borders, self._tiles(borders, path, room), strict=True)]

    def _found(self, borders: list[_Border], path: list[Any], room: tuple[float, ...], energy: float) -> LeastEnergy:
        def tile(dim: str, node: int) -> int:
            return int(min(self.nodes[dim][node] * self.lanes[dim], self.space.sizes[dim]))

        held = tuple(
            (b.operand, b.store.name, tuple((dim, tile(dim, node)) for dim, node in zip(self.dims, state, strict=True)))
            for b, state in zip(borders, self._tiles(borders, path, room), strict=True)
            if b.store is not None
        )
        loops = tuple((dim, tile(dim, i), tile(dim, j)) for dim, i, j in path)
        return LeastEnergy(energy, loops, held, energy, False, self.states)


def _window(stride: int, first: Any, window: Any) -> Any:
    return (first - 1) * np.minimum(stride, window) + window


def _product(factors: Any) -> Any:
    return math.prod(factors, start=np.array(1))
