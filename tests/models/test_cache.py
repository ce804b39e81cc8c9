"""The cache simulator against a slow, readable one, hand counts, and what is refused."""

from __future__ import annotations

import itertools
from collections import OrderedDict

import numpy as np
import pytest
import torch

from mlsys import formulas
from mlsys.errors import ArgumentError, ArgumentUnitError, UnknownNameError
from mlsys.models.access import layout_strides, strided_access, warp_access
from mlsys.models.cache import (
    MOST_ACCESSES,
    Cache,
    Trace,
    conv2d_trace,
    gathered_trace,
    gemm_trace,
    miss_curve,
    simulate,
    strided_trace,
    trace_of,
)
from mlsys.models.tiling import ConvTile, gemm_traffic
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_

WORD = Q_(4, "byte")
RNG = np.random.default_rng(11)


class SlowCache:
    """Sets of lines in order of use, one ordered dictionary each: the definition, spelt out."""

    def __init__(self, cache: Cache, below: SlowCache | None = None) -> None:
        self.line, self.ways, self.below = cache.line_bytes, cache.lines // cache.sets, below
        self.sets: list[OrderedDict[int, bool]] = [OrderedDict() for _ in range(cache.sets)]
        self.misses: dict[int, int] = {}
        self.accesses = self.backs = 0

    def access(self, address: int, kind: int, first: bool = True) -> None:
        self.accesses += 1
        line = address // self.line
        lines = self.sets[line % len(self.sets)]
        if line in lines:
            lines.move_to_end(line)
        else:
            self.misses[kind] = self.misses.get(kind, 0) + 1
            if len(lines) == self.ways:
                old, dirty = lines.popitem(last=False)
                if dirty:
                    self.write_back(old * self.line)
            lines[line] = False
            if self.below is not None:
                self.below.access(line * self.line, kind, first=False)
        if first and kind & 1:
            lines[line] = True

    def write_back(self, address: int) -> None:
        self.backs += 1
        if self.below is not None:
            self.below.take_back(address)

    def take_back(self, address: int) -> None:
        line = address // self.line
        lines = self.sets[line % len(self.sets)]
        if line in lines:
            lines[line] = True
        elif self.below is not None:
            self.below.take_back(address)

    def flush(self) -> None:
        for lines in self.sets:
            for line, dirty in lines.items():
                if dirty:
                    self.write_back(line * self.line)


def slowly(trace: Trace, *caches: Cache) -> list[SlowCache]:
    levels: list[SlowCache] = []
    for cache in reversed(caches):
        levels.insert(0, SlowCache(cache, levels[0] if levels else None))
    for address, kind in zip(trace.addresses.tolist(), trace.kinds.tolist(), strict=True):
        levels[0].access(address, kind)
    for level in levels:
        level.flush()
    return levels


def random_trace(accesses: int, span: int) -> Trace:
    """A stretch of strides, a stretch of chance, and a stretch close to home."""
    third = accesses // 3
    places = np.concatenate(
        [
            RNG.integers(0, span, third),
            (np.arange(third) * RNG.integers(1, 9)) % span,
            np.abs(np.cumsum(RNG.integers(-2, 3, third))) % span,
        ]
    )
    writes, operands = RNG.random(3 * third) < 0.3, RNG.integers(0, 3, 3 * third)
    return trace_of(places * 4, WORD, writes, operands, ("x", "y", "z"))


def same(trace: Trace, *caches: Cache) -> None:
    for slow, level in zip(slowly(trace, *caches), simulate(trace, *caches).levels, strict=True):
        for index, name in enumerate(trace.names):
            assert level.read_misses[name] == slow.misses.get(2 * index, 0)
            assert level.write_misses[name] == slow.misses.get(2 * index + 1, 0)
        assert (level.accesses, level.write_backs) == (slow.accesses, slow.backs)
        assert level.hits == slow.accesses - sum(slow.misses.values())


