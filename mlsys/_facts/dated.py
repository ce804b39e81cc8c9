"""Facts that hold at a date: prices, rents, electricity, PUE, the carbon of grids, and the compute of trainings.

They are rows of CSV files, read at first use. A row without a date or a source is refused.
"""

import csv
import functools
import io
from dataclasses import dataclass

from mlsys._facts.make import fact
from mlsys.frozen import FrozenDict
from mlsys.inputs import shipped_text, yaml_of
from mlsys.units import Quantity

_PACKAGE = "mlsys._facts"


@dataclass(frozen=True)
class Quotation:
    """A published value and its date.

    Attributes
    ----------
    subject
        What is quoted: a device id, a region, a kind of data centre.
    kind
        Kind of the quotation, such as ``"on-demand"``, ``"list"`` or ``"industrial"``.
    provider
        Who offers it; empty if not specific.
    date
        ``YYYY``, ``YYYY-MM`` or ``YYYY-MM-DD``.
    value
        The quantity, with its fact.
    note
        Further remarks of the row.
    """

    subject: str
    kind: str
    provider: str
    date: str
    value: Quantity
    note: str = ""

    @property
    def year(self) -> int:
        """Year of the quotation."""
        return int(self.date[:4])


@dataclass(frozen=True)
class Grid:
    """Carbon intensity of the electricity of a country or region, by year.

    Attributes
    ----------
    name, code
        Name, and ISO 3166-1 code of three letters; the code is empty for regions without one.
    by_year
        Plain numbers, gCO2e/kWh; :meth:`at` gives them their unit and fact.
    source
        Key of their source.
    """

    name: str
    code: str
    by_year: FrozenDict[int, float]
    source: str

    def at(self, year: int) -> Quantity:
        """Return the fact of one year, one of ``by_year``."""
        return _dated(
            f"grid/{self.name}/{year}",
            self.by_year[year],
            "gCO2e/kWh",
            f"emissions per energy generated, {self.name}, average of the year with life-cycle factors",
            str(year),
            self.source,
        )


@functools.cache
def _sources() -> dict[str, dict[str, str]]:
    sources: dict[str, dict[str, str]] = yaml_of(shipped_text(_PACKAGE, "dated_sources.yaml"))
    return sources


def _rows(topic: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(shipped_text(_PACKAGE, f"{topic}.csv"))))


def _dated(name: str, value: float, unit: str, meaning: str, date: str, source: str, url: str = "") -> Quantity:
    """Return the fact of one row."""
    entry = _sources()[source]
    return fact(
        value,
        unit,
        name=name,
        meaning=meaning,
        source=f"{entry['title']}, {url or entry['url']}",
        date=date,
        confidence=entry["confidence"],
    )


def _numbered(name: str, counts: dict[str, int]) -> str:
    """Return a unique name for a fact, with a number behind it from the second of the same name on."""
    counts[name] = counts.get(name, 0) + 1
    return name if counts[name] == 1 else f"{name}/{counts[name]}"


@functools.cache
def rents() -> tuple[Quotation, ...]:
    """Return the quoted rents of one chip, USD/hour, oldest first.

    Examples
    --------
    >>> newest = [rent for rent in rents() if rent.subject == "TPUv4"][-1]
    >>> newest.provider, newest.date
    ('Google Cloud', '2025-03-03')
    """
    counts: dict[str, int] = {}
    quotations = []
    for row in _rows("rents"):
        device, provider, commitment = row["device"], row["provider"], row["commitment"]
        details = ", ".join(filter(None, (provider, row["region"], commitment, row["note"])))
        name = _numbered(f"rent/{device}/{provider}/{commitment}/{row['date']}", counts)
        value = _dated(
            name,
            float(row["usd_per_hour"]),
            "USD/hour",
            f"rent of one chip with its share of the host ({details})",
            row["date"],
            row["source"],
            row["url"],
        )
        quotations.append(Quotation(device, commitment, provider, row["date"], value, row["note"]))
    return tuple(sorted(quotations, key=lambda quotation: quotation.date))


