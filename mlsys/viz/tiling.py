"""Figures of tiles and caches: traffic by tile, tiles by cache, sectors by stride."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.models.access import strided_access
from mlsys.models.tiling import gemm_traffic
from mlsys.units import Q_
from mlsys.viz.lru import EDGES, lru_cliff, lru_curve, lru_words
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, HALO, MARKERS, draw_cells, vector_colorbar

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["TILES", "TileTraffic", "lru_cliff", "lru_curve", "sectors_by_stride", "tile_cache_map", "traffic_by_tile"]

TILES = tuple(edge for edge in EDGES if edge not in (19, 26, 33))
"""Tile edges that the figures sample; the last one means no blocking for matrices of 64."""
_WORD = Q_(4, "byte")


class TileTraffic:
    """Curves of the words that a blocked product moves over its tile; drawn once and updated often.

    A managed buffer that holds three tiles is compared with an LRU cache of the same size.

    Parameters
    ----------
    ax
        Axes whose scales are set here.
    largest
        Right edge: the largest tile.
    """

    def __init__(self, ax: Axes, largest: int = TILES[-1]) -> None:
        from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

        ax.set_xscale("log", base=2)
        ax.set_xlim(0.9, 1.125 * largest)
        ax.xaxis.set_major_locator(FixedLocator([2.0**power for power in range(int(math.log2(largest)) + 1)]))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        red, blue, green = COLORS["RedLine"], COLORS["BlueLine"], COLORS["GreenLine"]
        (self.cache,) = ax.plot([1], [1], "-o", color=red, linewidth=2.2, markersize=5, zorder=4)
        (self.buffer,) = ax.plot(
            [1], [1], "-s", color=blue, linewidth=2.2, markersize=5, markerfacecolor="white", zorder=4
        )
        (self.floor,) = ax.plot(
            [0, 1], [1, 1], ":", color=green, linewidth=2, zorder=3, transform=ax.get_yaxis_transform()
        )
        self._once = ax.text(
            0.01, 1, "every matrix once, 3N²", color=green, va="top", fontsize=9, bbox=HALO, zorder=8,
            transform=ax.get_yaxis_transform(),
        )  # fmt: skip
        self._marks = []
        for color in (blue, red):
            (line,) = ax.plot([1, 1], [0, 1], "--", color=color, linewidth=1.2, zorder=2,
                              transform=ax.get_xaxis_transform())  # fmt: skip
            text = ax.text(1, 0.985, "", color=color, fontsize=9, va="top", bbox=HALO, zorder=8,
                           transform=ax.get_xaxis_transform())  # fmt: skip
            self._marks.append((line, text))
        self.artists: tuple[Artist, ...] = (
            self.cache, self.buffer, self.floor, self._once, *(artist for pair in self._marks for artist in pair)
        )  # fmt: skip

    def show(
        self, size: int, cache_words: int, tiles: Sequence[int], line_words: int = 1, buffers: int = 1
    ) -> tuple[int, int]:
        """Update the traffic at each tile; return the largest tiles that fit in the buffer and in the cache.

        Parameters
        ----------
        size
            Edge of the three square matrices.
        cache_words, line_words
            Capacity of buffer and cache, and of a cache line, words.
        tiles
            Edges to draw, ascending; the two largest that fit are added.
        buffers
            2 if the managed buffer is double-buffered.
        """
        fits, cliff = math.isqrt(cache_words // (3 * buffers)), lru_cliff(cache_words)
        inside = [tile for tile in tiles if tile <= fits]
        self.cache.set_data(tiles, [lru_words(size, tile, cache_words, line_words) for tile in tiles])
        self.buffer.set_data(inside, [gemm_traffic(size, size, size, tile).words for tile in inside])
        self.floor.set_ydata([3 * size**2] * 2)
        self._once.set_y(2.8 * size**2)
        close = cliff < 1.4 * fits or cliff >= 24
        needed = "3T²" if buffers == 1 else "6T²"
        for (line, text), edge, says, left in zip(
            self._marks, (fits, cliff), (f"{needed} fits: T ≤ {fits}", f"T²+3T fits: T ≤ {cliff}"), (True, close),
            strict=True,
        ):  # fmt: skip
            line.set_xdata([edge, edge])
            text.set(text=f" {says} ", x=edge, horizontalalignment="right" if left else "left")
        self._marks[1][1].set_y(0.9 if close else 0.985)
        for artist in self._marks[1]:
            artist.set_visible(line_words == 1 and cliff <= size)
        return fits, cliff


@chart
def traffic_by_tile(ax: Axes, size: int, cache_words: int, tiles: Sequence[int] = TILES) -> Axes:
    """Plot the words that a blocked product moves against its tile size, for a managed buffer and an LRU cache.

    Parameters
    ----------
    ax
        Axes to draw into.
    size
        Edge of the three square matrices.
    cache_words
        Words that the cache holds, fully associative, one word a line.
    tiles
        Edges of the tile, rising.
    """
    shown = [tile for tile in tiles if tile <= size]
    picture = TileTraffic(ax, max(shown))
    picture.show(size, cache_words, shown)
    picture.cache.set_label(f"LRU cache of {cache_words:,} words, simulated")
    picture.buffer.set_label("managed buffer that holds three tiles")
    ax.set(yscale="log", xlabel="tile edge T, words", ylabel="words moved (misses)")
    moved = max(float(np.max(line.get_ydata(), initial=0)) for line in (picture.cache, picture.buffer))
    ax.set_ylim(1.6 * size**2, 4 * moved)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.13), ncols=2, fontsize=9)
    return ax


@drawn
def tile_cache_map(
    ax: Axes,
    size: int = 64,
    tiles: Sequence[int] = (1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64),
    cache_words: Sequence[int] = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
) -> Axes:
    """Draw the traffic of an LRU cache relative to the compulsory traffic, for each tile and capacity.

    Parameters
    ----------
    ax
        Axes to draw into.
    size
        Edge of the three square matrices.
    tiles, cache_words
        Columns and rows of the map, both rising.

    Returns
    -------
    Axes
        A framed cell is the best tile of its row; to the right of the dark stroke more than
        T² + 3T words are needed.
    """
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    ratio = np.array(
        [[lru_curve(size, tile).at(Q_(4 * words, "byte")) / (3 * size**2) for tile in tiles] for words in cache_words]
    )
    top = float(ratio.max())
    cells = draw_cells(ax, ratio, cmap="cividis_r", norm=LogNorm(1, top))
    for row, words in enumerate(cache_words):
        best = int(ratio[row].argmin())
        ax.add_patch(Rectangle((best - 0.48, row - 0.46), 0.96, 0.92, fill=False, edgecolor=COLORS["RedLine"], lw=2.2))
        for column in range(len(tiles)):
            value = ratio[row, column]
            dark = np.log(value) / np.log(top) > 0.45
            ax.text(column, row, f"{value:.1f}" if value < 9.95 else f"{value:.0f}", ha="center", va="center",
                    fontsize=9, color="white" if dark else COLORS["primary"])  # fmt: skip
        edge = sum(tile <= lru_cliff(words) for tile in tiles) - 0.5
        ax.plot([edge, edge], [row - 0.5, row + 0.5], color=COLORS["primary"], linewidth=2)
    ax.set_xticks(range(len(tiles)), [str(tile) for tile in tiles])
    ax.set_yticks(range(len(cache_words)), [f"{words:,}" for words in cache_words])
    ax.set(xlabel="tile edge T, words", ylabel="words in the LRU cache")
    vector_colorbar(cells, ax, label="words moved / every matrix once", format="{x:g}")
    return ax


@chart
def sectors_by_stride(
    ax: Axes, widths: Sequence[int] = (8, 4, 2), strides: Sequence[int] = (1, 2, 4, 8, 16, 32)
) -> Axes:
    """Draw the fraction of moved bytes that a warp uses, over the stride between its lanes.

    Parameters
    ----------
    ax
        Axes to draw into.
    widths
        Element sizes, bytes; one line each.
    strides
        Strides between lanes in elements, ascending.
    """
    for width, color, marker in zip(widths, CYCLE, MARKERS, strict=False):
        loads = [strided_access(stride, Q_(width, "byte")) for stride in strides]
        shares = [100 * load.efficiency.m_as("") for load in loads]
        ax.plot(strides, shares, marker=marker, color=color, label=f"{width}-byte elements")
        ax.annotate(f"{loads[-1].sectors} sectors, {shares[-1]:g}%", (strides[-1], shares[-1]), xytext=(-8, 7),
                    textcoords="offset points", ha="right", fontsize=9, color=color)  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks(strides, [str(stride) for stride in strides])
    shown = [100, 50, 25, 12.5, 6.25]
    ax.set_yticks(shown, [f"{share:g}%" for share in shown])
    ax.set(xlabel="stride between neighbouring lanes, elements", ylabel="moved bytes that are used")
    ax.legend(loc="upper right", fontsize=9)
    return ax
