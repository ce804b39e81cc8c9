"""Power traces: energy by the trapezoidal rule, of an inference or of a layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlsys.amounts import parsed_number
from mlsys.errors import ArgumentError, LogFileError, UnreadableError
from mlsys.faults import by_line
from mlsys.formatting import significant
from mlsys.inputs import csv_records
from mlsys.unit_checks import checked_number, count, nonnegative
from mlsys.units import Q_, Quantity


@dataclass(frozen=True)
class PowerTrace:
    """A power trace.

    Attributes
    ----------
    times, watts
        Seconds, increasing, and the power at those times.

    Examples
    --------
    >>> trace = PowerTrace((0.0, 0.1, 0.3), (1.0, 1.0, 2.0))
    >>> print(trace.energy)
    0.4 J
    >>> print(trace.per_inference(10, idle=0.5))
    25 mJ
    """

    times: Sequence[float]
    watts: Sequence[float]

    def __post_init__(self) -> None:
        times, watts = np.asarray(self.times, float), np.asarray(self.watts, float)
        if len(times) != len(watts) or len(times) < 2:
            raise ArgumentError(
                f"PowerTrace(): `times` and `watts` must have equal length >= 2, got {len(times)} and {len(watts)}"
            )
        if not (np.isfinite(times).all() and np.isfinite(watts).all() and (watts >= 0).all()):
            raise ArgumentError("PowerTrace(): `times` must be finite and `watts` finite and not negative")
        if not (np.diff(times) > 0).all():
            fault_at = int(np.argmin(np.diff(times) > 0)) + 1
            raise ArgumentError(f"PowerTrace(): `times` must increase, but times[{fault_at}] does not")

    @property
    def duration(self) -> float:
        """Time from the first to the last sample, s."""
        return float(self.times[-1] - self.times[0])

    @property
    def energy(self) -> Quantity:
        """Energy by the trapezoidal rule over the sample times, J."""
        return Q_(significant(float(np.trapezoid(self.watts, self.times)), 12), "J")

    @property
    def rate(self) -> float:
        """Samples per second, by the median step."""
        return float(1 / np.median(np.diff(self.times)))

    def summary(self) -> dict[str, float]:
        """Return mean, peak and spread of the power, mW, energy, mJ, and the number of samples."""
        mean = self.energy.m_as("J") / self.duration
        return {
            "energy_mj": self.energy.m_as("mJ"), "avg_mw": 1e3 * mean, "peak_mw": 1e3 * float(np.max(self.watts)),
            "std_mw": 1e3 * float(np.std(self.watts, ddof=1)), "samples": len(self.times),
        }  # fmt: skip

    def per_inference(self, inferences: int, idle: float) -> Quantity:
        """Return the energy of one inference above idle, mJ.

        Parameters
        ----------
        inferences
            Inferences in the whole trace.
        idle
            Idle power of the board, W.

        Raises
        ------
        ArgumentError
            If the idle energy exceeds the measured energy.
        """
        number = int(checked_number("per_inference", "inferences", inferences, count(), {}))
        watts = float(checked_number("per_inference", "idle", Q_(idle, "W"), nonnegative("W"), {}))
        left = self.energy.m_as("mJ") - watts * self.duration * 1e3
        if left < 0:
            raise ArgumentError(
                f"per_inference(): `idle` of {watts:g} W over {self.duration:g} s exceeds the measured energy. "
                "Measure idle power in the same setup"
            )
        return Q_(significant(float(left / number), 12), "mJ")

    def within(self, start: float, end: float) -> float | None:
        """Return the energy between two times, mJ; None if fewer than three samples lie between them."""
        if end - start < 3 / self.rate or start < self.times[0] or end > self.times[-1]:
            return None
        inside = [time for time in self.times if start < time < end]
        at = [start, *inside, end]
        return float(np.trapezoid(np.interp(at, self.times, self.watts), at)) * 1e3

    def by_layer(self, windows: Mapping[str, tuple[float, float]]) -> dict[str, float | None]:
        """Return the energy of each layer's time window, mJ; None if the meter is too slow for it."""
        return {name: self.within(*window) for name, window in windows.items()}


def read_power(path: Path) -> PowerTrace:
    """Return the power trace in a CSV file with the columns time_s and power_w.

    Raises
    ------
    LogFileError
        If anything is wrong; every error is listed, with its line.
    """
    try:
        rows = csv_records(path)
    except UnreadableError as error:
        raise LogFileError(str(error)) from error
    if not rows or [cell.strip() for cell in rows[0][1]] != ["time_s", "power_w"]:
        raise LogFileError(f"{path}, line 1: must be time_s,power_w")
    times: list[float] = []
    watts: list[float] = []
    faults = []
    for line, row in rows[1:]:
        try:
            time, power = map(parsed_number, row)
        except ValueError:
            faults.append((line, f"expected two numbers, got {','.join(row)[:40]!r}"))
            continue
        if not (abs(time) < 1e9 and 0 <= power < 1e6):
            faults.append((line, f"time must be finite and power >= 0 W, got {time:g} and {power:g}"))
        elif times and time <= times[-1]:
            faults.append((line, f"time must increase, but {time:g} s follows {times[-1]:g} s"))
        else:
            times.append(time)
            watts.append(power)
    if faults:
        raise LogFileError(by_line(path, faults))
    try:
        return PowerTrace(times, watts)
    except ArgumentError as error:
        raise LogFileError(f"{path}: {error}") from error
