"""Schematic of a row-stationary array: filter rows along rows, input rows on diagonals, sums down columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsys.viz.schematics.shapes import arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FILLS = ("Blue", "Orange", "Green", "Violet", "Red")


@drawn
def row_stationary_grid(ax: Axes, filter_rows: int = 3, output_rows: int = 4) -> Axes:
    """Draw the filter and input rows of each processing element of a row-stationary array.

    Parameters
    ----------
    ax
        Axes to draw into.
    filter_rows
        Rows of the filter, and of the array.
    output_rows
        Output rows computed at a time, the columns of the array.

    Returns
    -------
    Axes
        Elements of one shade, along a diagonal, hold the same row of the input.
    """
    for row in range(filter_rows):
        for column in range(output_rows):
            image = row + column
            text = f"filter {row + 1}\ninput {image + 1}"
            box(ax, (1.5 * column, row), (1.3, 0.82), text, _FILLS[image % len(_FILLS)], role=f"pe {row} {column}",
                letters=10.5)  # fmt: skip
    for column in range(output_rows):
        centre = 1.5 * column + 0.65
        for row in range(filter_rows - 1):
            arrow(ax, (centre, row + 0.82), (centre, row + 1.0), COLORS["primary"], role="sum", head=7)
        arrow(ax, (centre, filter_rows - 0.18), (centre, filter_rows + 0.3), COLORS["primary"], role="out", head=9)
        note(ax, centre, filter_rows + 0.5, f"output {column + 1}", ha="center", color=COLORS["primary"])
    for row in range(filter_rows):
        arrow(ax, (-0.55, row + 0.41), (-0.04, row + 0.41), COLORS["primary"], head=9)
    note(ax, -0.62, filter_rows / 2 - 0.1, "filter\nrows", ha="right", color=COLORS["primary"])
    ax.set(xlim=(-1.65, 1.5 * output_rows), ylim=(filter_rows + 0.8, -0.2))
    ax.set_axis_off()
    return ax
