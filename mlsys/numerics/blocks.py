"""Block formats: a block of small numbers that share one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.frozen import FrozenDict
from mlsys.numerics.formats import FORMATS, FloatFormat


@dataclass(frozen=True)
class BlockFormat:
    """A format of blocks whose elements share a scale.

    Attributes
    ----------
    name
        Its name, such as ``"mxfp4"``.
    element, scale
        Formats of an element and of the scale.
    size
        Elements of a block.

    Examples
    --------
    >>> block_format("mxfp4").bits_per_value
    4.25
    """

    name: str
    element: FloatFormat
    scale: FloatFormat
    size: int = 32

    @property
    def bits_per_value(self) -> float:
        """Bits of a value with its part of the scale."""
        return self.element.bits + self.scale.bits / self.size

    def round(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return values as the format stores them.

        The scale is the power of two of the largest magnitude of the block over that of the element format, as in
        section 6.3 of the specification; elements beyond the largest number saturate.

        Parameters
        ----------
        values
            Finite numbers; the last axis holds whole blocks.

        Raises
        ------
        ArgumentError
            If the last axis is not a multiple of the block, or a value is not finite.

        Examples
        --------
        >>> values = np.linspace(-1, 1, 32)
        >>> bool(np.abs(block_format("mxfp4").round(values) - values).max() < 0.13)
        True
        """
        given = np.asarray(values)
        if given.ndim == 0 or given.shape[-1] % self.size or given.dtype.kind not in "iuf":
            raise ArgumentError(
                f"round: values must be numbers with whole blocks of {self.size} along the last axis, got "
                f"{given.dtype} of shape {given.shape}. Pad with zeros"
            )
        number = given.astype(np.float64)
        if not np.isfinite(number).all():
            raise ArgumentError("round: values must be finite, got NaN or infinity. Replace them before rounding")
        blocks = number.reshape(*number.shape[:-1], -1, self.size)
        largest = np.abs(blocks).max(axis=-1, keepdims=True)
        power = np.frexp(np.where(largest > 0, largest, 1.0))[1]
        highest = int(np.frexp(self.element.largest)[1])
        scale: NDArray[np.float64] = np.ldexp(1.0, np.clip(power - highest, -127, 127))
        rounded = self.element.round(blocks / scale, saturate=True) * scale
        return rounded.reshape(number.shape)


def block_format(name: str) -> BlockFormat:
    """Return a block format of the OCP Microscaling specification by name.

    Parameters
    ----------
    name
        ``"mxfp4"``, ``"mxfp6_e2m3"``, ``"mxfp6_e3m2"``, ``"mxfp8_e4m3"`` or ``"mxfp8_e5m2"``.

    Raises
    ------
    UnknownNameError
        If it is not known.

    References
    ----------
    OCP Microscaling Formats (MX) Specification, version 1.0: blocks of 32 elements, one E8M0 scale.

    Examples
    --------
    >>> block_format("mxfp8_e4m3").bits_per_value
    8.25
    """
    key = str(name).lower()
    if key not in _BLOCKS:
        raise UnknownNameError(
            f"unknown block format {name!r}. Known: {', '.join(_BLOCKS)}.{did_you_mean(key, _BLOCKS)}"
        )
    return _BLOCKS[key]


_BLOCKS = FrozenDict(
    {
        name: BlockFormat(name, FORMATS[element], FORMATS["e8m0"])
        for name, element in (
            ("mxfp4", "fp4_e2m1"), ("mxfp6_e2m3", "fp6_e2m3"), ("mxfp6_e3m2", "fp6_e3m2"),
            ("mxfp8_e4m3", "fp8_e4m3"), ("mxfp8_e5m2", "fp8_e5m2"),
        )
    }
)  # fmt: skip
