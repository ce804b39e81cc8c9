"""Sourced constants, units, and flat names for facts of devices.

``from mlsys.constants import ...`` gives four kinds of names:

- **units**: ``GB``, ``TFLOPs``, ``US`` (microsecond), ``param``, ...; plain multipliers such
  as ``BILLION``; widths such as ``BYTES_FP16``;
- **facts**: ``ENERGY_DRAM_ACCESS_PJ``, ``LATENCY_HBM3``, ``PCIE_GEN5_BW``, ``GPT2_PARAMS``, ...,
  quantities that record who published them and what was measured; :func:`facts` lists them;
- **flat device names**: ``A100_FLOPS_FP16_TENSOR``, ``H100_MEM_BW``, ``NVLINK_A100_BW``. They are
  views of the twins in :data:`mlsys.hardware.Hardware`, where each fact is stored once. Rates are
  dense and links are per direction. ``_TENSOR`` is the matrix unit, ``FP32`` and ``FP64`` alone are
  the vector unit, ``_SPARSE`` is 2:4;
- **examples**: sizes that pages share, such as ``TRANSFORMER_HIDDEN_DIM_EXAMPLE``.

Where a value differs from the one that is customary for its name, the meaning says why.

Examples
--------
>>> from mlsys.constants import A100_MEM_BW, ENERGY_DRAM_ACCESS_PJ, GB, second
>>> print(f"{A100_MEM_BW.m_as(GB / second):,}")
2,039
>>> ENERGY_DRAM_ACCESS_PJ
ENERGY_DRAM_ACCESS_PJ = 640.0 pJ
  meaning     one access to a 32-bit word in DRAM ...
  uncertainty not stated
  source      S. Han et al., ... NIPS 2015, Fig. 1 (2015-06)
  confidence  secondary
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from mlsys._facts import DERIVED, PUBLISHED
from mlsys._facts import fact as _fact
from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.provenance import read
from mlsys.units import Q_ as Q_
from mlsys.units import Quantity, Unit
from mlsys.units import ureg as ureg

if TYPE_CHECKING:
    from mlsys.hardware import Device


def _units(names: str) -> Iterator[Unit]:
    return map(ureg.Unit, names.split())


# --- units -------------------------------------------------------------------
bit, byte, KB, MB, GB, TB, PB, EB = _units("bit byte KB MB GB TB PB EB")
KiB, MiB, GiB, TiB, PiB = _units("KiB MiB GiB TiB PiB")
Gbps, Tbps = _units("Gbps Tbps")
flop, MAC = _units("flop MAC")
KFLOPs, MFLOPs, GFLOPs, TFLOPs, PFLOPs, EFLOPs, ZFLOPs = _units("KFLOPs MFLOPs GFLOPs TFLOPs PFLOPs EFLOPs ZFLOPs")
GFLOP, TFLOP, PFLOP = GFLOPs, TFLOPs, PFLOPs
GOPS, TOPS = _units("GOP/s TOP/s")
second, minute, hour, day, year = _units("second minute hour day year")
MS, US, NS = _units("millisecond microsecond nanosecond")
ms, us, ns = MS, US, NS
cycle, hertz, MHz, GHz = _units("cycle hertz MHz GHz")
milliwatt, watt, kilowatt, megawatt = _units("milliwatt watt kilowatt megawatt")
picojoule, joule, kilowatt_hour = _units("picojoule joule kilowatt_hour")
param, Kparam, Mparam, Bparam, Tparam = _units("param Kparam Mparam Bparam Tparam")
token, inference, count, USD = _units("token inference count USD")
meter, kilometer = _units("meter kilometer")

# --- plain multipliers ---------------------------------------------------------
THOUSAND = 10**3
MILLION = 10**6
BILLION = 10**9
TRILLION = 10**12
QUADRILLION = 10**15
KIB_TO_BYTES = 2**10
MIB_TO_BYTES = 2**20
GIB_TO_BYTES = 2**30
TIB_TO_BYTES = 2**40
BITS_PER_BYTE = 8
SECONDS_PER_MINUTE = 60
MINUTES_PER_HOUR = 60
SECONDS_PER_HOUR = 3_600
HOURS_PER_DAY = 24
SECONDS_PER_DAY = 86_400
DAYS_PER_YEAR = 365  # a calendar year; the unit `year` is the Julian one, 365.25 days
HOURS_PER_YEAR = HOURS_PER_DAY * DAYS_PER_YEAR

# --- widths and sizes that pages share ------------------------------------------
FP32_BITS = 32
INT8_BITS = 8
GPT2_LAYERS = 48
GPT2_HIDDEN_DIM = 1600
GPT2_HEADS = 25
TRANSFORMER_HIDDEN_DIM_EXAMPLE = 768
TRANSFORMER_SEQ_LEN_EXAMPLE = 512
TRANSFORMER_HEADS_EXAMPLE = 12
SYSTOLIC_ARRAY_DIM = 128

_WIDTHS = {
    f"BYTES_{name.upper()}": name for name in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4", "int4")
}

# --- flat device names: prefix to device, suffix to precision, unit, sparsity --
_DEVICES = {
    "P100": "P100",
    "V100": "V100",
    "T4": "T4",
    "A100": "A100",
    "H100": "H100",
    "H200": "H200",
    "B200": "B200",
    "MI300X": "MI300X",
    "TPUV1": "TPUv1",
    "TPUV4": "TPUv4",
    "TPUV5P": "TPUv5p",
    "MOBILE_NPU": "MobileNPU",
    "JETSON": "JetsonOrin",
}
_RATES: dict[str, tuple[str, str | None, str]] = {
    "FLOPS_FP64": ("fp64", "vector", "dense"),
    "FLOPS_FP64_TENSOR": ("fp64", "matrix", "dense"),
    "FLOPS_FP32": ("fp32", "vector", "dense"),
    "FLOPS_TF32": ("tf32", None, "dense"),
    "FLOPS_FP16_TENSOR": ("fp16", "matrix", "dense"),
    "FLOPS_FP16_SPARSE": ("fp16", "matrix", "2:4"),
    "FLOPS_BF16": ("bf16", None, "dense"),
    "FLOPS_FP8": ("fp8", None, "dense"),
    "FLOPS_FP8_TENSOR": ("fp8", "matrix", "dense"),
    "FLOPS_INT8": ("int8", None, "dense"),
    "TOPS_INT8": ("int8", None, "dense"),
    "FLOPS_INT4": ("int4", None, "dense"),
    "FLOPS_FP4_TENSOR": ("fp4", "matrix", "dense"),
}
_FIELDS = {"MEM_BW": "memory_bw", "MEM_CAPACITY": "memory_capacity", "TDP": "tdp"}
_NVLINKS = {f"NVLINK_{device}_BW": device for device in ("P100", "V100", "A100", "H100", "H200", "B200")}
_FLAT = {
    f"{prefix}_{suffix}": (device, suffix)
    for prefix, device in _DEVICES.items()
    for suffix in itertools.chain(_RATES, _FIELDS)
}


@functools.wraps(_fact)
def _recorded_fact(*args: Any, **named: Any) -> Quantity:
    quantity: Quantity = read(_fact(*args, **named))
    return quantity


fact = _recorded_fact


def facts() -> dict[str, Quantity]:
    """Return every fact of this module by name, without recording a use.

    Returns
    -------
    dict of str to Quantity
        Copies of the published values: what-ifs are not applied. Facts of devices are
        not included; see :data:`mlsys.hardware.Hardware`.

    Examples
    --------
    >>> print(facts()["ENERGY_MAC_INT8_PJ"])
    0.23 pJ
    >>> print(facts()["ENERGY_MAC_INT8_PJ"].source)
    computed: ENERGY_ADD_INT8_PJ + ENERGY_MUL_INT8_PJ; M. Horowitz, ... ISSCC 2014, Fig. 1.1.9
    """
    known = {name: quantity.__copy__() for name, quantity in PUBLISHED.items()}
    return known | {name: rule.value(known) for name, rule in DERIVED.items()}


def _device(name: str) -> Device:
    from mlsys.hardware import Hardware

    return Hardware[name]


def _of_device(device: Device, suffix: str) -> Quantity:
    if suffix in _FIELDS:
        fact: Quantity = getattr(device, _FIELDS[suffix])
        return fact
    precision, unit, sparsity = _RATES[suffix]
    return device.peak(precision, sparsity, unit)


_VIEW_FIELDS = {"MEM_BW": "bandwidth", "MEM_CAPACITY": "capacity"}


def _device_has(name: str, suffix: str) -> bool:
    """Return whether the fact behind a flat name exists, without recording a use."""
    try:
        device = _device(name)
    except UnknownNameError:
        return False
    if suffix in _RATES:
        precision, unit, sparsity = _RATES[suffix]
        return device.has_peak(precision, sparsity, unit)
    from mlsys.hardware import view

    machine = view(device)
    return machine.has("tdp") if suffix == "TDP" else machine.main.has(_VIEW_FIELDS[suffix])


def _has_nvlink(name: str) -> bool:
    try:
        return "NVLink" in _device(name).links
    except UnknownNameError:
        return False


@functools.cache
def _public() -> tuple[str, ...]:
    """Return every name that can be imported; the first call reads the device files."""
    plain = [name for name, value in globals().items() if isinstance(value, Unit) or type(value) is int]
    flat = [name for name, (device, suffix) in _FLAT.items() if _device_has(device, suffix)]
    links = [name for name, device in _NVLINKS.items() if _has_nvlink(device)]
    return tuple(sorted(["Q_", "fact", "facts", "ureg", *plain, *_WIDTHS, *PUBLISHED, *DERIVED, *flat, *links]))


def _read(name: str) -> Any:
    if name in PUBLISHED:
        return read(PUBLISHED[name])
    if name in DERIVED:
        rule = DERIVED[name]
        return read(rule.value({part: _read(part) for part in rule.parts}))
    if name in _WIDTHS:
        from mlsys.precision import element_size

        return element_size(_WIDTHS[name])
    if name in _FLAT:
        device, suffix = _FLAT[name]
        return _of_device(_device(device), suffix)
    if name in _NVLINKS:
        return _device(_NVLINKS[name]).link("NVLink").per_direction
    known = [*PUBLISHED, *DERIVED, *_WIDTHS, *_FLAT, *_NVLINKS, *(each for each in globals() if each[0] != "_")]
    raise UnknownNameError(f"mlsys.constants has no name {name!r}.{did_you_mean(name, known)}")


def _imports(frame: FrameType) -> bool:
    """Return whether ``frame`` is executing a ``from ... import`` statement."""
    import dis

    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _public()
    if name.startswith("_"):
        raise AttributeError(f"module 'mlsys.constants' has no attribute {name!r}")
    try:
        return _read(name)
    except UnknownNameError as error:
        if _imports(sys._getframe(1)):  # an AttributeError would be replaced by a message without our hint
            raise ImportError(str(error), name=__name__) from None
        raise


def __dir__() -> list[str]:
    return list(_public())
