"""Rows of a file that are read as they stand, and cannot be meant so."""

import math
from collections.abc import Sequence

from mlsys.calibration.bounds import least_times
from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.questions import interpret
from mlsys.calibration.rows import Row
from mlsys.calibration.times import stack_of
from mlsys.formatting import natural
from mlsys.hardware import Hardware

# What published rows call a machine, by the kind of its twin.
_CLASSES = {
    "GPU": ("datacenter GPU", "consumer GPU", "edge SoC"),
    "CPU": ("CPU", "edge SoC"),
    "NPU": ("NPU", "TPU-like", "edge SoC"),
    "TPU": ("TPU-like", "NPU"),
    "SoC": ("edge SoC", "CPU", "NPU"),
    "MCU": ("MCU",),
}
# No clock, cache or fast algorithm makes a kernel so many times faster than its bound, nor software so much slower.
FASTER, SLOWER = 10.0, 1000.0
# Two measurements of the same thing that differ by more contradict each other.
CONTRADICTION = 2.0

# The first measurement of each thing, with its line.
Seen = dict[tuple[str | int, ...], tuple[int, Case]]


def lines_of(rows: Sequence[Row]) -> list[tuple[int, Row]]:
    """Return each row with the line of its file; of rows that were in none, as if each took a line under the first."""
    return [(row.line or number, row) for number, row in enumerate(rows, start=2)]


def check_classes(rows: Sequence[Row], where: str) -> None:
    """Refuse rows whose class of machine is none, or is not that of their device.

    Raises
    ------
    ValueError
        Naming the file, the line, what was given and what the device is.
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
    """Return what tells one measurement of a machine from the others."""
    what = (row.workload, row.model, row.precision, row.batch, row.seq_or_shape)
    typed = (row.network, row.operator, row.elements or 0, row.image or 0, row.tokens or 0, row.stack, row.threads or 0)
    return *what, row.metric, row.software, row.n_devices, *typed, row.processor, row.tf32


def contradiction(line: int, case: Case, seen: Seen) -> str:
    """Return how a measurement contradicts the first one of the same thing, in words; empty where it does not.

    Parameters
    ----------
    line, case
        Of the measurement.
    seen
        The first of each thing; this one is added where it is the first.
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
    """Refuse rows that have nothing to do, as :func:`check_times`."""
    for (line, row), case, usual in zip(lines_of([case.row for case in cases]), cases, expected, strict=True):
        if not (0 < case.seconds < math.inf and 0 < usual < math.inf):
            told = f"{where}: line {line}: {row.value:g} {row.unit}"
            raise ValueError(f"{told}: there is nothing to do in `seq_or_shape` {row.seq_or_shape!r}")


def check_times(cases: Sequence[Case], expected: Sequence[float], where: str) -> None:
    """Refuse measurements that no machine of that kind can have made: mostly a wrong unit.

    Parameters
    ----------
    cases
        Of the lines from the second on.
    expected
        Estimated, seconds.
    where
        The file.

    Raises
    ------
    ValueError
        If a row has no work, or its time is far below the bound, or a thousand times what is expected.
    """
    check_work(cases, expected, where)
    arithmetic, traffic = least_times(cases, stack_of(cases))
    lines = [line for line, _ in lines_of([case.row for case in cases])]
    for line, case, usual, *bounds in zip(lines, cases, expected, arithmetic, traffic, strict=True):
        told = f"{where}: line {line}: {case.row.value:g} {case.row.unit}"
        doubt = doubt_of(case, usual, 0.0 if case.power else float(max(bounds)))
        if doubt:
            raise ValueError(f"{told} {doubt}")


def doubt_of(case: Case, expected: float, bound: float) -> str:
    """Return why no machine of that kind can have measured so, in words; empty where it can.

    Parameters
    ----------
    case
        With what was measured.
    expected, bound
        Estimated, and the least; seconds.
    """
    asked = "Is the unit right, and the size?"
    if case.seconds < bound / FASTER:
        return (
            f"would take {natural(bound / case.seconds)} times less than the least time that {case.row.device} needs "
            f"for it. {asked}"
        )
    if case.seconds > expected * SLOWER:
        return f"takes {natural(case.seconds / expected)} times as long as is expected. {asked} Was the machine free?"
    return ""
