"""Schematic of a warp and the memory sectors that its lanes access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlsys.models.access import SECTOR, WARP, strided_access
from mlsys.units import Q_, Quantity
from mlsys.viz.schematics.shapes import MUTED, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

_WIDTH = 100.0
_STEP = 4.2


@drawn
def warp_sectors(ax: Axes, strides: Sequence[int] = (1, 2, 8), element_size: Quantity | None = None) -> Axes:
    """Draw the sectors that the lanes of a warp access, one band per stride.

    Parameters
    ----------
    ax
        Axes to draw into.
    strides
        Strides between lanes in elements, ascending, each at least 1.
    element_size
        Size of the element that a lane loads, whole bytes; by default four.

    Returns
    -------
    Axes
        Above, the lanes; below, memory cut into sectors as far as the largest stride reaches. Sectors that
        move are filled, and the requested part of them is hatched.
    """
    size = Q_(4, "byte") if element_size is None else element_size
    width = int(size.m_as("byte"))
    reach = max(strides) * WARP * width
    scale = _WIDTH / reach
    block = int(SECTOR.m_as("byte"))
    for band, stride in enumerate(strides):
        floor = -band * _STEP
        load = strided_access(stride, size)
        touched = {lane * stride * width // block for lane in range(WARP)}
        for sector in range(-(-reach // block)):
            moves = sector in touched
            box(ax, (sector * block * scale, floor), (block * scale, 0.8), color="Orange", filled=moves,
                role="moved" if moves else "left")  # fmt: skip
        for lane in range(WARP):
            x = (lane + 0.5) * _WIDTH / WARP
            box(ax, (x - 1.25, floor + 2.0), (2.5, 0.55), color="Blue", role="lane")
            start = lane * stride * width
            ax.plot([x, (start + width / 2) * scale], [floor + 2.0, floor + 0.8], color=COLORS["BlueLine"],
                    linewidth=0.7)  # fmt: skip
            ax.add_patch(_requested(start * scale, floor, width * scale))
        share = f"{load.efficiency.m_as(''):.3g}"
        message = f"{load.sectors} sectors move, {float(share) * 100:.3g}% of them used"
        near = "neighbours" if stride == 1 else f"every {_ordinal(stride)} element"
        note(ax, 0, floor + 2.95, f"{near}: {message}", color=COLORS["primary"])
    note(ax, _WIDTH + 1.5, 2.27, "lanes")
    note(ax, _WIDTH + 1.5, 0.4, "sectors")
    ax.set(xlim=(-1, _WIDTH + 14), ylim=(-(len(strides) - 1) * _STEP - 0.3, 3.5))
    ax.set_axis_off()
    return ax


def _requested(left: float, floor: float, width: float) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((left, floor + 0.2), width, 0.4, facecolor=COLORS["OrangeLine"], edgecolor=MUTED, linewidth=0.2,
                     gid="requested")  # fmt: skip


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")
