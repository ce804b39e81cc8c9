"""Floating-point formats, bit for bit: encoding with rounding to nearest even, decoding, limits.

The formats of accelerators are small enough to be written down in full: sign, exponent, mantissa, and what the top
codes mean. :data:`FORMATS` has those that processors compute in, from FP32 down to the four bits of E2M1, and the
power-of-two scale E8M0 of block formats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.frozen import FrozenDict

Special = Literal["ieee", "nan only", "none"]
"""What the codes of the highest exponent mean: infinities and NaN (IEEE 754), one NaN (OCP E4M3), or numbers."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format with subnormal numbers.

    Attributes
    ----------
    name
        Its name, such as ``"fp8_e4m3"``.
    exponent_bits, mantissa_bits
        Width of the two fields; the sign takes one bit more where the format is signed.
    bias
        Subtracted from the stored exponent.
    special
        Whether the highest exponent holds infinities and NaN (``"ieee"``), a NaN in its last code alone
        (``"nan only"``), or plain numbers (``"none"``).
    signed
        Whether there is a sign.
    source
        The standard that defines it.

    Examples
    --------
    >>> e4m3 = FORMATS["fp8_e4m3"]
    >>> e4m3.largest, e4m3.smallest_normal, e4m3.smallest_subnormal
    (448.0, 0.015625, 0.001953125)
    >>> e4m3.round([0.1, 17, 1000])
    array([ 0.1015625, 16.       , nan])
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    special: Special = "ieee"
    signed: bool = True
    source: str = ""

    @property
    def bits(self) -> int:
        """Bits of one value."""
        return self.signed + self.exponent_bits + self.mantissa_bits

    @property
    def epsilon(self) -> float:
        """Distance from 1 to the next larger number; rounding errs by at most half of it, relative to the value."""
        return 2.0**-self.mantissa_bits

    @property
    def largest(self) -> float:
        """The largest finite number."""
        top = (1 << self.exponent_bits) - 1
        fraction = 2 - self.epsilon
        if self.special == "ieee":
            top -= 1
        elif self.special == "nan only" and self.mantissa_bits:
            fraction -= self.epsilon
        elif self.special == "nan only":
            top -= 1
        return float(fraction * 2.0 ** (top - self.bias))

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with full precision."""
        return 2.0 ** ((1 if self.mantissa_bits else 0) - self.bias)

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive number."""
        return self.smallest_normal * self.epsilon

    def decode(self, codes: ArrayLike) -> Array:
        """Return the values of codes.

        Parameters
        ----------
        codes
            Bit patterns as unsigned integers, any shape.

        Returns
        -------
        numpy.ndarray
            Their values, of the same shape; NaN and infinities as they are coded.

        Raises
        ------
        ArgumentError
            If a code is not an integer of the format's width.

        Examples
        --------
        >>> FORMATS["fp4_e2m1"].decode(range(8))
        array([0. , 0.5, 1. , 1.5, 2. , 3. , 4. , 6. ])
        """
        given = np.asarray(codes)
        if given.dtype.kind not in "iu" or (given.size and not 0 <= given.min() <= given.max() < 1 << self.bits):
            raise ArgumentError(
                f"decode: codes must be whole numbers from 0 to {(1 << self.bits) - 1:,} for {self.name}, "
                f"got {_short(given)}"
            )
        pattern = given.astype(np.int64)
        mantissa = pattern & ((1 << self.mantissa_bits) - 1)
        exponent = (pattern >> self.mantissa_bits) & ((1 << self.exponent_bits) - 1)
        negative = self.signed & (pattern >> (self.bits - 1)) == 1
        normal = (exponent > 0) | (self.mantissa_bits == 0)  # a power of two has no mantissa to be subnormal in
        fraction = mantissa * self.epsilon + normal
        value = np.ldexp(fraction, np.where(normal, exponent, 1) - self.bias)
        top = exponent == (1 << self.exponent_bits) - 1
        if self.special == "ieee":
            value = np.where(top, np.where(mantissa == 0, np.inf, np.nan), value)
        elif self.special == "nan only":
            value = np.where(top & (mantissa == (1 << self.mantissa_bits) - 1), np.nan, value)
        signed: Array = np.where(negative, -value, value)
        return signed

    def encode(self, values: ArrayLike, *, saturate: bool = False) -> NDArray[np.uint32]:
        """Return the codes of values, rounded to the nearest number and, halfway, to the even code.

        Parameters
        ----------
        values
            Numbers, any shape.
        saturate
            Whether numbers above the largest become the largest, as most hardware converts; otherwise they become
            infinity, or NaN where the format has no infinity. Formats without either saturate in any case.

        Returns
        -------
        numpy.ndarray
            Bit patterns, of the same shape.

        Raises
        ------
        ArgumentError
            If a value is not a number, or is NaN or, unsigned, negative where the format has no code for it.

        Examples
        --------
        >>> FORMATS["bf16"].encode([1.0, -2.0]).tolist()
        [16256, 49152]
        >>> FORMATS["fp8_e4m3"].decode(FORMATS["fp8_e4m3"].encode([500.0, 448.0], saturate=True)).tolist()
        [448.0, 448.0]
        """
        given = np.asarray(values)
        if given.dtype.kind not in "iufb":
            raise ArgumentError(f"encode: values must be numbers, got {_short(given)}")
        number = given.astype(np.float64)
        if self.special == "none" and np.isnan(number).any():
            raise ArgumentError(f"encode: {self.name} has no code for NaN. Replace NaN before encoding")
        if not self.signed:
            number = np.where(number <= 0, np.nan, number)
        size, exponents = np.abs(number), (1 << self.exponent_bits) - 1
        finite = np.isfinite(size)
        lowest = (1 if self.mantissa_bits else 0) - self.bias
        _, power = np.frexp(np.where(finite, size, 0.0))
        power = np.where(size > 0, np.maximum(power - 1, lowest), lowest)
        steps = np.rint(np.ldexp(np.where(finite, size, 0.0), self.mantissa_bits - power))  # rint: halves to even
        one = 1 << self.mantissa_bits
        code = (power + self.bias).astype(np.int64) * one + steps.astype(np.int64) - one
        if self.mantissa_bits:
            code = np.where(power == lowest, steps.astype(np.int64), code)  # subnormal, or the first normal ones
        else:
            code = self._power_of_two(size, finite)
        highest = self._highest_code
        code = np.where(finite & (code <= highest), code, self._above(highest, saturate))
        code = np.where(np.isnan(number), exponents * one + one - 1 if self.special != "ieee" else
                        exponents * one + max(one >> 1, 1), code)  # fmt: skip
        code = np.where(np.isinf(number) & (saturate or self.special == "none"), highest, code)
        sign = (np.signbit(number) & ~np.isnan(number)).astype(np.int64) << (self.bits - 1) if self.signed else 0
        return (code + sign).astype(np.uint32)

    def round(self, values: ArrayLike, *, saturate: bool = False) -> Array:
        """Return values as the format stores them: encoded, then decoded.

        Parameters
        ----------
        values
            Numbers, any shape.
        saturate
            As in :meth:`encode`.

        Examples
        --------
        >>> FORMATS["fp4_e2m1"].round([0.25, 0.75, 5.0, 100.0]).tolist()
        [0.0, 1.0, 4.0, 6.0]
        """
        return self.decode(self.encode(values, saturate=saturate))

    @cached_property
    def numbers(self) -> Array:
        """All finite numbers from zero upwards, rising.

        Examples
        --------
        >>> len(FORMATS["fp8_e4m3"].numbers), len(FORMATS["fp8_e5m2"].numbers)
        (127, 124)
        """
        return self.decode(np.arange(self._highest_code + 1))

    @property
    def _highest_code(self) -> int:
        """Code of the largest finite number."""
        one, top = 1 << self.mantissa_bits, (1 << self.exponent_bits) - 1
        return {"ieee": top * one - 1, "nan only": top * one + one - 2, "none": top * one + one - 1}[self.special]

    def _above(self, highest: int, saturate: bool) -> int:
        """Return the code of numbers beyond the largest: infinity, the code above the largest, or the largest."""
        return highest if saturate or self.special == "none" else highest + 1

    def _power_of_two(self, size: Array, finite: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the codes of an exponent alone, halfway values up to the even power."""
        _, power = np.frexp(np.where(finite & (size > 0), size, 1.0))
        below = power.astype(np.int64) - 1 + self.bias
        ratio = np.where(finite & (size > 0), size, 1.0) / np.ldexp(1.0, power - 1)
        codes: NDArray[np.int64] = np.maximum(below + (ratio >= 1.5), 0)
        return codes


def float_format(name: str) -> FloatFormat:
    """Return a floating-point format by name.

    Parameters
    ----------
    name
        One of :data:`FORMATS`; upper and lower case are the same.

    Raises
    ------
    UnknownNameError
        If it is not known.

    Examples
    --------
    >>> float_format("FP16").bits
    16
    """
    key = str(name).lower()
    if key not in FORMATS:
        raise UnknownNameError(
            f"unknown floating-point format {name!r}. Known: {', '.join(FORMATS)}.{did_you_mean(key, FORMATS)}"
        )
    return FORMATS[key]


def _short(given: Any) -> str:
    text = np.array2string(np.asarray(given).ravel()[:4], separator=", ")
    return f"{text} of type {np.asarray(given).dtype}"


_IEEE = "IEEE 754-2019, table 3.5"
_OCP = "OCP 8-bit Floating Point Specification (OFP8), revision 1.0"
_MX = "OCP Microscaling Formats (MX) Specification, version 1.0"
FORMATS = FrozenDict(
    {
        each.name: each
        for each in (
            FloatFormat("fp32", 8, 23, 127, source=_IEEE),
            FloatFormat("tf32", 8, 10, 127, source="NVIDIA A100 Tensor Core GPU Architecture, 2020: operands of TF32"),
            FloatFormat("fp16", 5, 10, 15, source=_IEEE),
            FloatFormat("bf16", 8, 7, 127, source="Intel, BFLOAT16 Hardware Numerics Definition, 2018"),
            FloatFormat("fp8_e5m2", 5, 2, 15, source=_OCP),
            FloatFormat("fp8_e4m3", 4, 3, 7, "nan only", source=_OCP),
            FloatFormat("fp6_e3m2", 3, 2, 3, "none", source=_MX),
            FloatFormat("fp6_e2m3", 2, 3, 1, "none", source=_MX),
            FloatFormat("fp4_e2m1", 2, 1, 1, "none", source=_MX),
            FloatFormat("e8m0", 8, 0, 127, "nan only", signed=False, source=_MX),
        )
    }
)
"""The formats by name."""
