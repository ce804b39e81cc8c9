"""Fitting every setting to the shipped measurements, with what the fit does to rows it has not seen."""

import csv
import gzip
import multiprocessing
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.times import stack_of, with_latency
from mlsys.files import Drafts, together
from mlsys.frozen import FrozenDict
from mlsys.models.estimate import Parameters, kernel_times
from mlsys.models.estimate.cache_key import calibration_version
from mlsys.models.estimate.effects import POOLS, USUAL, fitted_effects, pool_of
from mlsys.models.estimate.features import features
from mlsys.models.estimate.library import fitted, machines, scaled
from mlsys.models.estimate.ranges import fitted_ranges, range_at
from mlsys.provenance import remembered, unrecorded
from mlsys_evidence.evaluate.report import Prediction, Score, by_machine, score
from mlsys_evidence.fit.fitted_files import save_effects, save_parameters, save_ranges
from mlsys_evidence.fit.fitting import Fit, fit, held_out, machines_of
from mlsys_evidence.fit.intervals import Left, intervals
from mlsys_evidence.fit.pooling import fit_pool
from mlsys_evidence.fit.substitutes import stand_ins
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import cited_rows, shipped_rows

_PLACE = Path(__file__).parents[1] / "data" / "held_out.csv.gz"
_HEADS = (
    "id,seconds_without_the_device,seconds_without_the_sweep,"
    "parameters_without_the_device,parameters_without_the_sweep,spread_without_the_device,spread_without_the_sweep"
)
Progress = Callable[[Iterable[str]], AbstractContextManager[Iterator[str]]]


def settings() -> dict[str, list[Case]]:
    """Return the expressible rows, shipped and cited, by setting; suspect ones are left out."""
    by_setting: dict[str, list[Case]] = {}
    for row in (*shipped_rows(), *cited_rows()):
        if row.quality == "suspect":
            continue
        try:
            case = interpret(row)
        except Inexpressible:
            continue
        by_setting.setdefault(case.setting, []).append(case)
    return dict(sorted(by_setting.items()))


def fitted_with(setting: str) -> str:
    """Return the setting whose parameters one has.

    A microcontroller draws one power while it works, so that the same parameters predict the energy and the time of a
    network. PyTorch's operators on vector units are the same in prompts, encoders and training; of Megatron's steps
    launches and what lies between products are the same whichever units multiply. PyTorch calls cuBLAS and cuDNN for
    products and convolutions whether it compiles what lies between them or not. ncnn's kernels are the same on one
    thread as on many, of which :mod:`mlsys.models.estimate.thread_scaling` says what they lose; what is left of either
    is an effect.

    Examples
    --------
    >>> fitted_with("energy of tuned microcontroller runtime on MCU"), fitted_with("energy of ncnn network on CPU")
    ('tuned microcontroller runtime on MCU', 'energy of ncnn network on CPU')
    >>> fitted_with("eager small units training on GPU"), fitted_with("Megatron vector units training on GPU")
    ('eager small units network on GPU', 'Megatron training on GPU')
    >>> fitted_with("torch.compile network on GPU")
    'eager network on GPU'
    >>> fitted_with("ncnn int8 1 thread network on CPU"), fitted_with("mobile runtime 1 thread network on CPU")
    ('ncnn int8 network on CPU', 'mobile runtime 1 thread network on CPU')
    """
    if setting.endswith(" on MCU"):
        return setting.removeprefix("energy of ")
    if setting.startswith("eager small units"):
        return "eager small units network on GPU"
    if setting == "torch.compile network on GPU":
        return "eager network on GPU"
    if setting.startswith("Megatron"):
        return setting.replace(" vector units", "")
    return setting.replace(" 1 thread", "") if setting.startswith("ncnn ") else setting


def jobs_of(chosen: dict[str, list[Case]]) -> dict[str, list[Case]]:
    """Return the cases of some settings by those that they are fitted with."""
    jobs: dict[str, list[Case]] = {}
    for name, cases in chosen.items():
        jobs.setdefault(fitted_with(name), []).extend(cases)
    return jobs


