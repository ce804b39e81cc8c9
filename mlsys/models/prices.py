"""Dated prices: what a machine costs to buy and to rent.

A price is that of the newest year with a quotation, not after the requested year; if there are several, it is their
median, and the range goes from the cheapest to the dearest of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from mlsys._facts.dated import Quotation, purchases, rents
from mlsys.choices import Commitment
from mlsys.errors import ArgumentError, UnknownNameError, UnrecordedError, did_you_mean
from mlsys.faults import short
from mlsys.hardware.device import Device
from mlsys.hardware.system import System
from mlsys.hardware.view import view
from mlsys.models.breakdown import shown
from mlsys.models.record import VERSION, facts_of, plain_amount
from mlsys.provenance import Fact, comparing, read, unrecorded
from mlsys.unit_checks import checked_choice, checked_count
from mlsys.units import Quantity

PriceKind = Literal["list", "paid", "system", "estimate"]
"""Kind of a purchase price: list or shop price of one, bounds of the average paid, share of a system, estimate."""


Machine = Device | System
"""What has a price and a power: a device, or a system of equal devices."""


def device_and_chips(where: str, machine: Machine) -> tuple[Device, int]:
    """Return the device of one chip and the number of chips.

    Raises
    ------
    ArgumentError
        If it is neither a device nor a system.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> device_and_chips("rent", Hardware.Cloud.A100)[1]
    1
    """
    if isinstance(machine, Device):
        return machine, 1
    if isinstance(machine, System):
        return machine.device, machine.chips
    raise ArgumentError(
        f"{where}(): `machine` must be a device or a system, such as Hardware.Cloud.A100, got {short(machine)}"
    )


@dataclass(frozen=True)
class Price:
    """A price at a date, with its range and the quotations behind it.

    Attributes
    ----------
    what
        ``"rent"`` or ``"purchase price"``.
    subject
        Name of the machine.
    amount
        USD or USD/hour, of all chips of the machine.
    low, high
        Cheapest and dearest quotation of the same year.
    each
        The amount for one chip.
    chips
        Number of chips.
    quotations
        Quotations of the year, from the cheapest to the dearest.
    used
        Those of them that the amount is taken from: one, or the two whose mean is the median.
    assumptions
        What was taken for granted, in words.
    """

    what: str
    subject: str
    amount: Quantity
    low: Quantity
    high: Quantity
    each: Quantity
    chips: int
    quotations: tuple[Quotation, ...]
    used: tuple[Quotation, ...]
    assumptions: tuple[str, ...] = ()

    @property
    def date(self) -> str:
        """Date of the quotation used, the newer one if there are two; empty for a price that was given."""
        return max((quotation.date for quotation in self.used), default="")

    @property
    def range(self) -> tuple[Quantity, Quantity]:
        """Low and high end."""
        return self.low, self.high

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts behind the amount and its range."""
        return facts_of(self.amount, self.low, self.high)

    def record(self) -> dict[str, Any]:
        """Return the price as plain data."""
        return {
            "record": VERSION,
            "what": self.what,
            "subject": self.subject,
            "amount": plain_amount(self.amount),
            "low": plain_amount(self.low),
            "high": plain_amount(self.high),
            "chips": self.chips,
            "date": self.date,
            "providers": list(dict.fromkeys(each.provider for each in self.used if each.provider)),
            "kinds": list(dict.fromkeys(each.kind for each in self.used)),
            "quotations": len(self.quotations),
            "assumptions": list(self.assumptions),
            "facts": [fact.name for fact in self.facts],
        }

    def explain(self) -> str:
        """Return the price, its range, its date and its quotations in a sentence.

        Examples
        --------
        >>> from mlsys import Hardware
        >>> print(rent(Hardware.Cloud.H100, provider="Lambda").explain())
        rent of NVIDIA H100 SXM5 80 GB: 3.29 USD/h (Lambda on-demand, 2025-02-28)
        """
        if not self.used:
            return f"{self.what} of {self.subject}: {shown(self.amount)}, as given"
        ends = "" if len(self.quotations) < 2 else f", {shown(self.low)} to {shown(self.high)}"
        of = " and ".join(", ".join((f"{each.provider} {each.kind}".strip(), each.date)) for each in self.used)
        among = "" if len(self.quotations) < 2 else f", the median of {len(self.quotations)} quotations of that year"
        return f"{self.what} of {self.subject}: {shown(self.amount)}{ends} ({of}{among})"


