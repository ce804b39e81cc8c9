"""Traces: the addresses that a program accesses, in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.models.cache.geometry import whole_bytes
from mlsys.units import Quantity, ureg

MOST_ACCESSES = 50_000_000
"""Maximum length of a trace; each access takes nine bytes of memory."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Memory accesses of a program, in order; returned by :func:`trace_of` and by loop nests.

    Attributes
    ----------
    addresses
        Byte address of each access, int64, shape (accesses,).
    kinds
        Twice the index of the operand, plus one for a write; uint8, shape (accesses,).
    names
        Names of the operands.
    element_bytes
        Bytes of one access; addresses are multiples of it.
    """

    addresses: np.ndarray
    kinds: np.ndarray
    names: tuple[str, ...]
    element_bytes: int

    def __post_init__(self) -> None:
        self.addresses.setflags(write=False)
        self.kinds.setflags(write=False)

    def __len__(self) -> int:
        return len(self.addresses)

    @property
    def footprint(self) -> Quantity:
        """Bytes of the distinct elements accessed."""
        size: Quantity = ureg.Quantity(len(np.unique(self.addresses)) * self.element_bytes, "byte")
        return size

    def __repr__(self) -> str:
        return f"<trace of {len(self):,} accesses: {', '.join(self.names)}>"


def trace_of(
    addresses: Sequence[int] | np.ndarray,
    element_size: Quantity,
    writes: Sequence[bool] | np.ndarray | None = None,
    operands: Sequence[int] | np.ndarray | None = None,
    names: tuple[str, ...] = ("data",),
) -> Trace:
    """Return a trace of the given addresses, recorded or synthetic.

    Parameters
    ----------
    addresses
        Byte address of each access, whole multiples of the element size, shape (accesses,).
    element_size
        Size of one access, a whole number of bytes.
    writes
        Whether each access is a write, shape (accesses,); by default all are reads.
    operands
        Index into ``names`` of the operand of each access, shape (accesses,); by default the first.
    names
        Names of the operands.

    Raises
    ------
    ArgumentError
        If an address is negative, fractional or not aligned, the trace too long, or shapes differ.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> trace_of([0, 4, 8, 0], Q_(4, "byte"))
    <trace of 4 accesses: data>
    """
    where = "trace_of"
    size = whole_bytes(where, "element_size", element_size)
    given = np.asarray(addresses)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu" or given.min() < 0:
        raise ArgumentError(
            f"{where}(): `addresses` must be a list of whole numbers >= 0, got {_shown(addresses)}. "
            f"Write e.g. addresses=[0, {size}, {2 * size}]"
        )
    refuse_long(where, len(given), "Give a shorter part of it")
    if (given % size).any():
        raise ArgumentError(
            f"{where}(): `addresses` must be whole multiples of the element size, {size} bytes, "
            f"got {_shown(addresses)}. Write e.g. addresses=[0, {size}, {2 * size}]"
        )
    kinds = _column(where, "writes", writes, len(given), 2)
    kinds |= _column(where, "operands", operands, len(given), len(names)) << 1
    return Trace(given.astype(np.int64), kinds, tuple(names), size)


def _column(where: str, name: str, values: Any, length: int, high: int) -> np.ndarray:
    if values is None:
        return np.zeros(length, np.uint8)
    given = np.asarray(values)
    good = given.shape == (length,) and given.dtype.kind in "biu" and (given >= 0).all() and (given < high).all()
    if not good:
        raise ArgumentError(
            f"{where}(): `{name}` must be {length} whole numbers from 0 to {high - 1}, one for each access, "
            f"got {_shown(values)}. Write e.g. {name}=[0] * {length}"
        )
    return given.astype(np.uint8)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def refuse_long(where: str, accesses: int, instead: str) -> None:
    """Raise an ArgumentError if a trace of ``accesses`` accesses would be too long."""
    if accesses > MOST_ACCESSES:
        raise ArgumentError(
            f"{where}(): the trace would have {accesses:,} accesses, more than the {MOST_ACCESSES:,} that are "
            f"simulated. {instead}"
        )
