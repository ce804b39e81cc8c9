"""The numbers of a twin: plain floats in SI units, each read as a fact when it is asked for.

``view(device, precision)`` looks up nothing by itself. Each field is read when a model asks for it,
as :func:`mlsys.provenance.read` does: a recorder sees the facts that a model uses and no others, and
a what-if acts on them wherever they are used. What no source is known for is None: a model that takes
something for granted instead says so in its assumptions.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from mlsys.door import checked_choice
from mlsys.hardware.device import Device
from mlsys.hardware.view_parts import Amount, ArrayShape, LevelView, LinkView, Part
from mlsys.precision import precision_name
from mlsys.units import Quantity

__all__ = ["ArrayShape", "LevelView", "LinkView", "MachineView", "Unit", "view"]

Unit = Literal["matrix", "vector"]
_UNITS: tuple[Unit, ...] = ("matrix", "vector")


@dataclass(frozen=True, slots=True)
class MachineView(Part):
    """A twin in one number format, as floats in SI units; None where unknown.

    Attributes
    ----------
    device
        The twin.
    precision
        Format whose rates count.
    unit
        ``"matrix"`` or ``"vector"`` to look at that unit alone; None takes the matrix unit where
        there is one for the format, else the vector unit.

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
        """Tell whether the device has a dense peak in a format, on a unit or on any; notes no use."""
        return MachineView(self.device, precision_name(precision), unit).has("rate")

    def rate_of(self, precision: str, unit: Unit | None = None) -> float | None:
        """Return the dense rate of another format, FLOP/s; by default of the matrix unit, where there is one."""
        return MachineView(self.device, precision_name(precision), unit).rate

    @property
    def precisions(self) -> tuple[str, ...]:
        """Formats that the device has a peak for."""
        return self.device.precisions

    rate = Amount("Dense peak, FLOP/s: of ``unit``, or of the matrix unit where there is one, else of the vector unit.")
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
        """The memories inside the main memory, from the outermost to the innermost."""
        return tuple(LevelView(self.device.name, level) for level in self.device.inner_levels)

    @property
    def levels(self) -> tuple[LevelView, ...]:
        """The main memory and those inside it, from the outermost to the innermost."""
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
        """The links, in the order of the device's file."""
        return tuple(LinkView(self.device.name, link) for link in self.device.links.values())

    def link(self, name: str) -> LinkView:
        """Return a link by name."""
        return LinkView(self.device.name, self.device.link(name))

    tdp = Amount("Thermal design power, W.")
    idle_power = Amount("Power when idle, W.")
    active_power = Amount("Power while it computes, as measured, W.")
    price = Amount("Price, USD.")
    node = Amount("Name of the process, nm: it orders generations and is no length.")
    clock = Amount("Cycles per second.")
    boost = Amount("Cycles per second of one core that works alone, where that is on record.")
    units = Amount("Streaming multiprocessors, compute units, cores or tiles.")
    macs_per_cycle = Amount("Multiply-accumulates per cycle, of the headline format.")
    die_area = Amount("Area of the die, mm².")

    @property
    def systolic_array(self) -> ArrayShape | None:
        """Shape of the systolic arrays; None where the device has none on record."""
        return ArrayShape(*self.device.systolic_array) if self.device.systolic_array else None


def view(device: Device, precision: str | None = None, *, unit: Unit | None = None) -> MachineView:
    """Return the numbers of a twin in a number format.

    Parameters
    ----------
    device
        A twin, such as ``Hardware.Cloud.A100``.
    precision
        Format whose rates count; by default the headline precision of the device.
    unit
        ``"matrix"`` or ``"vector"``; by default whichever a format has, matrix first.

    Raises
    ------
    UnknownNameError
        If there is no such format or unit. A device without a rate in it has None.

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
