"""Economics of computing: cost of energy, of a token and of a run, ownership, and renting against buying.

Prices are in USD of the year of the quotation, without inflation or tax.

References
----------
J. L. Hennessy, D. A. Patterson, Computer Architecture: A Quantitative Approach, 6th ed., 2017, sections 1.6 and 6.4.

L. A. Barroso, U. Hölzle, P. Ranganathan, The Datacenter as a Computer, 3rd ed., 2018, chapter 6.
"""

import numpy as np

from mlsys.unit_checks import at_least, efficiency, fraction, nonnegative, positive, quantity_function

_RATE = nonnegative("USD/hour")
_MILLION = 1e6
_SECONDS = 3600.0


@quantity_function(
    "USD/hour",
    power=nonnegative("kW"),
    electricity_price=nonnegative("USD/kWh"),
    pue=at_least(1),
    utilisation=fraction(),
)
def electricity_rate(power: float, electricity_price: float, pue: float = 1.0, utilisation: float = 1.0) -> float:
    r"""Return what the electricity of a machine costs per hour, :math:`P \cdot u \cdot \mathrm{PUE} \cdot c`.

    Parameters
    ----------
    power
        Power *P* under load, W.
    electricity_price
        Price *c* of electricity, USD/kWh.
    pue
        Power usage effectiveness of the data centre, 1 or more: energy of the facility over energy of the machines.
    utilisation
        Fraction *u* of the time that the machine is under load, 0 to 1; it draws nothing in the rest.

    Returns
    -------
    Quantity
        USD/hour.

    Raises
    ------
    ArgumentUnitError, ArgumentError
        If an argument has no unit or a wrong one, or is out of range.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{electricity_rate(Q_(700, 'W'), Q_(0.12, 'USD/kWh')):.3f}")
    0.084 USD/h
    """
    return power * utilisation * pue * electricity_price


@quantity_function("USD/Mtoken", rent=_RATE, token_rate=positive("token/s"), utilisation=efficiency())
def token_cost(rent: float, token_rate: float, utilisation: float = 1.0) -> float:
    r"""Return the cost of a million tokens on a machine that is paid by the hour, :math:`c / (r\,u)`.

    Parameters
    ----------
    rent
        Price *c* of the machine per hour, USD/hour.
    token_rate
        Tokens per second *r* while it is busy.
    utilisation
        Fraction *u* of the paid hours in which it is busy, above 0 and up to 1.

    Returns
    -------
    Quantity
        USD per million tokens.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{token_cost(Q_(2, 'USD/hour'), Q_(680, 'token/s')):.2f}")
    0.82 USD/Mtoken
    """
    return rent / _SECONDS / (token_rate * utilisation) * _MILLION


@quantity_function("USD", device_time=nonnegative("hour"), rent=_RATE)
def rented_cost(device_time: float, rent: float) -> float:
    """Return the cost of a run on rented devices: device-hours times rent.

    Parameters
    ----------
    device_time
        Time of all devices together, such as GPU-hours.
    rent
        Rent of one device, USD/hour.

    Returns
    -------
    Quantity
        USD.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(rented_cost(Q_(30.84e6, "hour"), Q_(2, "USD/hour")).to("MUSD"))
    61.68 MUSD
    """
    return device_time * rent


@quantity_function("USD/year", price=nonnegative("USD"), lifetime=positive("year"), interest=nonnegative("1/year"))
def annuity(price: float, lifetime: float, interest: float = 0.0) -> float:
    r"""Return the equal yearly payments that repay a price with interest, :math:`P\,i / (1 - (1+i)^{-n})`.

    Parameters
    ----------
    price
        Purchase price *P*, USD.
    lifetime
        Number *n* of years.
    interest
        Cost of capital *i*, a fraction per year. Without interest the payments are *P*/*n*.

    Returns
    -------
    Quantity
        USD/year, at the end of each year.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{annuity(Q_(30_000, 'USD'), Q_(4, 'year'), Q_(0.08, '1/year')):.0f}")
    9058 USD/yr
    """
    shape = np.broadcast_shapes(np.shape(interest), np.shape(lifetime))
    rate = np.broadcast_to(np.asarray(interest, float), shape)
    # -expm1(-n log1p(i)) keeps its digits where the interest is small; at zero the factor is its limit, 1/n.
    repaid = -np.expm1(-np.asarray(lifetime) * np.log1p(rate))
    factor = np.divide(rate, repaid, out=np.broadcast_to(1.0 / np.asarray(lifetime), shape).copy(), where=repaid > 0)
    return price * (factor if factor.ndim else float(factor))


