"""Every row beside its bound and its prediction, and the errors by class and by kind."""

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from mlsys.calibration.bounds import explain, least_times
from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.estimates import estimated
from mlsys.calibration.rows import Row
from mlsys.calibration.times import stack_of
from mlsys.frozen import FrozenDict, IdentityKey
from mlsys.gc_pause import gc_paused
from mlsys.models.estimate.cache_key import calibration_version
from mlsys.models.estimate.ranges import Range, range_of
from mlsys.provenance import remembered, traced, unrecorded
from mlsys_evidence.questions import interpret, kind_of


@dataclass(frozen=True)
class Prediction:
    """One row, and what the models make of it.

    Attributes
    ----------
    row, kind
        As published, and the kind of workload it is counted under.
    reason
        Why it is not expressible; empty if it is.
    case
        Snapshot and work, if it is.
    value
        Predicted, in the unit of the row.
    seconds, bound
        Predicted time and its lower bound, of the work.
    bound_by
        ``"compute"`` or ``"memory"``: which bound is the higher.
    excuse
        Why the measurement beats the bound, or ``"not explained"``; empty if it does not.
    low, high
        The interval, in the unit of the row, that should hold four published values in five.
    why
        What the interval rests on.
    """

    row: Row
    kind: str
    reason: str = ""
    case: Case | None = None
    value: float = float("nan")
    seconds: float = float("nan")
    bound: float = float("nan")
    bound_by: str = ""
    excuse: str = ""
    low: float = float("nan")
    high: float = float("nan")
    why: str = ""

    @property
    def answered(self) -> bool:
        """Whether the models said anything of it."""
        return self.value == self.value

    @property
    def covered(self) -> bool:
        """Whether the published value lies in the interval."""
        return self.low <= self.row.value <= self.high

    @property
    def error(self) -> float:
        """Absolute error as a part of the published value."""
        return abs(self.value - self.row.value) / self.row.value

    @property
    def ratio(self) -> float:
        """Predicted over measured time; of an answer kept without its case, by whether its unit is a rate."""
        if self.case:
            return self.seconds / self.case.seconds
        return self.row.value / self.value if "/s" in self.row.unit else self.value / self.row.value


@dataclass(frozen=True)
class Score:
    """How wrong a set of predictions is.

    Attributes
    ----------
    rows, expressible
        Rows, and those that a model expresses.
    median_ape, p90_ape
        Median and 90th percentile of the absolute percentage error of the published value, %.
    bias
        Predicted over measured time in the median, less one, %: above zero is too slow.
    within_factor_two
        Part of the expressible rows, %.
    bound_violations, unexplained_violations
        Rows that beat the roofline of dense peaks, and those with no explanation.
    coverage
        Part of the expressible rows whose published value lies in its 80 % interval, %.
    width
        Median of the interval's upper over its lower end.
    source_coverage
        The coverage of a source, mean of all: many rows of one source are no many opinions, %.
    """

    rows: int
    expressible: int
    median_ape: float | None
    p90_ape: float | None
    bias: float | None
    within_factor_two: float | None
    bound_violations: int
    unexplained_violations: int
    coverage: float | None = None
    width: float | None = None
    source_coverage: float | None = None


@traced
def score(predictions: Iterable[Prediction]) -> Score:
    """Return the errors of a set of predictions; None where no row is expressible."""
    return replace(_score(IdentityKey(predictions)))


@functools.lru_cache(maxsize=512)
def _score(chosen: IdentityKey) -> Score:
    done = [each for each in chosen if each.answered]
    beaten = [each for each in done if each.excuse]
    counts = (len(beaten), sum(each.excuse.startswith("not explained") for each in beaten))
    if not done:
        return Score(len(chosen), 0, None, None, None, None, *counts)
    errors = np.array([each.error for each in done])
    ratios = np.array([each.ratio for each in done])
    by_source: dict[str, list[bool]] = {}
    for each in done:
        by_source.setdefault(each.row.measured_by, []).append(each.covered)
    return Score(
        len(chosen),
        len(done),
        round(100 * float(np.median(errors)), 2),
        round(100 * float(np.quantile(errors, 0.9)), 2),
        round(100 * (float(np.exp(np.median(np.log(ratios)))) - 1), 2),
        round(100 * float(np.mean((ratios > 0.5) & (ratios < 2))), 2),
        *counts,
        coverage=round(100 * sum(each.covered for each in done) / len(done), 2),
        width=round(float(np.median([each.high / each.low for each in done])), 3),
        source_coverage=round(100 * float(np.mean([np.mean(own) for own in by_source.values()])), 2),
    )


