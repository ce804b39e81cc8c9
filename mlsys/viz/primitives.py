"""Figures of compute primitives: instructions by width, throughput by execution model, and iterated square roots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mlsys.formatting import significant
from mlsys.formulas import vector_instructions
from mlsys.numerics import square_root_errors
from mlsys.numerics.square_roots import SquareRootGuess
from mlsys.units import Quantity
from mlsys.viz.shown import chart
from mlsys.viz.style import COLORS, CYCLE, DASHES, HALO, MARKERS, decades

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_UNIT_ROUNDOFF = 2.0**-24
_COLORS = {"scalar": "RedLine", "vector": "OrangeLine", "warp": "GreenLine", "tile": "BlueLine"}


@chart
def instruction_counts(ax: Axes, widths: Sequence[int] = (1, 8, 16, 32), marked: int = 512, upto: int = 1024) -> Axes:
    """Draw the instructions of one operation on a vector over its length, a line for each vector width.

    Parameters
    ----------
    ax
        Axes to draw into.
    widths
        Elements per instruction.
    marked
        Length at which each line bears its count.
    upto
        Longest vector.

    Returns
    -------
    Axes
        Both axes are logarithmic; the lines are staircases, as a last instruction that is not full counts too.
    """
    sizes = np.arange(1, upto + 1)
    for index, width in enumerate(widths):
        counts = vector_instructions.bare(sizes, width)
        color = CYCLE[index % len(CYCLE)]
        ax.plot(sizes, counts, drawstyle="steps-mid", color=color, linestyle=DASHES[index % len(DASHES)])
        count = int(vector_instructions.bare(marked, width))
        ax.plot(marked, count, marker=MARKERS[index], color=color, markeredgecolor="white")
        ax.annotate(f"{count:,}", (marked, count), xytext=(-5, 4), textcoords="offset points", ha="right", fontsize=9,
                    color=color, bbox=HALO)  # fmt: skip
        ax.annotate(f"width {width}", (upto, counts[-1]), xytext=(5, 0), textcoords="offset points", va="center",
                    fontsize=9, color=color, annotation_clip=False)  # fmt: skip
    ax.axvline(marked, color=COLORS["axis"], linewidth=0.8, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel="elements of the vector", ylabel="instructions", xlim=(1, upto))
    ax.set_ylim(bottom=0.8)
    ax.set_xticks([1, 8, 64, marked], ["1", "8", "64", f"{marked}"])
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.minorticks_off()
    return ax


@chart
def throughput_ladder(ax: Axes, rungs: Mapping[str, tuple[str, Quantity]]) -> Axes:
    """Draw the multiply-accumulates that units complete in a cycle, as bars on a logarithmic axis.

    Parameters
    ----------
    ax
        Axes to draw into.
    rungs
        For each unit, from the top: its execution model (``"scalar"``, ``"vector"``, ``"warp"`` or ``"tile"``) and
        its rate.

    Returns
    -------
    Axes
        The number behind a bar is its rate; bars of one execution model share a colour.
    """
    rates = {name: rate.m_as("MAC/cycle") for name, (_, rate) in rungs.items()}
    most = max(rates.values())
    low, high = 0, int(np.ceil(np.log10(most)))
    for row, (name, (model, _)) in enumerate(rungs.items()):
        color = COLORS[_COLORS[model]]
        start = 10.0**low / 1.6
        ax.barh(row, rates[name] - start, left=start, height=0.62, color=color, alpha=0.9, gid=model)
        ax.annotate(f"{rates[name]:,.0f}", (rates[name], row), xytext=(5, 0), textcoords="offset points", va="center",
                    fontsize=9, color=COLORS["primary"])  # fmt: skip
    decades(ax, "x", low, high)
    ax.set_xlim(10.0**low / 1.6, 5 * most)
    ax.set_yticks(range(len(rungs)), list(rungs), fontsize=9)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.set_xlabel("multiply-accumulates per cycle")
    return ax


@chart
def square_root_convergence(ax: Axes, values: ArrayLike, methods: Mapping[SquareRootGuess, int]) -> Axes:
    """Draw the largest relative error of iterated square roots over the number of steps.

    Parameters
    ----------
    ax
        Axes to draw into.
    values
        Positive numbers whose roots are taken.
    methods
        First guesses of :func:`mlsys.numerics.square_root_errors`, with the steps to show.

    Returns
    -------
    Axes
        Logarithmic; a line that falls ever more steeply doubles its correct digits with each step. The dashed line is
        the rounding error of FP32.
    """
    from matplotlib.ticker import MaxNLocator

    names = {"bits": "Newton, guess from the bits", "exponent": "Newton, guess from the exponent",
             "value": "Heron, from the value itself"}  # fmt: skip
    floor = 1e-11  # below, rounding differs from one CPU to the next; above, in the fourth digit
    for index, (guess, steps) in enumerate(methods.items()):
        exact = np.maximum(square_root_errors(values, guess, steps), floor)
        errors = [significant(float(error), 3) for error in exact]
        ax.plot(range(steps + 1), errors, marker=MARKERS[index], color=CYCLE[index], linestyle=DASHES[index],
                markeredgecolor="white", label=names[guess])  # fmt: skip
    ax.axhline(_UNIT_ROUNDOFF, color=COLORS["RedLine"], linestyle=(0, (4, 2)), linewidth=1.2)
    ax.set(yscale="log", xlabel="steps", ylabel="largest relative error", xlim=(-0.4, None))
    ax.annotate("rounding error of FP32", (0.56, _UNIT_ROUNDOFF), xycoords=("axes fraction", "data"), xytext=(0, -4),
                textcoords="offset points", ha="center", va="top", fontsize=9, color=COLORS["RedLine"])  # fmt: skip
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(fontsize=9, loc="upper right")
    return ax
