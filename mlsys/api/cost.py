"""``mlsys.cost``: what a machine costs to rent and to buy, the energy that it uses, and its emissions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mlsys.choices import Commitment
from mlsys.errors import ArgumentError, UnknownNameError, UnrecordedError
from mlsys.hardware import Hardware
from mlsys.hardware.device import Device
from mlsys.hardware.system import System, as_system
from mlsys.hardware.view import view
from mlsys.models.break_even import BreakEven, break_even
from mlsys.models.breakdown import Breakdown, shown
from mlsys.models.carbon import embodied, energy_use, footprint, grid_intensity, operational
from mlsys.models.electricity import electricity_price
from mlsys.models.ownership import LIFETIME, refuse_choice, total_cost_of_ownership
from mlsys.models.prices import Machine, Price, device_and_chips, purchase_price
from mlsys.models.prices import rent as recorded_rent
from mlsys.models.record import facts_of, plain_amount, with_units
from mlsys.provenance import Fact
from mlsys.tables import Table
from mlsys.unit_checks import checked_number, fraction, positive
from mlsys.units import Q_, Quantity

T = TypeVar("T")
_HOURS = Q_(1000, "hour")


@dataclass(frozen=True)
class MachineCost:
    """Money, energy and emissions of holding a machine for a time; None for what is not recorded.

    Attributes
    ----------
    machine
        Device or system.
    time
        Calendar time that it is held.
    utilisation
        Fraction of that time under load.
    rent, renting
        Rent per hour, and of the time under load.
    price, ownership
        Purchase price, and total cost over the lifetime.
    break_even
        When buying costs less than renting.
    energy, electricity
        Energy of the time with the overhead of the data centre, and what it costs.
    operational, making, footprint
        Emissions of that energy, of making the machine, and of both for the time.
    unknown
        Why what is missing is missing.
    """

    machine: Machine
    time: Quantity
    utilisation: float
    rent: Price | None
    renting: Quantity | None
    price: Price | None
    ownership: Breakdown | None
    break_even: BreakEven | None
    energy: Quantity | None
    electricity: Quantity | None
    operational: Quantity | None
    making: Breakdown | None
    footprint: Breakdown | None
    unknown: tuple[str, ...]

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the answers depend on, without duplicates."""
        held = [each for each in (self.rent, self.price, self.ownership, self.break_even, self.footprint) if each]
        own = facts_of(self.renting, self.electricity, self.operational)
        return tuple(dict.fromkeys((*own, *(fact for each in held for fact in each.facts))))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the result, in words."""
        held = (self.rent, self.price, self.ownership, self.break_even, self.footprint)
        words = [word for each in held if each for word in each.assumptions]
        return tuple(dict.fromkeys(word for word in words if not word.startswith(("rent of", "purchase price of"))))

    def record(self) -> dict[str, Any]:
        """Return what ``mlsys cost --json`` prints."""
        return with_units(
            {
                "machine": self.machine.name,
                "chips": device_and_chips("cost", self.machine)[1],
                "time": plain_amount(self.time),
                "utilisation": self.utilisation,
                **{name: None if each is None else each.record() for name, each in self._models().items()},
                **{name: None if each is None else plain_amount(each) for name, each in self._amounts().items()},
                "assumptions": list(self.assumptions),
                "unknown": list(self.unknown),
                "facts": [fact.name for fact in self.facts],
            }
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return what ``mlsys cost --csv`` prints: one row for each quantity, with its range and its unit."""
        return [
            {
                "quantity": name,
                "value": plain_amount(value)["value"],
                "low": plain_amount(low)["value"],
                "high": plain_amount(high)["value"],
                "unit": plain_amount(value)["unit"],
                "remark": remark,
            }
            for name, value, low, high, remark in self._lines()
        ]

    def table(self) -> Table:
        """Return a table with a row for each quantity."""
        rows = [
            (name, shown(value), "" if low.m == high.m else f"{shown(low)} to {shown(high)}", remark)
            for name, value, low, high, remark in self._lines()
        ]
        return Table(self._title(), ("", "value", "range", "remark"), rows)

    def explain(self) -> str:
        """Return the table and, below it, what is assumed and what is not known, as text."""
        lines = [str(self.table())]
        if self.break_even is not None:
            lines += self.break_even.explain().splitlines()[:2]
        lines += [f"not known: {word}" for word in self.unknown]
        lines += ["Assumptions:", *(f"  - {word}" for word in self.assumptions)]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.table()._repr_mimebundle_(include, exclude)

    def _title(self) -> str:
        load = f"under load {self.utilisation:.0%} of the time"
        return f"{self.machine.name} for {self.time.m_as('hour'):,.6g} hours, {load}"

    def _models(self) -> dict[str, Price | Breakdown | BreakEven | None]:
        return {
            "rent": self.rent,
            "price": self.price,
            "ownership": self.ownership,
            "break_even": self.break_even,
            "making": self.making,
            "footprint": self.footprint,
        }

    def _amounts(self) -> dict[str, Quantity | None]:
        return {
            "renting": self.renting,
            "energy": self.energy,
            "electricity": self.electricity,
            "operational": self.operational,
        }

    def _lines(self) -> list[tuple[str, Quantity, Quantity, Quantity, str]]:
        """Return name, value, low end, high end and a remark of each quantity that is known."""
        lines: list[tuple[str, Quantity, Quantity, Quantity, str]] = []
        if self.rent is not None and self.renting is not None:
            lines.append(("rent per hour", self.rent.amount, *self.rent.range, _dated(self.rent)))
            busy = self.time * self.utilisation
            low, high = ((each * busy).to("USD") for each in self.rent.range)
            lines.append(("rent", self.renting, low, high, "of the hours under load"))
        if self.price is not None:
            lines.append(("purchase", self.price.amount, *self.price.range, _dated(self.price)))
        if self.ownership is not None:
            lines.append(("ownership", self.ownership.total, *self.ownership.range, _years(self.ownership)))
        if self.break_even is not None:
            years = [each.to("year") for each in (self.break_even.time, *self.break_even.range)]
            lines.append(("break-even", years[0], years[1], years[2], "of calendar time"))
        if self.energy is not None:
            lines.append(("energy", self.energy, self.energy, self.energy, "with the overhead of the data centre"))
        if self.electricity is not None:
            lines.append(("electricity", self.electricity, self.electricity, self.electricity, ""))
        if self.operational is not None:
            remark = f"at {shown(self.footprint.figures['grid intensity'])}" if self.footprint else ""
            lines.append(("operational emissions", self.operational, self.operational, self.operational, remark))
        if self.making is not None:
            lines.append(("embodied emissions", self.making.total, *self.making.range, "of the whole machine"))
        if self.footprint is not None:
            lines.append(
                ("emissions", self.footprint.total, *self.footprint.range, "energy, and a share of the making")
            )
        return lines


