"""The lab on Amdahl's law. Every number in a question or an answer is computed here from the formulas."""

import math
from functools import partial

from mlsys import Hardware
from mlsys.formulas import (
    amdahl_ceiling,
    amdahl_speedup,
    device_bound_fraction,
    required_parallel_fraction,
    serial_share,
)
from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.units import Q_
from mlsys.viz.views.view import number, percent, times

_PORTING = {0.8: 0, 0.85: 1, 0.88: 2, 0.91: 4, 0.93: 6, 0.94: 8, 0.96: 12}  # months by share
_INTEGRATING = {4: 0, 6: 1, 9: 2, 14: 4, 25: 6, 60: 9}  # months by speedup


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    program, accelerator = _program(draw)
    host = serial_share(program, accelerator)
    return NumberQuestion(
        "prediction",
        f"A program spends {percent(program)} of its time in a part that an accelerator runs "
        f"{times(accelerator)} as fast. The rest stays on the host. How many times as fast is the whole program?",
        f"The {percent(1 - program)} that stays on the host is not accelerated: after the change it takes "
        f"{percent(host)} of the run time. "
        f"Even an accelerator of infinite speed gives {times(amdahl_ceiling(program))}.",
        answer=amdahl_speedup(program, accelerator).m_as(""),
        unit="×",
        tolerance=0.05,
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    program, accelerator = _program(draw)
    return {"share": program, "speedup": accelerator}


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    factories = (_profile, _upgrade, _bottleneck, _waiting, _sparse_peak, _banner, _five)
    return tuple(make(draw) for make in factories)


def _program(draw: Draw) -> tuple[float, int]:
    """Return the accelerated share and the speedup of the lab's program."""
    return draw.pick("share", (0.91, 0.92, 0.94)), draw.pick("speedup", (45, 70, 85))


def _more(draw: Draw) -> float:
    """Return the share after more of the program was moved."""
    return round(_program(draw)[0] + 0.02, 2)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: how to spend the months of a team."""
    budget = draw.pick("budget", (9, 11, 13, 14))
    return (
        Design(
            "months",
            f"Your program may move 80% of its time to an accelerator of 4× as it stands. Your team has {budget} "
            "months: porting code raises the share, integrating a newer accelerator raises S. Spend them so that the "
            "whole program runs as fast as it can.",
            (
                Knob("share", "Share that is moved", tuple((_months(percent(s), m), s) for s, m in _PORTING.items())),
                Knob("speedup", "Accelerator", tuple((_months(times(s), m), s) for s, m in _INTEGRATING.items())),
            ),
            partial(_spent, budget),
        ),
    )


def _months(text: str, months: int) -> str:
    return f"{text}, {months} month{'' if months == 1 else 's'}" if months else f"{text}, as it is"


def _spent(budget: int, share: float, speedup: int) -> Built:
    months, total = _PORTING[share] + _INTEGRATING[speedup], amdahl_speedup(share, speedup)
    fault = f"That is more than {budget} months." if months > budget else ""
    return Built(1 / total.m_as(""), f"The program runs {times(total)} as fast, after {months} months.", fault)


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    program, accelerator = _program(draw)
    faster, more = 3 * accelerator, _more(draw)
    chip, host = Hardware.Cloud.H100, Q_(8, "TOP/s")
    dense, sparse = ((chip.peak("int8", kind) / host).to("") for kind in ("dense", "2:4"))
    return WrapUp(
        (
            Finding(
                f"The program of your prediction runs {times(amdahl_speedup(program, accelerator))} as fast, far "
                f"below the {times(accelerator)} of its accelerator, because "
                f"{percent(serial_share(program, accelerator))} of the new run time is host time. "
                f"Its ceiling is {times(amdahl_ceiling(program))}.",
                f"from mlsys.formulas import amdahl_speedup\namdahl_speedup({program}, {accelerator})",
            ),
            Finding(
                "There were two ways to spend an engineer's year. An accelerator three times as fast leads to "
                f"{times(amdahl_speedup(program, faster))}, moving {percent(more)} of the program to "
                f"{times(amdahl_speedup(more, accelerator))}.",
                f"from mlsys.formulas import amdahl_speedup\namdahl_speedup({more}, {accelerator})",
            ),
            Finding(
                f"The printed S came from the wrong peak: the dense rate gives {times(dense)}, only the rate with "
                f"2:4 sparsity {times(sparse)}.",
                "from mlsys import Hardware, Q_\n(Hardware.Cloud.H100.peak('int8') / Q_(8, 'TOP/s')).to('')",
            ),
        ),
        (
            "The host sets the ceiling; the accelerator only decides how near you come.",
            "Find out first which side takes longer, then spend money on that side.",
            "A speedup S is a ratio of two rates of the same kind: same precision, both dense, both reachable by "
            "your program.",
        ),
    )


def _profile(draw: Draw) -> Question:
    _, accelerator = _program(draw)
    target = draw.pick("profile", (5.5, 6.5, 7.5, 8.5, 9.5, 11))
    share = 100 * required_parallel_fraction(target, accelerator).m_as("")
    return NumberQuestion(
        "profile",
        f"A team installs an accelerator of {times(accelerator)} and measures {times(target)} end to end. "
        "What share of the original time, in percent, runs on the accelerator?",
        f"p = (1 − 1/{target}) / (1 − 1/{accelerator}) = {percent(share / 100)}. "
        "Whoever measures an end-to-end speedup has measured the accelerated share.",
        setting={"share": round(share / 100, 2), "speedup": accelerator},
        answer=share,
        unit="%",
        tolerance=0.006,
        most=100,
        hint="Write Amdahl's law with p unknown, 1/speedup = (1 − p) + p/S, and solve it for p.",
        slips=(
            (share / 100, "Percent are asked for, not a share of one."),
            (
                100 * target / accelerator,
                "That is the measured speedup divided by the accelerator's, and the law is no proportion.",
            ),
            (100 * (1 - 1 / target), "Near. The accelerated part takes some time as well; S is not infinite."),
        ),
    )


def _upgrade(draw: Draw) -> Question:
    program, accelerator = _program(draw)
    faster, more = 3 * accelerator, _more(draw)
    before = amdahl_speedup(program, accelerator)
    bought, moved = amdahl_speedup(program, faster), amdahl_speedup(more, accelerator)
    return ChoiceQuestion(
        "upgrade",
        f"The program of your prediction runs {percent(program)} of its time on an accelerator of "
        f"{times(accelerator)}. Which change makes the whole program faster?",
        f"From {times(before)}, the faster accelerator leads to {times(bought)} and the larger share to "
        f"{times(moved)}. The first still runs into its ceiling of {times(amdahl_ceiling(program))}; "
        f"the second raises it to {times(amdahl_ceiling(more))}.",
        setting={"share": more, "speedup": accelerator},
        choices=(
            Choice(f"An accelerator of {times(faster)}", "Move the second slider to the right and watch the dashed "
                   "line: does the accelerator move it?", bool(bought > moved)),
            Choice(f"Moving enough code that {percent(more)} is accelerated", right=bool(moved > bought)),
            Choice("Both do the same", "Set one after the other and read the two numbers beside the point.",
                   math.isclose(bought.m_as(""), moved.m_as(""))),
        ),
    )  # fmt: skip


def _bottleneck(draw: Draw) -> Question:
    _, accelerator = _program(draw)
    share = draw.pick("bottleneck", (0.965, 0.975, 0.985))
    host, boundary = serial_share(share, accelerator), device_bound_fraction(accelerator)
    return ChoiceQuestion(
        "bottleneck",
        f"Set {percent(share)} and {times(accelerator)}. Nearly everything is accelerated. "
        "Which side takes longer now?",
        f"The host takes {percent(host)} of the new run time. The accelerator takes longer only where the share is "
        f"above S/(S+1) = {percent(boundary, 3)}.",
        setting={"share": share, "speedup": accelerator},
        choices=(
            Choice("The accelerator: it does nearly all of the work",
                   "Of the old time; but that part has shrunk. Look at the bar called after.", bool(host < 0.5)),
            Choice("The host: its small share is not accelerated",
                   "It is not; but is it still small beside the other part of the bar called after?",
                   bool(host > 0.5)),
        ),
    )  # fmt: skip


def _waiting(draw: Draw) -> Question:
    return ChoiceQuestion(
        "waiting",
        "While it generates text, a kernel on the accelerator spends nearly all its time waiting for memory. "
        "Does that time count as serial time in Amdahl's law?",
        "It lies in the accelerated part: waiting makes S smaller, not the serial share larger. Faster memory helps "
        "here; moving more code does not.",
        choices=(
            Choice(
                "Yes: the arithmetic units stand still",
                "Which machine is waiting, the host or the accelerator? Serial time is time on the first.",
            ),
            Choice("No: it belongs to the accelerated part", right=True),
        ),
    )


def _sparse_peak(draw: Draw) -> Question:
    """Return the question about a speedup that holds only for the peak with structured sparsity."""
    program, _ = _program(draw)
    chip, host = Hardware.Cloud.H100, Q_(8, "TFLOP/s")
    dense, sparse = (chip.peak("int8", kind) for kind in ("dense", "2:4"))
    ratios = [(rate / host).m_as("") for rate in (dense, sparse)]
    totals = [amdahl_speedup(program, ratio) for ratio in ratios]
    claimed = 500
    return ChoiceQuestion(
        "sparse-peak",
        f"A text computes: an H100 does {number(dense)} INT8 TOP/s, the processor beside it "
        f"{number(host)} TOP/s, so S = {claimed}, and a network with {percent(program)} accelerated runs "
        f"{times(amdahl_speedup(program, claimed))} as fast. What is wrong?",
        f"{number(dense)} TOP/s is the dense rate, and dense over host is {times(ratios[0])}. Only the rate with 2:4 "
        f"sparsity, {number(sparse)} TOP/s, gives {times(ratios[1])}, and this network is not pruned. "
        f"With {percent(program)} accelerated it matters little: {times(totals[0])} instead of {times(totals[1])}.",
        in_app=False,
        choices=(
            Choice("Amdahl's law was applied wrongly", "From S on, the sum is right; look at how S was made."),
            Choice("S does not follow from the two rates", right=True),
            Choice("The result is above the ceiling", "The ceiling is 1/(1 − p). Is the printed result above it?"),
            Choice(NOTHING, "Divide the two rates yourself."),
        ),
    )


def _banner(draw: Draw) -> Question:
    """Return the question about a ceiling that is reported as the result."""
    program, _ = _program(draw)
    speedup = draw.pick("banner", (350, 420, 610))
    total, ceiling = amdahl_speedup(program, speedup), amdahl_ceiling(program)
    return ChoiceQuestion(
        "banner",
        f"The same text closes with the headline: “{times(ceiling)} faster with S = {speedup}”. "
        f"The share is still {percent(program)}. What is wrong?",
        f"At S = {speedup} the law gives {times(total)}; {times(ceiling)} is the ceiling, which no finite S reaches.",
        in_app=False,
        choices=(
            Choice("It reports the ceiling as if it were reached", right=True),
            Choice("It should be S itself", "S is the speedup of the accelerated part only."),
            Choice(NOTHING, "Put the sliders there, read the number beside the point, and compare its digits."),
        ),
    )


def _five(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    share, top = draw.pick("five", (0.75, 0.84, 0.875)), 1000
    ceiling, near = amdahl_ceiling(share), amdahl_speedup(share, top)
    return ChoiceQuestion(
        "five",
        f"“If {percent(share)} of a program's time can be accelerated, no accelerator makes the program more than "
        f"{times(ceiling)} as fast, whatever it costs.” What is wrong?",
        f"The rest, {percent(1 - share)} of the time, stays: 1/(1 − {share}) = {times(ceiling)}. An accelerator of "
        f"{times(top)} comes to {times(near)}.",
        in_app=False,
        choices=(
            Choice("A fast enough accelerator passes it", f"Set {percent(share)} and the fastest accelerator of the "
                   "slider. How near does it come, and can a faster one take host time away?"),
            Choice("The bound is that of the accelerated part, S", "S has no bound here. Which part of the time is "
                   "left when the accelerated part takes none?"),
            Choice(NOTHING, right=bool(near < ceiling)),
        ),
    )  # fmt: skip
