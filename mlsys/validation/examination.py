"""Examinations: measurements of sources that the fit never saw, as they were answered at first and as they are now.

Errors with a sweep or a machine left out still flatter: laws and settings were chosen with all shipped rows in sight.
The rows here are of other repositories. Each set was frozen before any of it was predicted; what the models of that
hour said is kept beside it. Answers that were given have been looked at since, and what was missing was mended;
nothing was fitted to their rows.
"""

import gzip
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mlsys.files import csv_text, write_bytes
from mlsys.frozen import FrozenDict
from mlsys.inputs import csv_records, read_text, yaml_of
from mlsys.models.calibrated.ranges import COVERAGE
from mlsys.provenance import remembered, traced
from mlsys.tables import Table, tabled
from mlsys.validation.cases import kind_of
from mlsys.validation.report import Prediction, Score, score, validate
from mlsys.validation.rows import DATA, Row, read_rows

# Files of each examination: its rows, its sources, and what was first answered.
EXAMINATIONS = FrozenDict({1: "examination"} | {number: f"examination_{number}" for number in (2, 3, 4, 5)})
# Groups with fewer rows are counted in no table of their own.
FEWEST_ROWS = 4


@dataclass(frozen=True)
class Examined:
    """A group of rows, scored twice: by the first answers, and by today's."""

    group: str
    first: Score
    now: Score


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
    return tuple(read_rows(DATA / _file(number, ".csv.gz")))


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
    told = [{name: record[name] for name in kept} for record in validate(examination_rows(number)).records()]
    text = csv_text(told).encode("utf-8")
    write_bytes(DATA / _file(number, "_first.csv.gz"), gzip.compress(text, mtime=0))
    first_answers.cache_clear()
    return sum(bool(record["low"]) for record in told)


def typical(predictions: Sequence[Prediction]) -> float:
    """Return by what factor answers are off, either way: the root mean square of its logarithm over all answered rows.

    Examples
    --------
    >>> from dataclasses import replace
    >>> one = next(each for each in first_answers(1) if each.answered)
    >>> twice, half = (replace(one, value=one.row.value * times) for times in (2.0, 0.5))
    >>> round(typical([twice, half]), 6)
    2.0
    """
    logs = np.log([each.ratio for each in predictions if each.answered])
    return float(np.exp(np.sqrt(np.mean(logs**2))))


def missed(number: int) -> tuple[float, float]:
    """Return how many times as far the ranges of first answers had to reach, downwards and upwards, for four in five.

    Of the logarithm of measured over told time, over that of the end of its range on the same side, with a tenth of
    the rows beyond on either side, and every source counting the same.

    Parameters
    ----------
    number
        Of the examination.

    Examples
    --------
    >>> down, up = missed(2)
    >>> down < 1 < up
    True
    """
    answers = [each for each in first_answers(number) if each.answered and 0 < each.low < each.value < each.high]
    rows = Counter(each.row.measured_by for each in answers)
    off = np.array([-np.log(each.ratio) for each in answers])
    ends = np.log([[each.low / each.value, each.high / each.value] for each in answers])
    rate = np.array(["/s" in each.row.unit for each in answers])
    ends[rate] = -ends[rate][:, ::-1]
    weights = np.array([1 / rows[each.row.measured_by] for each in answers])
    tail = (1 - COVERAGE) / 2
    down, up = (_quantile(off / ends[:, side], weights, 1 - tail) for side in (0, 1))
    return down, up


def _quantile(values: NDArray[np.float64], weights: NDArray[np.float64], part: float) -> float:
    """Return what a part of some weighted values lie below."""
    order = np.argsort(values)
    return float(values[order][np.searchsorted(np.cumsum(weights[order]), part * weights.sum())])


@remembered
@traced
def examined(number: int) -> tuple[Examined, ...]:
    """Return the scores of each class of machine and kind of work, and of all rows at the end.

    Parameters
    ----------
    number
        Of the examination, one of :func:`held_examinations`.

    Examples
    --------
    >>> whole = examined(1)[-1]
    >>> whole.group, whole.first.rows == len(examination_rows(1))
    ('all', True)
    """
    first, now = first_answers(number), validate(examination_rows(number)).predictions
    groups = [f"{each.row.device_class}: {each.kind}" for each in now]
    chosen = {name: [index for index, group in enumerate(groups) if group == name] for name in sorted(set(groups))}
    chosen["all"] = list(range(len(now)))
    return tuple(
        Examined(name, score([first[index] for index in own]), score([now[index] for index in own]))
        for name, own in chosen.items()
    )


@tabled
def examinations_table() -> Table:
    """Return two lines for each examination that was held: what was said blind, and what is said today."""
    heads = ("number", "told", "rows", "sources", "answered", "median", "within two", "in range")
    rows = []
    for number in held_examinations():
        whole = examined(number)[-1]
        sources = len(examination_sources(number))
        for told, part in (("blind", whole.first), ("today", whole.now)):
            rows.append((number, told, part.rows, sources, *_shares(part)))
    return Table("Examinations: what was said blind, and what is said today", heads, rows)


def _shares(part: Score) -> tuple[str, ...]:
    percents = (part.median_ape, part.within_factor_two, part.coverage)
    return (str(part.expressible), *("—" if value is None else f"{value:.0f}%" for value in percents))


@tabled
def examination_table(number: int) -> Table:
    """Return the scores as a table, in the words of ``mlsys validate``: at first, and now where that is another."""
    heads = ("group", "rows", "done", "median", "p90", "inside", "width")
    parts = [each for each in examined(number) if each.first.rows >= FEWEST_ROWS]
    caption = f"Examination {number}: first answers, and today's behind an arrow"
    rows = [(each.group, each.first.rows, *_arrows(_texts(each.first), _texts(each.now))) for each in parts]
    return Table(caption, heads, rows)


def _arrows(first: Sequence[str], now: Sequence[str]) -> list[str]:
    return [told if told == today else f"{told} → {today}" for told, today in zip(first, now, strict=True)]


def _texts(part: Score) -> tuple[str, ...]:
    percents = ("—" if value is None else f"{value:.0f}%" for value in (part.median_ape, part.p90_ape, part.coverage))
    return (str(part.expressible), *percents, "—" if part.width is None else f"{part.width:.2g}×")
