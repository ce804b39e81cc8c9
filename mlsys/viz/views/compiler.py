"""View of compilation: measured and predicted times, kernels, and the gain of each pass."""

from typing import Any, TypedDict

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from mlsys.measure.compile.passes import PASSES, PassResult
from mlsys.measure.compile.result import CompileResult
from mlsys.measure.stored import stored_compile_results, stored_pass_results
from mlsys.unit_checks import checked_choice
from mlsys.viz.compiler import LOOKS, Waterfall, dress, time_text
from mlsys.viz.style import COLORS, apply_style
from mlsys.viz.views.view import Guess, Scene, View, new_figure
from mlsys.viz.words import number, times

_TIMES = ("eager, measured", "eager, predicted", "compiled, measured", "compiled, predicted")
_KERNELS = ("eager", "compiled")
_NO_PASSES = "Of this network the passes were not measured one by one.\nChoose a resnet50."


class CompilerValues(TypedDict):
    """Values of :class:`CompilerScene`: a measurement, its passes if measured too, and the drawn length of eager."""

    result: CompileResult
    passes: PassResult | None
    eager: float


def cases() -> dict[str, tuple[str, int]]:
    """Return (network, batch) of the stored measurements by label, in the order of measurement.

    Examples
    --------
    >>> cases()["mlp, batch 1"]
    ('mlp', 1)
    """
    return {
        f"{result.model}, batch {result.batch}": (result.model, result.batch) for result in stored_compile_results()
    }


def stored(case: str, frozen: bool) -> tuple[CompileResult, PassResult | None]:
    """Return the measurement of one case, and its passes if they were measured too.

    Raises
    ------
    UnknownNameError
        If there is no such case.
    """
    known = cases()
    model, batch = known[checked_choice("CompilerScene", "case", case, known)]
    match = next(
        result
        for result in stored_compile_results()
        if (result.model, result.batch, result.frozen) == (model, batch, frozen)
    )
    ladder = (each for each in stored_pass_results() if (each.model, each.batch) == (model, batch))
    return match, next(ladder, None)


class CompilerScene(Scene):
    """Figure that is created once and updated by :meth:`update`."""

    blank = "Three empty bar charts: the time of one call, its kernels, and one pass more at a time."

    def __init__(self) -> None:
        with matplotlib.style.context("default"):
            self.figure = new_figure(8.4, 5.4)
            self._time_bars, self._time_texts = self._panel((0.19, 0.63, 0.33, 0.27), _TIMES, "Time of one call")
            self._kernel_bars, self._kernel_texts = self._panel(
                (0.65, 0.63, 0.27, 0.27), _KERNELS, "Kernels of one call"
            )
            passes = self.figure.add_axes((0.19, 0.08, 0.73, 0.37))
            passes.set_title("One pass more at a time", loc="left", fontsize=10.5, weight="bold",
                             color=COLORS["primary"])  # fmt: skip
            self._passes = Waterfall(passes)
            passes.tick_params(labelsize=9, colors=COLORS["primary"])
            self._none = self.figure.text(
                0.57, 0.265, "", ha="center", va="center", fontsize=9.5, color=COLORS["primary"]
            )
            times_axes = self._time_bars[0].axes
            self.guess = Guess(times_axes, "x", place=-0.02)
            self.here = Guess(times_axes, "x", place=-0.02, label="compiled here", color=COLORS["RedLine"])
            for bar, name in zip(self._time_bars, _TIMES, strict=True):
                dress(bar, name.rpartition(" ")[2])
            for bar in self._kernel_bars:
                dress(bar, "measured")
            handles = [
                Patch(label=label, facecolor=COLORS[fill], edgecolor=COLORS[line], hatch=hatch)
                for label, (fill, line, hatch) in LOOKS.items()
            ]
            self.figure.legend(
                handles=handles, loc="upper right", bbox_to_anchor=(0.99, 0.535), ncols=4, fontsize=9, frameon=False
            )
        self.moving = (
            *self._time_bars, *self._kernel_bars, *self._time_texts, *self._kernel_texts, *self._passes.artists,
            self._none, *self.guess.artists, *self.here.artists,
        )  # fmt: skip

    def _panel(self, rect: tuple[float, float, float, float], names: tuple[str, ...], title: str) -> Any:
        """Return bars and texts of a panel whose horizontal axis runs from zero to the longest bar."""
        ax: Axes = self.figure.add_axes(rect)
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
    def _stretch(bar: Rectangle, text: Any, left: float, right: float, words: str) -> None:
        bar.set_x(left)
        bar.set_width(right - left)
        text.set_x(right + 0.02)
        text.set_text(words)

    def update(self, case: str, frozen: bool = False) -> View[CompilerValues]:
        """Return the view of one network, eager and compiled, as measured for this version.

        Parameters
        ----------
        case
            One of :func:`cases`.
        frozen
            Whether the compiler treated the weights as constants.

        Raises
        ------
        UnknownNameError
            If there is no such case.

        Examples
        --------
        >>> print(CompilerScene().update("mlp, batch 1").summary)
        Compiled with its weights as inputs, mlp, batch 1 is slower than eager, ...
        """
        result, ladder = stored(case, frozen)
        guess = result.predicted
        eager, fast = result.eager.median.m_as("s"), result.compiled.median.m_as("s")
        values = (eager, guess.eager if guess else 0.0, fast, guess.compiled if guess else 0.0)
        for bar, text, value in zip(self._time_bars, self._time_texts, values, strict=True):
            self._stretch(bar, text, 0, value / max(values), time_text(value) if value else "none")
        counts = (result.operators, result.kernels)
        split = f"{result.kernels}: {result.generated} written,\n{result.library} of libraries"
        for bar, text, count, words in zip(
            self._kernel_bars, self._kernel_texts, counts, (str(result.operators), split), strict=True
        ):
            self._stretch(bar, text, 0, count / max(counts), words)
        self._none.set_text("" if ladder else _NO_PASSES)
        if ladder is None:
            self._passes.hide()
        else:
            self._passes.show(ladder)
        summary = _summary(case, result, ladder)
        return View(
            figure=self.figure,
            summary=summary,
            alt="Bars of measured and predicted times, of kernels before and after compilation, and a waterfall of "
            f"the passes. {summary}",
            values={"result": result, "passes": ladder, "eager": eager / max(values)},
        )


def _summary(case: str, result: CompileResult, ladder: PassResult | None) -> str:
    ratio, guess = result.speedup, result.predicted
    how = "with its weights frozen" if result.frozen else "with its weights as inputs"
    verdict = (
        f"runs {times(ratio.value)} as fast as eager"
        if ratio.low > 1
        else f"is slower than eager, {times(ratio.value)} as fast"
        if ratio.high < 1
        else "runs as fast as eager, within the noise"
    )
    sentences = [f"Compiled {how}, {case} {verdict} (between {number(ratio.low)} and {times(ratio.high)})."]
    if guess is not None:
        sentences.append(f"The machine's rates predict {times(guess.speedup)}.")
    sentences.append(
        f"Kernels go from {result.operators} to {result.kernels}; compiling took {number(result.compile_seconds)} s."
    )
    if ladder is not None:
        best = max(range(len(ladder.factors)), key=lambda index: ladder.factors[index].value)
        sentences.append(
            f"Pass by pass it comes to {times(ladder.total.value)}; most of it is {PASSES[best + 1]}, "
            f"{times(ladder.factors[best].value)}."
        )
    return " ".join(sentences)
