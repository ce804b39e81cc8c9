"""The hardware of the model: a systolic array with its buffers and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsys.errors import UnknownNameError
from mlsys.hardware.device import Device
from mlsys.models.systolic.folds import exact_count
from mlsys.precision import element_size
from mlsys.unit_checks import checked_number, positive
from mlsys.units import Q_, Quantity

_GIGAHERTZ = Q_(1.0, "GHz")
_SPECS = {
    "clock": positive("Hz"),
    "bandwidth": positive("byte/s"),
    "ifmap_buffer": positive("byte"),
    "filter_buffer": positive("byte"),
    "ofmap_buffer": positive("byte"),
}


@dataclass(frozen=True)
class SystolicArray:
    """A grid of multiply-accumulators, its clock, and the buffers and memory behind it.

    Parameters
    ----------
    rows, columns
        Processing elements (PEs) of one array.
    clock
        Clock frequency, Hz; by default 1 GHz, so that a cycle is a nanosecond.
    bandwidth
        Bandwidth of the memory behind the buffers, byte/s; None means infinite.
    ifmap_buffer, filter_buffer, ofmap_buffer
        Size of each double buffer, both halves, byte; None means unlimited.
    count
        Arrays that share the work, the buffers and the memory.
    name
        Name used in results.

    Raises
    ------
    ArgumentError, ArgumentUnitError
        If a size is not a positive integer, or a quantity lacks its unit.

    Examples
    --------
    >>> array = SystolicArray(128, 128, clock=Q_(1.05, "GHz"), count=8)
    >>> print(f"{array.peak.to('TFLOP/s'):.0f}, {array.edge_bandwidth('bf16').to('GB/s'):.0f} at the edges")
    275 TFLOP/s, 538 GB/s at the edges
    """

    rows: int
    columns: int
    clock: Quantity = _GIGAHERTZ
    bandwidth: Quantity | None = None
    ifmap_buffer: Quantity | None = None
    filter_buffer: Quantity | None = None
    ofmap_buffer: Quantity | None = None
    count: int = 1
    name: str = ""

    def __post_init__(self) -> None:
        for field in ("rows", "columns", "count"):
            object.__setattr__(self, field, int(exact_count("SystolicArray", field, getattr(self, field))))
        for field, spec in _SPECS.items():
            if getattr(self, field) is not None or field == "clock":
                checked_number("SystolicArray", field, getattr(self, field), spec, {})
        if not self.name:
            several = f"{self.count} × " if self.count > 1 else ""
            object.__setattr__(self, "name", f"{several}{self.rows} × {self.columns} systolic array")

    @classmethod
    def of(cls, device: Device, **changes: Any) -> SystolicArray:
        """Return the arrays recorded for a device, with its clock and memory bandwidth.

        ``changes`` are arguments of :class:`SystolicArray` to override, such as a clock
        that is not recorded.

        Raises
        ------
        UnknownNameError
            If no array is recorded for the device, or no clock is recorded or given.

        Examples
        --------
        >>> from mlsys import Hardware
        >>> array = SystolicArray.of(Hardware.Cloud.TPUv4)
        >>> array.rows, array.columns, array.count
        (128, 128, 8)
        """
        if device.systolic_array is None:
            from mlsys.hardware import Hardware

            known = ", ".join(twin.id for twin in Hardware if twin.systolic_array)
            raise UnknownNameError(
                f"systolic(): no systolic array is recorded for {device.name}. Devices with one: {known}. "
                "Or describe it: SystolicArray(rows=128, columns=128)"
            )
        rows, columns, count = device.systolic_array
        described: dict[str, Any] = {"rows": rows, "columns": columns, "count": count, "name": device.name}
        if "clock" not in changes:
            described["clock"] = device.chip("clock")
        if "bandwidth" not in changes:
            described["bandwidth"] = device.memory_bw
        return cls(**described | changes)

    @property
    def macs_per_cycle(self) -> Quantity:
        """Multiply-accumulates of all arrays per cycle."""
        return Q_(self.rows * self.columns * self.count, "MAC/cycle")

    @property
    def peak(self) -> Quantity:
        """Peak rate, with every processing element busy in every cycle, FLOP/s."""
        peak: Quantity = (self.macs_per_cycle * self.clock).to("FLOP/s")
        return peak

    def edge_bandwidth(self, precision: str) -> Quantity:
        """Return the bandwidth that one array needs at two of its edges, byte/s: (R + C) words per cycle.

        Examples
        --------
        >>> print(SystolicArray(2, 3).edge_bandwidth("fp16"))
        10 GB/s
        """
        words = Q_(self.rows + self.columns, "1/cycle")
        bandwidth: Quantity = (words * element_size(precision) * self.clock).to("GB/s")
        return bandwidth

    def words(self, precision: str) -> dict[str, int | None]:
        """Return the capacity of each buffer in words of ``precision``, by argument name of :func:`count_systolic`."""
        size = element_size(precision).m_as("byte")
        moved = {}
        for operand in ("ifmap", "filter", "ofmap"):
            buffer: Quantity | None = getattr(self, f"{operand}_buffer")
            moved[f"{operand}_words"] = None if buffer is None else int(buffer.m_as("byte") / size)
        return moved
