"""Accelerators whose operands go through memories of their own, as the search sees them."""

from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware import Device, Hardware
from mlsys.hardware.view import LevelView, view
from mlsys.unit_checks import checked_choice

ACCELERATORS = ("edge_tpu_like", "eyeriss_like", "gemm_l1_l3", "tpu_like")


@dataclass(frozen=True)
class Store:
    """A memory on the way of an operand.

    Attributes
    ----------
    name
        As in the file.
    capacity
        Bits of one instance; None is without limit.
    read, write
        pJ for one bit.
    shared_along
        Array directions that one instance serves; along the others each lane has its own.
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
        What it is called and who published its numbers.
    bits
        Width of ``input``, ``weight``, ``partial`` sums and final ``output``.
    array
        Loop to lanes of the array.
    mac_energy
        pJ.
    paths
        ``input``, ``weight``, ``output`` to the memories they pass, main memory first.

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
    """Return one of the accelerators that come with the package: a device of ``Hardware.Arrays``.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    """
    return accelerator_of(Hardware.Arrays[checked_choice("accelerator", "name", name, ACCELERATORS)])


def accelerator_of(device: Device) -> Accelerator:
    """Return a device whose operands go through memories of their own, in the units of the search.

    Raises
    ------
    ArgumentError
        If the device has no such paths on record.
    """
    if device.operands is None:
        raise ArgumentError(
            f"accelerator_of(): {device.name} has no paths of its operands on record. "
            "Add `operands` to its YAML file, or take one of Hardware.Arrays"
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
    """Return a memory with its energies for a bit; the main memory is without limit."""
    capacity = None if main else int(level.quantity("capacity").m_as("bit"))
    width = int(level.quantity("width").m_as("bit"))
    read, write = (float(level.quantity(field).m_as("pJ")) / width for field in ("read", "write"))
    return Store(level.name, capacity, read, write, level.level.shared_along)
