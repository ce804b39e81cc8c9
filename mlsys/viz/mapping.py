"""Figures of mappings: traffic by loop order, search landscapes, traffic by dataflow and by rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as AnyMapping
from typing import TYPE_CHECKING

import numpy as np

from mlsys.mapping import DATAFLOWS, dataflow, gemm_space
from mlsys.models.dataflow import movements
from mlsys.planner.mapper.landscape import Landscape
from mlsys.viz.shown import chart, drawn
from mlsys.viz.style import COLORS, CYCLE, DASHES, HALO, apply_style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

OPERANDS = (
    ("inputs", "BlueLine", "BlueL", ""),
    ("weights", "OrangeLine", "OrangeL", "//"),
    ("partial sums", "GreenLine", "GreenL", ".."),
)
"""Name, edge, fill and hatch of the three operands of a matrix product."""


@drawn
def order_counts(ax: Axes, totals: AnyMapping[str, Sequence[int]]) -> list[Axes]:
    """Draw a histogram of the words moved by all loop orders, for each set of registers.

    Parameters
    ----------
    ax
        Axes replaced by panels, one below the other.
    totals
        Label to the words of every order.

    Returns
    -------
    list[Axes]
        One for each entry of ``totals``, with a dashed line at the fewest words and the number of orders over each bar.
    """
    right = max(max(words) for words in totals.values())
    axes = _panels(ax, len(totals), 1)
    for ax, (label, words) in zip(axes, totals.items(), strict=True):
        apply_style(ax)
        values, counts = np.unique(np.asarray(words), return_counts=True)
        ax.bar(values, counts, width=right / 70, color=COLORS["BlueL"], edgecolor=COLORS["BlueLine"], linewidth=1.2)
        gaps = np.diff(values, prepend=-right)
        for value, count, gap in zip(values, counts, gaps, strict=True):
            lift = (0, 12) if gap < right / 32 else (0, 3)  # labels of neighbours would overlap
            ax.annotate(str(count), (value, count), xytext=lift, textcoords="offset points", ha="center", fontsize=9,
                        bbox=HALO)  # fmt: skip
        ax.axvline(values[0], color=COLORS["RedLine"], linestyle="--", linewidth=1.2, zorder=0.5)
        ax.annotate(
            f"least: {values[0]:,}", (values[0], 1), xycoords=("data", "axes fraction"), xytext=(-5, -4),
            textcoords="offset points", color=COLORS["RedLine"], fontsize=9, va="top", ha="right",
        )  # fmt: skip
        ax.set(xlim=(0, right * 1.04), ylim=(0, counts.max() * 1.4), ylabel="orders")
        ax.set_title(label, fontsize=10)
        ax.xaxis.set_major_formatter("{x:,.0f}")
    axes[-1].set_xlabel("words moved between memory and registers")
    return axes


@chart
def mapping_landscape(ax: Axes, drawn: Landscape, front: Landscape) -> Axes:
    """Draw mappings by time and energy: random ones, and the proven Pareto front.

    Parameters
    ----------
    ax
        Axes to draw into; both become logarithmic.
    drawn, front
        Random mappings, and Pareto-optimal ones.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    ax.scatter(
        drawn.times * 1e6, drawn.energies * 1e6, s=9, color=COLORS["BlueLine"], alpha=0.35, linewidth=0,
        label=f"{len(drawn.times):,} mappings at random",
    )  # fmt: skip
    order = np.argsort(front.times)
    ax.plot(
        front.times[order] * 1e6, front.energies[order] * 1e6, color=COLORS["RedLine"], marker="D", markersize=6,
        markeredgecolor="white", linewidth=1.4, drawstyle="steps-post", label=f"proven front: {len(order)} mappings",
    )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="time, µs", ylabel="energy, µJ")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter("{x:,.0f}")
    ax.legend(loc="lower right", fontsize=9)
    return ax


