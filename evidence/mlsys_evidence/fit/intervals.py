"""Intervals that hold four measurements in five, from what the fit says of rows it never saw.

The logarithm of measured over predicted time of rows whose whole sweep, or whole machine, was left out
of the fit, over how far the estimate was expected to be off, is a sample of what an unseen question
will show. Its quantiles are the interval of the setting. Few sweeps say little about the next one: a
setting that has few shares its quantiles with the others of its kind of work (what most of its rows do) on its class
of machine, so that the interval covers four in five in every class; where a setting does several kinds of work, each
that has enough speaks for itself. A class of a handful of rows has no quantiles worth
the name: its scatter is drawn towards that of the same work on all machines, as a variance with a scaled
inverse chi-squared prior is, and its interval is that of Student's t distribution which follows (A. Gelman et al.,
Bayesian Data Analysis, 3rd edition, 2013, section 2.6 and 3.2, of a known mean: five rows give no class a bias).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.averaging import PRIOR_ROWS
from mlsys.calibration.case import Case
from mlsys.models.estimate.range_keys import setting_on, work_in
from mlsys.models.estimate.ranges import COVERAGE, UNKNOWN

Array = NDArray[np.float64]
# With so many sweeps and rows a setting speaks for itself; with so few its whole class does not.
ENOUGH_SWEEPS, ENOUGH_ROWS = 8, 60
FEW_ROWS = 15
# Machines left out that a class must have for quantiles of its own of machines.
FEW_MACHINES = 3
# The narrowest interval reaches so far on either side, in logarithm over the expected error.
NARROWEST = 0.02


@dataclass(frozen=True)
class Left:
    """One row's error when it was left out.

    Attributes
    ----------
    case
        The row.
    sweep, device
        Without its sweep, and without its machine, in units of what was expected.
    """

    case: Case
    sweep: float
    device: float

    @property
    def key(self) -> str:
        """The setting, separately for consumer cards."""
        return setting_on(self.case.setting, self.case.twin)

    @property
    def like(self) -> tuple[str, str]:
        """Its kind of work and class of machine."""
        return self.case.kind, self.case.row.device_class


def quantiles(residuals: Array) -> tuple[float, float]:
    """Return the interval that holds the wanted part of what a sample is drawn from, zero inside.

    The next draw falls with equal chance between any two neighbours of a sorted sample, or beyond its ends (Weibull
    1939): of a small sample the interval holds a little more than the wanted part.

    Examples
    --------
    >>> low, high = quantiles(np.linspace(-1, 1, 101))
    >>> round(low, 2), round(high, 2)
    (-0.82, 0.82)
    """
    tail = (1 - COVERAGE) / 2
    low, high = (float(np.quantile(residuals, part, method="weibull")) for part in (tail, 1 - tail))
    return min(low, -NARROWEST), max(high, NARROWEST)


def pooled_interval(own: Array, like: Array) -> tuple[float, float]:
    """Return the interval of a handful of rows, whose scatter is drawn towards that of others like them.

    Parameters
    ----------
    own, like
        Errors, about zero; ``like`` of enough rows to have quantiles.

    Examples
    --------
    >>> like = np.linspace(-1, 1, 101)
    >>> [round(pooled_interval(scatter * np.array([-1.0, 0.5, -0.5, 1.0]), like)[1], 2) for scatter in (0.5, 1, 3)]
    [0.7, 1.07, 2.84]
    """
    from scipy.stats import norm, t

    low, high = quantiles(like)
    scale = (high - low) / 2 / norm.ppf((1 + COVERAGE) / 2)
    rows = PRIOR_ROWS + len(own)
    spread = np.sqrt((PRIOR_ROWS * scale**2 + float(own @ own)) / rows)
    reach = max(float(t.ppf((1 + COVERAGE) / 2, rows) * spread), NARROWEST)
    return -reach, reach


def intervals(left: Sequence[Left], lent: Mapping[str, float]) -> dict[str, dict[str, object]]:
    """Return the interval of each setting, for machines that were measured in it and for others.

    Parameters
    ----------
    left
        Every row of the fit; NaN where leaving out left too little to fit.
    lent
        How far off a setting's nearest is, by kind of work, as :func:`mlsys_evidence.fit.substitutes.stand_ins` says.
    """
    by_key: dict[str, list[Left]] = {}
    for left_out in left:
        by_key.setdefault(left_out.key, []).append(left_out)
    alone = {key for key, own in by_key.items() if _speaks(own)}
    rest: dict[tuple[str, str], list[Left]] = {}
    by_kind: dict[str, list[Left]] = {}
    for key, own in by_key.items():
        for left_out in own:
            if key not in alone:
                rest.setdefault(left_out.like, []).append(left_out)
            by_kind.setdefault(left_out.case.kind, []).append(left_out)
    by_work = _by_work(by_key)
    alone |= by_work.keys()
    by_setting: dict[str, dict[str, object]] = {}
    for key, own in (by_key | by_work).items():
        like_most = Counter(left_out.like for left_out in own).most_common(1)[0][0]
        kind, group = like_most
        of = "of its own" if key in alone else f"of {kind} on {group}"
        like = own if key in alone else rest[like_most]
        reach = {}
        for which in ("sweep", "device"):
            errors = _sample(like, which)
            machines = {left_out.case.twin for left_out in like if np.isfinite(getattr(left_out, which))}
            if which == "device" and (len(errors) < FEW_ROWS or len(machines) < FEW_MACHINES):
                errors = _sample([left_out for left_out in by_kind[kind] if left_out.like[1] == group], which)
            if len(errors) >= FEW_ROWS:
                reach[which] = quantiles(errors)
                continue
            others = (_sample(by_kind[kind], which), _sample(left, which))
            reach[which] = pooled_interval(errors, next(sample for sample in others if len(sample) >= FEW_ROWS))
            of += f", drawn towards {kind}" if which == "sweep" else ""
        seen, unseen = reach["sweep"], reach["device"]
        names = {left_out.case.row.group or left_out.case.twin for left_out in own}
        by_setting[key] = {
            "seen": seen,
            "unseen": unseen if key in by_work else (min(unseen[0], seen[0] / 2), max(unseen[1], seen[1] / 2)),
            "rows": len(own),
            "sweeps": len(names),
            "of": of,
            "lent": lent.get(kind, math.log(UNKNOWN[1])),
            "sources": sorted({left_out.case.row.measured_by for left_out in own}),
        }
    return by_setting


def _by_work(by_key: Mapping[str, Sequence[Left]]) -> dict[str, list[Left]]:
    """Return the rows of each kind of work that speaks for itself, of settings that do several."""
    parted: dict[str, list[Left]] = {}
    for key, own in by_key.items():
        kinds = {left_out.case.kind for left_out in own}
        for kind in kinds if len(kinds) > 1 else ():
            parted[work_in(kind, key)] = [left_out for left_out in own if left_out.case.kind == kind]
    return {key: own for key, own in parted.items() if _speaks(own)}


def _speaks(own: Sequence[Left]) -> bool:
    known = [left_out for left_out in own if np.isfinite(left_out.sweep)]
    return len(known) >= ENOUGH_ROWS and len({left_out.case.row.group for left_out in known}) >= ENOUGH_SWEEPS


def _sample(rows: Sequence[Left], which: str) -> Array:
    values = np.array([getattr(row, which) for row in rows], dtype=float)
    finite: Array = values[np.isfinite(values)]
    return finite
