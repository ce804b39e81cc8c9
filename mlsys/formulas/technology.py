"""Technology: growth of a trend, switching power, scaling and dark silicon, dies of a wafer and their yield.

References
----------
R. H. Dennard et al., Design of ion-implanted MOSFET's with very small physical dimensions, JSSC 9(5), 1974.

H. Esmaeilzadeh et al., Dark silicon and the end of multicore scaling, ISCA 2011.

J. L. Hennessy, D. A. Patterson, Computer Architecture: A Quantitative Approach, 6th ed., 2017, section 1.6.
"""

import numpy as np

from mlsys.unit_checks import Argument, fraction, nonnegative, positive, quantity_function


@quantity_function("", first=positive(), last=positive(), time=positive("year"))
def yearly_growth(first: float, last: float, time: float) -> float:
    r"""Return the factor per year between two values of a trend, :math:`(v_2/v_1)^{1/t}`.

    Parameters
    ----------
    first, last
        Values *v₁* and *v₂*, pure numbers above zero: divide by the same unit.
    time
        Time *t* between them.

    Returns
    -------
    Quantity
        Pure number; 1 is no growth.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{yearly_growth(21.2e12, 989e12, Q_(6, 'year')):.2f}")
    1.90
    """
    factor: float = (last / first) ** (1 / time)
    return factor


@quantity_function("year", growth=Argument("", low=1, low_is_allowed=False))
def doubling_time(growth: float) -> float:
    r"""Return the time in which a trend doubles, :math:`\ln 2 / \ln g`.

    Parameters
    ----------
    growth
        Factor *g* per year, above 1.

    Returns
    -------
    Quantity
        Years; ``.to("day")`` and the rest convert.

    Examples
    --------
    >>> print(f"{doubling_time(5.9).m * 12:.1f} months, {doubling_time(1.7).m * 12:.1f} months")
    4.7 months, 15.7 months
    """
    years: float = np.log(2) / np.log(growth)
    return years


@quantity_function(
    "W", capacitance=nonnegative("F/cycle"), voltage=nonnegative("V"), clock=nonnegative("cycle/s"), activity=fraction()
)
def dynamic_power(capacitance: float, voltage: float, clock: float, activity: float = 1.0) -> float:
    r"""Return the switching power of a circuit, :math:`\alpha C V^2 f`.

    Parameters
    ----------
    capacitance
        Capacitance *C* that switches in a cycle, F/cycle.
    voltage
        Supply voltage *V*.
    clock
        Clock frequency *f*.
    activity
        Fraction *α* of the capacitance that is charged in a cycle.

    Returns
    -------
    Quantity
        W, without leakage.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{dynamic_power(Q_(10, 'nF/cycle'), Q_(1.0, 'V'), Q_(2, 'GHz'), 0.5):.1f}")
    10.0 W
    """
    return activity * capacitance * voltage**2 * clock


@quantity_function("", die_area=nonnegative("cm**2"), defect_density=nonnegative("1/cm**2"), clustering=positive())
def die_yield(die_area: float, defect_density: float, clustering: float) -> float:
    r"""Return the fraction of dies without a defect, :math:`(1 + A D/\alpha)^{-\alpha}` (negative binomial).

    Parameters
    ----------
    die_area
        Area *A* of a die.
    defect_density
        Defects *D* per area.
    clustering
        Parameter *α*, pure number: small if defects cluster, which spares dies; towards infinity they are independent
        and the yield is that of Poisson, exp(−*AD*).

    Returns
    -------
    Quantity
        Pure number from 0 to 1.

    References
    ----------
    C. H. Stapper, F. M. Armstrong, K. Saji, Integrated circuit yield statistics, Proceedings of the IEEE 71(4), 1983.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{die_yield(Q_(814, 'mm**2'), Q_(0.1, '1/cm**2'), 3):.3f}")
    0.487
    """
    working: float = (1 + die_area * defect_density / clustering) ** -clustering
    return working
