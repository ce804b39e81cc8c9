"""One operator of a captured network: an operator with its work and traffic counted apart."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlsys.precision import element_size
from mlsys.units import Quantity, ureg
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
        Work and traffic in plain numbers.
    target
        The operator in the framework's spelling, such as ``"aten.conv2d.default"``.
    path
        The module it was written in, such as ``"blocks.3.attn"``.
    """

    counts: Counts = field(kw_only=True)
    target: str = ""
    path: str = ""

    @property
    def members(self) -> tuple[CountedOperator, ...]:
        """The operators that it is made of: itself, or those that were fused into it."""
        return (self,)

    @property
    def macs(self) -> Quantity:
        """Multiply-accumulates of products, MAC."""
        return ureg.Quantity(self.counts.macs, _MAC)

    @property
    def product_flops(self) -> Quantity:
        """Work in products, FLOP: two for each MAC."""
        return ureg.Quantity(2 * self.counts.macs, _FLOP)

    @property
    def elementwise(self) -> Quantity:
        """Work beside the products, FLOP."""
        return ureg.Quantity(self.counts.elementwise, _FLOP)

    @property
    def read(self) -> Quantity:
        """Bytes read, weights among them."""
        return ureg.Quantity(self.counts.read, _BYTE)

    @property
    def written(self) -> Quantity:
        """Bytes written."""
        return ureg.Quantity(self.counts.written, _BYTE)

    @property
    def products(self) -> Products | None:
        """The matrix products this operator lowers to; for transposed and 1-D convolutions too."""
        if not self.counts.macs:
            return None
        if self.kind.startswith("conv") and "kernel" not in self.shape:  # one number for both sides: by hand
            shape, transposed = self.shape, self.kind.startswith("conv_transpose")
            pixels = math.prod(
                shape[f"{'in' if transposed else 'out'}_{axis}"] for axis in _AXES if f"in_{axis}" in shape
            )
            volume = math.prod(shape.get(f"kernel_{axis}", 1) for axis in _AXES)
            groups = shape["groups"]
            inputs, filters = shape["in_channels"] // groups, shape["out_channels"] // groups
            if transposed:  # each input pixel meets every weight: the volume is on the side of the output
                return Products(shape["batch"] * pixels, filters * volume, inputs, groups)
            return Products(shape["batch"] * pixels, filters, inputs * volume, groups)
        if self.kind == "recurrent":
            return None  # several products of several sizes, one after the other
        return super().products


def counts_by_hand(operator: Operator) -> Counts:
    """Return the counts of an operator that was described by hand."""
    from mlsys.workloads.torch_import.rules.counts import Counts

    shape, lowered = operator.shape, operator.products
    work, moved = round(operator.flops.m_as("FLOP")), round(operator.data.m_as("byte"))
    macs = lowered.macs if lowered else work // 2 if operator.kind == "decode" else 0
    if operator.kind == "attention":
        made = float(shape["batch"] * shape["heads"] * shape["queries"] * shape["head_dim"])
    elif lowered:
        made = lowered.m * lowered.n * lowered.copies
    else:
        made = shape.get("elements", 0)
    written = min(round(made * element_size(operator.precision).m_as("byte")), moved)
    return Counts(
        operator.kind,
        macs,
        work - 2 * macs,
        moved - written,
        written,
        round(operator.weights.m_as("byte")),
        written,
        operator.parameters,
        True,
        tuple(shape.items()),
    )