def cost(
    machine: Machine | str | Path,
    time: Quantity = _HOURS,
    *,
    utilisation: float = 1.0,
    grid: str | Quantity = "World",
    year: int | None = None,
    provider: str | None = None,
    commitment: Commitment = "on-demand",
    rent: Quantity | None = None,
    price: Quantity | None = None,
    electricity: Quantity | None = None,
    pue: float | None = None,
    power: Quantity | None = None,
    lifetime: Quantity = LIFETIME,
    nodes: int | None = None,
) -> MachineCost:
    """Return what a machine costs to rent and to buy, its energy and its emissions, as ``mlsys cost`` does.

    Parameters
    ----------
    machine
        A device, a system, the name of either, or the path of a system file.
    time
        Calendar time that it is held, by default 1000 hours.
    utilisation
        Fraction of the time under load, above 0 and up to 1; it is off, and not rented, in the rest.
    grid
        Country whose electricity it uses, such as ``"France"``, or a carbon intensity, gCO2e/kWh.
    year
        Newest year of prices, and year of the grid; by default the newest recorded of each.
    provider, commitment
        Which recorded rent; see :func:`mlsys.models.cost.rent`.
    rent, price
        Rent and purchase price of the whole machine, instead of recorded ones.
    electricity, pue, power
        Price of electricity, power usage effectiveness and power of the whole machine; see
        :func:`mlsys.models.cost.running_cost`.
    lifetime
        Time in service, by default four years.
    nodes
        Number of nodes of a system; by default as it is.

    Returns
    -------
    MachineCost
        Its ``record()`` is what ``mlsys cost --json`` prints. What is not recorded is None, with the reason in
        ``unknown``.

    Raises
    ------
    UnknownNameError
        If there is no such machine, country or provider.
    ArgumentError
        If an argument is out of range, or the year is not recorded.

    Examples
    --------
    >>> answer = cost("A100", grid="France", year=2024)
    >>> print(f"{answer.energy:.0f}, {answer.operational.to('kgCO2e'):.1f}, {answer.rent.amount}")
    616 kWh, 24.9 kgCO2e, 2.75 USD/h
    """
    held = _machine(machine, nodes)
    checked_number("cost", "time", time, positive("hour"), {})
    used = checked_number("cost", "utilisation", utilisation, fraction(), {})
    if not used:
        raise ArgumentError("cost(): `utilisation` must be above 0 and at most 1, got 0. Write e.g. utilisation=0.7")
    if isinstance(grid, str):
        grid = grid_intensity(grid, year)
    tariff = electricity_price() if electricity is None else electricity
    if rent is not None:
        refuse_choice("cost", "rent", provider=provider, commitment=commitment)
    unknown: list[str] = []
    rented = _given(held, "rent", rent) or _known(
        unknown, lambda: recorded_rent(held, provider, year, commitment=commitment)
    )
    bought = _given(held, "purchase price", price) or _known(unknown, lambda: purchase_price(held, year))
    powered = power is not None or _has_power(held)
    if not powered:
        unknown.append(f'no TDP of {held.name} is recorded; give its power, e.g. power=Q_(300, "W")')
    load: dict[str, Any] = {"power": power, "pue": pue}
    money: dict[str, Any] = {**load, "electricity": tariff, "utilisation": used, "lifetime": lifetime}
    both = powered and bought is not None and rented is not None
    energy = energy_use(held, time, utilisation=used, **load) if powered else None
    making = _known(unknown, lambda: embodied(held))
    emitted: dict[str, Any] = {**load, "grid": grid, "utilisation": used, "lifetime": lifetime}
    return MachineCost(
        held,
        time,
        used,
        rented,
        None if rented is None else (rented.amount * (time * used)).to("USD"),
        bought,
        total_cost_of_ownership(held, price=bought, **money) if powered and bought is not None else None,
        break_even(held, price=bought, rent=rented, **money) if both else None,
        energy,
        None if energy is None else (energy * tariff).to("USD"),
        None if energy is None else operational(energy, grid),
        making,
        footprint(held, time, made=making, **emitted) if powered and making is not None else None,
        tuple(unknown),
    )


