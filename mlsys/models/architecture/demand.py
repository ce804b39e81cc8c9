"""Demands of an operator, and counts of its plan, as plain numbers."""

import math
import weakref
from typing import NamedTuple

from mlsys.precision import PRECISIONS
from mlsys.units import ureg
from mlsys.workloads.operator import Network, Operator

_FLOP, _BYTE = ureg.Unit("FLOP"), ureg.Unit("byte")
# A product with fewer columns per copy does not suit matrix units: a depthwise convolution has one.
NARROWEST = 4
# Kinds whose operations are matrix products although their shape does not give the sizes.
_MULTIPLY = ("decode", "recurrent")


class Product(NamedTuple):
    """Equal matrix products, (m × k) by (k × n), as input to blocking.

    Attributes
    ----------
    m, n, k, copies
        Sizes and number of products; attention is one product per head with the depth of keys plus values.
    left
        Distinct words of the left operand: the pixels of a convolution, not its im2col matrix.
    halo
        Words that a block of pixels shares with the next one.
    orders
        Loop orders that the operator allows.
    """

    m: int
    n: int
    k: int
    copies: int
    left: int
    halo: int
    orders: tuple[str, ...] = ("mnk", "nmk")


class Demand(NamedTuple):
    """Demands of one operator, as plain numbers.

    Attributes
    ----------
    product
        The matrix product; None for an operator that streams its data.
    pair
        Matrix products for arrays, (m, n, k, copies) each: one, or the two of attention.
    multiplying, beside
        FLOP in matrix products, and all other FLOP.
    data, written
        Compulsory bytes, and the written part of them.
    size
        Bytes of a word.
    elements
        Words of the result.
    precision
        Number format of the data.
    """

    product: Product | None
    pair: tuple[tuple[int, int, int, int], ...]
    multiplying: float
    beside: float
    data: float
    written: float
    size: float
    elements: float
    precision: str


class PlanCounts(NamedTuple):
    """Counts of a plan, as plain numbers in bytes and seconds.

    ``moved`` are the bytes that each level exchanges with the next inner one, main memory first;
    ``registers`` are the words read and written in registers.
    """

    tile: tuple[int, int, int]
    tiles: tuple[int, int, int]
    copies: int
    order: str
    level: str
    buffer: float
    capacity: float
    block: tuple[int, int, int]
    block_level: str
    moved: tuple[float, ...]
    registers: float
    loads: int
    waves: int
    computing: float
    utilisation: float


def demand_of(operator: Operator) -> Demand:
    """Return the demands of an operator.

    Examples
    --------
    >>> from mlsys.workloads import attention, conv2d, relu
    >>> demand_of(conv2d(1, 64, 64, size=56, kernel=3, precision="fp32")).product
    Product(m=3136, n=64, k=576, copies=1, left=200704, halo=7168, orders=('mnk', 'nmk'))
    >>> demand_of(attention(1, 12, 128, 128, 64)).pair
    ((128, 128, 64, 12), (128, 64, 128, 12))
    >>> demand_of(relu(1000)).product is None
    True
    """
    size = PRECISIONS[operator.precision] / 8
    flops = float(operator.operations.m_as(_FLOP))
    data = float(operator.data.m_as(_BYTE))
    products = operator.products
    if products is None:
        multiplying = flops if operator.kind in _MULTIPLY else 0.0
        elements = float(operator.shape.get("elements", 0)) or data / size / 2
        written = _written(operator, elements * size, data)
        return Demand(None, (), multiplying, flops - multiplying, data, written, size, elements, operator.precision)
    m, n, k, copies = products.m, math.ceil(products.n), products.k, products.copies
    if operator.kind == "attention":
        heads = copies // 2
        product = Product(m, n, 2 * k, heads, m * k, 0, ("mnk",))
        pair: tuple[tuple[int, int, int, int], ...] = ((m, n, k, heads), (m, k, n, heads))
        elements = float(m * k * heads)
    else:
        left, halo = _pixels(operator, m * k)
        product, pair = Product(m, n, k, copies, left, halo), ((m, n, k, copies),)
        elements = float(m * n * copies)
    written = _written(operator, elements * size, data)
    multiplying = min(2.0 * products.macs, flops)
    return Demand(product, pair, multiplying, flops - multiplying, data, written, size, elements, operator.precision)


def _written(operator: Operator, made: float, data: float) -> float:
    stated = getattr(operator, "written", None)
    return min(made if stated is None else float(stated.m_as(_BYTE)), data)


def _pixels(operator: Operator, matrix: int) -> tuple[int, int]:
    """Return the distinct words of the left operand of each copy, and those shared by neighbouring blocks."""
    shape = operator.shape
    if not operator.kind.startswith("conv") or "transpose" in operator.kind:
        return matrix, 0
    if "size" in shape:
        high = wide = shape["size"]
        out, kernel, deep = shape["out_size"], shape["kernel"], 1
    elif "in_width" in shape:
        wide, high, deep = shape["in_width"], shape.get("in_height", 1), shape.get("in_depth", 1)
        first = next((axis for axis in ("depth", "height", "width") if f"in_{axis}" in shape), "width")
        out, kernel = shape[f"out_{first}"], shape.get(f"kernel_{first}", 1)
    elif "width" in shape:
        wide, high, deep = shape["width"], shape["height"], 1
        out, kernel = shape["out_height"], shape["kernel_height"]
    else:
        return matrix, 0
    channels = shape["in_channels"] // shape["groups"]
    axis = deep if deep > 1 else high if high > 1 else wide
    stride = shape.get("stride") or max(1, round(axis / max(out, 1)))
    plane = channels * (high * wide if deep > 1 else wide if high > 1 else 1)
    left = shape["batch"] * channels * deep * high * wide
    return min(left, matrix), max(kernel - stride, 0) * plane


class DistinctDemands(NamedTuple):
    """The distinct demands of a network, and the index of each operator's demand."""

    demands: tuple[Demand, ...]
    order: tuple[int, ...]


_known: dict[int, tuple[weakref.ref[Network], DistinctDemands]] = {}


def distinct_demands(network: Network) -> DistinctDemands:
    """Return the distinct demands of a network, cached per network."""
    known = _known.get(id(network))
    if known is not None and known[0]() is network:
        return known[1]
    by_object: dict[int, int] = {}
    by_demand: dict[Demand, int] = {}
    for operator in network:
        if id(operator) not in by_object:
            by_object[id(operator)] = by_demand.setdefault(demand_of(operator), len(by_demand))
    rows = DistinctDemands(tuple(by_demand), tuple(by_object[id(operator)] for operator in network))
    key = id(network)
    _known[key] = weakref.ref(network, lambda _: _known.pop(key, None)), rows
    return rows
