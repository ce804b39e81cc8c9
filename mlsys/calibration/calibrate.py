"""Calibration of the estimates of a machine by some ten measurements."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.doubts import doubts_of_the_twin
from mlsys.calibration.estimates import case_parameters, estimated
from mlsys.calibration.learning import LearnedEffects, learn, sensitivities
from mlsys.calibration.questions import interpret
from mlsys.calibration.rows import COLUMNS, Row, read_rows, unread_columns
from mlsys.calibration.sanity_checks import Seen, check_classes, check_times, contradiction, lines_of, what_was_measured
from mlsys.calibration.times import stack_of
from mlsys.models.estimate import Parameters
from mlsys.models.estimate.library import parameters_of, scaled
from mlsys.models.estimate.likeness import ShapeEffects, shape_of_products
from mlsys.models.estimate.user_calibration import calibrated_by, save_calibration, uncalibrated

FEWEST, MOST = 3, 200
_WORDS = {
    "compute": "your matrix units attain {:.0%} of their peak inside a full tile",
    "vector": "your vector units attain {:.0%} of their peak",
    "bandwidth": "your memory attains {:.0%} of its peak",
    "launch": "each kernel costs {:.3g} µs",
}
# Least sensitivity of some row's time to a parameter for the rows to determine it.
_DETERMINED = 0.2
_ADVICE = {
    "compute": ("the attained arithmetic rate", "add a large matrix product or network, or a large batch"),
    "bandwidth": ("the attained bandwidth", "add data larger than the last cache: a copy, or a batch of one"),
    "launch": ("the launch cost of a kernel", "add a small size, or a small network at a batch of one"),
}


@dataclass(frozen=True)
class Calibration:
    """Result of calibrating a machine by its own measurements.

    Attributes
    ----------
    device
        Id of the device.
    rows
        Number of measurements.
    settings
        Parameters of each measured kind of software, for this machine.
    networks, formats
        Time factors of each measured network relative to these parameters, and of networks in each number format.
    versions
        Time factors of each version, by setting, if several were measured.
    shapes
        Effects of the shapes of networks, by setting.
    spread
        Expected error of a further measurement, in logarithm of time.
    before, after
        Median relative error of the measurements before and after; the second on the fitted rows, by estimates that use
        the written file.
    learned, untold, doubts
        Sentences: what was learned, what the rows leave undetermined, and reasons to doubt that the device is this
        machine.
    """

    device: str
    rows: int
    settings: dict[str, Parameters]
    networks: dict[str, float]
    formats: dict[str, float]
    versions: dict[str, dict[str, float]]
    shapes: dict[str, ShapeEffects]
    spread: float
    before: float
    after: float
    learned: tuple[str, ...]
    untold: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def checked_cases(rows: Sequence[Row], where: str, most: int = MOST) -> list[Case]:
    """Return the rows as cases of one machine; raise an error with the line otherwise."""
    if len(rows) > most:
        raise ValueError(
            f"{where}: {len(rows)} measurements, at most {most} are accepted: ten well-chosen ones suffice"
        )
    if len(rows) < FEWEST:
        raise ValueError(f"{where}: at least {FEWEST} measurements are needed, better ten, got {len(rows)}")
    seen: Seen = {}
    cases: list[Case] = []
    for line, row in lines_of(rows):
        try:
            case = interpret(row)
        except Inexpressible as reason:
            hint = ". `mlsys devices` lists the devices; put your own into a folder named by MLSYS_DEVICES"
            more = hint if str(reason).startswith("no twin") else ""
            raise ValueError(f"{where}: line {line}: {reason}{more}") from reason
        top = lines_of(rows)[0][0]
        if cases and case.twin != cases[0].twin:
            same = row.device == rows[0].device
            raise ValueError(
                f"{where}: line {line}: "
                + (
                    f"`software` {row.software!r} runs on {case.twin}, and {rows[0].software!r} of line {top} on "
                    f"{cases[0].twin}. "
                    if same
                    else f"`device` {row.device} is not {rows[0].device} of line {top}. "
                )
                + "One file calibrates one machine: write one file per machine"
            )
        if cases and case.row.device_class != rows[0].device_class:
            raise ValueError(
                f"{where}: line {line}: `device_class` {row.device_class} is not {rows[0].device_class} of line {top}"
            )
        if conflict := contradiction(line, case, seen):
            raise ValueError(f"{where}: {conflict}. Keep the one that was taken warm, at a steady clock")
        cases.append(case)
    if len(seen) < FEWEST:
        raise ValueError(
            f"{where}: {len(rows)} rows, but only {len(seen)} different measurement{'s' if len(seen) > 1 else ''}. "
            "Vary the size: small, medium and large, some bound by memory and some by arithmetic"
        )
    return cases


def calibrate(rows: Sequence[Row], where: str = "calibrate()") -> Calibration:
    """Return the calibration of a machine by its measurements.

    Measurements change the parameters of the measured software, its scale, and the factors of its networks, starting
    from the values fitted to published measurements: see :mod:`mlsys.calibration.learning`. Software that was not
    measured keeps its values: on machines left out of the fit, ten rows of one kind of work did not improve the
    estimates of others.

    Parameters
    ----------
    rows
        At least three measurements of one machine, of different sizes.
    where
        Name used in errors: the file.

    Raises
    ------
    ValueError
        If a row cannot be expressed, or rows are of several machines, contradict each other, or are all the same.
    """
    cases = checked_cases(rows, where)
    check_classes(rows, where)
    with uncalibrated():
        stack = stack_of(cases)
        base = case_parameters(cases, stack)
        before = estimated(cases, stack, base)
        check_times(cases, before.tolist(), where)
        first, taken = _once(cases)
        learned = learn(taken, before[first], base[first])
        wanted = learned.seconds(cases, before, base)
        names = sorted(learned.settings)
        usual = {name: parameters_of(name, cases[0].twin)[0] for name in names}
    settings = {name: _machine(learned, name, usual[name]) for name in names}
    factors, formats = (
        {name: math.exp(value) for name, value in known.items()} for known in (learned.networks, learned.formats)
    )
    calibration = Calibration(
        cases[0].twin,
        len(cases),
        settings,
        factors,
        formats,
        _by_setting(learned.versions),
        learned.shapes,
        learned.spread,
        _median_error(cases, before),
        math.nan,
        tuple(
            words
            for name in names
            for words in (
                *_words(name, settings[name], usual[name], _determined(cases, base, name)),
                *_words_of_shapes(name, cases, learned.shapes.get(name)),
            )
        ),
        _undetermined(cases, base),
    )
    used = _as_used(cases, calibration)
    return replace(
        calibration,
        spread=math.hypot(learned.spread, float(np.sqrt(np.mean(np.log(used / wanted) ** 2)))),
        after=_median_error(cases, used),
        doubts=doubts_of_the_twin(cases, wanted, used),
    )


def _median_error(cases: Sequence[Case], times: NDArray[np.float64]) -> float:
    """Return the median relative error of the measured values: of rates where rows are rates."""
    residuals = np.log(times) - np.log([case.seconds for case in cases])
    return float(np.median(np.abs(np.expm1(np.where([case.inverse for case in cases], -residuals, residuals)))))


def _as_used(cases: Sequence[Case], calibration: Calibration) -> NDArray[np.float64]:
    """Return the estimated times with a calibration applied, by writing its file and reading it back."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "calibration.yaml"
        _save(path, calibration)
        with calibrated_by(path):
            return estimated(cases, stack_of(cases))