@dataclass(frozen=True)
class Validation:
    """All rows with their predictions."""

    predictions: tuple[Prediction, ...]

    def scores(self, key: Callable[[Prediction], str]) -> dict[str, Score]:
        """Return the score of each group of rows, in alphabetical order of ``key``."""
        groups: dict[str, list[Prediction]] = {}
        for each in self.predictions:
            groups.setdefault(key(each), []).append(each)
        return {name: score(groups[name]) for name in sorted(groups)}

    def reasons(self) -> dict[str, int]:
        """Return why rows are not expressible, and how many, most frequent first."""
        counts: dict[str, int] = {}
        for each in self.predictions:
            if each.reason:
                counts[each.reason] = counts.get(each.reason, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def worst(self, count: int = 10) -> list[Prediction]:
        """Return the rows with the largest factor between predicted and measured time."""
        done = [each for each in self.predictions if each.case is not None]
        return sorted(done, key=lambda each: -abs(float(np.log(each.ratio))))[:count]

    def summary(self) -> dict[str, object]:
        """Return the whole report as plain data, for JSON."""
        by_both: dict[str, dict[str, object]] = {}
        for each, part in self.scores(lambda each: f"{each.row.device_class}|{each.kind}").items():
            group, kind = each.split("|")
            by_both.setdefault(group, {})[kind] = asdict(part)
        return {
            **asdict(score(self.predictions)),
            "by_device_class": {k: asdict(v) for k, v in self.scores(lambda each: each.row.device_class).items()},
            "by_workload_kind": {k: asdict(v) for k, v in self.scores(lambda each: each.kind).items()},
            "by_device_class_and_kind": by_both,
            "not_expressible": self.reasons(),
            "bound_violations_explained": self._excuses(),
            "units": {
                "median_ape": "%",
                "p90_ape": "%",
                "bias": "%, of time",
                "within_factor_two": "%",
                "coverage": "% of rows inside their 80 % interval",
                "width": "upper over lower end",
                "source_coverage": "% of a source's rows inside, mean of all sources",
            },
        }

    def _excuses(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for each in self.predictions:
            if each.excuse:
                counts[each.excuse] = counts.get(each.excuse, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def records(self) -> list[dict[str, object]]:
        """Return one flat record for each row, for CSV."""
        return [
            {
                "id": each.row.id,
                "device": each.row.device,
                "device_class": each.row.device_class,
                "kind": each.kind,
                "model": each.row.model,
                "shape": each.row.seq_or_shape,
                "metric": each.row.metric,
                "unit": each.row.unit,
                "measured": each.row.value,
                "predicted": f"{each.value:.6g}" if each.case else "",
                "low": f"{each.low:.6g}" if each.case else "",
                "high": f"{each.high:.6g}" if each.case else "",
                "error_percent": f"{100 * each.error:.2f}" if each.case else "",
                "bound_seconds": f"{each.bound:.6g}" if each.case else "",
                "measured_seconds": f"{each.case.seconds:.6g}" if each.case else "",
                "predicted_seconds": f"{each.seconds:.6g}" if each.case else "",
                "bound_by": each.bound_by,
                "beats_bound_because": each.excuse,
                "setting": each.case.setting if each.case else "",
                "not_expressible_because": each.reason,
                "source": each.row.source,
            }
            for each in self.predictions
        ]


def _excuse(case: Case, arithmetic: float, traffic: float) -> str:
    return "" if case.power else explain(case, arithmetic, traffic)


@traced
def validate(rows: Sequence[Row]) -> Validation:
    """Return every row beside its bound and its prediction; nothing is fitted.

    Predictions are kept by machine: under a what-if only machines that read the changed fact are predicted again.
    Facts are not recorded: an error over thousands of rows depends on a thousand facts, none of which moves it.
    Whether each of them moves an estimate is tested machine by machine (`evidence/tests/test_facts_felt.py`).

    Parameters
    ----------
    rows
        Measurements, of the package (:func:`~mlsys_evidence.rows.shipped_rows`) or others.

    Examples
    --------
    >>> from mlsys_evidence.rows import shipped_rows
    >>> from mlsys_evidence import validate
    >>> validation = validate(shipped_rows()[:50])
    >>> len(validation.predictions)
    50
    """
    predictions: dict[int, Prediction] = {}
    state = calibration_version()
    with unrecorded(), gc_paused():
        for machine, places in by_machine(tuple(rows)).items():
            own = _kept(machine, tuple(rows[index] for index in places), state)
            predictions |= zip(places, own, strict=True)
    return Validation(tuple(predictions[index] for index in range(len(rows))))


@functools.lru_cache(maxsize=8)
def by_machine(rows: tuple[Row, ...]) -> FrozenDict[str, tuple[int, ...]]:
    """Return the places of the rows of each machine, by what the sources call it."""
    places: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        places.setdefault(row.device, []).append(index)
    return FrozenDict({machine: tuple(own) for machine, own in places.items()})


@remembered
def _kept(machine: str, rows: tuple[Row, ...], _fit: Hashable) -> tuple[Prediction, ...]:
    return predictions_on(machine, rows)


def predictions_on(machine: str, rows: tuple[Row, ...]) -> tuple[Prediction, ...]:
    """Return rows of one machine, named as its sources do, beside their bounds and their predictions."""
    answers: list[Case | str] = []
    for row in rows:
        try:
            case = interpret(row)
            if not 0 < case.seconds < np.inf:
                raise Inexpressible(f"no time follows from {row.value:g} {row.unit} and this shape")
            answers.append(case)
        except Inexpressible as reason:
            answers.append(str(reason))
    cases = [answer for answer in answers if isinstance(answer, Case)]
    stack = stack_of(cases)
    seconds = estimated(cases, stack)
    arithmetic, traffic = least_times(cases, stack) if cases else (seconds, seconds)
    # A clock above the one that a peak is stated at may beat the peak; an estimate does not count on it.
    powers = np.array([bool(case.power) for case in cases], dtype=bool)
    seconds = np.where(powers, seconds, np.maximum(seconds, np.maximum(arithmetic, traffic)))
    predictions, index = [], 0
    for row, answer in zip(rows, answers, strict=True):
        if isinstance(answer, str):
            predictions.append(Prediction(row, kind_of(row), reason=answer))
            continue
        ratio = float(seconds[index]) / answer.seconds
        value = row.value / ratio if answer.inverse else row.value * ratio
        bound = 0.0 if answer.power else float(max(arithmetic[index], traffic[index]))
        about = range_of_case(answer, row.measured_by, float(seconds[index]), bound)
        low, high = (value * factor for factor in about.of_value(answer.inverse))
        predictions.append(
            Prediction(
                row,
                answer.kind,
                case=answer,
                value=value,
                seconds=float(seconds[index]),
                bound=bound,
                bound_by="compute" if arithmetic[index] >= traffic[index] else "memory",
                excuse=_excuse(answer, float(arithmetic[index]), float(traffic[index])),
                low=low,
                high=high,
                why=about.why,
            )
        )
        index += 1
    return tuple(predictions)


def range_of_case(case: Case, source: str, seconds: float, bound: float) -> Range:
    """Return the range of an estimate in seconds for what a source measures; a bound of 0 is none."""
    return range_of(
        case.setting,
        case.twin,
        case.network,
        version=case.version,
        source=source,
        work=case.kind,
        seconds=seconds,
        bound=bound or None,
    )
