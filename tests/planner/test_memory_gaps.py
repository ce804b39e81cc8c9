"""A gap must be left now and then: partial packings of which only those with a gap can be completed."""

import itertools

import numpy as np
import pytest

from mlsys.planner.memory import niches

Rows = list[tuple[int, int, int]]

# Capacity, floors of the steps, buffers that are left (from, to, size), a step, and in how many ways the rest can lie
# above the floors, each buffer resting on a floor or on another: in none of them does one rest on that step's floor.
NEEDED: dict[str, tuple[int, list[int], Rows, int, int]] = {
    "three in 6": (6, [0, 1, 3], [(0, 1, 2), (0, 2, 3), (1, 3, 2)], 0, 1),
    "the mirror of three": (5, [3, 1, 1, 0], [(0, 3, 2), (2, 4, 2), (3, 4, 2)], 3, 1),
    "within a wide niche": (5, [0, 1, 1, 1, 3], [(0, 3, 2), (2, 4, 2), (3, 5, 1)], 1, 1),
    "four in 5": (5, [1, 0, 1, 0], [(1, 2, 3), (1, 3, 1), (2, 4, 3), (3, 4, 2)], 1, 1),
    "two ways": (6, [2, 1, 0], [(0, 2, 2), (0, 2, 1), (1, 3, 2), (2, 3, 3)], 2, 2),
}


def completions(capacity: int, floors: list[int], rows: Rows) -> list[tuple[int, ...]]:
    """Try every offset of every buffer; keep those in which nothing can be pushed down."""
    packings = []
    for offsets in itertools.product(*(range(capacity - size + 1) for _, _, size in rows)):
        lying = [(low, low + size, begin, end) for low, (begin, end, size) in zip(offsets, rows, strict=True)]
        below = [max(floors[begin:end]) for begin, end, _ in rows]
        if any(low < floor for low, floor in zip(offsets, below, strict=True)):
            continue
        pairs = [(a, b) for a, b in itertools.permutations(lying, 2) if a[2] < b[3] and b[2] < a[3]]
        if any(a[0] < b[1] and b[0] < a[1] for a, b in pairs):
            continue
        carried = {b for a, b in pairs if a[1] == b[0]}
        if all(span[0] == floor or span in carried for span, floor in zip(lying, below, strict=True)):
            packings.append(offsets)
    return packings


def offered(capacity: int, floors: list[int], rows: Rows, step: int) -> tuple[list[int], int, int]:
    """Return what the search would try at a step, where a gap would end, and the floor there."""
    first, last, size = (np.array(column) for column in zip(*rows, strict=True))
    number, steps = len(rows), len(floors)
    floor, left, rank = np.array(floors), np.ones(number, np.bool_), np.arange(number)
    slack, reach, niche, choices, above, lift = np.zeros((6, steps), np.int64)
    least, listed, resting = np.zeros(number, np.int64), np.zeros(number, np.int64), np.zeros(number + 1, np.int64)
    start = np.searchsorted(first, np.arange(steps + 1))
    overflow, _ = niches.raise_floors(0, steps, first, last, size, start, capacity, left, floor, least, slack, reach)
    assert overflow < 0
    assert niches.by_offset(0, steps, first, left, least, rank.copy(), listed) == number
    weight = np.ones(steps)
    niches.choose_step(
        listed, 0, steps, first, last, size, floor, least, slack, weight, niche, choices, above, lift
    )  # fmt: skip
    assert niche[step] >= 0
    count, end = niches.branches(listed, step, first, last, size, rank, floor, least, slack, niche, resting)
    return resting[:count].tolist(), int(end), int(floor[step])


@pytest.mark.parametrize("name", NEEDED)
def test_a_gap_is_left_where_only_a_gap_leads_to_a_packing(name: str) -> None:
    capacity, floors, rows, step, ways = NEEDED[name]
    assert rows == sorted(rows, key=lambda row: row[0])
    packings = completions(capacity, floors, rows)
    assert len(packings) == ways
    tried, end, floor = offered(capacity, floors, rows, step)
    there = [index for index, (begin, until, _) in enumerate(rows) if begin <= step < until]
    lowest = min(offsets[index] for offsets in packings for index in there)
    assert floor < lowest  # nothing rests on the floor of the step
    assert tried[-1] == -1 and floor < end <= lowest