def _once(cases: Sequence[Case]) -> tuple[list[int], list[Case]]:
    """Return each distinct measurement once, with the mean of its times, and the index of its first row.

    Repetitions show how steady a machine is, not the error of another measurement.
    """
    places: dict[tuple[str | int, ...], list[int]] = {}
    for index, case in enumerate(cases):
        places.setdefault(what_was_measured(case.row), []).append(index)
    first = [own[0] for own in places.values()]
    means = [math.exp(float(np.mean(np.log([cases[index].seconds for index in own])))) for own in places.values()]
    return first, [replace(cases[index], seconds=mean) for index, mean in zip(first, means, strict=True)]


def _by_setting(versions: Mapping[tuple[str, str], float]) -> dict[str, dict[str, float]]:
    factors: dict[str, dict[str, float]] = {}
    for (setting, version), value in versions.items():
        factors.setdefault(setting, {})[version] = math.exp(value)
    return factors


def _machine(learned: LearnedEffects, setting: str, usual: Parameters) -> Parameters:
    moved = learned.parameters(usual.vectorised()[None, :])[0]
    return scaled(Parameters(*moved.tolist()), math.exp(learned.settings[setting]))


def _determined(cases: Sequence[Case], base: NDArray[np.float64], setting: str = "") -> set[str]:
    """Return the parameters that the rows of one setting, or of all, are sensitive to."""
    here = [index for index, case in enumerate(cases) if setting in ("", case.setting)]
    most = np.abs(sensitivities([cases[index] for index in here], base[here])).max(axis=0)
    return {name for name, value in zip(Parameters.names(), most.tolist(), strict=True) if value >= _DETERMINED}


