"""Fitting the effects of machines, families, networks and shapes, as random effects of a mixed model.

What the parameters of the settings leave unexplained, y (logarithms of measured over predicted time), is
``y = Z u + e``. Columns of Z say which machine, family, network, ... a row has, and where its shape lies between
the knots of the curves; each group's u are drawn from a normal distribution of its own variance, and so are
sweeps, whose effects are fitted and thrown away: rows of one sweep share an error, and a hundred rows of it are
no hundred opinions. What a network takes on one machine, or under one software, is fitted where two sweeps measure it;
and an effect smaller than its pool's ``least`` is not kept. Variances are those of restricted maximum likelihood
(fixed-point iteration); rows far off count less, as under Student's t distribution with four degrees of freedom.
Predictions of rows whose whole sweep or machine is left out follow in closed form from the one fit.

C. R. Henderson, Biometrics 31(2), 1975; D. J. C. MacKay, Neural Computation 4(3), 1992.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case
from mlsys.formatting import significant
from mlsys.models.estimate.effects import MOST, Pool, levels_of, spread
from mlsys.models.estimate.features import hats, knots

Array = NDArray[np.float64]
# Residuals beyond a factor of 4.5 say that something else was measured.
FURTHEST = 1.5
TIMES = 14
# Weak prior of a variance: as much as this part of one level, at this variance.
PRIOR_LEVELS, PRIOR_VARIANCE = 0.02, 0.01
# Student's t: degrees of freedom.
TAILS = 4.0
# Groups so fine that a level of one sweep says nothing of another: it would repeat its own rows and no more.
TWICE = ("machine and network", "network and software")


@dataclass(frozen=True)
class PooledEffects:
    """The effects of one pool, and what they make of rows left out.

    Attributes
    ----------
    effects
        As :func:`mlsys_evidence.fit.fitted_files.save_effects` writes them.
    without_device, without_sweep
        Logarithm of time that the effects add to each case's prediction, fitted without its machine, or its sweep.
    spread_device, spread_sweep
        How far each such prediction is expected to be off, one standard deviation.
    """

    effects: dict[str, Any]
    without_device: Array
    without_sweep: Array
    spread_device: Array
    spread_sweep: Array


@dataclass(frozen=True)
class _Blocks:
    """The columns of Z: of each group, of each curve, and of the sweeps."""

    names: list[str]
    levels: list[list[str]]
    columns: Array
    ends: NDArray[np.intp]

    def of(self, name: str) -> slice:
        at = self.names.index(name)
        return slice(int(self.ends[at]), int(self.ends[at + 1]))


def _sweep(case: Case) -> str:
    return case.row.group or case.twin


def _blocks(cases: Sequence[Case], pool: Pool, measures: Mapping[str, Array]) -> _Blocks:
    names, levels, parts = [], [], []
    groups_of = [levels_of(case.setting, case.twin, case.network, case.version) for case in cases]
    sweeps = np.unique([_sweep(case) for case in cases], return_inverse=True)[1]
    for group in (*pool.groups, "sweep"):
        own = [
            _sweep(case) if group == "sweep" else of.get(group, "") for case, of in zip(cases, groups_of, strict=True)
        ]
        if group in TWICE:
            counted = Counter(word for word, _ in set(zip(own, sweeps.tolist(), strict=True)))
            own = [word if counted[word] > 1 else "" for word in own]
        words, level = np.unique(own, return_inverse=True)
        columns = np.zeros((len(cases), len(words)))
        columns[np.arange(len(cases)), level] = [1.0 if word else 0.0 for word in own]
        if group in ("host", "memory"):
            launched = measures["launch"][:, None]
            columns *= launched if group == "host" else 1 - launched
        names.append(group)
        levels.append([str(word) for word in words])
        parts.append(columns)
    for curve in pool.curves:
        below, part = hats(curve, measures[curve])
        columns = np.zeros((len(cases), knots(curve)))
        columns[np.arange(len(cases)), below] = 1 - part
        columns[np.arange(len(cases)), below + 1] += part
        names.append(curve)
        levels.append([str(knot) for knot in range(knots(curve))])
        parts.append(columns)
    ends = np.cumsum([0, *(part.shape[1] for part in parts)])
    return _Blocks(names, levels, np.concatenate(parts, axis=1), ends)


@dataclass(frozen=True)
class _Solution:
    """Variances, the covariance of the effects, and the weights of the rows."""

    variances: dict[str, float]
    rest: float
    weights: Array
    covariance: Array

    def effects(self, z: Array, y: Array) -> Array:
        posterior: Array = self.covariance @ (z.T @ (self.weights * y / self.rest))
        return posterior


def _solved(blocks: _Blocks, y: Array, fixed: _Solution | None = None) -> _Solution:
    """Return the fit of ``y``; with the variances of another fit, only its weights and covariance."""
    z = blocks.columns
    variances = dict(fixed.variances) if fixed else dict.fromkeys(blocks.names, 0.02)
    rest = fixed.rest if fixed else 0.03
    weights: Array = np.ones(len(y))
    for _ in range(4 if fixed else TIMES):
        covariance = _covariance(blocks, variances, rest, weights)
        u = covariance @ (z.T @ (weights * y / rest))
        residuals = y - z @ u
        if not fixed:
            degrees = 0.0
            for name in blocks.names:
                own = blocks.of(name)
                count = own.stop - own.start
                result = max(count - float(np.diag(covariance)[own].sum()) / variances[name], 1e-3)
                degrees += result
                square = float(u[own] @ u[own]) + PRIOR_LEVELS * PRIOR_VARIANCE
                variances[name] = float(np.clip(square / (result + PRIOR_LEVELS), 1e-6, 2.0))
            rest = max(1e-4, float((weights * residuals**2).sum()) / max(len(y) - degrees, 1.0))
        weights = _weights(residuals, rest)
    return _Solution(variances, rest, weights, _covariance(blocks, variances, rest, weights))


def _weights(residuals: Array, rest: float) -> Array:
    """Return how much each row counts, the less the further it is off."""
    return np.asarray((TAILS + 1) / (TAILS + residuals**2 / rest), dtype=np.float64)


def _covariance(blocks: _Blocks, variances: dict[str, float], rest: float, weights: Array) -> Array:
    z = blocks.columns
    normal = (z * (weights / rest)[:, None]).T @ z
    normal[np.diag_indices_from(normal)] += np.repeat(
        [1 / variances[name] for name in blocks.names], np.diff(blocks.ends)
    )
    return np.asarray(np.linalg.inv(normal), dtype=np.float64)


def _without(
    blocks: _Blocks, solved: _Solution, y: Array, parts: Sequence[str], least: float = 0.0, groups: Sequence[str] = ()
) -> Array:
    """Return what the effects say of each row when its part is left out of the fit, small ones of groups dropped."""
    z = blocks.columns
    u = solved.effects(z, y)
    residuals = y - z @ u
    bars = np.repeat([least if name in groups else 0.0 for name in blocks.names], np.diff(blocks.ends))
    reach = z @ solved.covariance
    predictions = np.zeros(len(y))
    names = np.array(parts, dtype=object)
    for part in dict.fromkeys(parts):
        own = np.flatnonzero(names == part)
        leverage = reach[own] @ z[own].T * (solved.weights[own] / solved.rest)[None, :]
        pulled = np.linalg.solve(np.eye(len(own)) - leverage, residuals[own])
        without = u - reach[own].T @ (solved.weights[own] / solved.rest * pulled)
        predictions[own] = z[own] @ np.where(np.abs(without) >= bars, without, 0.0)
    limit = np.log(MOST)
    clipped: Array = np.clip(predictions, -limit, limit)
    return clipped


def _counts(cases: Sequence[Case], blocks: _Blocks) -> dict[str, dict[str, dict[str, set[str]]]]:
    """Return the sweeps of each level of each group, by machine."""
    known = {name: set(levels) for name, levels in zip(blocks.names, blocks.levels, strict=True)}
    sweeps: dict[str, dict[str, dict[str, set[str]]]] = {group: {} for group in known}
    for case in cases:
        for group, level in levels_of(case.setting, case.twin, case.network, case.version).items():
            if level in known.get(group, ()):
                sweeps[group].setdefault(level, {}).setdefault(case.twin, set()).add(_sweep(case))
    return sweeps


def fit_pool(
    pool: Pool, cases: Sequence[Case], measures: Mapping[str, Array], whole: Array, sweep_out: Array
) -> PooledEffects:
    """Return the effects of one pool.

    Parameters
    ----------
    pool
        One of :data:`mlsys.models.estimate.effects.POOLS`.
    cases
        Of all its settings.
    measures
        Features of their shapes, as :func:`mlsys.models.estimate.features.features` returns them.
    whole, sweep_out
        Logarithm of measured over predicted time: by the parameters fitted to all rows, and by those fitted
        without the row's sweep, NaN where there are none.
    """
    blocks = _blocks(cases, pool, measures)
    known = np.where(np.isfinite(sweep_out), sweep_out, whole)
    y = np.clip(known, -FURTHEST, FURTHEST)
    fitted = _solved(blocks, y)
    by_sweep = _without(blocks, fitted, y, [_sweep(case) for case in cases], pool.least, pool.groups)
    by_device = _without(blocks, fitted, y, [case.twin for case in cases], pool.least, pool.groups)
    shipped = np.clip(whole, -FURTHEST, FURTHEST)
    last = _solved(blocks, shipped, fitted)
    u = last.effects(blocks.columns, shipped)
    counts = _counts(cases, blocks)
    groups: dict[str, Any] = {}
    for group in pool.groups:
        own = blocks.of(group)
        names = blocks.levels[blocks.names.index(group)]
        groups[group] = {
            "variance": significant(fitted.variances[group], 4),
            "levels": {
                name: _kept(float(value), sum(len(sweeps) for sweeps in counts[group][name].values()), pool.least)
                for name, value in zip(names, u[own], strict=True)
                if name
            },
        }
    curves = {name: [round(float(value), 4) for value in u[blocks.of(name)]] for name in pool.curves}
    rest = significant(fitted.rest + fitted.variances["sweep"], 4)
    spreads = np.array([_spreads(case, counts, groups, rest) for case in cases]).reshape(-1, 2)
    effects = {"rest": rest, "groups": groups, "curves": curves}
    return PooledEffects(effects, by_device, by_sweep, spreads[:, 0], spreads[:, 1])


def _kept(effect: float, sweeps: int, least: float) -> Any:
    return [round(effect, 4), sweeps] if abs(effect) >= least else sweeps


def _spreads(
    case: Case, counts: dict[str, dict[str, dict[str, set[str]]]], groups: dict[str, Any], rest: float
) -> tuple[float, float]:
    """Return the expected error of one case without its machine, and without its sweep."""
    levels = levels_of(case.setting, case.twin, case.network, case.version)
    device, sweep = [], []
    for group in groups:
        by = counts[group].get(levels.get(group, ""), {})
        device.append((group, sum(len(sweeps) for twin, sweeps in by.items() if twin != case.twin)))
        sweep.append((group, sum(len(sweeps - {_sweep(case)}) for sweeps in by.values())))
    return spread(groups, rest, device), spread(groups, rest, sweep)
