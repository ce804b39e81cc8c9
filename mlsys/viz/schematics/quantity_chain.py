"""Schematic of a conversion from quantity to quantity, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError
from mlsys.viz.schematics.shapes import arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT, _STEP, _GAP = 4.0, 0.8, 1.7, 0.6
_FILLS = ("Orange", "Blue", "Green", "Violet")


@drawn
def quantity_chain(ax: Axes, amounts: Mapping[str, Sequence[str]], factors: Sequence[str]) -> Axes:
    """Draw how an amount is converted, one factor at a time, for one or more cases side by side.

    Parameters
    ----------
    ax
        Axes to draw into.
    amounts
        For each case its amounts from first to last, in words.
    factors
        What takes each amount to the next, in words: one fewer than there are amounts.

    Returns
    -------
    Axes
        A column of boxes for each case, with the factors between their rows.

    Raises
    ------
    ArgumentError
        If a case does not have one amount more than there are factors.
    """
    for name, texts in amounts.items():
        if len(texts) != len(factors) + 1:
            raise ArgumentError(
                f"quantity_chain(): `amounts` of {name!r} must be one more than the {len(factors)} factors, got "
                f"{len(texts)}. Write e.g. amounts={{'CPU': ['1 kWh', '400 g']}}, factors=['× carbon intensity']"
            )
    middle = (len(amounts) * (_WIDTH + _GAP) - _GAP) / 2
    for column, (name, texts) in enumerate(amounts.items()):
        left = column * (_WIDTH + _GAP)
        note(ax, left + _WIDTH / 2, _HEIGHT + 0.35, name, ha="center", color=COLORS["primary"])
        for row, text in enumerate(texts):
            box(ax, (left, -row * _STEP), (_WIDTH, _HEIGHT), text, _FILLS[column % len(_FILLS)], role="amount")
            if row:
                # The side away from the words between the columns
                x = left + _WIDTH * (0.1 if 2 * left + _WIDTH < 2 * middle else 0.9)
                arrow(ax, (x, _HEIGHT - (row - 1) * _STEP - _HEIGHT), (x, _HEIGHT - row * _STEP))
    for row, text in enumerate(factors):
        note(ax, middle, -row * _STEP - (_STEP - _HEIGHT) / 2, text, ha="center", fontsize=10)
    ax.set(xlim=(-0.1, 2 * middle + 0.1), ylim=(-len(factors) * _STEP - 0.1, _HEIGHT + 0.7))
    ax.set_axis_off()
    return ax
