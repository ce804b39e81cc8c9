"""From a list of what could be measured of a machine to the ten that tell most of it, as rows to fill in."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlsys.calibration.advice import MOST, TEN, advised
from mlsys.calibration.calibrate import check_columns, checked_cases
from mlsys.calibration.estimates import estimated, tuned
from mlsys.calibration.rows import COLUMNS, Row, columns_of, read_rows
from mlsys.calibration.sanity_checks import check_classes, check_work, lines_of, what_was_measured
from mlsys.calibration.times import stack_of
from mlsys.files import csv_text, write_text
from mlsys.models.estimate.user_calibration import uncalibrated


@dataclass(frozen=True)
class Planned:
    """A measurement to take.

    Attributes
    ----------
    line
        Where it stands in the list.
    row
        As the list has it.
    seconds
        How long it is expected to take.
    """

    line: int
    row: Row
    seconds: float


def ten_to_take(rows: Sequence[Row], where: str = "ten_to_take()") -> tuple[Planned, ...]:
    """Return the ten measurements that tell most of all rows, the most telling first.

    Parameters
    ----------
    rows
        What could be measured of one machine, and will be asked of it: 3 to 2,000; one that stands twice counts once.
        Their values are not read.
    where
        Named in errors: the file.

    Raises
    ------
    ValueError
        If a row cannot be expressed, or rows are of several machines, or are all the same.
    """
    cases = checked_cases(rows, where, MOST)
    check_classes(rows, where)
    with uncalibrated():
        stack = stack_of(cases)
        base = tuned(cases, stack)
        seconds = estimated(cases, stack, base)
    check_work(cases, seconds.tolist(), where)
    first: dict[tuple[str | int, ...], int] = {}
    for index, row in enumerate(rows):
        first.setdefault(what_was_measured(row), index)
    once = list(first.values())
    ten = advised([cases[index] for index in once], seconds[once].tolist(), base[once], TEN)
    lines = [line for line, _ in lines_of(rows)]
    return tuple(
        Planned(lines[index], rows[index], float(seconds[index])) for index in (once[choice] for choice in ten)
    )


def plan_file(data: Path, out: Path) -> tuple[Planned, ...]:
    """Read what could be measured, choose, and write the ten with their values left open.

    Raises
    ------
    ValueError
        As :func:`ten_to_take`; and if a column has no name that rows have.
    """
    check_columns(data, measured=False)
    if out.exists() and out.samefile(data):
        raise ValueError(f"{out} holds the list: choose another place for the ten")
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
