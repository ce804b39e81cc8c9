"""The gap between a prediction and a measurement on one's own machine: explanations, each with a test on the record."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlsys.measure.compile.result import CompileResult
from mlsys.viz.words import number, percent, times

__all__ = ["Explanation", "Gap", "compile_gap", "runtime_gap"]

_HALF = 0.5


@dataclass(frozen=True)
class Explanation:
    """One explanation of a gap: what it says, whether the record supports it, and the evidence in words."""

    text: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class Gap:
    """A predicted and a measured value, in ``unit``, and what may explain their difference."""

    what: str
    predicted: float
    measured: float
    unit: str
    explanations: tuple[Explanation, ...]

    @property
    def question(self) -> str:
        """The question in words."""
        gap = "" if self.unit == "×" else " "
        return (
            f"{self.what}: predicted {number(self.predicted)}{gap}{self.unit}, measured here "
            f"{number(self.measured)}{gap}{self.unit}. Which of these explains it? Choose one, and test it."
        )

    def record(self, chosen: str) -> dict[str, Any]:
        """Return what is handed in: both values, the chosen explanation, and whether its test supports it."""
        tested = next(each for each in self.explanations if each.text == chosen)
        return {
            "what": self.what, "unit": self.unit, "predicted": self.predicted, "measured": self.measured,
            "explanation": chosen, "holds": tested.holds, "evidence": tested.evidence,
        }  # fmt: skip


def compile_gap(record: Mapping[str, Any]) -> Gap | None:
    """Return the gap between the predicted and the measured speedup of compiling; None without a prediction.

    The speedup is a ratio of two times, so its gap is the product of the gaps of either; an explanation holds if its
    part is at least half of the whole, on a logarithmic scale.
    """
    mine = CompileResult.from_record(record)
    if mine.predicted is None:
        return None
    measured, guess = mine.speedup, mine.predicted
    eager, fast = mine.eager.median.m_as("s") / guess.eager, mine.compiled.median.m_as("s") / guess.compiled
    whole = math.log(measured.value / guess.speedup)
    before, after = (part / whole if whole else 0.0 for part in (math.log(eager), -math.log(fast)))
    inside = measured.low <= guess.speedup <= measured.high
    sides = f"Eager took {times(eager)} its predicted time, compiled {times(fast)}."
    return Gap(
        "Speedup of compiling",
        guess.speedup,
        measured.value,
        "×",
        (
            Explanation(
                "Chance: another measurement would give the prediction", inside,
                f"The interval goes from {number(measured.low)}× to {number(measured.high)}× and "
                f"{'holds' if inside else 'does not hold'} the prediction.",
            ),
            Explanation("Eager kernels do not reach the rates of the machine", not inside and before >= _HALF, sides),
            Explanation("Compiled kernels take another time than their bytes and arithmetic need",
                        not inside and after >= _HALF, sides),
            Explanation(
                "Fewer kernels were launched than counted", False,
                f"{mine.operators} operators and {mine.kernels} kernels were counted while they ran.",
            ),
        ),
    )  # fmt: skip


def runtime_gap(record: Mapping[str, Any]) -> Gap | None:
    """Return the gap between the bound of the slowest runtime and its measured time; None without an attribution."""
    logs = [log for log in record["logs"] if log.get("attribution")]
    if not logs:
        return None
    slow = max(logs, key=lambda log: log["latency_ms"]["p50"])
    shares, time = slow["attribution"], 1e3 * slow["latency_ms"]["p50"]
    bound = time * (shares["compute"] + shares["memory"]) / 100
    largest = max(("launch", "residual"), key=lambda cause: shares[cause])
    message = ", ".join(f"{name} {percent(shares[cause] / 100)}" for cause, name in (
        ("compute", "arithmetic"), ("memory", "bytes"), ("launch", "entering kernels"), ("residual", "the rest")
    ))  # fmt: skip
    message = f"Of its time: {message}."
    return Gap(
        f"One run by {slow['name'].split()[-1]}, from arithmetic and bytes alone",
        bound,
        time,
        "µs",
        (
            Explanation("Its weights do not fit into a cache, so memory is slower than predicted",
                        shares["memory"] >= 100 * _HALF, message),
            Explanation("Entering kernels takes the time between", largest == "launch", message),
            Explanation("Kernels far from any bound, and work beside them, take it", largest == "residual", message),
            Explanation(
                "Its arithmetic is done in another number format", False,
                "The run names its format, and the arithmetic is counted at the rate of that format.",
            ),
        ),
    )  # fmt: skip
