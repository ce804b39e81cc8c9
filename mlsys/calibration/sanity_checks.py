"""Plausibility checks of rows: readable values that cannot be correct."""

import math
from collections.abc import Sequence

from mlsys.calibration.bounds import least_times
from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.questions import interpret
from mlsys.calibration.rows import Row
from mlsys.calibration.times import stack_of
from mlsys.formatting import natural
from mlsys.hardware import Hardware

# Classes of machines in published rows, by the kind of the device.
_CLASSES = {
    "GPU": ("datacenter GPU", "consumer GPU", "edge SoC"),
    "CPU": ("CPU", "edge SoC"),
    "NPU": ("NPU", "TPU-like", "edge SoC"),
    "TPU": ("TPU-like", "NPU"),
    "SoC": ("edge SoC", "CPU", "NPU"),
    "MCU": ("MCU",),
}
# Factors beyond any clock, cache or fast algorithm, and beyond any inefficiency of software.
FASTER, SLOWER = 10.0, 1000.0
# Ratio above which two measurements of the same thing contradict each other.
CONTRADICTION = 2.0

# The first measurement of each thing, with its line.
Seen = dict[tuple[str | int, ...], tuple[int, Case]]


def lines_of(rows: Sequence[Row]) -> list[tuple[int, Row]]:
    """Return each row with the line of its file; rows without a file are numbered from line 2."""
    return [(row.line or number, row) for number, row in enumerate(rows, start=2)]


def check_classes(rows: Sequence[Row], where: str) -> None:
    """Refuse rows with an unknown device class, or with another class than that of their device.

    Raises
    ------
    ValueError
        With the file, the line, the given class and that of the device.
    """
    for line, row in lines_of(rows):
        try:
            kind = Hardware[interpret(row).twin].kind
        except Inexpressible:
            continue
        wanted = _CLASSES.get(kind)
        if wanted and row.device_class not in wanted:
            raise ValueError(
                f"{where}: line {line}: `device_class` {row.device_class!r} is not that of {row.device}, "
                f"a {kind}: write {' or '.join(wanted)}"
            )


def what_was_measured(row: Row) -> tuple[str | int, ...]:
    """Return the key that identifies a measurement of a machine."""
    what = (row.workload, row.model, row.precision, row.batch, row.seq_or_shape)
    typed = (row.network, row.operator, row.elements or 0, row.image or 0, row.tokens or 0, row.stack, row.threads or 0)
    return *what, row.metric, row.software, row.n_devices, *typed, row.processor, row.tf32


def contradiction(line: int, case: Case, seen: Seen) -> str:
    """Return the contradiction of a measurement with the first one of the same thing, in words; empty if none.

    Parameters
    ----------
    line, case
        Line and case of the measurement.
    seen
        The first measurement of each thing; this one is added if it is the first.
    """
    row = case.row
    first, other = seen.setdefault((case.twin, *what_was_measured(row)), (line, case))
    if max(case.seconds, other.seconds) <= CONTRADICTION * min(case.seconds, other.seconds):
        return ""
    return (
        f"lines {first} and {line} measure the same and contradict each other: "
        f"{other.row.value:g} {other.row.unit} and {row.value:g} {row.unit}"
    )


def check_work(cases: Sequence[Case], expected: Sequence[float], where: str) -> None:
    """Refuse rows without any work; arguments as for :func:`check_times`."""
    for (line, row), case, usual in zip(lines_of([case.row for case in cases]), cases, expected, strict=True):
        if not (0 < case.seconds < math.inf and 0 < usual < math.inf):
            place = f"{where}: line {line}: {row.value:g} {row.unit}"
            raise ValueError(f"{place}: `seq_or_shape` {row.seq_or_shape!r} contains no work")


def check_times(cases: Sequence[Case], expected: Sequence[float], where: str) -> None:
    """Refuse measurements that no such machine can have made: mostly a wrong unit.

    Parameters
    ----------
    cases
        Cases of the lines from the second on.
    expected
        Estimated times, seconds.
    where
        The file.

    Raises
    ------
    ValueError
        If a row has no work, or its time is far below the bound, or a thousand times the expected time.
    """
    check_work(cases, expected, where)
    arithmetic, traffic = least_times(cases, stack_of(cases))
    lines = [line for line, _ in lines_of([case.row for case in cases])]
    for line, case, usual, *bounds in zip(lines, cases, expected, arithmetic, traffic, strict=True):
        place = f"{where}: line {line}: {case.row.value:g} {case.row.unit}"
        doubt = doubt_of(case, usual, 0.0 if case.power else float(max(bounds)))
        if doubt:
            raise ValueError(f"{place} {doubt}")


def doubt_of(case: Case, expected: float, bound: float) -> str:
    """Return why no such machine can have measured this, in words; empty if it can.

    Parameters
    ----------
    case
        A case with its measured time.
    expected, bound
        Estimated time and lower bound, seconds.
    """
    hint = "Is the unit right, and the size?"
    if case.seconds < bound / FASTER:
        return (
            f"would take {natural(bound / case.seconds)} times less than the least time that {case.row.device} needs "
            f"for it. {hint}"
        )
    if case.seconds > expected * SLOWER:
        return f"takes {natural(case.seconds / expected)} times as long as expected. {hint} Was the machine free?"
    return ""
