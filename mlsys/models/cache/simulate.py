"""Simulation of a trace on a hierarchy of caches."""

import itertools
from dataclasses import dataclass

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.models.cache.geometry import Cache
from mlsys.models.cache.trace import Trace
from mlsys.provenance import traced
from mlsys.units import Quantity, ureg


@dataclass(frozen=True)
class LevelCounts:
    """Accesses, misses and write-backs of one level of cache.

    Attributes
    ----------
    cache
        Its geometry.
    accesses
        Reads and writes that reach it: all for the first level, the misses of the previous
        level for the others.
    read_misses, write_misses
        Misses by operand.
    write_backs
        Dirty lines written to the next level, including those flushed at the end.
    """

    cache: Cache
    accesses: int
    read_misses: FrozenDict[str, int]
    write_misses: FrozenDict[str, int]
    write_backs: int

    @property
    def misses(self) -> int:
        """Total misses."""
        return sum(self.by_operand.values())

    @property
    def by_operand(self) -> FrozenDict[str, int]:
        """Misses by operand, reads plus writes."""
        return FrozenDict({name: self.read_misses[name] + self.write_misses[name] for name in self.read_misses})

    @property
    def hits(self) -> int:
        """Number of hits."""
        return self.accesses - self.misses

    @property
    def miss_rate(self) -> float:
        """Misses per access."""
        return self.misses / self.accesses if self.accesses else 0.0

    @property
    def traffic(self) -> Quantity:
        """Bytes between this level and the next: lines fetched and lines written back."""
        moved: Quantity = ureg.Quantity((self.misses + self.write_backs) * self.cache.line_bytes, "byte")
        return moved


@dataclass(frozen=True)
class CacheResult:
    """Counts of a trace on a hierarchy of caches.

    Attributes
    ----------
    accesses
        Length of the trace.
    levels
        Counts of each level, the one closest to the core first.
    assumptions
        Assumptions of the simulation, in words.
    """

    accesses: int
    levels: tuple[LevelCounts, ...]
    assumptions: tuple[str, ...] = (
        "least recently used, write-back, write-allocate",
        "each level serves the misses of the previous one",
        "a write-back does not count as a use, and bypasses a level without the line",
        "dirty lines are written back at the end",
        "no prefetching, no other program",
    )

    @property
    def last(self) -> LevelCounts:
        """The level next to memory."""
        return self.levels[-1]

    def explain(self) -> str:
        """Return the counts as a readable table."""
        lines = [f"{self.accesses:,} accesses"]
        for level in self.levels:
            by = ", ".join(f"{name} {number:,}" for name, number in level.by_operand.items())
            lines += [
                f"  {level.cache.name}: {level.misses:,} misses of {level.accesses:,}, {level.miss_rate:.2%}",
                f"    by operand: {by}",
                f"    {level.write_backs:,} lines written back, {level.traffic.to_compact():.4g} moved",
            ]
        lines.append("Assumptions:")
        lines += [f"  - {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)


@traced
def simulate(trace: Trace, *caches: Cache) -> CacheResult:
    """Run a trace through one or more levels of cache.

    Parameters
    ----------
    trace
        Accesses of the program.
    *caches
        Levels, the one closest to the core first.

    Returns
    -------
    CacheResult
        Misses by level and operand, lines written back, bytes moved.

    Raises
    ------
    ArgumentError
        If no cache is given, an element straddles lines, or the line size of a level does not
        divide that of the next.

    Examples
    --------
    >>> from mlsys.models.cache import gemm_trace
    >>> from mlsys.units import Q_
    >>> word = Q_(4, "byte")
    >>> thousand = Cache(Q_(4, "KiB"), line=word)
    >>> for tile in (None, 8, 16, 32):
    ...     print(tile, simulate(gemm_trace(64, 64, 64, word, tile), thousand).last.misses)
    None 270336
    8 69632
    16 46944
    32 278528
    """
    if not caches:
        raise ArgumentError(
            'simulate(): give at least one cache, e.g. Cache(Q_(32, "KiB"), line=Q_(64, "byte"), ways=8)'
        )
    widths = (trace.element_bytes, *(cache.line_bytes for cache in caches))
    for cache, (narrow, wide) in zip(caches, itertools.pairwise(widths), strict=True):
        if wide % narrow:
            raise ArgumentError(
                f"simulate(): `line` of {cache.name} is {wide} bytes, not a multiple of {narrow} bytes: "
                f'an access would straddle two lines. Write e.g. line=Q_({narrow * -(-wide // narrow)}, "byte")'
            )
    addresses, kinds, accesses = trace.addresses, trace.kinds, len(trace)
    levels = []
    for index, cache in enumerate(caches):
        ends = index == 0, index == len(caches) - 1
        counts, addresses, kinds = _level(cache, addresses, kinds, accesses, trace.names, *ends)
        accesses = counts.misses
        levels.append(counts)
    return CacheResult(len(trace), tuple(levels))


def _level(
    cache: Cache,
    addresses: np.ndarray,
    kinds: np.ndarray,
    accesses: int,
    names: tuple[str, ...],
    first: bool,
    last: bool,
) -> tuple[LevelCounts, np.ndarray, np.ndarray]:
    """Return the counts of one level, and the addresses and kinds of its requests to the next."""
    from mlsys.models.cache.kernels import run_level, run_one_set

    ids, numbers = dense_lines(addresses, cache.line_bytes)
    sets = cache.sets
    ways = min(cache.lines // sets, len(numbers))  # more ways than distinct lines never fill
    events = np.empty(0 if last else 2 * len(ids) + min(sets * ways, len(numbers)), np.int32)
    event_kinds = np.empty(len(events), np.uint8)
    misses = np.zeros(256, np.int64)
    if sets == 1:
        out, backs = run_one_set(ids, kinds, len(numbers), ways, first, events, event_kinds, misses)
    else:
        where = np.full(len(numbers), -1, np.int32)
        out, backs = run_level(ids, kinds, where, numbers, sets, ways, first, events, event_kinds, misses)
    counts = LevelCounts(
        cache=cache,
        accesses=accesses,
        read_misses=FrozenDict({name: int(misses[2 * index]) for index, name in enumerate(names)}),
        write_misses=FrozenDict({name: int(misses[2 * index + 1]) for index, name in enumerate(names)}),
        write_backs=int(backs),
    )
    return counts, numbers[events[:out]] * cache.line_bytes, event_kinds[:out]


def dense_lines(addresses: np.ndarray, line_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a dense id for the line of each address, and the line number of each id."""
    from mlsys.models.cache.kernels import line_range, numbered

    low, high = (int(end) // line_bytes for end in line_range(addresses)) if len(addresses) else (0, 0)
    if high - low < 4 * len(addresses) + 1_000_000:
        ids = np.empty(len(addresses), np.int32)
        if line_bytes & (line_bytes - 1):
            np.subtract(addresses // line_bytes, low, out=ids, casting="same_kind")
        else:
            numbered(addresses, line_bytes.bit_length() - 1, low, ids)
        return ids, np.arange(low, high + 1, dtype=np.int64)
    numbers, which = np.unique(addresses // line_bytes, return_inverse=True)
    return which.astype(np.int32), numbers
