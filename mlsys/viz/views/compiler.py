"""Compilation as a picture: measured and predicted times, kernels, and what each pass is worth."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from mlsys.bench.passes import PASSES, PassResult
from mlsys.bench.result import CompileResult
from mlsys.bench.stored import stored_compile_results, stored_pass_results
from mlsys.errors import UnknownNameError
from mlsys.viz.style import COLORS, apply_style
from mlsys.viz.views.view import Scene, View, new_figure, number, times

__all__ = ["CompilerScene", "cases", "compile_view", "stored"]

_LOOKS = {
    "measured": ("BlueL", "BlueLine", ""),
    "predicted": ("VioletL", "VioletLine", ".."),
    "gain": ("GreenL", "GreenLine", "//"),
    "loss": ("OrangeL", "OrangeLine", "xx"),
}
_TIMES = ("eager, measured", "eager, predicted", "compiled, measured", "compiled, predicted")
_KERNELS = ("eager", "compiled")


def cases() -> dict[str, tuple[str, int]]:
    """Return the stored networks, by a label that says network and batch, in the order they were measured.

    Examples
    --------
    >>> cases()["mlp, batch 1"]
    ('mlp', 1)
    """
    return {
        f"{result.model}, batch {result.batch}": (result.model, result.batch) for result in stored_compile_results()
    }


def stored(case: str, frozen: bool) -> tuple[CompileResult, PassResult | None]:
    """Return what was measured of one case, and its passes where these were measured too.

    Raises
    ------
    UnknownNameError
        If there is no such case.
    """
    known = cases()
    if case not in known:
        raise UnknownNameError(f"compile_view(): `case` must be one of {', '.join(known)}, got {case!r}")
    model, batch = known[case]
    found = next(
        result
        for result in stored_compile_results()
        if (result.model, result.batch, result.frozen) == (model, batch, frozen)
    )
    ladder = (each for each in stored_pass_results() if (each.model, each.batch) == (model, batch))
    return found, next(ladder, None)


class CompilerScene(Scene):
    """The figure of :func:`compile_view`, made once and moved often."""

    blank = "Three empty bar charts: the time of one call, its kernels, and one pass more at a time."

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 5.4)
            self._time_bars, self._time_texts = self._panel((0.19, 0.63, 0.33, 0.27), _TIMES, "Time of one call")
            self._kernel_bars, self._kernel_texts = self._panel(
                (0.65, 0.63, 0.27, 0.27), _KERNELS, "Kernels of one call"
            )
            names = (*PASSES, "all passes")
            self._pass_bars, self._pass_texts = self._panel((0.19, 0.08, 0.73, 0.37), names, "One pass more at a time")
            self._none = self.figure.text(
                0.57, 0.265, "", ha="center", va="center", fontsize=9.5, color=COLORS["primary"]
            )
            for bar, name in zip(self._time_bars, _TIMES, strict=True):
                self._dress(bar, name.rpartition(" ")[2])
            for bar in self._kernel_bars:
                self._dress(bar, "measured")
            handles = [
                Patch(label=label, facecolor=COLORS[fill], edgecolor=COLORS[line], hatch=hatch)
                for label, (fill, line, hatch) in _LOOKS.items()
            ]
            self.figure.legend(
                handles=handles, loc="upper right", bbox_to_anchor=(0.99, 0.535), ncols=4, fontsize=9, frameon=False
            )
        self.moving = (
            *self._time_bars, *self._kernel_bars, *self._pass_bars, *self._time_texts, *self._kernel_texts,
            *self._pass_texts, self._none,
        )  # fmt: skip

    def _panel(self, place: tuple[float, float, float, float], names: tuple[str, ...], title: str) -> Any:
        """Return bars and texts of a panel whose horizontal axis goes from nothing to the longest bar."""
        ax: Axes = self.figure.add_axes(place)
        ax.set(xlim=(0, 1.45), ylim=(len(names) - 0.4, -0.6), title="")
        ax.set_title(title, loc="left", fontsize=10.5, weight="bold", color=COLORS["primary"])
        ax.set_yticks(range(len(names)), names, fontsize=9, color=COLORS["primary"])
        ax.set_xticks([])
        apply_style(ax)
        ax.grid(False)
        ax.spines["bottom"].set_visible(False)
        bars = [ax.add_patch(Rectangle((0, row - 0.32), 0, 0.64, zorder=3)) for row in range(len(names))]
        texts = [ax.text(0, row, "", va="center", fontsize=9, color=COLORS["primary"]) for row in range(len(names))]
        return bars, texts

    @staticmethod
    def _dress(bar: Rectangle, look: str) -> None:
        fill, line, hatch = _LOOKS[look]
        bar.set(facecolor=COLORS[fill], edgecolor=COLORS[line], hatch=hatch)

    @staticmethod
    def _place(bar: Rectangle, text: Any, left: float, right: float, words: str) -> None:
        bar.set_x(left)
        bar.set_width(right - left)
        text.set_x(right + 0.02)
        text.set_text(words)

    def update(self, *, case: str, frozen: bool = False) -> View:
        """Show one network at one batch; see :func:`compile_view`."""
        found, ladder = stored(case, frozen)
        guess = found.predicted
        eager, fast = found.eager.median.m_as("s"), found.compiled.median.m_as("s")
        values = (eager, guess.eager if guess else 0.0, fast, guess.compiled if guess else 0.0)
        for bar, text, value in zip(self._time_bars, self._time_texts, values, strict=True):
            self._place(bar, text, 0, value / max(values), _time(value) if value else "none")
        counts = (found.operators, found.kernels)
        split = f"{found.kernels}: {found.generated} written,\n{found.library} of libraries"
        for bar, text, count, words in zip(
            self._kernel_bars, self._kernel_texts, counts, (str(found.operators), split), strict=True
        ):
            self._place(bar, text, 0, count / max(counts), words)
        self._show_passes(ladder)
        summary = _summary(case, found, ladder)
        return View(
            figure=self.figure,
            summary=summary,
            alt="Bars of measured and predicted times, of kernels before and after compilation, and a waterfall of "
            f"the passes. {summary}",
            values={"result": found, "passes": ladder},
        )

    def _show_passes(self, ladder: PassResult | None) -> None:
        if ladder is None:
            for bar, text in zip(self._pass_bars, self._pass_texts, strict=True):
                self._place(bar, text, 0, 0, "")
            self._none.set_text("Of this network the passes were not measured one by one.\nChoose a resnet50.")
            return
        self._none.set_text("")
        seconds = [step.timing.median.m_as("s") for step in ladder.steps]
        most = max(seconds)
        ends = [(0.0, seconds[0]), *((after, before) for before, after in pairwise(seconds)), (0.0, seconds[-1])]
        words = [
            f"{_time(seconds[0])}, {ladder.steps[0].kernels} kernels",
            *(times(factor.value) for factor in ladder.factors),
            f"{_time(seconds[-1])}, {ladder.steps[-1].kernels} kernels: {times(ladder.total.value)}",
        ]
        for place, (bar, text, (after, before), said) in enumerate(
            zip(self._pass_bars, self._pass_texts, ends, words, strict=True)
        ):
            self._place(bar, text, min(after, before) / most, max(after, before) / most, said)
            whole = place in (0, len(ends) - 1)
            self._dress(bar, "measured" if whole else "gain" if after <= before else "loss")


def _time(seconds: float) -> str:
    """Return a time in the unit that suits it.

    Examples
    --------
    >>> _time(0.0123), _time(1.4e-5)
    ('12.3 ms', '14 µs')
    """
    return f"{number(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{number(seconds * 1e6)} µs"


def _summary(case: str, found: CompileResult, ladder: PassResult | None) -> str:
    ratio, guess = found.speedup, found.predicted
    how = "with its weights frozen" if found.frozen else "with its weights as inputs"
    verdict = (
        f"runs {times(ratio.value)} as fast as eager"
        if ratio.low > 1
        else f"is slower than eager, {times(ratio.value)} as fast"
        if ratio.high < 1
        else "runs as fast as eager, within the noise"
    )
    told = [f"Compiled {how}, {case} {verdict} (between {number(ratio.low)} and {times(ratio.high)})."]
    if guess is not None:
        told.append(f"The machine's rates predict {times(guess.speedup)}.")
    told.append(
        f"Kernels go from {found.operators} to {found.kernels}; compiling took {number(found.compile_seconds)} s."
    )
    if ladder is not None:
        best = max(range(len(ladder.factors)), key=lambda place: ladder.factors[place].value)
        told.append(
            f"Pass by pass it comes to {times(ladder.total.value)}; most of it is {PASSES[best + 1]}, "
            f"{times(ladder.factors[best].value)}."
        )
    return " ".join(told)


def compile_view(case: str, frozen: bool = False) -> View:
    """Return the picture of one network, eager and compiled, as it was measured for this version.

    Parameters
    ----------
    case
        One of :func:`cases`.
    frozen
        Whether the compiler took the weights for constants.

    Raises
    ------
    UnknownNameError
        If there is no such case.

    Examples
    --------
    >>> print(compile_view("mlp, batch 1").summary)
    Compiled with its weights as inputs, mlp, batch 1 is slower than eager, ...
    """
    return CompilerScene().update(case=case, frozen=frozen)
