"""Thermal model of a chip as one resistance and one capacity: temperature, and sustained rate of a plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError

if TYPE_CHECKING:
    from mlsys.planner.placement.costs import Placed
    from mlsys.planner.placement.scenario import Scenario


def heating(power_w: float, seconds: float, *, resistance: float, capacity: float, start: float = 0.0) -> float:
    """Return the temperature rise after a time at constant power, K.

    ``C dT/dt = P - T/R`` has the solution ``T = P R + (T0 - P R) exp(-t / (R C))``.

    Parameters
    ----------
    power_w
        Dissipated power, W.
    seconds
        Time, s.
    resistance, capacity
        K/W and J/K.
    start
        Initial temperature rise, K.

    Raises
    ------
    ArgumentError
        If the resistance or the capacity is not positive, or the time is negative.

    Examples
    --------
    >>> round(heating(3.0, 60.0, resistance=12.0, capacity=5.0), 2), heating(3.0, 1e9, resistance=12.0, capacity=5.0)
    (22.76, 36.0)
    """
    if not (resistance > 0 and capacity > 0 and seconds >= 0 and math.isfinite(power_w)):
        raise ArgumentError(
            f"heating(): `resistance` and `capacity` must be positive and `seconds` not negative, got {resistance!r}, "
            f"{capacity!r} and {seconds!r}. Write e.g. heating(3.0, 60.0, resistance=12.0, capacity=5.0)"
        )
    settled = power_w * resistance
    return settled + (start - settled) * math.exp(-seconds / (resistance * capacity))


def ripple_peak(energy_j: float, on_s: float, period_s: float, *, resistance: float, capacity: float) -> float:
    """Return the peak temperature rise of a chip with periodic heating, K.

    The energy is spent evenly over `on_s`, then nothing until the end of the period, repeatedly. The peak, at the end
    of each burst, is ``P R (1 - exp(-on/RC)) / (1 - exp(-period/RC))``.

    Parameters
    ----------
    energy_j, on_s, period_s
        Heat of one burst, J, its duration and the period, s; the duration is at most the period.
    resistance, capacity
        K/W and J/K.

    Examples
    --------
    >>> round(ripple_peak(0.1, 0.02, 0.04, resistance=12.0, capacity=5.0), 3)
    30.005
    """
    if not 0 < on_s <= period_s:
        raise ArgumentError(
            f"ripple_peak(): `on_s` must be above 0 and at most `period_s`, got {on_s!r} and {period_s!r}. "
            "Write e.g. ripple_peak(0.1, 0.02, 0.04, resistance=12.0, capacity=5.0)"
        )
    time = resistance * capacity
    return energy_j / on_s * resistance * math.expm1(-on_s / time) / math.expm1(-period_s / time)


def peak_temperatures(scenario: Scenario, placed: Placed, rate_hz: float) -> dict[str, float]:
    """Return the peak temperature of every device with a thermal model when a plan runs continuously, °C.

    All work of a device in a run is treated as one burst, which is warmer than several.
    """
    peaks = {}
    for device in scenario.devices:
        if device.resistance is None or device.capacity is None or device.name not in placed.heat:
            continue
        on, period = float(placed.busy[device.name]) / 1e3, 1 / rate_hz
        peaks[device.name] = float(scenario.ambient) + ripple_peak(
            float(placed.heat[device.name]) / 1e3,
            min(on, period),
            period,
            resistance=float(device.resistance),
            capacity=float(device.capacity),
        )
    return peaks


def holds_rate(scenario: Scenario, placed: Placed, rate_hz: float) -> bool:
    """Whether a plan can sustain a rate: no device is overloaded or too warm."""
    if float(placed.bottleneck) / 1e3 * rate_hz > 1 + 1e-12:
        return False
    limits = {device.name: float(device.limit) for device in scenario.devices if device.limit is not None}
    return all(warm <= limits[name] for name, warm in peak_temperatures(scenario, placed, rate_hz).items())


def sustained_rate(scenario: Scenario, placed: Placed) -> float:
    """Return the highest rate, runs per second, that a plan can sustain as a pipeline.

    The busiest device allows ``1 / bottleneck``; a chip with a thermal limit may allow less. Found by bisection; the
    returned rate never exceeds a limit.
    """
    high = 1e3 / float(placed.bottleneck)
    if holds_rate(scenario, placed, high):
        return high
    low = high
    while low > 1e-12 and not holds_rate(scenario, placed, low):
        low /= 2
    if low <= 1e-12:
        return 0.0
    high = min(high, 2 * low)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds_rate(scenario, placed, middle) else (low, middle)
    return low
