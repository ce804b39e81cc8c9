"""Schematic of a graph's operators and their kernels, one column for each stage of compilation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError
from mlsys.viz.schematics.shapes import arrow, box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT, _STEP, _GAP, _MARGIN = 3.0, 0.62, 1.25, 0.9, 0.16
_FILLS = ("Orange", "Blue", "Green", "Violet")


@drawn
def fusion_stages(ax: Axes, stages: Mapping[str, Sequence[Sequence[str]]]) -> Axes:
    """Draw the operators of a chain, grouped into kernels, before and after each rewrite.

    Parameters
    ----------
    ax
        Axes to draw into.
    stages
        For each stage its kernels in order of execution, each a sequence of operator names. The first stage has all
        operators; a later stage may leave some out.

    Returns
    -------
    Axes
        A column for each stage with its operators in the rows of the first stage, a frame around each kernel, and an
        arrow for each tensor that one kernel writes and the next reads.

    Raises
    ------
    ArgumentError
        If there is no stage, if the first stage repeats an operator, or if a later stage has an operator that the
        first has not.
    """
    if not stages:
        raise ArgumentError(
            "fusion_stages(): `stages` is empty. Write e.g. stages={'as written': [['conv'], ['ReLU']]}"
        )
    first, *_ = stages.values()
    names = [name for kernel in first for name in kernel]
    if len(set(names)) < len(names):
        raise ArgumentError(f"fusion_stages(): the first of `stages` must name each operator once, got {names}")
    rows = {name: row for row, name in enumerate(names)}
    for stage, kernels in stages.items():
        unknown = [name for kernel in kernels for name in kernel if name not in rows]
        if unknown:
            raise ArgumentError(
                f"fusion_stages(): {stage!r} of `stages` has {unknown}, which the first stage has not. "
                f"It has: {', '.join(names)}"
            )
    for column, (stage, kernels) in enumerate(stages.items()):
        left, middle = column * (_WIDTH + _GAP), column * (_WIDTH + _GAP) + _WIDTH / 2
        plural = "s" * (len(kernels) != 1)
        note(ax, middle, 1.55, stage, ha="center", color=COLORS["primary"])
        note(ax, middle, 1.0, f"{len(kernels)} kernel{plural}", ha="center", fontsize=10)
        bottom = None
        for kernel in kernels:
            spots = [-rows[name] * _STEP for name in kernel]
            low, high = min(spots) - _MARGIN, max(spots) + _HEIGHT + _MARGIN
            size = (_WIDTH + 2 * _MARGIN, high - low)
            box(ax, (left - _MARGIN, low), size, color="Green", filled=False, role="kernel")
            for name, spot in zip(kernel, spots, strict=True):
                box(ax, (left, spot), (_WIDTH, _HEIGHT), name, _FILLS[column % len(_FILLS)], role="operator")
            if bottom is not None:
                arrow(ax, (middle, bottom), (middle, high), role="tensor")
            bottom = low
    right = (len(stages) - 1) * (_WIDTH + _GAP) + _WIDTH
    ax.set(xlim=(-0.4, right + 0.4), ylim=(-(len(names) - 1) * _STEP - 0.4, 2.0))
    ax.set_axis_off()
    return ax
