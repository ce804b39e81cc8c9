"""The lab on compilation. Every number in a question or an answer comes from the stored measurements."""

from __future__ import annotations

import math
from typing import Any

from mlsys.bench.result import CompileResult
from mlsys.viz.views.compiler import CompilerScene, cases, stored
from mlsys.viz.views.view import number, percent, times
from mlsys.widgets import parts
from mlsys.widgets.lab import Lab
from mlsys.widgets.measure import MeasureHere, this_python
from mlsys.widgets.parts import Control, choice, slider
from mlsys.widgets.questions import Choice, ChoiceQuestion, NumberQuestion, Question

__all__ = ["CompilerLab"]

_CASE = "resnet50, batch 1"
_TINY = "mlp, batch 1"
_HERE, _HERE_BATCH = "small-cnn", 64
_BANDS = ((0.0, 0.9), (0.9, 1.3), (1.3, 1.8), (1.8, 2.6), (2.6, math.inf))


class CompilerLab(Lab):
    """Predict, explore and check what ``torch.compile`` was worth, and measure it again on your own machine.

    Examples
    --------
    >>> lab = CompilerLab()
    >>> lab.predict(lab.prediction.listed()[1])
    >>> lab.view.values["result"].model
    'resnet50'
    """

    id = "lab-07-compiler"
    title = "Lab 7: What does a compiler change?"
    purpose = (
        "A compiler turns the operators of a network into fewer kernels and chooses how each one runs. "
        "Find out what that was worth on one core of a server, which part of it was the fusing of kernels, "
        "and for which networks it was worth nothing."
    )
    scenario = {"case": _CASE, "how": "frozen"}  # noqa: RUF012

    def _prediction(self) -> Question:
        frozen, plain = stored(_CASE, True)[0], stored(_CASE, False)[0]
        ratio = frozen.speedup
        why = (
            f"measured were {times(ratio.value)}, between {number(ratio.low)} and {times(ratio.high)}, and "
            f"{times(plain.speedup.value)} where the weights stay inputs. Kernels shrink by "
            f"{times(frozen.operators / frozen.kernels)}, but a kernel's launch is a small part of its time."
        )
        return ChoiceQuestion(
            "prediction",
            f"ResNet-50 runs in {frozen.operators} kernels, one image at a time, on one core. Compiled, with its "
            f"weights frozen, it runs in {frozen.kernels}. How many times as fast is it?",
            choices=tuple(
                Choice(
                    _band(low, high),
                    f"You predicted it, and so it is: {why}" if low <= ratio.value < high else f"It is not: {why}",
                    low <= ratio.value < high,
                )
                for low, high in _BANDS
            ),
        )

    def _controls(self) -> tuple[Control, ...]:
        known = [(label, label) for label in cases()]
        ways = [("Weights are inputs", "plain"), ("Weights are frozen", "frozen")]
        return (
            slider("case", "Workload", "Network and batch", known, _CASE, "Networks that were measured"),
            choice("how", "Mapping", "What the compiler may assume", ways, "plain", "Whether weights can change"),
        )

    def _make_scene(self) -> CompilerScene:
        return CompilerScene()

    def _parameters(self, **values: Any) -> dict[str, Any]:
        return {"case": values["case"], "frozen": values["how"] == "frozen"}

    def _questions(self) -> tuple[Question, ...]:
        return (_tiny(), _fewest(), _break_even(), _product(), _thirds(), _at_run_time())

    def _build(self) -> None:
        super()._build()
        self.here = MeasureHere(self._command, told_here)
        words = (
            f"<p>The picture was measured on one machine. The button runs {_HERE} with a batch of {_HERE_BATCH} on the "
            "machine of this notebook, eager and compiled, with what you chose above. It needs PyTorch and a C++ "
            "compiler, and can be stopped.</p>"
        )
        own = [parts.heading("On your machine"), parts.text(words), self.here.view]
        self.root.children = (*self.root.children[:-1], *own, self.root.children[-1])

    def _command(self) -> list[str]:
        freeze = ["--freeze"] if self.controls["how"].value == "frozen" else []
        sizes = ["--batch", str(_HERE_BATCH), "--repeats", "15"]
        return this_python("compile-bench", _HERE, *sizes, "--json", *freeze)


def _band(low: float, high: float) -> str:
    if not low:
        return f"Slower than before, below {high:g}×"
    return f"More than {low:g}×" if high == math.inf else f"{low:g}× to {high:g}×"


def told_here(record: dict[str, Any]) -> str:
    """Return in a sentence what was measured on the reader's machine, beside the stored measurement."""
    mine = CompileResult.from_record(record)
    theirs, _ = stored(f"{_HERE}, batch {_HERE_BATCH}", mine.frozen)
    guess = f", predicted {times(mine.predicted.speedup)}" if mine.predicted is not None else ""
    doubts = f" Doubts: {'; '.join(mine.warnings)}." if mine.warnings else ""
    return (
        f"Here: {times(mine.speedup.value)} as fast (between {number(mine.speedup.low)} and {times(mine.speedup.high)}"
        f"{guess}), {mine.operators} kernels became {mine.kernels}, compiled in {number(mine.compile_seconds)} s. "
        f"In the picture: {times(theirs.speedup.value)}.{doubts}"
    )