@functools.cache
def purchases() -> tuple[Quotation, ...]:
    """Return the quoted purchase prices of one chip, USD, oldest first; list prices in device files are not repeated.

    The kinds are ``list`` (list or shop price of one), ``paid`` (bounds of the average price paid), ``system`` (price
    of a server over its chips) and ``estimate``.

    Examples
    --------
    >>> [str(price.value) for price in purchases() if price.subject == "B200"]
    ['47409.13 USD']
    """
    counts: dict[str, int] = {}
    quotations = []
    kinds = {
        "list": "list or shop price of one",
        "paid": "average price paid",
        "system": "price of a system over its chips: host, network and margin included",
        "estimate": "estimate",
    }
    for row in _rows("purchases"):
        device, kind = row["device"], row["kind"]
        name = _numbered(f"purchase/{device}/{kind}/{row['date']}", counts)
        meaning = "; ".join(filter(None, (kinds[kind], row["note"])))
        value = _dated(name, float(row["usd"]), "USD", meaning, row["date"], row["source"], row["url"])
        quotations.append(Quotation(device, kind, "", row["date"], value, row["note"]))
    return tuple(sorted(quotations, key=lambda quotation: quotation.date))


@functools.cache
def electricity_prices() -> tuple[Quotation, ...]:
    """Return the prices of electricity of customers in the United States, USD/kWh, by state and sector.

    Examples
    --------
    >>> texas = [price for price in electricity_prices() if price.subject == "Texas, USA"]
    >>> [(price.kind, str(price.value)) for price in texas]
    [('commercial', '0.0882 USD/kWh'), ('industrial', '0.066 USD/kWh')]
    """
    quotations = []
    for row in _rows("electricity"):
        region, sector, date = row["region"], row["sector"], row["date"]
        value = _dated(
            f"electricity/{region}/{sector}/{date}",
            float(row["usd_per_kwh"]),
            "USD/kWh",
            f"average revenue per kWh from {sector} customers, {region}",
            date,
            row["source"],
        )
        quotations.append(Quotation(region, sector, "", date, value))
    return tuple(sorted(quotations, key=lambda quotation: quotation.date))


@functools.cache
def pue_values() -> tuple[Quotation, ...]:
    """Return published values of the power usage effectiveness of data centres, oldest first.

    Examples
    --------
    >>> [(each.subject, each.date, float(each.value.magnitude)) for each in pue_values()][-1]
    ('google', '2025', 1.09)
    """
    quotations = []
    for row in _rows("pue"):
        value = _dated(
            f"pue/{row['name']}/{row['date']}",
            float(row["pue"]),
            "",
            f"power usage effectiveness, {row['meaning']}",
            row["date"],
            row["source"],
        )
        quotations.append(Quotation(row["name"], "PUE", "", row["date"], value, row["meaning"]))
    return tuple(sorted(quotations, key=lambda quotation: quotation.date))


@functools.cache
def grids() -> dict[str, Grid]:
    """Return the carbon intensity of electricity by country or region, gCO2e/kWh, average of generation, life cycle.

    Examples
    --------
    >>> print(grids()["France"].at(2024))
    40.48 gCO2e/kWh
    """
    known = {}
    for row in _rows("grid"):
        name, code, source = row.pop("name"), row.pop("code"), row.pop("source")
        by_year = FrozenDict({int(year): float(value) for year, value in row.items() if value})
        known[name] = Grid(name, code, by_year, source)
    return known


@functools.cache
def training_compute() -> tuple[Quotation, ...]:
    """Return the operations of published trainings, FLOP, oldest first; ``kind`` is how sure the source is.

    Examples
    --------
    >>> first = training_compute()[0]
    >>> first.subject, first.date, f"{first.value:.2g~}"
    ('AlexNet', '2012-09-30', '4.7e+17 FLOP')
    """
    quotations = [
        Quotation(
            row["model"],
            row["estimate"],
            "",
            row["date"],
            _dated(
                f"training_compute/{row['model']}",
                float(row["flop"]),
                "FLOP",
                f"operations of the training of {row['model']}, by Epoch AI ({row['estimate']})",
                row["date"],
                row["source"],
            ),
        )
        for row in _rows("training_compute")
    ]
    return tuple(sorted(quotations, key=lambda quotation: quotation.date))


@dataclass(frozen=True)
class Milestone:
    """A machine that put a mechanism into hardware.

    Attributes
    ----------
    year, machine
        Year in which it was introduced, and its name.
    mechanism
        What it did in hardware that others did in software or not at all.
    limit
        What had been the limit: ``"precision"``, ``"throughput"``, ``"flexibility"`` or ``"integration"``.
    source
        Where the year is from.
    """

    year: int
    machine: str
    mechanism: str
    limit: str
    source: str


@functools.cache
def milestones() -> tuple[Milestone, ...]:
    """Return milestones of specialised hardware before accelerators for machine learning, oldest first.

    Examples
    --------
    >>> [(each.year, each.machine) for each in milestones()][:2]
    [(1980, 'Intel 8087'), (1983, 'TI TMS32010')]
    """
    return tuple(Milestone(int(row.pop("year")), **row) for row in _rows("milestones"))
