"""Buffers below a capacity: published instances, packings known by construction, all offsets of small ones."""

import numpy as np
import pytest

from mlsys.planner.memory.fixed import FixedBuffers, plan_below
from mlsys.planner.memory.published import PUBLISHED_CAPACITY, published_buffers
from mlsys.planner.memory.sections import Sections
from sampled import drawn


def overlaps(buffers: FixedBuffers, offsets: np.ndarray) -> bool:
    together = (buffers.lower[:, None] < buffers.upper) & (buffers.lower < buffers.upper[:, None])
    tops = offsets + buffers.size
    shared = (offsets[:, None] < tops) & (offsets < tops[:, None])
    return bool(np.triu(together & shared, 1).any())


def settled(buffers: FixedBuffers, capacity: int = PUBLISHED_CAPACITY) -> bool:
    """Whether they fit, by a search that is stopped by no clock."""
    packing = plan_below(buffers, capacity, seconds=36_000)
    assert packing.proved
    if packing.offsets is not None:
        assert not overlaps(buffers, packing.offsets)
        assert int(packing.offsets.min()) >= 0 and int((packing.offsets + buffers.size).max()) <= capacity
    return packing.fits


# google/minimalloc@9f5cf810fec4, Apache-2.0. All fit, by the solver of that repository; of five of them some step is
# full to the last byte.
@pytest.mark.parametrize("name", ["A", "C", "E", "I"])
def test_published_allocations(name: str) -> None:
    assert settled(published_buffers()[name])


@pytest.mark.exhaustive
def test_larger_published_allocations_and_their_images() -> None:
    """Time may run backwards and buffers may come in any order: what fits still fits."""
    cases = [(name, image) for name in "ACEGIK" for image in range(4)]
    for name, image in drawn(cases, 2, "images of published allocations"):
        read = published_buffers()[name]
        lower, upper = (-read.upper, -read.lower) if image % 2 else (read.lower, read.upper)
        order = np.random.default_rng(image).permutation(len(read.size)) if image > 1 else np.arange(len(read.size))
        low = int(lower.min())
        assert settled(FixedBuffers(read.ids, lower[order] - low, upper[order] - low, read.size[order]))


def cut(rng: np.random.Generator, pieces: int, steps: int, capacity: int) -> FixedBuffers:
    """Cut a block in two, and the parts again: nothing is left over, so they fit to the last byte."""
    parts = [(0, steps, 0, capacity)]
    while len(parts) < pieces:
        largest = int(
            rng.choice(len(parts), p=np.array([(b - a) * (d - c) for a, b, c, d in parts]) / (steps * capacity))
        )
        begin, end, low, high = parts[largest]
        if rng.random() < 0.5 and end - begin > 1:
            at = int(rng.integers(begin + 1, end))
            parts[largest : largest + 1] = [(begin, at, low, high), (at, end, low, high)]
        elif high - low > 1:
            at = int(rng.integers(low + 1, high))
            parts[largest : largest + 1] = [(begin, end, low, at), (begin, end, at, high)]
    return buffers_of([(begin, end, high - low) for begin, end, low, high in parts])


@pytest.mark.exhaustive
def test_a_block_cut_to_pieces_is_put_together_again() -> None:
    for number in drawn(range(60), 8, "blocks cut to pieces"):
        rng = np.random.default_rng(number)
        buffers = cut(rng, int(rng.integers(8, 40)), 1000, 1024)
        assert buffers.largest_live == 1024
        assert settled(buffers, 1024)
        some = np.flatnonzero(rng.random(len(buffers.size)) < 0.9)  # with holes it is no less possible
        rows = zip(buffers.lower[some], buffers.upper[some], buffers.size[some], strict=True)
        assert settled(buffers_of([(int(a), int(b), int(size)) for a, b, size in rows]), 1024)


def fits_by_enumeration(buffers: FixedBuffers, capacity: int) -> bool:
    """Try every offset of every buffer."""
    number = len(buffers.size)
    together = ((buffers.lower[:, None] < buffers.upper) & (buffers.lower < buffers.upper[:, None])).tolist()
    size = buffers.size.tolist()
    offsets: list[int] = []

    def rest() -> bool:
        if len(offsets) == number:
            return True
        new = len(offsets)
        for low in range(capacity - size[new] + 1):
            high = low + size[new]
            if all(high <= at or at + size[old] <= low for old, at in enumerate(offsets) if together[old][new]):
                offsets.append(low)
                if rest():
                    return True
                offsets.pop()
        return False

    return rest()


def buffers_of(rows: list[tuple[int, int, int]]) -> FixedBuffers:
    lower, upper, size = (np.array(column) for column in zip(*rows, strict=True))
    return FixedBuffers(tuple(map(str, range(len(rows)))), lower, upper, size)


@pytest.mark.exhaustive
def test_fits_and_proofs_equal_enumeration() -> None:
    """The search alone, without the rules of thumb and the bound that spare it."""
    outcomes = set()
    for number in drawn(range(600), 25, "buffers"):
        rng = np.random.default_rng(number)
        lower = rng.integers(0, 6, 7)
        buffers = buffers_of(list(zip(lower, lower + rng.integers(1, 5, 7), rng.integers(1, 5, 7), strict=True)))
        for capacity in (buffers.largest_live - 1, buffers.largest_live, buffers.largest_live + 1):
            sections = Sections(buffers.lower, buffers.upper, buffers.size, capacity)
            outcome, _, offsets = sections.attempt(number % 9, 10**6, number, 0, np.zeros(1, np.int64))
            assert outcome == (capacity >= buffers.largest_live and fits_by_enumeration(buffers, capacity))
            outcomes.add(outcome)
            assert outcome == 0 or not overlaps(buffers, offsets)
            assert outcome == 0 or int((offsets + buffers.size).max()) <= capacity
    assert outcomes == {0, 1}


