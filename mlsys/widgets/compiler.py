"""The lab on compilation. Every number in a question or an answer comes from the stored measurements."""

from typing import Any

from mlsys.labs import compiler
from mlsys.labs.gap import compile_gap
from mlsys.measure.compile.result import CompileResult
from mlsys.viz.views.compiler import CompilerScene, cases, stored
from mlsys.viz.views.view import number, times
from mlsys.widgets import parts
from mlsys.widgets.gap_box import GapBox
from mlsys.widgets.lab import Lab
from mlsys.widgets.measure import MeasureHere, this_python
from mlsys.widgets.parts import Control, choice

_HERE, _HERE_BATCH = "small-cnn", 64
_HERE_CASE = f"{_HERE}, batch {_HERE_BATCH}"


class CompilerLab(Lab):
    """Predict, explore and check the speed-up of ``torch.compile``, and measure it on your own machine.

    Examples
    --------
    >>> lab = CompilerLab()
    >>> lab.predict(lab.prediction.listed()[1])
    >>> lab.view.values["result"].model
    'mobilenet-v2'
    """

    id = "lab-07-compiler"
    title = "Lab 7: What does a compiler change?"
    purpose = (
        "A compiler turns the operators of a network into fewer kernels and chooses how each one runs. "
        "Find out what that was worth on one core of a server, which part of it was the fusing of kernels, "
        "and for which networks it was worth nothing."
    )
    scene = CompilerScene
    frames = {"case": tuple(cases()), "how": ("plain", "frozen")}  # noqa: RUF012

    predicts = ("case", "how")

    def _controls(self) -> tuple[Control, ...]:
        known = [(label, label) for label in cases()]
        ways = [("Weights are inputs", "plain"), ("Weights are frozen", "frozen")]
        return (
            choice("case", "Workload", "Network and batch", known, compiler.CASE, "Networks that were measured"),
            choice("how", "Mapping", "What the compiler may assume", ways, "plain", "Whether weights can change"),
        )

    def _arguments(self) -> dict[str, Any]:
        return {"case": self.value("case"), "frozen": self.value("how") == "frozen"}

    def _more(self) -> tuple[Any, ...]:
        self.gap = GapBox(lambda record: self.keep_measurement("gap", record))
        self.here = MeasureHere(self._command, measured_comparison, then=self._show_measured)
        words = (
            f"<p>The picture was measured on one machine. The button runs {_HERE} with a batch of {_HERE_BATCH} on the "
            "machine of this notebook, eager and compiled, with what you chose above; the picture then shows the same "
            "network. It needs PyTorch and a C++ compiler, and can be stopped.</p>"
        )
        return (parts.heading("On your machine"), parts.text(words), self.here.view, self.gap.view)

    def _show_measured(self, record: dict[str, Any]) -> None:
        """Keep the measurement, and show the stored one of the same network."""
        self.measurements.pop("gap", None)
        self.keep_measurement("compile-bench", record)
        self._restored()
        if self.locked:
            self._set({"case": _HERE_CASE, "how": "frozen" if record["frozen"] else "plain"})

    def _restored(self) -> None:
        record = self.measurements.get("compile-bench")
        self.gap.ask(
            compile_gap(_plain(record)) if record else None, self.measurements.get("gap", {}).get("explanation", "")
        )

    def _guessed(self, given: Any) -> tuple[float, ...]:
        """Return the range of compiled times, as long as drawn, that a range of speedups means."""
        low, high = compiler.band(given)
        assert self.view is not None
        return tuple(self.view.values["eager"] / max(factor, 1e-3) for factor in (low, high))

    def _measured_at(self) -> float | None:
        record = self.measurements.get("compile-bench")
        if not record or self.value("case") != _HERE_CASE or (self.value("how") == "frozen") != record["frozen"]:
            return None
        assert self.view is not None
        return float(self.view.values["eager"] / CompileResult.from_record(_plain(record)).speedup.value)

    def _command(self) -> list[str]:
        freeze = ["--freeze"] if self.value("how") == "frozen" else []
        sizes = ["--batch", str(_HERE_BATCH), "--repeats", "15"]
        return this_python("compile-bench", _HERE, *sizes, "--json", *freeze)


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """Return a kept record without the time at which it was kept."""
    return {name: value for name, value in record.items() if name != "at"}


def measured_comparison(record: dict[str, Any]) -> str:
    """Return a sentence that compares the measurement on the reader's machine with the stored one."""
    mine = CompileResult.from_record(record)
    theirs, _ = stored(_HERE_CASE, mine.frozen)
    how = "its weights frozen" if mine.frozen else "its weights as inputs"
    guess = f", predicted {times(mine.predicted.speedup)}" if mine.predicted is not None else ""
    doubts = f" Doubts: {'; '.join(mine.warnings)}." if mine.warnings else ""
    return (
        f"Here {_HERE_CASE}, {how}, runs {times(mine.speedup.value)} as fast (between {number(mine.speedup.low)} and "
        f"{times(mine.speedup.high)}{guess}), {mine.operators} kernels became {mine.kernels}, compiled in "
        f"{number(mine.compile_seconds)} s. In the picture the same network runs {times(theirs.speedup.value)} as "
        f"fast.{doubts}"
    )
