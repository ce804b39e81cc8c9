"""View of model compression: memory against a budget, time, energy, and all other variants."""

from functools import lru_cache
from typing import TypedDict

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from mlsys.edge.config import Config, EdgeVariant
from mlsys.edge.points import EdgePoint, under_limits_of
from mlsys.edge.schema import FORMATS
from mlsys.edge.stored import stored_run
from mlsys.unit_checks import checked_choice
from mlsys.viz.style import COLORS, CYCLE, MARKERS, apply_style
from mlsys.viz.views.view import Guess, Scene, View, new_figure
from mlsys.viz.words import number, percent, times

CUTS = {
    "as trained": ("none", 0.0),
    "25 % of channels cut": ("structured", 0.25),
    "50 % of channels cut": ("structured", 0.5),
    "75 % of channels cut": ("structured", 0.75),
    "50 % of weights zero": ("unstructured", 0.5),
    "90 % of weights zero": ("unstructured", 0.9),
}
CLOCKS = {"full": (1.0, 1.0), "half": (0.5, 1.0), "half, at 0.8 of the voltage": (0.5, 0.8)}
BUDGETS = (48, 50, 55, 59, 77, 85, 100, 105, 150)  # kB
_MOST = (180.0, 0.62, 1.15)  # right ends of the bars: kB, ms, mJ
_PARTS = (
    ("activations", "BlueLine", ""), ("weights", "OrangeLine", "//"), ("reserve", "grid", ".."),
    ("core", "GreenLine", ""), ("memory", "VioletLine", "//"),
    ("dynamic", "GreenLine", ""), ("static", "RedLine", "//"),
)  # fmt: skip


class EdgeValues(TypedDict):
    """Values of the variant shown by :class:`EdgeScene`: kB, ms, mJ, and whether it is accepted."""

    accuracy: float
    memory: float
    time: float
    energy: float
    accepted: bool
    reasons: tuple[str, ...]


def chosen(
    cut: str, precision: str, clock: str = "full", budget: float = 100
) -> tuple[EdgePoint, tuple[EdgePoint, ...]]:
    """Return one point of the stored run, and all points at its clock, under a budget in kB.

    Raises
    ------
    UnknownNameError
        If an argument is not one of ``CUTS``, ``CLOCKS`` or the number formats.
    """
    for what, name, known in (("cut", cut, CUTS), ("precision", precision, FORMATS), ("clock", clock, CLOCKS)):
        checked_choice("EdgeScene", what, name, known)
    points = _all_at(clock, budget)
    wanted = EdgeVariant(*CUTS[cut], precision)
    return next(point for point in points if point.measured.variant == wanted), points


@lru_cache(maxsize=32)
def _all_at(clock: str, budget: float) -> tuple[EdgePoint, ...]:
    """Return every variant of the stored run at one clock, under one budget."""
    config = stored_run().config
    return under_limits_of(Config({**config.data, "active_memory_budget_mb": budget / 1e3}), _at_clock(clock))


@lru_cache(maxsize=len(CLOCKS))
def _at_clock(clock: str) -> tuple[EdgePoint, ...]:
    """Return every variant of the stored run at one clock, under the budgets of the run."""
    scale, voltage = CLOCKS[clock]
    return stored_run().points(clocks=[{"scale": scale, "voltage": voltage}])


class EdgeScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = "Three empty bars for memory, time and energy, and an empty plot of right answers over memory."

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 5.6)
            rows = (0.86, 0.745, 0.63)
            titles = ("memory, kB", "time of one inference, ms", "energy of one inference, mJ")
            parts = (_PARTS[:3], _PARTS[3:5], _PARTS[5:])
            self._bars: list[list[Rectangle]] = []
            self._texts = []
            for bottom, title, most, kinds in zip(rows, titles, _MOST, parts, strict=True):
                ax = self.figure.add_axes((0.27, bottom, 0.6, 0.065))
                ax.set(xlim=(0, most), ylim=(0, 1))
                ax.set_yticks([0.5], [title], fontsize=9.5, color=COLORS["primary"])
                ax.set_xticks([])
                ax.grid(False)
                for side in ("top", "right", "bottom"):
                    ax.spines[side].set_visible(False)
                bars = []
                for _, color, hatch in kinds:
                    look = {"facecolor": COLORS[color], "hatch": hatch, "edgecolor": "white"}
                    bars.append(Rectangle((0, 0.1), 0, 0.8, zorder=3, **look))  # type: ignore[arg-type]
                    ax.add_patch(bars[-1])
                self._bars.append(bars)
                self._texts.append(
                    ax.text(
                        0, 0.5, "", va="center", fontsize=9.5, color=COLORS["primary"], zorder=6,
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85},
                    )
                )  # fmt: skip
                if title.startswith("memory"):
                    self.guess = Guess(ax, "x", place=1.5, over=True)
                    self._limit = ax.axvline(0, color=COLORS["RedLine"], linestyle="--", linewidth=1.8, zorder=5)
            self.figure.legend(
                handles=[
                    Patch(facecolor=COLORS[color], hatch=hatch, edgecolor="white", label=name)
                    for name, color, hatch in (*_PARTS[:3], ("core, dynamic", "GreenLine", ""),
                                               ("memory time", "VioletLine", "//"), ("static", "RedLine", "//"))
                ],
                loc="upper center", bbox_to_anchor=(0.5, 0.625), ncols=6, fontsize=8.5, frameon=False,
            )  # fmt: skip
            self._plot()
        self.moving = (
            *(bar for bars in self._bars for bar in bars), *self._texts, self._limit, *self._open, *self._full,
            self._ring, self._budget, self._word, *(self.guess.artists if self.guess else ()),
        )  # fmt: skip

    def _plot(self) -> None:
        ax: Axes = self.figure.add_axes((0.1, 0.1, 0.86, 0.43))
        apply_style(ax)
        ax.set(xlim=(0, _MOST[0]), ylim=(91.8, 98))
        ax.set_xlabel("memory, kB (open: not accepted)", fontsize=9.5, color=COLORS["primary"])
        ax.set_ylabel("right answers, %", fontsize=9.5, color=COLORS["primary"])
        ax.tick_params(labelsize=9, colors=COLORS["primary"])
        self._open, self._full = [], []
        for index, name in enumerate(FORMATS):
            look = {"marker": MARKERS[index], "color": CYCLE[index], "linestyle": "none", "markersize": 8}
            (empty,) = ax.plot([], [], markerfacecolor="white", **look)  # type: ignore[arg-type]
            (full,) = ax.plot([], [], label=name, **look)  # type: ignore[arg-type]
            self._open.append(empty)
            self._full.append(full)
        (self._ring,) = ax.plot(
            [], [], "o", markersize=17, markerfacecolor="none", markeredgecolor=COLORS["primary"], markeredgewidth=2
        )
        self._budget = ax.axvline(0, color=COLORS["RedLine"], linestyle="--", linewidth=1.8)
        self._word = ax.text(0, 92, " budget", fontsize=9, color=COLORS["RedLine"])
        ax.legend(loc="lower left", fontsize=8.5, frameon=False)

    def update(self, cut: str, precision: str, clock: str = "full", budget: float = 100) -> View[EdgeValues]:
        """Return the view of one variant of the stored run.

        Parameters
        ----------
        cut
            One of ``CUTS``: the pruning applied.
        precision
            Number format.
        clock
            One of ``CLOCKS``.
        budget
            Memory budget, kB.

        Raises
        ------
        UnknownNameError
            If there is no such cut, format or clock.

        Examples
        --------
        >>> view = EdgeScene().update("as trained", "int8-static")
        >>> round(view.values["memory"], 1), view.values["accepted"]
        (56.4, True)
        """
        point, points = chosen(cut, precision, clock, budget)
        measured, law = point.measured, point.law
        assert law is not None
        accuracy, latency, energy, memory = point.objectives
        static, dynamic = point.energies
        fixed = law.memory.m_as("ms")
        reserve = stored_run().config.reserve.m_as("kB")
        stacks = (
            (measured.activation_bytes / 1e3, (measured.weight_bytes + measured.buffer_bytes) / 1e3, reserve),
            (latency - fixed, fixed),
            (dynamic, static),
        )
        for bars, text, most, parts in zip(self._bars, self._texts, _MOST, stacks, strict=True):
            left = 0.0
            for bar, size in zip(bars, parts, strict=True):
                bar.set_x(left)
                bar.set_width(size)
                left += size
            text.set_x(left + 0.012 * most)
            text.set_text(f"{left:.3g}")
        self._limit.set_xdata([budget, budget])
        self._budget.set_xdata([budget, budget])
        self._word.set_x(budget)
        self._ring.set_data([memory / 1e3], [100 * accuracy])
        for index, name in enumerate(FORMATS):
            here = [other for other in points if other.measured.precision == name]
            for marks, wanted in ((self._open[index], False), (self._full[index], True)):
                shown = [other.objectives for other in here if other.accepted == wanted]
                marks.set_data([row[3] / 1e3 for row in shown], [100 * row[0] for row in shown])
        verdict = "meets every budget" if point.accepted else f"is not accepted: {_first(point, budget)}"
        front = ", and no other beats it in all four" if point.pareto else ""
        summary = (
            f"The network {cut} in {precision} gets {percent(accuracy)} right and needs {number(memory / 1e3)} kB, "
            f"{number(latency)} ms and {number(energy)} mJ at the clock “{clock}”. It {verdict}{front}."
        )
        accepted = sum(other.accepted for other in points)
        return View(
            figure=self.figure,
            summary=summary,
            alt="Bars of memory, time and energy of one variant, and the right answers of all over their memory; "
            f"{accepted} of {len(points)} are accepted. {summary}",
            values={
                "accuracy": accuracy,
                "memory": memory / 1e3,
                "time": latency,
                "energy": energy,
                "accepted": point.accepted,
                "reasons": point.reasons,
            },
        )


def _first(point: EdgePoint, budget: float) -> str:
    if point.memory > 1e3 * budget:
        return f"{times(point.memory / 1e3 / budget)} the memory that it may have"
    return "too few right answers"
