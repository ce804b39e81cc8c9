"""Chains of tiles: for each loop, every way to tile it at several levels that can be best.

A chain lists tile sizes from the outermost level to the innermost; each is a whole number
of the next, so that only the end of the loop is ragged. For one trip count at each level
only the smallest tiles can win: they cost least space and move as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.mapping.iteration import IterationSpace
from mlsys.planner.mapper.two_level import smallest_tiles

__all__ = ["Side", "sides", "tile_chains"]

Numbers = NDArray[Any]


def tile_chains(size: int, levels: int) -> list[tuple[int, ...]]:
    """Return the chains of a loop, outermost tile first.

    Examples
    --------
    >>> tile_chains(3, 2)
    [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (3, 3)]
    """
    found: list[tuple[int, ...]] = []

    def outward(inner: tuple[int, ...], trips: int) -> None:
        if len(inner) == levels:
            found.append(inner)
            return
        for factor in smallest_tiles(trips):
            outward((min(factor * inner[0], size), *inner), -(-trips // factor))

    for tile in smallest_tiles(size):
        outward((tile,), -(-size // tile))
    return found


@dataclass(frozen=True)
class Side:
    """Loops that only one operand lacks, tiled together.

    Attributes
    ----------
    dims
        The loops.
    tiles
        For each loop, an array of chains by levels: tile sizes, outermost first.
    elements
        Chains by levels: product of the tiles.
    trips
        Chains by levels + 1: tiles of the whole loop; the first column is 1.
    still
        Chains by levels: whether no loop of the side steps there.
    size
        Product of the loops.
    """

    dims: tuple[str, ...]
    tiles: dict[str, Numbers]
    elements: Numbers
    trips: Numbers
    still: Numbers
    size: int

    def __len__(self) -> int:
        return len(self.elements)


def _side(dims: tuple[str, ...], space: IterationSpace, levels: int) -> Side:
    chains = [np.array(tile_chains(space.sizes[dim], levels), dtype=np.int64) for dim in dims]
    picks = np.meshgrid(*(np.arange(len(chain)) for chain in chains), indexing="ij")
    tiles = {dim: chain[pick.ravel()] for dim, chain, pick in zip(dims, chains, picks, strict=True)}
    elements = np.prod([tiles[dim] for dim in dims], axis=0)
    counts = np.prod([-(-space.sizes[dim] // tiles[dim]) for dim in dims], axis=0)
    trips = np.concatenate([np.ones((len(counts), 1), dtype=np.int64), counts], axis=1)
    size = int(np.prod([space.sizes[dim] for dim in dims]))
    return Side(dims, tiles, elements, trips, trips[:, 1:] == trips[:, :-1], size)


def sides(space: IterationSpace, levels: int) -> tuple[Side, Side, Side]:
    """Return the loops that the second input lacks, those the output lacks, those the first input lacks.

    Of a matrix product these are m, k and n; of a convolution b·p·q, c·r·s and k.

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
