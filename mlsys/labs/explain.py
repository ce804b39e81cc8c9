"""The lab on explaining a measurement. Every number in a question or an answer comes from the stored logs."""

import math
from functools import cache, partial

from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.measure import Attribution
from mlsys.measure.recommend.whatif import amdahl
from mlsys.viz.views.explain import measured
from mlsys.viz.views.view import number, percent, times

SLOW, _FAST, _FAST_INT8, _FAR = "eager, FP32", "litert, FP32", "litert, INT8", "inductor, FP32"
RUNTIMES = {
    "inductor, FP32": "inductor, PyTorch's compiler,", "openvino, FP32": "OpenVINO",
    "onnxruntime, FP32": "ONNX Runtime", "litert, FP32": "LiteRT",
}  # fmt: skip
"""Runtimes that the prediction compares with PyTorch, with their names in words."""
_BANDS = ((0.0, 1.5), (1.5, 3.0), (3.0, 6.0), (6.0, 15.0), (15.0, math.inf))
TENFOLD = 10.0
FASTER = (3.0, 7.0, 14.0, 22.0)
"""Factors that the questions ask about."""
_RUNS = ("inductor, FP32", "openvino, FP32", "onnxruntime, FP32", "openvino, INT8", "onnxruntime, INT8")
_BOTH = {"litert": "LiteRT", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
"""Runtimes that were measured in both formats, with their names in words."""
_COMPUTED = ("onnxruntime, FP32", "litert, FP32")  # runs with a good share of arithmetic
_MOVES = {SLOW: 0, "inductor, FP32": 2, "onnxruntime, FP32": 3, "openvino, FP32": 4, "litert, FP32": 7}
"""Weeks that moving from PyTorch to another runtime takes."""
_STEPS: dict[str, tuple[str, dict[float, int]]] = {
    "compute": ("Arithmetic becomes faster", {1.0: 0, 1.5: 2, 2.0: 4, 4.0: 8}),
    "memory": ("Bytes become faster", {1.0: 0, 2.0: 1, 8.0: 3}),
    "launch": ("Entering kernels becomes faster", {1.0: 0, 2.0: 1, 5.0: 3}),
    "residual": ("The rest becomes faster", {1.0: 0, 1.2: 3, 1.5: 5, 2.5: 9}),
}
"""Label of each cause, and the weeks that each factor takes."""
_PENALTIES = (  # misses of two kinds, cycles of the run, cycles for branches
    (70_000, 6_500, 1_200_000, 55_000), (85_000, 4_500, 1_100_000, 45_000), (75_000, 7_500, 1_400_000, 65_000),
)  # fmt: skip


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    run = compared(draw)
    slow, fast = measured(SLOW), measured(run)
    ratio = slow.total / fast.total
    return ChoiceQuestion(
        "prediction",
        f"PyTorch, as it is, and {RUNTIMES[run]} run the same network with the same weights on the same core, and give "
        f"the same answers. How many times as fast is {RUNTIMES[run]}?",
        f"Measured were {number(1e3 * slow.total)} µs and {number(1e3 * fast.total)} µs: {times(ratio)}. The "
        "arithmetic is the same; what differs is how well its kernels do it, and how much is done besides.",
        choices=tuple(Choice(_band(low, high), right=low <= ratio < high) for low, high in _BANDS),
    )


def compared(draw: Draw) -> str:
    """Return the runtime that the prediction compares with PyTorch."""
    return draw.pick("compared", tuple(RUNTIMES))


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    return {"run": SLOW, "cause": "memory", "factor": TENFOLD}


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    factories = (_rest, _bandwidth, _arithmetic, _int8, _tail, _penalties, _undecided)
    return tuple(make(draw) for make in factories)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: weeks of work on a runtime and on its parts."""
    weeks = draw.pick("weeks", (8, 9, 11, 13))
    return (
        Design(
            "weeks",
            f"You have {weeks} weeks to make DS-CNN fast. Moving to another runtime takes some of them, and so does "
            f"each part "
            "that you make faster; a part that is small gains little. Spend them so that a run takes the shortest "
            "time. "
            "What is not explained can be made smaller as well, but that takes the longest.",
            (
                Knob("run", "Runtime and format", tuple((_priced(run, cost), run) for run, cost in _MOVES.items())),
                *(
                    Knob(cause, label, tuple((_priced(f"{factor:g}×", cost), factor) for factor, cost in steps.items()))
                    for cause, (label, steps) in _STEPS.items()
                ),
            ),
            partial(_spent, weeks),
        ),
    )


def _priced(label: str, weeks: int) -> str:
    return f"{label} ({weeks} week{'' if weeks == 1 else 's'})" if weeks else label


@cache
def _spent(weeks: int, run: str, **factors: float) -> Built:
    attribution = measured(run)
    cost = _MOVES[run] + sum(_STEPS[cause][1][factor] for cause, factor in factors.items())
    shares = attribution.shares
    left = sum(share / 100 / factors.get(cause, 1.0) for cause, share in shares.items())
    time = attribution.total * left
    summary = (
        f"{cost} week{'' if cost == 1 else 's'} bring a run of {number(1e3 * attribution.total)} µs to "
        f"{number(1e3 * time)} µs, {times(1 / left)} as fast."
    )
    return Built(time, summary, f"There are only {weeks} weeks." if cost > weeks else "")


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    slow, fast, small = (measured(name) for name in (SLOW, _FAST, _FAST_INT8))
    return WrapUp(
        (
            Finding(
                f"The slowest runtime took {times(slow.total / fast.total)} as long as the fastest, for the same "
                "arithmetic and the same answer.",
                f"from mlsys.viz.views.explain import measured\nmeasured({SLOW!r}).total / measured({_FAST!r}).total",
            ),
            Finding(
                f"Arithmetic and bytes explain {percent(_explained(slow), 3)} of the slowest run and "
                f"{percent(_explained(fast), 3)} of the fastest.",
            ),
            Finding(f"INT8 took {times(small.total / fast.total)} the time of FP32 on the fastest runtime."),
        ),
        (
            "Measure the machine's own rates first: a bound from a data sheet explains another machine.",
            "Keep what is not explained as a residual with a name of its own; never call the rest 'compute'.",
            "A change gains at most what Amdahl's law allows for the share that it touches.",
            "A promise in percent is a hypothesis: judge it on your network, with an interval and repeated runs.",
        ),
    )


def _explained(attribution: Attribution) -> float:
    return (attribution.shares["compute"] + attribution.shares["memory"]) / 100


def band(answer: str) -> tuple[float, float]:
    """Return the ends of the predicted range of speedups."""
    return next(ends for ends in _BANDS if _band(*ends) == answer)


def _band(low: float, high: float) -> str:
    if not low:
        return f"Less than {high:g}×"
    return f"More than {low:g}×" if high == math.inf else f"{low:g}× to {high:g}×"


def _rest(draw: Draw) -> Question:
    run = draw.pick("rest", _RUNS)
    shares = measured(run).shares
    known = [shares[cause] for cause in ("compute", "launch")]
    return NumberQuestion(
        "rest",
        f"Set “{run}”. How much of its time is left when arithmetic, bytes and entering kernels are taken off?",
        f"{number(shares['residual'], 3)} % are not explained by any of the three: work beside the kernels, and "
        "kernels that are far from any bound.",
        setting={"run": run},
        answer=shares["residual"],
        unit="%",
        tolerance=0.04,
        most=100.0,
        hint="The crossed part of the upper bar below; the sentence under the picture gives all four parts.",
        slips=((known[0], "That is the arithmetic. What is left when all that is known is taken off?"),
               (sum(known), "So much is explained. The question is what is left.")),
    )  # fmt: skip


def _bandwidth(draw: Draw) -> Question:
    run, factor = draw.pick("bandwidth", (SLOW, *_RUNS, _FAST)), draw.pick("bandwidth factor", FASTER)
    share = measured(run).shares["memory"] / 100
    return ChoiceQuestion(
        "bandwidth",
        f"Set “{run}”, bytes, {factor:g}×. “The network is slow because of memory; {factor:g} times the bandwidth "
        "would help.” How much faster does the whole become?",
        f"Bytes are {percent(share, 2)} of the time, so that even endless bandwidth would gain no more than that. "
        "The whole network fits into a cache.",
        setting={"run": run, "cause": "memory", "factor": factor},
        choices=(
            Choice(f"Nearly {factor:g} times as fast", "That would need nearly all of the time to be spent on bytes. "
                   "How much is?"),
            Choice("About twice as fast", "Half of the time would have to be bytes; look for their part in the "
                   "picture."),
            Choice("Faster by less than a fiftieth", right=share < 0.02),
        ),
    )  # fmt: skip


def _arithmetic(draw: Draw) -> Question:
    run, factor = draw.pick("arithmetic", _COMPUTED), draw.pick("factor", FASTER)
    share = measured(run).shares["compute"] / 100
    answer = amdahl(share, factor)
    return NumberQuestion(
        "arithmetic",
        f"Set “{run}”. How many times as fast does the whole become when its arithmetic becomes {factor:g}× as fast?",
        f"1 / ({number(1 - share)} + {number(share)} / {factor:g}) = {number(answer)}: what is not arithmetic "
        "stays, and soon it is most of the time.",
        setting={"run": run, "cause": "compute", "factor": factor},
        answer=answer,
        unit="×",
        tolerance=0.03,
        least=1.0,
        hint="One part shrinks, the others stay; divide the old whole by the new one.",
        slips=((factor, "Only one part of the time becomes so much shorter."),
               (1 / (1 - share), "So much it would be if arithmetic took no time at all.")),
    )  # fmt: skip


def _int8(draw: Draw) -> Question:
    runtime = draw.pick("int8", tuple(_BOTH))
    names = f"{runtime}, FP32", f"{runtime}, INT8"
    plain, small = (measured(name) for name in names)
    longer = small.total / plain.total - 1
    return ChoiceQuestion(
        "int8",
        f"Set “{names[0]}”, then “{names[1]}”. INT8 products are several times as fast on this core, and weights take "
        f"a quarter of the bytes. What became of the time with {_BOTH[runtime]}?",
        f"It went from {number(1e3 * plain.total)} µs to {number(1e3 * small.total)} µs. Arithmetic went from "
        f"{percent(plain.shares['compute'] / 100, 2)} to {percent(small.shares['compute'] / 100, 2)} of the whole, but "
        "requantising every output and small depthwise kernels took more than it had saved.",
        setting={"run": names[1]},
        choices=(
            Choice("It became shorter", "Compare the two times in the picture, not the two rates.", longer < 0),
            Choice("It became longer, by less than a tenth", "Divide the two times that the picture gives.",
                   0.05 < longer < 0.1),
            Choice("It became longer, by more than a tenth", "How much longer is it, as a share of the time with FP32?",
                   longer > 0.1),
        ),
    )  # fmt: skip


def _tail(draw: Draw) -> Question:
    late = draw.pick("tail", (0.07, 0.13, 0.17))
    return ChoiceQuestion(
        "tail",
        f"A report says: “We ran 100 inferences; the 99th percentile is {late} ms, so at most one request in a hundred "
        "waits longer.” What is wrong?",
        "Among 100 samples one lies above that value: the estimate hangs on a single interrupt, and the next hundred "
        "will give another. A thousand samples hold ten such values.",
        in_app=False,
        choices=(
            Choice(NOTHING, "How many of the samples lie above that percentile? Would others lie there next time?"),
            Choice("One sample in the tail cannot tell it", right=True),
            Choice("They should have taken the mean", "A mean says nothing about the slowest requests. What does the "
                   "99th percentile of so few samples rest on?"),
        ),
    )  # fmt: skip


def _penalties(draw: Draw) -> Question:
    near, far, cycles, branches = draw.pick("penalties", _PENALTIES)
    total = 10 * near + 100 * far + branches
    return ChoiceQuestion(
        "penalties",
        f"A tool counts {near:,} misses at 10 cycles and {far:,} at 100 cycles in a run of {cycles:,} cycles, adds "
        f"{branches:,} cycles for branches, and reports the remainder as compute. What is wrong?",
        f"The penalties add up to {total:,} cycles, so that compute would be negative. Misses overlap with each "
        "other and with arithmetic; a remainder is a residual, not a measurement of compute.",
        in_app=False,
        choices=(
            Choice(NOTHING, "Add the penalties up, and compare them with the cycles of the run."),
            Choice("The penalties are too small for this core", "With larger penalties even less would be left. What "
                   "do two misses at the same time cost?"),
            Choice("Penalties overlap, and what is left was not measured", right=total > cycles),
        ),
    )  # fmt: skip


def _undecided(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    spread, apart = draw.pick("undecided", ((11, 4), (14, 6), (17, 7)))
    return ChoiceQuestion(
        "undecided",
        f"A report says: “The medians of three repeated runs lie {spread} % apart, and the two runtimes differ "
        f"by {apart} %. We cannot say which one is faster.” What is wrong?",
        "A difference below the spread between whole runs may come out the other way next time, however "
        "narrow the interval within one run is.",
        in_app=False,
        choices=(
            Choice(f"Within each run the interval is narrow, so {apart} % count",
                   "An interval within a run knows nothing of "
                   "what changes between runs. What would a fourth run show?"),
            Choice("They should report the fastest of the three runs", "The fastest run has luck in it, of both "
                   "runtimes. Which of the two had more?"),
            Choice(NOTHING, right=True),
        ),
    )  # fmt: skip
