"""Fitting every setting to the shipped measurements, with what the fit does to rows it has not seen."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from mlsys.models.calibrated import Parameters
from mlsys.models.calibrated.library import save
from mlsys.validation.cases import Case, Inexpressible, interpret
from mlsys.validation.fit import fit, held_out
from mlsys.validation.report import Prediction, Score, score
from mlsys.validation.rows import cited_rows, shipped_rows

__all__ = ["held_out_scores", "refit", "settings"]

_PLACE = Path(__file__).parent / "data" / "held_out.csv"
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


def _sweep(case: Case) -> str:
    row = case.row
    return f"{case.twin} {row.workload} {row.model} {row.precision} {row.n_devices}"


def refit(progress: Progress) -> dict[str, Parameters]:
    """Fit every setting, write the parameters, and predict each row from fits without it.

    Parameters
    ----------
    progress
        Wraps the names of the settings, such as ``click.progressbar``.
    """
    chosen = settings()
    parameters: dict[str, Parameters] = {}
    lines: list[tuple[str, float, float]] = []
    with progress(list(chosen)) as names:
        for name in names:
            cases = chosen[name]
            parameters[name] = fit(cases)
            by_device = held_out(cases, lambda case: case.twin)
            by_sweep = held_out(cases, _sweep)
            lines += [
                (case.row.id, device, sweep) for case, device, sweep in zip(cases, by_device, by_sweep, strict=True)
            ]
    save(parameters)
    with _PLACE.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", "seconds_without_the_device", "seconds_without_the_sweep"])
        for name, device, sweep in sorted(lines):
            writer.writerow([name, *("" if np.isnan(value) else f"{value:.5g}" for value in (device, sweep))])
    held_out_scores.cache_clear()
    return parameters


def held_out_predictions(which: str) -> list[Prediction]:
    """Return the shipped rows predicted from fits that never saw their ``device`` or ``sweep``."""
    with _PLACE.open(newline="", encoding="utf-8") as stream:
        seconds = {row["id"]: row[f"seconds_without_the_{which}"] for row in csv.DictReader(stream)}
    found = []
    for row in shipped_rows():
        if not seconds.get(row.id):
            continue
        try:
            case = interpret(row)
        except Inexpressible:
            continue
        predicted = float(seconds[row.id])
        ratio = predicted / case.seconds
        value = row.value / ratio if case.inverse else row.value * ratio
        found.append(Prediction(row, case.kind, case=case, value=value, seconds=predicted))
    return found


@lru_cache(maxsize=1)
def held_out_scores() -> dict[str, Score]:
    """Return the errors on devices, and on sweeps, that the fit has not seen, by class and kind."""
    scores: dict[str, Score] = {}
    for which in ("device", "sweep"):
        groups: dict[str, list[Prediction]] = {}
        for each in held_out_predictions(which):
            groups.setdefault(f"{which} unseen, {each.row.device_class}: {each.kind}", []).append(each)
            groups.setdefault(f"{which} unseen, all", []).append(each)
        scores |= {name: replace(score(groups[name])) for name in sorted(groups)}
    return scores
