"""Carbon intensity of electricity by country and year."""

from mlsys._facts.dated import Grid, grids
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.faults import short
from mlsys.provenance import read
from mlsys.unit_checks import checked_count
from mlsys.units import Quantity

_ALSO = {"us": "United States", "uk": "United Kingdom", "gb": "United Kingdom", "europe": "Europe"}


def grid_intensity(country: str = "World", year: int | None = None) -> Quantity:
    """Return the average emissions of the electricity generated in a country, life cycle.

    Parameters
    ----------
    country
        Name such as ``"France"``, code of ISO 3166-1 such as ``"FRA"``, or a region such as ``"World"``.
    year
        Year of the average, as the intensity of most grids falls by the year; by default the newest recorded.

    Returns
    -------
    Quantity
        gCO2e/kWh; its fact says of which year. It is an average: a further kilowatt-hour may come from dirtier
        plants, and a contract for clean power does not change it.

    Raises
    ------
    UnknownNameError
        If there is no such country.
    ArgumentError
        If the year is not recorded.

    Examples
    --------
    >>> print(grid_intensity("France", 2024), grid_intensity("USA", 2023))
    40.48 gCO2e/kWh 392.89 gCO2e/kWh
    >>> grid_intensity("Frence")
    Traceback (most recent call last):
        ...
    mlsys.errors.UnknownNameError: grid_intensity(): no grid 'Frence'. Did you mean 'France'? ...
    """
    grid = _grid(country)
    years = list(grid.by_year)
    if year is None:
        wanted = years[-1]
    else:
        wanted = checked_count("grid_intensity", "year", year)
        if wanted not in grid.by_year:
            have = f"{years[0]} to {years[-1]}" if len(years) > 1 else f"{years[0]} alone"
            raise ArgumentError(
                f"grid_intensity(): `year` of {grid.name} is recorded for {have}, got {wanted}. "
                f"Write e.g. year={min(years, key=lambda each: abs(each - wanted))}"
            )
    quantity: Quantity = read(grid.at(wanted))
    return quantity


def _grid(country: object) -> Grid:
    """Return the grid of a name or code, whatever its case."""
    known = grids()
    if isinstance(country, str):
        wanted = country.strip().lower()
        wanted = _ALSO.get(wanted, wanted).lower()
        for grid in known.values():
            if wanted and wanted in (grid.name.lower(), grid.code.lower()):
                return grid
    words = [*known, *(grid.code for grid in known.values() if grid.code)]
    raise UnknownNameError(
        f"grid_intensity(): no grid {short(country)}.{did_you_mean(country, words)} A country by its English name or "
        "its code of three letters, or World"
    )
