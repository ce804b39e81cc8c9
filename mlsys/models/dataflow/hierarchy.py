"""The memory hierarchy of a loop nest: capacities and bandwidths from the device view, energies from the price list."""

import itertools
from dataclasses import dataclass
from functools import cached_property

from mlsys.errors import ArgumentError
from mlsys.hardware.device import Device
from mlsys.hardware.technology import Technology
from mlsys.hardware.view import LevelView, MachineView, view
from mlsys.models.energy import Energies
from mlsys.precision import PRECISIONS
from mlsys.units import Quantity


@dataclass(frozen=True)
class Hierarchy:
    """Memories of a device from the main memory inward, in words of one precision.

    Attributes
    ----------
    machine
        View of the device in the precision of all operands.
    levels
        Memories, the main memory first.
    energies
        Price list of operations and accesses.
    assumptions
        Assumptions, in words.
    """

    machine: MachineView
    levels: tuple[LevelView, ...]
    energies: Energies
    assumptions: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the device."""
        return self.machine.name

    @property
    def precision(self) -> str:
        """Number format of all operands and sums."""
        return self.machine.precision

    @property
    def inner(self) -> tuple[str, ...]:
        """Names of the on-chip memories, outermost first."""
        return tuple(level.name for level in self.levels[1:])

    @property
    def word(self) -> float:
        """Bytes of a word."""
        return PRECISIONS[self.precision] / 8

    @cached_property
    def rooms(self) -> tuple[int, ...]:
        """Words that fit in one instance of each inner memory; a tile lies in one instance."""
        return tuple(int((level.usable_each or 0.0) // self.word) for level in self.levels[1:])

    @cached_property
    def prices(self) -> tuple[float, ...]:
        """Energy of moving one word into or out of each inner memory, J: one access on either side."""
        each = [self.energies.byte(level).joules * self.word for level in self.levels]
        return tuple(outer + inner for outer, inner in itertools.pairwise(each))

    @cached_property
    def times(self) -> tuple[float, ...]:
        """Time of moving one word into each inner memory, s, at the total bandwidth of its source."""
        speeds = [level.bandwidth_total for level in self.levels[:-1]]
        return tuple(0.0 if speed is None else self.word / speed for speed in speeds)

    @cached_property
    def rate(self) -> float:
        """Dense peak rate, FLOP/s."""
        return self.machine.require("rate")

    @cached_property
    def multiplying(self) -> float:
        """Energy of a multiply-accumulate, J."""
        return self.energies.mac(self.precision).joules

    @cached_property
    def operands(self) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
        """Inputs of times, and of energies, by name."""
        speeds = {name: rate for level in self.levels[:-1] for name, rate in level.operands("bandwidth").items()}
        prices = {f"byte_of_{level.name}": self.energies.byte(level).value for level in self.levels}
        return (
            {"peak": self.machine.quantity("rate"), **speeds},
            {"multiply_accumulate": self.energies.mac(self.precision).value, **prices},
        )

    @cached_property
    def sizes(self) -> dict[str, Quantity]:
        """Capacities that the tiles must fit in, by name."""
        beside = self.levels[0].technology is not Technology.SRAM
        fitted = self.levels[1:] if beside else self.levels
        return {name: size for level in fitted for name, size in level.operands("usable", each=True).items()}


def hierarchy(
    device: Device | MachineView, precision: str | None = None, *, levels: int = 2, energies: Energies | None = None
) -> Hierarchy:
    """Return the memory hierarchy of a device: the main memory and on-chip memories.

    Parallel units work on different tiles; a tile must fit in the memory of one unit.

    Parameters
    ----------
    device
        A device twin, such as ``Hardware.Cloud.A100``, or its view.
    precision
        Number format of all operands; by default the headline precision, or that of the view.
    levels
        Maximum number of on-chip memories; the outermost ones are used. A memory that is not
        smaller than the one around it is skipped.
    energies
        Price list of operations and accesses; by default that of the device's process node.

    Raises
    ------
    ArgumentError
        If no on-chip memory has a recorded capacity, or the device has no rate in the precision.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> chip = hierarchy(Hardware.Cloud.A100)
    >>> [level.name for level in chip.levels], chip.rooms
    (['HBM', 'L2', 'L1'], (20971520, 83968))
    """
    twin = device.device if isinstance(device, MachineView) else device
    requested = precision or (device.precision if isinstance(device, MachineView) else None)
    machine = view(twin, requested)
    if not machine.has("rate"):
        raise ArgumentError(
            f"hierarchy(): `precision` must be one that {machine.name} has a rate for ({', '.join(twin.precisions)}), "
            f"got {machine.precision!r}. Write e.g. precision={twin.headline!r}"
        )
    kept_levels = [machine.main]
    for level in machine.inner:
        if len(kept_levels) > levels or not level.has("capacity"):
            continue
        beside = (
            len(kept_levels) == 1 and machine.main.technology is not Technology.SRAM
        )  # off-chip, of unlimited capacity
        if beside or _room(level) < _room(kept_levels[-1]):
            kept_levels.append(level)
    if len(kept_levels) == 1:
        have = ", ".join(level.name for level in machine.levels)
        raise ArgumentError(
            f"hierarchy(): {machine.name} has no on-chip memory with a recorded capacity (it has: {have}). "
            "Add one, with its source, to the device's YAML file"
        )
    prices = energies or Energies.of(machine)
    unknown = [level.name for level in kept_levels[:-1] if not level.has("bandwidth")]
    notes = (
        f"dense {machine.precision} peak, all operands and partial sums in {machine.precision}",
        "accesses of the arithmetic units to the innermost memory are not counted",
        *prices.assumptions(),
        *(f"the bandwidth of {name} is not recorded and taken as unlimited" for name in unknown),
    )
    return Hierarchy(machine, tuple(kept_levels), prices, notes)


def _room(level: LevelView) -> float:
    """Return the usable bytes of one instance of a level; infinite if not recorded."""
    return level.usable_each if level.usable_each is not None else float("inf")
