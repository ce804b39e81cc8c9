"""Schematic of the three dataflows of a matrix product: the tile that stays and the tiles that stream past it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlsys.mapping import DATAFLOWS, dataflow, gemm_space
from mlsys.models.dataflow.counts import movements
from mlsys.viz.schematics.shapes import arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EDGE = 3
_AT = {"A": (0.0, 0.0), "B": (4.1, 4.5), "C": (4.1, 0.0)}
_LOOPS = {"A": "mk", "B": "kn", "C": "mn"}
_NAMES = {"A": "inputs", "B": "weights", "C": "sums"}
_HELD = {"A": (1, 0), "B": (0, 1), "C": (1, 1)}


@drawn
def stationary_tiles(ax: Axes, m: int, k: int, n: int, tile: int) -> list[Axes]:
    """Draw weight, output and input stationary side by side: what stays, and how often each word moves.

    Parameters
    ----------
    ax
        Axes replaced by three panels.
    m, k, n
        Sizes of the product: rows of inputs, length of the sums, columns of weights.
    tile
        Edge of the stationary tile.

    Returns
    -------
    list[Axes]
        The stationary tile is filled; the strips that stream past it are hatched. Beside each matrix is the number of
        times that each of its words moves on average, by the dataflow model.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    ax.remove()
    space = gemm_space(m, n, k)
    flows = [flow for flow, (_, streams) in DATAFLOWS.items() if streams]
    axes = list(np.ravel(figure.subplots(1, len(flows))))
    for panel, flow in zip(axes, flows, strict=True):
        moved = {item.operand: item.words for item in movements(space, dataflow(flow, tile))}
        times = {name: moved[name] / space.operand(name).words(space.sizes) for name in "ABC"}
        _panel(panel, flow, times)
    return axes


def _panel(ax: Axes, flow: str, times: dict[str, float]) -> None:
    title, streams = DATAFLOWS[flow]
    for name, loops in _LOOPS.items():
        left, floor = _AT[name]
        for down in range(_EDGE):
            for across in range(_EDGE):
                corner = (left + across, floor + _EDGE - 1 - down)
                if streams not in loops and (down, across) == _HELD[name]:
                    box(ax, corner, (1, 1), color="Green", role=f"stays {name}").set_linewidth(2.2)
                elif streams in loops and (across if loops[0] == streams else down) == _held(loops, streams):
                    box(ax, corner, (1, 1), color="Orange", hatch="///", role=f"streams {name}")
                else:
                    box(ax, corner, (1, 1), filled=False, role="rest")
        _flow(ax, loops, streams, left, floor)
        text = f"{_NAMES[name]} × {times[name]:g}"
        note(ax, left + _EDGE / 2, floor + _EDGE + 0.45, text, ha="center", color=COLORS["primary"], fontsize=9.5)
    ax.set_title(title[0].upper() + title[1:], fontsize=10)
    ax.set(xlim=(-0.5, 7.6), ylim=(-0.3, 8.3), aspect="equal")
    ax.set_axis_off()


def _held(loops: str, streams: str) -> int:
    """Position of the strip along the loop that does not stream: that of the stationary tile."""
    stationary = next(name for name, letters in _LOOPS.items() if streams not in letters)
    fixed = loops.replace(streams, "")
    return _HELD[stationary][_LOOPS[stationary].index(fixed)]


def _flow(ax: Axes, loops: str, streams: str, left: float, floor: float) -> None:
    """Draw the direction in which a strip streams."""
    if streams not in loops:
        return
    at = _held(loops, streams)
    if loops[1] == streams:
        height = floor + _EDGE - 0.5 - at
        arrow(ax, (left + 0.15, height), (left + _EDGE - 0.15, height), COLORS["primary"], width=1.5, head=11)
    else:
        middle = left + at + 0.5
        arrow(ax, (middle, floor + _EDGE - 0.15), (middle, floor + 0.15), COLORS["primary"], width=1.5, head=11)