def rent(
    machine: Machine, provider: str | None = None, year: int | None = None, *, commitment: Commitment = "on-demand"
) -> Price:
    """Return the list rent of a machine per hour.

    Parameters
    ----------
    machine
        A device or a system; the rent of a system is that of its chips, which includes their share of the host.
    provider
        Who rents it out, such as ``"AWS"``; by default the median of all.
    year
        Newest year to look at; by default the newest recorded.
    commitment
        ``"on-demand"``, or a contract of one or three years.

    Returns
    -------
    Price
        USD/hour. Its ``date`` says which quotation was used.

    Raises
    ------
    ArgumentError
        If no rent is recorded for the device, the year or the commitment.
    UnknownNameError
        If there is no such provider.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> price = rent(Hardware.Cloud.A100)
    >>> print(f"{price.amount:.3f}", "from", *price.range, price.date)
    3.835 USD/h from 1.89 USD/h 5.12 USD/h 2025-03-17
    >>> print(rent(Hardware.Cloud.A100, "AWS", 2023).date)
    2022-08-19
    """
    device, chips = device_and_chips("rent", machine)
    checked_choice("rent", "commitment", commitment, get_args(Commitment))
    known = [quotation for quotation in rents() if quotation.subject == device.id]
    if not known:
        raise _unrecorded("rent", "rent", device, 'Q_(2, "USD/hour")')
    if provider is not None:
        known = _of_provider(device, provider, known)
    fitting = [quotation for quotation in known if quotation.kind == commitment]
    if not fitting:
        have = ", ".join(dict.fromkeys(quotation.kind for quotation in known))
        raise ArgumentError(
            f"rent(): `commitment` of {device.id} is recorded as {have}, got {commitment!r}. Write e.g. "
            f"commitment={known[0].kind!r}"
        )
    return _price(
        "rent", machine.name, newest_quotations("rent", device.id, fitting, year, by_date=provider is not None), chips
    )


def purchase_price(machine: Machine, year: int | None = None, *, kind: PriceKind | None = None) -> Price:
    """Return the purchase price of a machine.

    Parameters
    ----------
    machine
        A device or a system.
    year
        Newest year to look at; by default the newest recorded.
    kind
        Kind of price. By default list prices and bounds of prices paid, for a device, and prices of whole systems
        divided by their chips, for a system; where these are not recorded, another kind, as the assumptions say.

    Returns
    -------
    Price
        USD. Its ``date`` says which quotation was used.

    Raises
    ------
    ArgumentError
        If no price is recorded for the device, the kind or the year.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> price = purchase_price(Hardware.Cloud.H100)
    >>> print(price.amount, "from", *price.range, "in", price.date[:4])
    27000 USD from 20000 USD 31250 USD in 2025
    >>> print(purchase_price(Hardware.Cloud.H100, 2023).amount)
    35000 USD
    """
    device, chips = device_and_chips("purchase_price", machine)
    known = [quotation for quotation in purchases() if quotation.subject == device.id]
    recorded = _in_device_file(device)
    if recorded is not None:
        known.append(recorded)
    if not known:
        raise _unrecorded("purchase_price", "purchase price", device, 'Q_(30_000, "USD")', "price")
    is_system = not isinstance(machine, Device)
    tiers: list[tuple[str, ...]] = [("list", "paid"), ("system",), ("estimate",)]
    if is_system:
        tiers = [("system",), ("list", "paid"), ("estimate",)]
    if kind is not None:
        checked_choice("purchase_price", "kind", kind, get_args(PriceKind))
        tiers = [(kind,)]
    for tier in tiers:
        fitting = [quotation for quotation in known if quotation.kind in tier]
        if fitting:
            break
    else:
        have = ", ".join(dict.fromkeys(quotation.kind for quotation in known))
        raise ArgumentError(
            f"purchase_price(): `kind` of {device.id} is recorded as {have}, got {kind!r}. Write e.g. "
            f"kind={known[0].kind!r}"
        )
    quotations = newest_quotations("purchase_price", device.id, fitting, year)
    words = {
        "system": "price of a server over its chips: host, network and margin are in it",
        "estimate": "estimated cost: the chip is not sold",
    }
    assumptions = [words[each] for each in dict.fromkeys(quotation.kind for quotation in quotations) if each in words]
    if is_system and quotations[0].kind in ("list", "paid"):
        assumptions.append("price of the chips alone, without their hosts and network")
    return _price("purchase price", machine.name, quotations, chips, tuple(assumptions))


