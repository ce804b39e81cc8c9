"""Schematic of loop orders: which loops make an operand move, and through which it stays in its register."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.mapping.iteration import IterationSpace, Operand
from mlsys.models.dataflow.orders import order_words
from mlsys.viz.schematics.shapes import box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS, HALO

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE, _HIGH, _STEP = 1.75, 0.86, 1.9
_KINDS = {"index": ("Blue", ""), "refetch": ("Orange", "///"), "stays": ("Green", "")}


@drawn
def loop_reuse(ax: Axes, space: IterationSpace, orders: Sequence[str]) -> list[Axes]:
    """Draw the effect of each loop on each operand, for several loop orders and one register per operand.

    Parameters
    ----------
    ax
        Axes replaced by panels, one per order, side by side.
    space
        Iteration space of an operator.
    orders
        Loop orders, outermost loop first.

    Returns
    -------
    list[Axes]
        Three kinds of cells: the loop indexes the operand, it fetches the same elements again, or the operand stays.
        Below each operand are the words that it moves, by the model.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    ax.remove()
    axes = list(np.ravel(figure.subplots(1, len(orders))))
    for panel, order in zip(axes, orders, strict=True):
        _panel(panel, space, order)
    return axes


def loop_kind(operand: Operand, order: Sequence[str], loop: str) -> str:
    """Return ``"index"``, ``"refetch"`` or ``"stays"`` for one loop of an order and one operand.

    Examples
    --------
    >>> from mlsys.mapping import gemm_space
    >>> inputs = gemm_space(4, 5, 6).operand("A")
    >>> [loop_kind(inputs, "nmk", loop) for loop in "nmk"], loop_kind(inputs, "mkn", "n")
    (['refetch', 'index', 'index'], 'stays')
    """
    if loop in operand.dims:
        return "index"
    inside = order[list(order).index(loop) + 1 :]
    return "refetch" if any(dim in operand.dims for dim in inside) else "stays"


def _panel(ax: Axes, space: IterationSpace, order: str) -> None:
    words = order_words(space, order)
    depth = len(order)
    for column, operand in enumerate(space.operands):
        left = 2.1 + _STEP * column
        note(
            ax,
            left + _WIDE / 2,
            depth + 0.35,
            _title(space, operand),
            ha="center",
            color=COLORS["primary"],
            fontsize=10,
        )
        for row, loop in enumerate(order):
            kind = loop_kind(operand, order, loop)
            color, hatch = _KINDS[kind]
            text = "stays" if kind == "stays" else f"× {space.sizes[loop]}"
            box(ax, (left, depth - 1 - row), (_WIDE, _HIGH), text, color, hatch=hatch,
                role=f"{kind} {operand.name} {loop}", letters=10)  # fmt: skip
            if hatch:
                ax.texts[-1].set_bbox(HALO)
        note(ax, left + _WIDE / 2, -0.5, f"{words[operand.name]:,}", ha="center", color=COLORS["primary"], fontsize=10,
             fontweight="bold")  # fmt: skip
    for row, loop in enumerate(order):
        note(ax, 0.12 * row, depth - 1 - row + _HIGH / 2, f"for {loop}", color=COLORS["primary"], fontsize=10)
    note(ax, 0.0, -0.5, "words", color=COLORS["primary"], fontsize=10)
    ax.set_title(f"{', '.join(order)}: {sum(words.values()):,} words", fontsize=10)
    ax.set(xlim=(-0.1, 2.1 + 3 * _STEP), ylim=(-0.95, depth + 0.8))
    ax.set_axis_off()


def _title(space: IterationSpace, operand: Operand) -> str:
    return "sums" if operand is space.output else operand.name