def _words(setting: str, own: Parameters, usual: Parameters, determined: set[str]) -> list[str]:
    """Return what was learned about one setting, in words, for the parameters that its rows determine."""
    lines = []
    for field, words in _WORDS.items():
        value, was = getattr(own, field), getattr(usual, field)
        if field in determined and abs(math.log(value / was)) > 0.02:
            scale = 1e6 if field == "launch" else 1.0
            lines.append(f"{setting}: {words.format(value * scale)}; typical: {_short(field, was)}")
    return lines


def _words_of_shapes(setting: str, cases: Sequence[Case], effects: ShapeEffects | None) -> list[str]:
    """Return what was learned about networks by shape, in words: the two with the most different factors."""
    here = [case for case in cases if case.setting == setting]
    factors = (
        np.exp(effects.of([shape_of_products(case.work) for case in here]))
        if effects is not None
        else np.ones(len(here))
    )
    low, high = int(factors.argmin()), int(factors.argmax())
    if factors[high] < 1.02 * factors[low]:
        return []
    fast, slow = (
        f"{here[index].network} {verb}{factors[index]:.2f} times" for index, verb in ((low, "take "), (high, ""))
    )
    return [f"{setting}: networks with products like those of {fast} as long as the rest, like those of {slow}"]


def _undetermined(cases: Sequence[Case], base: NDArray[np.float64]) -> tuple[str, ...]:
    """Return what the rows leave undetermined, and which rows would determine it."""
    determined = _determined(cases, base)
    advice = [f"no row determines {what}: {how}" for name, (what, how) in _ADVICE.items() if name not in determined]
    counts = Counter(case.setting for case in cases)
    alone = [name for name, rows in counts.items() if rows == 1 and len(counts) > 1]
    if alone:
        advice.append(f"there is only one row for {', '.join(alone)}: measure three or more of each, small and large")
    return tuple(advice)


def _short(field: str, value: float) -> str:
    return f"{value * 1e6:.3g} µs" if field == "launch" else f"{value:.0%}"


def check_columns(data: Path, *, measured: bool = True) -> None:
    """Refuse a file with unknown columns."""
    if unknown := unread_columns(data, measured=measured):
        raise ValueError(f"{data}: line 1: unknown columns: {', '.join(unknown)}. Known: {', '.join(COLUMNS)}")


def calibrate_file(data: Path, out: Path) -> Calibration:
    """Read measurements, calibrate, and write the small file for ``--calibration``.

    Raises
    ------
    ValueError
        As for :func:`calibrate`; and if a column is unknown.
    """
    check_columns(data)
    if out.exists() and out.samefile(data):
        raise ValueError(f"{out} contains the measurements: choose another file for the calibration")
    calibration = calibrate(read_rows(data), str(data))
    _save(out, calibration)
    return calibration


def _save(path: Path, calibration: Calibration) -> None:
    save_calibration(
        path,
        calibration.device,
        calibration.settings,
        calibration.rows,
        calibration.networks,
        calibration.formats,
        calibration.versions,
        calibration.shapes,
        calibration.spread,
    )
