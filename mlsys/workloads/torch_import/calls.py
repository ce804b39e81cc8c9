"""Calls of a graph: an operator's name, its arguments with their shapes, its results.

Nothing here knows torch. A shape may hold an :class:`Unknown` in place of a number: a
size that is free in the captured network and is filled in by :class:`Filling`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

WEIGHT_ROLES = frozenset({"parameter", "buffer"})


class Unknown(NamedTuple):
    """A size that depends on the free sizes of the network; ``number`` is its index in their table."""

    number: int


class Tensor(NamedTuple):
    """A tensor as an operator sees it.

    Attributes
    ----------
    shape
        Its sizes, as the operator reads or writes them.
    stored
        The sizes without the axes along which one stored element is repeated.
    dtype, itemsize
        Number format in torch's spelling, such as ``"float32"``; bytes of one element, half a byte in some formats.
    role
        ``"parameter"``, ``"buffer"``, ``"input"``, ``"constant"`` or ``"activation"``.
    identity
        Equal for two arguments of one call that are one and the same tensor.
    """

    shape: tuple[Any, ...]
    stored: tuple[Any, ...]
    dtype: str
    itemsize: float
    role: str = "activation"
    identity: int = 0

    @property
    def elements(self) -> int:
        """Number of elements as seen."""
        return int(math.prod(self.shape))

    @property
    def bytes(self) -> int:
        """Bytes stored."""
        return int(int(math.prod(self.stored)) * self.itemsize)


class CallCounts(NamedTuple):
    """Counts of a call by its rule.

    Attributes
    ----------
    kind
        ``"gemm"``, ``"conv2d"``, ``"attention"``, ``"elementwise"``, …
    macs
        Multiply-accumulates of matrix products, convolutions and attention.
    elementwise
        FLOP beside them.
    read, written
        Bytes, where they are not simply every input and every output.
    shape
        Names and numbers the counts were made from.
    """

    kind: str
    macs: int = 0
    elementwise: int = 0
    read: int | None = None
    written: int | None = None
    shape: tuple[tuple[str, int], ...] = ()


class Call(NamedTuple):
    """One operator of a captured graph.

    Attributes
    ----------
    op, overload
        Such as ``"conv2d"`` and ``"padding"``.
    arguments
        Pairs of name and value: tensors, sequences of tensors, numbers, text, None.
    outputs
        The tensors it makes.
    is_view
        It makes nothing new: its output is another look at the memory of an input.
    in_place
        It writes into one of its inputs.
    pointwise
        It works on each element alone, whatever it is called.
    """

    op: str
    overload: str
    arguments: tuple[tuple[str, Any], ...]
    outputs: tuple[Tensor, ...]
    is_view: bool = False
    in_place: bool = False
    pointwise: bool = False

    def get(self, name: str, default: object = None) -> Any:
        """Return the argument called ``name``."""
        for key, value in self.arguments:
            if key == name:
                return value
        return default

    def tensor(self, *names: str) -> Tensor:
        """Return the first argument among ``names`` that is a tensor."""
        for name in names:
            value = self.get(name)
            if isinstance(value, Tensor):
                return value
        raise LookupError(f"{self.op} has no tensor called {' or '.join(names)}")

    @property
    def out(self) -> Tensor:
        """The first output."""
        return self.outputs[0]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Every input tensor once, in order."""
        seen: dict[int, Tensor] = {}
        for tensor in _tensors(value for _, value in self.arguments):
            seen.setdefault(tensor.identity, tensor)
        return tuple(seen.values())

    def bound(self, filling: Filling) -> Call:
        """Return the call with a number for every :class:`Unknown`."""
        arguments, outputs = filling.filled(self.arguments), filling.filled(self.outputs)
        return Call(self.op, self.overload, arguments, outputs, self.is_view, self.in_place, self.pointwise)


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if type(value) is Tensor:
            yield value
        elif type(value) is tuple:
            yield from _tensors(value)


_NESTED = (Unknown, Tensor, tuple)


class Filling:
    """Numbers for unknown sizes; a tensor that appears in many calls is filled in once.

    Parameters
    ----------
    numbers
        The table that each :class:`Unknown` says a place in.

    Examples
    --------
    >>> Filling([8, 224]).filled((Unknown(0), 3, Unknown(1)))
    (8, 3, 224)
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._known: dict[int, tuple[Tensor, Tensor]] = {}  # by identity; the first keeps it from another's use

    def filled(self, value: Any) -> Any:
        """Return a size, a tensor, or a tuple of them, with numbers in place of unknown sizes."""
        kind = type(value)
        if kind is Unknown:
            return self._numbers[value.number]
        if kind is Tensor:
            known = self._known.get(id(value))
            if known is None:
                shape = self.filled(value.shape)
                stored = shape if value.stored is value.shape else self.filled(value.stored)
                known = value, Tensor(shape, stored, value.dtype, value.itemsize, value.role, value.identity)
                self._known[id(value)] = known
            return known[1]
        if kind is tuple:
            return tuple([self.filled(item) if type(item) in _NESTED else item for item in value])
        return value
