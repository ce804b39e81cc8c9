"""Price of electricity, and the power usage effectiveness (PUE) of data centres, by date."""

from __future__ import annotations

from typing import Literal, get_args

from mlsys._facts.dated import electricity_prices, pue_values
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.faults import short
from mlsys.models.prices import newest_quotations
from mlsys.provenance import read
from mlsys.unit_checks import checked_choice
from mlsys.units import Quantity

Sector = Literal["commercial", "industrial"]
"""Sector of a customer of electricity."""
DataCentre = Literal["average", "new", "large", "google", "palm"]
"""Data centres with a published PUE."""


def electricity_price(region: str = "USA", sector: Sector = "industrial", year: int | None = None) -> Quantity:
    """Return the price of electricity for a sector in a region of the United States.

    Parameters
    ----------
    region
        ``"USA"``, or a state such as ``"Virginia"``; by default the whole country.
    sector
        ``"commercial"`` or ``"industrial"``.
    year
        Newest year to look at; by default the newest recorded.

    Returns
    -------
    Quantity
        USD/kWh; its fact says of which year.

    Raises
    ------
    UnknownNameError
        If there is no such region.
    ArgumentError
        If no price is recorded for the sector or the year.

    Examples
    --------
    >>> print(electricity_price(), electricity_price("Virginia", "commercial"))
    0.0806 USD/kWh 0.0895 USD/kWh
    """
    checked_choice("electricity_price", "sector", sector, get_args(Sector))
    names = {quotation.subject.removesuffix(", USA").lower(): quotation.subject for quotation in electricity_prices()}
    wanted = names.get(region.lower().removesuffix(", usa")) if isinstance(region, str) else None
    if wanted is None:
        have = ", ".join(sorted(name.removesuffix(", USA") for name in names.values()))
        raise UnknownNameError(
            f"electricity_price(): `region` must be one of {have}, got {short(region)}."
            f"{did_you_mean(region, [name.removesuffix(', USA') for name in names.values()])}"
        )
    known = [each for each in electricity_prices() if each.subject == wanted and each.kind == sector]
    if not known:
        raise ArgumentError(
            f"electricity_price(): no {sector} price of {wanted} is recorded. Write sector='industrial'"
        )
    quantity: Quantity = read(newest_quotations("electricity_price", wanted, known, year)[-1].value)
    return quantity


def power_usage_effectiveness(of: DataCentre = "average", year: int | None = None) -> Quantity:
    """Return a published power usage effectiveness (PUE): energy of a data centre over energy of its machines.

    Parameters
    ----------
    of
        ``"average"``, ``"new"`` or ``"large"`` data centres as surveyed, the fleet of ``"google"``, or the site of
        ``"palm"``.
    year
        Newest year to look at; by default the newest recorded.

    Returns
    -------
    Quantity
        Pure number; its fact says who published it.

    Raises
    ------
    UnknownNameError
        If there is no such kind of data centre.
    ArgumentError
        If none is recorded for the year.

    Examples
    --------
    >>> print(power_usage_effectiveness(), power_usage_effectiveness("google"))
    1.54 1.09
    """
    checked_choice("power_usage_effectiveness", "of", of, get_args(DataCentre))
    known = [quotation for quotation in pue_values() if quotation.subject == of]
    quantity: Quantity = read(newest_quotations("power_usage_effectiveness", of, known, year)[-1].value)
    return quantity
