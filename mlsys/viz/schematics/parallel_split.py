"""Schematic of parallel training: which tokens a chip processes, which weights it holds, and what chips exchange."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from mlsys.unit_checks import checked_choice, checked_count
from mlsys.viz.schematics.shapes import arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

Split = Literal["data", "sharded", "tensor", "sequence", "pipeline", "expert"]
"""Ways to divide the training of one model."""

_CELL, _GAP = 0.8, 1.5
_WEIGHTS, _TOKENS = 0.0, 4.1  # lower edges of the two grids
_EXCHANGED = {
    "data": "gradients are summed, once in a step",
    "sharded": "weights are gathered layer by layer, gradients summed into shares",
    "tensor": "partial sums of activations are added, in every layer",
    "sequence": "keys and values of the other tokens arrive, in every layer",
    "pipeline": "activations go to the next stage, gradients come back",
    "expert": "tokens travel to their experts and back, in every layer",
}


def split_cells(kind: Split, chip: int, chips: int = 4) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the tokens that a chip processes and the weights that it keeps, as two grids of ``chips`` × ``chips``.

    Rows of the first are sequences and columns parts of them; rows of the second are layers and columns parts of
    their weights, or experts.

    Examples
    --------
    >>> tokens, weights = split_cells("pipeline", 1)
    >>> tokens.all(), weights.sum(axis=1)
    (np.True_, array([0, 4, 0, 0]))
    """
    one = np.arange(chips) == chip
    row, column, whole = (np.broadcast_to(each, (chips, chips)) for each in (one[:, None], one[None, :], np.True_))
    tokens = {"data": row, "sharded": row, "expert": row, "sequence": column}.get(kind, whole)
    weights = {"sharded": column, "tensor": column, "expert": column, "pipeline": row}.get(kind, whole)
    return tokens, weights


@drawn
def parallel_split(ax: Axes, kind: Split, chips: int = 4) -> Axes:
    """Draw what each chip processes and keeps under one way of dividing a model, and what chips exchange.

    Parameters
    ----------
    ax
        Axes to draw into, about 7 by 2.7 inches.
    kind
        ``"data"``, ``"sharded"`` (fully sharded data parallelism), ``"tensor"``, ``"sequence"``, ``"pipeline"`` or
        ``"expert"``.
    chips
        Number of chips, which is also that of sequences, layers and parts drawn.

    Returns
    -------
    Axes
        A card for each chip: above, its tokens; below, its weights; hatched cells are borrowed for one layer.

    Raises
    ------
    UnknownNameError
        If there is no such way.
    """
    checked_choice("parallel_split", "kind", kind, get_args(Split))
    chips = checked_count("parallel_split", "chips", chips)
    side, top = chips * _CELL, _TOKENS + chips * _CELL
    step = side + _GAP
    for chip in range(chips):
        left = chip * step
        box(ax, (left - 0.3, _WEIGHTS - 0.3), (side + 0.6, top - _WEIGHTS + 0.6), filled=False, role="chip")
        note(ax, left + side / 2, top + 0.8, f"chip {chip + 1}", ha="center", color=COLORS["primary"])
        tokens, weights = split_cells(kind, chip, chips)
        borrowed = np.zeros_like(weights)
        if kind == "sharded":
            borrowed[1] = ~weights[1]
        _grid(ax, left, _TOKENS, tokens, np.zeros_like(tokens), "Orange", "token")
        _grid(ax, left, _WEIGHTS, weights, borrowed, "Blue", "weight")
    note(ax, -0.6, _TOKENS + side / 2, "tokens", ha="right", color=COLORS["OrangeLine"])
    note(ax, -0.6, _WEIGHTS + side / 2, "experts" if kind == "expert" else "weights", ha="right",
         color=COLORS["BlueLine"])  # fmt: skip
    _exchange(ax, kind, chips, step, side)
    ax.set(xlim=(-3.7, (chips - 1) * step + side + 0.5), ylim=(-2.7, top + 1.4))
    ax.set_axis_off()
    return ax


def _grid(
    ax: Axes, left: float, floor: float, held: NDArray[np.bool_], borrowed: NDArray[np.bool_], color: str, role: str
) -> None:
    rows, columns = held.shape
    for row in range(rows):
        for column in range(columns):
            corner = (left + column * _CELL, floor + (rows - 1 - row) * _CELL)
            lent = bool(borrowed[row, column])
            filled = bool(held[row, column])
            box(ax, corner, (_CELL, _CELL), color=color, filled=filled, hatch="////" if lent else "",
                role=role if filled else f"borrowed {role}" if lent else f"no {role}")  # fmt: skip


def _exchange(ax: Axes, kind: Split, chips: int, step: float, side: float) -> None:
    """Draw what passes between chips below their cards: along a chain for a pipeline, else among all."""
    color, y = COLORS["GreenLine"], -1.05
    centres = [chip * step + side / 2 for chip in range(chips)]
    if kind == "pipeline":
        for start, end in pairwise(centres):
            arrow(ax, (start + 0.25, y), (end - 0.25, y), color, role="exchange", width=1.6, head=10)
            arrow(ax, (end - 0.25, y - 0.42), (start + 0.25, y - 0.42), color, role="exchange", width=1.6, head=10)
    else:
        ax.plot([centres[0], centres[-1]], [y - 0.2, y - 0.2], color=color, linewidth=3, solid_capstyle="round")
        for x in centres:
            arrow(ax, (x, y - 0.2), (x, -0.34), color, role="exchange", width=1.6, head=10)
    note(ax, sum(centres) / chips, -2.2, _EXCHANGED[kind], ha="center", color=color)
