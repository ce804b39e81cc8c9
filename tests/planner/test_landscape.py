"""Random mappings fit and cost what the nest says; the front is what brute force leaves."""

import itertools

import numpy as np
import pytest

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware import load_device
from mlsys.mapping import LoopNest, TileLevel, conv_space, gemm_space
from mlsys.models.dataflow import (
    Hierarchy,
    buffer_words,
    hierarchy,
    movements,
    nest_cost,
    order_words,
    orders,
    walked_words,
)
from mlsys.planner.mapper import best_mapping, pareto_front, random_mappings

TINY = """\
id: Tiny
name: A tiny array
kind: NPU
vendor: nobody
release_year: 2026
profile: teaching
sources:
  made_up: {title: Made up for this test, date: "2026", confidence: assumed}
headline: int8
peaks: {int8: {matrix: {dense: {value: 100 GOP/s, source: made_up}}}}
memory:
  DRAM: {kind: DRAM, capacity: {value: 1 GB, source: made_up}, bandwidth: {value: 1 GB/s, source: made_up}}
  SRAM: {kind: SRAM, capacity: {value: 20 byte, source: made_up}, bandwidth: {value: 2 GB/s, source: made_up}}
  Scratchpad: {kind: SRAM, capacity: {value: 5 byte, source: made_up}}
chip: {node: {value: 45 nm, source: made_up}}
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Hierarchy:
    path = tmp_path_factory.mktemp("tiny") / "Tiny.yaml"
    path.write_text(TINY)
    chip = hierarchy(load_device(path))
    assert chip.rooms == (20, 5)
    assert chip.times == (1e-9, 0.5e-9)
    return chip


def test_random_mappings_fit_repeat_and_cost_what_the_nest_says(tiny: Hierarchy) -> None:
    space = gemm_space(12, 9, 10)
    drawn, same = (random_mappings(tiny, space, 30, seed=3) for _ in range(2))
    assert drawn.nests == same.nests
    for nest, energy, time in zip(drawn.nests, drawn.energies, drawn.times, strict=True):
        assert all(used <= room for used, room in zip(buffer_words(space, nest), tiny.rooms, strict=True))
        result = nest_cost(tiny, space, nest)
        assert result.figures["energy"].m_as("J") == pytest.approx(energy)
        assert result.time.m_as("s") == pytest.approx(time)


def test_the_front_is_what_brute_force_leaves(tiny: Hierarchy) -> None:
    space = gemm_space(4, 3, 3)
    points = set()
    for outer in itertools.product((1, 2, 3, 4), (1, 2, 3), (1, 2, 3)):
        for inner in itertools.product((1, 2, 3, 4), (1, 2, 3), (1, 2, 3)):
            pairs = list(zip(outer, inner, (4, 3, 3), strict=True))
            if any(o < i or (o % i and o != size) for o, i, size in pairs):
                continue
            tiles = [FrozenDict(dict(zip("mnk", tile, strict=True))) for tile in (outer, inner)]
            held = [sum(operand.words(tile) for operand in space.operands) for tile in tiles]
            if held[0] > 20 or held[1] > 5:
                continue
            for first, second in itertools.product(itertools.permutations("mnk"), repeat=2):
                nest = LoopNest((TileLevel("SRAM", tiles[0], first), TileLevel("registers", tiles[1], second)))
                moved = movements(space, nest)
                points.add(tuple(sum(m.words for m in moved if m.level == level) for level in (1, 2)))
    prices = [price * 1e12 for price in tiny.prices]
    energies = {words: prices[0] * words[0] + prices[1] * words[1] for words in points}
    times = {words: max(words[0], words[1] / 2, 36 * 2 / 100) for words in points}
    best = {
        (round(energies[w], 6), round(times[w], 6))
        for w in points
        if not any(
            energies[v] <= energies[w] and times[v] <= times[w] and (energies[v], times[v]) != (energies[w], times[w])
            for v in points
        )
    }
    front = pareto_front(tiny, space)
    drawn = {
        (round((e - tiny.multiplying * 36) * 1e12, 6), round(t * 1e9, 6))
        for e, t in zip(front.energies, front.times, strict=True)
    }
    assert drawn == best


def test_the_ends_of_the_front_are_the_best_at_energy_and_time(tiny: Hierarchy) -> None:
    space = gemm_space(24, 30, 20)
    front = pareto_front(tiny, space)
    frugal, quick = (best_mapping(tiny, space, goal) for goal in ("energy", "latency"))
    assert front.energies[0] == pytest.approx(frugal.result.figures["energy"].m_as("J"))
    assert front.times[-1] == pytest.approx(quick.result.time.m_as("s"))
    assert (np.diff(front.energies) > 0).all() and (np.diff(front.times) < 0).all()


@pytest.mark.parametrize(
    "space", [gemm_space(3, 4, 5), conv_space(1, 2, 3, 3, 2, 3, 1), conv_space(2, 1, 2, 3, 3, 2, 1, 2)]
)
def test_every_order_counted_equals_every_order_walked(space) -> None:  # type: ignore[no-untyped-def]
    for order in orders(space):
        assert order_words(space, order) == walked_words(space, order)


def test_a_window_of_two_meets_its_neighbour() -> None:
    """A walk sees that the last word of a window is the first of the next; the count loads it again."""
    space = conv_space(1, 1, 1, 4, 1, 2, 1)
    assert order_words(space, "pr")["input"] == 8
    assert walked_words(space, "pr")["input"] == 5


def test_orders_refuse_what_is_no_order() -> None:
    space = gemm_space(3, 4, 5)
    with pytest.raises(ArgumentError, match="must name each of m, n, k once, got .'m', 'n'."):
        order_words(space, "mn")
    with pytest.raises(ArgumentError, match="`room` must be at least 1 word for A, got 0"):
        order_words(space, "mnk", {"A": 0})