@pytest.mark.parametrize("ways", [1, 2, 3, 8, None])
@pytest.mark.parametrize(("lines", "line"), [(24, 4), (48, 16), (96, 12), (24, 64), (240, 32)])
def test_one_level_by_brute_force(lines: int, line: int, ways: int | None) -> None:
    for span in (50, 700, 5000):
        same(random_trace(1500, span), Cache(Q_(lines * line, "byte"), Q_(line, "byte"), ways))


@pytest.mark.parametrize("ways", [(1, 4, 8), (2, None, 1), (8, 2, None), (None, 1, 2)])
@pytest.mark.parametrize("line", [(4, 8, 32), (16, 16, 16), (8, 64, 64)])
def test_three_levels_by_brute_force(ways: tuple[int | None, ...], line: tuple[int, ...]) -> None:
    for span in (300, 3000):
        levels = [
            Cache(Q_(s, "byte"), Q_(b, "byte"), w, n)
            for s, b, w, n in zip((512, 2048, 8192), line, ways, "123", strict=True)
        ]
        same(random_trace(1500, span), *levels[:2])
        same(random_trace(1500, span), *levels)


@pytest.mark.parametrize("order", ["".join(p) for p in itertools.permutations("mnk")])
def test_products_by_plain_loops(order: str) -> None:
    sizes, edge = {"m": 6, "n": 5, "k": 7}, 3
    expected = []
    bases = {"A": 0, "B": 4096, "C": 8192}
    for starts in itertools.product(*(range(0, sizes[d], edge) for d in order)):
        for corner in itertools.product(
            *(range(s, min(s + edge, sizes[d])) for s, d in zip(starts, order, strict=True))
        ):
            at = dict(zip(order, corner, strict=True))
            c = bases["C"] + 4 * (at["m"] * 5 + at["n"])
            expected += [
                (bases["A"] + 4 * (at["m"] * 7 + at["k"]), 0),
                (bases["B"] + 4 * (at["k"] * 5 + at["n"]), 2),
                (c, 4),
                (c, 5),
            ]
    trace = gemm_trace(6, 5, 7, WORD, edge, order)
    assert list(zip(trace.addresses.tolist(), trace.kinds.tolist(), strict=True)) == expected
    kept = {"m": "B", "n": "A", "k": "C"}[order[-1]]
    lean = gemm_trace(6, 5, 7, WORD, edge, order, registers=True)
    other = [step for step in expected if "ABC"[step[1] // 2] != kept]
    accesses = list(zip(lean.addresses.tolist(), lean.kinds.tolist(), strict=True))
    assert [step for step in accesses if "ABC"[step[1] // 2] != kept] == other
    assert len(accesses) < len(expected) and lean.footprint == trace.footprint


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("tile", [None, ConvTile(2, 3, 2, 2)])
def test_convolutions_touch_what_a_convolution_needs(layout: str, tile: ConvTile | None) -> None:
    """Give memory values, run the trace as a machine would, and find torch's answer in it."""
    batch, into, filters, size, kernel, stride, padding = 2, 3, 4, 7, 3, 2, 1
    trace = conv2d_trace(batch, into, filters, size, kernel, WORD, tile, stride, padding, layout)
    x = torch.randint(-4, 5, (batch, into, size, size))
    w = torch.randint(-4, 5, (filters, into, kernel, kernel))
    wanted = torch.nn.functional.conv2d(x.double(), w.double(), stride=stride, padding=padding)
    turn = (0, 1, 2, 3) if layout == "NCHW" else (0, 2, 3, 1)
    memory = np.zeros(3 * 4096 // 4)
    for base, tensor in ((0, x), (4096 // 4, w)):
        memory[base : base + tensor.numel()] = tensor.permute(turn).reshape(-1)
    total, factor = 0.0, 0.0
    for address, kind in zip((trace.addresses // 4).tolist(), trace.kinds.tolist(), strict=True):
        if kind == 4:
            total = memory[address]
        elif kind == 0:
            factor = memory[address]
        elif kind == 2:
            total += factor * memory[address]
        else:
            memory[address] = total
    read_back = memory[2 * 1024 : 2 * 1024 + wanted.numel()]
    assert read_back.tolist() == wanted.permute(turn).reshape(-1).tolist()


# --- numbers known beforehand ------------------------------------------------------------


@pytest.mark.parametrize(("tile", "misses"), [(None, 270_336), (4, 73_728), (8, 69_632), (16, 46_944), (32, 278_528)])
def test_sixty_four_cubed_in_a_thousand_words(tile: int | None, misses: int) -> None:
    result = simulate(gemm_trace(64, 64, 64, WORD, tile), Cache(Q_(4, "KiB"), WORD))
    assert result.last.misses == misses
    if tile is None:
        assert dict(result.last.by_operand) == {"A": 64**2, "B": 64**3, "C": 64**2}, "B comes anew for every row of A"


def test_by_hand() -> None:
    """Two lines of two words, direct-mapped: 0 and 16 fight for one set, 4 sits with 0."""
    trace = trace_of([0, 4, 16, 0, 8, 8], WORD, writes=[1, 0, 0, 0, 1, 0])
    level = simulate(trace, Cache(Q_(16, "byte"), Q_(8, "byte"), ways=1)).last
    assert (level.misses, level.hits, level.write_backs) == (4, 2, 2)
    assert dict(level.read_misses) == {"data": 2} and dict(level.write_misses) == {"data": 2}
    assert_quantity_close(level.traffic, Q_(6 * 8, "byte"))
    assert simulate(trace, Cache(Q_(16, "byte"), Q_(8, "byte"))).last.misses == 3, "16 is least recent and goes"
    assert level.miss_rate == pytest.approx(4 / 6)


def test_a_dirty_line_is_written_once_a_level() -> None:
    """One write: both levels fetch the line; only its one copy is written back through each."""
    caches = Cache(Q_(64, "byte"), Q_(16, "byte"), name="L1"), Cache(Q_(256, "byte"), Q_(16, "byte"), name="L2")
    result = simulate(trace_of([0], WORD, writes=[1]), *caches)
    assert [(level.misses, level.write_backs) for level in result.levels] == [(1, 1), (1, 1)]
    assert "L1" in result.explain() and "no prefetching" in result.explain()


@pytest.mark.parametrize(("stride", "misses"), [(1, 64), (2, 128), (8, 512), (16, 1024), (64, 1024)])
def test_strides_use_less_and_less_of_a_line(stride: int, misses: int) -> None:
    trace = strided_trace(1024, stride, WORD)
    assert simulate(trace, Cache(Q_(32, "KiB"), Q_(64, "byte"), 8)).last.misses == misses


def test_a_power_of_two_stride_falls_into_one_set() -> None:
    """Sixteen lines 4 KiB apart: room for five hundred, but they share one set of eight."""
    trace = strided_trace(16, 1024, WORD, passes=10)
    eight_way, free = (Cache(Q_(32, "KiB"), Q_(64, "byte"), ways) for ways in (8, None))
    assert simulate(trace, eight_way).last.misses == 160
    assert simulate(trace, free).last.misses == 16


def test_gathers_miss_on_every_row_once_the_table_is_large() -> None:
    rows = RNG.permutation(100_000)[:2000]
    small_rows = simulate(gathered_trace(rows, 4, WORD), Cache(Q_(32, "KiB"), Q_(64, "byte"), 8)).last
    whole_lines = simulate(gathered_trace(rows, 16, WORD), Cache(Q_(32, "KiB"), Q_(64, "byte"), 8)).last
    assert small_rows.misses > 1900, "sixteen bytes used of each line that comes"
    assert whole_lines.misses == 2000


def test_loop_order_alone() -> None:
    """Row-major B: with j innermost lines are used up; with i innermost nothing is."""
    cache = Cache(Q_(8, "KiB"), Q_(64, "byte"), 8)
    misses = {
        o: simulate(gemm_trace(96, 96, 96, WORD, order=o, registers=True), cache).last.misses
        for o in ("mkn", "mnk", "nkm")
    }
    assert 2 * misses["mkn"] < misses["mnk"] < misses["nkm"]


def test_an_lru_cache_needs_more_space_than_a_buffer() -> None:
    """Three tiles of sixteen are 768 words; a cache of 768 misses far more, and needs over 1,024."""
    explicit = gemm_traffic(64, 64, 64, 16).words
    curve = miss_curve(gemm_trace(64, 64, 64, WORD, 16), WORD)
    assert explicit == 36_864
    assert curve.at(Q_(768 * 4, "byte")) > 1.2 * explicit
    enough = curve.smallest_capacity(explicit)
    assert 1024 * 4 < enough.m_as("byte") < 3 * 768 * 4
    assert curve.at(enough) <= explicit < curve.at(enough - WORD)


@pytest.mark.parametrize("line", [4, 32, 12])
def test_the_miss_curve_is_the_simulator_at_every_capacity(line: int) -> None:
    trace = random_trace(3000, 900)
    curve = miss_curve(trace, Q_(line, "byte"))
    for lines in (1, 2, 3, 7, 40, 111, 5000):
        capacity = Q_(lines * line, "byte")
        assert curve.at(capacity) == simulate(trace, Cache(capacity, Q_(line, "byte"))).last.misses
    assert curve.misses[0] == len(trace)
    assert curve.misses[-1] == len(np.unique(trace.addresses // line)), "an endless cache misses first touches only"


def test_far_apart_addresses_cost_no_memory() -> None:
    trace = trace_of(np.array([0, 2**50, 0, 2**50 + 64]), WORD)
    assert simulate(trace, Cache(Q_(32, "KiB"), Q_(64, "byte"), 8)).last.misses == 3


# --- Little's law, sectors, layouts ------------------------------------------------------


def test_bytes_in_flight() -> None:
    assert_quantity_close(formulas.bytes_in_flight(Q_(2039, "GB/s"), Q_(500, "ns")), Q_(1.0195, "MB"))
    assert_quantity_close(formulas.bytes_in_flight(Q_(3350, "GB/s"), Q_(600, "ns")), Q_(2.01, "MB"))
    assert_quantity_close(formulas.latency_bound_bandwidth(Q_(1.0195, "MB"), Q_(500, "ns")), Q_(2039, "GB/s"))


def test_distance() -> None:
    """Five centimetres at half the speed of light, and twenty millimetres likewise."""
    assert_quantity_close(formulas.flight_time(Q_(5, "cm"), 0.5), Q_(334, "ps"), rtol=2e-3)
    assert_quantity_close(formulas.flight_time(Q_(20, "mm"), 0.5), Q_(133, "ps"), rtol=5e-3)
    assert_quantity_close(formulas.wire_delay(Q_(20, "mm"), Q_(70, "ps/mm")), Q_(1.4, "ns"))


@pytest.mark.parametrize(
    ("stride", "width", "sectors", "efficiency"),
    [
        (1, 4, 4, 1.0),
        (2, 4, 8, 0.5),
        (8, 4, 32, 0.125),
        (100, 4, 32, 0.125),
        (1, 2, 2, 1.0),
        (16, 2, 32, 0.0625),
        (0, 4, 1, 0.125),
        (1, 8, 8, 1.0),
    ],
)
def test_sectors_of_a_warp(stride: int, width: int, sectors: int, efficiency: float) -> None:
    load = strided_access(stride, Q_(width, "byte"))
    assert load.sectors == sectors
    assert load.efficiency.magnitude == pytest.approx(efficiency)


def test_a_shifted_warp_touches_one_sector_more() -> None:
    assert [strided_access(1, WORD, offset=offset).sectors for offset in (0, 1, 7, 8)] == [4, 5, 5, 4]
    assert warp_access([30], WORD).sectors == 2, "an element that straddles two sectors"


@pytest.mark.parametrize("shape", [(3, 3, 3), (5, 2, 7)])
def test_layouts_are_torchs(shape: tuple[int, int, int]) -> None:
    image = torch.zeros(2, *shape)
    assert layout_strides(*shape, "NCHW") == image.stride()
    assert layout_strides(*shape, "NHWC") == image.to(memory_format=torch.channels_last).stride()


# --- what is refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: Cache(Q_(0, "KiB"), WORD),
            ArgumentError,
            r"Cache\(\): `capacity` must be a whole number >= 1 in byte",
        ),
        (
            lambda: Cache(Q_(1.5, "byte"), WORD),
            ArgumentError,
            r"`capacity` must be a whole number >= 1 in byte, got 1.5 B",
        ),
        (
            lambda: Cache(32768, WORD),
            ArgumentUnitError,
            r"`capacity` must be a quantity in byte, got the bare number 32768",
        ),  # type: ignore[arg-type]
        (
            lambda: Cache(Q_(100, "GB/s"), WORD),
            ArgumentUnitError,
            r"`capacity` must be a quantity in byte, got 100 GB/s",
        ),
        (lambda: Cache(Q_(float("nan"), "byte"), WORD), ArgumentError, r"`capacity` must be a whole number"),
        (
            lambda: Cache(Q_(32, "KiB"), Q_(48, "byte")),
            ArgumentError,
            r"`line` of 48 bytes must divide the capacity of 32768 bytes\. Write e\.g\. line=Q_\(32, \"byte\"\)",
        ),
        (
            lambda: Cache(Q_(4, "KiB"), Q_(8, "KiB")),
            ArgumentError,
            r"`line` of 8192 bytes must divide .* line=Q_\(4096",
        ),
        (
            lambda: Cache(Q_(32, "KiB"), Q_(64, "byte"), 7),
            ArgumentError,
            r"`ways` of 7 must divide the 512 lines of the cache\. Write e\.g\. ways=8",
        ),
        (lambda: Cache(Q_(32, "KiB"), Q_(64, "byte"), 2.5), ArgumentError, r"`ways` must be a whole number >= 1"),  # type: ignore[arg-type]
        (lambda: simulate(trace_of([0], WORD)), ArgumentError, r"simulate\(\): give at least one cache"),
        (
            lambda: simulate(trace_of([0], Q_(8, "byte")), Cache(Q_(4, "KiB"), WORD)),
            ArgumentError,
            r"`line` of cache is 4 bytes, not a multiple of 8 bytes",
        ),
        (
            lambda: simulate(
                trace_of([0], WORD), Cache(Q_(4, "KiB"), Q_(64, "byte")), Cache(Q_(3, "KiB"), Q_(96, "byte"), name="L2")
            ),
            ArgumentError,
            r"`line` of L2 is 96 bytes, not a multiple of 64 bytes.*line=Q_\(128",
        ),
        (lambda: trace_of([], WORD), ArgumentError, r"trace_of\(\): `addresses` must be a list of whole numbers >= 0"),
        (lambda: trace_of([-4], WORD), ArgumentError, r"`addresses` must be a list of whole numbers >= 0, got \[-4\]"),
        (lambda: trace_of([0.5], WORD), ArgumentError, r"`addresses` must be a list of whole numbers"),  # type: ignore[list-item]
        (lambda: trace_of([2], WORD), ArgumentError, r"must be whole multiples of the element size, 4 bytes"),
        (lambda: trace_of([0, 4], WORD, writes=[1]), ArgumentError, r"`writes` must be 2 whole numbers from 0 to 1"),
        (lambda: trace_of([0], WORD, operands=[1]), ArgumentError, r"`operands` must be 1 whole numbers from 0 to 0"),
        (
            lambda: gemm_trace(1000, 1000, 1000, WORD),
            ArgumentError,
            r"would have 4,000,000,000 accesses, more than the 50,000,000 that are simulated\. Use gemm_traffic\(\)",
        ),
        (
            lambda: gemm_trace(10**6, 10**6, 10**6, WORD),
            ArgumentError,
            r"would have 4,000,000,000,000,000,000 accesses",
        ),
        (lambda: conv2d_trace(32, 256, 256, 56, 3, WORD), ArgumentError, r"Use conv2d_traffic\(\) for the closed form"),
        (lambda: conv2d_trace(1, 1, 1, 2, 5, WORD, padding=0), ArgumentError, r"`kernel` of 5 does not fit into 2"),
        (
            lambda: conv2d_trace(1, 1, 1, 4, 3, WORD, layout="NCWH"),
            UnknownNameError,
            r"`layout` must be one of NCHW, NHWC",
        ),
        (lambda: strided_trace(10**9, 1, WORD), ArgumentError, r"1,000,000,000 accesses"),
        (lambda: gathered_trace([-1], 4, WORD), ArgumentError, r"gathered_trace\(\): `rows` must be a list of whole"),
        (
            lambda: gemm_trace(4, 4, 4, Q_(0.5, "byte")),
            ArgumentError,
            r"`element_size` must be a whole number >= 1 in byte",
        ),
        (lambda: miss_curve(trace_of([0], WORD), Q_(6, "byte")), ArgumentError, r"miss_curve\(\): `line` of 6 bytes"),
        (lambda: miss_curve(trace_of([0], WORD), WORD).at(Q_(6, "byte")), ArgumentError, r"must be whole lines of 4"),
        (lambda: miss_curve(trace_of([0], WORD), WORD).smallest_capacity(0), ArgumentError, r"must be at least 1, the"),
        (
            lambda: formulas.bytes_in_flight(Q_(2039, "GB"), Q_(1, "ns")),
            ArgumentUnitError,
            r"`bandwidth` must be a quantity in byte/s, got 2039 GB",
        ),
        (lambda: formulas.flight_time(Q_(1, "m"), 1.1), ArgumentError, r"`share_of_light_speed` must be"),
        (lambda: strided_access(-1, WORD), ArgumentError, r"strided_access\(\): `stride` must be a whole number >= 0"),
        (
            lambda: strided_access(1, Q_(0.5, "byte")),
            ArgumentError,
            r"`element_size` must be a whole number >= 1 in byte",
        ),
        (lambda: warp_access([], WORD), ArgumentError, r"warp_access\(\): `addresses` must be a list of whole"),
        (lambda: layout_strides(0, 1, 1), ArgumentError, r"layout_strides\(\): `channels` must be a whole number >= 1"),
    ],
)
def test_one_clear_error(call, error: type[Exception], words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        call()


def test_the_limit_is_the_limit() -> None:
    """Four accesses for each multiply-accumulate: one more than a quarter of the limit is too long."""
    with pytest.raises(ArgumentError, match=f"{MOST_ACCESSES + 4:,} accesses"):
        gemm_trace(1, 1, MOST_ACCESSES // 4 + 1, WORD)


@pytest.mark.parametrize(("capacity", "hint"), [(6, 4), (2, 4), (11, 8)])
def test_a_capacity_that_is_no_whole_number_of_lines_is_answered_with_one_that_is(capacity: int, hint: int) -> None:
    curve = miss_curve(trace_of([0], WORD), WORD)
    with pytest.raises(ArgumentError, match=rf'capacity=Q_\({hint}, "byte"\)'):
        curve.at(Q_(capacity, "byte"))
    assert curve.at(Q_(hint, "byte")) == 1
