"""The numbers of a twin: plain floats in SI units, each read as a fact when it is asked for.

``view(device, precision)`` looks up nothing by itself. Each field is read when a model asks for it,
through :func:`mlsys.provenance.read`: a recorder sees the facts that a model uses and no others, and
a what-if acts on them wherever they are used. What no source is known for is None: a model that takes
something for granted instead says so in its assumptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.hardware.device import Device, Link, MemoryLevel
from mlsys.hardware.parts import known
from mlsys.hardware.technology import Technology, generation_of, technology_of
from mlsys.precision import precision_name
from mlsys.provenance import Fact, origin_of, read
from mlsys.units import Quantity, ureg

__all__ = ["ArrayShape", "LevelView", "LinkView", "MachineView", "Unit", "view"]

Unit = Literal["matrix", "vector"]
_UNITS: tuple[Unit, ...] = ("matrix", "vector")
_FACTORS: dict[tuple[Any, str], float] = {}


def _number(quantity: Quantity | None, unit: str) -> float | None:
    """Return a fact in ``unit``, noted as read and under the what-ifs that hold."""
    if quantity is None:
        return None
    given = read(quantity)
    key = given._units, unit
    factor = _FACTORS.get(key)
    if factor is None:
        factor = _FACTORS[key] = float(ureg.Quantity(1.0, given.units).m_as(unit))
    return float(given._magnitude) * factor


class _Part:
    """A part of a machine whose fields are facts."""

    __slots__ = ()

    UNITS: ClassVar[dict[str, str]] = {}

    @property
    def owner(self) -> str:
        """Whose fields these are, in words."""
        raise NotImplementedError

    def _stored(self, field: str) -> Quantity | None:
        raise NotImplementedError

    def _field(self, field: str) -> Quantity | None:
        if field not in self.UNITS:
            have = ", ".join(self.UNITS)
            raise UnknownNameError(
                f"{self.owner} has no field {field!r}. It has: {have}.{did_you_mean(field, self.UNITS)}"
            )
        return self._stored(field)

    def has(self, field: str) -> bool:
        """Tell whether a field is recorded; notes no use."""
        return self._field(field) is not None

    def fact_of(self, field: str) -> Fact | None:
        """Return the fact that a field is; None where unknown. Notes no use."""
        origin = origin_of(self._field(field))
        return origin if isinstance(origin, Fact) else None

    def quantity(self, field: str) -> Quantity:
        """Return a field with its unit and its fact.

        Raises
        ------
        UnknownNameError
            If it is not recorded.
        """
        return known(self.owner, field.replace("_", " "), self._field(field))

    def require(self, field: str) -> float:
        """Return a field in its SI unit.

        Raises
        ------
        UnknownNameError
            If it is not recorded.
        """
        number = _number(self._field(field), self.UNITS[field])
        if number is None:
            known(self.owner, field.replace("_", " "), None)
            raise AssertionError  # known() has raised
        return number

    def _get(self, field: str) -> float | None:
        return _number(self._stored(field), self.UNITS[field])


@dataclass(frozen=True, slots=True)
class LevelView(_Part):
    """One memory of a machine; see :class:`mlsys.hardware.MemoryLevel` for what its scope means.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> level = view(Hardware.Cloud.A100).level("L1")
    >>> level.technology.value, level.scope, level.instances, level.capacity, level.capacity_total
    ('SRAM', 'unit', 108.0, 196608.0, 21233664.0)
    """

    device: str
    level: MemoryLevel

    UNITS: ClassVar[dict[str, str]] = {
        "capacity": "byte",
        "usable": "byte",
        "bandwidth": "byte/s",
        "latency": "s",
    }

    @property
    def owner(self) -> str:
        """Device and level, in words."""
        return f"{self.device}, {self.level.name}"

    def _stored(self, field: str) -> Quantity | None:
        level = self.level
        if field == "capacity":
            return level._capacity
        if field == "usable":
            return level._usable if level._usable is not None else level._capacity
        return level._bandwidth if field == "bandwidth" else level._latency

    @property
    def name(self) -> str:
        """As in the device's file."""
        return self.level.name

    @property
    def technology(self) -> Technology | None:
        """What the memory is made of; None where the file does not say."""
        return technology_of(self.level.kind) if self.level.kind else None

    @property
    def generation(self) -> str:
        """Generation of its DRAM, such as ``"5X"``; empty where there is none."""
        return generation_of(self.level.kind) if self.level.kind else ""

    @property
    def scope(self) -> Literal["device", "unit"]:
        """What capacity and bandwidth are counted for."""
        return "unit" if self.level.scope == "unit" else "device"

    @property
    def instances(self) -> float:
        """Separate pieces on the device: as many as the chip has units where the level is counted by unit."""
        counted = _number(self.level._units, "count")
        return float(self.level.instances) if counted is None else counted

    @property
    def capacity(self) -> float | None:
        """Bytes that fit, of the scope."""
        return self._get("capacity")

    @property
    def usable(self) -> float | None:
        """Bytes that a program may claim, of the scope; the capacity, where no lower limit is recorded."""
        return self._get("usable")

    @property
    def bandwidth(self) -> float | None:
        """Peak bandwidth in byte/s, of the scope."""
        return self._get("bandwidth")

    @property
    def latency(self) -> float | None:
        """Seconds from load to use."""
        return self._get("latency")

    def _each(self, amount: float | None) -> float | None:
        return amount if amount is None or self.scope == "unit" else amount / self.instances

    def _total(self, amount: float | None) -> float | None:
        return amount if amount is None or self.scope == "device" else amount * self.instances

    @property
    def capacity_each(self) -> float | None:
        """Bytes in one instance."""
        return self._each(self.capacity)

    @property
    def capacity_total(self) -> float | None:
        """Bytes in all instances together."""
        return self._total(self.capacity)

    @property
    def usable_each(self) -> float | None:
        """Bytes of one instance that a program may claim."""
        return self._each(self.usable)

    @property
    def bandwidth_each(self) -> float | None:
        """Bandwidth of one instance, byte/s."""
        return self._each(self.bandwidth)

    @property
    def bandwidth_total(self) -> float | None:
        """Bandwidth of all instances together, byte/s."""
        return self._total(self.bandwidth)


