"""Growth over the years, doubling times, and the power of switching logic."""

from math import log

import numpy as np

from mlsys.unit_checks import Argument, fraction, positive, quantity_function

_GROWS = Argument("", low=1, low_is_allowed=False)


@quantity_function("", first=positive(), last=positive(), span=positive("year"))
def yearly_growth(first: float, last: float, span: float) -> float:
    r"""Return the factor of growth in a year, :math:`(v_2 / v_1)^{1/\Delta t}`.

    Parameters
    ----------
    first, last
        Values at the beginning and at the end, pure numbers in the same unit.
    span
        Years between them.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{yearly_growth(1, 16, Q_(4, 'year')):g}")
    2
    """
    growth: float = np.exp(np.log(last / first) / span)
    return growth


@quantity_function("year", growth=_GROWS)
def doubling_time(growth: float) -> float:
    r"""Return the time in which something that grows by a factor each year doubles, :math:`\ln 2 / \ln g`.

    Parameters
    ----------
    growth
        Factor of growth in a year, above 1.

    Examples
    --------
    >>> print(f"{doubling_time(2 ** 0.5):.2f}")
    2.00 yr
    """
    time: float = log(2) / np.log(growth)
    return time


@quantity_function(
    "W", activity=fraction(), capacitance=positive("farad"), voltage=positive("volt"), frequency=positive("Hz")
)
def dynamic_power(activity: float, capacitance: float, voltage: float, frequency: float) -> float:
    r"""Return the power of switching logic, :math:`a C V^2 f`.

    Parameters
    ----------
    activity
        Fraction *a* of the capacitance that switches in a cycle, 0 to 1.
    capacitance
        Total capacitance *C*, F.
    voltage
        Supply voltage *V*, V.
    frequency
        Clock frequency *f*, Hz.

    References
    ----------
    R. H. Dennard et al., IEEE Journal of Solid-State Circuits 9(5), 1974.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{dynamic_power(0.1, Q_(100, 'nF'), Q_(1, 'V'), Q_(2, 'GHz')):.0f}")
    20 W
    """
    return activity * capacitance * voltage**2 * frequency
