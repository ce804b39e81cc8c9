"""The mapper's optimum equals the best of every tile and every order, tried one by one."""

import itertools
import random
from collections.abc import Iterator

import pytest

from mlsys.frozen import FrozenDict
from mlsys.mapping import IterationSpace, LoopNest, TileLevel, conv_space, gemm_space
from mlsys.models.dataflow import movements
from mlsys.planner.mapper.hierarchy import search
from mlsys.planner.mapper.two_level import best_two_level, two_level_words


def every_nest(space: IterationSpace, capacities: tuple[int, ...]) -> Iterator[LoopNest]:
    """Yield every nest with any tiles, each a whole number of the next, in every order."""
    levels = len(capacities)

    def chains(size: int) -> list[tuple[int, ...]]:
        return [
            chain
            for chain in itertools.product(range(1, size + 1), repeat=levels)
            if all(outer % inner == 0 or outer == size for outer, inner in itertools.pairwise(chain))
            and list(chain) == sorted(chain, reverse=True)
        ]

    moving = [dim for dim, size in space.sizes.items() if size > 1]
    for tiles in itertools.product(*(chains(space.sizes[dim]) for dim in moving)):
        whole = [{dim: tile[n] for dim, tile in zip(moving, tiles, strict=True)} for n in range(levels)]
        words = [sum(o.words({**space.sizes, **tile}) for o in space.operands) for tile in whole]
        if any(word > room for word, room in zip(words, capacities, strict=True)):
            continue
        outer = dict(space.sizes)
        orders = []
        for tile in whole:
            steps = [dim for dim in moving if outer[dim] > tile[dim]]
            orders.append(list(itertools.permutations(steps)))
            outer = tile
        for chosen in itertools.product(*orders):
            yield LoopNest(
                tuple(
                    TileLevel(f"L{n}", FrozenDict(tile), order)
                    for n, (tile, order) in enumerate(zip(whole, chosen, strict=True))
                )
            )


def words_into(space: IterationSpace, nest: LoopNest) -> tuple[int, ...]:
    moved = movements(space, nest)
    return tuple(sum(m.words for m in moved if m.level == n) for n in range(1, len(nest.levels) + 1))


CASES = [
    (gemm_space(3, 4, 2), (12, 5)),
    (gemm_space(5, 2, 3), (14, 4)),
    (gemm_space(4, 3, 3), (11, 3)),
    (gemm_space(2, 2, 7), (20, 9)),
    (gemm_space(3, 3, 7), (32, 6)),
    (gemm_space(7, 6, 5), (17,)),
    (gemm_space(1, 6, 7), (10, 6)),
    (conv_space(1, 2, 2, 3, 1, 2, 1), (12,)),
    (conv_space(1, 1, 2, 3, 3, 3, 1), (14,)),
    (conv_space(1, 1, 2, 4, 1, 2, 1, stride=2), (9, 4)),
    (conv_space(2, 2, 2, 2, 1, 1, 1, groups=2), (7, 3)),
]


@pytest.mark.parametrize(("space", "capacities"), CASES, ids=lambda value: str(getattr(value, "name", value)))
@pytest.mark.parametrize("weights", [(1, 0), (10, 1), (1, 1), (1, 50)], ids=str)
def test_no_nest_moves_less(space: IterationSpace, capacities: tuple[int, ...], weights: tuple[int, int]) -> None:
    def objective(words):  # type: ignore[no-untyped-def]
        return sum(weight * word for weight, word in zip(weights, words, strict=False))

    best = search(space, capacities, [f"L{n}" for n in range(len(capacities))], objective)
    assert best.proven and best.nest is not None
    assert words_into(space, best.nest) == best.words
    assert best.value == min(objective(words_into(space, nest)) for nest in every_nest(space, capacities))


def test_no_nest_is_faster_where_the_slowest_memory_counts() -> None:
    space, capacities = gemm_space(4, 3, 3), (12, 5)

    def slowest(words):  # type: ignore[no-untyped-def]
        import numpy as np

        return np.maximum(np.maximum(3 * words[0], words[1]), 60)

    best = search(space, capacities, ["L0", "L1"], slowest)
    assert best.value == min(slowest(words_into(space, nest)) for nest in every_nest(space, capacities))


def test_two_levels_equal_brute_force_on_every_small_case() -> None:
    generator = random.Random(1)
    for _ in range(150):
        m, n, k = (generator.randint(1, 7) for _ in "mnk")
        capacity = generator.randint(3, 80)
        for tile_set in ("all", "div"):
            tiles = ([t for t in range(1, size + 1) if tile_set == "all" or size % t == 0] for size in (m, n, k))
            least = min(
                sum(two_level_words(m, n, k, tile, "".join(order)))
                for tile in itertools.product(*tiles)
                if tile[0] * tile[2] + tile[2] * tile[1] + tile[0] * tile[1] <= capacity
                for order in itertools.permutations("mnk")
            )
            best = best_two_level(m, n, k, capacity, tile_set)
            assert best.words == least >= best.bound
            if tile_set == "all":
                assert search(gemm_space(m, n, k), (capacity,), ["L0"], lambda words: words[0]).value == least
