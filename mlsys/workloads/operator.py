"""Operators: operations and bytes, with shapes and a number format, independent of hardware."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mlsys.formulas import arithmetic_intensity
from mlsys.frozen import FrozenDict
from mlsys.unit_checks import plain_fields
from mlsys.units import Q_, Quantity, computed, number_in, plain_number, total, ureg
from mlsys.workloads.arrays import NetworkArrays

# Kinds of networks: see ``Network.kind``.
NETWORK, PREFILL, DECODE = "network", "llm prefill", "llm decode"

_NO_BYTES = Q_(0, "byte")
_FLOP, _BYTE = ureg.Unit("FLOP"), ureg.Unit("byte")


class Products(NamedTuple):
    """Equal matrix products, (m × k) by (k × n), that an operator lowers to.

    Attributes
    ----------
    m, n, k
        Rows and columns of each product, length of its reduction.
    copies
        Number of products: groups of a convolution, heads of attention.
    """

    m: int
    n: float
    k: int
    copies: int = 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all copies."""
        return round(self.n * (self.m * self.k * self.copies))


@dataclass(frozen=True)
class Operator:
    """One operator: its work and its memory traffic.

    Attributes
    ----------
    name
        Label for users.
    kind
        ``"gemm"``, ``"conv2d"``, ``"elementwise"``, …
    precision
        Number format of the data, such as ``"fp16"``; bytes are counted in it.
    operations
        FLOP (or MAC, which is converted).
    data
        Compulsory bytes: reads plus writes.
    shape
        The numbers from which the counts were computed.
    weights
        Parameter bytes included in ``data``, shared by a batch.
    parameters
        Parameters the operator holds, including biases and folded normalisation; they may exceed those it reads, as in
        an embedding table.
    """

    name: str
    kind: str
    precision: str
    operations: Quantity
    data: Quantity
    shape: FrozenDict[str, int] = field(default_factory=lambda: FrozenDict({}))
    weights: Quantity = _NO_BYTES
    parameters: int = 0

    def __post_init__(self) -> None:
        plain_fields(self)
        if any(isinstance(size, np.generic) for size in self.shape.values()):
            object.__setattr__(self, "shape", FrozenDict({name: plain_number(n) for name, n in self.shape.items()}))

    @property
    def flops(self) -> Quantity:
        """All floating-point work of the operator, FLOP."""
        own = self.operations
        if own._units == _FLOP._units:  # the usual case; converting is slow
            return computed(own.magnitude, _FLOP, own.origin)
        return own.to(_FLOP)

    @property
    def product_flops(self) -> Quantity:
        """Work in the products it lowers to, FLOP.

        Examples
        --------
        >>> from mlsys.workloads import attention, relu
        >>> print(attention(1, 12, 128, 128, 64).product_flops, relu(10).product_flops)
        50331648 FLOP 0 FLOP
        """
        lowered = self.products
        if lowered is None:
            return self.flops if self.kind == "decode" else Q_(0, "FLOP")
        return Q_(2 * lowered.macs, "FLOP")

    @property
    def intensity(self) -> Quantity:
        """Arithmetic intensity, FLOP/byte, of compulsory traffic; zero for an operator that only moves data."""
        if not self.operations.magnitude:
            return Q_(0.0, "FLOP/byte")
        return arithmetic_intensity(self.operations, self.data)

    @property
    def products(self) -> Products | None:
        """The matrix products this operator lowers to, or None if it has none.

        A convolution is lowered as by im2col: output pixels by filters by filter volume, once per group. Attention is
        its two products per head, counted as twice the first, since the second exchanges ``n`` and ``k``. Under a mask
        ``n`` is the mean number of keys per query, which may be a fraction.

        Examples
        --------
        >>> from mlsys.workloads import attention, conv2d
        >>> conv2d(2, 64, 128, size=56, kernel=3, stride=2).products
        Products(m=1568, n=128, k=576, copies=1)
        >>> attention(1, 12, 128, 128, 64).products
        Products(m=128, n=128, k=64, copies=24)
        """
        shape = self.shape
        if self.kind == "gemm":
            return Products(shape["m"], shape["n"], shape["k"], shape.get("copies", 1))
        if self.kind in ("conv2d", "conv3d"):
            groups = shape["groups"]
            if "kernel" in shape:
                pixels, volume = shape["out_size"] ** 2, shape["kernel"] ** 2
            else:
                pixels = shape["out_height"] * shape["out_width"] * shape.get("out_depth", 1)
                volume = shape["kernel_height"] * shape["kernel_width"] * shape.get("kernel_depth", 1)
            inputs, filters = shape["in_channels"] // groups, shape["out_channels"] // groups
            return Products(shape["batch"] * pixels, filters, inputs * volume, groups)
        if self.kind == "attention":
            queries, copies = shape["queries"], 2 * shape["batch"] * shape["heads"]
            seen = shape["pairs"] / queries if "pairs" in shape else shape["keys"]
            return Products(queries, seen, shape["head_dim"], copies)
        return None

    def __repr__(self) -> str:
        return (
            f"<{self.kind} {self.name}, {self.precision}: {self.flops.to_compact():.4g}, "
            f"{self.data.to_compact():.4g}, {self.intensity:.4g}>"
        )


