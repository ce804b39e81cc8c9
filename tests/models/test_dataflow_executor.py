"""Closed counts equal those of a machine that walks the nest with explicit buffers, and products are right."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlsys.frozen import FrozenDict
from mlsys.mapping import IterationSpace, LoopNest, TileLevel, conv_space, gemm_space, row_stationary
from mlsys.models.dataflow import movements
from mlsys.models.dataflow.executor import execute, random_operands, reference_product

FAST = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def nests(draw: st.DrawFn, space: IterationSpace, levels: int, largest_unroll: int) -> LoopNest:
    """Draw any nest: tiles that are whole numbers of the tiles inside, any order, any buffers."""
    names = [operand.name for operand in space.operands]
    array = draw(st.integers(0, levels - 1))
    tile = {dim: draw(st.integers(1, 3)) for dim in space.sizes}
    nest_levels: list[TileLevel] = []
    for number in reversed(range(levels)):
        unroll = {}
        if number == array:
            unroll = {dim: draw(st.integers(1, largest_unroll)) for dim in draw(st.permutations(list(space.sizes)))[:2]}
        keeps = names if number == 0 else draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        order = tuple(draw(st.permutations(list(space.sizes))))
        nest_levels.insert(0, TileLevel(f"L{number}", FrozenDict(tile), order, tuple(keeps), FrozenDict(unroll)))
        tile = {dim: size * unroll.get(dim, 1) * draw(st.integers(1, 2)) for dim, size in tile.items()}
    return LoopNest(tuple(nest_levels))


@st.composite
def cases(draw: st.DrawFn) -> tuple[IterationSpace, LoopNest]:
    levels = draw(st.integers(1, 3))
    if draw(st.booleans()):
        space = gemm_space(*(draw(st.integers(1, 7)) for _ in "mnk"))
        return space, draw(nests(space, levels, 3))
    small = st.integers(1, 2)
    p, q, r, s, stride = (draw(st.integers(1, high)) for high in (5, 4, 3, 3, 3))
    groups = draw(small)
    space = conv_space(draw(small), groups * draw(small), groups * draw(small), p, q, r, s, stride, groups)
    return space, draw(nests(space, min(levels, 2), 2))


@FAST
@given(cases())
def test_counts_equal_the_walk_and_the_product_is_right(case: tuple[IterationSpace, LoopNest]) -> None:
    space, nest = case
    left, right = random_operands(space)
    run = execute(space, nest, left, right)
    assert run.macs == space.macs
    assert np.array_equal(run.product, reference_product(space, left, right))
    assert run.moved == movements(space, nest)


def test_row_stationary_counts_equal_the_walk() -> None:
    space = conv_space(1, 3, 4, 6, 6, 3, 3)
    nest = row_stationary(space, columns=3)
    run = execute(space, nest, *random_operands(space))
    assert run.moved == movements(space, nest)
    weight, image = (next(m for m in run.moved if m.operand == name) for name in ("weight", "input"))
    assert weight.multicast == 3  # one filter row feeds a row of the array
    assert image.multicast == pytest.approx(9 / 5)  # nine elements hold five input rows, along diagonals
    sums = next(m for m in run.moved if m.operand == "output")
    assert sums.drains == 3 * sums.writes  # three filter rows are added on the way out
