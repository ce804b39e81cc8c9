"""Reasons to doubt that a measured machine is the device named in its rows: it exceeds the device's limits."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.bounds import explain, least_times
from mlsys.calibration.case import Case
from mlsys.calibration.sanity_checks import lines_of
from mlsys.calibration.times import stack_of
from mlsys.units import Q_

# Reasons for beating a bound that point to the device's numbers being too low; other reasons concern the work.
_OF_THE_TWIN = ("boost clock", "not explained")
# Estimates are capped at the device's peaks: rows whose estimate exceeds the requested time by this factor are capped.
# One or two may be due to their networks; the device is doubted if at least this fraction is.
HELD, MANY = 1.1, 0.3
_INSTEAD = "Name another device, or your own with its cores and clock, in a folder that MLSYS_DEVICES names"


def doubts_of_the_twin(
    cases: Sequence[Case], wanted: NDArray[np.float64], used: NDArray[np.float64]
) -> tuple[str, ...]:
    """Return reasons to doubt the device, in sentences; empty if there are none.

    Parameters
    ----------
    cases
        Cases of one machine, with their measured times.
    wanted, used
        Seconds that the rows ask for, and seconds of the estimates, which are capped at the device's peaks.
    """
    timed = [case for case in cases if not case.power]
    if timed and (above := _rates_above_limits(timed)):
        return (*above, _INSTEAD)
    held = used > HELD * wanted
    if held.mean() < MANY:
        return ()
    return (
        f"{held.sum()} of {len(cases)} measurements are faster than estimates can be, which are capped at the peaks of "
        f"the device: estimates are {float(np.median(used[held] / wanted[held])):.2f} times as long. "
        "Is its peak too low, or its clock?",
        _INSTEAD,
    )


def _rates_above_limits(cases: Sequence[Case]) -> tuple[str, ...]:
    """Return rates that exceed the device's limits, the most extreme of arithmetic and of memory."""
    lines = []
    for unit, bounds in zip(("FLOP/s", "B/s"), least_times(cases, stack_of(cases)), strict=True):
        times = [
            bound / case.seconds if any(words in _reason(case, unit, bound) for words in _OF_THE_TWIN) else 0.0
            for case, bound in zip(cases, bounds.tolist(), strict=True)
        ]
        furthest = max(range(len(cases)), key=times.__getitem__)
        if times[furthest] == 0.0:
            continue
        case, line = cases[furthest], lines_of([case.row for case in cases])[furthest][0]
        engine = case.engine
        most = max(engine.matmul, engine.vector) / case.fastest if unit == "FLOP/s" else engine.bandwidth
        did = _short(most * times[furthest], unit) + (" from memory" if unit == "B/s" else "")
        lines.append(f"your machine attained {did} in line {line}; the device's limit is {_short(most, unit)}")
    return tuple(lines)


def _reason(case: Case, unit: str, bound: float) -> str:
    return explain(case, bound, 0.0) if unit == "FLOP/s" else explain(case, 0.0, bound)


def _short(rate: float, unit: str) -> str:
    return f"{Q_(rate, unit).to_compact():.3g~P}"
