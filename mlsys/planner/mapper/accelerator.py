"""Accelerators with separate memories for each operand, in the form used by the search."""

from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware import Device, Hardware
from mlsys.hardware.view import LevelView, view
from mlsys.unit_checks import checked_choice

ACCELERATORS = ("edge_tpu_like", "eyeriss_like", "gemm_l1_l3", "tpu_like")


@dataclass(frozen=True)
class Store:
    """A memory on the path of an operand.

    Attributes
    ----------
    name
        Name in the device file.
    capacity
        Bits of one instance; None means unlimited.
    read, write
        Energy per bit, pJ.
    shared_along
        Array directions that share one instance; along the others each lane has its own.
    """

    name: str
    capacity: int | None
    read: float
    write: float
    shared_along: tuple[str, ...]


@dataclass(frozen=True)
class Accelerator:
    """An array of multiply-accumulate units and the memories that feed it.

    Attributes
    ----------
    id, name, source
        Identifier, name, and source of its numbers.
    bits
        Width of ``input``, ``weight``, ``partial`` sums and final ``output``.
    array
        Loops mapped to the array, with their numbers of lanes.
    mac_energy
        Energy of one MAC, pJ.
    paths
        Memories on the path of ``input``, ``weight`` and ``output``, main memory first.

    Examples
    --------
    >>> [store.name for store in accelerator("tpu_like").paths["output"]]
    ['dram', 'sram_2MB', 'rf_2B']
    """

    id: str
    name: str
    source: str
    bits: FrozenDict[str, int]
    array: FrozenDict[str, int]
    mac_energy: float
    paths: FrozenDict[str, tuple[Store, ...]]


def accelerator(name: str) -> Accelerator:
    """Return one of the shipped accelerators: a device of ``Hardware.Arrays``.

    Raises
    ------
    UnknownNameError
        If the name is unknown.
    """
    return accelerator_of(Hardware.Arrays[checked_choice("accelerator", "name", name, ACCELERATORS)])


def accelerator_of(device: Device) -> Accelerator:
    """Return a device with separate operand memories, in the units of the search.

    Raises
    ------
    ArgumentError
        If the device has no operand paths on record.
    """
    if device.operands is None:
        raise ArgumentError(
            f"accelerator_of(): {device.name} has no operand paths on record. "
            "Add `operands` to its YAML file, or use one of Hardware.Arrays"
        )
    machine = view(device)
    stores = {level.name: _store(level, main=level.name == machine.main.name) for level in machine.levels}
    paths = {operand: tuple(stores[name] for name in names) for operand, names in device.operands.paths.items()}
    source = next(iter(device.sources.values()))["title"]
    mac = float(device.operands.mac.m_as("pJ"))
    return Accelerator(
        device.id, device.name, source, device.operands.bits, device.operands.array, mac, FrozenDict(paths)
    )


def _store(level: LevelView, main: bool) -> Store:
    """Return a memory with its energies per bit; the main memory is unlimited."""
    capacity = None if main else int(level.quantity("capacity").m_as("bit"))
    width = int(level.quantity("width").m_as("bit"))
    read, write = (float(level.quantity(field).m_as("pJ")) / width for field in ("read", "write"))
    return Store(level.name, capacity, read, write, level.level.shared_along)
