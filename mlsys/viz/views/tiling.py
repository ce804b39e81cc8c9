"""View of traffic over tile size: a managed buffer and an LRU cache of the same size."""

import math
from typing import TypedDict

import matplotlib.style

from mlsys.errors import ArgumentError
from mlsys.models.tiling import gemm_tile_words, gemm_traffic
from mlsys.unit_checks import checked_count
from mlsys.viz.lru import lru_cliff, lru_words
from mlsys.viz.style import COLORS, HALO, decades
from mlsys.viz.tiling import TILES, TileTraffic
from mlsys.viz.views.view import Guess, Scene, View, new_figure
from mlsys.viz.words import times


class TilingValues(TypedDict):
    """Values of :class:`TilingScene`: words moved by each, the largest tile, and the compulsory traffic."""

    cache: int
    buffer: int | None
    fits: int
    floor: int


class TilingScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = "An empty chart of words moved over tile edge, on two logarithmic axes."

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 4.2)
            ax = self.figure.add_axes((0.105, 0.125, 0.875, 0.79))
            decades(ax, "y", 3, 7)
            self._traffic = TileTraffic(ax)
            ax.set_xlabel("Tile edge T (words)", fontsize=10, color=COLORS["primary"])
            ax.set_title("Words moved", loc="left", fontsize=11, weight="bold", color=COLORS["primary"])
            self._points, self._labels = [], []
            for color, marker, zorder in (("RedLine", "o", 7), ("BlueLine", "s", 6)):
                (point,) = ax.plot(
                    [1], [1], marker, color=COLORS[color], markersize=13, markeredgecolor=COLORS["primary"],
                    markeredgewidth=1.6, zorder=zorder,
                )  # fmt: skip
                self._points.append(point)
                self._labels.append(
                    ax.text(1, 1, "", color=COLORS[color], fontsize=9, weight="bold", bbox=HALO, zorder=8)
                )
            self.guess = Guess(ax, "x", place=0.1)
        self.moving = (*self._traffic.artists, *self._points, *self._labels, *self.guess.artists)

    def update(
        self, size: int = 64, tile: int = 16, buffers: int = 1, words: int = 1024, line_words: int = 1
    ) -> View[TilingValues]:
        """Return the view of the traffic of a blocked product over its tile, for a buffer and a cache of equal size.

        Parameters
        ----------
        size
            Edge of the three square matrices, at most 64.
        tile
            Edge of the marked tile; clipped to the matrix.
        buffers
            1, or 2 for double buffering, of the managed buffer.
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
            If a size is not a positive integer or too large, or lines do not divide the cache.

        Examples
        --------
        >>> print(TilingScene().update(tile=16).summary)
        Three tiles of 16 take 768 words. A managed buffer of 1,024 holds them and moves 36,864 words. \
An LRU cache of 1,024 words moves 46,944, 3.82× what is needed once and 1.27× the buffer's traffic.
        """
        where = "TilingScene"
        whole = {"size": size, "tile": tile, "words": words, "line_words": line_words}
        size, tile, words, line_words = (checked_count(where, name, value) for name, value in whole.items())
        if size > TILES[-1]:
            raise ArgumentError(
                f"{where}(): `size` must be at most {TILES[-1]}, so that the picture follows a slider, got {size}. "
                "Write e.g. size=64"
            )
        if words % line_words:
            raise ArgumentError(
                f"{where}(): `line_words` of {line_words} must divide the {words} words. Write e.g. line_words=16"
            )
        tile = min(tile, size)
        edges = {*TILES, tile, math.isqrt(words // (3 * buffers)), lru_cliff(words), lru_cliff(words) + 1}
        shown = sorted(edge for edge in edges if 1 <= edge <= size)
        fits, _ = self._traffic.show(size, words, shown, line_words, buffers)
        in_cache = lru_words(size, tile, words, line_words)
        in_buffer = gemm_traffic(size, size, size, tile).words if tile <= fits else None
        self._move_points(tile, in_cache, in_buffer)
        summary = _summary(size, tile, words, line_words, buffers, in_cache, in_buffer)
        return View(
            figure=self.figure,
            summary=summary,
            alt="Words moved over tile edge on two logarithmic axes: a falling line for a managed buffer that "
            "ends where "
            f"its tiles fill it, and one for an LRU cache that falls and then jumps. {summary}",
            values={"cache": in_cache, "buffer": in_buffer, "fits": fits, "floor": 3 * size**2},
        )

    def _move_points(self, tile: int, in_cache: int, in_buffer: int | None) -> None:
        """Move the two points and their labels to the tile."""
        right = tile > 24
        above = in_buffer is not None and in_cache >= in_buffer
        for point, label, name, moved, up in zip(
            self._points, self._labels, ("LRU cache", "buffer"), (in_cache, in_buffer), (above, not above), strict=True
        ):
            for artist in (point, label):
                artist.set_visible(moved is not None)
            if moved is not None:
                point.set_data([tile], [moved])
                label.set_position((tile * (0.93 if right else 1.07), moved * (1.7 if up else 1 / 1.7)))
                label.set(text=f"{name} {moved:,}", horizontalalignment="right" if right else "left",
                          verticalalignment="bottom" if up else "top")  # fmt: skip


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
