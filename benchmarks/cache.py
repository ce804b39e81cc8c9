"""How many accesses a second the cache simulator takes, beside two others on the same trace."""

from collections import OrderedDict
from typing import Any

import pytest

from mlsys import Q_
from mlsys.models.cache import Cache, gemm_trace, miss_curve, simulate

WORD, LINE = Q_(4, "byte"), Q_(64, "byte")
L1 = Cache(Q_(32, "KiB"), LINE, ways=8, name="L1")
L2 = Cache(Q_(256, "KiB"), LINE, ways=8, name="L2")
WHOLE = Cache(Q_(32, "KiB"), LINE, name="any way")
TRACE = gemm_trace(96, 96, 96, WORD, 16)
LONG = gemm_trace(192, 192, 192, WORD, 16)
MISSES = simulate(TRACE, L1).last.misses


def note(benchmark: Any, name: str, accesses: int) -> None:
    benchmark.extra_info["name"] = name
    benchmark.extra_info["points"] = accesses


@pytest.mark.benchmark(group="cache")
def test_one_level(benchmark: Any) -> None:
    note(benchmark, "cache, 32 KiB in 8 ways", len(TRACE))
    assert benchmark(simulate, TRACE, L1).last.misses == MISSES


@pytest.mark.benchmark(group="cache")
def test_one_level_of_a_longer_trace(benchmark: Any) -> None:
    note(benchmark, "cache, 28 million accesses", len(LONG))
    benchmark(simulate, LONG, L1)


@pytest.mark.benchmark(group="cache")
def test_fully_associative(benchmark: Any) -> None:
    note(benchmark, "cache, fully associative, 28 million accesses", len(LONG))
    benchmark(simulate, LONG, WHOLE)


@pytest.mark.benchmark(group="cache")
def test_two_levels(benchmark: Any) -> None:
    note(benchmark, "cache, two levels", len(TRACE))
    assert benchmark(simulate, TRACE, L1, L2).levels[0].misses == MISSES


@pytest.mark.benchmark(group="cache")
def test_every_capacity_at_once(benchmark: Any) -> None:
    note(benchmark, "cache, every capacity at once", len(TRACE))
    benchmark(miss_curve, TRACE, LINE)


@pytest.mark.benchmark(group="cache")
def test_making_the_trace(benchmark: Any) -> None:
    note(benchmark, "cache, making the trace", len(TRACE))
    benchmark(gemm_trace, 96, 96, 96, WORD, 16)


@pytest.mark.benchmark(group="cache")
def test_ordered_dictionaries(benchmark: Any) -> None:
    note(benchmark, "ordered dictionaries, one level", len(TRACE))
    lines = (TRACE.addresses // 64).tolist()

    def run() -> int:
        sets: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(64)]
        misses = 0
        for line in lines:
            inside = sets[line % 64]
            if line in inside:
                inside.move_to_end(line)
            else:
                misses += 1
                if len(inside) == 8:
                    inside.popitem(last=False)
                inside[line] = None
        return misses

    assert benchmark.pedantic(run, rounds=3) == MISSES


@pytest.mark.benchmark(group="cache")
def test_pycachesim(benchmark: Any) -> None:
    cachesim = pytest.importorskip("cachesim", reason="pycachesim is installed by benchmarks/run.py alone")
    note(benchmark, "pycachesim, one level", len(TRACE))
    steps = [
        ((), (address,)) if kind & 1 else ((address,), ())
        for address, kind in zip(TRACE.addresses.tolist(), TRACE.kinds.tolist(), strict=True)
    ]

    def run() -> int:
        memory = cachesim.MainMemory()
        cache = cachesim.Cache("L1", 64, 8, 64, "LRU")
        memory.load_to(cache)
        memory.store_from(cache)
        simulator = cachesim.CacheSimulator(cache, memory)
        simulator.loadstore(steps, length=4)
        return int(cache.MISS_count)

    assert benchmark.pedantic(run, rounds=3) == MISSES
