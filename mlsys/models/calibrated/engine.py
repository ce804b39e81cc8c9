"""The numbers of a twin that the calibrated model needs, as plain floats in SI units."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from mlsys.errors import ArgumentError
from mlsys.hardware import Device
from mlsys.precision import PRECISIONS, precision_name

__all__ = ["Engine", "engine_of"]

# Where a machine has no unit for a format, the product runs on the next one that it has:
# integers and narrow floats are widened, never narrowed.
_WIDER = {
    "int1": ("int4", "int8", "fp16", "bf16", "fp32"),
    "int4": ("int8", "fp16", "bf16", "fp32"),
    "fp4": ("fp8", "fp16", "bf16", "fp32"),
    "fp6": ("fp8", "fp16", "bf16", "fp32"),
    "fp8": ("fp16", "bf16", "fp32"),
    "int8": ("int16", "fp16", "bf16", "fp32"),
    "int16": ("fp32", "fp16", "bf16"),
    "fp16": ("bf16", "fp32", "int16"),
    "bf16": ("fp16", "fp32", "int16"),
    "tf32": ("fp32", "bf16", "fp16"),
    "fp32": ("tf32", "fp64", "bf16", "fp16"),
    "fp64": (),
}


@dataclass(frozen=True)
class Engine:
    """One machine, or a share of it, working in one number format.

    Attributes
    ----------
    name, computes_in
        The machine, and the format whose peak counts.
    matmul, vector
        Dense peak rates of matrix products and of element-wise work, FLOP/s.
    bandwidth
        Of the main memory, byte/s.
    cache, cache_bandwidth
        Capacity of the last level before the main memory, byte, and its rate, byte/s;
        zero where there is none, or none is known.
    units, clock
        Streaming multiprocessors, compute units or cores, and cycles per second.
    power
        Thermal design power, W; infinite where unknown.
    link
        Fastest link to a peer, byte/s in one direction; zero where there is none.
    array
        Rows of one systolic array; 1 for machines that have none.
    node
        Name of the process in nm, which is no length but orders generations; 7 where unknown.
    bits
        Of the format it computes in: 19 for TF32, whose multipliers see no more.
    """

    name: str
    computes_in: str
    matmul: float
    vector: float
    bandwidth: float
    cache: float
    cache_bandwidth: float
    units: float
    clock: float
    power: float
    link: float
    array: float
    node: float
    bits: float

    def share(self, compute: float, bandwidth: float = 1.0) -> Engine:
        """Return the engine with a share of its units and of its bandwidth.

        Parameters
        ----------
        compute, bandwidth
            Above 0, at most 1.
        """
        for argument, value in (("compute", compute), ("bandwidth", bandwidth)):
            if not 0 < value <= 1:
                raise ArgumentError(
                    f"share(): `{argument}` must be a fraction above 0 and at most 1, got {value!r}. "
                    "Give the part of the machine that works, such as 1/4 for one core of four"
                )
        return replace(
            self,
            matmul=self.matmul * compute,
            vector=self.vector * compute,
            units=max(1.0, self.units * compute),
            bandwidth=self.bandwidth * bandwidth,
            cache_bandwidth=self.cache_bandwidth * compute,
        )


@lru_cache(maxsize=2048)
def engine_of(device: Device, precision: str, *, vector_unit: bool = False) -> Engine:
    """Return the engine of a device for products in ``precision``.

    Parameters
    ----------
    device
        A twin.
    precision
        Format of the operands.
    vector_unit
        True to leave the matrix units idle, as FP32 code without TF32 does.

    Raises
    ------
    UnknownNameError
        If the precision is not one of the package's.
    ArgumentError
        If the twin has no bandwidth of the main memory, or no peak wide enough.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> engine = engine_of(Hardware.Cloud.A100, "fp16")
    >>> f"{engine.matmul / 1e12:.0f} TFLOP/s, {engine.bandwidth / 1e9:.0f} GB/s, {engine.units:.0f} units"
    '312 TFLOP/s, 2039 GB/s, 108 units'
    >>> engine_of(Hardware.Cloud.V100, "bf16").computes_in
    'fp16'
    """
    wanted = precision_name(precision)
    rates = {
        (p, unit): float(rate.m_as("FLOP/s")) for (p, unit, kind), rate in device._peaks.items() if kind == "dense"
    }
    computes_in, matmul = _rate(device, rates, wanted, vector_unit)
    main = device.memory[device.main_memory]
    if main._bandwidth is None:
        raise ArgumentError(
            f"engine_of(): `device` {device.name} has no bandwidth of its {main.name} on record, and no time "
            "of a transfer follows without. Add it, with its source, to the device's YAML file"
        )
    bandwidth = float(main._bandwidth.m_as("byte/s"))
    cache, cache_bandwidth = _cache(device)
    vector = rates.get(("fp32", "vector")) or max(
        (rate for (_, unit), rate in rates.items() if unit == "vector"), default=0
    )
    links = [
        float(link._per_direction.m_as("byte/s")) for link in device.links.values() if link._per_direction is not None
    ]
    return Engine(
        name=device.name,
        computes_in=computes_in,
        matmul=matmul,
        vector=vector or matmul / 16,
        bandwidth=bandwidth,
        cache=cache,
        cache_bandwidth=cache_bandwidth,
        units=_chip(device, "units", "", 1.0),
        clock=_chip(device, "clock", "Hz", 1e9),
        power=float(device._tdp.m_as("W")) if device._tdp is not None else float("inf"),
        link=max(links, default=0.0),
        array=float(device.systolic_array[0]) if device.systolic_array else 1.0,
        node=_node(device),
        bits=19.0 if computes_in == "tf32" else float(PRECISIONS[computes_in]),
    )


def _rate(device: Device, rates: dict[tuple[str, str], float], wanted: str, vector_unit: bool) -> tuple[str, float]:
    for candidate in (wanted, *_WIDER[wanted]):
        for unit in ("vector",) if vector_unit else ("matrix", "vector"):
            if (candidate, unit) in rates:
                return candidate, rates[candidate, unit]
    if vector_unit:
        return _rate(device, rates, wanted, False)
    if wanted in ("fp16", "bf16", "int16") and (
        integer := rates.get(("int8", "matrix")) or rates.get(("int8", "vector"))
    ):
        return wanted, integer / 2  # a unit for 8 bits takes two passes at least
    raise ArgumentError(
        f"engine_of(): `precision` {wanted} finds no rate on {device.name}, which has {', '.join(device.precisions)}; "
        f"tried {', '.join((wanted, *_WIDER[wanted]))} of {', '.join(PRECISIONS)}"
    )


def _cache(device: Device) -> tuple[float, float]:
    """Return capacity and rate of the last level on the chip that all units share."""
    shared = [
        level
        for level in device.memory.values()
        if level.name != device.main_memory and level.scope == "device" and level._capacity is not None
    ]
    if not shared:
        return 0.0, 0.0
    last = max(shared, key=lambda level: float(level._capacity.m_as("byte")))  # type: ignore[union-attr]
    rate = float(last._bandwidth.m_as("byte/s")) if last._bandwidth is not None else 0.0
    return float(last._capacity.m_as("byte")), rate  # type: ignore[union-attr]


def _node(device: Device) -> float:
    found = re.search(r"(\d+(?:\.\d+)?) ?nm|\bN(\d+)|(\d)N\b", device.process_node)
    return float(next(filter(None, found.groups()))) if found else 7.0


def _chip(device: Device, name: str, unit: str, otherwise: float) -> float:
    fact = device._chip.get(name)
    if fact is None:
        return otherwise
    return float(fact.magnitude) if not unit else float(fact.m_as("Hz" if unit == "Hz" else unit))
