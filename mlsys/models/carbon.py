"""Carbon: emissions of the electricity that a machine uses and of making it, per hour and per million tokens."""

from __future__ import annotations

from mlsys.formulas.carbon import embodied_share, facility_energy, operational_carbon, token_carbon
from mlsys.frozen import FrozenDict
from mlsys.models.breakdown import Breakdown, shown
from mlsys.models.embodied import EmbodiedMethod, embodied, fab_carbon_per_area, storage_carbon
from mlsys.models.grid import grid_intensity
from mlsys.models.ownership import LIFETIME, checked_pue, load_in_words, power_in_words, power_of, pue_in_words
from mlsys.models.prices import Machine
from mlsys.unit_checks import at_least, checked_number, efficiency, nonnegative, positive
from mlsys.units import Q_, Quantity, total

__all__ = [
    "embodied",
    "energy_use",
    "fab_carbon_per_area",
    "footprint",
    "gco2e_per_million_tokens",
    "grid_intensity",
    "kwh_per_million_tokens",
    "operational",
    "storage_carbon",
]

_HOUR = Q_(1, "hour")


def operational(
    energy: Quantity, grid: str | Quantity = "World", *, year: int | None = None, pue: float | Quantity = 1.0
) -> Quantity:
    """Return the emissions of the electricity that a machine uses.

    Parameters
    ----------
    energy
        Energy that the machine draws.
    grid
        Country, such as ``"France"``, or a carbon intensity, gCO2e/kWh.
    year
        Year of the recorded intensity; by default the newest.
    pue
        Power usage effectiveness of the data centre, 1 or more; 1 if ``energy`` is that of the whole facility.

    Returns
    -------
    Quantity
        gCO2e; its facts name the grid and the year.

    Raises
    ------
    UnknownNameError
        If there is no such country.
    ArgumentError
        If the year is not recorded, or an argument is out of range.

    Examples
    --------
    >>> print(f"{operational(Q_(1, 'MWh'), 'France', year=2024, pue=1.2).to('kgCO2e'):.1f}")
    48.6 kgCO2e
    """
    checked_number("operational", "pue", pue, at_least(1), {})
    return operational_carbon(energy, _intensity("operational", grid, year), pue)


def energy_use(
    machine: Machine,
    time: Quantity,
    *,
    utilisation: float = 1.0,
    power: Quantity | None = None,
    pue: float | Quantity | None = None,
) -> Quantity:
    """Return the energy that a data centre draws for a machine: power × time × utilisation × PUE.

    Parameters
    ----------
    machine
        A device or a system.
    time
        Time of the whole machine.
    utilisation
        Fraction of the time under load, 0 to 1; otherwise the machine is off.
    power
        Power of the whole machine under load; by default the most of its nodes, or the TDP of its chips.
    pue
        Power usage effectiveness, 1 or more; by default the average of the survey of Uptime Institute.

    Returns
    -------
    Quantity
        kWh.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> print(f"{energy_use(Hardware.Cloud.A100, Q_(1000, 'hour'), pue=1.2):.0f}")
    480 kWh
    """
    return facility_energy(power_of("energy_use", machine, power), time, utilisation, checked_pue("energy_use", pue))


def footprint(
    machine: Machine,
    time: Quantity = _HOUR,
    *,
    grid: str | Quantity = "World",
    year: int | None = None,
    utilisation: float = 1.0,
    power: Quantity | None = None,
    pue: float | Quantity | None = None,
    lifetime: Quantity = LIFETIME,
    method: EmbodiedMethod = "ACT",
    made: Breakdown | Quantity | None = None,
) -> Breakdown:
    """Return the emissions of using a machine for a time: electricity, and its share of the making.

    Parameters
    ----------
    machine
        A device or a system.
    time
        Calendar time that it is held, by default an hour; it bears *time* / *lifetime* of the making.
    grid, year
        Country or carbon intensity; see :func:`operational`.
    utilisation, power, pue
        As for :func:`energy_use`.
    lifetime
        Time in service, by default four years.
    method
        How the making is known; see :func:`embodied`.
    made
        Emissions of making the whole machine, instead.

    Returns
    -------
    Breakdown
        gCO2e. Its range is that of the making.

    Raises
    ------
    ArgumentError
        If the making is not known, or an argument is out of range.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> hour = footprint(Hardware.Cloud.H100, grid="World", year=2024)
    >>> print(", ".join(f"{name} {part:.0f}" for name, part in hour.parts.items()))
    operational 508 gCO2e, embodied 1 gCO2e
    """
    checked_number("footprint", "time", time, nonnegative("hour"), {})
    checked_number("footprint", "lifetime", lifetime, positive("hour"), {})
    intensity = _intensity("footprint", grid, year)
    energy = energy_use(machine, time, utilisation=utilisation, power=power, pue=pue)
    used = operational_carbon(energy, intensity)
    making = embodied(machine, method=method) if made is None else made
    if isinstance(making, Breakdown):
        ends = (making.total, making.low, making.high)
        words: tuple[str, ...] = (f"making: {making.assumptions[0]}", *making.assumptions[1:])
    else:
        checked_number("footprint", "made", making, nonnegative("gCO2e"), {})
        ends, words = (making, making, making), ("making as given",)
    shares = [embodied_share(each, time, lifetime) for each in ends]
    middle, low, high = (total((used, share), "gCO2e") for share in shares)
    return Breakdown(
        "footprint",
        f"{machine.name} for {_hours(time)}",
        middle,
        low,
        high,
        FrozenDict({"operational": used, "embodied": shares[0]}),
        FrozenDict({"energy": energy, "grid intensity": intensity, "making, whole": ends[0]}),
        (
            power_in_words(machine, power),
            load_in_words(utilisation),
            f"electricity at {shown(intensity)}" + (f" ({_source(intensity)})" if intensity.facts else ""),
            pue_in_words(pue),
            f"in service for {lifetime.m_as('year'):g} years",
            *words,
        ),
    )


