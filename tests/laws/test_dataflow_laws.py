"""Laws of moving words: nothing below what must move, more room never hurts, orders compute the same."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.mapping import LoopNest, TileLevel, gemm_space
from mlsys.models.dataflow import movements
from mlsys.planner.mapper import best_two_level, safe_bound
from mlsys.planner.mapper.hierarchy import search
from mlsys.planner.mapper.two_level import smallest_tiles

SIZES = st.integers(1, 5000)
FAST = settings(max_examples=150, deadline=None)


@FAST
@given(SIZES, SIZES, SIZES, st.integers(3, 200_000))
def test_the_optimum_keeps_every_law(m: int, n: int, k: int, capacity: int) -> None:
    best, divisors = best_two_level(m, n, k, capacity), best_two_level(m, n, k, capacity, "div")
    assert best.words >= best.bound >= best.compulsory
    assert divisors.words >= best.words
    assert best_two_level(m, n, k, 2 * capacity).words <= best.words
    assert best_two_level(n, m, k, capacity).words == best.words  # the transposed product
    tm, tn, tk = best.tile
    assert tm * tk + tk * tn + tm * tn <= capacity
    moved = movements(
        gemm_space(m, n, k), LoopNest((TileLevel("fast", {"m": tm, "n": tn, "k": tk}, tuple(best.order)),))
    )
    assert sum(item.words for item in moved) == best.words


@FAST
@given(st.integers(1, 10**7), st.integers(1, 10**7))
def test_smallest_tiles_have_every_trip_count_that_any_tile_has(size: int, tile: int) -> None:
    tile = min(tile, size)
    tiles = smallest_tiles(size)
    assert any(chosen <= tile and -(-size // chosen) == -(-size // tile) for chosen in tiles)
    assert len(tiles) <= 2 * size**0.5 + 1


@FAST
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6), st.integers(3, 10**9))
def test_huge_products_are_exact_and_above_the_bound(m: int, n: int, k: int, capacity: int) -> None:
    best = best_two_level(m, n, k, capacity)
    assert isinstance(best.words, int)
    assert best.words >= safe_bound(m, n, k, capacity)
    assert best.words == best.a + best.b + best.c_reads + best.c_writes


@FAST
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6), st.integers(3, 10**9))
def test_the_bound_is_rounded_up_and_no_further(m: int, n: int, k: int, capacity: int) -> None:
    bound, once = safe_bound(m, n, k, capacity), m * k + k * n + m * n
    assert bound >= once
    if bound > once:  # 2MNK/√S - 2S <= bound < that + 1, in whole numbers
        assert (
            (bound + 2 * capacity - 1) ** 2 * capacity < (2 * m * n * k) ** 2 <= (bound + 2 * capacity) ** 2 * capacity
        )


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 300), st.integers(30, 3000), st.integers(3, 300))
def test_a_second_level_moves_no_less_and_more_room_no_more(m: int, n: int, k: int, outer: int, inner: int) -> None:
    space = gemm_space(m, n, k)
    inner = min(outer, inner)

    def total(capacities: tuple[int, int]) -> float:
        return search(space, capacities, ("L2", "L1"), lambda words: 7.0 * words[0] + 1.0 * words[1]).value

    base = total((outer, inner))
    assert total((2 * outer, inner)) <= base
    assert total((outer, min(outer, 2 * inner))) <= base
    assert base >= 7 * best_two_level(m, n, k, outer).words + best_two_level(m, n, k, inner).words


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 60), st.integers(1, 9))
def test_no_order_moves_less_than_what_must_move(m: int, n: int, k: int, tile: int) -> None:
    space = gemm_space(m, n, k)
    for order in itertools.permutations("mnk"):
        moved = movements(space, LoopNest((TileLevel("L1", dict.fromkeys("mnk", tile), order),)))
        assert sum(item.words for item in moved) >= space.compulsory
