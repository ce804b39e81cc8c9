"""The lab on compilation. Every number in a question or an answer comes from the stored measurements."""

import math
from typing import Any

from mlsys.bench.result import CompileResult
from mlsys.viz.views.compiler import CompilerScene, cases, stored
from mlsys.viz.views.view import number, percent, times
from mlsys.widgets import parts
from mlsys.widgets.lab import Lab
from mlsys.widgets.measure import MeasureHere, this_python
from mlsys.widgets.parts import Control, choice, slider
from mlsys.widgets.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.widgets.wrapup import Finding, WrapUp

_CASE = "resnet50, batch 1"
_TINY = "mlp, batch 1"
_HERE, _HERE_BATCH = "small-cnn", 64
_HERE_CASE = f"{_HERE}, batch {_HERE_BATCH}"
_BANDS = ((0.0, 0.9), (0.9, 1.3), (1.3, 1.8), (1.8, 2.6), (2.6, math.inf))


class CompilerLab(Lab):
    """Predict, explore and check the speed-up of ``torch.compile``, and measure it on your own machine.

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
    scene = CompilerScene
    scenario = {"case": _CASE, "how": "frozen"}  # noqa: RUF012
    frames = {"case": tuple(cases()), "how": ("plain", "frozen")}  # noqa: RUF012

    def _prediction(self) -> Question:
        frozen, plain = stored(_CASE, True)[0], stored(_CASE, False)[0]
        ratio = frozen.speedup
        return ChoiceQuestion(
            "prediction",
            f"ResNet-50 runs in {frozen.operators} kernels, one image at a time, on one core. Compiled, with its "
            f"weights frozen, it runs in {frozen.kernels}. How many times as fast is it?",
            f"Measured were {times(ratio.value)}, between {number(ratio.low)} and {times(ratio.high)}, and "
            f"{times(plain.speedup.value)} where the weights stay inputs. Kernels shrink by "
            f"{times(frozen.operators / frozen.kernels)}, but a kernel's launch is a small part of its time.",
            choices=tuple(Choice(_band(low, high), right=low <= ratio.value < high) for low, high in _BANDS),
        )

    def _controls(self) -> tuple[Control, ...]:
        known = [(label, label) for label in cases()]
        ways = [("Weights are inputs", "plain"), ("Weights are frozen", "frozen")]
        return (
            slider("case", "Workload", "Network and batch", known, _CASE, "Networks that were measured"),
            choice("how", "Mapping", "What the compiler may assume", ways, "plain", "Whether weights can change"),
        )

    def _arguments(self) -> dict[str, Any]:
        return {"case": self.value("case"), "frozen": self.value("how") == "frozen"}

    def _questions(self) -> tuple[Question, ...]:
        return (_tiny(), _fewest(), _break_even(), _product(), _thirds(), _at_run_time(), _noise())

    def _wrap_up(self) -> WrapUp:
        plain, (frozen, ladder) = stored(_CASE, False)[0], stored(_CASE, True)
        tiny = stored(_TINY, False)[0]
        assert ladder is not None
        written = " · ".join(f"{factor.value:.2f}" for factor in ladder.factors)
        return WrapUp(
            (
                Finding(
                    f"ResNet-50 went from {frozen.operators} to {frozen.kernels} kernels and ran "
                    f"{times(frozen.speedup.value)} as fast with its weights frozen, {times(plain.speedup.value)} with "
                    "its weights as inputs.",
                    f"from mlsys.viz.views.compiler import stored\nstored({_CASE!r}, True)[0].speedup.value",
                ),
                Finding(
                    f"The smallest network came to {times(tiny.speedup.value)}: entering compiled code cost more than "
                    "its work.",
                ),
                Finding(f"The passes multiply: {written} = {ladder.total.value:.2f}."),
            ),
            (
                "Count kernels, but measure time: they do not shrink together.",
                "A compiler that may take the weights for constants can do more; ask which it was.",
                "Compiling costs seconds, entering compiled code costs microseconds: both must be earned back.",
            ),
        )

    def _more(self) -> tuple[Any, ...]:
        self.here = MeasureHere(self._command, told_beside, then=self._show_measured)
        words = (
            f"<p>The picture was measured on one machine. The button runs {_HERE} with a batch of {_HERE_BATCH} on the "
            "machine of this notebook, eager and compiled, with what you chose above; the picture then shows the same "
            "network. It needs PyTorch and a C++ compiler, and can be stopped.</p>"
        )
        return (parts.heading("On your machine"), parts.text(words), self.here.view)

    def _show_measured(self) -> None:
        """Show the stored measurement of the network that was measured here."""
        if self.locked:
            self._set({"case": _HERE_CASE})

    def _command(self) -> list[str]:
        freeze = ["--freeze"] if self.value("how") == "frozen" else []
        sizes = ["--batch", str(_HERE_BATCH), "--repeats", "15"]
        return this_python("compile-bench", _HERE, *sizes, "--json", *freeze)


def _band(low: float, high: float) -> str:
    if not low:
        return f"Slower than before, below {high:g}×"
    return f"More than {low:g}×" if high == math.inf else f"{low:g}× to {high:g}×"


def told_beside(record: dict[str, Any]) -> str:
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


def _tiny() -> Question:
    result = stored(_TINY, False)[0]
    entry = result.rates.entry / result.eager.median.m_as("s")
    high = result.speedup.high
    return ChoiceQuestion(
        "tiny",
        f"Set {_TINY}, three small operators. What does compiling do to it?",
        f"It is {times(result.speedup.value)} as fast. Entering compiled code costs {percent(entry)} of the whole "
        "eager call: guards check shapes and types first. So little work cannot pay for that.",
        setting={"case": _TINY, "how": "plain"},
        choices=(
            Choice("It is faster: less to launch", "There is less to launch. What must happen at each call before "
                   "compiled code may run?", result.speedup.low > 1),
            Choice("No difference beyond the noise", "Read the interval in the sentence below the picture: does it "
                   "hold 1×?", result.speedup.low <= 1 <= high),
            Choice("It is slower: entering costs more than the work", right=high < 1),
        ),
    )  # fmt: skip


def _fewest() -> Question:
    result = stored(_CASE, True)[0]
    assert result.predicted is not None
    fewest = result.predicted.kernels
    return NumberQuestion(
        "fewest",
        "ResNet-50 has 53 convolutions, each with a normalisation, 49 ReLU, 16 additions, two pools and one product. "
        "If each convolution takes along whatever follows it, how many kernels are left?",
        f"53 convolutions, each with all that follows it, two pools and one product make {fewest}. "
        f"The compiler needed {result.kernels}: it also turns the image and adds the last bias.",
        setting={"case": _CASE, "how": "frozen"},
        answer=float(fewest),
        unit="kernels",
        tolerance=0.0,
        hint="Cross out what follows a convolution; what is left is counted.",
        slips=((53.0, "Nearly. What of the list does not follow a convolution directly, or computes too much to ride "
                "along?"), (float(result.operators), "So many there are before anything is fused."),
               (float(result.kernels), "So many the compiler needed. Which of them would the rule leave?")),
    )  # fmt: skip


def _break_even() -> Question:
    result = stored(_CASE, True)[0]
    gain = (result.eager.median - result.compiled.median).m_as("s")
    return NumberQuestion(
        "break-even",
        f"Set {_CASE} with frozen weights. After how many calls has compiling paid?",
        f"{number(result.compile_seconds)} s of compiling, divided by {number(gain * 1e3)} ms that each "
        f"call saves, are {number(result.break_even)} calls. A network called less often is better left alone.",
        setting={"case": _CASE, "how": "frozen"},
        answer=result.break_even,
        unit="calls",
        tolerance=0.05,
        hint="Divide the time that compiling takes by what one call saves: both times stand in the picture.",
        slips=((result.compile_seconds / result.eager.median.m_as("s"), "A call does not save all of its eager time."),
               (result.compile_seconds / result.compiled.median.m_as("s"), "Divide by what a call saves, not by "
                "what it takes.")),
    )  # fmt: skip


def _product() -> Question:
    _, ladder = stored(_CASE, True)
    assert ladder is not None
    factors = [factor.value for factor in ladder.factors]
    total = ladder.total.value
    summed = 1 + sum(factor - 1 for factor in factors)
    written = " · ".join(f"{factor:.2f}" for factor in factors)
    return ChoiceQuestion(
        "product",
        f"Set {_CASE}. How do the factors beside the passes give the factor of all passes?",
        f"{written} = {total:.2f}: each is a ratio of two neighbouring times, so all between the first and the last "
        f"cancel. Adding what each gains would give {summed:.2f}.",
        setting={"case": _CASE},
        choices=(
            Choice("They multiply", right=True),
            Choice("What each gains above one adds up", "Add them, and compare with the last line of the picture."),
            Choice("The largest one counts", "The others change the time as well; the bars say by how much."),
        ),
    )


def _thirds() -> Question:
    result = stored(_CASE, True)[0]
    launches = result.operators * result.rates.launch
    share = launches / result.eager.median.m_as("s")
    kernels = result.operators / result.kernels
    return ChoiceQuestion(
        "thirds",
        f"A text says: “The compiler leaves {percent(1 / kernels)} of the kernels, so the network runs "
        f"{times(kernels)} as fast.” What is wrong?",
        f"{result.operators} launches at {number(result.rates.launch * 1e6)} µs are {number(launches * 1e3)} ms, "
        f"{percent(share)} of the eager time. Without any launch the network would be "
        f"{times(1 / (1 - share))} as fast; the rest comes from layouts, better kernels and bytes that stay in "
        f"a cache.",
        in_app=False,
        choices=(
            Choice(NOTHING, "Compare kernels and times in the picture of ResNet-50: do they shrink alike?",
                   result.speedup.value >= kernels),
            Choice("Time goes to work and bytes, not to launches", right=share < 0.1),
            Choice("Fusing makes single kernels slower", "A fused kernel does more, and saves bytes. What is a launch "
                   "worth, in microseconds?"),
        ),
    )  # fmt: skip


def _at_run_time() -> Question:
    return ChoiceQuestion(
        "at-run-time",
        "A text says: “AutoTVM and TensorRT watch the load of the GPU and swap kernels while the network runs.” "
        "What is wrong?",
        "AutoTVM measures candidates and writes a log; the log is applied when the network is compiled. TensorRT times "
        "its tactics while it builds an engine. At run time the chosen kernels are executed, nothing is searched.",
        in_app=False,
        choices=(
            Choice(NOTHING, "When does AutoTVM write its log, and when does TensorRT build its engine?"),
            Choice("They choose ahead of time, by measuring", right=True),
            Choice("They choose by a formula, without measuring", "Both have a cost model at best to order what they "
                   "try. What do they do with each candidate?"),
        ),
    )  # fmt: skip


def _noise() -> Question:
    """Return the question about a correct statement."""
    return ChoiceQuestion(
        "noise",
        "A report says: “Compiled, the network ran 1.04× as fast; the interval of the repeated measurement goes from "
        "0.97× to 1.12×. We cannot say that compiling helped.” What is wrong?",
        "The interval holds 1×, so the measurement agrees with no gain and with a small loss as well. More "
        "repeats, or a "
        "quieter machine, could tell.",
        in_app=False,
        choices=(
            Choice("1.04 is more than 1, so it helped", "Had they measured again, what else could have come out?"),
            Choice("They should report the best of all runs", "The best of two sets of runs has noise as well, and "
                   "hides how much."),
            Choice(NOTHING, right=True),
        ),
    )  # fmt: skip
