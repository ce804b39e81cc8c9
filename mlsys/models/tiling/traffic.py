"""Traffic of a memory that holds one tile of each operand.

The memory is managed explicitly: a tile is fetched when its indices change and stays until
they change again. Edge tiles count with their true size, so that every count is exact for any
size; counts are Python integers and do not overflow.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.provenance import traced
from mlsys.unit_checks import Argument, checked_count, checked_number, positive
from mlsys.units import Quantity, ureg

GEMM_OPERANDS = FrozenDict({"A": "mk", "B": "kn", "C": "mn"})
"""Dimensions that index each matrix."""


@dataclass(frozen=True)
class Traffic:
    """Words read into and written from a memory, by operand.

    Attributes
    ----------
    reads, writes
        Words by operand name.

    Examples
    --------
    >>> gemm_traffic(1024, 1024, 1024, 128)
    <traffic 17,825,792 words: A 8,388,608, B 8,388,608, C 1,048,576>
    """

    reads: FrozenDict[str, int]
    writes: FrozenDict[str, int]

    @property
    def words(self) -> int:
        """Total words moved."""
        return sum(self.reads.values()) + sum(self.writes.values())

    @property
    def by_operand(self) -> FrozenDict[str, int]:
        """Words moved by operand, reads plus writes."""
        return FrozenDict({name: self.reads[name] + self.writes[name] for name in self.reads})

    def data(self, element_size: Quantity) -> Quantity:
        """Return the bytes moved, for words of ``element_size``.

        Examples
        --------
        >>> from mlsys.units import Q_
        >>> print(gemm_traffic(1024, 1024, 1024, 128).data(Q_(4, "byte")).to("MB"))
        71.303168 MB
        """
        size = checked_number("Traffic.data", "element_size", element_size, positive("byte"), {})
        result: Quantity = ureg.Quantity(float(self.words * size), "byte")
        return result

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} {words:,}" for name, words in self.by_operand.items())
        return f"<traffic {self.words:,} words: {listed}>"


def _wrong(where: str, name: str, value: Any, example: str) -> ArgumentError:
    return ArgumentError(f"{where}(): `{name}` must be {example}, got {value!r}. Write e.g. {name}={example}")


def gemm_tile(where: str, tile: object) -> tuple[int, int, int]:
    """Return the tile of a matrix product as (tm, tn, tk); a single number means a cube."""
    if not isinstance(tile, tuple):
        edge = checked_count(where, "tile", tile)
        return edge, edge, edge
    if len(tile) != 3:
        raise ArgumentError(
            f"{where}(): `tile` must be one number or three, (tm, tn, tk), got {tile!r}. Write e.g. tile=(64, 64, 32)"
        )
    tm, tn, tk = (checked_count(where, f"tile[{index}]", edge) for index, edge in enumerate(tile))
    return tm, tn, tk


def loop_order(where: str, order: str, letters: str = "mnk") -> str:
    """Return ``order`` if it names each of ``letters`` once, else raise an ArgumentError."""
    if not isinstance(order, str) or sorted(order) != sorted(letters):
        raise ArgumentError(
            f"{where}(): `order` must name each of {', '.join(letters)} once, outermost first, got {order!r}. "
            f"Write e.g. order={letters!r}"
        )
    return order


@traced
def gemm_traffic(m: int, n: int, k: int, tile: int | tuple[int, int, int], order: str = "mnk") -> Traffic:
    """Return the words that a blocked product C = A·B moves, with edge tiles counted exactly.

    A tile of an operand is fetched again whenever a loop that does not index the operand steps
    *outside* one that does, so an operand crosses the boundary once for each step of those
    loops. A tile of C is written each time it is evicted and read back each time it is needed
    again, except for the first time.

    Parameters
    ----------
    m, n, k
        Rows and columns of C, and length of the reduction.
    tile
        Edge of a cube, or (tm, tn, tk); a tile longer than the matrix is clipped to it.
    order
        Loops over tiles, outermost first. ``"mnk"`` keeps the tile of C in place, which gives
        the familiar 2N³/T + N².

    Returns
    -------
    Traffic
        Words of A and B read, of C read and written.

    Raises
    ------
    ArgumentError
        If a size is not a positive integer, or ``order`` is not a permutation of m, n and k.

    References
    ----------
    M. Lam, E. Rothberg, M. Wolf, The Cache Performance and Optimizations of Blocked Algorithms,
    ASPLOS 1991.

    Examples
    --------
    >>> gemm_traffic(1024, 1024, 1024, 1).words, gemm_traffic(1024, 1024, 1024, 32).words
    (2148532224, 68157440)
    >>> gemm_traffic(100, 100, 100, 32)  # the fourth tile of each dimension holds 4
    <traffic 90,000 words: A 40,000, B 40,000, C 10,000>
    """
    sizes = {letter: checked_count("gemm_traffic", letter, size) for letter, size in zip("mnk", (m, n, k), strict=True)}
    edges = dict(zip("mnk", gemm_tile("gemm_traffic", tile), strict=True))
    loops = loop_order("gemm_traffic", order)
    trips = {letter: -(-sizes[letter] // edges[letter]) for letter in "mnk"}
    visits = {name: _visits(loops, trips, index) for name, index in GEMM_OPERANDS.items()}
    words = {name: sizes[index[0]] * sizes[index[1]] for name, index in GEMM_OPERANDS.items()}
    return Traffic(
        reads=FrozenDict(
            {name: words[name] * (visits[name] - (name == "C")) for name in words},
        ),
        writes=FrozenDict({name: words[name] * visits[name] if name == "C" else 0 for name in words}),
    )


def _visits(loops: str, trips: dict[str, int], index: str) -> int:
    """Return how often each tile of an operand is brought in."""
    inner = max((depth for depth, letter in enumerate(loops) if letter in index and trips[letter] > 1), default=-1)
    visits = 1
    for letter in loops[: inner + 1]:
        visits *= 1 if letter in index else trips[letter]
    return visits


@dataclass(frozen=True)
class ConvTile:
    """A tile of a convolution: a block of output pixels and channels.

    Attributes
    ----------
    rows, columns
        Output rows and columns of a tile.
    out_channels, in_channels
        Output and input channels of a tile.
    """

    rows: int
    columns: int
    out_channels: int
    in_channels: int

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "out_channels", "in_channels"):
            object.__setattr__(self, name, checked_count("ConvTile", name, getattr(self, name)))


@traced
def conv2d_traffic(
    batch: int,
    in_channels: int,
    out_channels: int,
    size: int,
    kernel: int,
    tile: ConvTile,
    stride: int = 1,
    padding: int | None = None,
) -> Traffic:
    """Return the words that a tiled square convolution moves, with halos and edges counted exactly.

    Loops over tiles, outermost first: image, rows, columns, output channels, input channels; the
    output tile stays in place during the loop over input channels. Neighbouring tiles share a halo
    of ``kernel − stride`` rows or columns, which each of them reads; padding is not read.

    Parameters
    ----------
    batch, in_channels, out_channels, size, kernel, stride, padding
        As in :func:`mlsys.workloads.conv2d`, one group.
    tile
        Block of outputs and channels; a tile longer than the tensor is clipped to it.

    Returns
    -------
    Traffic
        Words of ``input`` and ``weights`` read and of ``output`` written.

    Raises
    ------
    ArgumentError
        If a size is not a positive integer, or the kernel does not fit.

    Examples
    --------
    >>> conv2d_traffic(1, 128, 256, 56, 3, ConvTile(56, 56, 256, 128))
    <traffic 1,499,136 words: input 401,408, weights 294,912, output 802,816>
    >>> conv2d_traffic(1, 128, 256, 56, 3, ConvTile(8, 8, 64, 128))  # halos, and weights once a block
    <traffic 15,845,376 words: input 591,872, weights 14,450,688, output 802,816>
    """
    where = "conv2d_traffic"
    names = ("batch", "in_channels", "out_channels", "size", "kernel", "stride")
    values = (batch, in_channels, out_channels, size, kernel, stride)
    batch, in_channels, out_channels, size, kernel, stride = (
        checked_count(where, name, value) for name, value in zip(names, values, strict=True)
    )
    pad = kernel // 2 if padding is None else int(checked_number(where, "padding", padding, _PADDING, {}))
    if not isinstance(tile, ConvTile):
        raise _wrong(where, "tile", tile, "ConvTile(8, 8, 64, 64)")
    if kernel > size + 2 * pad:
        raise ArgumentError(
            f"{where}(): `kernel` of {kernel} does not fit into {size} with a padding of {pad}. "
            f"Write e.g. padding={kernel // 2}"
        )
    out = (size + 2 * pad - kernel) // stride + 1
    rows, columns = (
        int(needed_inputs(out, edge, size, kernel, stride, pad).sum()) for edge in (tile.rows, tile.columns)
    )
    blocks = batch * -(-out // tile.rows) * -(-out // tile.columns)
    out_tiles, in_tiles = -(-out_channels // tile.out_channels), -(-in_channels // tile.in_channels)
    weights = out_channels * in_channels * kernel * kernel
    reads = {
        "input": batch * rows * columns * in_channels * (out_tiles if in_tiles > 1 else 1),
        "weights": weights * (blocks if out_tiles * in_tiles > 1 else 1),
        "output": 0,
    }
    return Traffic(
        FrozenDict(reads), FrozenDict({"input": 0, "weights": 0, "output": batch * out * out * out_channels})
    )


_PADDING = Argument("", low=0, whole=True)


def needed_inputs(out: int, edge: int, size: int, kernel: int, stride: int, padding: int) -> np.ndarray:
    """Return the number of inputs that each tile of ``edge`` outputs along one axis needs.

    Examples
    --------
    >>> needed_inputs(out=6, edge=4, size=6, kernel=3, stride=1, padding=1)
    array([5, 3])
    """
    starts = np.arange(0, out, edge, dtype=np.int64)
    if kernel >= stride:  # windows touch: a tile needs one contiguous range
        ends = np.minimum(starts + edge, out) - 1
        spans: np.ndarray = np.minimum(ends * stride - padding + kernel, size)
        spans = spans - np.maximum(starts * stride - padding, 0)
        needed: np.ndarray = np.maximum(spans, 0)  # none if a tile lies in the padding
        return needed
    left = np.arange(out, dtype=np.int64) * stride - padding
    windows = np.clip(np.minimum(left + kernel, size) - np.maximum(left, 0), 0, None)
    sums: np.ndarray = np.add.reduceat(windows, starts)
    return sums
