"""Schematic of a collective operation: the messages of each round, as thick as the share of the array they carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsys.models.collectives import Schedule
from mlsys.viz.schematics.shapes import arrow, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_THICKEST = 5.0


@drawn
def message_rounds(ax: Axes, schedule: Schedule) -> Axes:
    """Draw the messages of a schedule, one column for each round and one row for each rank.

    Parameters
    ----------
    ax
        Axes to draw into.
    schedule
        A schedule of :func:`mlsys.models.collectives.schedule`.

    Returns
    -------
    Axes
        Arrows that add are orange, arrows that copy are blue; their width is the share of the array.
    """
    ranks, rounds = schedule.ranks, len(schedule.rounds)
    for index, messages in enumerate(schedule.rounds):
        for each in messages:
            share = len(each.blocks) / schedule.blocks_per_array
            color = COLORS["OrangeLine" if each.adds else "BlueLine"]
            start, end = (index + 0.08, each.source), (index + 0.92, each.target)
            arrow(ax, start, end, color, role="adds" if each.adds else "copies",
                  width=max(0.8, _THICKEST * share), head=7 + 7 * share)  # fmt: skip
    for rank in range(ranks):
        ax.plot(range(rounds + 1), [rank] * (rounds + 1), "o", color=COLORS["primary"], markersize=3, zorder=3)
        note(ax, -0.25, rank, f"{rank + 1}", ha="right", fontsize=9)
    note(ax, -0.25, -1.1, "chip", ha="right", fontsize=9)
    for adds, text, color in ((True, "add what arrives", "OrangeLine"), (False, "copy what arrives", "BlueLine")):
        at = [index for index, messages in enumerate(schedule.rounds) if any(each.adds is adds for each in messages)]
        if at:
            note(ax, min(at), -1.1, text, color=COLORS[color])
    ax.set(xlim=(-0.9, rounds + 0.2), ylim=(ranks - 0.5, -1.7))
    ax.set_axis_off()
    return ax
