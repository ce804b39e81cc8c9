"""Traffic over tile size as a picture: a managed buffer and an LRU cache of the same size."""

from __future__ import annotations

import bisect
import math
from typing import Any

import matplotlib.style
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from mlsys.door import checked_number, count
from mlsys.errors import ArgumentError
from mlsys.models.tiling import gemm_tile_words, gemm_traffic
from mlsys.viz.lru import lru_cliff, lru_words
from mlsys.viz.style import COLORS
from mlsys.viz.tiling import TILES
from mlsys.viz.views.view import HALO, Scene, View, decades, new_figure, times

__all__ = ["TilingScene", "tiling_view"]


class TilingScene(Scene):
    """The figure of :func:`tiling_view`, made once and moved often."""

    blank = "An empty chart of words moved over tile edge, on two logarithmic axes."

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 4.2)
            ax = self.figure.add_axes((0.105, 0.125, 0.875, 0.79))
            decades(ax, "y", 3, 7)
            ax.set_xscale("log", base=2)
            ax.set_xlim(0.9, 72)
            ax.xaxis.set_major_locator(FixedLocator([2.0**power for power in range(7)]))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ax.set_xlabel("Tile edge T (words)", fontsize=10, color=COLORS["primary"])
            ax.set_title("Words moved", loc="left", fontsize=11, weight="bold", color=COLORS["primary"])
            line: dict[str, Any] = {"linewidth": 2.2, "markersize": 5, "zorder": 4}
            (self._lru,) = ax.plot([1], [1], "-o", color=COLORS["RedLine"], **line)
            (self._managed,) = ax.plot([1], [1], "-s", color=COLORS["BlueLine"], markerfacecolor="white", **line)
            (self._floor,) = ax.plot([1, 1], [1, 1], ":", color=COLORS["GreenLine"], linewidth=2, zorder=3)
            (self._fits,) = ax.plot([1, 1], [1e3, 1e7], "--", color=COLORS["BlueLine"], linewidth=1.2, zorder=2)
            (self._cliff,) = ax.plot([1, 1], [1e3, 1e7], "--", color=COLORS["RedLine"], linewidth=1.2, zorder=2)
            points: dict[str, Any] = {"markersize": 13, "markeredgecolor": COLORS["primary"], "markeredgewidth": 1.6}
            (self._lru_point,) = ax.plot([1], [1], "o", color=COLORS["RedLine"], zorder=7, **points)
            (self._managed_point,) = ax.plot([1], [1], "s", color=COLORS["BlueLine"], zorder=6, **points)
            label: dict[str, Any] = {"fontsize": 9, "bbox": HALO, "zorder": 8}
            self._lru_label = ax.text(1, 1, "", color=COLORS["RedLine"], va="bottom", weight="bold", **label)
            self._managed_label = ax.text(1, 1, "", color=COLORS["BlueLine"], va="top", weight="bold", **label)
            self._floor_label = ax.text(1, 1, "", color=COLORS["GreenLine"], va="top", **label)
            self._fits_label = ax.text(1, 7.5e6, "", color=COLORS["BlueLine"], va="top", ha="right", **label)
            self._cliff_label = ax.text(1, 7.5e6, "", color=COLORS["RedLine"], va="top", ha="left", **label)
        self.moving = (
            self._lru, self._managed, self._floor, self._fits, self._cliff, self._lru_point, self._managed_point,
            self._lru_label, self._managed_label, self._floor_label, self._fits_label, self._cliff_label,
        )  # fmt: skip

    def update(
        self, *, size: int = 64, tile: int = 16, buffers: int = 1, words: int = 1024, line_words: int = 1
    ) -> View:
        """Show one tile in a buffer and a cache of ``words``; see :func:`tiling_view`."""
        where = "tiling_view"
        whole = {"size": size, "tile": tile, "words": words, "line_words": line_words}
        size, tile, words, line_words = (
            int(checked_number(where, name, value, count(), {})) for name, value in whole.items()
        )
        if size > TILES[-1]:
            raise ArgumentError(
                f"{where}(): `size` must be at most {TILES[-1]}, so that the picture follows a slider, got {size}. "
                "Write e.g. size=64"
            )
        if words % line_words:
            raise ArgumentError(
                f"{where}(): `line_words` of {line_words} must divide the {words} words. Write e.g. line_words=16"
            )
        fits = math.isqrt(words // (3 * buffers))

        def moved(edge: int) -> int:
            return lru_words(size, edge, words, line_words)

        def counted(edge: int) -> int:
            return gemm_traffic(size, size, size, edge).words

        cliff, tile = lru_cliff(words), min(tile, size)
        shown = sorted(each for each in {*TILES, tile, fits, cliff, cliff + 1} if 1 <= each <= size)
        inside = shown[: bisect.bisect_right(shown, fits)]
        self._lru.set_data(shown, [moved(edge) for edge in shown])
        self._managed.set_data(inside, [counted(edge) for edge in inside])
        self._floor.set_data([0.9, 72], [3 * size**2] * 2)
        self._floor_label.set_position((0.95, 2.8 * size**2))
        self._floor_label.set_text("every matrix once")
        in_cache = moved(tile)
        in_buffer = counted(tile) if tile <= fits else None
        self._place(tile, in_cache, in_buffer)
        tiles = "3T²" if buffers == 1 else "6T²"
        for line, label, edge, text in (
            (self._fits, self._fits_label, fits, f"{tiles} fits: T ≤ {fits} "),
            (self._cliff, self._cliff_label, cliff, f" T²+3T fits: T ≤ {cliff} "),
        ):
            line.set_xdata([edge, edge])
            label.set_x(edge)
            label.set_text(text)
        self._cliff_label.set_horizontalalignment("left" if cliff < 24 else "right")
        self._cliff_label.set_y(7.5e6 if cliff < 24 else 3.2e6)
        for artist in (self._cliff, self._cliff_label):
            artist.set_visible(line_words == 1 and cliff <= size)
        summary = _summary(size, tile, words, line_words, buffers, in_cache, in_buffer)
        return View(
            figure=self.figure,
            summary=summary,
            alt="Words moved over tile edge on two logarithmic axes: a falling line for a managed buffer that "
            "ends where "
            f"its tiles fill it, and one for an LRU cache that falls and then jumps. {summary}",
            values={"cache": in_cache, "buffer": in_buffer, "fits": fits, "floor": 3 * size**2},
        )

    def _place(self, tile: int, in_cache: int, in_buffer: int | None) -> None:
        """Put the two points and their labels at the tile."""
        right = tile > 24
        factor = 0.93 if right else 1.07
        self._lru_point.set_data([tile], [in_cache])
        for label in (self._lru_label, self._managed_label):
            label.set_horizontalalignment("right" if right else "left")
        above = in_buffer is not None and in_cache >= in_buffer
        for label, y, up in ((self._lru_label, in_cache, above), (self._managed_label, in_buffer or 1, not above)):
            label.set_position((tile * factor, y * (1.7 if up else 1 / 1.7)))
            label.set_verticalalignment("bottom" if up else "top")
        self._lru_label.set_text(f"LRU cache {in_cache:,}")
        for artist in (self._managed_point, self._managed_label):
            artist.set_visible(in_buffer is not None)
        if in_buffer is not None:
            self._managed_point.set_data([tile], [in_buffer])
            self._managed_label.set_text(f"buffer {in_buffer:,}")


def _summary(
    size: int, tile: int, words: int, line_words: int, buffers: int, in_cache: int, in_buffer: int | None
) -> str:
    floor = 3 * size**2
    room = gemm_tile_words(tile, buffers)
    kind = "double-buffered tiles" if buffers == 2 else "tiles"
    text = f"Three {kind} of {tile} take {room:,} words. "
    if in_buffer is None:
        text += f"A managed buffer of {words:,} cannot hold them. "
    else:
        text += f"A managed buffer of {words:,} holds them and moves {in_buffer:,} words. "
    lines = "" if line_words == 1 else f" in lines of {line_words}"
    text += f"An LRU cache of {words:,} words{lines} moves {in_cache:,}, {times(in_cache / floor)} what is needed once"
    if in_buffer is not None and in_cache != in_buffer:
        ratio = in_cache / in_buffer
        text += (
            f" and {times(ratio)} the buffer's traffic" if ratio > 1 else f", only {times(ratio)} the buffer's traffic"
        )
    return text + "."


def tiling_view(size: int = 64, tile: int = 16, buffers: int = 1, words: int = 1024, line_words: int = 1) -> View:
    """Return the traffic of a blocked product over its tile, for a buffer and a cache of one size.

    Parameters
    ----------
    size
        Edge of the three square matrices, at most 64.
    tile
        Edge of the tile that is pointed out; cut to the matrix.
    buffers
        1, or 2 with double buffering; it concerns the managed buffer.
    words
        Words that buffer and cache hold; the cache is fully associative.
    line_words
        Words in a line of the cache.

    Returns
    -------
    View
        Figure, summary, text alternative, and the counts under ``values``.

    Raises
    ------
    ArgumentError
        If a size is no positive whole number, too large, or lines do not divide the cache.

    Examples
    --------
    >>> print(tiling_view(tile=16).summary)
    Three tiles of 16 take 768 words. A managed buffer of 1,024 holds them and moves 36,864 words. \
An LRU cache of 1,024 words moves 46,944, 3.82× what is needed once and 1.27× the buffer's traffic.
    """
    return TilingScene().update(size=size, tile=tile, buffers=buffers, words=words, line_words=line_words)
