"""Numeric view of a device: plain floats in SI units, each read as a fact on access.

``view(device, precision)`` is lazy. Each field is read when a model accesses it, by
:func:`mlsys.provenance.read`, so that a recorder sees exactly the facts that a model uses, and a
what-if applies wherever they are used. A value without a known source is None; a model that assumes
one instead lists it among its assumptions.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from mlsys.hardware.device import Device
from mlsys.hardware.view_parts import Amount, ArrayShape, LevelView, LinkView, MachinePart
from mlsys.precision import precision_name
from mlsys.unit_checks import checked_choice
from mlsys.units import Quantity

__all__ = ["ArrayShape", "LevelView", "LinkView", "MachineView", "Unit", "view"]

Unit = Literal["matrix", "vector"]
_UNITS: tuple[Unit, ...] = ("matrix", "vector")


@dataclass(frozen=True, slots=True)
class MachineView(MachinePart):
    """A device in one number format, as floats in SI units; None where unknown.

    Attributes
    ----------
    device
        The device.
    precision
        Number format of the rates.
    unit
        ``"matrix"`` or ``"vector"`` for the rate of that unit alone; None selects the matrix unit if the
        device has one for the format, and the vector unit otherwise.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> machine = view(Hardware.Cloud.A100, "fp16")
    >>> machine.rate, machine.vector, machine.main.bandwidth, machine.node
    (312000000000000.0, 78000000000000.0, 2039000000000.0, 7.0)
    >>> [level.name for level in machine.levels]
    ['HBM', 'L2', 'L1', 'Registers']
    >>> print(machine.quantity("tdp"), machine.fact_of("tdp").source)
    400 W NVIDIA Technical Blog, NVIDIA Ampere Architecture In-Depth, Table 3 and text (A100 40 GB SXM4)
    """

    device: Device
    precision: str
    unit: Unit | None = None

    UNITS: ClassVar[dict[str, str]] = {
        "rate": "FLOP/s",
        "matrix": "FLOP/s",
        "vector": "FLOP/s",
        "tdp": "W",
        "idle_power": "W",
        "active_power": "W",
        "price": "USD",
        "node": "nm",
        "clock": "Hz",
        "boost": "Hz",
        "units": "count",
        "matrix_units_per_unit": "count",
        "macs_per_cycle": "MAC/cycle",
        "transistors": "count",
        "die_area": "mm**2",
    }

    @property
    def owner(self) -> str:
        """Name of the device."""
        return self.device.name

    def _stored(self, field: str) -> Quantity | None:
        device = self.device
        match field:
            case "rate":
                have = ((self.precision, unit, "dense") for unit in ((self.unit,) if self.unit else _UNITS))
                return next((device._peaks[key] for key in have if key in device._peaks), None)
            case "matrix" | "vector":
                return device._peaks.get((self.precision, field, "dense"))
            case "tdp" | "idle_power" | "active_power" | "price" | "node":
                stored: Quantity | None = getattr(device, f"_{field}")
                return stored
        return device._chip.get(field)

    def has_rate(self, precision: str, unit: Unit | None = None) -> bool:
        """Return whether the device has a dense peak in a format, on ``unit`` or any, without recording a use."""
        return MachineView(self.device, precision_name(precision), unit).has("rate")

    def rate_of(self, precision: str, unit: Unit | None = None) -> float | None:
        """Return the dense rate of another format, FLOP/s; by default that of the matrix unit, if there is one."""
        return MachineView(self.device, precision_name(precision), unit).rate

    @property
    def precisions(self) -> tuple[str, ...]:
        """Number formats for which the device has a peak."""
        return self.device.precisions

    rate = Amount(
        "Dense peak of ``unit``, FLOP/s; by default of the matrix unit if there is one, else the vector unit."
    )
    matrix = Amount("Dense peak of the matrix unit, FLOP/s.")
    vector = Amount("Dense peak of the vector unit, FLOP/s.")

    @property
    def name(self) -> str:
        """Name of the device."""
        return self.device.name

    @property
    def main(self) -> LevelView:
        """The main memory."""
        return LevelView(self.device.name, self.device.level())

    @property
    def inner(self) -> tuple[LevelView, ...]:
        """The memories between the main memory and the compute units, from the outermost to the innermost."""
        return tuple(LevelView(self.device.name, level) for level in self.device.inner_levels)

    @property
    def levels(self) -> tuple[LevelView, ...]:
        """The main memory and the memories inside it, from the outermost to the innermost."""
        return self.main, *self.inner

    @property
    def outer(self) -> tuple[LevelView, ...]:
        """The memories outside the main memory, such as the flash of a microcontroller."""
        names = list(self.device.memory)
        outside = names[: names.index(self.device.main_memory)]
        return tuple(LevelView(self.device.name, self.device.memory[name]) for name in outside)

    def level(self, name: str | None = None) -> LevelView:
        """Return a memory by name; by default the main memory."""
        return LevelView(self.device.name, self.device.level(name))

    @property
    def links(self) -> tuple[LinkView, ...]:
        """The links, in the order of the device file."""
        return tuple(LinkView(self.device.name, link) for link in self.device.links.values())

    def link(self, name: str) -> LinkView:
        """Return a link by name."""
        return LinkView(self.device.name, self.device.link(name))

    tdp = Amount("Thermal design power, W.")
    idle_power = Amount("Power when idle, W.")
    active_power = Amount("Measured power under load, W.")
    price = Amount("Price, USD.")
    node = Amount("Process node, nm: a name that orders generations, not a length.")
    clock = Amount("Clock frequency, Hz.")
    boost = Amount("Single-core boost clock, Hz.")
    units = Amount("Number of streaming multiprocessors, compute units, cores or tiles.")
    macs_per_cycle = Amount("Multiply-accumulates per cycle, in the headline format.")
    die_area = Amount("Area of the die, mm².")

    @property
    def systolic_array(self) -> ArrayShape | None:
        """Shape of the systolic arrays; None if none is recorded."""
        return ArrayShape(*self.device.systolic_array) if self.device.systolic_array else None


def view(device: Device, precision: str | None = None, *, unit: Unit | None = None) -> MachineView:
    """Return the numeric view of a device in one number format.

    Parameters
    ----------
    device
        A device, such as ``Hardware.Cloud.A100``.
    precision
        Number format of the rates; by default the headline precision of the device.
    unit
        ``"matrix"`` or ``"vector"``; by default the matrix unit if the device has one for the format.

    Raises
    ------
    UnknownNameError
        If there is no such format or unit. The rate is None if the device lacks one in that format.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.provenance import perturbed, recording
    >>> machine = view(Hardware.Cloud.A100)
    >>> with recording() as seen, perturbed("A100_80GB/memory/HBM/bandwidth", 2):
    ...     machine.main.bandwidth
    4078000000000.0
    >>> list(seen)
    ['A100_80GB/memory/HBM/bandwidth']
    """
    if unit is not None:
        checked_choice("view", "unit", unit, get_args(Unit))
    return MachineView(device, precision_name(precision or device.headline), unit)
