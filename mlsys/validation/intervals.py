"""Intervals that hold four measurements in five, from what the fit says of rows it never saw.

The logarithm of measured over predicted time of rows whose whole sweep, or whole machine, was left out
of the fit is a sample of what an unseen question will show. Its quantiles are the interval of the
setting. Few sweeps say little about the next one: then the quantiles are those of all settings of the
same kind of work, and wider by what the number of sweeps leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.models.calibrated.ranges import COVERAGE
from mlsys.validation.cases import Case

__all__ = ["intervals", "quantiles"]

Array = NDArray[np.float64]
# With so many sweeps a setting speaks for itself.
ENOUGH_SWEEPS = 6
# So few rows of a thin setting are not listened to on their own.
FEW_ROWS = 8
NARROWEST = 1.02


def quantiles(apart: Array, sweeps: Sequence[str]) -> tuple[float, float]:
    """Return the interval of measured over predicted that holds the wanted part of the rows.

    Parameters
    ----------
    apart
        Logarithms of measured over predicted time.
    sweeps
        Which sweep each is of. Where there are few, the tails are cut further out, as the finite
        sample of conformal prediction asks for: the part p of n sweeps is p (n + 1) / n.
    """
    n = max(len(set(sweeps)), 1)
    tail = (1 - COVERAGE) / 2
    cut = tail if n >= ENOUGH_SWEEPS else max(0.02, 1 - (1 - tail) * (n + 1) / n)
    low, high = (float(np.quantile(apart, part)) for part in (cut, 1 - cut))
    # The estimate itself lies inside.
    return min(float(np.exp(low)), 1 / NARROWEST), max(float(np.exp(high)), NARROWEST)


def intervals(
    settings: Mapping[str, Sequence[Case]], lines: Mapping[str, tuple[str, float, float]]
) -> dict[str, dict[str, object]]:
    """Return the interval of each setting, for machines that were measured in it and for others.

    Parameters
    ----------
    settings
        The cases of each.
    lines
        By id of a row: id, seconds predicted without its machine, and without its sweep.
    """
    rests: dict[str, tuple[list[str], Array, list[str], Array]] = {}
    for name, cases in settings.items():
        known = [case for case in cases if case.row.id in lines]
        measured = np.log([case.seconds for case in known])
        without = np.array([lines[case.row.id][1:] for case in known]).reshape(-1, 2)
        apart = measured[:, None] - np.log(without)
        sweeps = [case.row.group or case.twin for case in known]
        good = [np.isfinite(apart[:, column]) for column in (0, 1)]
        rests[name] = (
            [sweep for sweep, keep in zip(sweeps, good[1], strict=True) if keep],
            apart[good[1], 1],
            [case.twin for case, keep in zip(known, good[0], strict=True) if keep],
            apart[good[0], 0],
        )
    found: dict[str, dict[str, object]] = {}
    for name, cases in settings.items():
        sweeps, seen, machines, unseen = rests[name]
        kind = cases[0].kind
        like = [other for other in settings if settings[other][0].kind == kind and _class(other) == _class(name)]
        if sum(len(rests[other][1]) for other in like) < 20:
            like = [other for other in settings if settings[other][0].kind == kind] or list(settings)
        if sum(len(rests[other][1]) for other in like) < 20:
            like = [other for other in settings if _class(other) == _class(name)]
        of = "of its own"
        if len(set(sweeps)) < ENOUGH_SWEEPS:
            sweeps = [sweep for other in like for sweep in rests[other][0]]
            seen = np.concatenate([rests[other][1] for other in like])
            of = f"of {kind} on {_class(name)}"
        if len(set(machines)) < 3:
            machines = [machine for other in like for machine in rests[other][2]]
            unseen = np.concatenate([rests[other][3] for other in like])
        near = quantiles(seen, sweeps) if len(seen) else (0.5, 2.0)
        own_sweeps, own = rests[name][:2]
        if len(own) >= FEW_ROWS and len(set(own_sweeps)) < ENOUGH_SWEEPS:  # its own say as much as those of its like
            alone = quantiles(own, own_sweeps)
            near = min(near[0], alone[0]), max(near[1], alone[1])
        far = quantiles(unseen, machines) if len(unseen) else near
        found[name] = {
            "seen": near,
            "unseen": far if far[1] / far[0] >= near[1] / near[0] else near,
            "rows": len(cases),
            "sweeps": len({case.row.group or case.twin for case in cases}),
            "of": of,
        }
    return found


def _class(setting: str) -> str:
    return setting.rpartition(" on ")[2]
