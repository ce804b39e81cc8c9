"""What ten measurements of an unseen machine do to the error of the rest of its rows.

Each machine is predicted by a fit that never saw it; ten of its rows are then handed back, those that
:mod:`mlsys.calibration.advice` names before any is measured, and only the rows that were not handed back are graded.
The predictions are those of the last fit, kept row by row; nothing is fitted again but what the ten rows teach.

The study takes a minute, so ``mlsys validate --refit`` runs it (:func:`study_ten`) and stores its results, and pages
read those (:func:`ten_back`). Rows that are equally informative are advised in their order, so that every CPU advises
the same ten.
"""

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.advice import TEN, most_informative
from mlsys.calibration.case import Case
from mlsys.calibration.learning import LearnedEffects, learn, sensitivities
from mlsys.calibration.times import case_times
from mlsys.files import Drafts
from mlsys.frozen import IdentityKey
from mlsys.inputs import csv_records
from mlsys.models.estimate.cache_key import calibration_version
from mlsys.models.estimate.library import plain_of
from mlsys.models.estimate.ranges import Range, after_ten, range_of
from mlsys.provenance import remembered, unrecorded
from mlsys_evidence.evaluate.error_decomposition import without_scale
from mlsys_evidence.evaluate.report import Prediction
from mlsys_evidence.fit.refit import held_out_predictions

Array = NDArray[np.float64]
_PLACE = Path(__file__).parents[1] / "data" / "ten.csv"
FEWEST_ROWS, FEWEST_IN_SWEEP = 15, 3
# So many times ten are taken of each machine of a class: more where each time leaves few to grade, since which ten they
# are decides the median of a handful. Until so many rows are graded.
FEWEST_DRAWS, MOST_DRAWS, ENOUGH_GRADED = 3, 20, 3000
# Part of a machine's rows that cannot be measured: another one each time, so that each draw takes another ten.
ABSENT = 0.1


@dataclass(frozen=True)
class TenBack:
    """One class of machine and kind of work: machines left out of the fit, and ten rows of each handed back.

    Attributes
    ----------
    group
        Class of machine and kind of work.
    machines, rows
        Machines with 15 rows or more, and the rows that were graded, over all draws.
    before, after
        Median error of those rows, as a part of the published value: machine unseen, and ten rows handed back.
    p90
        90th percentile of the error after.
    scale
        Median error after, were nothing but a scale learned: the median of the ten.
    at_random
        Median error, were the ten taken at random.
    shape
        Median error after, were the scale of each sweep known as well: what shapes alone leave.
    covered, width
        Part of the rows inside their 80 % interval after, and the median of its upper over its lower end.
    """

    group: str
    machines: int
    rows: int
    before: float
    after: float
    p90: float
    scale: float
    at_random: float
    shape: float
    covered: float
    width: float


@dataclass(frozen=True)
class _Graded:
    """Logarithms of measured over predicted time of the rows that were kept back, and their intervals."""

    before: Array
    after: Array
    scale: Array
    shape: Array
    at_random: Array  # errors, were the ten taken at random: of the first draws alone
    reach: Array  # logarithms of the ends of the interval, shape (rows, 2)
    inverse: NDArray[np.bool_]


def _handed_back(
    cases: Sequence[Case], before: Array, base: Array, follows: Array, draw: int
) -> tuple[list[int], list[int]]:
    """Return which rows to measure of those that can be, as advised and at random."""
    drawn = np.random.default_rng([draw, len(cases)])
    there = np.sort(drawn.choice(len(cases), max(TEN, round((1 - ABSENT) * len(cases))), replace=False)).tolist()
    result = most_informative(
        [cases[index] for index in there], before[there].tolist(), base[there], follows=follows[there]
    )
    return sorted(there[index] for index in result), sorted(drawn.choice(there, TEN, replace=False).tolist())


@dataclass(frozen=True)
class _Machine:
    """What all draws of a machine's rows have in common: cases, their parameters, times at these, how they follow."""

    cases: list[Case]
    base: Array
    plain: Array
    follows: Array


@remembered
def _machine(own: IdentityKey, _fit: Hashable) -> _Machine:
    cases = [each.case for each in own if each.case is not None]
    engines = {id(case.engine): case.engine.as_numbers() for case in cases}  # read once, not in every draw
    cases = [replace(case, engine=engines[id(case.engine)]) for case in cases]
    base = np.array([plain_of(case.setting)[0].vectorised() for case in cases])
    return _Machine(cases, base, case_times(cases, base), sensitivities(cases, base))


def _learned(own: Sequence[Prediction], draw: int, machine: _Machine) -> _Graded:
    cases, base = machine.cases, machine.base
    before = np.array([each.seconds for each in own])
    measured, inverse = np.log([case.seconds for case in cases]), np.array([case.inverse for case in cases])

    def after(back: list[int]) -> tuple[list[int], Array, LearnedEffects]:
        rest = sorted(set(range(len(cases))) - set(back))
        learned = learn([cases[index] for index in back], before[back], base[back])
        result = learned.seconds([cases[index] for index in rest], before[rest], base[rest], machine.plain[rest])
        return rest, np.log(result), learned

    back, at_random = _handed_back(cases, before, base, machine.follows, draw)
    rest, result, learned = after(back)
    by_chance = np.empty(0)
    if draw < FEWEST_DRAWS:
        others, told_at_random, _ = after(at_random)
        by_chance = _errors(measured[others] - told_at_random, inverse[others])
    left = [cases[index] for index in rest]
    alone = float(np.median(measured[back] - np.log(before[back])))
    ranges = [_reach(own[index], learned) for index in rest]
    return _Graded(
        measured[rest] - np.log(before[rest]),
        measured[rest] - result,
        measured[rest] - np.log(before[rest]) - alone,
        _shapes(left, measured[rest] - result),
        by_chance,
        np.log(ranges),
        inverse[rest],
    )


def _reach(each: Prediction, learned: LearnedEffects) -> tuple[float, float]:
    """Return the ends of a row's interval after the ten, as factors of time; of software not among them as before."""
    case = each.case
    assert case is not None
    if case.setting not in learned.settings:
        return Range(each.low / each.value, each.high / each.value, each.why).of_value(case.inverse)
    # What is known of a setting does not hang on whether its machine was measured: the scatter of its sweeps.
    usual = range_of(case.setting, case.twin, case.network, measured=True, version=case.version, work=case.kind)
    return after_ten(usual, learned.spread).of_value()


def _shapes(cases: Sequence[Case], residuals: Array) -> Array:
    """Return logarithms of measured over predicted time, each less the median of the others of its sweep."""
    sweeps: dict[str, list[int]] = {}
    for index, case in enumerate(cases):
        sweeps.setdefault(case.row.group or case.row.device, []).append(index)
    shapes = residuals.copy()
    for places in sweeps.values():
        if len(places) >= FEWEST_IN_SWEEP:
            shapes[places] = without_scale(residuals[places])
    return shapes


def _errors(residuals: Array, inverse: NDArray[np.bool_]) -> Array:
    """Return errors of the published values, from logarithms of measured over predicted time."""
    return np.asarray(np.abs(np.expm1(np.where(inverse, residuals, -residuals))), dtype=np.float64)


def ten_back() -> tuple[TenBack, ...]:
    """Return the stored results of the study: each class of machine and kind of work, in the order of names.

    Examples
    --------
    >>> (group,) = [group for group in ten_back() if group.group == "TPU-like: network inference"]
    >>> group.after < group.before
    True
    """
    return _stored(_PLACE.stat().st_mtime_ns)  # a new study writes the file anew


@lru_cache(maxsize=1)
def _stored(_written: int) -> tuple[TenBack, ...]:
    _, *lines = csv_records(_PLACE)
    return tuple(
        TenBack(name, int(machines), int(rows), *map(float, errors)) for _, (name, machines, rows, *errors) in lines
    )


def save_ten(groups: Iterable[TenBack], files: Drafts, path: Path = _PLACE) -> None:
    """Draft the file of the study's results, errors with four significant digits."""
    lines = [",".join(field.name for field in fields(TenBack))]
    for group in sorted(groups, key=lambda group: group.group):
        name, machines, rows, *errors = astuple(group)
        lines.append(",".join([name, str(machines), str(rows), *(f"{error:.4g}" for error in errors)]))
    files.text(path, "\n".join(lines) + "\n")


def study_ten(like: str = "") -> Iterator[TenBack]:
    """Run the study: yield every class of machine and kind of work that has a machine with 15 rows or more.

    Of each machine ten rows are taken three to twenty times, the more the fewer rows are left to grade, as advised of
    nine tenths of them, drawn with fixed seeds.

    Parameters
    ----------
    like
        A pattern: groups whose names lack it are left out.

    Examples
    --------
    >>> (group,) = study_ten("^TPU-like: network")
    >>> group.after < group.before
    True
    """
    groups: dict[str, dict[str, list[Prediction]]] = {}
    for each in held_out_predictions("device"):
        if each.case is not None:
            machines = groups.setdefault(f"{each.row.device_class}: {each.kind}", {})
            machines.setdefault(each.case.twin, []).append(each)
    for name in sorted(name for name in groups if re.search(like, name) is not None):
        chosen = [IdentityKey(own) for _, own in sorted(groups[name].items()) if len(own) >= FEWEST_ROWS]
        if chosen:
            yield _results(name, chosen)


def _results(group: str, machines: Sequence[IdentityKey]) -> TenBack:
    """Return what ten rows do in one group, whose machines are each predicted alone."""
    state = calibration_version()
    with unrecorded():  # as of every error over many rows
        graded = [_learned(own, draw, _machine(own, state)) for own in machines for draw in range(draws_of(machines))]
    return _whole(group, len(machines), graded)


def draws_of(machines: Sequence[IdentityKey]) -> int:
    """Return how many times ten rows are taken of each machine of a class."""
    each_time = sum(len(own) - TEN for own in machines)
    return min(max(FEWEST_DRAWS, math.ceil(ENOUGH_GRADED / each_time)), MOST_DRAWS)


def _whole(name: str, machines: int, graded: Sequence[_Graded]) -> TenBack:
    inverse = np.concatenate([machine.inverse for machine in graded])
    before, after, scale, shape = (
        _errors(np.concatenate([getattr(machine, part) for machine in graded]), inverse)
        for part in ("before", "after", "scale", "shape")
    )
    reach = np.concatenate([machine.reach for machine in graded])
    residuals = np.concatenate([machine.after for machine in graded])
    inside = (reach[:, 0] <= residuals) & (residuals <= reach[:, 1])
    return TenBack(
        name,
        machines,
        len(residuals),
        float(np.median(before)),
        float(np.median(after)),
        float(np.quantile(after, 0.9)),
        float(np.median(scale)),
        float(np.median(np.concatenate([machine.at_random for machine in graded]))),
        float(np.median(shape)),
        float(np.mean(inside)),
        float(np.exp(np.median(reach[:, 1] - reach[:, 0]))),
    )