def kwh_per_million_tokens(
    machine: Machine, token_rate: Quantity, *, power: Quantity | None = None, pue: float | Quantity | None = None
) -> Quantity:
    """Return the energy of a million tokens on a machine that is busy.

    Parameters
    ----------
    machine
        A device or a system.
    token_rate
        Tokens per second of the whole machine.
    power, pue
        As for :func:`energy_use`.

    Returns
    -------
    Quantity
        kWh/Mtoken.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> print(f"{kwh_per_million_tokens(Hardware.Cloud.A100, Q_(680, 'token/s'), pue=1.0):.3f}")
    0.163 kWh/Mtoken
    """
    checked_number("kwh_per_million_tokens", "token_rate", token_rate, positive("token/s"), {})
    each: Quantity = energy_use(machine, _HOUR, power=power, pue=pue) / (token_rate * _HOUR)
    return each.to("kWh/Mtoken")


def gco2e_per_million_tokens(
    machine: Machine,
    token_rate: Quantity,
    *,
    grid: str | Quantity = "World",
    year: int | None = None,
    busy: float = 1.0,
    power: Quantity | None = None,
    pue: float | Quantity | None = None,
    lifetime: Quantity = LIFETIME,
    method: EmbodiedMethod = "ACT",
    made: Breakdown | Quantity | None = None,
) -> Breakdown:
    """Return the emissions of a million tokens: electricity, and the share of the making.

    Parameters
    ----------
    machine
        A device or a system.
    token_rate
        Tokens per second of the whole machine while it is busy.
    busy
        Fraction of its life in which it is busy, above 0 and up to 1: the tokens bear the making of the idle time too.
    grid, year, power, pue, lifetime, method, made
        As for :func:`footprint`.

    Returns
    -------
    Breakdown
        gCO2e/Mtoken.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> answer = gco2e_per_million_tokens(Hardware.Cloud.A100, Q_(680, "token/s"), grid="France", year=2024)
    >>> print(f"{answer.total:.1f}")
    10.5 gCO2e/Mtoken
    """
    where = "gco2e_per_million_tokens"
    checked_number(where, "token_rate", token_rate, positive("token/s"), {})
    busy = checked_number(where, "busy", busy, efficiency(), {})
    hour = footprint(
        machine,
        _HOUR,
        grid=grid,
        year=year,
        utilisation=busy,
        power=power,
        pue=pue,
        lifetime=lifetime,
        method=method,
        made=made,
    )
    average = token_rate * busy if busy < 1 else token_rate
    parts = {name: token_carbon(part / _HOUR, average) for name, part in hour.parts.items()}
    middle, low, high = (token_carbon(each / _HOUR, average) for each in (hour.total, hour.low, hour.high))
    return Breakdown(
        where,
        f"a million tokens on {machine.name}",
        middle,
        low,
        high,
        FrozenDict(parts),
        FrozenDict(
            {"token rate": token_rate, "energy": kwh_per_million_tokens(machine, token_rate, power=power, pue=pue)}
        ),
        hour.assumptions,
    )


def _intensity(where: str, grid: str | Quantity, year: int | None) -> Quantity:
    """Return the carbon intensity of a country, or the one given."""
    if isinstance(grid, str):
        return grid_intensity(grid, year)
    checked_number(where, "grid", grid, nonnegative("gCO2e/kWh"), {})
    return grid


def _hours(time: Quantity) -> str:
    hours = time.m_as("hour")
    return "an hour" if hours == 1 else f"{hours:,.6g} hours"


def _source(intensity: Quantity) -> str:
    """Return the country and year of a recorded intensity."""
    return ", ".join(fact.name.removeprefix("grid/").replace("/", " ") for fact in intensity.facts)
