"""Operators of captured networks, with work and traffic counted separately."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlsys.precision import element_size
from mlsys.units import Quantity, Unit, number_in, ureg
from mlsys.workloads.operator import Operator, Products

if TYPE_CHECKING:
    from mlsys.workloads.torch_import.rules.counts import Counts

_BYTE, _FLOP, _MAC = (ureg.Unit(name) for name in ("byte", "FLOP", "MAC"))
_AXES = ("depth", "height", "width")


@dataclass(frozen=True, repr=False)
class CountedOperator(Operator):
    """An operator read from a graph.

    ``operations`` is all its work; ``macs`` is the part in products, ``elementwise`` the rest.

    Attributes
    ----------
    counts
        Work and traffic as plain numbers.
    target
        Name of the operator in the framework, such as ``"aten.conv2d.default"``.
    path
        Module that contains it, such as ``"blocks.3.attn"``.
    """

    counts: Counts = field(kw_only=True)
    target: str = ""
    path: str = ""

    @property
    def members(self) -> tuple[CountedOperator, ...]:
        """The fused operators that it consists of, or itself."""
        return (self,)

    @property
    def macs(self) -> Quantity:
        """Multiply-accumulates of products, MAC."""
        return ureg.Quantity(self.counts.macs, _MAC)

    @property
    def product_flops(self) -> Quantity:
        """Work in products, FLOP: two per MAC."""
        return ureg.Quantity(2 * self.counts.macs, _FLOP)

    @property
    def elementwise(self) -> Quantity:
        """Work other than products, FLOP."""
        return ureg.Quantity(self.counts.elementwise, _FLOP)

    @property
    def read(self) -> Quantity:
        """Bytes read, including weights."""
        return ureg.Quantity(self.counts.read, _BYTE)

    @property
    def written(self) -> Quantity:
        """Bytes written."""
        return ureg.Quantity(self.counts.written, _BYTE)

    @property
    def products(self) -> Products | None:
        """The matrix products this operator lowers to, including transposed and 1-D convolutions."""
        if not self.counts.macs:
            return None
        if self.kind.startswith("conv") and "kernel" not in self.shape:  # one number for both sides: built by hand
            shape, transposed = self.shape, self.kind.startswith("conv_transpose")
            pixels = math.prod(
                shape[f"{'in' if transposed else 'out'}_{axis}"] for axis in _AXES if f"in_{axis}" in shape
            )
            volume = math.prod(shape.get(f"kernel_{axis}", 1) for axis in _AXES)
            groups = shape["groups"]
            inputs, filters = shape["in_channels"] // groups, shape["out_channels"] // groups
            if transposed:  # each input pixel is multiplied by every weight: the volume is on the output side
                return Products(shape["batch"] * pixels, filters * volume, inputs, groups)
            return Products(shape["batch"] * pixels, filters, inputs * volume, groups)
        if self.kind == "recurrent":
            return None  # several products of different sizes, one after the other
        return super().products


def counts_by_hand(operator: Operator) -> Counts:
    """Return the counts of an operator built by hand."""
    from mlsys.workloads.torch_import.rules.counts import Counts

    shape, lowered = operator.shape, operator.products
    work, moved = _whole(operator.flops, _FLOP), _whole(operator.data, _BYTE)
    macs = lowered.macs if lowered else work // 2 if operator.kind == "decode" else 0
    if operator.kind == "attention":
        made = float(shape["batch"] * shape["heads"] * shape["queries"] * shape["head_dim"])
    elif lowered:
        made = lowered.m * lowered.n * lowered.copies
    else:
        made = shape.get("elements", 0)
    written = min(round(made * number_in(element_size(operator.precision), _BYTE)), moved)
    return Counts(
        operator.kind,
        macs,
        work - 2 * macs,
        moved - written,
        written,
        _whole(operator.weights, _BYTE),
        written,
        operator.parameters,
        True,
        tuple(shape.items()),
    )


def _whole(quantity: Quantity, unit: Unit) -> int:
    """Return the magnitude in a unit as a whole number; the conversion, of which most need none, is skipped if so."""
    number: int = round(quantity.magnitude if quantity._units == unit._units else quantity.m_as(unit))
    return number
