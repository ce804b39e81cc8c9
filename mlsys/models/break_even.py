"""When buying a machine costs less than renting one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mlsys.choices import Commitment
from mlsys.formulas.economics import break_even_time, break_even_utilisation
from mlsys.models.breakdown import shown
from mlsys.models.ownership import (
    LIFETIME,
    hourly_rents,
    power_assumptions,
    purchase_prices,
    refuse_choice,
    running_cost,
)
from mlsys.models.prices import Machine, Price
from mlsys.models.record import VERSION, facts_of, plain_amount
from mlsys.provenance import Fact
from mlsys.unit_checks import checked_number, efficiency, nonnegative, positive
from mlsys.units import Q_, Quantity


@dataclass(frozen=True)
class BreakEven:
    """Comparison of buying a machine and renting one.

    Attributes
    ----------
    subject
        Name of the machine.
    utilisation
        Fraction of the time that it is used.
    price, renting, owning
        Purchase price, rent per hour of use, and running cost of the owned machine per hour of use.
    fixed
        Cost of the owned machine per hour of calendar time, used or not: upkeep.
    time
        Calendar time after which buying has cost less than renting; infinite if never.
    low, high
        Earliest and latest such time over the ranges of price and rent.
    lifetime
        Time that the owned machine is in service.
    least_utilisation
        Utilisation above which buying is cheaper over the lifetime; above 1 if it never is.
    assumptions
        What was taken for granted, in words.
    """

    subject: str
    utilisation: float
    price: Quantity
    renting: Quantity
    owning: Quantity
    fixed: Quantity
    time: Quantity
    low: Quantity
    high: Quantity
    lifetime: Quantity
    least_utilisation: Quantity
    assumptions: tuple[str, ...]

    @property
    def range(self) -> tuple[Quantity, Quantity]:
        """Earliest and latest time."""
        return self.low, self.high

    @property
    def pays(self) -> bool:
        """Whether buying costs less than renting within the lifetime."""
        return bool(self.time <= self.lifetime)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the comparison depends on."""
        return facts_of(self.time, self.least_utilisation, self.low, self.high)

    def renting_until(self, time: Quantity) -> Quantity:
        """Return what renting has cost after a calendar time, USD."""
        spent: Quantity = (self.renting * self.utilisation * time).to("USD")
        return spent

    def owning_until(self, time: Quantity) -> Quantity:
        """Return what the owned machine has cost after a calendar time, USD."""
        spent: Quantity = (self.price + (self.owning * self.utilisation + self.fixed) * time).to("USD")
        return spent

    def record(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        amounts = ("price", "renting", "owning", "fixed", "time", "low", "high", "lifetime", "least_utilisation")
        return {
            "record": VERSION,
            "model": "break_even",
            "subject": self.subject,
            "utilisation": self.utilisation,
            **{name: plain_amount(getattr(self, name)) for name in amounts},
            "pays": self.pays,
            "assumptions": list(self.assumptions),
            "facts": [fact.name for fact in self.facts],
        }

    def explain(self) -> str:
        """Return the comparison in sentences.

        Examples
        --------
        >>> from mlsys import Hardware
        >>> print(break_even(Hardware.Cloud.H100, rent=Q_(2.5, "USD/hour")).explain().splitlines()[0])
        NVIDIA H100 SXM5 80 GB, used 100% of the time: buying costs less than renting after 15.3 months (11.3 to 17.7)
        """
        after = f"after {_months(self.time)} months" if math.isfinite(self.time.m) else "never"
        spread = "" if self.low.m == self.high.m else f" ({_months(self.low)} to {_months(self.high)})"
        least = self.least_utilisation.m_as("")
        over = (
            f"over {self.lifetime.m_as('year'):g} years from a utilisation of {least:.0%} upwards"
            if least <= 1
            else f"not over {self.lifetime.m_as('year'):g} years, even if it is always used"
        )
        return "\n".join(
            (
                f"{self.subject}, used {self.utilisation:.0%} of the time: buying costs less than renting "
                f"{after}{spread}",
                f"it does so {over}",
                f"price {shown(self.price)}, rent {shown(self.renting)}, running cost {shown(self.owning)} of use",
                "Assumptions:",
                *(f"  - {assumption}" for assumption in self.assumptions),
            )
        )


def break_even(
    machine: Machine,
    *,
    utilisation: float = 1.0,
    lifetime: Quantity = LIFETIME,
    price: Price | Quantity | None = None,
    rent: Price | Quantity | None = None,
    provider: str | None = None,
    year: int | None = None,
    commitment: Commitment = "on-demand",
    power: Quantity | None = None,
    electricity: Quantity | None = None,
    pue: float | Quantity | None = None,
    upkeep: float = 0.0,
) -> BreakEven:
    """Return when buying a machine costs less than renting one, which is paid by the hour of use.

    Parameters
    ----------
    machine
        A device or a system.
    utilisation
        Fraction of the time that it is used, above 0 and up to 1.
    lifetime
        Time that an owned machine is in service, by default four years.
    price, rent
        Purchase price and rent of the whole machine, instead of recorded ones.
    provider, year, commitment
        Which recorded prices; see :func:`mlsys.models.cost.rent`.
    power, electricity, pue, upkeep
        As for :func:`total_cost_of_ownership`.

    Returns
    -------
    BreakEven
        The time, its range, and the least utilisation at which buying pays.

    Raises
    ------
    ArgumentError
        If no price or rent is recorded or given, or an argument is out of range.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> answer = break_even(Hardware.Cloud.A100, provider="Lambda", rent=Q_(1.5, "USD/hour"), utilisation=0.5)
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: break_even(): give either `rent` or `provider`, not both...
    >>> answer = break_even(Hardware.Cloud.A100, rent=Q_(1.5, "USD/hour"), utilisation=0.5)
    >>> print(f"{answer.time.to('year'):.2f}, from {answer.least_utilisation:.2f} of the time on")
    2.36 yr, from 0.29 of the time on
    """
    where = "break_even"
    used = checked_number(where, "utilisation", utilisation, efficiency(), {})
    checked_number(where, "lifetime", lifetime, positive("year"), {})
    yearly = checked_number(where, "upkeep", upkeep, nonnegative(), {})
    if price is not None and rent is not None:
        refuse_choice(where, "price", year=year)
    prices, bought_at = purchase_prices(where, machine, price, year if price is None else None)
    hourly, rented_at = hourly_rents(where, machine, rent, provider, year if rent is None else None, commitment)
    owning = running_cost(machine, power=power, electricity=electricity, pue=pue)
    fixed = [(each * yearly / Q_(1, "year")).to("USD/hour") for each in prices]

    def at(one: int, other: int) -> Quantity:
        return break_even_time(prices[one], hourly[other] * used, owning * used + fixed[one])

    return BreakEven(
        machine.name,
        used,
        prices[0],
        hourly[0],
        owning,
        fixed[0],
        at(0, 0),
        at(1, 2),
        at(2, 1),
        lifetime,
        break_even_utilisation(prices[0], lifetime, hourly[0], owning, fixed[0]),
        (*bought_at, *rented_at, *power_assumptions(machine, power, electricity, pue)),
    )


def _months(time: Quantity) -> str:
    """Return a calendar time in months of a twelfth of a year."""
    months = time.m_as("month")
    return f"{months:.1f}" if math.isfinite(months) else "never"
