"""What must hold of tiles, caches and sectors, whatever the sizes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys import formulas
from mlsys.models.access import strided_access, warp_access
from mlsys.models.cache import Cache, gemm_trace, miss_curve, simulate, trace_of
from mlsys.models.tiling import (
    ConvTile,
    conv2d_traffic,
    gemm_lower_bound,
    gemm_tile_words,
    gemm_traffic,
    largest_accumulator_tile,
    largest_square_tile,
)
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_

WORD = Q_(4, "byte")
sizes = st.integers(1, 10**6)
small = st.integers(1, 12)
shapes = st.tuples(sizes, sizes, sizes)
tiles = st.tuples(sizes, sizes, sizes)
orders = st.permutations("mnk").map("".join)
places = st.lists(st.integers(0, 60), min_size=1, max_size=120)


# --- products --------------------------------------------------------------------------


@given(shapes, tiles, orders)
def test_no_tiling_moves_less_than_every_operand_once(shape: tuple, tile: tuple, order: str) -> None:
    m, n, k = shape
    traffic = gemm_traffic(m, n, k, tile, order)
    assert traffic.reads["A"] >= m * k and traffic.reads["B"] >= k * n and traffic.writes["C"] >= m * n
    assert traffic.reads["C"] == traffic.writes["C"] - m * n, "what is taken up again was put away"
    assert gemm_traffic(m, n, k, shape, order).words == m * k + k * n + m * n, "one tile for all"


@given(shapes, tiles, orders)
def test_no_tiling_beats_the_lower_bound_of_the_room_it_takes(shape: tuple, tile: tuple, order: str) -> None:
    cut = tuple(min(pair) for pair in zip(shape, tile, strict=True))
    assert gemm_traffic(*shape, tile, order).words >= gemm_lower_bound(*shape, gemm_tile_words(cut))


@given(shapes, st.integers(1, 10**6), orders)
def test_a_tile_of_twice_the_edge_never_moves_more(shape: tuple, edge: int, order: str) -> None:
    assert gemm_traffic(*shape, 2 * edge, order).words <= gemm_traffic(*shape, edge, order).words


@given(shapes, tiles, orders)
def test_transposing_swaps_a_and_b(shape: tuple, tile: tuple, order: str) -> None:
    m, n, k = shape
    turned = order.translate(str.maketrans("mn", "nm"))
    straight, other = gemm_traffic(m, n, k, tile, order), gemm_traffic(n, m, k, (tile[1], tile[0], tile[2]), turned)
    assert (straight.reads["A"], straight.reads["B"], straight.by_operand["C"]) == (
        *(other.reads["B"], other.reads["A"]),
        other.by_operand["C"],
    )


@given(st.integers(12, 10**15), st.sampled_from([0.5, 1, 2, 4, 8]), st.sampled_from([1, 2]))
def test_the_chosen_tile_fits_and_the_next_does_not(capacity: int, width: float, buffers: int) -> None:
    room, word = Q_(capacity * 8, "byte"), Q_(width, "byte")
    edge = largest_square_tile(room, word, buffers)
    words = int(capacity * 8 / width)
    assert gemm_tile_words(edge, buffers) <= words < gemm_tile_words(edge + 1, buffers)
    flat = largest_accumulator_tile(room, word)
    assert flat * flat + 2 * flat <= words < (flat + 1) ** 2 + 2 * (flat + 1)


@given(
    small,
    small,
    small,
    st.integers(1, 40),
    small,
    st.integers(1, 4),
    st.integers(0, 6),
    st.tuples(small, small, small, small),
)
def test_no_convolution_reads_less_than_what_it_needs_once(
    batch: int, into: int, filters: int, size: int, kernel: int, stride: int, padding: int, edges: tuple
) -> None:
    if kernel > size + 2 * padding:
        return
    whole = ConvTile(10**6, 10**6, filters, into)
    least, cut = (
        conv2d_traffic(batch, into, filters, size, kernel, tile, stride, padding) for tile in (whole, ConvTile(*edges))
    )
    assert all(cut.by_operand[name] >= words for name, words in least.by_operand.items())
    assert least.reads["input"] <= batch * into * size * size
    assert least.reads["weights"] == filters * into * kernel * kernel


# --- caches ----------------------------------------------------------------------------


@given(places, st.sampled_from([4, 8, 16]))
def test_a_larger_fully_associative_cache_holds_what_a_smaller_one_held(where: list[int], line: int) -> None:
    """The inclusion property of least recently used: more capacity never misses more."""
    trace = trace_of(np.array(where) * 4, WORD)
    misses = [simulate(trace, Cache(Q_(n * line, "byte"), Q_(line, "byte"))).last.misses for n in range(1, 8)]
    assert misses == sorted(misses, reverse=True)
    assert (
        misses
        == miss_curve(trace, Q_(line, "byte"))
        .misses[np.minimum(range(1, 8), len(set(np.array(where) * 4 // line)))]
        .tolist()
    )


@given(places, st.lists(st.booleans(), min_size=120, max_size=120))
def test_what_is_written_back_was_fetched_and_written(where: list[int], writes: list[bool]) -> None:
    trace = trace_of(np.array(where) * 4, WORD, writes[: len(where)])
    levels = simulate(trace, Cache(Q_(64, "byte"), Q_(8, "byte"), 2), Cache(Q_(256, "byte"), Q_(16, "byte"), 4)).levels
    for level in levels:
        assert level.write_backs <= level.misses <= level.accesses
    assert levels[1].accesses == levels[0].misses
    assert levels[1].misses <= levels[0].misses
    assert (levels[0].write_backs > 0) == any(writes[: len(where)])


@given(st.integers(1, 4), st.integers(1, 32))
def test_misses_depend_on_lines_not_on_where_the_trace_begins(passes: int, lines: int) -> None:
    cache = Cache(Q_(512, "byte"), Q_(16, "byte"), 4)
    where = np.tile(np.arange(lines * 4), passes) * 4
    here, other = (simulate(trace_of(where + shift, WORD), cache).last.misses for shift in (0, 512 * 7))
    assert here == other >= lines
    assert here == lines if lines <= 32 else here > lines


@settings(max_examples=20)
@given(st.integers(4, 14), st.integers(3, 5))
def test_what_an_lru_cache_needs_for_a_tile(edge: int, tiles: int) -> None:
    """Three tiles, 3T², are less than a managed buffer's traffic takes and far more than the cliff.

    Between two uses of an element of B lie the tile of B, two rows of A and one of C: with
    T² + 3T + 1 words B comes once for each tile, as to a managed buffer; with T² + 2T it comes
    anew for every row, and blocking was in vain. The traffic of a managed buffer of 3T² words
    takes an LRU cache of 4T² + T.
    """
    size = edge * tiles
    trace, managed = gemm_trace(size, size, size, WORD, edge), gemm_traffic(size, size, size, edge)

    def of_b(words: int) -> int:
        return simulate(trace, Cache(Q_(4 * words, "byte"), WORD)).last.by_operand["B"]

    assert of_b(edge**2 + 3 * edge + 1) == managed.reads["B"] < of_b(edge**2 + 3 * edge)
    assert of_b(edge**2 + 2 * edge) == size**3
    curve = miss_curve(trace, WORD)
    assert curve.smallest_capacity(managed.words) == Q_(4 * (4 * edge**2 + edge), "byte")
    assert 1 < curve.at(Q_(4 * 3 * edge**2, "byte")) / managed.words < 1.5


# --- Little's law and sectors ----------------------------------------------------------


@given(st.floats(1, 1e13), st.floats(1e-9, 1e-3))
def test_bytes_in_flight_and_bandwidth_are_inverse(bandwidth: float, latency: float) -> None:
    flying = formulas.bytes_in_flight(Q_(bandwidth, "byte/s"), Q_(latency, "s"))
    assert_quantity_close(formulas.latency_bound_bandwidth(flying, Q_(latency, "s")), Q_(bandwidth, "byte/s"))
    assert_quantity_close(flying * 2, formulas.bytes_in_flight(Q_(2 * bandwidth, "byte/s"), Q_(latency, "s")))


@given(st.integers(0, 200), st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 64), st.integers(0, 40))
def test_sectors_lie_between_the_requested_bytes_and_one_a_lane(
    stride: int, width: int, lanes: int, offset: int
) -> None:
    load = strided_access(stride, Q_(width, "byte"), lanes, offset=offset)
    useful = (lanes if stride else 1) * width
    assert -(-useful // 32) <= load.sectors <= lanes
    assert 0 < load.efficiency.magnitude <= 1
    wider = strided_access(stride + 1, Q_(width, "byte"), lanes, offset=offset)
    if offset == 0 < stride:
        assert wider.sectors >= load.sectors, "from a sector's start, wider is never better"


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=32), st.randoms())
def test_the_order_of_lanes_does_not_matter(where: list[int], random) -> None:  # type: ignore[no-untyped-def]
    turned = random.sample(where, len(where))
    assert warp_access(where, WORD) == warp_access(turned, WORD)
    assert warp_access(where, WORD).sectors == len({(a + b) // 32 for a in where for b in range(4)})
