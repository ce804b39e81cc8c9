"""The lab on Amdahl's law. Every number in a question or an answer is computed here from the formulas."""

from __future__ import annotations

import math

from mlsys import Hardware
from mlsys.formulas import (
    amdahl_ceiling,
    amdahl_speedup,
    device_bound_fraction,
    required_parallel_fraction,
    serial_share,
)
from mlsys.units import Q_
from mlsys.viz.views import AmdahlScene
from mlsys.viz.views.view import number, percent, times
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, slider, switch
from mlsys.widgets.questions import Choice, ChoiceQuestion, NumberQuestion, Question

__all__ = ["AmdahlLab"]

_SHARES = (*range(0, 900, 50), *range(900, 990, 10), *range(990, 1000))  # in thousandths: finer where it matters
_SPEEDUPS = (1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
_PROGRAM, _ACCELERATOR = 0.95, 100


class AmdahlLab(Lab):
    """Predict, explore and check what an accelerator does for a whole program.

    Examples
    --------
    >>> lab = AmdahlLab()
    >>> lab.predict(50)
    >>> print(lab.view.values["bound by"], f"{lab.view.values['speedup']:.1f}")
    host 16.8
    """

    id = "lab-01-amdahl"
    title = "Lab 1: What does an accelerator do for the whole program?"
    purpose = (
        "An accelerator speeds up one part of a program; the rest stays on the host. "
        "Find out how much faster the whole gets, what limits it, and when a faster accelerator stops paying."
    )
    scenario = {"share": _PROGRAM, "speedup": _ACCELERATOR}  # noqa: RUF012

    def _prediction(self) -> Question:
        total = amdahl_speedup(_PROGRAM, _ACCELERATOR).magnitude
        host = serial_share(_PROGRAM, _ACCELERATOR)

        def explain(given: float, right: bool) -> str:
            opening = f"You predicted {times(given)}, and it is {times(total)}" if right else (
                f"You predicted {times(given)}; it is {times(total)}"
            )  # fmt: skip
            return (
                f"{opening}, because the {percent(1 - _PROGRAM)} that stays on the host is not accelerated: "
                f"after the change it takes {percent(host)} of the run time. "
                f"Even an accelerator of infinite speed gives {times(amdahl_ceiling(_PROGRAM))}."
            )

        return NumberQuestion(
            "prediction",
            f"A program spends {percent(_PROGRAM)} of its time in a part that an accelerator runs "
            f"{times(_ACCELERATOR)} as fast. The rest stays on the host. How many times as fast is the whole program?",
            answer=total,
            unit="×",
            tolerance=0.05,
            explain=explain,
        )

    def _controls(self) -> tuple[Control, ...]:
        return (
            slider(
                "share",
                "Workload",
                "Accelerated share of the time, p (%)",
                [(percent(share / 1000), share / 1000) for share in _SHARES],
                _PROGRAM,
                "Share of the original run time that moves to the accelerator; the rest stays on the host",
            ),
            slider(
                "speedup",
                "Hardware",
                "Speedup of that part, S (×)",
                [(times(speedup), speedup) for speedup in _SPEEDUPS],
                10,
                "How many times as fast the accelerator runs its part",
            ),
            switch("compare", "View", "Show other shares behind", False, "Lay the curves of four other shares behind"),
        )

    def _make_scene(self) -> AmdahlScene:
        return AmdahlScene()

    def _parameters(self, **values: object) -> dict[str, object]:
        return {
            "parallel_fraction": values["share"],
            "accelerator_speedup": values["speedup"],
            "compare": values["compare"],
        }

    def _questions(self) -> tuple[Question, ...]:
        return (_profile(), _upgrade(), _bottleneck(), _waiting(), _sparse_peak(), _banner())


def _profile() -> Question:
    target = 8
    share = required_parallel_fraction(target, _ACCELERATOR).magnitude

    def explain(given: float, right: bool) -> str:
        sum_ = f"p = (1 − 1/{target}) / (1 − 1/{_ACCELERATOR}) = {percent(share)}."
        if right:
            return f"{sum_} Whoever measures an end-to-end speedup has measured the accelerated share."
        if not 0 <= given < 100:
            return "A share of the run time lies between 0% and 100%."
        whole = times(amdahl_speedup(given / 100, _ACCELERATOR))
        return f"With {percent(given / 100)} accelerated, the whole would be {whole} as fast. Solve Amdahl's law for p."

    return NumberQuestion(
        "profile",
        f"A team installs an accelerator of {times(_ACCELERATOR)} and measures {times(target)} end to end. "
        "What share of the original time, in percent, runs on the accelerator?",
        answer=100 * share,
        unit="%",
        tolerance=0.006,
        explain=explain,
    )


def _upgrade() -> Question:
    faster, more = 10 * _ACCELERATOR, 0.97
    before = amdahl_speedup(_PROGRAM, _ACCELERATOR)
    bought, moved = amdahl_speedup(_PROGRAM, faster), amdahl_speedup(more, _ACCELERATOR)
    sum_ = (
        f"From {times(before)}, the faster accelerator leads to {times(bought)} and the larger share to "
        f"{times(moved)}. The first still runs into its ceiling of {times(amdahl_ceiling(_PROGRAM))}; "
        f"the second raises it to {times(amdahl_ceiling(more))}."
    )
    return ChoiceQuestion(
        "upgrade",
        f"The program of your prediction runs {percent(_PROGRAM)} of its time on an accelerator of "
        f"{times(_ACCELERATOR)}. Which change makes the whole program faster?",
        choices=(
            Choice(f"An accelerator of {times(faster)}", sum_, bool(bought > moved)),
            Choice(f"Moving enough code that {percent(more)} is accelerated", sum_, bool(moved > bought)),
            Choice("Both do the same", sum_, math.isclose(bought.magnitude, moved.magnitude)),
        ),
    )


def _bottleneck() -> Question:
    share = 0.98
    host, boundary = serial_share(share, _ACCELERATOR), device_bound_fraction(_ACCELERATOR)
    sum_ = (
        f"The host takes {percent(host)} of the new run time. The accelerator would take longer only if the share were "
        f"above S/(S+1) = {percent(boundary)}."
    )
    return ChoiceQuestion(
        "bottleneck",
        f"Set {percent(share)} and {times(_ACCELERATOR)}. Nearly everything is accelerated. "
        "Which side takes longer now?",
        choices=(
            Choice("The accelerator: it does nearly all of the work", sum_, bool(host < 0.5)),
            Choice("The host: its small share is not accelerated", sum_, bool(host > 0.5)),
        ),
    )


def _waiting() -> Question:
    return ChoiceQuestion(
        "waiting",
        "While it generates text, a kernel on the accelerator spends nearly all its time waiting for memory. "
        "Does that time count as serial time in Amdahl's law?",
        choices=(
            Choice(
                "Yes: the arithmetic units stand still",
                "Serial time is time on the host. A kernel that waits for the accelerator's memory lowers S, "
                "the speedup of the accelerated part, and leaves p as it is.",
            ),
            Choice(
                "No: it belongs to the accelerated part",
                "It makes S smaller, not the serial share larger. Faster memory helps here; moving more code does not.",
                True,
            ),
        ),
    )


def _sparse_peak() -> Question:
    """S4-021: an accelerator speedup that holds only for the 2:4-sparse peak."""
    chip, host = Hardware.Cloud.H100, Q_(8, "TFLOP/s")
    dense, sparse = (chip.peak("int8", kind) for kind in ("dense", "2:4"))
    ratios = [(rate / host).to("").magnitude for rate in (dense, sparse)]
    totals = [amdahl_speedup(_PROGRAM, ratio) for ratio in ratios]
    claimed = 500
    sum_ = (
        f"{number(dense)} TOP/s is the dense rate, and dense over host is {times(ratios[0])}. Only the rate with 2:4 "
        f"sparsity, {number(sparse)} TOP/s, gives {times(ratios[1])}, and this network is not pruned."
    )
    effect = (
        f" With {percent(_PROGRAM)} accelerated it matters little: {times(totals[0])} instead of {times(totals[1])}."
    )
    return ChoiceQuestion(
        "sparse-peak",
        f"A text computes: an H100 does {number(dense)} INT8 TOP/s, the processor beside it "
        f"{number(host)} TOP/s, so S = {claimed}, and a network with {percent(_PROGRAM)} accelerated runs "
        f"{times(amdahl_speedup(_PROGRAM, claimed))} as fast. What is wrong?",
        in_app=False,
        choices=(
            Choice("Amdahl's law was applied wrongly", f"From S on, the sum is right; look at how S was made. {sum_}"),
            Choice("S does not follow from the two rates", sum_ + effect, True),
            Choice("The result is above the ceiling", f"The ceiling is {times(amdahl_ceiling(_PROGRAM))}. {sum_}"),
            Choice("Nothing", f"Divide the two rates. {sum_}"),
        ),
    )


def _banner() -> Question:
    """S4-026: the ceiling printed as the result."""
    speedup = 500
    total, ceiling = amdahl_speedup(_PROGRAM, speedup), amdahl_ceiling(_PROGRAM)
    sum_ = f"At S = {speedup} the law gives {times(total)}; {times(ceiling)} is the ceiling, which no finite S reaches."
    return ChoiceQuestion(
        "banner",
        f"The same text closes with the headline: “{times(ceiling)} faster with S = {speedup}”. "
        f"The share is still {percent(_PROGRAM)}. What is wrong?",
        in_app=False,
        choices=(
            Choice("It reports the ceiling as if it were reached", sum_, True),
            Choice("It should be S itself", f"S is the speedup of the accelerated part only. {sum_}"),
            Choice("Nothing", f"Put the sliders there and read the number. {sum_}"),
        ),
    )
