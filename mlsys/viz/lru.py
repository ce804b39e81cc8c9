"""Misses of a blocked matrix product in LRU caches, simulated or taken from a stored table."""

import functools
import json
import math

from mlsys.inputs import shipped_text
from mlsys.models.cache import MissCurve, gemm_trace, miss_curve
from mlsys.units import Q_

SIZES = (32, 48, 64)
"""Matrix edges in the stored table."""
EDGES: tuple[int, ...] = (1, 2, 4, 6, 8, 10, 12, 15, 16, 18, 19, 20, 24, 26, 28, 30, 31, 32, 33, 40, 48, 64)
"""Tile edges of the slider; the last one means no blocking for matrices of 64. ``tools/lru_table.py`` stores more."""
CAPACITIES = (64, 128, 256, 512, 768, 1024, 2048, 4096, 8192)
"""Cache capacities in the stored table, words."""
LINES = (1, 4, 16)
"""Line sizes in the stored table, words."""
_WORD = Q_(4, "byte")
_FILE = "viz/data/lru_words.json"


@functools.lru_cache(maxsize=256)
def lru_curve(size: int, tile: int, line_words: int = 1) -> MissCurve:
    """Return the miss curve of a blocked product of ``size``³ in LRU caches; simulated once, then cached.

    Examples
    --------
    >>> lru_curve(64, 16).at(Q_(4, "KiB"))
    46944
    """
    return miss_curve(gemm_trace(size, size, size, _WORD, tile), Q_(4 * line_words, "byte"))


def lru_cliff(cache_words: int) -> int:
    """Return the largest tile edge with T² + 3T < S, up to which blocking helps an LRU cache.

    Between two uses of an element of B, the inner loops touch a tile of B, two rows of a tile
    of A and one of C.

    Examples
    --------
    >>> lru_cliff(1024), lru_words(64, 30, 1024), lru_words(64, 31, 1024)
    (30, 36542, 270647)
    """
    return (math.isqrt(5 + 4 * cache_words) - 3) // 2


def lru_words(size: int, tile: int, words: int, line_words: int = 1) -> int:
    """Return the words that an LRU cache of ``words`` moves for a blocked product of ``size``³.

    Parameters
    ----------
    size, tile
        Edges of the matrices and of the tile, words; a tile is clipped to the matrix.
    words, line_words
        Capacity of the (fully associative) cache, and of a line, words.

    Returns
    -------
    int
        Taken from the table for the values that the tiling lab offers, simulated for others.

    Examples
    --------
    >>> lru_words(64, 16, 1024)
    46944
    """
    tile = min(tile, size)
    try:
        return _table()[size, tile, line_words][CAPACITIES.index(words)]
    except (KeyError, ValueError):
        return _simulated(size, tile, words, line_words)


def _simulated(size: int, tile: int, words: int, line_words: int) -> int:
    return lru_curve(size, tile, line_words).at(Q_(4 * words, "byte")) * line_words


@functools.cache
def _table() -> dict[tuple[int, int, int], list[int]]:
    stored = json.loads(shipped_text("mlsys", _FILE))
    table = {}
    for key, moved in stored.items():
        size, words, line_words = map(int, key.split())
        table[size, words, line_words] = moved
    return table
