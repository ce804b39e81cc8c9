"""Devices: immutable records of peak rates, memory levels, links and power, each value with its source.

A device implements look-ups and no models. Peaks are keyed by precision, unit
(matrix or vector) and sparsity; memory by level; links are per direction. A
request for a missing value raises an error that lists what is available;
there are no silent fallbacks.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.frozen import FrozenDict
from mlsys.hardware.parts import FactField, Link, MemoryLevel, OperandPaths, OperatingPoint, known, refuse_forged
from mlsys.precision import precision_name
from mlsys.provenance import Fact, read
from mlsys.unit_checks import checked_number, positive
from mlsys.units import Quantity

__all__ = ["Device", "Link", "MemoryLevel"]


@dataclass(frozen=True)
class Device:
    """A digital twin of one machine.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> a100 = Hardware.Cloud.A100
    >>> print(a100.peak("fp16"), a100.memory_bw)
    312 TFLOP/s 2039 GB/s
    >>> print(f"{a100.ridge_point('fp16'):.1f}")
    153.0 FLOP/B
    >>> a100.peak("fp8")
    Traceback (most recent call last):
        ...
    mlsys.errors.UnknownNameError: NVIDIA A100 80 GB SXM4 has no fp8 peak. It has: ...
    """

    id: str
    name: str
    kind: str
    vendor: str
    architecture: str
    release_year: int
    aliases: tuple[str, ...]
    note: str
    headline: str
    main_memory: str
    memory: FrozenDict[str, MemoryLevel]
    links: FrozenDict[str, Link]
    sources: FrozenDict[str, FrozenDict[str, str]]
    process_node: str
    systolic_array: tuple[int, int, int] | None
    _peaks: FrozenDict[tuple[str, str, str], Any]
    _chip: FrozenDict[str, Any]
    _tdp: Quantity | None
    _idle_power: Quantity | None
    _price: Quantity | None
    profile: str = ""
    _node: Quantity | None = None
    operands: OperandPaths | None = None
    _active_power: Quantity | None = None
    points: tuple[OperatingPoint, ...] = ()
    product: str = ""

    def __hash__(self) -> int:
        """Hash a few identifying fields, for speed; equality compares every value."""
        return hash((self.id, self.name, self.profile, self.headline))

    def __post_init__(self) -> None:
        peaks = ((" ".join(key), value) for key, value in self._peaks.items())
        single = ((name, getattr(self, name)) for name in ("_tdp", "_idle_power", "_price", "_node", "_active_power"))
        given = (*peaks, *self._chip.items(), *((name, value) for name, value in single if value is not None))
        refuse_forged(self.name, given)

    @property
    def generic(self) -> bool:
        """Whether this is a teaching profile: a made-up machine with assumed values."""
        return self.profile == "teaching"

    @property
    def precisions(self) -> tuple[str, ...]:
        """Precisions for which this device has a peak."""
        return tuple(dict.fromkeys(precision for precision, _, _ in self._peaks))

    def peak(self, precision: str | None = None, sparsity: str | None = None, unit: str | None = None) -> Quantity:
        """Return the peak rate of ``precision`` in FLOP/s.

        Parameters
        ----------
        precision
            Such as ``"fp16"``; by default the headline precision of the device.
        sparsity
            ``"dense"`` (the default) or ``"2:4"``.
        unit
            ``"matrix"`` or ``"vector"``; by default the matrix unit where the device
            has one for this precision, else the vector unit.

        Raises
        ------
        UnknownNameError
            If the device has no such peak; the message lists those it has.
        """
        wanted = precision_name(self.headline if precision is None else precision)
        kind = sparsity or "dense"
        if wanted not in self.precisions:
            raise UnknownNameError(f"{self.name} has no {wanted} peak. It has: {', '.join(self.precisions)}")
        for candidate in (unit,) if unit else ("matrix", "vector"):
            if (wanted, candidate, kind) in self._peaks:
                peak: Quantity = read(self._peaks[wanted, candidate, kind])
                return peak
        have = ", ".join(f"{u} {s}" for p, u, s in self._peaks if p == wanted)
        requested = " ".join(filter(None, (unit, kind)))
        raise UnknownNameError(f"{self.name} has no {requested} peak for {wanted}. It has: {have}")

    def has_peak(self, precision: str, sparsity: str | None = None, unit: str | None = None) -> bool:
        """Return whether :meth:`peak` has a value, without recording a use."""
        wanted, kind = precision_name(precision), sparsity or "dense"
        return any((wanted, each, kind) in self._peaks for each in ((unit,) if unit else ("matrix", "vector")))

    @property
    def peak_flops(self) -> Quantity:
        """The headline rate: dense peak of the headline precision."""
        return self.peak(self.headline)

    @property
    def peak_flops_fp32(self) -> Quantity:
        """Dense FP32 rate; TF32 is a different precision."""
        return self.peak("fp32")

    @property
    def tf32_flops(self) -> Quantity:
        """Dense TF32 rate of the matrix units."""
        return self.peak("tf32")

    @property
    def fp8_flops(self) -> Quantity:
        """Dense FP8 rate."""
        return self.peak("fp8")

    @property
    def int8_flops(self) -> Quantity:
        """Dense INT8 rate; one multiply-accumulate counts as two operations."""
        return self.peak("int8")

    def level(self, name: str | None = None) -> MemoryLevel:
        """Return a memory level by name; by default the main memory."""
        wanted = self.main_memory if name is None else name
        if wanted not in self.memory:
            raise UnknownNameError(
                f"{self.name} has no memory level {wanted!r}. It has: {', '.join(self.memory)}."
                + did_you_mean(wanted, self.memory)
            )
        return self.memory[wanted]

    @property
    def inner_levels(self) -> tuple[MemoryLevel, ...]:
        """The levels between the main memory and the compute units, from the outermost to the innermost."""
        names = list(self.memory)
        return tuple(self.memory[name] for name in names[names.index(self.main_memory) + 1 :])

    @property
    def memory_bw(self) -> Quantity:
        """Peak bandwidth of the main memory."""
        return self.level().bandwidth

    @property
    def memory_capacity(self) -> Quantity:
        """Capacity of the main memory."""
        return self.level().capacity

    def link(self, name: str) -> Link:
        """Return a link by name."""
        if name not in self.links:
            have = ", ".join(self.links) or "none"
            raise UnknownNameError(f"{self.name} has no link {name!r}. It has: {have}.{did_you_mean(name, self.links)}")
        return self.links[name]

    tdp = FactField("TDP", "Thermal design power.")
    idle_power = FactField("idle power", "Power when idle.")
    active_power = FactField(
        "active power", "Measured power under load; the thermal design power is a limit, not a measurement."
    )
    price = FactField("price", "Price; its fact records the date and the kind of price.")

    def chip(self, name: str) -> Quantity:
        """Return a fact of the chip: ``clock``, ``boost``, ``units``, ``macs_per_cycle``, ``die_area``."""
        if name not in self._chip:
            have = ", ".join(self._chip) or "none"
            raise UnknownNameError(
                f"{self.name} has no chip fact {name!r}. It has: {have}.{did_you_mean(name, self._chip)}"
            )
        return known(self.name, name, self._chip[name])

    def fastest(self, precision: str | None = None) -> Quantity:
        """Return the highest dense rate of a precision, by default the headline, without recording a use."""
        wanted = precision or self.headline
        rates = [rate for (name, _, kind), rate in self._peaks.items() if (name, kind) == (wanted, "dense")]
        if not rates:
            have = ", ".join(self.precisions) or "none"
            raise UnknownNameError(f"{self.name} has no {wanted} peak. It has: {have}")
        highest: Quantity = copy.copy(max(rates))
        return highest

    def glance(self) -> dict[str, Quantity | None]:
        """Return the key figures of the device, None where unknown, without recording a use.

        Returns
        -------
        dict
            ``peak`` (headline, dense), ``bandwidth`` and ``capacity`` of the main memory,
            ``ridge`` (peak over bandwidth) and ``tdp``.
        """
        main = self.memory[self.main_memory]
        peak = self.fastest() if self._peaks else None
        speed = main._bandwidth
        ridge = (peak / speed).to("FLOP/byte") if peak is not None and speed is not None else None
        figures = {
            "peak": peak,
            "bandwidth": main._bandwidth,
            "capacity": main._capacity,
            "ridge": ridge,
            "tdp": self._tdp,
        }
        return {name: copy.copy(figure) for name, figure in figures.items()}

    def record(self) -> dict[str, object]:
        """Return the device as plain data, for JSON: what ``mlsys device --json`` prints; notes no use."""
        from mlsys.hardware.compare import device_record

        return device_record(self)

    def recorded(self) -> list[Quantity]:
        """Return every recorded value of the device, without recording a use."""
        levels = [amount for level in self.memory.values() for amount in level.amounts]
        links = [q for link in self.links.values() for q in (link._per_direction, link._latency)]
        values = [
            *self._peaks.values(),
            *levels,
            *links,
            *self._chip.values(),
            self._tdp,
            self._idle_power,
            self._active_power,
            *(amount for point in self.points for amount in (point._clock, point._voltage)),
            self._price,
            self.operands._mac if self.operands else None,
        ]
        return [copy.copy(value) for value in values if value is not None]

    def unknown(self) -> tuple[str, ...]:
        """Return the names of missing values, such as ``"L2 latency"``, without recording a use."""
        missing = [
            f"{level.name} {what}"
            for level in self.memory.values()
            for what, amount in (
                ("capacity", level._capacity),
                ("bandwidth", level._bandwidth),
                ("latency", level._latency),
            )
            if amount is None
        ]
        rest = {"TDP": self._tdp, "price": self._price, "clock": self._chip.get("clock")}
        return (*missing, *(name for name, amount in rest.items() if amount is None))

    def with_onchip(self, capacity: Quantity) -> Device:
        """Return a copy of this teaching profile with another on-chip memory capacity.

        Parameters
        ----------
        capacity
            Bytes of the first level below the main memory, per device or per unit as its ``scope`` says.
            It must lie between the capacities of its two neighbours.

        Returns
        -------
        Device
            A new device; this one is unchanged.

        Raises
        ------
        ArgumentUnitError, ArgumentError
            If the capacity has no unit of information, is not a positive whole number of bytes, does not
            lie between those of its neighbours, or the device is a real one, whose capacities are facts.

        Examples
        --------
        >>> from mlsys import Hardware
        >>> from mlsys.units import Q_
        >>> kpu = Hardware.Generic.KPU.with_onchip(Q_(2, "MiB"))
        >>> print(kpu.name, "|", kpu.level("Scratchpad").capacity)
        Generic KPU, Scratchpad of 2 MiB | 2 MiB
        """
        where = "with_onchip"
        if not self.generic:
            raise ArgumentError(
                f"{where}(): {self.name} is a real device, whose capacities are facts. "
                "Start from a teaching profile, such as Hardware.Generic.KPU"
            )
        size = checked_number(where, "capacity", capacity, positive("byte"), {})
        if getattr(size, "ndim", 0):
            raise ArgumentError(
                f"{where}(): `capacity` must be a single value, got {capacity}. Create one device for each"
            )
        level, *inner = self.inner_levels
        outer = self.memory[self.main_memory]
        least = max((_recorded_bytes(each) for each in inner), default=0.0)
        if not float(size).is_integer() or not least < size < _recorded_bytes(outer):
            raise ArgumentError(
                f"{where}(): `capacity` must be a whole number of bytes, more than the {least:,.0f} byte of the next "
                f"level and less than the {_recorded_bytes(outer):,.0f} byte of {outer.name}, got {capacity}. "
                'Write e.g. capacity=Q_(2, "MiB")'
            )
        chosen: Quantity = copy.copy(capacity)
        chosen._origin = Fact(
            name=f"{self.id}/memory/{level.name}/capacity",
            meaning=f"capacity of {level.name}, as chosen by the user",
            source=f"Chosen with {where}() for a teaching profile",
            date=str(self.release_year),
            confidence="assumed",
        )
        changed = replace(level, _capacity=chosen, _usable=None)
        return replace(
            self,
            name=f"{self.name.partition(',')[0]}, {level.name} of {capacity:~P}",
            memory=FrozenDict({**self.memory, level.name: changed}),
        )

    def ridge_point(
        self, precision: str | None = None, sparsity: str | None = None, level: str | None = None
    ) -> Quantity:
        """Return the ridge point in FLOP/byte: the intensity at which the compute and memory limits are equal."""
        from mlsys.formulas import ridge_point

        return ridge_point(self.peak(precision, sparsity), self.level(level).bandwidth)

    def __repr__(self) -> str:
        if not self._peaks:
            return f"<{self.kind} {self.name} ({self.release_year}): a {self.profile}>"
        units = (unit for unit in ("matrix", "vector") if (self.headline, unit, "dense") in self._peaks)
        peak = self._peaks[self.headline, next(units), "dense"]
        level = self.memory[self.main_memory]
        rates = f"{self.headline} {peak:~P}, {self.main_memory} {level._bandwidth:~P}"
        return f"<{self.kind} {self.name} ({self.release_year}): {rates}>"


def _recorded_bytes(level: MemoryLevel) -> float:
    """Return the recorded capacity in bytes, 0 if unknown, without recording a use."""
    return 0.0 if level._capacity is None else float(level._capacity.m_as("byte"))
