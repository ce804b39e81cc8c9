"""Read-only view of an ONNX node for checks: shapes, known values and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Shape = tuple[int, ...]
Shapes = Sequence[Shape | None]


class Mismatch(ValueError):
    """Error for inputs of a node that do not match; the message continues after the name of the node."""


def text_of(shape: Sequence[object] | None) -> str:
    """Return a shape as text.

    Examples
    --------
    >>> text_of((1, 3, 224, 224)), text_of(()), text_of((7,))
    ('1 × 3 × 224 × 224', 'a scalar', '(7)')
    """
    if shape is None:
        return "unknown shape"
    if not shape:
        return "a scalar"
    return f"({shape[0]})" if len(shape) == 1 else " × ".join(map(str, shape))


def broadcast(left: Shape, right: Shape) -> Shape | None:
    """Return the broadcast shape of two shapes; None if they do not broadcast.

    Examples
    --------
    >>> broadcast((3, 1), (4,)), broadcast((2,), (3,))
    ((3, 4), None)
    """
    longer, shorter = (left, right) if len(left) >= len(right) else (right, left)
    padded = (*(1,) * (len(longer) - len(shorter)), *shorter)
    if any(a != b and 1 not in (a, b) for a, b in zip(longer, padded, strict=True)):
        return None
    return tuple(b if a == 1 else a for a, b in zip(longer, padded, strict=True))


class NodeView:
    """Shapes, known values and attributes of a node."""

    def __init__(self, node: Any, shapes: Shapes, data: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        self.op, self.shapes, self.data, self.attributes = node.op_type, shapes, data, attributes
        self._names = [*node.input, *[""] * 10]

    def known(self, *places: int) -> bool:
        """Return whether the shapes of inputs are known."""
        return all(self.shapes[slot] is not None for slot in places)

    def shape(self, slot: int) -> Shape:
        """Return the shape of an input, which must be known."""
        return self.shapes[slot] or ()

    def named(self, slot: int) -> str:
        """Return an input as text."""
        return f"{self._names[slot]!r} of {text_of(self.shapes[slot])}"

    def get(self, name: str, default: Any) -> Any:
        """Return an attribute, or its default."""
        return self.attributes.get(name, default)

    def size(self, what: str, slot: int, axis: int, wanted: int) -> None:
        """Raise if the size of an input along an axis is not the expected one."""
        if self.shapes[slot] is not None and self.shape(slot)[axis] != wanted:
            raise Mismatch(f"needs {wanted} {what}, and {self.named(slot)} has {self.shape(slot)[axis]}")

    def vector(self, slot: int, length: int) -> None:
        """Raise if an input is not a vector of the given length."""
        if self.shapes[slot] is None:
            return
        if self.shape(slot) != (length,):
            raise Mismatch(f"needs {length} numbers, one per channel, and has {self.named(slot)}")

    def rank(self, slot: int, least: int, most: int | None = None) -> None:
        """Raise if an input has fewer or more axes."""
        if self.shapes[slot] is not None and not least <= len(self.shape(slot)) <= (most or 99):
            wanted = f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
            raise Mismatch(f"needs {wanted} axes, and {self.named(slot)} has {len(self.shape(slot))}")
