"""Money: cost of a million tokens and of a run, total cost of ownership, and when buying is cheaper than renting."""

from __future__ import annotations

from mlsys.choices import Commitment
from mlsys.formulas.economics import rented_cost, token_cost
from mlsys.frozen import FrozenDict
from mlsys.models.break_even import BreakEven, break_even
from mlsys.models.breakdown import Breakdown
from mlsys.models.electricity import electricity_price, power_usage_effectiveness
from mlsys.models.ownership import hourly_rents, running_cost, total_cost_of_ownership
from mlsys.models.prices import Machine, Price, device_and_chips, purchase_price, rent
from mlsys.unit_checks import checked_number, efficiency, nonnegative, positive
from mlsys.units import Quantity

__all__ = [
    "BreakEven",
    "Price",
    "break_even",
    "cost_of_run",
    "cost_per_million_tokens",
    "electricity_price",
    "power_usage_effectiveness",
    "purchase_price",
    "rent",
    "running_cost",
    "total_cost_of_ownership",
]


def cost_per_million_tokens(
    machine: Machine | None,
    token_rate: Quantity,
    *,
    utilisation: float = 1.0,
    rent: Price | Quantity | None = None,
    provider: str | None = None,
    year: int | None = None,
    commitment: Commitment = "on-demand",
) -> Breakdown:
    """Return the cost of a million tokens on a rented machine.

    Parameters
    ----------
    machine
        A device or a system; None if ``rent`` is given.
    token_rate
        Tokens per second of the whole machine while it is busy.
    utilisation
        Fraction of the rented hours in which it is busy, above 0 and up to 1.
    rent
        Rent of the whole machine, USD/hour, instead of a recorded one; also the hourly cost of an owned machine,
        :func:`total_cost_of_ownership`.
    provider, year, commitment
        Which recorded rent; see :func:`mlsys.models.cost.rent`.

    Returns
    -------
    Breakdown
        USD/Mtoken.

    Raises
    ------
    ArgumentError
        If no rent is recorded or given, or the rate or utilisation is out of range.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.units import Q_
    >>> answer = cost_per_million_tokens(Hardware.Cloud.A100, Q_(680, "token/s"), rent=Q_(2, "USD/hour"))
    >>> print(f"{answer.total:.2f}")
    0.82 USD/Mtoken
    """
    where = "cost_per_million_tokens"
    checked_number(where, "token_rate", token_rate, positive("token/s"), {})
    utilisation = checked_number(where, "utilisation", utilisation, efficiency(), {})
    hourly, assumptions = hourly_rents(where, machine, rent, provider, year, commitment)
    middle, low, high = (token_cost(each, token_rate, utilisation) for each in hourly)
    return Breakdown(
        where,
        f"a million tokens{_on(machine)}",
        middle,
        low,
        high,
        FrozenDict({"rent": middle}),
        FrozenDict({"rent per hour": hourly[0], "token rate": token_rate}),
        (*assumptions, f"busy in {utilisation:.0%} of the hours that are paid"),
    )


def cost_of_run(
    device_time: Quantity,
    device: Machine | None = None,
    *,
    rent: Price | Quantity | None = None,
    provider: str | None = None,
    year: int | None = None,
    commitment: Commitment = "on-demand",
) -> Breakdown:
    """Return the cost of a run on rented devices, such as a training run.

    Parameters
    ----------
    device_time
        Time of all devices together: GPU-hours as a quantity in hours.
    device
        Device of one chip, or a system of such; None if ``rent`` is given.
    rent
        Rent of one chip, USD/hour, instead of a recorded one.
    provider, year, commitment
        Which recorded rent; see :func:`mlsys.models.cost.rent`.

    Returns
    -------
    Breakdown
        USD.

    Raises
    ------
    ArgumentError
        If no rent is recorded or given, or the time is negative.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.units import Q_
    >>> llama = cost_of_run(Q_(30.84e6, "hour"), Hardware.Cloud.H100, provider="Lambda", year=2024)
    >>> print(f"{llama.total.to('MUSD'):.0f}")
    108 MUSD
    """
    where = "cost_of_run"
    checked_number(where, "device_time", device_time, nonnegative("hour"), {})
    one = None if device is None else device_and_chips(where, device)[0]
    hourly, assumptions = hourly_rents(where, one, rent, provider, year, commitment)
    middle, low, high = (rented_cost(device_time, each) for each in hourly)
    return Breakdown(
        where,
        f"{device_time.m_as('hour'):,.0f} device-hours{_on(one)}",
        middle,
        low,
        high,
        FrozenDict({"rent": middle}),
        FrozenDict({"rent per hour": hourly[0], "device time": device_time}),
        assumptions,
    )


def _on(machine: Machine | None) -> str:
    return "" if machine is None else f" on {machine.name}"
