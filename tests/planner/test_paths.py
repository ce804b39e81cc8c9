"""The shortest path equals the best of every loop order and every place of every memory, counted by the nest model."""

import functools
import itertools
import math
from collections.abc import Iterator

import pytest

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.frozen import FrozenDict
from mlsys.mapping import IterationSpace, LoopNest, TileLevel, conv_space, gemm_space
from mlsys.models.dataflow import movements
from mlsys.planner.mapper.accelerator import ACCELERATORS, Accelerator, Store, accelerator
from mlsys.planner.mapper.paths import least_energy

WIDTHS = ("input", "weight", "partial", "output")


def tiny(shared: int, weights: int, sums: int) -> Accelerator:
    """Return a machine with one lane: a memory shared by inputs and outputs, and two small ones."""
    main, both = Store("main", None, 10.0, 11.0, ()), Store("both", shared, 2.0, 3.0, ())
    weight, total = Store("weights", weights, 0.5, 0.7, ()), Store("sums", sums, 0.3, 0.2, ())
    return Accelerator(
        "tiny", "tiny", "made up", FrozenDict(dict(zip(WIDTHS, (8, 8, 16, 8), strict=True))), FrozenDict({}), 1.0,
        FrozenDict({"input": (main, both), "weight": (main, weight), "output": (main, both, total)}),
    )  # fmt: skip


def sequences(space: IterationSpace) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yield every list of loops, innermost first, as (loop, tile after it)."""

    def chains(size: int) -> list[list[int]]:
        paths = [[]] if size == 1 else []
        for length in range(1, size + 1):
            for chain in itertools.product(range(2, size + 1), repeat=length):
                tiles = [1, *chain]
                steps = itertools.pairwise(tiles)
                if tiles[-1] == size and all(b > a and (b % a == 0 or b == size) for a, b in steps):
                    paths.append(list(chain))
        return paths

    moving = [dim for dim, size in space.sizes.items() if size > 1]
    for picks in itertools.product(*(chains(space.sizes[dim]) for dim in moving)):
        names = [dim for dim, chain in zip(moving, picks, strict=True) for _ in chain]
        for order in set(itertools.permutations(names)):
            left = {dim: iter(chain) for dim, chain in zip(moving, picks, strict=True)}
            yield tuple((dim, next(left[dim])) for dim in order)


Loops = tuple[tuple[str, int], ...]


@functools.cache
def words(space: IterationSpace, loops: Loops, depth: int, operand: str) -> int:
    """Return the words that cross a border at a depth, counted by :func:`movements`, one loop a level."""
    tile, tiles = dict.fromkeys(space.sizes, 1), []
    for dim, size in loops:
        tiles.append(dict(tile))
        tile[dim] = size
    other = "weight" if operand != "weight" else "input"
    levels = [
        TileLevel(str(at), FrozenDict(tiles[at]), (loops[at][0],), (operand if at == depth else other,))
        for at in reversed(range(depth, len(loops)))
    ]
    if depth == len(loops):
        levels = [TileLevel("whole", space.sizes, (), (operand,))]
    item = next(m for m in movements(space, LoopNest(tuple(levels))) if m.operand == operand)
    return item.writes or item.reads


def energy(machine: Accelerator, space: IterationSpace, loops: Loops, depths: tuple[int, ...]) -> float:
    """Return the energy of loops with each memory at a depth; inf where tiles do not fit."""
    if depths[2] > depths[3]:
        return math.inf
    states = [dict.fromkeys(space.sizes, 1)]
    for dim, tile in loops:
        states.append({**states[-1], dim: tile})
    bits, size = machine.bits, space.output.words(space.sizes)
    main, both, sums = machine.paths["output"]
    weights = machine.paths["weight"][1]
    into = [
        words(space, loops, depth, name)
        for depth, name in zip(depths, ("input", "weight", "output", "output"), strict=True)
    ]
    inside = bits["output"] if into[2] == size else bits["partial"]
    held = (
        (both, space.inputs[0].words(states[depths[0]]) * 8 + space.output.words(states[depths[3]]) * inside),
        (weights, space.inputs[1].words(states[depths[1]]) * 8),
        (sums, space.output.words(states[depths[2]]) * bits["partial"]),
    )
    if any(taken > (store.capacity or 0) for store, taken in held):
        return math.inf
    total = machine.mac_energy * space.macs
    total += 8 * into[0] * (main.read + both.write) + 8 * words(space, loops, 0, "input") * both.read
    total += 8 * into[1] * (main.read + weights.write) + 8 * words(space, loops, 0, "weight") * weights.read
    for outer, inner, crossed in ((both, sums, into[2]), (main, both, into[3])):
        again = (crossed - size) * bits["partial"]
        out = crossed * bits["output"] if crossed == size else crossed * bits["partial"]
        total += out * inner.read + (again + size * bits["output"]) * outer.write + again * (outer.read + inner.write)
    return total + bits["partial"] * (space.macs * sums.write + (space.macs - size) * sums.read)


@pytest.mark.parametrize(
    ("machine", "space"),
    [
        (tiny(100, 16, 16), conv_space(2, 2, 2, 1, 1, 1, 1)),
        (tiny(48, 16, 32), conv_space(2, 2, 2, 1, 1, 1, 1)),
        (tiny(40, 8, 16), conv_space(2, 4, 1, 1, 1, 1, 1)),
        (tiny(40, 24, 16), conv_space(1, 2, 3, 1, 1, 1, 1)),
        (tiny(56, 16, 16), conv_space(1, 1, 2, 2, 1, 2, 1)),
        (tiny(32, 8, 16), conv_space(3, 2, 2, 1, 1, 1, 1)),
        (tiny(24, 16, 48), conv_space(2, 3, 3, 1, 1, 1, 1)),
    ],
    ids=range(7),
)
def test_no_order_and_no_place_takes_less(machine: Accelerator, space: IterationSpace) -> None:
    best = least_energy(machine, space, ("all",))
    brute = min(
        energy(machine, space, loops, depths)
        for loops in sequences(space)
        for depths in itertools.product(range(len(loops) + 1), repeat=4)
    )
    assert best.proven
    assert best.energy == pytest.approx(brute, rel=1e-12)


def test_every_accelerator_of_the_package_is_read() -> None:
    for name in ACCELERATORS:
        machine = accelerator(name)
        assert machine.id == name and "zigzag-dse 3.9.1" in machine.source
        assert all(path[0].capacity is None for path in machine.paths.values())


def test_an_unknown_accelerator_and_a_product_are_refused_in_words() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'tpu_like'"):
        accelerator("tpu-like")
    with pytest.raises(ArgumentError, match="must be a convolution.*conv_space"):
        least_energy(accelerator("tpu_like"), gemm_space(4, 4, 4))
