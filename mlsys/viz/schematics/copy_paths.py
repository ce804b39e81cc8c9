"""Schematic of three ways from host memory to the device: pageable, pinned and unified memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsys.viz.schematics.shapes import arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEP = 2.5
_LANES = (
    ("pageable", "pages that the system may move", "Red"),
    ("pinned", "pages locked in place", "Green"),
    ("unified", "one address, pages move on demand", "Violet"),
)


@drawn
def copy_paths(ax: Axes) -> Axes:
    """Draw how a copy reaches the device from pageable, pinned and unified memory.

    Parameters
    ----------
    ax
        Axes to draw into.

    Returns
    -------
    Axes
        A lane for each kind of memory: boxes are memories, arrows copies, and the words say who makes them.
    """
    for lane, (name, what, color) in enumerate(_LANES):
        floor = -lane * _STEP
        note(ax, 0, floor + 1.55, f"{name}: {what}", fontsize=11, color=COLORS["primary"])
        box(ax, (0, floor), (2.1, 1.0), f"{name}\nmemory", color, letters=10, role="host")
        box(ax, (8.0, floor), (2.0, 1.0), "device\nmemory", "Blue", letters=10, role="device")
        if name == "pageable":
            box(ax, (4.0, floor), (2.0, 1.0), "locked\nbuffer", "Green", letters=10, role="staging")
            arrow(ax, (2.1, floor + 0.5), (4.0, floor + 0.5), COLORS["primary"], role="copy")
            arrow(ax, (6.0, floor + 0.5), (8.0, floor + 0.5), COLORS["primary"], role="copy")
            note(ax, 3.05, floor + 0.78, "CPU", ha="center", fontsize=10)
            note(ax, 7.0, floor + 0.78, "DMA", ha="center", fontsize=10)
        elif name == "pinned":
            arrow(ax, (2.1, floor + 0.5), (8.0, floor + 0.5), COLORS["primary"], role="copy")
            note(ax, 5.05, floor + 0.78, "DMA engine, beside everything else", ha="center", fontsize=10)
        else:
            for offset in (0.25, 0.5, 0.75):
                arrow(ax, (2.1, floor + offset), (8.0, floor + offset), COLORS["VioletLine"], role="copy", head=6)
            note(ax, 5.05, floor + 1.0, "a fault, then a page: again and again", ha="center", fontsize=10)
    ax.set(xlim=(-0.1, 10.1), ylim=(-2 * _STEP - 0.2, 1.9))
    ax.set_axis_off()
    return ax
