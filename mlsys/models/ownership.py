"""Owning a machine: its electricity, and its total cost of ownership; rents and prices as given or as recorded."""

from __future__ import annotations

from mlsys.choices import Commitment
from mlsys.errors import ArgumentError
from mlsys.formulas.economics import annuity, electricity_rate
from mlsys.frozen import FrozenDict
from mlsys.hardware.system import System
from mlsys.models.breakdown import Breakdown, shown
from mlsys.models.electricity import electricity_price, power_usage_effectiveness
from mlsys.models.prices import Machine, Price, device_and_chips, purchase_price, rent
from mlsys.unit_checks import at_least, checked_number, fraction, nonnegative, positive
from mlsys.units import Q_, Quantity, total

LIFETIME = Q_(4, "year")
"""Time that a machine is in service, by default."""
_RENT = nonnegative("USD/hour")


def running_cost(
    machine: Machine,
    *,
    utilisation: float = 1.0,
    power: Quantity | None = None,
    electricity: Quantity | None = None,
    pue: float | Quantity | None = None,
) -> Quantity:
    """Return the cost of the electricity of a machine per hour of calendar time.

    Parameters
    ----------
    machine
        A device or a system.
    utilisation
        Fraction of the time under load, 0 to 1; otherwise the machine is off.
    power
        Power of the whole machine under load; by default the most of its nodes, or the TDP of its chips.
    electricity
        Price of electricity, USD/kWh; by default that of industry in the United States.
    pue
        Power usage effectiveness, 1 or more; by default the average of the survey of Uptime Institute.

    Returns
    -------
    Quantity
        USD/hour.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> print(f"{running_cost(Hardware.Cloud.H100, electricity=Q_(0.12, 'USD/kWh'), pue=1.0):.3f}")
    0.084 USD/h
    """
    where = "running_cost"
    price = electricity_price() if electricity is None else electricity
    return electricity_rate(power_of(where, machine, power), price, checked_pue(where, pue), utilisation)


def total_cost_of_ownership(
    machine: Machine,
    *,
    lifetime: Quantity = LIFETIME,
    utilisation: float = 1.0,
    price: Price | Quantity | None = None,
    year: int | None = None,
    power: Quantity | None = None,
    electricity: Quantity | None = None,
    pue: float | Quantity | None = None,
    upkeep: float = 0.0,
    interest: float = 0.0,
    residual: float = 0.0,
) -> Breakdown:
    """Return what a machine costs over its life: purchase, interest, electricity and upkeep.

    Parameters
    ----------
    machine
        A device or a system.
    lifetime
        Time in service, by default four years.
    utilisation
        Fraction of the time under load, 0 to 1; otherwise the machine is off.
    price
        Purchase price of the whole machine, instead of a recorded one.
    year
        Newest year of a recorded price.
    power, electricity, pue
        As for :func:`running_cost`.
    upkeep
        Cost of space, staff and repairs a year, as a fraction of the price.
    interest
        Cost of capital, a fraction a year; the price is repaid in equal yearly payments.
    residual
        Value at the end of the lifetime, as a fraction of the price, 0 to 1.

    Returns
    -------
    Breakdown
        USD. Its figures have the cost per hour of calendar time, and per hour of use.

    Raises
    ------
    ArgumentError
        If no price is recorded or given, or an argument is out of range.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> answer = total_cost_of_ownership(Hardware.Cloud.H100, utilisation=0.7)
    >>> print(f"{answer.total:.0f}, {answer.figures['per hour of use']:.2f}")
    29133 USD, 1.19 USD/h
    """
    where = "total_cost_of_ownership"
    checked_number(where, "lifetime", lifetime, positive("year"), {})
    utilisation = checked_number(where, "utilisation", utilisation, fraction(), {})
    share = checked_number(where, "residual", residual, fraction(), {})
    rates = {"upkeep": upkeep, "interest": interest}
    rates = {name: checked_number(where, name, value, nonnegative(), {}) for name, value in rates.items()}
    prices, assumptions = purchase_prices(where, machine, price, year)
    energy = running_cost(machine, utilisation=utilisation, power=power, electricity=electricity, pue=pue) * lifetime
    ends = []
    for each in prices:
        repaid = annuity(each, lifetime, Q_(rates["interest"], "1/year")) * lifetime
        parts = {
            "purchase": each * (1 - share) if share else each,
            "interest": repaid - each,
            "electricity": energy,
            "upkeep": each * rates["upkeep"] * lifetime.m_as("year"),
        }
        kept = {name: part.to("USD") for name, part in parts.items() if name == "purchase" or part.magnitude}
        ends.append((total(kept.values(), "USD"), kept))
    (middle, kept), (low, _), (high, _) = ends
    figures = {"per hour": (middle / lifetime).to("USD/hour")}
    if utilisation:
        figures["per hour of use"] = figures["per hour"] / utilisation
    return Breakdown(
        where,
        f"{machine.name} for {lifetime.m_as('year'):g} years",
        middle,
        low,
        high,
        FrozenDict(kept),
        FrozenDict(figures),
        (*assumptions, *power_assumptions(machine, power, electricity, pue), load_in_words(utilisation)),
    )


