"""Pictures of tiles and caches: traffic by tile, tiles by cache, sectors by stride."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.models.access import strided_access
from mlsys.models.tiling import gemm_traffic, largest_square_tile
from mlsys.units import Q_
from mlsys.viz.lru import EDGES, lru_cliff, lru_curve, lru_words
from mlsys.viz.style import COLORS, CYCLE, MARKERS, apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TILES", "lru_cliff", "lru_curve", "sectors_by_stride", "tile_cache_map", "traffic_by_tile"]

TILES = tuple(edge for edge in EDGES if edge not in (19, 26, 33))
"""Tile edges that the pictures sample; in a cube of 64 the last one is no blocking at all."""
_WORD = Q_(4, "byte")


def traffic_by_tile(ax: Axes, size: int, cache_words: int, tiles: Sequence[int] = TILES) -> Axes:
    """Draw the words that a blocked product moves over its tile: managed buffer against LRU cache.

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
    apply_style(ax)
    shown = [tile for tile in tiles if tile <= size]
    room = Q_(4 * cache_words, "byte")
    explicit = [gemm_traffic(size, size, size, tile).words for tile in shown]
    found = [lru_words(size, tile, cache_words) for tile in shown]
    edge = largest_square_tile(room, _WORD)
    fits = [place for place, tile in enumerate(shown) if tile <= edge]
    ax.plot(shown, found, "-o", color=COLORS["RedLine"], label=f"LRU cache of {cache_words:,} words, simulated")
    ax.plot(
        [shown[place] for place in fits],
        [explicit[place] for place in fits],
        "-s",
        color=COLORS["BlueLine"],
        markerfacecolor="white",
        label="managed buffer that holds three tiles",
    )
    ax.axhline(3 * size**2, color=COLORS["GreenLine"], linestyle=":", label="every matrix once, $3N^2$")
    for mark, text, side in ((edge, "$3T^2$ fits", "right"), (lru_cliff(cache_words), "$T^2+3T$ fits", "left")):
        ax.axvline(mark, color=COLORS["primary"], linestyle="--", linewidth=1.2)
        ax.annotate(f"{text}:\nT ≤ {mark}", (mark, 0.99), xycoords=("data", "axes fraction"), fontsize=9, va="top",
                    xytext=(-5 if side == "right" else 5, 0), textcoords="offset points", ha=side)  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set(yscale="log", xlabel="tile edge T, words", ylabel="words moved (misses)")
    ticks = [tile for tile in shown if tile & (tile - 1) == 0]
    ax.set_xticks(ticks, [str(tile) for tile in ticks])
    ax.set_ylim(bottom=1.6 * size**2, top=3 * max(explicit + found))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.13), ncols=3, fontsize=9)
    return ax


def tile_cache_map(
    ax: Axes,
    size: int = 64,
    tiles: Sequence[int] = (1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64),
    cache_words: Sequence[int] = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
) -> Axes:
    """Draw, for each tile and cache, how many times the compulsory traffic an LRU cache moves.

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
    image = ax.imshow(ratio, origin="lower", aspect="auto", cmap="cividis_r", norm=LogNorm(1, top))
    for row, words in enumerate(cache_words):
        best = int(ratio[row].argmin())
        ax.add_patch(Rectangle((best - 0.48, row - 0.46), 0.96, 0.92, fill=False, edgecolor=COLORS["RedLine"], lw=2.2))
        for column in range(len(tiles)):
            value = ratio[row, column]
            dark = np.log(value) / np.log(top) > 0.45
            ax.text(column, row, f"{value:.1f}" if value < 9.95 else f"{value:.0f}", ha="center", va="center",
                    fontsize=8, color="white" if dark else COLORS["primary"])  # fmt: skip
        edge = sum(tile <= lru_cliff(words) for tile in tiles) - 0.5
        ax.plot([edge, edge], [row - 0.5, row + 0.5], color=COLORS["primary"], linewidth=2)
    ax.set_xticks(range(len(tiles)), [str(tile) for tile in tiles])
    ax.set_yticks(range(len(cache_words)), [f"{words:,}" for words in cache_words])
    ax.grid(False)
    ax.set(xlabel="tile edge T, words", ylabel="words in the LRU cache")
    ax.figure.colorbar(image, ax=ax, label="words moved / every matrix once", format="{x:g}")
    return ax


def sectors_by_stride(
    ax: Axes, widths: Sequence[int] = (8, 4, 2), strides: Sequence[int] = (1, 2, 4, 8, 16, 32)
) -> Axes:
    """Draw the share of moved bytes that a warp uses, over the stride between its lanes.

    Parameters
    ----------
    ax
        Axes to draw into.
    widths
        Sizes of an element, bytes; one line each.
    strides
        Elements from lane to lane, rising.
    """
    apply_style(ax)
    for width, color, marker in zip(widths, CYCLE, MARKERS, strict=False):
        loads = [strided_access(stride, Q_(width, "byte")) for stride in strides]
        shares = [100 * load.efficiency.m_as("") for load in loads]
        ax.plot(strides, shares, marker=marker, color=color, label=f"{width}-byte elements")
        ax.annotate(f"{loads[-1].sectors} sectors, {shares[-1]:g}%", (strides[-1], shares[-1]), xytext=(-4, 5),
                    textcoords="offset points", ha="right", fontsize=9, color=color)  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks(strides, [str(stride) for stride in strides])
    shown = [100, 50, 25, 12.5, 6.25]
    ax.set_yticks(shown, [f"{share:g}%" for share in shown])
    ax.set(xlabel="stride between neighbouring lanes, elements", ylabel="moved bytes that are used")
    ax.legend(loc="upper right", fontsize=9)
    return ax
