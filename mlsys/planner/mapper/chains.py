"""Chains of tiles: for each loop, all multi-level tilings that can be optimal.

A chain lists tile sizes from the outermost level to the innermost; each is a multiple of the next, so that only the end
of the loop is ragged. For each trip count at each level only the smallest tile can be optimal: it needs the least space
and moves as much.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.mapping.iteration import IterationSpace
from mlsys.planner.mapper.two_level import smallest_tiles

Numbers = NDArray[Any]
_MOST = 500_000  # limit of the chains of a side: some 100 bytes each
_FEWER = (None, 256, 128, 64, 32, 16, 8, 6, 4, 3, 2)  # limits of tiles per tile, tried where all would be too many


def tile_chains(size: int, levels: int, most: int | None = None) -> Numbers:
    """Return the chains of a loop, shape (chains, levels), outermost tile first.

    Parameters
    ----------
    size
        Size of the loop.
    levels
        Number of tiling levels.
    most
        Approximate number of inner tiles kept for each tile, from the smallest to the largest; all by default.

    Examples
    --------
    >>> tile_chains(3, 2).tolist()
    [[1, 1], [2, 1], [3, 1], [2, 2], [3, 2], [3, 3]]
    """
    chains = _chains(size, levels, most, math.inf)
    assert chains is not None
    return chains


def chains_within(size: int, levels: int, limit: float) -> tuple[Numbers, bool]:
    """Return at most about ``limit`` chains of a loop, and whether they include all that can be optimal.

    Examples
    --------
    >>> few, complete = chains_within(10**9, 2, 1000)
    >>> len(few) <= 1000, complete
    (True, False)
    """
    for most in _FEWER:
        chains = _chains(size, levels, most, limit)
        if chains is not None:
            return chains, most is None
    coarsest = _chains(size, levels, 1, math.inf)
    assert coarsest is not None, "without a limit there are always chains"
    return coarsest, False


def _chains(size: int, levels: int, most: int | None, limit: float) -> Numbers | None:
    """Return the chains, or None if there are more than ``limit``."""
    if most is None and _how_many(np.array([size])).sum() > limit:
        return None
    chains = _tiles(size, most)[:, None]
    for _ in range(levels - 1):
        inner = chains[:, 0]
        trips, which = np.unique(-(-size // inner), return_inverse=True)
        counts = _how_many(trips)[which]
        if (counts if most is None else np.minimum(counts, most)).sum() > limit:
            return None
        factors = [_tiles(int(trip), most) for trip in trips]
        counts = np.array([len(each) for each in factors])[which]
        around = np.concatenate([factors[level] for level in which]) * np.repeat(inner, counts)
        chains = np.column_stack([np.minimum(around, size), np.repeat(chains, counts, axis=0)])
    return chains


def _how_many(trips: Numbers) -> Numbers:
    """Return the number of tiles from :func:`smallest_tiles`: 1 + ⌊(size - 1) / x⌋ for whole x."""
    below = trips - 1
    root = np.sqrt(below.astype(float)).astype(np.int64)
    root += (root + 1) ** 2 <= below
    root -= root**2 > below
    count: Numbers = 2 * root + 1 - (below // np.maximum(root, 1) == root)
    return np.maximum(count, 1)


def _tiles(size: int, most: int | None) -> Numbers:
    """Return the smallest tile for each trip count, or for ``most`` evenly spread trip counts."""
    if most is None or _how_many(np.array([size]))[0] <= most:
        return np.array(smallest_tiles(size), dtype=np.int64)
    trips = np.unique(np.geomspace(1, size, most).round().astype(np.int64))
    return np.unique(-(-size // trips))


@dataclass(frozen=True)
class Side:
    """Loops that are irrelevant to exactly one operand, tiled together.

    Attributes
    ----------
    dims
        The loops.
    tiles
        For each loop, an array of chains by levels: tile sizes, outermost first.
    elements
        Chains by levels: product of the tiles.
    trips
        Chains by levels + 1: number of tiles of the whole loop; the first column is 1.
    still
        Chains by levels: whether no loop of the side has more than one iteration there.
    size
        Product of the loops.
    complete
        Whether these are all chains that can be optimal; if that would be too many, some are omitted.
    """

    dims: tuple[str, ...]
    tiles: dict[str, Numbers]
    elements: Numbers
    trips: Numbers
    still: Numbers
    size: int
    complete: bool

    def __len__(self) -> int:
        return len(self.elements)


def _side(dims: tuple[str, ...], space: IterationSpace, levels: int) -> Side:
    chains, complete = _together([space.sizes[dim] for dim in dims], levels)
    picks = np.meshgrid(*(np.arange(len(chain)) for chain in chains), indexing="ij")
    tiles = {dim: chain[pick.ravel()] for dim, chain, pick in zip(dims, chains, picks, strict=True)}
    elements = np.prod([tiles[dim] for dim in dims], axis=0)
    counts = np.prod([-(-space.sizes[dim] // tiles[dim]) for dim in dims], axis=0)
    trips = np.concatenate([np.ones((len(counts), 1), dtype=np.int64), counts], axis=1)
    size = int(np.prod([space.sizes[dim] for dim in dims]))
    return Side(dims, tiles, elements, trips, trips[:, 1:] == trips[:, :-1], size, complete)


def _together(sizes: Sequence[int], levels: int) -> tuple[list[Numbers], bool]:
    """Return the combined chains of some loops, at most ``_MOST``."""
    for most in _FEWER:
        per_loop: list[Numbers] = []
        for size in sizes:
            chains = _chains(size, levels, most, _MOST / math.prod(map(len, per_loop)))
            if chains is None:
                break
            per_loop.append(chains)
        else:
            return per_loop, most is None
    return [tile_chains(size, levels, 1) for size in sizes], False


def sides(space: IterationSpace, levels: int) -> tuple[Side, Side, Side]:
    """Return the loops irrelevant to the second input, to the output, and to the first input.

    For a matrix product these are m, k and n; for a convolution b·p·q, c·r·s and k.

    Examples
    --------
    >>> from mlsys.mapping import gemm_space
    >>> [side.dims for side in sides(gemm_space(4, 4, 4), 1)]
    [('m',), ('k',), ('n',)]
    """
    lacking = (space.inputs[1], space.output, space.inputs[0])
    groups = (tuple(dim for dim in space.sizes if dim not in operand.dims) for operand in lacking)
    rows, sums, columns = (_side(dims, space, levels) for dims in groups)
    return rows, sums, columns