@dataclass(frozen=True, slots=True)
class LinkView(_Part):
    """One link of a machine, one direction.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> view(Hardware.Cloud.A100).link("NVLink").bandwidth
    300000000000.0
    """

    device: str
    link: Link

    UNITS: ClassVar[dict[str, str]] = {"bandwidth": "byte/s", "latency": "s"}

    @property
    def owner(self) -> str:
        """Device and link, in words."""
        return f"{self.device}, {self.link.name}"

    def _stored(self, field: str) -> Quantity | None:
        return self.link._per_direction if field == "bandwidth" else self.link._latency

    @property
    def name(self) -> str:
        """As in the device's file."""
        return self.link.name

    @property
    def kind(self) -> str:
        """In words."""
        return self.link.kind

    @property
    def bandwidth(self) -> float | None:
        """Bandwidth in one direction, byte/s."""
        return self._get("bandwidth")

    @property
    def latency(self) -> float | None:
        """Seconds for the smallest message."""
        return self._get("latency")


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """Processing elements of the systolic arrays of a chip: rows and columns of one, and how many."""

    rows: int
    columns: int
    count: int


@dataclass(frozen=True, slots=True)
class MachineView(_Part):
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
        "price": "USD",
        "node": "nm",
        "clock": "Hz",
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
            case "tdp":
                return device._tdp
            case "idle_power":
                return device._idle_power
            case "price":
                return device._price
            case "node":
                return device._node
        return device._chip.get(field)

    def has_rate(self, precision: str, unit: Unit | None = None) -> bool:
        """Tell whether the device has a dense peak in a format, on a unit or on any; notes no use."""
        return MachineView(self.device, precision_name(precision), unit).has("rate")

    def rate_of(self, precision: str, unit: Unit | None = None) -> float | None:
        """Return the dense rate of another format, FLOP/s; by default of the matrix unit, where there is one."""
        return MachineView(self.device, precision_name(precision), unit).rate

    @property
    def rate(self) -> float | None:
        """Dense peak, FLOP/s: of ``unit``, or of the matrix unit where there is one, else of the vector unit."""
        return self._get("rate")

    @property
    def matrix(self) -> float | None:
        """Dense peak of the matrix unit, FLOP/s."""
        return self._get("matrix")

    @property
    def vector(self) -> float | None:
        """Dense peak of the vector unit, FLOP/s."""
        return self._get("vector")

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

    @property
    def tdp(self) -> float | None:
        """Thermal design power, W."""
        return self._get("tdp")

    @property
    def idle_power(self) -> float | None:
        """Power when idle, W."""
        return self._get("idle_power")

    @property
    def price(self) -> float | None:
        """Price, USD."""
        return self._get("price")

    @property
    def node(self) -> float | None:
        """Name of the process, nm: it orders generations and is no length."""
        return self._get("node")

    @property
    def clock(self) -> float | None:
        """Cycles per second."""
        return self._get("clock")

    @property
    def units(self) -> float | None:
        """Streaming multiprocessors, compute units, cores or tiles."""
        return self._get("units")

    @property
    def macs_per_cycle(self) -> float | None:
        """Multiply-accumulates per cycle, of the headline format."""
        return self._get("macs_per_cycle")

    @property
    def die_area(self) -> float | None:
        """Area of the die, mm²."""
        return self._get("die_area")

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
    if unit is not None and unit not in _UNITS:
        raise UnknownNameError(f"view(): `unit` must be one of {', '.join(_UNITS)} or None, got {unit!r}.")
    return MachineView(device, precision_name(precision or device.headline), unit)
