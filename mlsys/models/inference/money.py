"""Money, energy and emissions of tokens: rent, power and grid of the chips that a layout takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.units import Q_, Quantity

if TYPE_CHECKING:
    from mlsys.hardware.system import System

_MILLION, _HOUR = 1e6, 3600.0


@dataclass(frozen=True)
class Money:
    """What a million tokens cost, and an hour of one chip; None where that is not known.

    Attributes
    ----------
    usd_per_million_tokens, kwh_per_million_tokens, gco2e_per_million_tokens
        Rent, energy of the data centre, and emissions.
    usd_per_hour, kilowatts, grams_per_hour
        Of one chip with its share of the host: rent, power of the data centre, and emissions.
    notes
        What they rest on, in words.
    """

    usd_per_million_tokens: float | None = None
    kwh_per_million_tokens: float | None = None
    gco2e_per_million_tokens: float | None = None
    usd_per_hour: float | None = None
    kilowatts: float | None = None
    grams_per_hour: float | None = None
    notes: tuple[str, ...] = ()

    def at(self, tokens_per_second: float, chips: int) -> Money:
        """Return the same hour of a chip with what a million tokens cost at a rate of so many chips."""
        hours = chips * _MILLION / tokens_per_second / _HOUR

        def each(of_an_hour: float | None) -> float | None:
            return None if of_an_hour is None else of_an_hour * hours

        return Money(
            each(self.usd_per_hour),
            each(self.kilowatts),
            each(self.grams_per_hour),
            self.usd_per_hour,
            self.kilowatts,
            self.grams_per_hour,
            self.notes,
        )


def hour_of(system: System, rent: Quantity | None = None, grid: str | None = None) -> Money:
    """Return what an hour of one chip of a system costs in money, energy and emissions.

    Parameters
    ----------
    system
        A system; its chips are rented one by one.
    rent
        Rent of one chip, USD/hour, instead of the recorded one.
    grid
        Country whose electricity is used; by default the mean of the world.

    Raises
    ------
    UnknownNameError
        If there is no such country.
    """
    from mlsys.models.carbon import energy_use, operational
    from mlsys.models.cost import rent as rent_of

    device, notes = system.device, []
    hour = Q_(1, "hour")
    power = None
    if system._power is not None:
        power = system.power / system.chips_per_node
        notes.append(f"a chip's share of the power of {system.name}, busy all the time")
    usd: float | None = None
    if rent is not None:
        usd = float(rent.m_as("USD/hour"))
        notes.append("rent as given")
    else:
        try:
            price = rent_of(device)
        except (ArgumentError, UnknownNameError):
            notes.append(f"no rent of {device.name} is on record: cost unknown; give --rent")
        else:
            usd = float(price.amount.m_as("USD/hour"))
            notes.append(price.explain())
    try:
        energy = energy_use(device, hour, power=power)
    except UnknownNameError:
        return Money(usd_per_hour=usd, notes=(*notes, f"no power of {device.name} is on record: energy unknown"))
    country = "World" if grid is None else grid
    grams = operational(energy, country)
    notes.append(f"emissions of the electricity alone ({country}); models.carbon.footprint() adds embodied emissions")
    return Money(
        usd_per_hour=usd,
        kilowatts=float(energy.m_as("kWh")),
        grams_per_hour=float(grams.m_as("gCO2e")),
        notes=tuple(notes),
    )
