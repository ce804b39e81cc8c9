"""Iteration spaces: the loops of an operator and which of them each operand sees."""

import math
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.unit_checks import checked_count
from mlsys.workloads.operator import Operator


@dataclass(frozen=True)
class Axis:
    """One axis of an operand: an index of one loop, or ``stride * outer + window``.

    Attributes
    ----------
    dims
        One loop, or the two loops of a sliding window.
    stride
        Step of the window; 1 where there is none.
    """

    dims: tuple[str, ...]
    stride: int = 1

    def extent(self, tile: AnyMapping[str, int]) -> int:
        """Return how many different indices a tile touches; gaps between windows are not touched."""
        first = tile[self.dims[0]]
        if len(self.dims) == 1:
            return first
        window = tile[self.dims[1]]
        return (first - 1) * min(self.stride, window) + window


@dataclass(frozen=True)
class Operand:
    """A tensor of the loop nest, with its axes.

    Attributes
    ----------
    name
        ``"A"``, ``"B"``, ``"C"`` of a matrix product; ``"input"``, ``"weight"``, ``"output"``.
    axes
        Its axes; a loop that is in none of them reuses it.
    """

    name: str
    axes: tuple[Axis, ...]

    @property
    def dims(self) -> tuple[str, ...]:
        """Loops that change which element is touched."""
        return tuple(dim for axis in self.axes for dim in axis.dims)

    def words(self, tile: AnyMapping[str, int]) -> int:
        """Return the different elements that a tile touches."""
        return math.prod(axis.extent(tile) for axis in self.axes)


@dataclass(frozen=True)
class IterationSpace:
    """The loops of one operator, its two inputs and its output.

    Attributes
    ----------
    name
        What the reader calls it.
    sizes
        Trip count of each loop.
    inputs, output
        The operands; the output is read back when a sum is interrupted.

    Examples
    --------
    >>> space = gemm_space(512, 256, 32)
    >>> space.macs, [operand.name for operand in space.operands]
    (4194304, ['A', 'B', 'C'])
    """

    name: str
    sizes: FrozenDict[str, int]
    inputs: tuple[Operand, Operand]
    output: Operand

    @property
    def operands(self) -> tuple[Operand, Operand, Operand]:
        """Both inputs, then the output."""
        return (*self.inputs, self.output)

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return math.prod(self.sizes.values())

    @property
    def compulsory(self) -> int:
        """Words that must cross once: every touched input element in, every output out."""
        return sum(operand.words(self.sizes) for operand in self.operands)

    @property
    def reduction(self) -> tuple[str, ...]:
        """Loops that sum into one output."""
        return tuple(dim for dim in self.sizes if dim not in self.output.dims)

    def operand(self, name: str) -> Operand:
        """Return an operand by name."""
        for operand in self.operands:
            if operand.name == name:
                return operand
        have = ", ".join(operand.name for operand in self.operands)
        raise ArgumentError(f"{self.name} has no operand {name!r}. It has: {have}")


def _sizes(where: str, **given: int) -> FrozenDict[str, int]:
    return FrozenDict({name: checked_count(where, name, value) for name, value in given.items()})


def gemm_space(m: int, n: int, k: int, name: str | None = None) -> IterationSpace:
    """Return the loops of C[m, n] += A[m, k] B[k, n].

    Parameters
    ----------
    m, n, k
        Rows and columns of the product, length of the sum.
    name
        What to call it.

    Raises
    ------
    ArgumentError
        If a size is not a whole number of at least 1.

    Examples
    --------
    >>> gemm_space(4, 5, 6).compulsory
    74
    """
    sizes = _sizes("gemm_space", m=m, n=n, k=k)
    m_axis, n_axis, k_axis = (Axis((dim,)) for dim in "mnk")
    return IterationSpace(
        name or f"gemm {m}×{n}×{k}",
        sizes,
        (Operand("A", (m_axis, k_axis)), Operand("B", (k_axis, n_axis))),
        Operand("C", (m_axis, n_axis)),
    )


