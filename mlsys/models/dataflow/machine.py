"""What a loop nest runs on: memories with room, speed and energy, and the rate of the arithmetic."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.hardware.device import Device, MemoryLevel
from mlsys.precision import element_size, precision_name
from mlsys.provenance import read
from mlsys.units import Q_, Quantity

__all__ = ["Machine", "Memory", "machine_of"]

_KIBIBYTE = 1024.0
_MAC_ENERGY = {"fp32": "FP32", "tf32": "FP32", "fp16": "FP16", "bf16": "FP16", "int8": "INT8", "fp8": "INT8"}


@dataclass(frozen=True)
class Memory:
    """One memory of a machine.

    Attributes
    ----------
    name
        As in the device's file.
    capacity
        What one instance holds; the capacity of main memory is not a limit here.
    bandwidth
        Of all instances together, towards the memory around it; None where unknown, which limits nothing.
    energy
        Of one access, J for each byte.
    """

    name: str
    capacity: Quantity
    bandwidth: Quantity | None
    energy: Quantity


@dataclass(frozen=True)
class Machine:
    """Memories from main memory inward, and what a multiply-accumulate takes.

    Attributes
    ----------
    name
        Of the device.
    precision
        Format of all operands.
    memories
        Main memory first.
    rate
        Operations per second, dense.
    mac_energy
        Energy of one multiply-accumulate, J.
    assumptions
        What was taken for granted, in words.
    """

    name: str
    precision: str
    memories: tuple[Memory, ...]
    rate: Quantity
    mac_energy: Quantity
    assumptions: tuple[str, ...] = ()

    @property
    def word(self) -> Quantity:
        """Size of one element."""
        return element_size(self.precision)

    def capacities(self) -> tuple[int, ...]:
        """Return the words that fit into each memory inside main memory."""
        size = self.word.m_as("bit")
        return tuple(int(memory.capacity.m_as("bit") // size) for memory in self.memories[1:])

    def energies(self) -> tuple[float, ...]:
        """Return J for moving one word into each inner memory, or out of it: one access on either side."""
        size = self.word.m_as("byte")
        each = [memory.energy.m_as("J/byte") * size for memory in self.memories]
        return tuple(outer + inner for outer, inner in itertools.pairwise(each))

    def times(self) -> tuple[float, ...]:
        """Return seconds for moving one word into each inner memory; the bandwidth is that of its source."""
        size = self.word.m_as("byte")
        speeds = [memory.bandwidth for memory in self.memories[:-1]]
        return tuple(0.0 if speed is None else size / float(speed.m_as("byte/s")) for speed in speeds)


def machine_of(device: Device, precision: str | None = None, levels: int = 2) -> Machine:
    """Return a device as the dataflow models see it: main memory and the memories on the chip.

    Energies are those of the book's table for the kind and size of memory, 45 nm: absolute
    values are for that process, ratios between levels are what a mapping turns on. Units
    that work at the same time take different tiles; a tile must fit into the memory of one.

    Parameters
    ----------
    device
        A twin, such as ``Hardware.Cloud.A100``.
    precision
        Of all operands; by default the headline precision.
    levels
        Memories on the chip that are used, at most; the outermost ones. A memory that does not
        hold less than the one around it is no level.

    Raises
    ------
    ArgumentError
        If no memory on the chip is recorded with its capacity, or no energy is known for the format.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> [memory.name for memory in machine_of(Hardware.Cloud.A100).memories]
    ['HBM', 'L2', 'L1']
    """
    wanted = precision_name(precision or device.headline)
    if wanted not in _MAC_ENERGY:
        raise ArgumentError(
            f"machine_of(): `precision` must be one whose energy is known ({', '.join(_MAC_ENERGY)}), got {wanted!r}. "
            "Write e.g. precision='fp16'"
        )
    main = device.level()
    memories, notes = [Memory(main.name, main.capacity, main.bandwidth, _energy(main, None))], []
    for level in device.memory.values():
        inside = level.name != main.name and level._capacity is not None and len(memories) <= levels
        if inside and level.capacity < memories[-1].capacity:
            memories.append(Memory(level.name, level.capacity, level._bandwidth, _energy(level, level.capacity)))
            if level._bandwidth is None and len(memories) <= levels:
                notes.append(f"the bandwidth of {level.name} is not recorded and limits nothing")
    if len(memories) == 1:
        have = ", ".join(device.memory)
        raise ArgumentError(
            f"machine_of(): {device.name} has no memory on the chip with a recorded capacity (it has: {have}). "
            "Add one, with its source, to the device's YAML file"
        )
    return Machine(
        device.name,
        wanted,
        tuple(memories),
        device.peak(wanted),
        _fact(f"ENERGY_MAC_{_MAC_ENERGY[wanted]}_PJ"),
        (
            f"dense {wanted} peak, all operands and partial sums in {wanted}",
            "energies of the 45 nm table; accesses of the arithmetic to the innermost memory are not counted",
            *notes,
        ),
    )


def _fact(name: str) -> Quantity:
    from mlsys import constants

    return read(getattr(constants, name))  # type: ignore[no-any-return]


def _energy(level: MemoryLevel, capacity: Quantity | None) -> Quantity:
    """Return the energy of an access, J per byte, by the kind and size of a memory."""
    if capacity is None:
        if "HBM" in level.kind.upper():
            return _per_byte(_fact("ENERGY_HBM2_PJ_PER_BIT") * Q_(8, "bit/byte"))
        if "DRAM" in level.kind.upper() or "DDR" in level.kind.upper():
            return _per_byte(_fact("ENERGY_DRAM_PJ_PER_BYTE"))
    size = (capacity if capacity is not None else level.capacity).m_as("byte") / _KIBIBYTE
    name = "ENERGY_SRAM_L1_PJ" if size <= 8 else "ENERGY_SRAM_32KB_PJ" if size <= 64 else "ENERGY_SRAM_L2_PJ"
    if size <= 1:
        name = "ENERGY_REG_PJ"
    return _per_byte(_fact(name) / Q_(4, "byte"))


def _per_byte(energy: Any) -> Quantity:
    each: Quantity = energy.to("J/byte")
    return each
