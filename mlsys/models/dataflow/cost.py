"""Time and energy of a loop nest on a machine."""

from __future__ import annotations

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.mapping.iteration import IterationSpace
from mlsys.mapping.loopnest import LoopNest
from mlsys.models.dataflow.counts import Movement, movements
from mlsys.models.dataflow.machine import Machine
from mlsys.models.result import Result
from mlsys.units import Q_, Quantity

__all__ = ["buffer_words", "nest_cost"]


def buffer_words(space: IterationSpace, nest: LoopNest) -> tuple[int, ...]:
    """Return the words that one instance of each memory holds: one tile of each operand kept.

    Examples
    --------
    >>> from mlsys.mapping import dataflow, gemm_space
    >>> buffer_words(gemm_space(64, 64, 64), dataflow("os", 8))
    (80,)
    """
    return tuple(
        sum(space.operand(name).words(level.tile) for name in level.keeps) for level in nest.resolved(space).levels
    )


def nest_cost(machine: Machine, space: IterationSpace, nest: LoopNest, *, overlap: bool = True) -> Result:
    """Return time and energy of a loop nest.

    Parameters
    ----------
    machine
        Memories and rates, such as ``machine_of(Hardware.Cloud.A100)``.
    space
        The loops of an operator.
    nest
        Tiles and orders; level by level the memories of the machine inside main memory.
    overlap
        Whether all memories and the arithmetic work at the same time. With overlap every
        buffer is counted once: tiles are swapped word by word, as the last use ends.

    Returns
    -------
    Result
        ``parts``: compute, and for each memory the time it adds; ``figures``: energy, energy-delay
        product, words and energy by level and by operand.

    Raises
    ------
    ArgumentError
        If the levels are not those of the machine, or tiles do not fit into a memory.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.mapping import LoopNest, TileLevel, gemm_space
    >>> from mlsys.models.dataflow import machine_of
    >>> machine = machine_of(Hardware.Cloud.A100, levels=1)
    >>> nest = LoopNest((TileLevel("L2", {"m": 512, "n": 512, "k": 512}, ("m", "n", "k")),))
    >>> print(nest_cost(machine, gemm_space(512, 512, 512), nest).bound_by)
    compute
    """
    _fits(machine, space, nest)
    moved = movements(space, nest)
    words = [sum(item.words for item in moved if item.level == n) for n in range(1, len(nest.levels) + 1)]
    seconds = [each * count for each, count in zip(machine.times(), words, strict=True)]
    computing = 2 * space.macs / machine.rate.m_as("FLOP/s")
    parts, exposed = {"compute": Q_(computing, "s")}, computing
    for memory, taken in zip(machine.memories, seconds, strict=False):
        added = max(taken - exposed, 0.0) if overlap else taken
        exposed += added
        parts[f"exposed {memory.name}"] = Q_(added, "s")
    time = Q_(sum(part.magnitude for part in parts.values()), "s")
    arithmetic = machine.mac_energy * space.macs
    energy = arithmetic.to("J")
    figures = {"arithmetic energy": energy}
    for memory, each, count in zip(machine.memories[1:], machine.energies(), words, strict=True):
        figures[f"energy into {memory.name}"] = Q_(each * count, "J")
        energy = energy + figures[f"energy into {memory.name}"]
        figures[f"traffic into {memory.name}"] = (count * machine.word).to("byte")
    for name, traffic in _by_operand(machine, moved).items():
        figures[name] = traffic
    figures |= {"energy": energy, "energy-delay product": (energy * time).to("J*s")}
    return Result(
        model="dataflow",
        device=machine.name,
        workload=space.name,
        time=time,
        bound_by="compute" if computing >= max(seconds) else "memory",
        parts=FrozenDict(parts),
        figures=FrozenDict(figures),
        assumptions=(
            *machine.assumptions,
            "data moves while units compute" if overlap else "memories and units take turns",
        ),
    )


def _by_operand(machine: Machine, moved: tuple[Movement, ...]) -> dict[str, Quantity]:
    return {f"{item.operand} into {item.memory}": (item.words * machine.word).to("byte") for item in moved}


def _fits(machine: Machine, space: IterationSpace, nest: LoopNest) -> None:
    wanted = [memory.name for memory in machine.memories[1:]]
    given = [level.memory for level in nest.levels]
    if given != wanted:
        raise ArgumentError(
            f"nest_cost(): `nest` must have the levels {wanted} of {machine.name}, got {given}. "
            f"Write e.g. TileLevel({wanted[0]!r}, ...)"
        )
    for memory, room, used in zip(wanted, machine.capacities(), buffer_words(space, nest), strict=True):
        if used > room:
            raise ArgumentError(
                f"nest_cost(): the tiles at {memory} take {used:,} words, which holds {room:,} in {machine.precision}. "
                "Make a tile smaller, or keep fewer operands there"
            )
