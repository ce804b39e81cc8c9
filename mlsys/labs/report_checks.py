"""The design task of the lab "find the error": the cheapest checks that expose every slip a report may contain."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

from mlsys import Hardware
from mlsys.formulas import decode_rate_ceiling, ridge_point, training_time, weight_bytes
from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.units import Q_
from mlsys.viz.words import number

__all__ = ["EXACT", "ROUGH", "SLIPS", "Plan", "Slip", "exposes", "report", "report_design"]

EXACT, ROUGH = 0.02, 3.0
"""Relative tolerance of an exact check; factor within which a rough one accepts a number."""
_USERS = 24


@dataclass(frozen=True)
class Plan:
    """What a report is about: a model, the chips that train it, and the chip that serves it.

    Attributes
    ----------
    device
        Short name of the chip.
    billions, tokens
        Parameters of the model and tokens of its training, in billions.
    chips, kept
        Chips that train it, and the share of their peak that they keep up.
    """

    device: str
    billions: float
    tokens: int
    chips: int
    kept: float


@dataclass(frozen=True)
class Slip:
    """A slip: the number of the report that it changes, in words, and the factor of that number by plan."""

    number: str
    text: str
    factor: Callable[[Plan], float]


def _peak_over(other: str | None, sparsity: str | None = None) -> Callable[[Plan], float]:
    def factor(plan: Plan) -> float:
        chip = Hardware.Cloud[plan.device]
        return float((chip.peak(other or "bf16", sparsity) / chip.peak("bf16")).m_as(""))

    return factor


def _before(plan: Plan) -> float:
    """Return the bandwidth of the generation before, over that of the chip of the plan."""
    before = {"A100": "V100", "H200": "H100", "B200": "H200"}[plan.device]
    return float((Hardware.Cloud[before].memory_bw / Hardware.Cloud[plan.device].memory_bw).m_as(""))


SLIPS: dict[str, Slip] = {
    "sparse": Slip("peak", "the sparse peak for the dense one", _peak_over(None, "2:4")),
    "tf32": Slip("peak", "the peak of TF32 for that of BF16", _peak_over("tf32")),
    "machine": Slip("bandwidth", "the bandwidth of the generation before", _before),
    "ridge": Slip("ridge", "a ridge point in TF32", _peak_over("tf32")),
    "binary": Slip("weights", "weights in GiB, called GB", lambda plan: 1e9 / 2**30),
    "bits": Slip("weights", "weights in Gbit, called GB", lambda plan: 8.0),
    "batch": Slip("rate", f"tokens of all {_USERS} users, given to one", lambda plan: float(_USERS)),
    "prefix": Slip("rate", "a token rate off by a thousand", lambda plan: 1e-3),
    "macs": Slip("days", "three operations for each parameter and token instead of six", lambda plan: 0.5),
    "kept": Slip("days", "training at the full peak", lambda plan: plan.kept),
    "one": Slip("hours", "the hours of one chip for those of all", lambda plan: 1 / plan.chips),
}
"""Slips that a report may contain, by name."""


def report(plan: Plan, slip: str = "") -> dict[str, float]:
    """Return the numbers of a report, each computed from those before it, with one slip or none.

    Parameters
    ----------
    plan
        What the report is about.
    slip
        One of ``SLIPS``; empty for none.

    Examples
    --------
    >>> plan = Plan("H200", 12.5, 340, 48, 0.41)
    >>> right, wrong = report(plan), report(plan, "macs")
    >>> [name for name in right if right[name] != wrong[name]]
    ['days', 'hours']
    """
    chip = Hardware.Cloud[plan.device]
    made: dict[str, float] = {}

    def write(name: str, value: float) -> float:
        changed = slip and SLIPS[slip].number == name
        made[name] = float(value) * (SLIPS[slip].factor(plan) if changed else 1.0)
        return made[name]

    peak = Q_(write("peak", chip.peak("bf16").m_as("TFLOP/s")), "TFLOP/s")
    bandwidth = Q_(write("bandwidth", chip.memory_bw.m_as("GB/s")), "GB/s")
    write("ridge", ridge_point(peak, bandwidth).m_as("FLOP/byte"))
    weights = Q_(write("weights", weight_bytes(Q_(plan.billions, "Gparam"), Q_(2, "byte")).m_as("GB")), "GB")
    write("rate", decode_rate_ceiling(weights, bandwidth).m_as("token/s"))
    time = training_time(Q_(plan.billions, "Gparam"), plan.tokens * 1e9, plan.chips, plan.kept * peak)
    write("hours", 24 * plan.chips * write("days", time.m_as("day")))
    return made


def exposes(check: str, written: Mapping[str, float], right: Mapping[str, float]) -> bool:
    """Return whether a check finds a number of a report wrong.

    Parameters
    ----------
    check
        The number that it looks at and how, such as ``"ridge own"``: ``library`` compares with the value that the
        facts give, ``own`` with the other numbers of the report, ``rough`` accepts a factor of ``ROUGH``.
    written, right
        Numbers of the report, and those that the facts give.
    """
    name, how = check.split()
    value = written[name]
    if how == "rough":
        return abs(math.log(value / right[name])) > math.log(ROUGH)
    own = {"ridge": written["peak"] / written["bandwidth"] * 1e3,
           "hours": written["days"] * right["hours"] / right["days"]}  # fmt: skip
    expected = right[name] if how == "library" else own[name]
    return abs(value / expected - 1) > EXACT


_CHECKS = {
    "peak": ("Peak", {"library": "by the library (device.peak)"}),
    "bandwidth": ("Bandwidth", {"library": "by the library (device.memory_bw)"}),
    "ridge": ("Ridge point", {"own": "from the report's own peak and bandwidth",
                              "library": "by the library (device.ridge_point)"}),
    "weights": ("Weights", {"library": "by the library (weight_bytes)"}),
    "rate": ("Token rate", {"rough": "against a published rate", "library": "by the library (decode_rate_ceiling)"}),
    "days": ("Training time", {"library": "by the library (training_time)"}),
    "hours": ("Chip-hours", {"own": "from the report's own days and chips",
                             "library": "by the library (training_time, times chips)"}),
}  # fmt: skip
"""Label and ways of the check of each number."""
_ORDER = ("peak library", "bandwidth library", "ridge own", "ridge library", "weights library", "rate rough",
          "rate library", "days library", "hours own", "hours library")  # fmt: skip
_TASKS = (  # slips that may get into the report, and minutes of each check; several choices are good
    (("sparse", "machine", "ridge", "bits", "prefix", "macs", "one"), (3, 2, 1, 4, 4, 3, 6, 8, 2, 11)),
    (("machine", "ridge", "binary", "batch", "prefix", "macs", "one"), (3, 2, 2, 5, 4, 3, 7, 8, 2, 9)),
    (("tf32", "ridge", "binary", "prefix", "macs", "kept", "one"), (4, 3, 2, 3, 2, 4, 5, 8, 1, 11)),
    (("sparse", "tf32", "machine", "ridge", "batch", "prefix", "macs"), (2, 2, 2, 4, 4, 4, 7, 9, 2, 11)),
    (("sparse", "tf32", "binary", "prefix", "macs", "kept", "one"), (2, 3, 1, 4, 4, 4, 6, 7, 2, 9)),
    (("sparse", "binary", "batch", "prefix", "macs", "kept", "one"), (3, 2, 1, 4, 2, 3, 7, 9, 1, 11)),
    (("sparse", "machine", "binary", "bits", "batch", "kept", "one"), (2, 3, 1, 4, 2, 2, 7, 6, 2, 9)),
    (("sparse", "tf32", "machine", "bits", "prefix", "kept", "one"), (2, 3, 2, 3, 2, 2, 7, 9, 1, 11)),
)


def report_design(draw: Draw) -> Design:
    """Return the design task with the numbers of one student.

    Examples
    --------
    >>> task = report_design(Draw("13-find-the-error", "Ada"))
    >>> task.score(dict.fromkeys((knob.id for knob in task.knobs), "skip")).meets
    False
    """
    plan = Plan(
        draw.pick("report device", ("A100", "H200", "B200")), draw.pick("report model", (2.7, 6.5, 12.5)),
        draw.pick("report tokens", (260, 340, 430)), draw.pick("report chips", (24, 48, 72)),
        draw.pick("report kept", (0.36, 0.41)),
    )  # fmt: skip
    slips, minutes = draw.pick("report slips", _TASKS)
    made, takes = {name: number(value) for name, value in report(plan).items()}, dict(zip(_ORDER, minutes, strict=True))
    text = (
        f"A report on a model with {plan.billions:g} billion parameters computes each number from those before it. "
        f"Peak of the {plan.device} in dense BF16: {made['peak']} TFLOP/s. Bandwidth: {made['bandwidth']} GB/s. Ridge "
        f"point: {made['ridge']} FLOP/byte. Weights in BF16: {made['weights']} GB. Token rate of one user at most: "
        f"{made['rate']} token/s. Training on {plan.tokens} billion tokens with {plan.chips} chips at "
        f"{100 * plan.kept:g}% of their peak: {made['days']} days. Chip-hours of that: {made['hours']}.\n\n"
        "The report is written anew each week, and one of these slips may get into it, with every number that follows "
        f"from it: {'; '.join(f'({nth}) {SLIPS[slip].text}' for nth, slip in enumerate(slips, start=1))}.\n\n"
        "Choose the checks to run each week so that every one of the slips is exposed by at least one check, in the "
        f"fewest minutes. A check by the library compares a number with what the facts give, within {100 * EXACT:g}%; "
        f"one from the report's own numbers sees only what does not fit together; one against a published rate sees "
        f"only a factor above {ROUGH:g}."
    )
    knobs = tuple(
        Knob(name, label, (
            ("left out", "skip"),
            *((f"{takes[f'{name} {way}']} min: {how}", way) for way, how in ways.items()),
        ))
        for name, (label, ways) in _CHECKS.items()
    )  # fmt: skip
    return Design("checks", text, knobs, partial(_chosen, plan, slips, minutes))


def _chosen(plan: Plan, slips: tuple[str, ...], minutes: tuple[int, ...], **ways: str) -> Built:
    checks = {f"{name} {way}" for name, way in ways.items() if way != "skip"}
    found = _exposed(plan, slips)
    passed = [slip for slip in slips if not checks & found[slip]]
    cost = sum(each for check, each in zip(_ORDER, minutes, strict=True) if check in checks)
    summary = f"These checks take {cost} min and expose {len(slips) - len(passed)} of the {len(slips)} slips."
    unseen = "; ".join(f"({slips.index(slip) + 1}) {SLIPS[slip].text}" for slip in passed)
    return Built(float(cost), summary, f"Not exposed: {unseen}." if unseen else "")


@cache
def _exposed(plan: Plan, slips: tuple[str, ...]) -> dict[str, set[str]]:
    """Return the checks that expose each slip."""
    right = report(plan)
    return {slip: {check for check in _ORDER if exposes(check, report(plan, slip), right)} for slip in slips}
