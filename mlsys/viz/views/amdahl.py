"""View of Amdahl's law: the speedup curve and the breakdown of time."""

import math
from typing import TypedDict

import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from mlsys.formulas import amdahl_ceiling, amdahl_speedup, device_bound_fraction, serial_share
from mlsys.unit_checks import at_least, checked_number, fraction
from mlsys.viz.amdahl import SpeedupCurve, TimeBars
from mlsys.viz.style import COLORS, HALO, decades
from mlsys.viz.views.view import Guess, Scene, View, new_figure
from mlsys.viz.words import percent, times

COMPARED_FRACTIONS = (0.5, 0.9, 0.99, 0.999)
"""Accelerated shares whose curves can be shown for comparison."""

_LARGEST = 1000.0  # right and upper edge of the picture


class AmdahlValues(TypedDict):
    """Values computed by :class:`AmdahlScene`."""

    speedup: float
    ceiling: float
    host_share: float
    boundary: float
    bound_by: str


class AmdahlScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = (
        "Two empty charts: the speedup of the whole program over the speedup of its accelerated part, "
        "and the run time before and after."
    )

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 3.9)
            curves = self.figure.add_axes((0.085, 0.135, 0.565, 0.775))
            self._draw_curve_axes(curves)
            self.guess = Guess(curves, "y", place=0.99)
            self._draw_time_axes(self.figure.add_axes((0.735, 0.135, 0.25, 0.775)))
        self.moving = (
            *(artist for _, *pair in self._others for artist in pair),
            *self._law.artists, self._balance, self._balance_label, self._point, self._point_label,
            *self._time.artists, *self.guess.artists,
        )  # fmt: skip

    def _draw_curve_axes(self, ax: Axes) -> None:
        decades(ax, "x", 0, 3, "×")
        decades(ax, "y", 0, 3, "×")
        ax.set_ylim(0.8, _LARGEST)
        ax.set_xlabel("Speedup of the accelerated part, S", fontsize=10, color=COLORS["primary"])
        ax.set_title("Speedup of the whole program", loc="left", fontsize=11, weight="bold", color=COLORS["primary"])
        grid = np.geomspace(1, _LARGEST, 91)
        ax.plot([1, _LARGEST], [1, _LARGEST], color=COLORS["axis"], linewidth=1, linestyle=(0, (1, 2)))
        ax.text(48, 66, "if all of it were accelerated", fontsize=8.5, color=COLORS["note"], rotation=36.5,
                rotation_mode="anchor", ha="center", va="bottom")  # fmt: skip
        self._others: list[tuple[float, Artist, Artist]] = []
        for share in COMPARED_FRACTIONS:
            heights = amdahl_speedup.bare(share, grid)
            (curve,) = ax.plot(grid, heights, color=COLORS["axis"], linewidth=1.1, zorder=2.1)
            label = ax.text(920, heights[-1], percent(share), fontsize=8.5, color=COLORS["note"], zorder=2.1)
            label.set(ha="right", va="bottom")
            self._others.append((share, curve, label))
        self._law = SpeedupCurve(ax)
        (self._balance,) = ax.plot(
            [1], [1], marker="D", markersize=8, color="white", markeredgecolor=COLORS["BlueLine"], zorder=4
        )
        (self._point,) = ax.plot(
            [1],
            [1],
            marker="o",
            markersize=11,
            color=COLORS["BlueLine"],
            markeredgecolor="white",
            zorder=5,
            clip_on=False,
        )
        self._balance_label = ax.text(1, 1, "", color=COLORS["BlueLine"], va="top", fontsize=9, bbox=HALO, zorder=4)
        self._point_label = ax.text(
            1, 1, "", color=COLORS["BlueLine"], weight="bold", fontsize=13, va="top", bbox=HALO, zorder=6
        )

    def _draw_time_axes(self, ax: Axes) -> None:
        self._time = TimeBars(ax, ("before", "after"))
        ax.tick_params(labelsize=9, colors=COLORS["primary"])
        ax.set_title("Where the time goes", loc="left", fontsize=11, weight="bold", color=COLORS["primary"])

    def update(self, parallel_fraction: float, accelerator_speedup: float, compare: bool = False) -> View[AmdahlValues]:
        """Return the view of Amdahl's law for one program and one accelerator.

        Parameters
        ----------
        parallel_fraction
            Share *p* of the original time that is accelerated, at least 0 and below 1.
        accelerator_speedup
            Speedup *S* >= 1 of that share, pure number.
        compare
            Whether to show the curves of ``COMPARED_FRACTIONS`` for comparison.

        Returns
        -------
        View
            Figure, summary, text alternative, and the values they show.

        Raises
        ------
        ArgumentError
            If *p* is outside [0, 1) or *S* below 1.

        Examples
        --------
        >>> print(AmdahlScene().update(0.95, 100).summary)
        With 95% of the time accelerated 100×, the whole program runs 16.8× as fast; no accelerator takes it past 20×. \
Host-bound: the host takes 84.0% of the new run time, because the accelerated share of 95% is below S/(S+1) = 99.0%.
        """
        p = float(checked_number("AmdahlScene", "parallel_fraction", parallel_fraction, fraction(below_one=True), {}))
        s = float(checked_number("AmdahlScene", "accelerator_speedup", accelerator_speedup, at_least(1), {}))
        total, ceiling = amdahl_speedup.bare(p, s), amdahl_ceiling.bare(p)
        host, boundary = serial_share.bare(p, s), device_bound_fraction.bare(s)
        self._move_curve(p, s, total, ceiling, compare)
        self._time.show(p, (1, s))
        bound = "balanced" if math.isclose(p, boundary, rel_tol=1e-9) else "host" if p < boundary else "device"
        summary = _summary(p, s, total, ceiling, host, boundary, bound)
        return View(
            figure=self.figure,
            summary=summary,
            alt="Curve of the speedup of the whole program over the speedup of its accelerated part, "
            f"beside bars of the run time before and after. {summary}",
            values={"speedup": total, "ceiling": ceiling, "host_share": host, "boundary": boundary, "bound_by": bound},
        )

    def _move_curve(self, p: float, s: float, total: float, ceiling: float, compare: bool) -> None:
        for share, *artists in self._others:
            for artist in artists:
                artist.set_visible(compare and share != p)
        self._law.show(p)
        # Host and device take equally long where S = p/(1-p), that is, at half the ceiling.
        equal = p * ceiling
        shown = 1.2 <= equal <= _LARGEST
        for artist in (self._balance, self._balance_label):
            artist.set_visible(shown)
        if shown:
            half = amdahl_speedup.bare(p, equal)
            self._balance.set_data([equal], [half])
            right = equal > 60
            self._balance_label.set_position((equal / 1.18 if right else equal * 1.18, half / 1.1))
            self._balance_label.set_horizontalalignment("right" if right else "left")
            self._balance_label.set_text("" if half < 1.6 or 0.55 < s / equal < 8 else "host and device equal")
        self._point.set_data([s], [total])
        right = s > 150
        self._point_label.set_position((s / 1.1 if right else s * 1.1, total / 1.22))
        self._point_label.set_horizontalalignment("right" if right else "left")
        self._point_label.set_text(times(total))


def _summary(p: float, s: float, total: float, ceiling: float, host: float, boundary: float, bound: str) -> str:
    gain = (
        f"With {percent(p)} of the time accelerated {times(s)}, the whole program runs {times(total)} as fast; "
        f"no accelerator takes it past {times(ceiling)}."
    )
    digits = 3
    while bound != "balanced" and _rounded(p, digits) == _rounded(boundary, digits) and digits < 12:
        digits += 1  # "99% is below 99.0%" would help nobody
    share, limit = f"the accelerated share of {percent(p)}", f"S/(S+1) = {percent(boundary, digits)}"
    if bound == "balanced":
        return f"{gain} Balanced: {share} equals {limit}, so host and accelerator take equally long."
    side, relation = ("Host-bound", "below") if bound == "host" else ("Device-bound", "above")
    taker = "the host takes" if bound == "host" else "the accelerator takes"
    part = host if bound == "host" else 1 - host
    return f"{gain} {side}: {taker} {percent(part)} of the new run time, because {share} is {relation} {limit}."


def _rounded(share: float, digits: int) -> float:
    return float(percent(share, digits).rstrip("%"))
