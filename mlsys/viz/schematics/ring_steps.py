"""Schematic of an all-reduce around a ring: what each rank holds after each round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsys.models.collectives import schedule
from mlsys.unit_checks import checked_count
from mlsys.viz.schematics.shapes import box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Held = dict[tuple[int, int], frozenset[int]]


def _states(ranks: int) -> list[Held]:
    """Return the contributors to each (rank, block), at the start and after each round."""
    held: Held = {(rank, block): frozenset({rank}) for rank in range(ranks) for block in range(ranks)}
    states = [held]
    plan = schedule("all-reduce", "ring", ranks)
    for round_ in plan.rounds if plan else ():
        after = dict(held)
        for message in round_:
            for block in message.blocks:
                arriving = held[message.source, block]
                after[message.target, block] = arriving | held[message.target, block] if message.adds else arriving
        held = after
        states.append(held)
    return states


@drawn
def ring_steps(ax: Axes, ranks: int = 4) -> Axes:
    """Draw the rounds of a ring all-reduce: above the reduce-scatter, below the all-gather.

    Parameters
    ----------
    ax
        Axes to draw into.
    ranks
        Number of ranks, 2 to 6.

    Returns
    -------
    Axes
        One grid a round, with a column for each rank and a row for each block; the number says how many ranks
        contributed to what is held there.
    """
    count = checked_count("ring_steps", "ranks", ranks)
    states = _states(count)
    step, high = count + 1.0, count + 2.3
    for index, held in enumerate(states):
        lower = index >= count
        left = (index - count + 1 if lower else index) * step
        floor = -high if lower else 0.0
        words = "start" if index == 0 else f"round {index}"
        note(ax, left + count / 2, floor + count + 0.42, words, ha="center", fontsize=10, color=COLORS["primary"])
        for (rank, block), parts in held.items():
            full = len(parts) == count
            color = "Green" if full else "Orange" if len(parts) > 1 else "Blue"
            box(ax, (left + rank, floor + count - 1 - block), (1, 1), str(len(parts)), color,
                role="full" if full else "part", letters=10)  # fmt: skip
    note(ax, 0, -high + count - 0.6, "all-gather:\nfull sums\ngo round", fontsize=10)
    note(ax, 0, -high + 0.5, "columns: ranks\nrows: blocks", fontsize=9)
    ax.set(xlim=(-0.1, count * step), ylim=(-high - 0.2, count + 0.9))
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax
