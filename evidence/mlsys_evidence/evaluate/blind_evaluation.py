"""Blind evaluations: measurements from sources that the fit never saw, with their first and present predictions.

Errors with a sweep or a machine left out still flatter: laws and settings were chosen with all shipped rows in sight.
The rows here are of other repositories. Each set was frozen before any of it was predicted; what the models of that
hour said is kept beside it. Answers that were given have been looked at since, and what was missing was mended;
nothing was fitted to their rows.
"""

import gzip
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from mlsys.calibration.rows import Row
from mlsys.files import csv_text, write_bytes
from mlsys.frozen import FrozenDict
from mlsys.inputs import csv_records, read_text, yaml_of
from mlsys.provenance import remembered, traced
from mlsys_evidence.evaluate.report import Prediction, range_of_case, validate
from mlsys_evidence.questions import kind_of
from mlsys_evidence.rows import DATA, cited

# Files of each blind evaluation: its rows, its sources, and its first predictions.
BLIND_EVALUATIONS = FrozenDict({number: f"blind_evaluation_{number}" for number in range(1, 7)})


def _file(number: int, ending: str) -> str:
    if number not in BLIND_EVALUATIONS:
        known = ", ".join(str(each) for each in BLIND_EVALUATIONS)
        raise ValueError(f"`number` must be that of a blind evaluation: {known}; got {number!r}")
    return f"{BLIND_EVALUATIONS[number]}{ending}"


def completed_blind_evaluations() -> tuple[int, ...]:
    """Return the numbers of the blind evaluations that were run.

    Examples
    --------
    >>> completed_blind_evaluations()[0]
    1
    """
    return tuple(number for number in BLIND_EVALUATIONS if (DATA / _file(number, "_first.csv.gz")).exists())


@lru_cache(maxsize=len(BLIND_EVALUATIONS))
def blind_evaluation_rows(number: int = 1) -> tuple[Row, ...]:
    """Return the measurements of a blind evaluation; of the first, unless another is named.

    Examples
    --------
    >>> rows = blind_evaluation_rows(1)
    >>> all(row.source in blind_evaluation_sources(1) for row in rows)
    True
    """
    return tuple(cited(_file(number, ".csv.gz")))


@lru_cache(maxsize=len(BLIND_EVALUATIONS))
def blind_evaluation_sources(number: int) -> FrozenDict[str, FrozenDict[str, str]]:
    """Return title, version, licence and method of each source of a blind evaluation."""
    read = yaml_of(read_text(DATA / _file(number, ".yaml")))
    return FrozenDict({key: FrozenDict(entry) for key, entry in read.items()})


@lru_cache(maxsize=len(BLIND_EVALUATIONS))
def first_answers(number: int) -> tuple[Prediction, ...]:
    """Return what the models first said of each row: the value, and the ends of its range, where they said any."""
    (_, heads), *lines = csv_records(DATA / _file(number, "_first.csv.gz"))
    records = {line[0]: dict(zip(heads, line, strict=True)) for _, line in lines}
    answers = []
    for row in blind_evaluation_rows(number):
        record = records.get(row.id, {})
        value, low, high = (float(record.get(name) or "nan") for name in ("predicted", "low", "high"))
        answers.append(Prediction(row, kind_of(row), value=value, low=low, high=high))
    return tuple(answers)


def run_blind_evaluation(number: int) -> int:
    """Predict the rows of a blind evaluation once, store the predictions, and return their number.

    Raises
    ------
    ValueError
        If it was run before: first predictions are not replaced.
    """
    if number in completed_blind_evaluations():
        stored = _file(number, "_first.csv.gz")
        raise ValueError(f"blind evaluation {number} was run before: {stored} holds its first predictions")
    kept = ("id", "predicted", "low", "high")
    result = [{name: record[name] for name in kept} for record in validate(blind_evaluation_rows(number)).records()]
    text = csv_text(result).encode("utf-8")
    write_bytes(DATA / _file(number, "_first.csv.gz"), gzip.compress(text, mtime=0))
    first_answers.cache_clear()
    return sum(bool(record["low"]) for record in result)


@remembered
@traced
def reached_again(number: int) -> tuple[Prediction, ...]:
    """Return the first answers to a blind evaluation with the ranges that today's model gives such rows.

    Parameters
    ----------
    number
        Of the blind evaluation.

    Examples
    --------
    >>> first, again = (next(each for each in every if each.answered) for every in (first_answers(4), reached_again(4)))
    >>> first.value == again.value, again.low < again.value < again.high
    (True, True)
    """
    answers = []
    for first, now in zip(first_answers(number), validate(blind_evaluation_rows(number)).predictions, strict=True):
        case = now.case
        if case is None or not first.answered:
            answers.append(first)
            continue
        seconds = max(first.ratio * case.seconds, now.bound)
        about = range_of_case(case, first.row.measured_by, seconds, now.bound)
        low, high = (first.value * factor for factor in about.of_value(case.inverse))
        answers.append(replace(first, low=low, high=high, why=about.why))
    return tuple(answers)


def unseen_shares_outside(numbers: Sequence[int]) -> tuple[float, float]:
    """Return the shares of first predictions that lie below today's ranges, and above them, in time.

    Each source counts as the root of its rows: a hundred rows of it are no hundred opinions, nor one.

    Examples
    --------
    >>> faster, slower = unseen_shares_outside((2, 3))
    >>> 0.01 < faster < 0.13, 0.01 < slower < 0.13
    (True, True)
    """
    answers = [each for number in numbers for each in reached_again(number) if each.answered and each.why]
    rows = Counter(each.row.measured_by for each in answers)
    weights = np.array([rows[each.row.measured_by] ** -0.5 for each in answers])
    rate = np.array(["/s" in each.row.unit for each in answers])
    above, below = (
        np.array([each.row.value > each.high for each in answers]),
        np.array([each.row.value < each.low for each in answers]),
    )
    weights /= weights.sum()
    return float(weights @ np.where(rate, above, below)), float(weights @ np.where(rate, below, above))
