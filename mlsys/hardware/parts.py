"""Parts of a device: memory levels, links and operating points, as immutable records of sourced quantities."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self, overload

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.frozen import FrozenDict
from mlsys.provenance import read
from mlsys.units import Quantity


def known(owner: str, what: str, value: Quantity | None) -> Quantity:
    """Return a recorded value and record its use; raise if ``owner`` has none."""
    if value is None:
        raise missing(owner, what)
    fact: Quantity = read(value)
    return fact


def missing(owner: str, what: str, why: str = "") -> UnknownNameError:
    """Return the error for a value that ``owner`` does not record, with the reason ``why`` if the file gives one."""
    reason = f" ({why})" if why else ""
    return UnknownNameError(
        f"{owner}: no {what} is recorded{reason}. Add it, with its source, to the device's YAML file"
    )


class FactField:
    """Descriptor of a recorded value: access records its use, or raises if the value is missing."""

    def __init__(self, label: str, meaning: str) -> None:
        self.label, self.__doc__ = label, meaning

    def __set_name__(self, owner: type, name: str) -> None:
        self.field = f"_{name}"

    @overload
    def __get__(self, twin: None, owner: type) -> Self: ...
    @overload
    def __get__(self, twin: Any, owner: type) -> Quantity: ...
    def __get__(self, twin: Any, owner: type) -> Self | Quantity:
        return self if twin is None else known(twin.name, self.label, getattr(twin, self.field))


def refuse_forged(owner: str, values: Iterable[tuple[str, Any]]) -> None:
    """Raise for values that are not positive and finite, such as ``dataclasses.replace`` may insert.

    Raises
    ------
    ArgumentError
        If a value is not finite or not above zero.
    """
    for name, value in values:
        number = getattr(value, "_magnitude", 1.0)
        if not (isinstance(number, (int, float)) and 0 < number < math.inf):
            raise ArgumentError(f"{owner}: `{name.lstrip('_')}` must be finite and above zero, got {value:~P}")


@dataclass(frozen=True)
class MemoryLevel:
    """One level of a memory hierarchy.

    ``scope`` says whether ``capacity``, ``usable`` and ``bandwidth`` are those of the whole ``device``
    or of one ``unit`` (a streaming multiprocessor, a core, a tile). ``instances`` is the number of
    separate memories of this level on the device. ``shared_along`` lists the loops along the array that
    share one instance, for machines with separate memories for each operand.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> l1 = Hardware.Cloud.A100.level("L1")
    >>> print(f"{l1.capacity:~P} for each of {l1.instances} units, of which {l1.usable:~P} can be shared memory")
    192 KiB for each of 108 units, of which 164 KiB can be shared memory
    """

    name: str
    kind: str
    scope: str
    _capacity: Quantity | None
    _bandwidth: Quantity | None
    _latency: Quantity | None
    instances: int = 1
    note: str = ""
    _usable: Quantity | None = None
    shared_along: tuple[str, ...] = ()
    _read: Quantity | None = None
    _write: Quantity | None = None
    _width: Quantity | None = None
    _units: Quantity | None = None  # source of `instances`, if the file gives no count

    def __post_init__(self) -> None:
        given = ((name, value) for name, value in vars(self).items() if name[0] == "_" and value is not None)
        refuse_forged(self.name, given)

    @property
    def has_capacity(self) -> bool:
        """Whether the capacity is recorded."""
        return self._capacity is not None

    @property
    def capacity(self) -> Quantity:
        """Capacity in bytes; unknown if the board decides how much memory a chip has."""
        if self._capacity is None:
            raise missing(self.name, "capacity", self.note)
        return known(self.name, "capacity", self._capacity)

    @property
    def usable(self) -> Quantity:
        """Bytes that a program may allocate; equal to the capacity unless a lower limit is recorded."""
        return self.capacity if self._usable is None else known(self.name, "usable capacity", self._usable)

    bandwidth = FactField("bandwidth", "Peak bandwidth in byte/s, decimal.")
    latency = FactField("latency", "Time from load to use.")

    @property
    def capacity_each(self) -> Quantity:
        """Capacity of one instance in bytes: what a single unit can access at this level."""
        return self._each(self.capacity)

    @property
    def capacity_total(self) -> Quantity:
        """Total capacity of all instances in bytes."""
        return self._total(self.capacity)

    @property
    def bandwidth_total(self) -> Quantity:
        """Total bandwidth of all instances, byte/s."""
        return self._total(self.bandwidth)

    @property
    def amounts(self) -> tuple[Quantity | None, ...]:
        """Every value that may be recorded, None where unknown; does not record a use."""
        return self._capacity, self._usable, self._bandwidth, self._latency, self._read, self._write, self._width

    def _each(self, amount: Quantity) -> Quantity:
        return amount if self.scope == "unit" or self.instances == 1 else amount / self.instances

    def _total(self, amount: Quantity) -> Quantity:
        return amount * self.instances if self.scope == "unit" and self.instances != 1 else amount


@dataclass(frozen=True)
class OperandPaths:
    """Memory hierarchy of each operand, for machines on which they differ.

    Attributes
    ----------
    bits
        Width in bits of ``input``, ``weight``, ``partial`` sums and final ``output``.
    array
        Number of lanes of the array, by loop.
    paths
        Names of the memories of ``input``, ``weight`` and ``output``, the main memory first.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> paths = Hardware.Arrays.tpu_like.operands
    >>> print(paths.paths["weight"], paths.mac)
    ('dram', 'rf_128B') 0.04 pJ
    """

    bits: FrozenDict[str, int]
    array: FrozenDict[str, int]
    paths: FrozenDict[str, tuple[str, ...]]
    _mac: Quantity

    @property
    def mac(self) -> Quantity:
        """Energy of one multiply-accumulate."""
        return known("operands", "energy of a multiply-accumulate", self._mac)


@dataclass(frozen=True)
class Link:
    """A link to other devices; bandwidth is per direction."""

    name: str
    kind: str
    _per_direction: Quantity | None
    _latency: Quantity | None

    def __post_init__(self) -> None:
        given = ((name, value) for name, value in vars(self).items() if name[0] == "_" and value is not None)
        refuse_forged(self.name, given)

    per_direction = FactField("bandwidth", "Bandwidth in one direction, byte/s.")

    @property
    def both_directions(self) -> Quantity:
        """Bandwidth of both directions together, byte/s, as vendors advertise it."""
        both: Quantity = self.per_direction * 2
        return both

    latency = FactField("latency", "Time for the smallest message.")


@dataclass(frozen=True)
class OperatingPoint:
    """A clock that a chip may run at, and the minimum voltage of its cores at that clock.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> slowest, *_, fastest = Hardware.Mobile.Kirin960_CPU.points
    >>> print(f"{slowest.clock:~P} at {slowest.voltage:~P}, {fastest.clock:~P} at {fastest.voltage:~P}")
    903 MHz at 0.7 V, 2362 MHz at 1.1 V
    """

    _clock: Quantity | None
    _voltage: Quantity | None

    @property
    def clock(self) -> Quantity:
        """Clock frequency."""
        return known("operating point", "clock", self._clock)

    @property
    def voltage(self) -> Quantity:
        """Minimum supply voltage of the cores at this clock."""
        return known("operating point", "voltage", self._voltage)