@quantity_function("hour", price=nonnegative("USD"), renting=_RATE, owning=_RATE)
def break_even_time(price: float, renting: float, owning: float = 0.0) -> float:
    r"""Return the time after which buying costs less than renting, :math:`P / (r - o)`.

    Parameters
    ----------
    price
        Purchase price *P*, USD.
    renting
        Average cost *r* of renting per hour of calendar time: the rent times the fraction of the hours used.
    owning
        Average running cost *o* of owning per hour of calendar time: electricity, space, upkeep.

    Returns
    -------
    Quantity
        Hours of calendar time; infinite if renting never costs more than running an owned machine.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> at = break_even_time(Q_(30_000, "USD"), Q_(2.5, "USD/hour"), Q_(0.2, "USD/hour"))
    >>> print(f"{at.to('year'):.2f}")
    1.49 yr
    """
    saved = np.asarray(renting - owning, float)
    first = np.broadcast_to(np.asarray(price, float), np.broadcast_shapes(np.shape(price), saved.shape))
    at = np.divide(first, saved, out=np.where(first > 0, np.inf, 0.0), where=saved > 0)
    return at if at.ndim else float(at)


@quantity_function(
    "", price=nonnegative("USD"), lifetime=positive("hour"), rent=positive("USD/hour"), running=_RATE, fixed=_RATE
)
def break_even_utilisation(
    price: float, lifetime: float, rent: float, running: float = 0.0, fixed: float = 0.0
) -> float:
    r"""Return the utilisation above which a machine that is kept for its lifetime is cheaper than renting.

    Renting is paid by the busy hour. The utilisation is :math:`(P/T + f) / (r - o)`.

    Parameters
    ----------
    price
        Purchase price *P*, USD.
    lifetime
        Time in service *T*.
    rent
        Rent *r*, USD per busy hour.
    running
        Running cost *o* of the owned machine, USD per busy hour: electricity.
    fixed
        Fixed cost *f* of the owned machine, USD per hour of calendar time: space, upkeep.

    Returns
    -------
    Quantity
        Pure number; above 1, or infinite, if renting is cheaper even for a machine that is always busy.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> at = break_even_utilisation(Q_(30_000, "USD"), Q_(4, "year"), Q_(2.5, "USD/hour"), Q_(0.1, "USD/hour"))
    >>> print(f"{at:.3f}")
    0.356
    """
    saved = np.asarray(rent - running, float)
    owned = np.asarray(price / lifetime + fixed, float)
    shape = np.broadcast_shapes(owned.shape, saved.shape)
    owned = np.broadcast_to(owned, shape)
    at = np.divide(owned, saved, out=np.where(owned > 0, np.inf, 0.0), where=saved > 0)
    return at if at.ndim else float(at)


@quantity_function("USD/TFLOP*s", price=nonnegative("USD"), peak=positive("TFLOP/s"))
def price_per_performance(price: float, peak: float) -> float:
    """Return the purchase price per peak rate, USD per TFLOP/s; compare devices in one number format only.

    Parameters
    ----------
    price
        Purchase price, USD.
    peak
        Dense peak rate of one number format.

    Returns
    -------
    Quantity
        USD/(TFLOP/s).

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{price_per_performance(Q_(15_000, 'USD'), Q_(312, 'TFLOP/s')).m:.1f} USD per TFLOP/s")
    48.1 USD per TFLOP/s
    """
    return price / peak


@quantity_function("GB/s/kUSD", price=positive("kUSD"), bandwidth=nonnegative("GB/s"))
def bandwidth_per_price(price: float, bandwidth: float) -> float:
    """Return the memory bandwidth that a thousand dollars of purchase price buy.

    Parameters
    ----------
    price
        Purchase price, USD.
    bandwidth
        Bandwidth of the main memory.

    Returns
    -------
    Quantity
        GB/s per thousand USD.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{bandwidth_per_price(Q_(15_000, 'USD'), Q_(2039, 'GB/s')).m:.1f}")
    135.9
    """
    return bandwidth / price