def _tiny() -> Question:
    found = stored(_TINY, False)[0]
    entry = found.rates.entry / found.eager.median.m_as("s")
    sum_ = (
        f"It is {times(found.speedup.value)} as fast. Entering compiled code costs {percent(entry)} of the whole eager "
        "call: guards check shapes and types first. So little work cannot pay for that."
    )
    high = found.speedup.high
    return ChoiceQuestion(
        "tiny",
        f"Set {_TINY}, three small operators. What does compiling do to it?",
        choices=(
            Choice("It is faster: less to launch", sum_, found.speedup.low > 1),
            Choice("No difference beyond the noise", sum_, found.speedup.low <= 1 <= high),
            Choice("It is slower: entering costs more than the work", sum_, high < 1),
        ),
    )


def _fewest() -> Question:
    found = stored(_CASE, True)[0]
    assert found.predicted is not None
    fewest = found.predicted.kernels

    def explain(given: float, right: bool) -> str:
        said = "Right" if right else f"You gave {number(given)}"
        return (
            f"{said}: 53 convolutions, each with all that follows it, two pools and one product make {fewest}. "
            f"The compiler needed {found.kernels}: it also turns the image and adds the last bias."
        )

    return NumberQuestion(
        "fewest",
        "ResNet-50 has 53 convolutions, each with a normalisation, 49 ReLU, 16 additions, two pools and one product. "
        "If each convolution takes along whatever follows it, how many kernels are left?",
        answer=float(fewest),
        unit="kernels",
        tolerance=0.0,
        explain=explain,
    )


def _break_even() -> Question:
    found = stored(_CASE, True)[0]
    gain = (found.eager.median - found.compiled.median).m_as("s")

    def explain(given: float, right: bool) -> str:
        said = "Right" if right else f"You gave {number(given)}"
        return (
            f"{said}: {number(found.compile_seconds)} s of compiling, divided by {number(gain * 1e3)} ms that each "
            f"call saves, are {number(found.break_even)} calls. A network called less often is better left alone."
        )

    return NumberQuestion(
        "break-even",
        f"Set {_CASE} with frozen weights. After how many calls has compiling paid?",
        answer=found.break_even,
        unit="calls",
        tolerance=0.05,
        explain=explain,
    )


def _product() -> Question:
    _, ladder = stored(_CASE, True)
    assert ladder is not None
    factors = [factor.value for factor in ladder.factors]
    total = ladder.total.value
    summed = 1 + sum(factor - 1 for factor in factors)
    written = " · ".join(f"{factor:.2f}" for factor in factors)
    sum_ = (
        f"{written} = {total:.2f}: each is a ratio of two neighbouring times, so all between the first and the last "
        f"cancel. Adding what each gains would give {summed:.2f}."
    )
    return ChoiceQuestion(
        "product",
        f"Set {_CASE}. How do the factors beside the passes give the factor of all passes?",
        choices=(
            Choice("They multiply", sum_, True),
            Choice("What each gains above one adds up", sum_, False),
            Choice("The largest one counts", f"It is {max(factors):.2f}; {sum_}", False),
        ),
    )


def _thirds() -> Question:
    found = stored(_CASE, True)[0]
    assert found.predicted is not None
    launches = found.operators * found.rates.launch
    share = launches / found.eager.median.m_as("s")
    kernels = found.operators / found.kernels
    sum_ = (
        f"{found.operators} launches at {number(found.rates.launch * 1e6)} µs are {number(launches * 1e3)} ms, "
        f"{percent(share)} of the eager time. Without any launch the network would be "
        f"{times(1 / (1 - share))} as fast; the rest comes from layouts, better kernels and bytes that stay in a cache."
    )
    return ChoiceQuestion(
        "thirds",
        f"A text says: 'The compiler leaves {percent(1 / kernels)} of the kernels, so the network runs "
        f"{times(kernels)} as fast.' What is wrong?",
        choices=(
            Choice("Nothing", sum_, found.speedup.value >= kernels),
            Choice("Time goes to work and bytes, not to launches", sum_, share < 0.1),
            Choice("Fusing makes single kernels slower", sum_, False),
        ),
        in_app=False,
    )


def _at_run_time() -> Question:
    sum_ = (
        "AutoTVM measures candidates and writes a log; the log is applied when the network is compiled. TensorRT times "
        "its tactics while it builds an engine. At run time the chosen kernels are executed, nothing is searched."
    )
    return ChoiceQuestion(
        "at-run-time",
        "A text says: 'AutoTVM and TensorRT watch the load of the GPU and swap kernels while the network runs.' "
        "What is wrong?",
        choices=(
            Choice("Nothing", sum_, False),
            Choice("They choose ahead of time, by measuring", sum_, True),
            Choice("They choose by a formula, without measuring", sum_, False),
        ),
        in_app=False,
    )
