"""Time and energy of a loop nest on a machine."""

import math
from collections.abc import Sequence
from dataclasses import replace

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.mapping.iteration import IterationSpace, iteration_space
from mlsys.mapping.loopnest import LoopNest
from mlsys.models.dataflow.counts import movements
from mlsys.models.dataflow.hierarchy import Hierarchy, hierarchy
from mlsys.models.energy import Energies
from mlsys.models.result import Result
from mlsys.provenance import Step
from mlsys.units import computed, ureg
from mlsys.workloads.operator import Operator

_SECOND, _JOULE, _BYTE, _JOULE_SECOND = (ureg.Unit(name) for name in ("s", "J", "byte", "J*s"))


def buffer_words(space: IterationSpace, nest: LoopNest) -> tuple[int, ...]:
    """Return the words that one instance of each memory needs: one tile of each operand kept there.

    Examples
    --------
    >>> from mlsys.mapping import dataflow, gemm_space
    >>> buffer_words(gemm_space(64, 64, 64), dataflow("os", 8))
    (80,)
    """
    return tuple(
        sum(space.operand(name).words(level.tile) for name in level.keeps) for level in nest.resolved(space).levels
    )


def nest_cost(
    device: Device | Hierarchy,
    workload: Operator | IterationSpace,
    mapping: LoopNest,
    *,
    overlap: bool = True,
    energies: Energies | None = None,
) -> Result:
    """Return the time and energy of a loop nest.

    Parameters
    ----------
    device
        A device twin, or its :func:`hierarchy`. Of a twin's on-chip memories, the outermost ones are used,
        as many as the nest has levels.
    workload
        A matrix product or convolution, or its iteration space.
    mapping
        Tiles and loop orders, one level for each on-chip memory of the device.
    overlap
        Whether all memories and the arithmetic work at the same time. Even with overlap every
        buffer is counted once: a word is replaced as soon as its last use ends.
    energies
        Price list of operations and accesses; by default that of the device's process node.

    Returns
    -------
    Result
        ``parts``: compute, and the exposed time of each memory; ``figures``: energy, energy-delay
        product, traffic and energy by level and by operand.

    Raises
    ------
    ArgumentError
        If the levels are not those of the device, or the tiles do not fit in a memory.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.mapping import LoopNest, TileLevel
    >>> from mlsys.workloads import gemm
    >>> nest = LoopNest((TileLevel("L2", {"m": 512, "n": 512, "k": 512}, ("m", "n", "k")),))
    >>> print(nest_cost(Hardware.Cloud.A100, gemm(512, 512, 512), nest).bound_by)
    compute
    """
    space = workload if isinstance(workload, IterationSpace) else iteration_space(workload)
    chip = hierarchy_for(device, workload, levels=len(mapping.levels), energies=energies)
    _fits(chip, space, mapping)
    moved = movements(space, mapping)
    words = [sum(item.words for item in moved if item.level == n) for n in range(1, len(mapping.levels) + 1)]
    seconds = [each * count for each, count in zip(chip.times, words, strict=True)]
    computing = 2 * space.macs / chip.rate
    clock, prices, both = _origins(chip, computing, seconds, overlap)
    parts, exposed = {"compute": computing}, computing
    for level, taken in zip(chip.levels, seconds, strict=False):
        added = max(taken - exposed, 0.0) if overlap else taken
        exposed += added
        parts[f"exposed {level.name}"] = added
    time = math.fsum(parts.values())
    joules = {"arithmetic energy": chip.multiplying * space.macs}
    traffic = {}
    for name, each, count in zip(chip.inner, chip.prices, words, strict=True):
        joules[f"energy into {name}"] = each * count
        traffic[f"traffic into {name}"] = count * chip.word
    traffic |= {f"{item.operand} into {item.memory}": item.words * chip.word for item in moved}
    energy = math.fsum(joules.values())
    return Result(
        model="dataflow",
        device=chip.name,
        workload=space.name,
        time=computed(time, _SECOND, clock),
        bound_by="compute" if computing >= max(seconds) else "memory",
        parts=FrozenDict({name: computed(part, _SECOND, clock) for name, part in parts.items()}),
        figures=FrozenDict(
            {name: computed(value, _JOULE, prices) for name, value in joules.items()}
            | {
                name: computed(value, _BYTE, Step("dataflow", (), against=clock.against))
                for name, value in traffic.items()
            }
            | {
                "energy": computed(energy, _JOULE, prices),
                "energy-delay product": computed(energy * time, _JOULE_SECOND, both),
            }
        ),
        assumptions=(
            *chip.assumptions,
            "data moves while units compute" if overlap else "data movement and computation do not overlap",
        ),
    )


def _origins(chip: Hierarchy, computing: float, seconds: Sequence[float], overlap: bool) -> tuple[Step, Step, Step]:
    """Return the provenance of time, energy and their product; with overlap, time depends on the bottleneck only."""
    rates, prices = chip.operands
    longest = max(computing, *seconds)
    holds = {} if overlap and computing < longest else {"peak": rates["peak"]}
    for level, taken in zip(chip.levels, seconds, strict=False):
        name = f"{level.name}_bandwidth"
        if name in rates and (taken == longest or not overlap):
            holds[name] = rates[name]
    beside = tuple(fact for quantity in (*rates.values(), *chip.sizes.values()) for fact in quantity.facts)
    time, energy, both = (
        Step("dataflow", tuple(operands.values()), tuple(operands), against=beside)
        for operands in (holds, prices, holds | prices)
    )
    return time, energy, both


def hierarchy_for(
    device: Device | Hierarchy,
    workload: Operator | IterationSpace,
    *,
    levels: int = 2,
    energies: Energies | None = None,
) -> Hierarchy:
    """Return the memory hierarchy of a device for a workload, in the workload's precision if it has one."""
    if isinstance(device, Hierarchy):
        return device if energies is None else replace(device, energies=energies)
    precision = workload.precision if isinstance(workload, Operator) else None
    return hierarchy(device, precision, levels=levels, energies=energies)


def _fits(chip: Hierarchy, space: IterationSpace, nest: LoopNest) -> None:
    required = list(chip.inner)
    given = [level.memory for level in nest.levels]
    if given != required:
        raise ArgumentError(
            f"nest_cost(): `mapping` must have the levels {required} of {chip.name}, got {given}. "
            f"Write e.g. TileLevel({required[0]!r}, ...)"
        )
    for memory, room, used in zip(required, chip.rooms, buffer_words(space, nest), strict=True):
        if used > room:
            raise ArgumentError(
                f"nest_cost(): the tiles in {memory} need {used:,} words, but it holds {room:,} in {chip.precision}. "
                "Make a tile smaller, or keep fewer operands there"
            )
