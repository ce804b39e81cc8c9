"""Technology: growth of a trend, switching power, scaling and dark silicon, dies of a wafer and their yield.

References
----------
R. H. Dennard et al., Design of ion-implanted MOSFET's with very small physical dimensions, JSSC 9(5), 1974.

H. Esmaeilzadeh et al., Dark silicon and the end of multicore scaling, ISCA 2011.

J. L. Hennessy, D. A. Patterson, Computer Architecture: A Quantitative Approach, 6th ed., 2017, section 1.6.
"""

import numpy as np

from mlsys.unit_checks import Argument, at_least, fraction, nonnegative, positive, quantity_function


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


@quantity_function("", scale=at_least(1), voltage_scale=positive())
def power_density_growth(scale: float, voltage_scale: float) -> float:
    r"""Return how the power per area of a chip grows over process generations, :math:`S^2 v^2`.

    Per area there are *S*² transistors, each of a capacitance of 1/*S*, at *S* times the clock. Under Dennard scaling
    the voltage falls as 1/*S* and the density stays; since about 2005 it hardly falls.

    Parameters
    ----------
    scale
        Factor *S* >= 1 by which dimensions shrink: about 1.4 for one generation.
    voltage_scale
        Voltage *v* over that before.

    Returns
    -------
    Quantity
        Pure number: power per area over that before.

    Examples
    --------
    >>> print(f"{power_density_growth(1.4, 1 / 1.4):.2f} with Dennard, {power_density_growth(1.4, 1):.2f} without")
    1.00 with Dennard, 1.96 without
    """
    return scale**2 * voltage_scale**2


@quantity_function("", power_budget=nonnegative("W"), full_power=positive("W"))
def dark_silicon_fraction(power_budget: float, full_power: float) -> float:
    r"""Return the fraction of a chip that cannot run at full clock within its power budget, :math:`1 - P_b/P`.

    Parameters
    ----------
    power_budget
        Power *P_b* that package and cooling allow.
    full_power
        Power *P* of the whole chip at full clock.

    Returns
    -------
    Quantity
        Pure number from 0 to 1. Esmaeilzadeh et al. projected 0.21 at 22 nm and more than 0.5 at 8 nm.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(dark_silicon_fraction(Q_(125, "W"), Q_(250, "W")))
    0.5
    """
    dark: float = np.maximum(0.0, 1 - power_budget / full_power)
    return dark


@quantity_function("", wafer_diameter=positive("mm"), die_area=positive("mm**2"))
def dies_per_wafer(wafer_diameter: float, die_area: float) -> float:
    r"""Return how many dies a round wafer holds, :math:`\pi (d/2)^2/A - \pi d/\sqrt{2A}`, at least 0.

    The second term is the dies that the edge cuts. It approximates; small wafers hold fewer than it says.

    Parameters
    ----------
    wafer_diameter
        Diameter *d*, such as 300 mm.
    die_area
        Area *A* of a die.

    Returns
    -------
    Quantity
        Pure number, not rounded.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{dies_per_wafer(Q_(300, 'mm'), Q_(814, 'mm**2')):.1f}")
    63.5
    """
    whole = np.pi * (wafer_diameter / 2) ** 2 / die_area
    cut = np.pi * wafer_diameter / np.sqrt(2 * die_area)
    dies: float = np.maximum(0.0, whole - cut)
    return dies


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
