"""A figure that redraws fast enough to follow a slider.

The axes, grid and tick labels are drawn once and kept as a background image; a redraw
restores it and draws only the artists that move.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure


class LiveFigure:
    """A persistent figure with a cached background; pyplot is not involved.

    Parameters
    ----------
    figure
        A figure whose layout does not change: no constrained or tight layout.
    moving
        The artists that change. They are marked as animated, which keeps them out of
        the background; saving the figure still draws them.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> figure = Figure(figsize=(2, 1), dpi=100)
    >>> line, = figure.add_axes((0.2, 0.2, 0.7, 0.7)).plot([0, 1], [0, 1])
    >>> live = LiveFigure(figure, [line])
    >>> before = live.png()
    >>> line.set_data([0, 1], [1, 0])
    >>> live.png() == before, live.pixels
    (False, (200, 100))
    """

    def __init__(self, figure: Figure, moving: Iterable[Artist]) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self.figure = figure
        self.moving = sorted(moving, key=lambda artist: artist.get_zorder())
        for artist in self.moving:
            artist.set_animated(True)
        self._canvas: Any = FigureCanvasAgg(figure)
        self._background: Any = None

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of the image."""
        width, height = self._canvas.get_width_height()
        return int(width), int(height)

    def png(self) -> bytes:
        """Draw the moving artists over the background and return the image as PNG."""
        self._clear()
        for artist in self.moving:
            if artist.get_visible():
                self.figure.draw_artist(artist)
        return self._encoded()

    def blank_png(self) -> bytes:
        """Return the background alone as PNG: axes and labels."""
        self._clear()
        return self._encoded()

    def _clear(self) -> None:
        if self._background is None:
            self._canvas.draw()
            self._background = self._canvas.copy_from_bbox(self.figure.bbox)
        else:
            self._canvas.restore_region(self._background)

    def _encoded(self) -> bytes:
        import numpy as np

        from mlsys.viz.png import png_bytes

        return png_bytes(np.asarray(self._canvas.buffer_rgba()))


def image_tag(png: bytes, alt: str, width: int, height: int) -> str:
    """Return an ``<img>`` element with an embedded image and its alternative text.

    Width and height reserve the space while the image is replaced.

    Examples
    --------
    >>> image_tag(b"...", 'speedup "S"', 720, 360)[:44]
    '<img alt="speedup &quot;S&quot;" width="720"'
    """
    data = base64.b64encode(png).decode("ascii")
    return (
        f'<img alt="{html.escape(alt)}" width="{width}" height="{height}" decoding="sync" '
        f'style="max-width:100%;height:auto" src="data:image/png;base64,{data}">'
    )