def conv_space(
    batch: int,
    in_channels: int,
    out_channels: int,
    out_height: int,
    out_width: int,
    kernel_height: int,
    kernel_width: int,
    stride: int = 1,
    groups: int = 1,
    name: str | None = None,
) -> IterationSpace:
    """Return the loops of a 2-D convolution; the padded input is an operand like any other.

    Parameters
    ----------
    batch, in_channels, out_channels
        Images and channels; channels are those of all groups together.
    out_height, out_width
        Output pixels.
    kernel_height, kernel_width, stride, groups
        Of the filters.
    name
        What to call it.

    Returns
    -------
    IterationSpace
        Loops ``g, b, k, c, p, q, r, s``: group, image, output and input channel of the
        group, output row and column, filter row and column.

    Raises
    ------
    ArgumentError
        If a size is not a whole number of at least 1, or groups do not divide the channels.

    Examples
    --------
    >>> conv_space(1, 3, 64, 112, 112, 7, 7, stride=2).operand("input").words(
    ...     conv_space(1, 3, 64, 112, 112, 7, 7, stride=2).sizes)
    157323
    """
    checked = _sizes(
        "conv_space", g=groups, b=batch, k=out_channels, c=in_channels, p=out_height, q=out_width,
        r=kernel_height, s=kernel_width, stride=stride,
    )  # fmt: skip
    step, sizes = checked["stride"], {dim: checked[dim] for dim in "gbkcpqrs"}
    for dim, channels in (("k", "out_channels"), ("c", "in_channels")):
        if sizes[dim] % sizes["g"]:
            raise ArgumentError(
                f"conv_space(): `groups` must divide the channels, got groups={groups}, {channels}={sizes[dim]}. "
                f"Write e.g. {channels}={sizes['g'] * -(-sizes[dim] // sizes['g'])}"
            )
        sizes[dim] //= sizes["g"]
    g, b, k, c, p, q, r, s = (Axis((dim,)) for dim in "gbkcpqrs")
    rows, columns = Axis(("p", "r"), step), Axis(("q", "s"), step)
    return IterationSpace(
        name or f"conv {kernel_height}×{kernel_width}, {in_channels}→{out_channels}",
        FrozenDict(sizes),
        (Operand("input", (g, b, c, rows, columns)), Operand("weight", (g, k, c, r, s))),
        Operand("output", (g, b, k, p, q)),
    )


def _products_space(m: int, n: int, k: int, copies: int, name: str) -> IterationSpace:
    """Return the loops of equal products of different matrices, one for each head of attention, say."""
    sizes = _sizes("iteration_space", g=copies, m=m, n=n, k=k)
    g, rows, columns, depth = (Axis((dim,)) for dim in "gmnk")
    return IterationSpace(
        name,
        sizes,
        (Operand("A", (g, rows, depth)), Operand("B", (g, depth, columns))),
        Operand("C", (g, rows, columns)),
    )


def iteration_space(operator: Operator) -> IterationSpace:
    """Return the loops of an operator of :mod:`mlsys.workloads`.

    Other convolutions than those of pictures, transposed ones and attention are the matrix products
    that they lower to; of attention, that is its first product, as often as there are both.

    Raises
    ------
    ArgumentError
        If the operator is neither a matrix product nor lowers to one.

    Examples
    --------
    >>> from mlsys.workloads import conv2d
    >>> iteration_space(conv2d(1, 3, 64, size=224, kernel=7, stride=2)).sizes["p"]
    112
    """
    shape, lowered = operator.shape, operator.products
    if operator.kind == "conv2d" and "stride" in shape:
        square = "kernel" in shape
        height, width = ("out_size", "out_size") if square else ("out_height", "out_width")
        high, wide = ("kernel", "kernel") if square else ("kernel_height", "kernel_width")
        return conv_space(
            shape["batch"], shape["in_channels"], shape["out_channels"], shape[height], shape[width],
            shape[high], shape[wide], shape["stride"], shape["groups"], operator.name,
        )  # fmt: skip
    if lowered is None:
        raise ArgumentError(
            f"iteration_space(): `operator` must be a matrix product or lower to one, got {operator.name!r}, which is "
            f"{operator.kind}. Write e.g. iteration_space(gemm(512, 256, 32))"
        )
    if lowered.copies == 1:
        return gemm_space(lowered.m, math.ceil(lowered.n), lowered.k, operator.name)
    return _products_space(lowered.m, math.ceil(lowered.n), lowered.k, lowered.copies, operator.name)
