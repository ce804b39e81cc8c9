"""Schematic of the words that a blocked product touches between two uses of the same element of B."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlsys.models.cache import gemm_trace
from mlsys.unit_checks import Argument, checked_number
from mlsys.units import Q_
from mlsys.viz.schematics.shapes import box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = {"A": "Blue", "B": "Orange", "C": "Green"}
_WORD = Q_(4, "byte")
_TILE = Argument("", low=3, whole=True)


@drawn
def reuse_window(ax: Axes, tile: int = 6) -> Axes:
    """Draw a tile of each matrix and the words touched between two uses of one element of B.

    Parameters
    ----------
    ax
        Axes to draw into.
    tile
        Edge of the tiles, words, at least 3; the loops inside a tile run over m, n and k, with k innermost.

    Returns
    -------
    Axes
        The element itself is marked; a filled cell was touched after one use of it and before the next.
    """
    edge = int(checked_number("reuse_window", "tile", tile, _TILE, {}))
    row = column = edge // 2
    touched = _between(edge, row, column)
    step = edge + 1.6
    for name, (left, floor) in {"A": (0.0, 0.0), "B": (step, step), "C": (step, 0.0)}.items():
        for down, across in np.ndindex(edge, edge):
            itself = name == "B" and (down, across) == (row, column)
            used = down * edge + across in touched[name]
            color, role = (_COLORS[name], f"used {name}") if used else ("Blue", "rest")
            box(ax, (left + across, floor + edge - 1 - down), (1, 1), "×" if itself else "", color,
                filled=used or itself, role="element" if itself else role)  # fmt: skip
        color = COLORS[f"{_COLORS[name]}Line"]
        note(ax, left, floor + edge + 0.55, f"{name}: {len(touched[name])} words", color=color, fontweight="bold")
    total = sum(map(len, touched.values()))
    message = f"Between two uses\nof the element ×,\n{total} other words\nare touched."
    note(ax, 0, step + edge / 2, message, color=COLORS["primary"])
    ax.set(xlim=(-0.3, step + edge + 0.3), ylim=(-0.3, step + edge + 1.2), aspect="equal")
    ax.set_axis_off()
    return ax


def _between(edge: int, row: int, column: int) -> dict[str, set[int]]:
    """Return the elements of each operand touched between two uses of B[row, column], by index in the tile."""
    trace = gemm_trace(edge, edge, edge, _WORD)
    operands = trace.kinds >> 1
    first = {name: int(trace.addresses[operands == index].min()) for index, name in enumerate(trace.names)}
    its = first["B"] + trace.element_bytes * (row * edge + column)
    use, after = np.flatnonzero(trace.addresses == its)[edge // 2 - 1 :][:2]
    touched = {}
    for index, name in enumerate(trace.names):
        there = trace.addresses[use + 1 : after][operands[use + 1 : after] == index]
        touched[name] = {int(place - first[name]) // trace.element_bytes for place in there}
    return touched