@dataclass(frozen=True)
class _Answer:
    """What one fit gives: the fit, and each case's time without its device and without its sweep."""

    name: str
    fit: Fit
    without: NDArray[np.float64]


def _fitted(job: tuple[str, list[Case]]) -> _Answer:
    name, cases = job
    by_device = held_out(cases, lambda case: case.twin)
    by_sweep = held_out(cases, lambda case: case.row.group or case.twin)
    return _Answer(name, fit(cases), np.column_stack([by_device, by_sweep]))


def refit(progress: Progress, only: str = "", processes: int = 2) -> dict[str, Parameters]:
    """Fit every setting, write the parameters, and predict each row from fits without it.

    No fit starts at stored values, and effects and ranges are fitted to the parameters as they are stored. So two
    refits write the same files, whatever the files held before, and however many processes there are.

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
    jobs = {name: cases for name, cases in jobs_of(chosen).items() if re.search(only, name)}
    # The longest first, so that none is left alone at the end.
    order = sorted(jobs.items(), key=lambda job: -sum(case.work.columns.shape[1] for case in job[1]))
    anew = {name for name in chosen if fitted_with(name) in jobs}
    parameters = {name: kept for name, kept in fitted().items() if name in chosen and name not in anew}
    factors = {name: dict(kept) for name, kept in machines().items() if name in chosen and name not in anew}
    lines = parameters_alone() if only else {}
    with multiprocessing.Pool(processes) as pool:
        answers = pool.imap_unordered(_fitted, order)
        with progress([name for name, _ in order]) as names:
            for _ in names:
                answer = next(answers)
                same_fit = [name for name in chosen if fitted_with(name) == answer.name]
                for name in same_fit:
                    parameters[name] = answer.fit.parameters
                    alone = len(same_fit) == 1
                    factors[name] = answer.fit.machines if alone else machines_of(chosen[name], answer.fit.parameters)
                for case, without in zip(jobs[answer.name], answer.without.tolist(), strict=True):
                    lines[case.row.id] = tuple(float(_cell(seconds)) for seconds in without)
    with together() as files:
        save_parameters(parameters, factors, files)
        pooled(chosen, lines, parameters, factors, files)
    for kept in (fitted, machines, fitted_ranges, fitted_effects):
        kept.cache_clear()
    return parameters


def _cell(value: float) -> str:
    """Return a number as ``held_out.csv.gz`` has it."""
    return f"{value:.5g}"


def pooled(
    chosen: dict[str, list[Case]],
    lines: dict[str, tuple[float, ...]],
    parameters: dict[str, Parameters],
    factors: dict[str, dict[str, float]],
    files: Drafts,
) -> None:
    """Fit the effects and the intervals on top of the parameters, and draft them.

    Parameters
    ----------
    chosen
        As :func:`settings` returns them.
    lines
        By id of a row, seconds as the parameters alone have it without its machine, and without its sweep.
    parameters, factors
        Of each setting, and the factors of its machines.
    files
        Where the files are drafted.
    """
    pools: dict[str, list[Case]] = {}
    for name, cases in chosen.items():
        pools.setdefault(pool_of(name), []).extend(cases)
    effects: dict[str, Any] = {}
    left: list[Left] = []
    text = []
    for name, cases in sorted(pools.items()):
        measured = np.log([case.seconds for case in cases])
        without = np.array([lines.get(case.row.id, (np.nan,) * 2) for case in cases])
        residuals = measured[:, None] - np.log(without)
        added, spreads = np.zeros((len(cases), 2)), np.full((len(cases), 2), USUAL)
        if name:
            rows = [
                scaled(parameters[case.setting], factors[case.setting].get(case.twin, 1.0)).vectorised()
                for case in cases
            ]
            stack = stack_of(cases)
            times = kernel_times(stack, np.array(rows))
            plain = with_latency(cases, stack.total(times.seconds))
            measures = features(stack, times)
            pool = fit_pool(POOLS[name], cases, measures, measured - np.log(plain), residuals[:, 1])
            effects[name] = pool.effects
            added = np.column_stack([pool.without_device, pool.without_sweep])
            spreads = np.column_stack([pool.spread_device, pool.spread_sweep])
        scores = (residuals - added) / spreads
        left += [Left(case, sweep, device) for case, (device, sweep) in zip(cases, scores.tolist(), strict=True)]
        both = np.hstack([without * np.exp(added), without, spreads])
        text += [(case.row.id, *values) for case, values in zip(cases, both.tolist(), strict=True)]
    save_effects(effects, files)
    save_ranges(intervals(left, stand_ins(chosen, parameters)), files)
    lined = "".join(
        ",".join((name, *("" if np.isnan(value) else _cell(value) for value in values))) + "\n"
        for name, *values in sorted(text)
    )
    files.bytes(_PLACE, gzip.compress(f"{_HEADS}\n{lined}".encode(), 9, mtime=0))


@dataclass(frozen=True)
class _Kept:
    """What the last fit says of one row without its machine, and without its sweep.

    Seconds, NaN where there is none; those of the parameters without effects; and how far off they should be.
    """

    id: str
    device: float
    sweep: float
    parameters_device: float
    parameters_sweep: float
    spread_device: float
    spread_sweep: float


@lru_cache(maxsize=1)
def _kept(_written: int) -> FrozenDict[str, _Kept]:
    with gzip.open(_PLACE, "rt", newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))[1:]
    return FrozenDict(
        {row[0]: _Kept(row[0], *(float(cell) if cell else float("nan") for cell in row[1:7])) for row in rows}
    )


def parameters_alone() -> dict[str, tuple[float, ...]]:
    """Return, by id of a row, what the parameters of the last fit say of it without machine, without sweep."""
    kept = _kept(_PLACE.stat().st_mtime_ns)
    return {value.id: (value.parameters_device, value.parameters_sweep) for value in kept.values()}


def held_out_predictions(which: str, machines: Iterable[str] | None = None) -> list[Prediction]:
    """Return the shipped rows, or those of some machines, predicted from fits that never saw their device or sweep.

    No use of a fact is noted, as by :func:`~mlsys_evidence.evaluate.report.validate`.

    Parameters
    ----------
    which
        ``"device"`` or ``"sweep"``.
    machines
        As the rows name them; all where it is left out.
    """
    written = _PLACE.stat().st_mtime_ns  # a new fit writes the file anew
    predictions: dict[int, Prediction] = {}
    with unrecorded():
        for machine in _shipped_by_machine() if machines is None else machines:
            predictions |= _left_out(machine, which, written, calibration_version())
    return [predictions[index] for index in sorted(predictions)]


@lru_cache(maxsize=1)
def _shipped_by_machine() -> FrozenDict[str, tuple[int, ...]]:
    return by_machine(shipped_rows())  # kept here: to look it up by its rows, all of them are hashed


@remembered
def _left_out(machine: str, which: str, _written: int, _fit: Hashable) -> dict[int, Prediction]:
    return held_out_on(machine, which)


def held_out_on(machine: str, which: str) -> dict[int, Prediction]:
    """Return the predictions of one machine, by the places of its rows among the shipped ones."""
    kept, rows = _kept(_PLACE.stat().st_mtime_ns), shipped_rows()
    predictions = {}
    for index in _shipped_by_machine()[machine]:
        row = rows[index]
        if row.id not in kept:
            continue
        seconds, spread = (getattr(kept[row.id], f"{what}{which}") for what in ("", "spread_"))
        if np.isnan(seconds):
            continue
        try:
            case = interpret(row)
        except Inexpressible:
            continue
        ratio = seconds / case.seconds
        value = row.value / ratio if case.inverse else row.value * ratio
        about = range_at(case.setting, case.twin, spread, seen=which == "sweep", work=case.kind)
        low, high = (value * factor for factor in about.of_value(case.inverse))
        predictions[index] = Prediction(
            row, case.kind, case=case, value=value, seconds=seconds, low=low, high=high, why=about.why
        )
    return predictions


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
        scores |= {name: score(groups[name]) for name in sorted(groups)}
    return scores
