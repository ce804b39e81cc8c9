"""The effect of loop order alone on data movement."""

import itertools
from collections.abc import Mapping as AnyMapping
from collections.abc import Sequence

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.mapping.iteration import IterationSpace
from mlsys.mapping.loopnest import LoopNest, TileLevel
from mlsys.models.dataflow.counts import movements
from mlsys.provenance import traced


def orders(space: IterationSpace) -> list[tuple[str, ...]]:
    """Return every order of the loops that take more than one step.

    Examples
    --------
    >>> from mlsys.mapping import gemm_space
    >>> len(orders(gemm_space(4, 4, 4)))
    6
    """
    return list(itertools.permutations(dim for dim, size in space.sizes.items() if size > 1))


@traced
def order_words(
    space: IterationSpace, order: Sequence[str], room: AnyMapping[str, int] | None = None
) -> dict[str, int]:
    """Return the words that each operand moves in an untiled loop nest of a given order.

    Parameters
    ----------
    space
        Iteration space of an operator.
    order
        All loops of more than one step, outermost first.
    room
        Capacity in words by operand; by default one word each. An operand keeps the tile of
        as many inner loops as fit.

    Raises
    ------
    ArgumentError
        If the order leaves out a loop, or a capacity is below one word.

    Notes
    -----
    A tile is loaded again whenever a loop that indexes it steps. The overlap of consecutive
    convolution windows, which :func:`walked_words` sees, is not exploited.

    Examples
    --------
    >>> from mlsys.mapping import gemm_space
    >>> order_words(gemm_space(2, 3, 4), "mnk")
    {'A': 24, 'B': 24, 'C': 6}
    """
    moving = [dim for dim, size in space.sizes.items() if size > 1]
    if sorted(order) != sorted(moving):
        raise ArgumentError(
            f"order_words(): `order` must name each of {', '.join(moving)} once, got {tuple(order)}. "
            f"Write e.g. order={tuple(moving)}"
        )
    moved_words = {}
    for operand in space.operands:
        words = (room or {}).get(operand.name, 1)
        if words < 1:
            raise ArgumentError(f"order_words(): `room` must be at least 1 word for {operand.name}, got {words}")
        tile = dict.fromkeys(space.sizes, 1)
        for dim in reversed(order):
            wider = {**tile, dim: space.sizes[dim]}
            if operand.words(wider) > words:
                break
            tile = wider
        level = TileLevel("registers", tile, tuple(order), (operand.name,))  # type: ignore[arg-type]
        (moved,) = movements(space, LoopNest((level,)))
        moved_words[operand.name] = moved.words
    return moved_words


def walked_words(space: IterationSpace, order: Sequence[str]) -> dict[str, int]:
    """Return the result of :func:`order_words` for one register per operand, by running the loops step by step.

    Examples
    --------
    >>> from mlsys.mapping import gemm_space
    >>> walked_words(gemm_space(2, 3, 4), "mnk")
    {'A': 24, 'B': 24, 'C': 6}
    """
    steps = np.indices([space.sizes[dim] for dim in order]).reshape(len(order), -1)
    at = {dim: np.zeros(steps.shape[1], dtype=np.int64) for dim in space.sizes} | dict(zip(order, steps, strict=True))
    moved = {}
    for operand in space.operands:
        address = np.zeros(steps.shape[1], dtype=np.int64)
        for axis in operand.axes:
            index = sum(
                at[dim] * (axis.stride if n == 0 and len(axis.dims) > 1 else 1) for n, dim in enumerate(axis.dims)
            )
            address = address * 1_000_003 + index
        loads = 1 + int(np.count_nonzero(np.diff(address)))
        moved[operand.name] = 2 * loads - len(np.unique(address)) if operand is space.output else loads
    return moved