def _in_device_file(device: Device) -> Quotation | None:
    """Return the price in the file of a device, dated by its source; None if there is none."""
    machine = view(device)
    fact = machine.fact_of("price")
    if fact is None:
        return None
    with unrecorded():  # it is read again if it is the one that is used
        price = machine.quantity("price")
    return Quotation(device.id, "list", "", fact.date, price, fact.meaning)


def _of_provider(device: Device, provider: str, known: list[Quotation]) -> list[Quotation]:
    """Return the quotations of a provider, whatever the case of its name."""
    everybody = {quotation.provider for quotation in rents()}
    fitting = [each for each in known if isinstance(provider, str) and each.provider.lower() == provider.lower()]
    if fitting:
        return fitting
    here = ", ".join(sorted({quotation.provider for quotation in known}))
    raise UnknownNameError(
        f"rent(): `provider` of {device.id} must be one of {here}, got {short(provider)}."
        f"{did_you_mean(provider, everybody)}"
    )


def newest_quotations(
    where: str, subject: str, known: Iterable[Quotation], year: int | None, *, by_date: bool = False
) -> tuple[Quotation, ...]:
    """Return the quotations of the newest year (or date) not after ``year``, from the cheapest to the dearest."""
    dated = sorted(known, key=lambda quotation: quotation.date)
    if year is not None:
        until = checked_count(where, "year", year)
        if dated[0].year > until:
            raise UnrecordedError(
                f"{where}(): `year` must not be before {dated[0].year}, the first that is recorded for {subject}, "
                f"got {until}. Write e.g. year={dated[0].year}"
            )
        dated = [quotation for quotation in dated if quotation.year <= until]
    newest = dated[-1]
    same = [each for each in dated if (each.date == newest.date if by_date else each.year == newest.year)]
    return tuple(sorted(same, key=lambda quotation: quotation.value.magnitude))


def _price(
    what: str, subject: str, quotations: tuple[Quotation, ...], chips: int, assumptions: tuple[str, ...] = ()
) -> Price:
    """Return the median of quotations, which are sorted by value, times the number of chips."""
    middle = len(quotations) // 2
    used = quotations[middle : middle + 1] if len(quotations) % 2 else quotations[middle - 1 : middle + 1]
    each = read(used[0].value) if len(used) == 1 else (read(used[0].value) + read(used[1].value)) / 2
    with comparing():
        low, high = read(quotations[0].value), read(quotations[-1].value)
    amount, low, high = (each, low, high) if chips == 1 else (each * chips, low * chips, high * chips)
    return Price(what, subject, amount, low, high, each, chips, quotations, used, assumptions)


def _unrecorded(where: str, what: str, device: Device, example: str, argument: str = "rent") -> UnrecordedError:
    """Return the error for a device whose price is not recorded."""
    return UnrecordedError(
        f"{where}(): no {what} of {device.name} is recorded. Give your own to what uses it, e.g. {argument}={example}"
    )
