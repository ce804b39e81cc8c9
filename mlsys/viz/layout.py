"""Figures of tensor layouts: the order of elements in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.planner.layout import layout_offsets
from mlsys.viz.narrow import PHONE_FIGURE, redraw_narrow, set_narrow_size
from mlsys.viz.shown import chart
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NARROW = 12
"""Elements in a line on a phone."""
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
    shape = (channels, height, width)
    figure = ax.get_figure(root=True)
    redraw_narrow(figure, lambda narrow: _strips(narrow, shape, layouts, pixel, in_a_line=_NARROW))
    if figure is not None:
        lines = sum(-(-layout_offsets(1, *shape, layout).max() // _NARROW) + 1 for layout in layouts)
        set_narrow_size(figure, (PHONE_FIGURE, 0.34 * lines + 0.7))
    return _strips(ax, shape, layouts, pixel)


def _strips(
    ax: Axes,
    shape: tuple[int, int, int],
    layouts: Sequence[str],
    pixel: tuple[int, int],
    in_a_line: int | None = None,
) -> Axes:
    """Draw the strip of each layout, broken into lines of so many elements."""
    top, middles = 0, []
    for layout in layouts:
        offsets = layout_offsets(1, *shape, layout)[0]
        length = in_a_line or int(offsets.max()) + 1
        for c, h, w in np.ndindex(shape):
            line, place = divmod(int(offsets[c, h, w]), length)
            framed = (h, w) == pixel
            ax.barh(top + line, 1, left=place, height=0.7 if in_a_line is None else 0.94,
                    color=COLORS[_FILLS[c % len(_FILLS)]],
                    edgecolor=COLORS["primary"] if framed else "white", linewidth=2.0 if framed else 0.8,
                    zorder=3 if framed else 2)  # fmt: skip
            ax.text(place + 0.5, top + line, f"{c}\n{h}{w}", ha="center", va="center", fontsize=9, zorder=4)
        lines = int(offsets.max()) // length + 1
        middles.append(top + (lines - 1) / 2)
        top += lines + (in_a_line is not None)
    ax.set_yticks(middles, list(layouts))
    ax.invert_yaxis()
    ax.set_xlim(0, in_a_line)
    ax.set(xlabel="place in memory, elements (upper digit: channel; lower: row and column)")
    ax.grid(False)
    return ax
