"""Ten measurements of a machine make the estimates its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from mlsys.models.calibrated import Parameters
from mlsys.models.calibrated.library import parameters_of, save_calibration
from mlsys.validation.cases import Case, Inexpressible, interpret
from mlsys.validation.estimates import of_the_work
from mlsys.validation.fit import Fit, fit, predicted
from mlsys.validation.rows import EXTRA, Row, columns_of, read_rows

__all__ = ["Calibration", "TenBack", "calibrate", "calibrate_file", "ten_rows_back"]

FEWEST = 3
# Two measurements of the same thing that differ by more contradict each other.
CONTRADICTION = 2.0
_WORDS = {
    "compute": "your matrix units attain {:.0%} of their peak inside a full tile",
    "vector": "your vector units attain {:.0%} of their peak",
    "bandwidth": "your memory attains {:.0%} of its peak",
    "launch": "each kernel costs {:.3g} µs",
}


@dataclass(frozen=True)
class Calibration:
    """What a machine's own measurements teach.

    Attributes
    ----------
    device
        Id of its twin.
    rows
        How many measurements.
    settings
        The parameters of each kind of software that was measured, for this machine.
    before, after
        Median error of the measurements before, and after, as a part; the second on the rows fitted to.
    learned
        Sentences.
    """

    device: str
    rows: int
    settings: dict[str, Parameters]
    before: float
    after: float
    learned: tuple[str, ...]


def _checked(rows: Sequence[Row], where: str) -> list[Case]:
    """Return the rows as cases, or say which line is wrong."""
    if len(rows) < FEWEST:
        raise ValueError(f"{where}: wanted at least {FEWEST} measurements, ten are better, got {len(rows)}")
    seen: dict[tuple[str, ...], tuple[int, float]] = {}
    cases: list[Case] = []
    for line, row in enumerate(rows, start=2):
        try:
            case = interpret(row)
        except Inexpressible as reason:
            raise ValueError(f"{where}: line {line}: {reason}") from reason
        if cases and case.twin != cases[0].twin:
            raise ValueError(
                f"{where}: line {line}: `device` {row.device} is not {rows[0].device} of line 2. "
                "One file calibrates one machine: write a file for each"
            )
        if cases and case.row.device_class != rows[0].device_class:
            raise ValueError(
                f"{where}: line {line}: `device_class` {row.device_class} is not {rows[0].device_class} of line 2"
            )
        key = (row.workload, row.model, row.precision, row.batch, row.seq_or_shape, row.metric, row.unit, row.software)
        first, value = seen.setdefault(key, (line, row.value))
        if not 1 / CONTRADICTION <= row.value / value <= CONTRADICTION:
            raise ValueError(
                f"{where}: lines {first} and {line} measure the same and contradict each other: "
                f"{value:g} and {row.value:g} {row.unit}. Keep the one that was taken warm, at a steady clock"
            )
        cases.append(case)
    if len(seen) < FEWEST:
        raise ValueError(
            f"{where}: {len(rows)} rows, but only {len(seen)} different measurement{'s' if len(seen) > 1 else ''}. "
            "Vary the size: small, middle and large, some bound by memory and some by arithmetic"
        )
    return cases


def calibrate(rows: Sequence[Row], where: str = "calibrate()") -> Calibration:
    """Return what measurements of one machine teach about it.

    Each kind of software among them starts from the parameters that were fitted to published
    measurements, and leaves them only as far as the rows pull.

    Parameters
    ----------
    rows
        At least three measurements of one machine, of different sizes.
    where
        Named in errors: the file.

    Raises
    ------
    ValueError
        If a row cannot be expressed, rows are of several machines, contradict each other, or are all the same.
    """
    cases = _checked(rows, where)
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.setting, []).append(case)
    settings: dict[str, Parameters] = {}
    learned: list[str] = []
    before: list[float] = []
    after: list[float] = []
    for name, rest in sorted(groups.items()):
        # What is known of a network or a shape holds on this machine too, and is no fault of its own.
        own = [
            replace(case, seconds=case.seconds / factor)
            for case, factor in zip(rest, of_the_work(rest).tolist(), strict=True)
        ]
        usual, _ = parameters_of(name, own[0].twin)
        measured = np.array([case.seconds for case in own])
        before += np.abs(predicted(own, Fit(usual)) / measured - 1).tolist()
        found = fit(own, centre=usual)
        machine = found.of(own[0].twin)
        after += np.abs(predicted(own, Fit(machine)) / measured - 1).tolist()
        settings[name] = machine
        for field, words in _WORDS.items():
            value, was = getattr(machine, field), getattr(usual, field)
            if abs(np.log(value / was)) > 0.02:
                scale = 1e6 if field == "launch" else 1.0
                learned.append(f"{name}: {words.format(value * scale)}; usual is {_short(field, was)}")
    return Calibration(
        cases[0].twin, len(cases), settings, float(np.median(before)), float(np.median(after)), tuple(learned)
    )


def _short(field: str, value: float) -> str:
    return f"{value * 1e6:.3g} µs" if field == "launch" else f"{value:.0%}"


def calibrate_file(data: Path, out: Path) -> Calibration:
    """Read measurements, calibrate, and write the small file that ``--calibration`` takes.

    Raises
    ------
    ValueError
        As :func:`calibrate`; and if a column has no name that rows have.
    """
    known = {entry.name for entry in fields(Row)} | set(EXTRA)
    unknown = [name for name in columns_of(data) if name not in known]
    if unknown:
        names = ", ".join(entry.name for entry in fields(Row))
        raise ValueError(f"{data}: line 1: unknown columns: {', '.join(unknown)}. Known: {names}")
    found = calibrate(read_rows(data), str(data))
    save_calibration(out, found.device, found.settings, found.rows)
    return found


@dataclass(frozen=True)
class TenBack:
    """A machine left out of the fit, and what ten of its rows, handed back, do to the error of the rest.

    Attributes
    ----------
    setting, twin
        Which rows.
    rows
        The rest, that were graded.
    without, calibrated
        Median error of the rest, as a part: predicted without the machine, and after ten rows of it.
    """

    setting: str
    twin: str
    rows: int
    without: float
    calibrated: float


def ten_rows_back(cases: Sequence[Case], ten: int = 10) -> list[TenBack]:
    """Leave each machine out of a setting, hand ten of its rows back, and grade the rest of its rows.

    Parameters
    ----------
    cases
        Of one setting.
    ten
        Rows handed back, evenly spread over the measured times; machines with fewer than 2 × ten are passed over.
    """
    found = []
    for twin in sorted({case.twin for case in cases}):
        own = sorted((case for case in cases if case.twin == twin), key=lambda case: case.seconds)
        others = [case for case in cases if case.twin != twin]
        if len(own) < 2 * ten or len(others) < FEWEST:
            continue
        back = set(np.linspace(0, len(own) - 1, ten).round().astype(int).tolist())
        given = [case for place, case in enumerate(own) if place in back]
        rest = [case for place, case in enumerate(own) if place not in back]
        measured = np.array([case.seconds for case in rest])
        usual = fit(others).parameters
        machine = fit(given, centre=usual).of(twin)
        errors = [float(np.median(np.abs(predicted(rest, Fit(way)) / measured - 1))) for way in (usual, machine)]
        found.append(TenBack(cases[0].setting, twin, len(rest), *errors))
    return found
