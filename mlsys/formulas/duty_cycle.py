"""Power of work that comes and goes: means over a period, and what a battery can give."""

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.unit_checks import nonnegative, positive, quantity_function


@quantity_function(
    "W", energy=nonnegative("J"), time=nonnegative("s"), period=positive("s"), sleep_power=nonnegative("W")
)
def duty_cycled_power(energy: float, time: float, period: float, sleep_power: float = 0.0) -> float:
    r"""Return the mean power of work that repeats, :math:`(E + P_s (T - t)) / T`.

    Parameters
    ----------
    energy
        Energy *E* of the work, J.
    time
        Its duration *t*, s.
    period
        Time *T* from one beginning to the next, s.
    sleep_power
        Power :math:`P_s` between, W.

    Returns
    -------
    Quantity
        Watts.

    Raises
    ------
    ArgumentError, ArgumentUnitError
        If the work takes longer than the period.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(duty_cycled_power(Q_(18, "mJ"), Q_(145, "ms"), Q_(10, "s"), Q_(5, "uW")).to("mW").round(4))
    1.8049 mW
    """
    if np.any(np.greater(time, period)):
        raise ArgumentError(
            f"duty_cycled_power(): `time` must be at most `period`, or the work overlaps; got {time} s and {period} s"
        )
    return (energy + sleep_power * (period - time)) / period


@quantity_function("W", charge=positive("A*s"), voltage=positive("V"), lifetime=positive("s"))
def battery_power(charge: float, voltage: float, lifetime: float) -> float:
    r"""Return the mean power that empties a battery within its lifetime, :math:`Q V / T`.

    Parameters
    ----------
    charge
        Rated charge *Q*, such as ``Q_(225, "mA*hour")``.
    voltage
        Nominal voltage *V*, V.
    lifetime
        Time *T* that it has to last, s.

    Returns
    -------
    Quantity
        Watts, without self-discharge and losses of a regulator.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(battery_power(Q_(225, "mA*hour"), Q_(3, "V"), Q_(365, "day")).to("uW").round(2))
    77.05 µW
    """
    return charge * voltage / lifetime
