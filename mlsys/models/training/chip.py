"""What one chip sustains in training: products, attention and element-wise work, as floats in SI units."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlsys import constants
from mlsys._facts import PUBLISHED
from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.precision import precision_name

STREAMED = 0.85
"""Share of the memory bandwidth that element-wise kernels reach; STREAM-like tests of HBM measure 0.82 to 0.92."""
FORWARD_ATTENTION, BACKWARD_ATTENTION = 0.60, 0.50
"""Share of the dense 16-bit peak that fused attention reaches. FlashAttention-2 reports up to 0.73 and 0.63 on an
A100, for long sequences and head widths of 128; shorter sequences and masks cost the rest (arXiv:2307.08691)."""
SATURATED = 0.83
"""Rate of products that run for minutes on all GPUs of a node, over the fastest short one, whose clock boosts: 0.815
measured on eight B200 and 0.848 on eight H200 (1,426 of 1,751 and 699 of 824 BF16 TFLOP/s; S. Bekman, Machine Learning
Engineering, compute/accelerator/benchmarks/README.md, alone against all eight concurrent, 2026)."""
_SYSTOLIC = 0.80
"""Share of the peak for large products on a systolic array: what this package's fit to measurements gives for products
of 8,192 rows on a TPU v4 (219 to 222 of 275 TFLOP/s) and v5e (152 to 154 of 197)."""
_SUSTAINED = 0.75
"""Share of the peak for short large products on other chips without a measurement: the mean of the measured ones."""
_TILES = ((128, 256), (256, 128), (128, 128))
_MEASURED = {
    "A100_80GB": "A100_SXM",
    "A100_40GB": "A100_SXM",
    "A100_80GB_PCIe": "A100_PCIE",
    "A100_40GB_PCIe": "A100_PCIE",
    "H100_SXM": "H100_SXM",
    "H200_SXM": "H200_SXM",
    "GH200": "GH200",
    "GH200_144GB": "GH200",
    "B200": "B200",
    "GB200": "GB200",
    "Gaudi2": "GAUDI2",
    "Gaudi3": "GAUDI3",
    "MI300X": "MI300X",
    "MI325X": "MI325X",
    "MI355X": "MI355X",
}
_SAME_RATE = {"fp16": "bf16"}
_SAME_CHIP = {"H200_SXM": "H100_SXM"}
_WIDE = {"fp32", "tf32"}


@dataclass(frozen=True)
class ChipRates:
    """Rates of one chip.

    Attributes
    ----------
    peak
        Dense peak in the format of the products, FLOP/s.
    products, wide_products
        FLOP/s that large products sustain in that format, and in the format of activations.
    attention_peak
        Dense peak in the format of activations, FLOP/s.
    bandwidth
        Bandwidth of the main memory, byte/s.
    units
        Units that share the tiles of a product; 1 for a systolic array.
    element
        Bytes of an activation.
    measured
        Whether ``products`` rests on a measurement of this chip.
    """

    peak: float
    products: float
    wide_products: float
    attention_peak: float
    bandwidth: float
    units: int
    element: int
    measured: bool

    def product(self, rows: float, n: float, k: float, groups: float = 1, *, wide: bool = False, out: int = 0) -> float:
        """Return the seconds of ``groups`` products (rows × k)·(k × n).

        Tiles that do not fill the last wave of units cost whole ones. Operands are read while units compute; the
        output, of ``out`` bytes each, is written when a tile is complete.
        """
        rate = self.wide_products if wide else self.products
        filled = max(self._filled(rows, n, groups, tile) for tile in _TILES) if self.units > 1 else 1.0
        computing = 2 * rows * n * k * groups / (rate * filled)
        speed = self.bandwidth * STREAMED
        reading = groups * (rows * k + k * n) * self.element / speed
        return max(computing, reading) + groups * rows * n * (out or self.element) / speed

    def _filled(self, rows: float, n: float, groups: float, tile: tuple[int, int]) -> float:
        down, across = tile
        tiles = groups * math.ceil(rows / down) * math.ceil(n / across)
        waves = math.ceil(tiles / self.units)
        return rows * n * groups / (waves * self.units * down * across)

    def stream(self, moved: float) -> float:
        """Return the seconds in which element-wise kernels move so many bytes."""
        return moved / (self.bandwidth * STREAMED)


def activation_bytes(precision: str) -> int:
    """Return the bytes of an activation: 4 if products are in FP32 or TF32, otherwise 2.

    Examples
    --------
    >>> activation_bytes("tf32"), activation_bytes("fp8")
    (4, 2)
    """
    return 4 if precision in _WIDE else 2


def chip_rates(device: Device, precision: str) -> ChipRates:
    """Return the rates of a device that trains with products in a number format.

    Raises
    ------
    UnknownNameError
        If the device has no peak in the format, or none in 16 bits for attention.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> rates = chip_rates(Hardware.Cloud.A100, "bf16")
    >>> f"{rates.products / 1e12:.0f} of {rates.peak / 1e12:.0f} TFLOP/s"
    '225 of 312 TFLOP/s'
    """
    name = precision_name(precision)
    wide = name if name in (*_WIDE, "fp16", "bf16") else "bf16"
    peak, wide_peak = (device.peak(each).m_as("FLOP/s") for each in (name, wide))
    machine = view(device, name)
    products, measured = _sustained(device, name, peak)
    many = device.kind == "GPU"
    return ChipRates(
        peak=peak,
        products=products,
        wide_products=_sustained(device, wide, wide_peak)[0],
        attention_peak=wide_peak,
        bandwidth=float(machine.main.bandwidth or 0.0),
        units=int(machine.units or 1) if many else 1,
        element=activation_bytes(name),
        measured=measured,
    )


def _sustained(device: Device, precision: str, peak: float) -> tuple[float, bool]:
    """Return the FLOP/s that large products sustain in a format, and whether that was measured on this chip."""
    key = _MEASURED.get(device.id)
    same = _SAME_RATE.get(precision, precision)
    for chip in dict.fromkeys((key, _SAME_CHIP.get(device.id, key))):
        name = f"MATMUL_{chip}_{same.upper()}"
        if name in PUBLISHED:
            short = min(peak, float(getattr(constants, name).m_as("FLOP/s")))
            return short * (SATURATED if device.kind == "GPU" else 1.0), True
    if device.systolic_array or device.kind == "TPU":
        return peak * _SYSTOLIC, False
    return peak * _SUSTAINED * SATURATED, False
