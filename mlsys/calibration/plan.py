"""Selection of the ten most informative measurements from a list, as rows to fill in."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlsys.calibration.advice import MOST, TEN, most_informative
from mlsys.calibration.calibrate import check_columns, checked_cases
from mlsys.calibration.estimates import case_parameters, estimated
from mlsys.calibration.rows import COLUMNS, Row, columns_of, read_rows
from mlsys.calibration.sanity_checks import check_classes, check_work, lines_of, what_was_measured
from mlsys.calibration.times import stack_of
from mlsys.files import csv_text, write_text
from mlsys.models.estimate.user_calibration import uncalibrated


@dataclass(frozen=True)
class MeasurementPlan:
    """A measurement to take.

    Attributes
    ----------
    line
        Its line in the list.
    row
        The row of the list.
    seconds
        Expected duration.
    """

    line: int
    row: Row
    seconds: float


def ten_to_take(rows: Sequence[Row], where: str = "ten_to_take()") -> tuple[MeasurementPlan, ...]:
    """Return the ten most informative measurements of all rows, the best first.

    Parameters
    ----------
    rows
        Possible measurements, and future questions, of one machine: 3 to 2,000; duplicates count once. Their values are
        not read.
    where
        Name used in errors: the file.

    Raises
    ------
    ValueError
        If a row cannot be expressed, or rows are of several machines, or are all the same.
    """
    cases = checked_cases(rows, where, MOST)
    check_classes(rows, where)
    with uncalibrated():
        stack = stack_of(cases)
        base = case_parameters(cases, stack)
        seconds = estimated(cases, stack, base)
    check_work(cases, seconds.tolist(), where)
    first: dict[tuple[str | int, ...], int] = {}
    for index, row in enumerate(rows):
        first.setdefault(what_was_measured(row), index)
    once = list(first.values())
    ten = most_informative([cases[index] for index in once], seconds[once].tolist(), base[once], TEN)
    lines = [line for line, _ in lines_of(rows)]
    return tuple(
        MeasurementPlan(lines[index], rows[index], float(seconds[index])) for index in (once[choice] for choice in ten)
    )


def plan_file(data: Path, out: Path) -> tuple[MeasurementPlan, ...]:
    """Read possible measurements, select ten, and write them with empty values.

    Raises
    ------
    ValueError
        As for :func:`ten_to_take`; and if a column is unknown.
    """
    check_columns(data, measured=False)
    if out.exists() and out.samefile(data):
        raise ValueError(f"{out} contains the list: choose another file for the ten rows")
    ten = ten_to_take(read_rows(data, measured=False), str(data))
    heads = [name for name in columns_of(data, measured=False) if name in COLUMNS]
    if "value" not in heads:
        heads.insert(heads.index("unit"), "value")
    write_text(out, csv_text([{name: _cell(each.row, name) for name in heads} for each in ten], heads))
    return ten


def _cell(row: Row, name: str) -> str:
    if name == "value":
        return ""
    if name == "n_devices":
        return str(row.n_devices or "?")
    cell = getattr(row, name)
    return "" if cell is None else str(cell)
