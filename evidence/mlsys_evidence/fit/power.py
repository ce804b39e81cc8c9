"""What boards draw while they infer: measured, fitted by class, and judged on devices left out.

A row of energy says its power, where its source gives what is needed from one and the same run: joules times
inferences per second of the run of the energy, or watts. MLPerf Tiny times a submission in another run than it
meters: energy over *that* time is a power at work only where both ran alike, which :func:`two_runs` tells.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from mlsys.calibration.rows import Row
from mlsys.hardware import Hardware
from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.models.energy.boards import LAWS
from mlsys.models.energy.cards import CARD
from mlsys.provenance import remembered, unrecorded
from mlsys_evidence.evaluate.report import Prediction, validate
from mlsys_evidence.fit.cards import Laws, fit_cards, fit_laws
from mlsys_evidence.fit.refit import held_out_predictions
from mlsys_evidence.rows import shipped_rows, typed

_JOULES = {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6}
_CLASSES = ("MCU", "edge SoC")
# A microcontroller asleep with its clocks on; no row tells, and the twins assume the same.
ASLEEP = 0.3
_INNER = (0.1, 0.9)


@dataclass(frozen=True)
class MeasuredPower:
    """The power of one row.

    Attributes
    ----------
    row, twin
        What was measured, and whose it is.
    watts
        Drawn while it infers.
    """

    row: Row
    twin: Device
    watts: float


def power_of(row: Row) -> float | None:
    """Return the power that a row states of one run, W; None where it states none.

    Examples
    --------
    >>> stated = next(row for row in shipped_rows() if "NUCLEO_H7A3ZI_Q/kws/energy" in row.source_path)
    >>> f"{stated.value} {stated.unit} at {power_of(stated):.3f} W"
    '1869.384 uJ at 0.122 W'
    """
    known = typed(row)
    if known.has("wall power"):
        return row.value
    if not known.has("energy") or row.unit not in _JOULES:
        return None
    if "run_rate" in known.numbers:
        return known.get("run_rate") * (row.value * _JOULES[row.unit])
    return known.numbers.get("stated_power")


@remembered
def measured_powers() -> tuple[MeasuredPower, ...]:
    """Return the power of each shipped row of a microcontroller or a board that states one, and has a twin.

    Examples
    --------
    >>> len({power.twin.id for power in measured_powers()}) >= 8
    True
    """
    powers = []
    for row in shipped_rows():
        watts = power_of(row) if row.device_class in _CLASSES else None
        if watts is None:
            continue
        if typed(row).board:
            powers.append(MeasuredPower(row, Hardware[typed(row).board], watts))
    return tuple(powers)


def _factors(kind: str) -> dict[str, float]:
    """Return the median power of each machine of a class, over what the law of the class follows."""
    by_twin: dict[str, list[float]] = defaultdict(list)
    for measured_power in measured_powers():
        if measured_power.twin.kind == kind:
            by_twin[measured_power.twin.id].append(measured_power.watts)
    return {name: median(watts) / _follows(Hardware[name]) for name, watts in sorted(by_twin.items())}


def _follows(twin: Device) -> float:
    return float(twin.chip("clock").m_as("Hz") if LAWS[twin.kind] == "clock" else twin.tdp.m_as("W"))


def fit_powers(of_cards: Laws | None = None) -> dict[str, dict[str, Any]]:
    """Return the law of each class, as :func:`mlsys.models.energy.boards.fitted_powers` keeps them.

    Parameters
    ----------
    of_cards
        The laws of cards, fitted where they are left out.

    Notes
    -----
    The factor is the median over machines. Its range spans the machines, each predicted from the others; that of
    a power on record holds four rows in five.
    """
    laws: dict[str, dict[str, Any]] = {}
    for kind in LAWS:
        factors = _factors(kind)
        ratios = [own / _without(factors, name) for name, own in factors.items()]
        laws[kind] = {
            "factor": median(factors.values()),
            "low": min(1.0, *ratios),
            "high": max(1.0, *ratios),
            "static": _static_share(kind),
            "machines": len(factors),
        }
    with unrecorded():
        machines = [(measured_power.watts, view(measured_power.twin)) for measured_power in measured_powers()]
        own = [watts / own.quantity("active_power").m_as("W") for watts, own in machines if own.has("active_power")]
    low, high = np.quantile(own, _INNER)
    laws["recorded"] = {"low": min(1.0, float(low)), "high": max(1.0, float(high)), "rows": len(own)}
    laws[CARD] = fit_cards(fit_laws() if of_cards is None else of_cards)
    return laws


def _without(factors: Mapping[str, float], name: str) -> float:
    return median(value for other, value in factors.items() if other != name)


def _static_share(kind: str) -> float:
    """Return power at rest over power at work, in the median of the twins that have both from a source."""
    shares = []
    with unrecorded():
        for twin in Hardware:
            machine = view(twin)
            if not (twin.kind == kind or (kind, twin.kind) == ("SoC", "CPU")):
                continue
            if not (machine.has("idle_power") and machine.has("active_power")):
                continue
            rest, work = machine.quantity("idle_power"), machine.quantity("active_power")
            if all(power.facts[0].confidence != "assumed" for power in (rest, work)):
                shares.append(float((rest / work).m_as("")))
    return median(shares) if shares else ASLEEP


@dataclass(frozen=True)
class EnergyCheck:
    """One measured energy beside time × power.

    Attributes
    ----------
    row, twin
        The measurement, and the machine.
    joules
        Measured.
    known
        From the time as estimated, the machine in the fit, and its own power, where it is on record; else NaN.
    unseen
        From a time and a power of fits that never saw the machine.
    """

    row: Row
    twin: str
    joules: float
    known: float
    unseen: float

    def error(self, which: str) -> float:
        """Return the absolute error of ``known`` or ``unseen``, as a part of the measured energy."""
        return abs(float(getattr(self, which)) / self.joules - 1)


def energy_checks() -> tuple[EnergyCheck, ...]:
    """Return every measured energy of a microcontroller or a board beside time × power.

    The time is that of rows of the same network, format and software on the same machine; rows whose network was
    never timed there are left out. No use of a fact is noted: the errors rest on all that the fit rests on.
    """
    with unrecorded():
        return _energy_checks()


@remembered
def _energy_checks() -> tuple[EnergyCheck, ...]:
    rows = [row for row in shipped_rows() if row.device_class in _CLASSES]
    metered = {row.device for row in rows if typed(row).has("energy")}
    rows = [row for row in rows if row.device in metered]
    unseen = _times(held_out_predictions("device", sorted(metered)))
    known = _times(validate([row for row in rows if not typed(row).has("energy")]).predictions)
    factors = {kind: _factors(kind) for kind in LAWS}
    checks = []
    for row in rows:
        if not typed(row).has("energy") or row.unit not in _JOULES:
            continue
        name = typed(row).board or typed(row).device
        if not name:
            continue
        twin = Hardware[name]
        left, seen = _time_of(row, unseen), _time_of(row, known)
        if left is None or seen is None or twin.id not in factors.get(twin.kind, {}):
            continue
        law = _without(factors[twin.kind], twin.id) * _follows(twin)
        machine = view(twin)
        own = machine.quantity("active_power").m_as("W") if machine.has("active_power") else float("nan")
        checks.append(EnergyCheck(row, twin.id, row.value * _JOULES[row.unit], seen * own, left * law))
    return tuple(checks)


_Key = tuple[str, ...]


def _keys(row: Row) -> list[_Key]:
    """Return what a time of the same work may have in common with a row, the closest first."""
    base = (row.device, row.model, row.precision)
    return [(*base, row.software, row.source), (*base, row.software), base]


def _times(predictions: Iterable[Prediction]) -> dict[_Key, list[float]]:
    times: dict[_Key, list[float]] = defaultdict(list)
    for prediction in predictions:
        if prediction.case is not None and prediction.kind != "energy" and prediction.row.device_class in _CLASSES:
            for key in _keys(prediction.row):
                times[key].append(prediction.seconds)
    return times


def _time_of(row: Row, times: Mapping[_Key, list[float]]) -> float | None:
    return next((median(times[key]) for key in _keys(row) if key in times), None)


def two_runs() -> list[tuple[Row, float]]:
    """Return rows of MLPerf Tiny, with their energy over the time of the *other* run as a multiple of their power.

    At one, both runs of a submission took equally long; above one, the metered run was the slower of the two.

    Examples
    --------
    >>> all(0.95 < multiple < 1.05 for _, multiple in two_runs())
    True
    """
    timed = {
        (row.source_path.replace("/performance/", "/energy/")): row.value * 1e-3
        for row in shipped_rows()
        if row.metric == "latency" and row.unit == "ms" and "/performance/" in row.source_path
    }
    ratios = []
    for measured_power in measured_powers():
        if measured_power.row.source_path in timed and "run_rate" in typed(measured_power.row).numbers:
            ratios.append(
                (
                    measured_power.row,
                    measured_power.row.value
                    * _JOULES[measured_power.row.unit]
                    / timed[measured_power.row.source_path]
                    / measured_power.watts,
                )
            )
    return ratios
