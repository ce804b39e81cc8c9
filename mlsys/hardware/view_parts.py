"""Parts of a numeric view: memories and links as floats in SI units.

Each field is read on access; see :mod:`mlsys.hardware.view`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, overload

from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.hardware.parts import Link, MemoryLevel, known, missing
from mlsys.hardware.technology import Role, Technology, generation_of, role_of, technology_of
from mlsys.provenance import Fact, fact_magnitude, origin_of, read
from mlsys.units import Quantity, ureg

_FACTORS: dict[tuple[Any, str], float] = {}


def _number(quantity: Quantity | None, unit: str) -> float | None:
    """Return a fact in ``unit``, with the active what-ifs applied, and record its use."""
    if quantity is None:
        return None
    key = quantity._units, unit
    factor = _FACTORS.get(key)
    if factor is None:
        factor = _FACTORS[key] = float(ureg.Quantity(1.0, quantity.units).m_as(unit))
    return fact_magnitude(quantity) * factor


class MachinePart(ABC):
    """A part of a machine whose fields are facts."""

    __slots__ = ()

    UNITS: ClassVar[dict[str, str]] = {}

    @property
    @abstractmethod
    def owner(self) -> str:
        """Name of the part, for messages."""

    @abstractmethod
    def _stored(self, field: str) -> Quantity | None: ...

    def _field(self, field: str) -> Quantity | None:
        if field not in self.UNITS:
            have = ", ".join(self.UNITS)
            raise UnknownNameError(
                f"{self.owner} has no field {field!r}. It has: {have}.{did_you_mean(field, self.UNITS)}"
            )
        return self._stored(field)

    def has(self, field: str) -> bool:
        """Return whether a field is recorded, without recording a use."""
        return self._field(field) is not None

    def fact_of(self, field: str) -> Fact | None:
        """Return the fact behind a field, None if unknown, without recording a use."""
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
        amount = _number(self._field(field), self.UNITS[field])
        if amount is None:
            raise missing(self.owner, field.replace("_", " "))
        return amount

    def _get(self, field: str) -> float | None:
        return _number(self._stored(field), self.UNITS[field])


class Amount:
    """Descriptor of a field of a :class:`MachinePart`: its value in its SI unit, None if unknown; use is recorded."""

    def __init__(self, meaning: str) -> None:
        self.__doc__ = meaning

    def __set_name__(self, owner: type[MachinePart], name: str) -> None:
        self.field = name

    @overload
    def __get__(self, part: None, owner: type[MachinePart]) -> Self: ...
    @overload
    def __get__(self, part: MachinePart, owner: type[MachinePart]) -> float | None: ...
    def __get__(self, part: MachinePart | None, owner: type[MachinePart]) -> Self | float | None:
        return self if part is None else part._get(self.field)


@dataclass(frozen=True, slots=True)
class LevelView(MachinePart):
    """One memory of a machine; see :class:`mlsys.hardware.MemoryLevel` for the meaning of its scope.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware.view import view
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
        "read": "J",
        "write": "J",
        "width": "bit",
    }

    @property
    def owner(self) -> str:
        """Names of the device and the level, for messages."""
        return f"{self.device}, {self.level.name}"

    def _stored(self, field: str) -> Quantity | None:
        recorded = "capacity" if field == "usable" and self.level._usable is None else field
        stored: Quantity | None = getattr(self.level, f"_{recorded}")
        return stored

    @property
    def name(self) -> str:
        """Name in the device file."""
        return self.level.name

    @property
    def technology(self) -> Technology | None:
        """Technology of the memory; None if the file does not say."""
        return technology_of(self.level.kind) if self.level.kind else None

    @property
    def generation(self) -> str:
        """Generation of its DRAM, such as ``"5X"``; empty if none is given."""
        return generation_of(self.level.kind) if self.level.kind else ""

    @property
    def role(self) -> Role:
        """Purpose of the memory, as far as its description says."""
        return role_of(self.level.kind)

    @property
    def scope(self) -> Literal["device", "unit"]:
        """Whether capacity and bandwidth are those of the device or of one unit."""
        return "unit" if self.level.scope == "unit" else "device"

    @property
    def instances(self) -> float:
        """Number of separate memories of this level; by default the number of units for a level of scope ``unit``."""
        counted = _number(self.level._units, "count")
        return float(self.level.instances) if counted is None else counted

    capacity = Amount("Capacity in bytes, per scope.")
    usable = Amount("Bytes that a program may allocate, per scope; the capacity unless a lower limit is recorded.")
    bandwidth = Amount("Peak bandwidth in byte/s, per scope.")
    latency = Amount("Seconds from load to use.")

    def operands(self, field: str, *, each: bool = False) -> dict[str, Quantity]:
        """Return the facts behind the total of a field, or behind its value for ``each`` instance."""
        if not self.has(field):
            return {}
        quantities = {f"{self.name}_{field}": self.quantity(field)}
        counted = self.level._units is not None and (self.scope == "unit") != each
        return {**quantities, "units": read(self.level._units)} if counted else quantities

    def _each(self, amount: float | None) -> float | None:
        return amount if amount is None or self.scope == "unit" else amount / self.instances

    def _total(self, amount: float | None) -> float | None:
        return amount if amount is None or self.scope == "device" else amount * self.instances

    @property
    def capacity_each(self) -> float | None:
        """Capacity of one instance in bytes."""
        return self._each(self.capacity)

    @property
    def capacity_total(self) -> float | None:
        """Total capacity of all instances in bytes."""
        return self._total(self.capacity)

    @property
    def usable_each(self) -> float | None:
        """Bytes of one instance that a program may allocate."""
        return self._each(self.usable)

    @property
    def bandwidth_total(self) -> float | None:
        """Total bandwidth of all instances, byte/s."""
        return self._total(self.bandwidth)


@dataclass(frozen=True, slots=True)
class LinkView(MachinePart):
    """One link of a machine, one direction.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware.view import view
    >>> view(Hardware.Cloud.A100).link("NVLink").bandwidth
    300000000000.0
    """

    device: str
    link: Link

    UNITS: ClassVar[dict[str, str]] = {"bandwidth": "byte/s", "latency": "s"}

    @property
    def owner(self) -> str:
        """Names of the device and the link, for messages."""
        return f"{self.device}, {self.link.name}"

    def _stored(self, field: str) -> Quantity | None:
        return self.link._per_direction if field == "bandwidth" else self.link._latency

    @property
    def name(self) -> str:
        """Name in the device file."""
        return self.link.name

    @property
    def kind(self) -> str:
        """Kind of the link, as the device file describes it."""
        return self.link.kind

    bandwidth = Amount("Bandwidth in one direction, byte/s.")
    latency = Amount("Seconds for the smallest message.")


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """Shape of the systolic arrays of a chip: rows and columns of one array, and the number of arrays."""

    rows: int
    columns: int
    count: int
