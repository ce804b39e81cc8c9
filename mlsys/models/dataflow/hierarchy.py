"""The memories that a loop nest goes through: room and speed from a machine's view, prices from the one price list."""

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
    """Memories from the main memory inward, in words of one format.

    Attributes
    ----------
    machine
        Numbers of the device in the format of all operands.
    levels
        Memories, the main memory first.
    energies
        What operations and accesses cost.
    assumptions
        What was taken for granted, in words.
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
        """Format of all operands and sums."""
        return self.machine.precision

    @property
    def inner(self) -> tuple[str, ...]:
        """Names of the memories inside the main memory, outermost first."""
        return tuple(level.name for level in self.levels[1:])

    @property
    def word(self) -> float:
        """Bytes of an element."""
        return PRECISIONS[self.precision] / 8

    @cached_property
    def rooms(self) -> tuple[int, ...]:
        """Words that fit into one piece of each inner memory; a tile lies in one."""
        return tuple(int((level.usable_each or 0.0) // self.word) for level in self.levels[1:])

    @cached_property
    def prices(self) -> tuple[float, ...]:
        """J for moving one word into each inner memory, or out of it: one access on either side."""
        each = [self.energies.byte(level).joules * self.word for level in self.levels]
        return tuple(outer + inner for outer, inner in itertools.pairwise(each))

    @cached_property
    def times(self) -> tuple[float, ...]:
        """Seconds for moving one word into each inner memory, out of all pieces of its source together."""
        speeds = [level.bandwidth_total for level in self.levels[:-1]]
        return tuple(0.0 if speed is None else self.word / speed for speed in speeds)

    @cached_property
    def rate(self) -> float:
        """Operations per second, dense."""
        return self.machine.require("rate")

    @cached_property
    def multiplying(self) -> float:
        """J for a multiply-accumulate."""
        return self.energies.mac(self.precision).joules

    @cached_property
    def leans(self) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
        """What times and energies lean on, by name."""
        speeds = {name: rate for level in self.levels[:-1] for name, rate in level.leans("bandwidth").items()}
        prices = {f"byte_of_{level.name}": self.energies.byte(level).value for level in self.levels}
        return (
            {"peak": self.machine.quantity("rate"), **speeds},
            {"multiply_accumulate": self.energies.mac(self.precision).value, **prices},
        )

    @cached_property
    def sizes(self) -> dict[str, Quantity]:
        """What the tiles were fitted to, by name."""
        beside = self.levels[0].technology is not Technology.SRAM
        fitted = self.levels[1:] if beside else self.levels
        return {name: size for level in fitted for name, size in level.leans("usable", each=True).items()}


def hierarchy(
    device: Device | MachineView, precision: str | None = None, *, levels: int = 2, energies: Energies | None = None
) -> Hierarchy:
    """Return a device as a loop nest sees it: the main memory and the memories on the chip.

    Units that work at the same time take different tiles; a tile must fit into the memory of one.

    Parameters
    ----------
    device
        A twin, such as ``Hardware.Cloud.A100``, or its view.
    precision
        Of all operands; by default the headline precision, or that of the view.
    levels
        Memories on the chip that are used, at most; the outermost ones. A memory that does not
        hold less than the one around it is no level.
    energies
        What operations and accesses cost; by default the price list of the device's own process.

    Raises
    ------
    ArgumentError
        If no memory on the chip is recorded with its capacity, or the device has no rate in the format.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> chip = hierarchy(Hardware.Cloud.A100)
    >>> [level.name for level in chip.levels], chip.rooms
    (['HBM', 'L2', 'L1'], (20971520, 83968))
    """
    twin = device.device if isinstance(device, MachineView) else device
    asked = precision or (device.precision if isinstance(device, MachineView) else None)
    machine = view(twin, asked)
    if not machine.has("rate"):
        raise ArgumentError(
            f"hierarchy(): `precision` must be one that {machine.name} has a rate for ({', '.join(twin.precisions)}), "
            f"got {machine.precision!r}. Write e.g. precision={twin.headline!r}"
        )
    kept_levels = [machine.main]
    for level in machine.inner:
        if len(kept_levels) > levels or not level.has("capacity"):
            continue
        beside = len(kept_levels) == 1 and machine.main.technology is not Technology.SRAM  # which holds all there is
        if beside or _room(level) < _room(kept_levels[-1]):
            kept_levels.append(level)
    if len(kept_levels) == 1:
        have = ", ".join(level.name for level in machine.levels)
        raise ArgumentError(
            f"hierarchy(): {machine.name} has no memory on the chip with a recorded capacity (it has: {have}). "
            "Add one, with its source, to the device's YAML file"
        )
    prices = energies or Energies.of(machine)
    unknown = [level.name for level in kept_levels[:-1] if not level.has("bandwidth")]
    notes = (
        f"dense {machine.precision} peak, all operands and partial sums in {machine.precision}",
        "accesses of the arithmetic to the innermost memory are not counted",
        *prices.assumptions(),
        *(f"the bandwidth of {name} is not recorded and limits nothing" for name in unknown),
    )
    return Hierarchy(machine, tuple(kept_levels), prices, notes)


def _room(level: LevelView) -> float:
    """Return the bytes of one piece; of a main memory beside the chip all there are."""
    return level.usable_each if level.usable_each is not None else float("inf")
