"""The optimal tile of a matrix product for one fast memory, with a proof.

With one resident tile for each operand, the words moved are

    M K x_n + K N x_m + M N (2 x_k - 1),        x_d = ceil(size of d / tile of d),

where x_d of the innermost loop is 1, because the operand without that loop is stationary. The sum separates by loop;
only the capacity t_m t_k + t_k t_n + t_m t_n <= S couples the loops. Hence

1. the tile of the innermost loop needs space and saves nothing: 1 is optimal;
2. of all tiles with one trip count, the smallest needs the least space: about 2 sqrt(size) tiles per loop remain;
3. given one of the two other tiles, a larger last tile is better.

The remaining search is over one loop for each of the three choices, in exact arithmetic.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from mlsys.errors import ArgumentError
from mlsys.provenance import traced
from mlsys.unit_checks import checked_choice, checked_count, plain_arguments

TileSet = Literal["all", "div"]
TILE_SETS: tuple[TileSet, ...] = get_args(TileSet)
ORDERS = 6


@dataclass(frozen=True)
class TwoLevelMapping:
    """The least traffic of a matrix product through a fast memory of ``capacity`` words.

    Attributes
    ----------
    m, n, k, capacity, tile_set
        The problem.
    words
        Words moved: reads of A and B, reads and writes of C.
    tile
        Tile sizes (m, n, k).
    order
        Loops, outermost first.
    a, b, c_reads, c_writes
        Components of ``words``.
    compulsory
        MK + KN + MN.
    smith_bound
        2MNK/√S - 2S; negative if not informative.
    bound
        The larger of both, rounded up: a lower bound of all schedules of the classical algorithm.
    covered
        Tiles and orders that the proof covers, including infeasible ones.
    """

    m: int
    n: int
    k: int
    capacity: int
    tile_set: TileSet
    words: int
    tile: tuple[int, int, int]
    order: str
    a: int
    b: int
    c_reads: int
    c_writes: int
    compulsory: int
    smith_bound: float
    bound: int
    covered: int

    @property
    def ratio(self) -> float:
        """Words over the lower bound: 1 means that no schedule is better."""
        return float(Fraction(self.words, self.bound))


@plain_arguments
def two_level_words(m: int, n: int, k: int, tile: tuple[int, int, int], order: str) -> tuple[int, int, int, int]:
    """Return the words of A, of B, of C read and of C written, for one tile and order.

    Examples
    --------
    >>> two_level_words(512, 256, 32, (1, 16, 32), "nmk")
    (262144, 8192, 0, 131072)
    """
    sizes = dict(zip("mnk", (m, n, k), strict=True))
    trips = {dim: -(-sizes[dim] // size) for dim, size in zip("mnk", tile, strict=True)}
    moving = [dim for dim in order if trips[dim] > 1]
    again = {}
    for lacking in "mnk":
        outside = moving[:]
        while outside and outside[-1] == lacking:
            outside.pop()
        again[lacking] = trips[lacking] if lacking in outside else 1
    return m * k * again["n"], k * n * again["m"], m * n * (again["k"] - 1), m * n * again["k"]


@plain_arguments
def smallest_tiles(size: int) -> list[int]:
    """Return the smallest tile for each trip count, in increasing order: about 2 √size of them.

    Examples
    --------
    >>> smallest_tiles(10)
    [1, 2, 3, 4, 5, 10]
    """
    tiles, tile = [], 1
    while tile <= size:
        trips = -(-size // tile)
        tile = -(-size // trips)
        tiles.append(tile)
        if trips == 1:
            break
        tile = -(-size // (trips - 1))
    return tiles


def divisors(size: int) -> list[int]:
    """Return the divisors of a size, in increasing order."""
    low = [tile for tile in range(1, math.isqrt(size) + 1) if size % tile == 0]
    return sorted({*low, *(size // tile for tile in low)})


@plain_arguments
def safe_bound(m: int, n: int, k: int, capacity: int) -> int:
    """Return a lower bound of the words moved by any schedule of the classical algorithm.

    The larger of MK + KN + MN and 2MNK/√S - 2S, rounded up. The often quoted 2MNK/√S + MN is not a lower bound: short
    sums can stay below it.

    References
    ----------
    J.-W. Hong, H. T. Kung, I/O complexity: the red-blue pebble game, STOC 1981.
    T. M. Smith, B. Lowery, J. Langou, R. A. van de Geijn, A tight I/O lower bound for
    matrix multiplication, arXiv:1702.02017, 2017 (and 2019).

    Examples
    --------
    >>> safe_bound(512, 256, 32, 1024), 2 * 512 * 256 * 32 // 32 + 512 * 256
    (260096, 393216)
    """
    macs = m * n * k
    root = math.isqrt(4 * macs * macs // capacity)  # floor of 2MNK/√S, in whole numbers
    exact = root * root * capacity == 4 * macs * macs
    return max(m * k + k * n + m * n, root - 2 * capacity + (not exact))


@traced
def best_two_level(m: int, n: int, k: int, capacity: int, tile_set: TileSet = "all") -> TwoLevelMapping:
    """Return the tile and loop order with the least traffic.

    Parameters
    ----------
    m, n, k
        Sizes of C[m, n] += A[m, k] B[k, n]; any size, exact.
    capacity
        Words of the fast memory, which holds one tile of A, of B and of C.
    tile_set
        ``"all"`` tile sizes, with ragged ends, or ``"div"``, divisors only.

    Raises
    ------
    ArgumentError
        If a size is not a whole number of at least 1, or the memory cannot hold single words.
    UnknownNameError
        If the tile set is unknown.

    Examples
    --------
    >>> best = best_two_level(512, 256, 32, 1024)
    >>> best.words, best.tile, best.order, round(best.ratio, 3)
    (286720, (1, 29, 32), 'nkm', 1.102)
    """
    given = {"m": m, "n": n, "k": k, "capacity": capacity}
    m, n, k, capacity = (checked_count("best_two_level", name, v) for name, v in given.items())
    checked_choice("best_two_level", "tile_set", tile_set, TILE_SETS)
    if capacity < 3:
        raise ArgumentError(
            f"best_two_level(): `capacity` must hold one word of A, of B and of C, got {capacity}. "
            "Write e.g. capacity=3"
        )
    sizes = dict(zip("mnk", (m, n, k), strict=True))
    tiles = {dim: smallest_tiles(size) if tile_set == "all" else divisors(size) for dim, size in sizes.items()}
    candidates = []
    for inner, (first, second) in (("k", "mn"), ("m", "nk"), ("n", "mk")):
        for first_tile, second_tile in _largest_pairs(tiles[first], tiles[second], capacity):
            tile = {first: first_tile, second: second_tile, inner: 1}
            shape = (tile["m"], tile["n"], tile["k"])
            order = first + second + inner
            candidates.append((sum(two_level_words(m, n, k, shape, order)), shape, order))
    words, shape, order = min(candidates, key=lambda candidate: candidate[0])
    a, b, c_reads, c_writes = two_level_words(m, n, k, shape, order)
    everything = m * n * k if tile_set == "all" else math.prod(len(choice) for choice in tiles.values())
    return TwoLevelMapping(
        m, n, k, capacity, tile_set, words, shape, order, a, b, c_reads, c_writes,
        compulsory=m * k + k * n + m * n,
        smith_bound=2 * m * n * k / math.sqrt(capacity) - 2 * capacity,
        bound=safe_bound(m, n, k, capacity),
        covered=ORDERS * everything,
    )  # fmt: skip


def _largest_pairs(first: Sequence[int], second: Sequence[int], capacity: int) -> list[tuple[int, int]]:
    """Return, for every first tile, the largest second one such that both and their product fit."""
    pairs, last = [], len(second) - 1
    for size in first:
        while last >= 0 and size * second[last] + size + second[last] > capacity:
            last -= 1
        if last < 0:
            break
        pairs.append((size, second[last]))
    return pairs
