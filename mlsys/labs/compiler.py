"""The lab on compilation. Every number in a question or an answer comes from the stored measurements."""

import math
from functools import cache, partial

from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.viz.compiler import time_text
from mlsys.viz.views.compiler import stored
from mlsys.viz.views.view import number, percent, times

CASE = "resnet50, batch 1"
_TINY = "mlp, batch 1"
_SMALL_CALLS = ((_TINY, False), (_TINY, True), ("small-cnn, batch 1", False), ("resnet18, batch 1", False))
"""Networks of which some lose, some gain and some keep their time, and whether their weights are frozen."""
_COUNTED = {  # convolutions, what follows each, activations, additions, what cannot be fused
    "resnet18, batch 1": (20, "17 ReLU, 8 additions, two pools and one product", 3),
    "resnet50, batch 1": (53, "49 ReLU, 16 additions, two pools and one product", 3),
    "mobilenet-v2, batch 1": (52, "35 ReLU6, 10 additions, one mean and one product", 2),
}
_LADDERS = ("resnet18, batch 1", "resnet50, batch 1", "resnet50, batch 8", "mobilenet-v2, batch 1")
_FEWER = ("resnet18, batch 1", "resnet18, batch 8", "resnet50, batch 1", "resnet50, batch 8", "mobilenet-v2, batch 1")
_PREDICTED = (
    "resnet18, batch 1", "resnet18, batch 8", "mobilenet-v2, batch 1", "mobilenet-v2, batch 8",
    "efficientnet-b0, batch 8", "vit-b16, batch 1", "bert-base, batch 1",
)  # fmt: skip
_BANDS = ((0.0, 0.9), (0.9, 1.3), (1.3, 1.8), (1.8, 2.6), (2.6, math.inf))
_SERVED = ("resnet18, batch 1", "mobilenet-v2, batch 1", "efficientnet-b0, batch 8", "mlp, batch 256")
_CALLS = {
    "resnet18, batch 1": (2400, 4300, 6700), "mobilenet-v2, batch 1": (3400, 5300, 8700),
    "efficientnet-b0, batch 8": (340, 520, 730), "mlp, batch 256": (34_000, 67_000, 86_000),
}  # fmt: skip
"""Networks of the design task, and calls in a day."""
_PAID = (  # networks whose compiling pays, and whether their weights are frozen
    ("small-cnn, batch 64", True), ("small-cnn, batch 64", False), ("resnet18, batch 1", True),
    ("resnet18, batch 8", True), ("resnet18, batch 8", False), ("mobilenet-v2, batch 1", True),
    ("mobilenet-v2, batch 8", True), ("mobilenet-v2, batch 8", False), ("efficientnet-b0, batch 8", True),
    ("efficientnet-b0, batch 8", False),
)  # fmt: skip


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    case = draw.pick("predicted", _PREDICTED)
    frozen, plain = stored(case, True)[0], stored(case, False)[0]
    ratio = frozen.speedup
    return ChoiceQuestion(
        "prediction",
        f"{case.replace(', ', ' at ')}, runs in {frozen.operators} kernels on one core. Compiled, with its weights "
        f"frozen, it runs in {frozen.kernels}. How many times as fast is it?",
        f"Measured were {times(ratio.value)}, between {number(ratio.low)} and {times(ratio.high)}, and "
        f"{times(plain.speedup.value)} where the weights stay inputs. It has "
        f"{times(frozen.operators / frozen.kernels)} fewer kernels, but launches are a small part of the time: what "
        "counts is how fast the kernels are that stay.",
        choices=tuple(Choice(_band(low, high), right=low <= ratio.value < high) for low, high in _BANDS),
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    return {"case": draw.pick("predicted", _PREDICTED), "how": "frozen"}


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    factories = (_tiny, _fewest, _break_even, _product, _thirds, _at_run_time, _noise)
    return tuple(make(draw) for make in factories)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: how to run each network of a day."""
    calls = tuple(draw.pick(f"calls {case}", _CALLS[case]) for case in _SERVED)
    updates, room = draw.pick("updates", (9, 13, 19)), draw.pick("room", (57, 76, 94, 118))
    listed = "; ".join(f"{case}, {count:,} calls" for case, count in zip(_SERVED, calls, strict=True))
    ways = (("Eager", "eager"), ("Compiled, weights as inputs", "plain"), ("Compiled, weights frozen", "frozen"))
    names = ("first", "second", "third", "fourth")
    return (
        Design(
            "day",
            f"One core serves in a day: {listed}. The weights of {_SERVED[0]} change {updates} times a day, and a "
            f"network "
            f"whose weights are frozen is compiled at each change. No more than {room} s may be spent compiling. "
            f"Choose "
            "how each network runs, so that the core is busy for the shortest time.",
            tuple(Knob(name, case, ways) for name, case in zip(names, _SERVED, strict=True)),
            partial(_day, calls, updates, room),
        ),
    )


@cache
def _day(calls: tuple[int, ...], updates: int, room: int, first: str, second: str, third: str, fourth: str) -> Built:
    total, compiling = 0.0, 0.0
    for nth, (case, count, how) in enumerate(zip(_SERVED, calls, (first, second, third, fourth), strict=True)):
        result = stored(case, how == "frozen")[0]
        each = (result.eager if how == "eager" else result.compiled).median.m_as("s")
        times_compiled = 0 if how == "eager" else updates if how == "frozen" and not nth else 1
        compiling += times_compiled * result.compile_seconds
        total += count * each + times_compiled * result.compile_seconds
    summary = f"The day takes {number(total / 60)} minutes of the core, {number(compiling)} s of them compiling."
    return Built(total, summary, f"No more than {room} s may be spent compiling." if compiling > room else "")


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    plain, (frozen, ladder) = stored(CASE, False)[0], stored(CASE, True)
    tiny = stored(_TINY, False)[0]
    assert ladder is not None
    written = " · ".join(f"{factor.value:.2f}" for factor in ladder.factors)
    return WrapUp(
        (
            Finding(
                f"ResNet-50 went from {frozen.operators} to {frozen.kernels} kernels and ran "
                f"{times(frozen.speedup.value)} as fast with its weights frozen, {times(plain.speedup.value)} with "
                "its weights as inputs.",
                f"from mlsys.viz.views.compiler import stored\nstored({CASE!r}, True)[0].speedup.value",
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


def band(answer: str) -> tuple[float, float]:
    """Return the ends of the predicted range of speedups."""
    return next(ends for ends in _BANDS if _band(*ends) == answer)


def _band(low: float, high: float) -> str:
    if not low:
        return f"Slower than before, below {high:g}×"
    return f"More than {low:g}×" if high == math.inf else f"{low:g}× to {high:g}×"


def _tiny(draw: Draw) -> Question:
    case, frozen = draw.pick("tiny", _SMALL_CALLS)
    result = stored(case, frozen)[0]
    call, ratio = result.eager.median.m_as("s"), result.speedup
    entry, launches = result.rates.entry / call, result.operators * result.rates.launch / call
    why = (
        f"{result.operators} operators became {result.kernels} kernels, launches were {percent(launches)} of the eager"
    )
    if ratio.high < 1:
        why = (
            f"Entering compiled code costs {percent(entry)} of the whole eager call: guards check shapes and types "
            "first. So little work cannot pay for that."
        )
    elif ratio.low > 1:
        why += f" call, and entering compiled code, where guards check shapes and types, costs {percent(entry)} of it."
    else:
        why += " call, so that launching fewer of them cannot show. The interval holds 1×."
    return ChoiceQuestion(
        "tiny",
        f"Set {case} with {_how(frozen)}: {result.operators} operators, {time_text(call)} a call. What does "
        "compiling do to the time of a call?",
        f"It is {times(ratio.value)} as fast, between {number(ratio.low)} and {times(ratio.high)}. {why}",
        setting={"case": case, "how": "frozen" if frozen else "plain"},
        choices=(
            Choice("It is faster: less to launch", "There is less to launch. How much of a call was that, and what "
                   "must happen at each call before compiled code may run?", ratio.low > 1),
            Choice("No difference beyond the noise", "Read the interval in the sentence below the picture: does it "
                   "hold 1×?", ratio.low <= 1 <= ratio.high),
            Choice("It is slower: entering costs more than it saves", "Read the interval in the sentence below the "
                   "picture: does it lie below 1×?", ratio.high < 1),
        ),
    )  # fmt: skip


def _how(frozen: bool) -> str:
    return "frozen weights" if frozen else "weights as inputs"


def _fewest(draw: Draw) -> Question:
    case = draw.pick("fewest", tuple(_COUNTED))
    convolutions, others, unfused = _COUNTED[case]
    result = stored(case, True)[0]
    assert result.predicted is not None
    fewest = result.predicted.kernels
    return NumberQuestion(
        "fewest",
        f"{case.partition(',')[0]} has {convolutions} convolutions, each with a normalisation, {others}. "
        "If each convolution is fused with whatever follows it, how many kernels are left?",
        f"{convolutions} convolutions, each with all that follows it, and the {unfused} operators that follow none "
        f"make {fewest}. The compiler needed {result.kernels}: it also turns the image and adds the last bias.",
        setting={"case": case, "how": "frozen"},
        answer=float(fewest),
        unit="kernels",
        tolerance=0.0,
        hint="Cross out what follows a convolution; what is left is counted.",
        slips=((float(convolutions), "Nearly. What of the list does not follow a convolution directly, or computes "
                "too much to be fused with it?"),
               (float(result.operators), "So many there are before anything is fused."),
               (float(result.kernels), "So many the compiler needed. Which of them would the rule leave?")),
    )  # fmt: skip


def _break_even(draw: Draw) -> Question:
    case, frozen = draw.pick("break-even", _PAID)
    result = stored(case, frozen)[0]
    gain = (result.eager.median - result.compiled.median).m_as("s")
    return NumberQuestion(
        "break-even",
        f"Set {case} with {_how(frozen)}. After how many calls has compiling paid?",
        f"{number(result.compile_seconds)} s of compiling, divided by {number(gain * 1e3)} ms that each "
        f"call saves, are {number(result.break_even)} calls. A network called less often is better left alone.",
        setting={"case": case, "how": "frozen" if frozen else "plain"},
        answer=result.break_even,
        unit="calls",
        tolerance=0.05,
        hint="Divide the time that compiling takes by what one call saves: both times stand in the picture.",
        slips=((result.compile_seconds / result.eager.median.m_as("s"), "A call does not save all of its eager time."),
               (result.compile_seconds / result.compiled.median.m_as("s"), "Divide by what a call saves, not by "
                "what it takes.")),
    )  # fmt: skip


def _product(draw: Draw) -> Question:
    case = draw.pick("product", _LADDERS)
    _, ladder = stored(case, True)
    assert ladder is not None
    factors = [factor.value for factor in ladder.factors]
    total = ladder.total.value
    summed = 1 + sum(factor - 1 for factor in factors)
    written = " · ".join(f"{factor:.2f}" for factor in factors)
    return ChoiceQuestion(
        "product",
        f"Set {case}. How do the factors beside the passes give the factor of all passes?",
        f"{written} = {total:.2f}: each is a ratio of two neighbouring times, so all between the first and the last "
        f"cancel. Adding what each gains would give {summed:.2f}.",
        setting={"case": case},
        choices=(
            Choice("They multiply", right=True),
            Choice("What each gains above one adds up", "Add them, and compare with the last line of the picture."),
            Choice("The largest one counts", "The others change the time as well; the bars say by how much."),
        ),
    )


def _thirds(draw: Draw) -> Question:
    case = draw.pick("thirds", _FEWER)
    result = stored(case, True)[0]
    launches = result.operators * result.rates.launch
    share = launches / result.eager.median.m_as("s")
    kernels = result.operators / result.kernels
    return ChoiceQuestion(
        "thirds",
        f"A text says of {case}, with frozen weights: “The compiler leaves {percent(1 / kernels)} of the kernels, so "
        f"the network runs {times(kernels)} as fast.” What is wrong?",
        f"{result.operators} launches at {number(result.rates.launch * 1e6)} µs are {number(launches * 1e3)} ms, "
        f"{percent(share)} of the eager time. Without any launch the network would be "
        f"{times(1 / (1 - share))} as fast; the rest comes from layouts, better kernels and bytes that stay in "
        f"a cache.",
        in_app=False,
        choices=(
            Choice(NOTHING, "Compare kernels and times in the picture of this network: do they shrink alike?",
                   result.speedup.value >= kernels),
            Choice("Time goes to work and bytes, not to launches", right=share < 0.1),
            Choice("Fusing makes single kernels slower", "A fused kernel does more, and saves bytes. What is a launch "
                   "worth, in microseconds?"),
        ),
    )  # fmt: skip


def _at_run_time(draw: Draw) -> Question:
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


def _noise(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    ratio, low, high = draw.pick("noise", ((1.03, 0.96, 1.11), (1.06, 0.94, 1.16), (1.07, 0.93, 1.17)))
    return ChoiceQuestion(
        "noise",
        f"A report says: “Compiled, the network ran {ratio}× as fast; the interval of the repeated measurement goes "
        f"from {low}× to {high}×. We cannot say that compiling helped.” What is wrong?",
        "The interval holds 1×, so the measurement agrees with no gain and with a small loss as well. More "
        "repeats, or a "
        "quieter machine, could tell.",
        in_app=False,
        choices=(
            Choice(f"{ratio} is more than 1, so it helped", "Had they measured again, what else could have come out?"),
            Choice("They should report the best of all runs", "The best of two sets of runs has noise as well, and "
                   "hides how much."),
            Choice(NOTHING, right=True),
        ),
    )  # fmt: skip
