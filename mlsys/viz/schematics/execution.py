"""Schematics of execution models: what one instruction covers, and a branch on which a warp divides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlsys.models.access import WARP
from mlsys.models.divergence import warp_branch
from mlsys.viz.schematics.shapes import MUTED, arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PATHS = (("Blue", "///"), ("Orange", "..."), ("Green", "xx"), ("Violet", "++"))
_ROWS = WARP // 2
_NARROWEST = 5.6
_SITS_OUT = 5


@drawn
def execution_models(ax: Axes, lanes: int = 8, tile: int = 16) -> Axes:
    """Draw one instruction of each execution model, and the results that it yields.

    Parameters
    ----------
    ax
        Axes to draw into.
    lanes
        Elements of a vector instruction.
    tile
        Edge of the block of outputs of a tile instruction.

    Returns
    -------
    Axes
        From the left a scalar, a vector (SIMD), a warp (SIMT) and a tile; a box below an instruction is one result,
        and a white one is masked.
    """
    grids = (("scalar", 1, 1, 1, "1 product"), ("SIMD", 1, lanes, 1, f"{lanes} lanes of\none register"),
             ("SIMT", 2, WARP // 2, 2, f"{WARP} threads,\nsome sit out"),
             ("matrix tile", tile, tile, 1, f"{tile} × {tile} sums,\n{tile} products each"))  # fmt: skip
    left = 0.0
    for title, columns, rows, gap, message in grids:
        width = columns + (gap - 1) * (columns - 1)
        middle = left + max(width, _NARROWEST) / 2
        note(ax, middle, 4.3, title, ha="center", color=COLORS["primary"], fontweight="bold")
        box(ax, (middle - 2.0, 1.8), (4.0, 1.5), "1 instr.", "Orange", role="instruction", letters=9.5)
        arrow(ax, (middle, 1.75), (middle, 0.2), COLORS["primary"])
        for row in range(rows):
            for column in range(columns):
                idle = title == "SIMT" and (row + column) % _SITS_OUT == 1
                box(ax, (middle - width / 2 + column * gap, -row - 1), (1, 1), color="Blue", filled=not idle,
                    role="masked" if idle else title)  # fmt: skip
        note(ax, middle, -rows - 0.5, message, ha="center", va="top", fontsize=9.5)
        left += max(width, _NARROWEST) + 1.6
    ax.set(xlim=(-0.4, left - 1.2), ylim=(-_ROWS - 3.2, 5.2))
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


@drawn
def warp_divergence(ax: Axes, paths: Sequence[int], instructions: Sequence[int]) -> Axes:
    """Draw the issue slots of a warp that takes a branch: lanes across, instructions down.

    Parameters
    ----------
    ax
        Axes to draw into.
    paths, instructions
        As in :func:`mlsys.models.divergence.warp_branch`.

    Returns
    -------
    Axes
        Filled slots do work of their own thread; white ones are masked while another path is issued.
    """
    branch = warp_branch(paths, instructions)
    lanes, row = len(branch.paths), 0
    for path in branch.taken:
        color, hatch = _PATHS[path % len(_PATHS)]
        first = row
        for _ in range(branch.instructions[path]):
            for lane, own in enumerate(branch.paths):
                works = own == path
                box(ax, (lane, -row - 1), (1, 1), color=color, filled=works, hatch=hatch if works else "",
                    role="work" if works else "masked")  # fmt: skip
            row += 1
        note(ax, -0.6, -(first + row) / 2, f"path {'ABCD'[path]}", ha="right", color=COLORS[f"{color}Line"])
    note(ax, lanes / 2, 0.9, f"{lanes} lanes of one warp", ha="center", color=COLORS["primary"])
    arrow(ax, (lanes + 0.8, 0), (lanes + 0.8, -row), MUTED)
    note(ax, lanes + 1.3, -row / 2, "time", va="center")
    note(ax, lanes / 2, -row - 0.9, f"{branch.issued} instructions issued, {branch.efficiency:.0%} of the slots used",
         ha="center", color=COLORS["primary"])  # fmt: skip
    ax.set(xlim=(-5, lanes + 4), ylim=(-row - 1.7, 1.7))
    ax.set_axis_off()
    return ax
