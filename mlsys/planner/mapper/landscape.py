"""The mapping space: random mappings, and the Pareto front."""

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.frozen import FrozenDict
from mlsys.mapping.iteration import IterationSpace
from mlsys.mapping.loopnest import LoopNest, TileLevel
from mlsys.models.dataflow.counts import movements
from mlsys.models.dataflow.hierarchy import Hierarchy
from mlsys.planner.mapper.chains import chains_within
from mlsys.planner.mapper.costs import Costs, costs_of
from mlsys.planner.mapper.hierarchy import search

_MOST = 500_000  # limit of the chains of a loop that are sampled


@dataclass(frozen=True)
class Landscape:
    """Mappings with their energies and times.

    Attributes
    ----------
    energies, times
        J and seconds, one per mapping.
    nests
        The mappings.
    """

    energies: NDArray[np.float64]
    times: NDArray[np.float64]
    nests: tuple[LoopNest, ...]


def random_mappings(
    chip: Hierarchy, space: IterationSpace, count: int, seed: int = 0, *, overlap: bool = True
) -> Landscape:
    """Return random mappings that fit: tiles of each loop, then an order at each level.

    Parameters
    ----------
    chip, space
        Memories from :func:`mlsys.models.dataflow.hierarchy`, and loops.
    count
        Number of mappings.
    seed
        Random seed.
    overlap
        As for :func:`best_mapping`.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.mapping import gemm_space
    >>> from mlsys.models.dataflow import hierarchy
    >>> len(random_mappings(hierarchy(Hardware.Cloud.A100), gemm_space(64, 64, 64), 10).energies)
    10
    """
    generator, capacities = random.Random(seed), chip.rooms
    levels = range(len(capacities))
    chains = {dim: chains_within(size, len(capacities), _MOST)[0].tolist() for dim, size in space.sizes.items()}
    nests: list[LoopNest] = []
    while len(nests) < count:
        picked = {dim: generator.choice(chain) for dim, chain in chains.items()}
        tiles = [{dim: chain[level] for dim, chain in picked.items()} for level in levels]
        held = [sum(operand.words(tile) for operand in space.operands) for tile in tiles]
        if all(words <= room for words, room in zip(held, capacities, strict=True)):
            orders = [tuple(generator.sample(list(space.sizes), len(space.sizes))) for _ in levels]
            named = zip(chip.inner, tiles, orders, strict=True)
            nests.append(LoopNest(tuple(TileLevel(name, FrozenDict(tile), order) for name, tile, order in named)))
    return _landscape(chip, space, nests, overlap)


def _energy_below(costs: Costs, limit: float, words: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return the energy of mappings that are faster than a limit, and infinity for the others."""
    return np.where(costs.latency(words) < limit, costs.energy(words), np.inf)


def pareto_front(chip: Hierarchy, space: IterationSpace, most: int = 40, *, overlap: bool = True) -> Landscape:
    """Return the Pareto-optimal mappings in energy and time, least energy first.

    Each is a proven optimum: the least energy among mappings that are faster than the one before.

    Parameters
    ----------
    chip, space
        Memories from :func:`mlsys.models.dataflow.hierarchy`, and loops.
    most
        Maximum number of mappings.
    overlap
        As for :func:`best_mapping`.
    """
    costs = costs_of(chip, space, overlap)
    nests: list[LoopNest] = []
    names, limit = list(chip.inner), np.inf
    while len(nests) < most:
        best = search(
            space,
            chip.rooms,
            names,
            functools.partial(_energy_below, costs, limit),
        )
        if not np.isfinite(best.value) or best.nest is None:
            break
        nests.append(best.nest)
        limit = float(costs.latency(best.words)) * (1 - 1e-12)
    return _landscape(chip, space, nests, overlap)


def _landscape(chip: Hierarchy, space: IterationSpace, nests: list[LoopNest], overlap: bool) -> Landscape:
    costs, words = costs_of(chip, space, overlap), []
    for nest in nests:
        moved = movements(space, nest)
        words.append([sum(m.words for m in moved if m.level == n) for n in range(1, len(nest.levels) + 1)])
    into = list(np.array(words, dtype=float).reshape(len(nests), -1).T)
    times = np.broadcast_to(costs.latency(into), (len(nests),)) if nests else np.zeros(0)
    return Landscape(np.asarray(costs.energy(into)), np.array(times), tuple(nests))