@dataclass(frozen=True)
class Network:
    """A named sequence of operators.

    The blocks of a deep network may list the same operators repeatedly.

    Attributes
    ----------
    name
        Label for users.
    operators
        In execution order.
    kind
        Kind of work, as far as software treats it differently: ``"llm prefill"``, one pass of a decoder language model
        over a prompt; ``"llm decode"``, one decoding step; or ``"network"`` for any other.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> resnet = zoo.network("resnet50", batch=1)
    >>> print(f"{resnet.flops.to('GFLOP'):.2f}")
    8.18 GFLOP
    """

    name: str
    operators: tuple[Operator, ...]
    kind: str = NETWORK

    def __iter__(self) -> Iterator[Operator]:
        return iter(self.operators)

    def __len__(self) -> int:
        return len(self.operators)

    @property
    def flops(self) -> Quantity:
        """All floating-point work of all operators, FLOP."""
        return total((operator.flops for operator in self.operators), "FLOP")

    @property
    def product_flops(self) -> Quantity:
        """Work in products, convolutions and attention, FLOP: two per MAC."""
        return Q_(2 * int(self.macs.m_as("MAC")), "FLOP")

    @property
    def precision(self) -> str:
        """Number format of most operators.

        Examples
        --------
        >>> from mlsys.workloads import Network, relu
        >>> Network("two rectifiers", (relu(10, "fp16"), relu(10, "fp16"))).precision
        'fp16'
        """
        formats = Counter(operator.precision for operator in self.operators)
        return max(formats, key=lambda name: formats[name], default="fp32")

    @property
    def data(self) -> Quantity:
        """Compulsory bytes of all operators, each run separately."""
        return total((operator.data for operator in self.operators), "byte")

    @property
    def weights(self) -> Quantity:
        """Parameter bytes that one pass reads."""
        return total((operator.weights for operator in self.operators), "byte")

    @property
    def macs(self) -> Quantity:
        """Multiply-accumulates of the matrix products alone, as reported in vision papers."""
        return Q_(sum(product.macs for product in (op.products for op in self.operators) if product), "MAC")

    @property
    def parameters(self) -> Quantity:
        """Parameters held by the operators."""
        return Q_(sum(operator.parameters for operator in self.operators), "param")

    @property
    def intensity(self) -> Quantity:
        """Arithmetic intensity of the whole network, FLOP/byte."""
        return arithmetic_intensity(self.flops, self.data)

    @cached_property
    def arrays(self) -> NetworkArrays:
        """The network as plain numbers, cached: for sweeps over thousands of devices.

        Examples
        --------
        >>> from mlsys.workloads import zoo
        >>> rows = zoo.network("resnet50").arrays
        >>> int(rows.flops @ rows.repeats), len(rows), rows.order.size
        (8178368512, 54, 54)
        """
        distinct = {id(operator): operator for operator in self.operators}
        row = {identity: index for index, identity in enumerate(distinct)}
        return NetworkArrays.of(
            kinds=[operator.kind for operator in distinct.values()],
            flops=[number_in(operator.operations, _FLOP) for operator in distinct.values()],
            data=[number_in(operator.data, _BYTE) for operator in distinct.values()],
            weights=[number_in(operator.weights, _BYTE) for operator in distinct.values()],
            products=[operator.products or (0, 0, 0, 0) for operator in distinct.values()],
            order=[row[id(operator)] for operator in self.operators],
        )

    @property
    def distinct(self) -> tuple[Operator, ...]:
        """The operator of each row of :attr:`arrays`.

        Examples
        --------
        >>> from mlsys.workloads import zoo
        >>> bert = zoo.network("bert_base")
        >>> len(bert.operators), len(bert.distinct)
        (62, 7)
        """
        return tuple(self.operators[index] for index in self.arrays.first.tolist())

    def __repr__(self) -> str:
        return f"<network {self.name}: {len(self)} operators, {self.flops.to_compact():.4g}>"
