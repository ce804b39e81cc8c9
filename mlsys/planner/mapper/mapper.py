"""The mapper: the optimal loop nest of an operator on a machine, with a proof."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, get_args

import numpy as np

from mlsys.choices import Objective
from mlsys.errors import ArgumentError
from mlsys.hardware.device import Device
from mlsys.mapping.iteration import IterationSpace, iteration_space
from mlsys.mapping.loopnest import LoopNest
from mlsys.models.dataflow.cost import buffer_words, hierarchy_for, nest_cost
from mlsys.models.dataflow.counts import movements
from mlsys.models.dataflow.hierarchy import Hierarchy
from mlsys.models.energy import Energies
from mlsys.models.result import Result, ResultMembers
from mlsys.planner.mapper import cache
from mlsys.planner.mapper.costs import costs_of
from mlsys.planner.mapper.hierarchy import Best, search
from mlsys.planner.mapper.two_level import safe_bound
from mlsys.provenance import traced
from mlsys.unit_checks import check_types, checked_choice, checked_number, positive
from mlsys.workloads.operator import Network, Operator

__all__ = ["OBJECTIVES", "MappedLayer", "Objective", "best_mapping", "map_network"]

_MOST_MACS = 10**18  # words are counted in 64 bits
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
WHY_NO_OTHER_WINS = (
    "among tiles with the same trip count the smallest needs the least space and moves as many words",
    "the loops irrelevant to one operand go innermost, which makes it stationary; the order of the rest is free",
    "pairs of tiles were bounded from below by the space left for the third, and dropped if that bound was worse",
)


@dataclass(frozen=True)
class MappedLayer(ResultMembers):
    """The best mapping of one operator and its cost.

    Attributes
    ----------
    space, chip, objective
        Loops, memories, and the minimised quantity.
    nest
        The mapping.
    result
        Its time, energy and traffic.
    words
        Words into each inner memory, outermost first, and written back.
    bound
        Words that any schedule must move to and from main memory.
    proven
        Whether the whole space was searched, or a lower bound of all schedules is met; otherwise see :attr:`gap`.
    covered
        Mappings that the proof covers: all aligned tile sizes and loop orders, feasible or not.
    bounded, tried
        Pairs of tiles that were bounded, and mappings that were evaluated.
    value, least
        The objective, and its lower bound: words, J, s or J·s. Equal if proven.
    """

    space: IterationSpace
    chip: Hierarchy
    objective: Objective
    nest: LoopNest
    result: Result
    words: tuple[int, ...]
    bound: int
    proven: bool
    covered: int
    bounded: int
    tried: int
    value: float
    least: float

    @property
    def gap(self) -> float:
        """Upper bound of the relative improvement over ``value`` that is still possible; 0 if proven."""
        return 0.0 if self.proven else 1 - self.least / self.value

    @property
    def ratio(self) -> float:
        """Words at main memory over the lower bound; 1 if no schedule moves less."""
        return self.words[0] / self.bound

    def record(self) -> dict[str, Any]:
        """Return the record of its result, with the mapping and its proof, as plain data."""
        levels = [{"memory": v.memory, "tile": dict(v.tile), "order": list(v.order)} for v in self.nest.levels]
        return self.result.record() | {
            "layer": self.space.name,
            "objective": self.objective,
            "proven": self.proven,
            "gap": self.gap,
            "levels": levels,
            "words": list(self.words),
            "bound": self.bound,
            "ratio": self.ratio,
            "covered": self.covered,
            "bounded": self.bounded,
            "tried": self.tried,
        }

    def explain(self) -> str:
        """Return the mapping as loops, its cost, and the proof of optimality, as text."""
        state = "proven best"
        if not self.proven:
            state = (
                "best found; the search is incomplete and proves only that "
                f"no mapping is more than {max(self.gap, 0.0005):.1%} better"
            )
        lines = [
            f"{self.space.name} on {self.chip.name}, by {self.objective}: {state}.",
            "",
            self.nest.resolved(self.space).pseudocode(self.space),
            "",
            self.result.explain(),
            f"Main memory: {self.words[0]:,} words, {self.ratio:.3f} × the bound of any schedule ({self.bound:,}).",
            f"Covered: {_count(self.covered)} mappings; {self.bounded:,} bounds and {self.tried:,} mappings computed.",
            "Each tile is a multiple of the tiles inside it; edge tiles may be partial.",
        ]
        if self.proven:
            meets = ("no schedule moves less to and from main memory",) if self.ratio == 1 else ()
            lines += ["Why it is optimal:", *(f"  - {reason}" for reason in (*WHY_NO_OTHER_WINS, *meets))]
        return "\n".join(lines)


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"{number:.2e}"


@traced
@check_types(
    device=((Device, Hierarchy), "a device, such as Hardware.Cloud.A100, or a Hierarchy"),
    workload=((Operator, IterationSpace), "an operator, such as gemm(64, 64, 64), or an IterationSpace"),
)
def best_mapping(
    device: Device | Hierarchy,
    workload: Operator | IterationSpace,
    objective: Objective = "energy",
    *,
    levels: int = 2,
    overlap: bool = True,
    energies: Energies | None = None,
    progress: Callable[[Best, float], None] | None = None,
    seconds: float | None = None,
    disk_cache: bool = False,
) -> MappedLayer:
    """Return the loop nest with the least traffic, energy, latency or energy-delay product.

    Parameters
    ----------
    device
        A device, or its :func:`mlsys.models.dataflow.hierarchy`.
    workload
        A matrix product or convolution.
    objective
        ``"traffic"`` of main memory, ``"energy"``, ``"latency"`` or ``"edp"``. Ties in traffic or latency are broken by
        energy.
    levels
        Maximum number of on-chip memories to use.
    overlap
        Whether memories and arithmetic work concurrently.
    energies
        Energies of operations and accesses; by default those of the device's process.
    progress
        Called periodically with the best so far and the fraction of the search that is done.
    seconds
        Time limit; like a keyboard interrupt, it returns the best found with ``proven=False``.
    disk_cache
        Whether to store proven results in the user's cache folder too. Within a process they are always cached.

    Raises
    ------
    UnknownNameError
        If the objective is unknown.
    ArgumentError
        If the machine has no on-chip memory, one of them cannot hold one word of each operand, the workload is not a
        loop nest or has more than 10¹⁸ multiply-accumulates, or ``seconds`` is not a positive time.

    Notes
    -----
    If a loop has more tile chains than fit in memory, as for a prime near 10⁹, a sample of tiles over all sizes is
    searched: then only :attr:`MappedLayer.gap` is proven.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import gemm
    >>> best = best_mapping(Hardware.Cloud.A100, gemm(512, 256, 32), "traffic")
    >>> best.words[0], best.bound, best.proven
    (155648, 155648, True)
    """
    checked_choice("best_mapping", "objective", objective, OBJECTIVES)
    space = workload if isinstance(workload, IterationSpace) else iteration_space(workload)
    chip = hierarchy_for(device, workload, levels=levels, energies=energies)
    for memory, words in zip(chip.inner, chip.rooms, strict=True):
        if words < 3:
            raise ArgumentError(
                f"best_mapping(): {memory} of {chip.name} holds {words} words in {chip.precision}; "
                "it must hold one word of each operand. Use fewer levels, e.g. levels=1"
            )
    if seconds is not None:
        seconds = float(checked_number("best_mapping", "seconds", seconds, positive(), {}))
    if space.macs > _MOST_MACS:
        raise ArgumentError(
            f"best_mapping(): sizes must multiply to at most {_MOST_MACS:.1e}, so that words can be counted exactly, "
            f"got {float(space.macs):.1e}. Map a part of the product"
        )
    best = _search(chip, space, objective, overlap, progress, seconds, disk_cache)
    assert best.nest is not None
    result = nest_cost(chip, space, best.nest, overlap=overlap)
    bound = _least_words(space, chip.rooms)[0]
    counts = (best.proven, best.covered, best.bounded, best.tried, best.value, best.least)
    return MappedLayer(space, chip, objective, best.nest, result, best.words, bound, *counts)


def _search(
    chip: Hierarchy, space: IterationSpace, objective: Objective, overlap: bool,
    progress: Callable[[Best, float], None] | None, seconds: float | None, disk: bool,
) -> Best:  # fmt: skip
    memories, capacities = list(chip.inner), chip.rooms
    costs = costs_of(chip, space, overlap)
    goals = {"energy": costs.energy, "edp": costs.edp, "latency": costs.latency}
    goal: Callable[[Sequence[Any]], Any] = goals.get(objective, lambda words: 1.0 * words[0])
    key = cache.key_of(space, capacities, memories, repr((objective, costs)))
    kept = cache.lookup(key, disk, lambda best: _holds(best, space, capacities, memories, goal))
    if kept is not None:
        return kept

    end = math.inf if seconds is None else monotonic() + seconds
    best = search(space, capacities, memories, goal, progress, seconds)
    if objective in ("latency", "traffic") and best.proven:
        limit = best.value * (1 + 1e-12)
        second = search(
            space,
            capacities,
            memories,
            lambda words: np.where(goal(words) <= limit, costs.energy(words), np.inf),
            progress,
            None if seconds is None else max(end - monotonic(), 0.0),
        )
        if np.isfinite(second.value):
            second.bounded, second.tried = second.bounded + best.bounded, second.tried + best.tried
            second.value, second.least = float(goal(second.words)), best.value
            best = second
    best.least = min(max(best.least, float(goal(_least_words(space, capacities)))), best.value)
    if objective in ("energy", "edp") and best.value <= best.least * (1 + 1e-12):
        best.proven = True  # even if chains were omitted
    cache.store(key, best, disk)
    return best


def _least_words(space: IterationSpace, capacities: Sequence[int]) -> list[int]:
    """Return the words that any schedule moves into each memory and back, at least."""
    if set(space.sizes) != set("mnk"):
        return [space.compulsory] * len(capacities)
    m, n, k = (space.sizes[dim] for dim in "mnk")
    return [safe_bound(m, n, k, capacity) for capacity in capacities]


def _holds(
    best: Best, space: IterationSpace, capacities: Sequence[int], memories: Sequence[str], goal: Callable[..., Any]
) -> bool:
    """Return whether a result read from disk is a mapping of this space with the stated cost."""
    assert best.nest is not None
    moved = movements(space, best.nest)
    words = tuple(sum(item.words for item in moved if item.level == level + 1) for level in range(len(capacities)))
    held = buffer_words(space, best.nest)
    return (
        [level.memory for level in best.nest.levels] == list(memories)
        and all(used <= room for used, room in zip(held, capacities, strict=True))
        and words == best.words
        and math.isclose(float(goal(words)), best.value, rel_tol=1e-12)
    )


def map_network(
    device: Device | Hierarchy,
    network: Network,
    objective: Objective = "energy",
    *,
    levels: int = 2,
    energies: Energies | None = None,
    disk_cache: bool = False,
) -> tuple[MappedLayer, ...]:
    """Return the best mapping of every matrix product and convolution of a network, one by one.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import Network, gemm
    >>> layers = map_network(Hardware.Cloud.A100, Network("two", (gemm(64, 64, 64), gemm(64, 64, 64))))
    >>> layers[0].words == layers[1].words
    True
    """
    return tuple(
        best_mapping(device, operator, objective, levels=levels, energies=energies, disk_cache=disk_cache)
        for operator in network
    )
