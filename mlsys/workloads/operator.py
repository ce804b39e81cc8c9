"""Operators: operations and bytes, with shapes and a number format, no hardware."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mlsys.formulas import arithmetic_intensity
from mlsys.frozen import FrozenDict
from mlsys.units import Quantity, total

__all__ = ["Network", "Operator"]


@dataclass(frozen=True)
class Operator:
    """One operator: what it computes and what it must move.

    Attributes
    ----------
    name
        What the reader calls it.
    kind
        ``"gemm"``, ``"conv2d"``, ``"elementwise"``, …
    precision
        Number format of the data, such as ``"fp16"``; bytes are counted in it.
    operations
        FLOP (or MAC, which converts).
    data
        Compulsory bytes: reads plus writes.
    shape
        The numbers the counts were made from.
    """

    name: str
    kind: str
    precision: str
    operations: Quantity
    data: Quantity
    shape: FrozenDict[str, int] = field(default_factory=lambda: FrozenDict({}))

    @property
    def flops(self) -> Quantity:
        """Work in FLOP."""
        return self.operations.to("FLOP")

    @property
    def intensity(self) -> Quantity:
        """Arithmetic intensity, FLOP/byte, of compulsory traffic."""
        return arithmetic_intensity(self.operations, self.data)

    def __repr__(self) -> str:
        return (
            f"<{self.kind} {self.name}, {self.precision}: {self.flops.to_compact():.4g}, "
            f"{self.data.to_compact():.4g}, {self.intensity:.4g}>"
        )


@dataclass(frozen=True)
class Network:
    """A named sequence of operators.

    Examples
    --------
    >>> from mlsys.workloads import resnet50
    >>> print(f"{resnet50(batch=1).flops.to('GFLOP'):.2f}")
    8.18 GFLOP
    """

    name: str
    operators: tuple[Operator, ...]

    def __iter__(self) -> Iterator[Operator]:
        return iter(self.operators)

    def __len__(self) -> int:
        return len(self.operators)

    @property
    def flops(self) -> Quantity:
        """Work of all operators, FLOP."""
        return total((operator.flops for operator in self.operators), "FLOP")

    @property
    def data(self) -> Quantity:
        """Compulsory bytes of all operators, each run on its own."""
        return total((operator.data for operator in self.operators), "byte")

    @property
    def intensity(self) -> Quantity:
        """Arithmetic intensity of the whole, FLOP/byte."""
        return arithmetic_intensity(self.flops, self.data)

    def __repr__(self) -> str:
        return f"<network {self.name}: {len(self)} operators, {self.flops.to_compact():.4g}>"
