"""Schematic of a DRAM bank: row hits and misses of two access orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsys.models.access import RowAccesses, row_buffer
from mlsys.units import Q_
from mlsys.viz.schematics.shapes import arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WORD = 4
_GAP = 3.4


@drawn
def dram_rows(ax: Axes, rows: int = 4, columns: int = 4) -> Axes:
    """Draw the same words read along the rows and down the columns of a DRAM bank.

    Parameters
    ----------
    ax
        Axes to draw into.
    rows, columns
        Rows of the bank, and words of a row.

    Returns
    -------
    Axes
        Each word shows its position in the order; filled if its row was already open, white and framed
        if the row had to be opened first. Below each bank, its row buffer.
    """
    along = [_WORD * index for index in range(rows * columns)]
    down = [_WORD * (row * columns + column) for column in range(columns) for row in range(rows)]
    for bank, (title, walk) in enumerate((("along the rows", along), ("down the columns", down))):
        accesses = row_buffer(walk, Q_(_WORD * columns, "byte"))
        _bank(ax, bank * (columns + _GAP), rows, columns, title, walk, accesses)
    right = 2 * columns + _GAP
    ax.set(xlim=(-0.3, right + 0.3), ylim=(rows + 3.1, -1.5), aspect="equal")
    ax.set_axis_off()
    return ax


def _bank(
    ax: Axes, left: float, rows: int, columns: int, title: str, walk: list[int], row_accesses: RowAccesses
) -> None:
    note(ax, left, -0.75, title, color=COLORS["primary"], fontweight="bold")
    for turn, (address, hit) in enumerate(zip(walk, row_accesses.hits, strict=True), start=1):
        row, column = divmod(address // _WORD, columns)
        box(ax, (left + column + 0.04, row + 0.04), (0.92, 0.92), str(turn), "Green" if hit else "Orange",
            hatch="" if hit else "///", role="hit" if hit else "opened")  # fmt: skip
    arrow(ax, (left + columns / 2, rows + 0.08), (left + columns / 2, rows + 0.72), COLORS["primary"])
    last = row_accesses.rows[-1]
    box(ax, (left, rows + 0.75), (columns, 0.85), f"row buffer: row {last + 1}", "Blue", role="buffer")
    message = f"{row_accesses.opened} rows opened,\n{row_accesses.hits.count(True)} reads find theirs open"
    ax.text(left, rows + 1.8, message, fontsize=11, va="top", color=COLORS["primary"])
