"""An examination: measurements of sources that the fit never saw, as they were answered at first and as they are now.

Errors with a sweep or a machine left out still flatter: laws and settings were chosen with all shipped rows in sight.
The rows here are of other repositories. The set was frozen before any of it was predicted; what the models of that
hour said is kept beside it. Afterwards readers and faults were mended, and nothing was fitted to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mlsys.frozen import FrozenDict
from mlsys.inputs import csv_records, read_text, yaml_of
from mlsys.provenance import remembered, traced
from mlsys.tables import Table, tabled
from mlsys.validation.report import validate
from mlsys.validation.rows import DATA, Row, read_rows

# Groups with fewer rows are counted in no table of their own.
FEWEST_ROWS = 4


@dataclass(frozen=True)
class Grade:
    """How well some rows were answered.

    Attributes
    ----------
    rows, answered
        Rows, and those that a model expressed.
    error, tenth
        Median of the error and the error that one row in ten exceeds, as parts of the published value; NaN
        where none was answered.
    within_two, covered
        Parts of the answered rows within a factor of two, and in their 80 % range.
    width
        Median of the range's upper over its lower end.
    typical
        By what factor the answers are off, either way: the root mean square of its logarithm over all answered rows.
    """

    rows: int
    answered: int
    error: float
    tenth: float
    within_two: float
    covered: float
    width: float
    typical: float


@dataclass(frozen=True)
class Examined:
    """A group of rows, graded twice: by the first answers, and by today's."""

    group: str
    first: Grade
    now: Grade


@lru_cache(maxsize=1)
def examination_rows() -> tuple[Row, ...]:
    """Return the measurements of the examination.

    Examples
    --------
    >>> rows = examination_rows()
    >>> all(row.source in examination_sources() for row in rows)
    True
    """
    return tuple(read_rows(DATA / "examination.csv.gz"))


@lru_cache(maxsize=1)
def examination_sources() -> FrozenDict[str, FrozenDict[str, str]]:
    """Return title, version, licence and method of each source of the examination."""
    read = yaml_of(read_text(DATA / "examination.yaml"))
    return FrozenDict({key: FrozenDict(entry) for key, entry in read.items()})


Answer = tuple[float, float, float]


@lru_cache(maxsize=1)
def first_answers() -> FrozenDict[str, Answer]:
    """Return what the models first said, by id: the value in the row's unit, and the ends of its range."""
    (_, heads), *lines = csv_records(DATA / "examination_first.csv.gz")
    records = [dict(zip(heads, line, strict=True)) for _, line in lines]
    return FrozenDict(
        {row["id"]: (float(row["predicted"]), float(row["low"]), float(row["high"])) for row in records if row["low"]}
    )


def grade(measured: Sequence[float], answers: Sequence[Answer | None]) -> Grade:
    """Return how well measurements were answered, those without an answer apart.

    Parameters
    ----------
    measured
        Published values.
    answers
        Value and range of each, or None.

    Examples
    --------
    >>> graded = grade([10.0, 10.0, 10.0], [(11.0, 9.0, 12.0), (30.0, 20.0, 40.0), None])
    >>> graded.answered, graded.error, graded.within_two, graded.covered
    (2, 1.05, 0.5, 0.5)
    """
    done = [(value, *answer) for value, answer in zip(measured, answers, strict=True) if answer]
    if not done:
        return Grade(len(measured), 0, *[float("nan")] * 6)
    value, told, low, high = np.array(done).T
    error, ratio = np.abs(told / value - 1), told / value
    return Grade(
        len(measured),
        len(done),
        round(float(np.median(error)), 4),
        round(float(np.quantile(error, 0.9)), 4),
        round(float(np.mean((ratio > 0.5) & (ratio < 2))), 4),
        round(float(np.mean((low <= value) & (value <= high))), 4),
        round(float(np.median(high / low)), 3),
        float(np.exp(np.sqrt(np.mean(np.log(ratio) ** 2)))),
    )


@remembered
@traced
def both_times() -> tuple[Grade, Grade]:
    """Return the grades of the rows that were answered at first and are answered now: what mending changed in them."""
    first = first_answers()
    told = [each for each in validate(examination_rows()).predictions if each.case and each.row.id in first]
    measured = [each.row.value for each in told]
    now = [(each.value, each.low, each.high) for each in told]
    return grade(measured, [first[each.row.id] for each in told]), grade(measured, now)


@remembered
@traced
def examined() -> tuple[Examined, ...]:
    """Return the grades of each class of machine and kind of work, and of all rows at the end.

    Examples
    --------
    >>> whole = examined()[-1]
    >>> whole.group, whole.first.rows == len(examination_rows())
    ('all', True)
    """
    told = validate(examination_rows()).predictions
    groups = [f"{each.row.device_class}: {each.kind}" for each in told]
    chosen = {name: [index for index, group in enumerate(groups) if group == name] for name in sorted(set(groups))}
    chosen["all"] = list(range(len(told)))
    first = first_answers()
    graded = []
    for name, own in chosen.items():
        measured = [told[index].row.value for index in own]
        now = [(told[index].value, told[index].low, told[index].high) if told[index].case else None for index in own]
        grades = (grade(measured, [first.get(told[index].row.id) for index in own]), grade(measured, now))
        graded.append(Examined(name, *grades))
    return tuple(graded)


def _both(first: float, now: float, form: str) -> str:
    return " → ".join("—" if part != part else format(part, form) for part in (first, now))


@tabled
def examination_table() -> Table:
    """Return the grades as a table: at first, and now."""
    heads = ("group", "rows", "answered", "median error", "one in ten beyond", "in 80 % range", "width")
    rows = [
        (
            each.group,
            each.first.rows,
            f"{each.first.answered} → {each.now.answered}",
            _both(each.first.error, each.now.error, ".0%"),
            _both(each.first.tenth, each.now.tenth, ".0%"),
            _both(each.first.covered, each.now.covered, ".0%"),
            _both(each.first.width, each.now.width, ".2g"),
        )
        for each in examined()
        if each.first.rows >= FEWEST_ROWS
    ]
    return Table("The examination: first answers → today's", heads, rows)