class DataflowBars:
    """Stacked bars of the words of each operand for several dataflows; drawn once and updated often.

    Parameters
    ----------
    ax
        Axes to draw into; heights are shares of the largest total.
    names
        Names of the dataflows, one bar each.
    """

    def __init__(self, ax: Axes, names: Sequence[str]) -> None:
        from matplotlib.patches import Rectangle

        apply_style(ax)
        ax.grid(False, axis="x")
        ax.set(xlim=(-0.6, len(names) - 0.4), ylim=(0, 114))
        ax.set_xticks(range(len(names)), names)
        ax.set_yticks(range(0, 101, 25), [f"{share}%" for share in range(0, 101, 25)])
        self.bars = [
            [
                ax.add_patch(
                    Rectangle((index - 0.31, 0), 0.62, 0, facecolor=COLORS[fill], edgecolor=COLORS[line], hatch=hatch,
                              linewidth=1.1, zorder=3, label=None if index else part)
                )
                for part, line, fill, hatch in OPERANDS
            ]
            for index in range(len(names))
        ]  # fmt: skip
        self.totals = [ax.text(index, 0, "", ha="center", va="bottom", fontsize=9) for index in range(len(names))]
        self.artists: tuple[Artist, ...] = (*(bar for group in self.bars for bar in group), *self.totals)

    def show(self, words: Sequence[Sequence[int]], digits: Callable[[int], str] | None = None) -> None:
        """Update the words of inputs, weights and partial sums of each dataflow; ``digits`` formats the totals."""
        most, digits = max(map(sum, words)), digits or _short
        for group, total, parts in zip(self.bars, self.totals, words, strict=True):
            below = 0.0
            for bar, part in zip(group, parts, strict=True):
                bar.set(y=below, height=100 * part / most)
                below += 100 * part / most
            total.set(y=below + 1.2, text=digits(sum(parts)))


@drawn
def words_by_dataflow(ax: Axes, shapes: AnyMapping[str, AnyMapping[str, Sequence[int]]]) -> list[Axes]:
    """Draw the words of each operand for each dataflow, one panel per shape.

    Parameters
    ----------
    ax
        Axes replaced by panels, one per shape, side by side.
    shapes
        Shape to dataflow to the words of inputs, weights and partial sums.

    Returns
    -------
    list[Axes]
        Bars in shares of the largest total of their panel, totals written above.
    """
    axes = _panels(ax, 1, len(shapes))
    for ax, (shape, flows) in zip(axes, shapes.items(), strict=True):
        DataflowBars(ax, [name.upper() for name in flows]).show(list(flows.values()))
        ax.set_title(shape, fontsize=10)
    axes[0].set_ylabel("words, share of the most in the panel")
    axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=9)
    return axes


@chart
def words_by_rows(ax: Axes, k: int, n: int, tile: int, rows: Sequence[int]) -> Axes:
    """Draw the words that a product moves for each multiply-accumulate over its rows, a line for each dataflow.

    Parameters
    ----------
    ax
        Axes to draw into; both become logarithmic.
    k, n
        Length of the sums and columns of the weights.
    tile
        Edge of the stationary tile, marked on the axis of rows.
    rows
        Rows of the product, rising.
    """
    for index, flow in enumerate(("ws", "is", "os")):
        spaces = [gemm_space(m, n, k) for m in rows]
        words = [sum(item.words for item in movements(space, dataflow(flow, tile))) / space.macs for space in spaces]
        color, name = CYCLE[index], DATAFLOWS[flow][0]
        ax.plot(rows, words, color=color, linestyle=DASHES[index], label=name)
    ax.axvline(tile, color=COLORS["axis"], linewidth=0.9, linestyle=":")
    ax.annotate(f"one tile of {tile}", (tile, 1), xycoords=("data", "axes fraction"), xytext=(4, -4),
                textcoords="offset points", va="top", fontsize=9, color=COLORS["note"])  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="rows of the product, M", ylabel="words per multiply-accumulate")
    ticks = [tick for tick in (1, 8, 64, 512, 4096) if rows[0] <= tick <= rows[-1]]
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.legend(loc="lower left", fontsize=9)
    return ax


def _panels(ax: Axes, rows: int, columns: int) -> list[Axes]:
    """Replace an Axes by panels with common scales, and return them."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    ax.remove()
    return list(np.ravel(figure.subplots(rows, columns, sharex=rows > 1, sharey=columns > 1)))


def _short(words: int) -> str:
    """Return a count in three digits, such as ``'279 k'``."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if words >= size:
            return f"{words / size:.3g} {sign}"
    return str(words)
