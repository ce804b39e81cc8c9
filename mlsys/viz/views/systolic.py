"""View of a systolic array: utilisation over one size of a product, and the breakdown of cycles."""

from typing import Any, Literal, TypedDict, get_args

import matplotlib.style
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from mlsys.choices import FoldOverlap, Stationary
from mlsys.models.systolic import DATAFLOWS, ArrayCounts, count_systolic
from mlsys.unit_checks import checked_choice
from mlsys.viz.style import COLORS, HALO, apply_style
from mlsys.viz.systolic import over_size, teeth_axes
from mlsys.viz.views.view import Guess, Scene, View, new_figure
from mlsys.viz.words import number, percent

Size = Literal["M", "N", "K"]
"""The sizes of a matrix product."""
SIZES = 1024
"""Right edge of the axis, and largest size of the product."""

_PARTS = (
    ("multiplying", "BlueL", "BlueLine", ""),
    ("idle PEs", "OrangeL", "OrangeLine", "//"),
    ("load, fill and drain", "VioletL", "VioletLine", ".."),
)


def cycle_shares(counts: ArrayCounts) -> dict[str, float]:
    """Return the share of the cycles that multiply, stream past idle PEs, and only load, fill or drain.

    Examples
    --------
    >>> shares = cycle_shares(count_systolic(128, 64, 128, 128, 128))
    >>> {part: round(share, 3) for part, share in shares.items()}
    {'multiplying': 0.125, 'idle PEs': 0.125, 'load, fill and drain': 0.749}
    """
    streaming = counts.folds.count * counts.folds.streamed / counts.cycles
    useful = counts.utilisation
    return {"multiplying": useful, "idle PEs": streaming - useful, "load, fill and drain": 1 - streaming}


class SystolicValues(TypedDict):
    """Values of :class:`SystolicScene`: counts, and the breakdown of cycles."""

    counts: ArrayCounts
    shares: dict[str, float]


class SystolicScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = "An empty chart of utilisation over one size of a product, above an empty bar of cycles."

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 4.8)
            ax = self.figure.add_axes((0.08, 0.4, 0.88, 0.52))
            self._sizes = teeth_axes(ax, 128, SIZES)
            self.guess = Guess(ax, "y", place=0.6)
            ax.tick_params(labelsize=9, colors=COLORS["primary"])
            ax.set_title("Utilisation (%)", loc="left", fontsize=11, weight="bold", color=COLORS["primary"])
            (self._mapped,) = ax.plot([0], [0], "--", color=COLORS["OrangeLine"], linewidth=1.4)
            (self._used,) = ax.plot([0], [0], color=COLORS["BlueLine"], linewidth=2.2)
            (self._point,) = ax.plot(
                [0], [0], "o", markersize=11, color=COLORS["BlueLine"], markeredgecolor="white", clip_on=False
            )
            (self._drop,) = ax.plot([0, 0], [0, 0], ":", color=COLORS["BlueLine"], linewidth=1)
            label: dict[str, Any] = {"fontsize": 11, "weight": "bold", "bbox": HALO}
            self._label = ax.text(0, 0, "", color=COLORS["BlueLine"], **label)
            ax.plot([], [], "--", color=COLORS["OrangeLine"], linewidth=1.4, label="PEs with work")
            ax.plot([], [], color=COLORS["BlueLine"], linewidth=2.2, label="PEs that multiply, over all cycles")
            ax.legend(loc="upper right", bbox_to_anchor=(1.0, 1.17), ncols=2, fontsize=9, frameon=False)
            self._axis = self.figure.text(0.52, 0.312, "", ha="center", fontsize=10, color=COLORS["primary"])
            bar = self.figure.add_axes((0.08, 0.1, 0.88, 0.1))
            bar.set(xlim=(0, 100), ylim=(0, 1), yticks=[])
            bar.tick_params(labelsize=9, colors=COLORS["primary"])
            bar.set_title("Where the cycles go (%)", loc="left", fontsize=11, weight="bold", color=COLORS["primary"])
            apply_style(bar)
            bar.grid(False)
            self._blocks: list[Rectangle] = []
            self._names: list[Text] = []
            for _, fill, line, hatch in _PARTS:
                block = Rectangle((0, 0), 0, 1, facecolor=COLORS[fill], edgecolor=COLORS[line], hatch=hatch)
                bar.add_patch(block)
                self._blocks.append(block)
                plate = {**HALO, "alpha": 1.0}
                self._names.append(
                    bar.text(0, 0.5, "", ha="center", va="center", fontsize=9, color=COLORS[line], bbox=plate)
                )
        self.moving = (
            self._mapped, self._used, self._drop, self._point, self._label, self._axis, *self._blocks, *self._names,
            *self.guess.artists,
        )  # fmt: skip

    def update(
        self,
        m: int = 512,
        n: int = 512,
        k: int = 512,
        side: int = 128,
        dataflow: Stationary = "ws",
        fold_overlap: FoldOverlap = "load",
        along: Size = "M",
    ) -> View[SystolicValues]:
        """Return the view of the utilisation of a square array over one size of a product.

        Parameters
        ----------
        m, n, k
            Sizes of the product.
        side
            Rows and columns of the array.
        dataflow, fold_overlap
            As in :func:`mlsys.models.systolic.count_systolic`.
        along
            ``"M"``, ``"N"`` or ``"K"``: the size on the axis.

        Returns
        -------
        View
            Figure, summary, text alternative, and under ``values`` the counts.

        Raises
        ------
        UnknownNameError
            If the dataflow, overlap or size is unknown.

        Examples
        --------
        >>> print(SystolicScene().update(128, 128, 128).summary[:110])
        The (128 × 128) by (128 × 128) product on 128 × 128 PEs, weight-stationary, runs in one fold and 510 cycles an
        """
        checked_choice("SystolicScene", "along", along, get_args(Size))
        shape = {"M": m, "N": n, "K": k}
        here = count_systolic(m, n, k, side, side, dataflow, fold_overlap=fold_overlap)
        over = over_size(along, self._sizes, (m, n, k), side, dataflow, fold_overlap)
        self._mapped.set_data(self._sizes, 100 * over.mapping_efficiency)
        self._used.set_data(self._sizes, 100 * over.utilisation)
        x, y = shape[along], 100 * here.utilisation
        self._point.set_data([x], [y])
        self._drop.set_data([x, x], [0, y])
        right = x > 0.8 * SIZES
        self._label.set_position((x - 18 if right else x + 18, y + 5 if y < 20 else y - 8))
        self._label.set_horizontalalignment("right" if right else "left")
        self._label.set_text(percent(here.utilisation))
        rest = " and ".join(f"{name} = {shape[name]:,}" for name in "MNK" if name != along)
        self._axis.set_text(f"{along}, with {rest}")
        self._show_shares(cycle_shares(here))
        summary = _summary(here, side)
        return View(
            figure=self.figure,
            summary=summary,
            alt=f"Line chart of utilisation over {along}, with the chosen product as a point, and below it one bar of "
            f"cycles in three parts. {summary}",
            values={"counts": here, "shares": cycle_shares(here)},
        )

    def _show_shares(self, shares: dict[str, float]) -> None:
        left = 0.0
        for block, text, (name, share) in zip(self._blocks, self._names, shares.items(), strict=True):
            block.set_x(100 * left)
            block.set_width(100 * share)
            text.set_position((100 * left + 50 * share, 0.5))
            text.set_text(f"{name} {percent(share)}" if share > 0.2 else percent(share) if share > 0.07 else "")
            left += share


def _summary(counts: ArrayCounts, side: int) -> str:
    folds, shares = counts.folds, cycle_shares(counts)
    largest = max(shares, key=lambda part: shares[part])
    many = f"{folds.count:,} folds" if folds.count > 1 else "one fold"
    return (
        f"The ({folds.m:,} × {folds.k:,}) by ({folds.k:,} × {folds.n:,}) product on {side} × {side} PEs, "
        f"{DATAFLOWS[folds.dataflow]}, runs in {many} and {counts.cycles:,} cycles and uses "
        f"{percent(counts.utilisation)} of the array. Most cycles go to {largest}, {percent(shares[largest])}. "
        f"A word of the left operand that is read is used {_times(counts.sram.ifmap_reads, counts)}, "
        f"one of the right operand {_times(counts.sram.filter_reads, counts)}."
    )


def _times(reads: int, counts: ArrayCounts) -> str:
    uses = counts.macs / reads
    return "once" if uses == 1 else f"{number(uses)} times"