def test_the_same_seed_gives_the_same_offsets() -> None:
    buffers = published_buffers()["E"]
    first, two = (plan_below(buffers, PUBLISHED_CAPACITY, seconds=36_000, seed=3) for _ in range(2))
    assert first.offsets is not None and two.offsets is not None
    assert first.offsets.tolist() == two.offsets.tolist()


def test_a_search_that_the_clock_stops_says_that_it_does_not_know() -> None:
    buffers = published_buffers()["A"]
    packing = plan_below(buffers, PUBLISHED_CAPACITY, seconds=0.0)
    assert not packing.proved and not packing.fits and packing.offsets is None


def test_a_search_without_a_proof_tells_the_smallest_block_and_how_far_it_is() -> None:
    rng = np.random.default_rng(5)
    lower = rng.integers(0, 200, 1500)
    mixed = FixedBuffers(
        tuple(map(str, range(1500))), lower, lower + rng.integers(1, 60, 1500), rng.integers(1, 4096, 1500)
    )
    looked: list[int] = []
    packing = plan_below(mixed, mixed.largest_live, seconds=3, progress=looked.append)
    if packing.proved:  # on a fast machine
        return
    assert packing.smallest is not None and packing.smallest > mixed.largest_live
    assert plan_below(mixed, packing.smallest, seconds=36_000).fits
    assert looked == sorted(looked)
    assert not looked or looked[-1] == packing.states


# From, to and size of buffers that never need more than the capacity at once, and yet do not fit: memory fragments
# whatever the order. About one in four thousand tightly packed random instances is like that.
FRAGMENTED = {
    "nine in 4": (4, "47.1 67.3 12.3 36.1 23.3 05.1 01.3 56.2 34.2"),
    "nine in 5": (5, "03.4 48.1 68.4 01.1 56.3 36.1 35.1 25.1 34.2"),
    "ten in 5": (5, "16.2 67.2 24.1 48.2 03.2 35.1 01.3 78.3 56.1 67.1"),
    "nine in 6": (6, "35.4 02.3 14.1 24.1 23.1 01.3 23.1 13.2 45.2"),
    "another nine in 6": (6, "57.5 23.2 25.3 14.1 02.4 37.1 12.1 34.1 45.2"),
    "ten in 6": (6, "46.4 56.1 12.2 14.2 03.2 26.1 34.3 23.1 01.1 01.3"),
}


@pytest.mark.parametrize("name", FRAGMENTED)
def test_fragmented_memory_is_proved_too_small(name: str) -> None:
    capacity, text = FRAGMENTED[name]
    buffers = buffers_of([(int(word[0]), int(word[1]), int(word[3:])) for word in text.split()])
    assert buffers.largest_live == capacity
    assert not fits_by_enumeration(buffers, capacity)
    packing = plan_below(buffers, capacity)
    assert packing.proved and not packing.fits and packing.offsets is None
    more = plan_below(buffers, capacity + 1)
    assert more.proved and more.fits and more.offsets is not None
    assert fits_by_enumeration(buffers, capacity + 1) and not overlaps(buffers, more.offsets)


def test_equal_buffers_need_what_is_alive_however_many_they_are() -> None:
    """Intervals of one size are a graph that greedy colouring solves: the fullest step is enough."""
    rng = np.random.default_rng(3)
    lower = rng.integers(0, 5000, 20_000)
    upper = lower + rng.integers(1, 200, 20_000)
    many = FixedBuffers(tuple(map(str, range(20_000))), lower, upper, np.full(20_000, 4096))
    alive = max(int(((lower <= step) & (step < upper)).sum()) for step in np.unique(lower)[::50])
    assert many.largest_live >= 4096 * alive
    plan = plan_below(many, many.largest_live, seconds=1e-3)
    assert plan.fits and plan.states == 0
    assert not plan_below(many, many.largest_live - 1, seconds=1e-3).fits
    assert plan_below(many, many.largest_live - 1, seconds=1e-3).proved


def test_without_time_nothing_is_claimed() -> None:
    rng = np.random.default_rng(5)
    lower = rng.integers(0, 50, 300)
    mixed = FixedBuffers(tuple(map(str, range(300))), lower, lower + 10, rng.integers(1, 4096, 300))
    plan = plan_below(mixed, mixed.largest_live, seconds=1e-9)
    assert not plan.fits and not plan.proved


@pytest.mark.parametrize("seed", range(200))
def test_the_look_for_overlaps_is_that_of_every_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1, 9))
    lower, length, size, offsets = rng.integers(0, 7, (4, number))
    some = FixedBuffers(tuple(map(str, range(number))), lower, lower + length + 1, size + 1)
    shared = {
        frozenset((a, b))
        for a in range(number)
        for b in range(a)
        if lower[a] < some.upper[b] and lower[b] < some.upper[a]
        and offsets[a] < offsets[b] + some.size[b] and offsets[b] < offsets[a] + some.size[a]
    }  # fmt: skip
    found = some.overlapping(offsets)
    assert (found is None) == (not shared)
    assert found is None or frozenset(found) in shared
    live = max(int(some.size[(lower <= step) & (step < some.upper)].sum()) for step in lower)
    assert some.largest_live == live
