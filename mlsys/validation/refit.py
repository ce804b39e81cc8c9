"""Fitting every setting to the shipped measurements, with what the fit does to rows it has not seen."""

from __future__ import annotations

import csv
import gzip
import multiprocessing
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlsys.files import together
from mlsys.models.calibrated import Parameters
from mlsys.models.calibrated.library import fitted, machines, save
from mlsys.models.calibrated.ranges import fitted_ranges, range_of, save_ranges
from mlsys.provenance import remembered
from mlsys.validation.cases import Case, Inexpressible, interpret
from mlsys.validation.fit import Fit, fit, held_out
from mlsys.validation.intervals import intervals
from mlsys.validation.report import Prediction, Score, score
from mlsys.validation.rows import cited_rows, shipped_rows

__all__ = ["held_out_scores", "refit", "settings"]

_PLACE = Path(__file__).parent / "data" / "held_out.csv.gz"
_HEADS = "id,seconds_without_the_device,seconds_without_the_sweep"
Progress = Callable[[Iterable[str]], AbstractContextManager[Iterator[str]]]


def settings() -> dict[str, list[Case]]:
    """Return the expressible rows, shipped and cited, by setting; suspect ones are left out."""
    found: dict[str, list[Case]] = {}
    for row in (*shipped_rows(), *cited_rows()):
        if row.quality == "suspect":
            continue
        try:
            case = interpret(row)
        except Inexpressible:
            continue
        found.setdefault(case.setting, []).append(case)
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class _Answer:
    """What one setting's fit gives: the fit, and each case's time without its device and without its sweep."""

    name: str
    fit: Fit
    without_device: NDArray[np.float64]
    without_sweep: NDArray[np.float64]


def _fitted(job: tuple[str, list[Case]]) -> _Answer:
    name, cases = job
    found = fit(cases)
    start = found.parameters
    by_device = held_out(cases, lambda case: case.twin, start=start)
    by_sweep = held_out(cases, lambda case: case.row.group or case.twin, start=start)
    return _Answer(name, found, by_device, by_sweep)


def refit(progress: Progress, only: str = "", processes: int = 2) -> dict[str, Parameters]:
    """Fit every setting, write the parameters, and predict each row from fits without it.

    Parameters
    ----------
    progress
        Wraps the names of the settings as they are done, such as ``click.progressbar``.
    only
        A pattern: settings whose names lack it keep what they have.
    processes
        Settings that are fitted at the same time.
    """
    chosen = settings()
    jobs = {name: cases for name, cases in chosen.items() if re.search(only, name)}
    # The longest first, so that none is left alone at the end.
    order = sorted(jobs.items(), key=lambda job: -sum(case.work.columns.shape[1] for case in job[1]))
    parameters = {name: kept for name, kept in fitted().items() if name in chosen and name not in jobs}
    own = {name: dict(kept) for name, kept in machines().items() if name in chosen and name not in jobs}
    lines = {line[0]: line for line in (_kept() if only else [])}
    with multiprocessing.Pool(processes) as pool:
        answers = pool.imap_unordered(_fitted, order)
        with progress([name for name, _ in order]) as names:
            for _ in names:
                answer = next(answers)
                parameters[answer.name] = answer.fit.parameters
                own[answer.name] = answer.fit.machines
                for case, device, sweep in zip(
                    jobs[answer.name], answer.without_device, answer.without_sweep, strict=True
                ):
                    lines[case.row.id] = (case.row.id, float(device), float(sweep))
    known = {case.row.id for cases in chosen.values() for case in cases}
    text = "".join(
        ",".join((name, *("" if np.isnan(value) else f"{value:.5g}" for value in values))) + "\n"
        for name, *values in sorted(lines.values())
        if name in known
    )
    with together() as files:
        save(parameters, own, files)
        files.bytes(_PLACE, gzip.compress(f"{_HEADS}\n{text}".encode(), 9, mtime=0))
        save_ranges(intervals(chosen, lines), files)
    for kept in (fitted, machines, fitted_ranges):
        kept.cache_clear()
    return parameters


def _kept() -> list[tuple[str, float, float]]:
    """Return the predictions of the last fit, seconds, NaN where there is none."""
    with gzip.open(_PLACE, "rt", newline="", encoding="utf-8") as stream:
        return [
            (row[0], *(float(cell) if cell else float("nan") for cell in row[1:3]))  # type: ignore[misc]
            for row in list(csv.reader(stream))[1:]
        ]


def held_out_predictions(which: str) -> list[Prediction]:
    """Return the shipped rows predicted from fits that never saw their ``device`` or ``sweep``."""
    return list(_held_out(which, _PLACE.stat().st_mtime_ns))  # a new fit writes the file anew


@remembered
def _held_out(which: str, _written: int) -> tuple[Prediction, ...]:
    seconds = {name: device if which == "device" else sweep for name, device, sweep in _kept()}
    found = []
    for row in shipped_rows():
        predicted = seconds.get(row.id, float("nan"))
        if np.isnan(predicted):
            continue
        try:
            case = interpret(row)
        except Inexpressible:
            continue
        ratio = predicted / case.seconds
        value = row.value / ratio if case.inverse else row.value * ratio
        about = range_of(case.setting, case.twin if which == "sweep" else "")
        low, high = (value * factor for factor in about.of_value(case.inverse))
        found.append(
            Prediction(row, case.kind, case=case, value=value, seconds=predicted, low=low, high=high, why=about.why)
        )
    return tuple(found)


def held_out_scores() -> dict[str, Score]:
    """Return the errors on devices, and on sweeps, that the fit has not seen, by class and kind."""
    return dict(_scores(_PLACE.stat().st_mtime_ns))


@remembered
def _scores(_written: int) -> dict[str, Score]:
    scores: dict[str, Score] = {}
    for which in ("device", "sweep"):
        groups: dict[str, list[Prediction]] = {}
        for each in held_out_predictions(which):
            groups.setdefault(f"{which} unseen, {each.row.device_class}: {each.kind}", []).append(each)
            groups.setdefault(f"{which} unseen, all", []).append(each)
        scores |= {name: replace(score(groups[name])) for name in sorted(groups)}
    return scores
