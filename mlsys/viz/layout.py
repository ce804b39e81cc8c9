"""Figures of tensor layouts: the order of elements in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.planner.layout import layout_offsets
from mlsys.viz.shown import chart
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FILLS = ("BlueL", "OrangeL", "GreenL", "VioletL", "RedL")


@chart
def layout_strip(
    ax: Axes,
    channels: int = 3,
    height: int = 3,
    width: int = 3,
    layouts: Sequence[str] = ("NCHW", "NHWC", "NCHW2c"),
    pixel: tuple[int, int] = (0, 1),
) -> Axes:
    """Draw one image as it is stored in memory, one row per layout, with the channels of one pixel framed.

    Parameters
    ----------
    ax
        Axes to draw into.
    channels, height, width
        Shape of the image; small, so that the numbers can be read.
    layouts
        Layouts to draw.
    pixel
        Row and column of the framed pixel.
    """
    for row, layout in enumerate(layouts):
        offsets = layout_offsets(1, channels, height, width, layout)[0]
        for c, h, w in np.ndindex(channels, height, width):
            framed = (h, w) == pixel
            ax.barh(row, 1, left=offsets[c, h, w], height=0.7, color=COLORS[_FILLS[c % len(_FILLS)]],
                    edgecolor=COLORS["primary"] if framed else "white", linewidth=2.0 if framed else 0.8,
                    zorder=3 if framed else 2)  # fmt: skip
            ax.text(offsets[c, h, w] + 0.5, row, f"{c}\n{h}{w}", ha="center", va="center", fontsize=9, zorder=4)
    ax.set_yticks(range(len(layouts)), list(layouts))
    ax.invert_yaxis()
    ax.set_xlim(0, None)
    ax.set(xlabel="place in memory, elements (upper digit: channel; lower: row and column)")
    ax.grid(False)
    return ax