def power_of(where: str, machine: Machine, power: Quantity | None = None) -> Quantity:
    """Return the power of a machine under load: as given, or as recorded.

    That of a system is the most that its nodes draw, hosts included; of a device, and of a system without a recorded
    power, it is the TDP of the chips.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware import systems
    >>> print(power_of("demo", Hardware.Cloud.H100), power_of("demo", systems["DGX_H100"].with_nodes(2)))
    700 W 20400 W
    """
    device, chips = device_and_chips(where, machine)
    if power is not None:
        checked_number(where, "power", power, positive("W"), {})
        return power
    each = machine.power_per_chip if isinstance(machine, System) and machine.has_power else device.tdp
    return each if chips == 1 else (each * chips).to("W")


def power_in_words(machine: Machine, power: Quantity | None) -> str:
    """Return how the power of a machine is known.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> power_in_words(Hardware.Cloud.H100, None)
    'the chips draw their TDP under load; hosts and network are not included'
    """
    if power is not None:
        return "power as given"
    if isinstance(machine, System) and machine.has_power:
        return "under load, nodes draw the most that is recorded for them, hosts included"
    return "the chips draw their TDP under load; hosts and network are not included"


def checked_pue(where: str, pue: float | Quantity | None) -> float | Quantity:
    """Return a power usage effectiveness of 1 or more; by default the published average.

    Raises
    ------
    ArgumentError
        If it is below 1: a data centre cannot draw less than its machines.

    Examples
    --------
    >>> checked_pue("demo", 0.9)
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: demo(): `pue` must be a finite number >= 1, got 0.9. Write e.g. pue=1
    """
    if pue is None:
        return power_usage_effectiveness()
    checked_number(where, "pue", pue, at_least(1), {})
    return pue


def refuse_choice(where: str, given: str, **choices: str | int | None) -> None:
    """Raise if a recorded price is selected although the caller gives the price, so that no choice is ignored.

    Examples
    --------
    >>> refuse_choice("demo", "rent", provider="AWS", commitment="on-demand")
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: demo(): give either `rent` or `provider`, not both: ... Leave out provider='AWS'
    """
    for name, choice in choices.items():
        if choice is not None and choice != "on-demand":  # the default commitment is no choice
            raise ArgumentError(
                f"{where}(): give either `{given}` or `{name}`, not both: `{name}` selects a recorded price, which "
                f"`{given}` replaces. Leave out {name}={choice!r}"
            )


def pue_in_words(pue: float | Quantity | None) -> str:
    """Return how the power usage effectiveness is known.

    Examples
    --------
    >>> pue_in_words(1.2), pue_in_words(None)
    ('PUE 1.2', 'PUE 1.54, the average of a survey')
    """
    return f"PUE {float(Q_(checked_pue('cost', pue)).m):g}" + (", the average of a survey" if pue is None else "")


def hourly_rents(
    where: str,
    machine: Machine | None,
    given: Price | Quantity | None,
    provider: str | None,
    year: int | None,
    commitment: Commitment,
) -> tuple[tuple[Quantity, Quantity, Quantity], tuple[str, ...]]:
    """Return the rent of a machine with its low and high end, and what is assumed of it."""
    if given is not None:
        refuse_choice(where, "rent", provider=provider, year=year, commitment=commitment)
    if isinstance(given, Price):
        return (given.amount, given.low, given.high), (given.explain(), *given.assumptions)
    if given is not None:
        checked_number(where, "rent", given, _RENT, {})
        return (given, given, given), ("rent as given",)
    if machine is None:
        raise ArgumentError(
            f'{where}(): give a device, or its rent. Write e.g. Hardware.Cloud.A100, or rent=Q_(2, "USD/hour")'
        )
    found = rent(machine, provider, year, commitment=commitment)
    return (found.amount, found.low, found.high), (found.explain(), *found.assumptions)


def purchase_prices(
    where: str, machine: Machine, given: Price | Quantity | None, year: int | None
) -> tuple[tuple[Quantity, Quantity, Quantity], tuple[str, ...]]:
    """Return the purchase price of a machine with its low and high end, and what is assumed of it."""
    device_and_chips(where, machine)
    if given is not None:
        refuse_choice(where, "price", year=year)
    if given is not None and not isinstance(given, Price):
        checked_number(where, "price", given, positive("USD"), {})
        return (given, given, given), ("purchase price as given",)
    found = purchase_price(machine, year) if given is None else given
    return (found.amount, found.low, found.high), (found.explain(), *found.assumptions)


def power_assumptions(
    machine: Machine, power: Quantity | None, electricity: Quantity | None, pue: float | Quantity | None
) -> tuple[str, ...]:
    """Return what is assumed of power, electricity and data centre."""
    price = electricity_price() if electricity is None else electricity
    return (
        power_in_words(machine, power),
        f"electricity at {shown(price)}" + (", industry in the United States" if electricity is None else ""),
        pue_in_words(pue),
    )


def load_in_words(utilisation: float | Quantity) -> str:
    """Return what is assumed of the load of a machine.

    Examples
    --------
    >>> load_in_words(0.7)
    'under load 70% of the time, and off for the rest'
    """
    utilisation = float(Q_(utilisation).m)
    return f"under load {utilisation:.0%} of the time, and off for the rest"
