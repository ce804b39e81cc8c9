"""Figures of number formats: their fields, how far their numbers lie apart, and tiles that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys.formulas import padded_efficiency
from mlsys.numerics import FloatFormat, compress, float_format
from mlsys.viz.schematics.shapes import MUTED, arrow, box, note
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, DASHES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FIELDS = (("sign", "Red", ""), ("exponent", "Orange", "///"), ("mantissa", "Blue", ""))


@drawn
def bit_fields(ax: Axes, formats: Sequence[str] = ("fp32", "tf32", "fp16", "bf16", "fp8_e5m2", "fp8_e4m3")) -> Axes:
    """Draw the sign, exponent and mantissa of formats as boxes, one per bit.

    Parameters
    ----------
    ax
        Axes to draw into.
    formats
        Names of floating-point formats, from the top.

    Returns
    -------
    Axes
        Bits from the sign on the left; the numbers at the right are the widths of exponent and mantissa.
    """
    chosen = [float_format(name) for name in formats]
    widest = max(each.bits for each in chosen)
    for row, each in enumerate(chosen):
        floor, at = -1.35 * row, 0
        widths = (int(each.signed), each.exponent_bits, each.mantissa_bits)
        for (name, color, hatch), width in zip(_FIELDS, widths, strict=True):
            for _ in range(width):
                box(ax, (at, floor), (1, 1), color=color, hatch=hatch, role=name)
                at += 1
        note(ax, -0.4, floor + 0.5, each.name.upper().replace("_", " "), ha="right", color=COLORS["primary"])
        note(ax, at + 0.4, floor + 0.5, f"{each.exponent_bits} + {each.mantissa_bits}")
    for (name, color, _), middle in zip(_FIELDS, (0.5, 5.0, 20.0), strict=True):
        note(ax, middle, 1.5, name, ha="center", color=COLORS[f"{color}Line"])
    ax.set(xlim=(-6.5, widest + 4), ylim=(-1.35 * (len(chosen) - 1) - 0.4, 2.1))
    ax.set_axis_off()
    return ax


@chart
def value_spacing(ax: Axes, formats: Sequence[str] = ("fp16", "bf16", "fp8_e5m2", "fp8_e4m3", "fp4_e2m1")) -> Axes:
    """Draw the distance to the next number relative to the value, over the value.

    Parameters
    ----------
    ax
        Axes to draw into.
    formats
        Names of floating-point formats, one line each.

    Returns
    -------
    Axes
        Where a line is level the format is normal; it rises to the left where numbers are subnormal, and ends at
        the largest number.
    """
    for index, name in enumerate(formats):
        each = float_format(name)
        values, gaps = _spacing(each)
        largest = f"{each.largest:,.0f}" if each.largest < 1e6 else f"{each.largest:.3g}"
        ax.plot(values, gaps, color=CYCLE[index % len(CYCLE)], linestyle=DASHES[index % len(DASHES)],
                label=f"{each.name.upper().replace('_', ' ')}, to {largest}")  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="value", ylabel="distance to the next number / value")
    ax.set_xlim(1e-9, 1e9)
    ax.legend(fontsize=9, loc="upper center", ncols=2)
    ax.set_ylim(top=30)
    return ax


def _spacing(chosen: FloatFormat) -> tuple[np.ndarray, np.ndarray]:
    """Return values and relative gaps along the envelope: at each power of two, both ends of its binade."""
    low = int(np.log2(chosen.smallest_subnormal))
    high = int(np.floor(np.log2(chosen.largest)))
    powers = 2.0 ** np.arange(low, high + 1)
    gaps = np.maximum(powers * chosen.epsilon, chosen.smallest_subnormal)
    return np.append(powers, chosen.largest), np.append(gaps / powers, gaps[-1] / powers[-1])


@chart
def padding_steps(ax: Axes, tile: int = 128, upto: int = 1024) -> Axes:
    """Draw the tiles that a dimension takes, and the fraction of their work that is useful.

    Parameters
    ----------
    ax
        Axes to draw into.
    tile
        Edge of a tile.
    upto
        Largest size.

    Returns
    -------
    Axes
        The steps are time in tiles; the saw-tooth is the useful fraction, which falls wherever a size is one too
        large.
    """
    sizes = np.arange(1, upto + 1)
    useful = padded_efficiency.bare(sizes, tile)
    ax.plot(sizes, 100 * useful, color=COLORS["BlueLine"])
    for size in (tile, tile + 1, upto // 2, upto // 2 + 1):
        share = 100 * float(padded_efficiency.bare(size, tile))
        ax.plot(size, share, marker="o", color=COLORS["RedLine"])
        above = size % tile == 0
        ax.annotate(f"{size}: {share:.3g}%", (size, share), xytext=(-6 if above else 8, 6 if above else -4),
                    textcoords="offset points", fontsize=9, ha="right" if above else "left")  # fmt: skip
    ax.set(xlabel="size of the dimension", ylabel="useful work, %", ylim=(0, 112), xlim=(0, upto * 1.02))
    return ax


@drawn
def sparse_blocks(ax: Axes, weights: Sequence[float] = (3, 0, 0, -4, 0, 2, 1, 0)) -> Axes:
    """Draw a row of 2:4 weights, and how it is stored: the values kept, and two bits of position for each.

    Parameters
    ----------
    ax
        Axes to draw into.
    weights
        A row with at most two non-zero values in each block of four.

    Returns
    -------
    Axes
        Above, the row in blocks of four; below, kept values and positions, joined to where they came from.
    """
    blocks = compress([list(weights)])
    values, positions = blocks.values[0], blocks.positions[0]
    for index, weight in enumerate(weights):
        left = index + 0.5 * (index // 4)
        box(ax, (left, 2.2), (1, 0.9), f"{weight:g}", filled=weight != 0, role="kept" if weight else "zero")
    for block, (kept, where) in enumerate(zip(values, positions, strict=True)):
        for slot, (value, position) in enumerate(zip(kept, where, strict=True)):
            left = block * 4.5 + 1 + slot
            box(ax, (left, 0.6), (1, 0.9), f"{value:g}", role="value")
            box(ax, (left, -0.5), (1, 0.7), f"{int(position):02b}", "Orange", hatch="", role="position")
            arrow(ax, (block * 4.5 + position + 0.5, 2.2), (left + 0.5, 1.52), MUTED)
    note(ax, -0.3, 2.65, "dense", ha="right", color=COLORS["primary"])
    note(ax, -0.3, 1.05, "values", ha="right", color=COLORS["primary"])
    note(ax, -0.3, -0.15, "positions", ha="right", color=COLORS["primary"])
    ax.set(xlim=(-2.6, len(weights) + 0.5 * (len(weights) // 4) + 0.2), ylim=(-0.8, 3.4))
    ax.set_axis_off()
    return ax
