"""Why a machine that was measured may not be the one that its rows name: it does more than its twin can."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.bounds import explain, least_times
from mlsys.calibration.case import Case
from mlsys.calibration.sanity_checks import lines_of
from mlsys.calibration.times import stack_of
from mlsys.units import Q_

# A bound that is beaten for these reasons says that the twin's numbers are too low; others are of the work.
_OF_THE_TWIN = ("boost clock", "not explained")
# Estimates stop at the twin's peaks: so many times as long as the rows ask for, they are held there. One or two may be
# so by what is known of their networks; it is the twin where at least this part is.
HELD, MANY = 1.1, 0.3
_INSTEAD = (
    "Name another device, or one of your own with the cores and the clock that it had, in a folder that "
    "MLSYS_DEVICES names"
)


def doubts_of_the_twin(
    cases: Sequence[Case], wanted: NDArray[np.float64], used: NDArray[np.float64]
) -> tuple[str, ...]:
    """Return why the twin may not be the machine that was measured, in sentences; empty where nothing says so.

    Parameters
    ----------
    cases
        Of one machine, with what was measured.
    wanted, used
        Seconds as the rows ask for them, and as estimates tell them, which stop at the twin's peaks.
    """
    timed = [case for case in cases if not case.power]
    if timed and (beaten := _beaten(timed)):
        return (*beaten, _INSTEAD)
    held = used > HELD * wanted
    if held.mean() < MANY:
        return ()
    return (
        f"{held.sum()} of {len(cases)} measurements are faster than estimates can follow, which stop at the peaks of "
        f"the twin: they are told {float(np.median(used[held] / wanted[held])):.2f} times as long as the rows ask for. "
        "Is its peak too low, or its clock?",
        _INSTEAD,
    )


def _beaten(cases: Sequence[Case]) -> tuple[str, ...]:
    """Return what the machine did faster than its twin can, the furthest of arithmetic and of memory."""
    told = []
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
        told.append(f"your machine did {did} in line {line}; the twin says at most {_short(most, unit)}")
    return tuple(told)


def _reason(case: Case, unit: str, bound: float) -> str:
    return explain(case, bound, 0.0) if unit == "FLOP/s" else explain(case, 0.0, bound)


def _short(rate: float, unit: str) -> str:
    return f"{Q_(rate, unit).to_compact():.3g~P}"