def _machine(machine: Machine | str | Path, nodes: int | None) -> Machine:
    """Return a device or a system, by itself or by its name."""
    if isinstance(machine, str) and nodes is None:
        try:
            return Hardware[machine]
        except UnknownNameError:
            return as_system(machine)
    if isinstance(machine, Device) and nodes is None:
        return machine
    return as_system(machine, nodes)


def _has_power(machine: Machine) -> bool:
    device, _ = device_and_chips("cost", machine)
    return view(device).has("tdp") or (isinstance(machine, System) and machine.has_power)


def _given(machine: Machine, what: str, amount: Quantity | None) -> Price | None:
    """Return a price that the caller gives for the whole machine, as a price without quotations."""
    if amount is None:
        return None
    unit = "USD/hour" if what == "rent" else "USD"
    checked_number("cost", "rent" if what == "rent" else "price", amount, positive(unit), {})
    chips = device_and_chips("cost", machine)[1]
    return Price(what, machine.name, amount, amount, amount, amount / chips, chips, (), (), (f"{what} as given",))


def _known(unknown: list[str], answer: Callable[[], T]) -> T | None:
    """Return an answer, or None and note the reason if a fact that it needs is not recorded."""
    try:
        return answer()
    except UnrecordedError as error:
        unknown.append(str(error).partition("(): ")[2].partition(". ")[0])
        return None


def _dated(price: Price) -> str:
    if not price.used:
        return "as given"
    who = ", ".join(dict.fromkeys(f"{each.provider} {each.kind}".strip() for each in price.used))
    return f"{who}, {price.date}"


def _years(ownership: Breakdown) -> str:
    return ownership.subject.rpartition(" for ")[2]
