"""Examinations: measurements of sources that the fit never saw, as they were answered at first and as they are now.

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

# Files of each examination: its rows, its sources, and what was first answered.
EXAMINATIONS = FrozenDict({1: "examination"} | {number: f"examination_{number}" for number in (2, 3, 4, 5, 6)})


def _file(number: int, ending: str) -> str:
    if number not in EXAMINATIONS:
        known = ", ".join(str(each) for each in EXAMINATIONS)
        raise ValueError(f"`number` must be that of an examination: {known}; got {number!r}")
    return f"{EXAMINATIONS[number]}{ending}"


def held_examinations() -> tuple[int, ...]:
    """Return the numbers of the examinations that were answered; one that was not stays blind.

    Examples
    --------
    >>> held_examinations()[0]
    1
    """
    return tuple(number for number in EXAMINATIONS if (DATA / _file(number, "_first.csv.gz")).exists())


@lru_cache(maxsize=len(EXAMINATIONS))
def examination_rows(number: int = 1) -> tuple[Row, ...]:
    """Return the measurements of an examination; of the first, unless another is named.

    Examples
    --------
    >>> rows = examination_rows(1)
    >>> all(row.source in examination_sources(1) for row in rows)
    True
    """
    return tuple(cited(_file(number, ".csv.gz")))


@lru_cache(maxsize=len(EXAMINATIONS))
def examination_sources(number: int) -> FrozenDict[str, FrozenDict[str, str]]:
    """Return title, version, licence and method of each source of an examination."""
    read = yaml_of(read_text(DATA / _file(number, ".yaml")))
    return FrozenDict({key: FrozenDict(entry) for key, entry in read.items()})


@lru_cache(maxsize=len(EXAMINATIONS))
def first_answers(number: int) -> tuple[Prediction, ...]:
    """Return what the models first said of each row: the value, and the ends of its range, where they said any."""
    (_, heads), *lines = csv_records(DATA / _file(number, "_first.csv.gz"))
    records = {line[0]: dict(zip(heads, line, strict=True)) for _, line in lines}
    answers = []
    for row in examination_rows(number):
        record = records.get(row.id, {})
        value, low, high = (float(record.get(name) or "nan") for name in ("predicted", "low", "high"))
        answers.append(Prediction(row, kind_of(row), value=value, low=low, high=high))
    return tuple(answers)


def hold(number: int) -> int:
    """Answer an examination for the first and only time, and write the answers beside its rows; return their number.

    Raises
    ------
    ValueError
        If it was held: what was answered at first is not answered again.
    """
    if number in held_examinations():
        raise ValueError(f"examination {number} was held: its first answers stand in {_file(number, '_first.csv.gz')}")
    kept = ("id", "predicted", "low", "high")
    result = [{name: record[name] for name in kept} for record in validate(examination_rows(number)).records()]
    text = csv_text(result).encode("utf-8")
    write_bytes(DATA / _file(number, "_first.csv.gz"), gzip.compress(text, mtime=0))
    first_answers.cache_clear()
    return sum(bool(record["low"]) for record in result)


@remembered
@traced
def reached_again(number: int) -> tuple[Prediction, ...]:
    """Return the first answers to an examination with the ranges that today's model gives such rows.

    Parameters
    ----------
    number
        Of the examination.

    Examples
    --------
    >>> first, again = (next(each for each in every if each.answered) for every in (first_answers(4), reached_again(4)))
    >>> first.value == again.value, again.low < again.value < again.high
    (True, True)
    """
    answers = []
    for first, now in zip(first_answers(number), validate(examination_rows(number)).predictions, strict=True):
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
    """Return which part of the first answers to some examinations lies below today's ranges, and which above, in time.

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
