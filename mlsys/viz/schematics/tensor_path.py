"""Schematic of a request's way through a GPU: memories one below the other, and what passes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsys.models.journey import JourneyResult
from mlsys.units import Quantity
from mlsys.viz.schematics.shapes import arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS
from mlsys.viz.words import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEP = 1.5
_TINTS = ("Orange", "Blue", "Blue", "Blue", "Violet", "Green")


def _size(amount: Quantity) -> str:
    """Return an amount of bytes with three digits."""
    bytes_ = amount.m_as("byte")
    unit, scale = ("MB", 1e6) if bytes_ >= 1e6 else ("kB", 1e3)
    return f"{number(bytes_ / scale)} {unit}"


@drawn
def tensor_path(ax: Axes, result: JourneyResult) -> Axes:
    """Draw the way of a request inwards and of its result outwards.

    Parameters
    ----------
    ax
        Axes to draw into.
    result
        Of :func:`mlsys.models.journey.request_journey`.

    Returns
    -------
    Axes
        Memories from the host above to the matrix units below. Beside each arrow inwards: the bytes of the request
        that pass, how often each of them does, and what a byte costs; beside the arrows outwards, the result.
    """
    inward = result.legs[:-2]
    stations = [inward[0].start, *(leg.end for leg in inward)]
    floors = [-index * _STEP for index in range(len(stations))]
    for name, floor, tint in zip(stations, floors, _TINTS, strict=True):
        words = {"host": "host memory", "L1": "L1 and shared memory", "Registers": "registers"}.get(name, name)
        box(ax, (0, floor), (4.4, 0.72), words, tint, letters=11, role="station")
    for leg, floor in zip(inward, floors, strict=False):
        arrow(ax, (1.0, floor), (1.0, floor - _STEP + 0.72), COLORS["primary"], role="inward", width=1.6)
        often = f"{number(leg.passes)} ×" if leg.passes > 1 else "once"
        note(ax, 4.7, floor - 0.39, f"{_size(leg.request)}, {often}, {number(leg.price.m_as('pJ/byte'), 2)} pJ/byte",
             fontsize=10, color=COLORS["primary"])  # fmt: skip
    bottom = floors[-1]
    for leg, (low, high) in zip(
        result.legs[-2:], ((bottom + 0.72, floors[1]), (floors[1] + 0.72, floors[0])), strict=True
    ):
        arrow(ax, (4.15, low), (4.15, high), COLORS["GreenLine"], role="outward", width=1.6)
        if leg is result.legs[-2]:
            note(ax, 4.7, bottom + 0.36, f"result: {_size(leg.request)} out", fontsize=10, color=COLORS["GreenLine"])
    ax.set(xlim=(-0.1, 9.6), ylim=(bottom - 0.15, 0.9))
    ax.set_axis_off()
    return ax
