"""Limits on an inference, such as ``"TPOT<30 ms, TTFT<1 s"``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mlsys.amounts import amount, parsed_number
from mlsys.errors import ArgumentError, did_you_mean
from mlsys.faults import short
from mlsys.units import Quantity

Known = Mapping[str, tuple[str, bool]]
"""By name of a limit, its unit and whether a value must stay below it."""
_LIMITS: Known = {
    "TTFT": ("s", True),
    "TPOT": ("s", True),
    "cost": ("USD", True),
    "chips": ("", True),
    "rate": ("1/s", False),
}
_PART = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*)\s*(<=|>=|<|>|=)\s*(.+?)\s*")
_APART = re.compile(r"^([0-9.eE+-]*[0-9.])([A-Za-zµ].*)$")  # a unit that stands right behind its number
_EXAMPLE = "Write e.g. 'TPOT<30 ms, TTFT<1 s'"


@dataclass(frozen=True)
class Limits:
    """Limits that an inference must meet; None without a limit.

    Attributes
    ----------
    ttft, tpot
        Seconds to the first token of a prompt, and between tokens.
    cost
        USD for a million tokens.
    chips
        Chips in all.
    rate
        Tokens per second that each sequence gets at least.

    Examples
    --------
    >>> Limits.parse("TPOT<30 ms, TTFT<1 s")
    Limits(ttft=1.0, tpot=0.03, cost=None, chips=None, rate=None)
    """

    ttft: float | None = None
    tpot: float | None = None
    cost: float | None = None
    chips: float | None = None
    rate: float | None = None

    @classmethod
    def parse(cls, text: str, where: str = "`limits`") -> Limits:
        """Return the limits that a text states, with commas between them.

        Parameters
        ----------
        text
            ``TTFT``, ``TPOT`` (s), ``cost`` (USD for a million tokens) and ``chips`` with ``<``, and ``rate`` (tokens
            per second of each sequence, 1/s) with ``>``.
        where
            How an error writes the name of the argument.

        Raises
        ------
        ArgumentError
            If a part is no limit, is given twice, or is not above zero.
        """
        return cls(**parsed_limits(text, where, _LIMITS, _EXAMPLE))

    @property
    def step(self) -> float | None:
        """Most seconds between tokens, by ``tpot`` and ``rate``."""
        both = [each for each in (self.tpot, None if self.rate is None else 1 / self.rate) if each is not None]
        return min(both, default=None)


def parsed_limits(text: str, where: str, known: Known, example: str) -> dict[str, float]:
    """Return the limits that a text states, with commas between them, by lower-case name and in their unit.

    Parameters
    ----------
    text
        The limits, such as ``"TPOT<30 ms, TTFT<1 s"``.
    where
        How an error writes the name of the argument.
    known
        By name, the unit of the limit and whether a value must stay below it.
    example
        What an error asks for.

    Raises
    ------
    ArgumentError
        If a part is no limit, is given twice, or is not above zero.

    Examples
    --------
    >>> parsed_limits("E2E<2 s", "`slo`", {"E2E": ("s", True)}, "Write e.g. 'E2E<5 s'")
    {'e2e': 2.0}
    """
    if not isinstance(text, str) or not text.strip():
        raise ArgumentError(f"{where} must name what is to be met, got {short(text)}. {example}")
    found: dict[str, float] = {}
    for part in _BETWEEN.split(text):
        match = _PART.fullmatch(part)
        if match is None:
            raise ArgumentError(f"{where}: {short(part.strip())} is no limit. {example}")
        name, sign, value = match.groups()
        limit = next((each for each in known if each.lower() == name.lower()), None)
        if limit is None:
            hint = did_you_mean(name, known)
            raise ArgumentError(f"{where}: no limit is called {short(name)}. Known: {', '.join(known)}.{hint}")
        unit, below = known[limit]
        if sign[0] != ("<" if below else ">"):
            raise ArgumentError(f"{where}: {limit} takes {'<' if below else '>'}, got {short(part.strip())}")
        try:
            stated = request_rate(value) if unit == "1/s" else amount(_APART.sub(r"\1 \2", value), unit)
            number = float(stated.m_as(unit))
        except ValueError as error:
            raise ArgumentError(f"{where}: {limit}: {error}") from error
        if not number > 0:
            raise ArgumentError(f"{where}: {limit} must be above zero, got {value}")
        if limit.lower() in found:
            raise ArgumentError(f"{where}: {limit} is given twice. Give it once")
        found[limit.lower()] = number
    return found


_BETWEEN = re.compile(r",(?!\s*\d)")  # a limit begins with its name: a comma before a digit is within a number
_RATE = re.compile(r"\s*(\S+?)\s*(?:requests?|req|1)?\s*/\s*([A-Za-z]+)\s*")


def request_rate(text: str) -> Quantity:
    """Return a rate of requests, such as ``"5/s"`` or ``"120 requests/min"``.

    Raises
    ------
    ArgumentError
        If it is none.

    Examples
    --------
    >>> print(request_rate("5/s"), request_rate("120 requests/min"))
    5 1/s 2 1/s
    """
    match = _RATE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ArgumentError(f"a rate is written as '5/s', got {short(text)}")
    try:
        number, each = parsed_number(match.group(1)), amount(f"1 {match.group(2)}", "s")
    except ValueError as error:
        raise ArgumentError(f"a rate is written as '5/s', got {short(text)}: {error}") from error
    rate: Quantity = (number / each).to("1/s")
    return rate
