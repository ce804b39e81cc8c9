"""Schematic of a blocked matrix product: its loops, the stationary tile and the streaming tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsys.models.tiling import Traffic, gemm_traffic
from mlsys.models.tiling.traffic import loop_order
from mlsys.viz.schematics.shapes import arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OPERANDS = {"A": "mk", "B": "kn", "C": "mn"}
_EDGE = 4
_AT = {"B": (5.6, 6.2), "A": (0.0, 0.0), "C": (5.6, 0.0)}


@drawn
def loop_nest(ax: Axes, size: int, tile: int, order: str = "mnk") -> Axes:
    """Draw the loops over tiles of C = A·B, and the three matrices with the resident tiles.

    Parameters
    ----------
    ax
        Axes to draw into.
    size
        Edge of the three square matrices, words; four tiles of it are drawn along each edge.
    tile
        Edge of a tile.
    order
        Loops over tiles, outermost first; the matrix without the innermost one stays.

    Returns
    -------
    Axes
        The stationary tile is filled and framed; the others are hatched in the strip through which they stream.
        Beside each matrix is the number of times that each of its words moves, by the tiling model.
    """
    loops = loop_order("loop_nest", order)
    traffic = gemm_traffic(size, size, size, tile, loops)
    stays = next(name for name, letters in _OPERANDS.items() if loops[-1] not in letters)
    for name, letters in _OPERANDS.items():
        _matrix(ax, name, letters, loops[-1], stays, _moves(traffic, name, size))
    _loops(ax, loops, stays)
    ax.set(xlim=(-0.7, 10.9), ylim=(-1.0, 11.2), aspect="equal")
    ax.set_axis_off()
    return ax


def _moves(traffic: Traffic, name: str, size: int) -> str:
    return f"each word moves {traffic.by_operand[name] / size**2:g}×"


def _matrix(ax: Axes, name: str, letters: str, inner: str, stays: str, moves: str) -> None:
    left, floor = _AT[name]
    held = (1, 1) if name == stays else (1, 0) if letters[1] == inner else (0, 1)
    for down in range(_EDGE):
        for across in range(_EDGE):
            here = (down, across)
            along = name != stays and ((letters[1] == inner and down == 1) or (letters[0] == inner and across == 1))
            corner = (left + across, floor + _EDGE - 1 - down)
            if name == stays and here == held:
                box(ax, corner, (1, 1), "stays", "Green", role="stays", letters=9.5).set_linewidth(2.4)
            elif along:
                box(ax, corner, (1, 1), color="Orange", hatch="///", role=f"streams {name}")
            else:
                box(ax, corner, (1, 1), filled=False, role="rest")
    title = {"A": "A, m × k", "B": "B, k × n", "C": "C, m × n"}[name]
    note(ax, left, floor + _EDGE + 0.4, title, color=COLORS["primary"], fontweight="bold")
    note(ax, left, floor - 0.5, moves)
    if name == stays:
        return
    if letters[1] == inner:
        arrow(ax, (left + 0.2, floor + 2.5), (left + 3.8, floor + 2.5), COLORS["primary"], width=1.6, head=12)
    else:
        arrow(ax, (left + 1.5, floor + 3.8), (left + 1.5, floor + 0.2), COLORS["primary"], width=1.6, head=12)


def _loops(ax: Axes, loops: str, stays: str) -> None:
    names = {"m": "rows of C", "n": "columns of C", "k": "the reduction"}
    for depth, letter in enumerate(loops):
        text = f"for {letter}:  {names[letter]}"
        ax.text(-0.6 + 0.45 * depth, 10.2 - 0.95 * depth, text, fontsize=10.5, color=COLORS["primary"], va="center")
    ax.text(-0.6 + 1.35, 10.2 - 2.85, f"{stays} stays", fontsize=10.5, color=COLORS["GreenLine"], va="center",
            fontweight="bold")  # fmt: skip
