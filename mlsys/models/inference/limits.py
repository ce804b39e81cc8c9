"""Limits on an inference, such as ``"TPOT<30 ms, TTFT<1 s"``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlsys.amounts import amount, parsed_number
from mlsys.errors import ArgumentError, did_you_mean
from mlsys.faults import short
from mlsys.units import Quantity

# By name, the unit of the limit and whether a value must stay below it.
_LIMITS = {
    "TTFT": ("s", True),
    "TPOT": ("s", True),
    "cost": ("USD", True),
    "chips": ("", True),
    "rate": ("1/s", False),
}
_PART = re.compile(r"\s*([A-Za-z]+)\s*(<=|>=|<|>|=)\s*(.+?)\s*")
_APART = re.compile(r"^([0-9.eE+-]*[0-9.])([A-Za-zµ].*)$")  # a unit that stands right behind its number
_EXAMPLE = "Write e.g. 'TPOT<30 ms, TTFT<1 s'"


@dataclass(frozen=True)
class Limits:
    """What an inference must meet; None where nothing is asked.

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
    def parse(cls, text: str) -> Limits:
        """Return the limits that a text states, with commas between them.

        Parameters
        ----------
        text
            ``TTFT``, ``TPOT`` (s), ``cost`` (USD for a million tokens) and ``chips`` with ``<``, and ``rate`` (tokens
            per second of each sequence, 1/s) with ``>``.

        Raises
        ------
        ArgumentError
            If a part is no limit, stands there twice, or is not above zero.
        """
        if not isinstance(text, str) or not text.strip():
            raise ArgumentError(f"limits must name what is to be met, got {short(text)}. {_EXAMPLE}")
        found: dict[str, float] = {}
        for part in text.split(","):
            match = _PART.fullmatch(part)
            if match is None:
                raise ArgumentError(f"{short(part.strip())} is no limit. {_EXAMPLE}")
            name, sign, value = match.groups()
            known = next((each for each in _LIMITS if each.lower() == name.lower()), None)
            if known is None:
                raise ArgumentError(
                    f"no limit is called {short(name)}. Known: {', '.join(_LIMITS)}.{did_you_mean(name, _LIMITS)}"
                )
            unit, below = _LIMITS[known]
            if sign[0] != ("<" if below else ">"):
                raise ArgumentError(f"{known} takes {'<' if below else '>'}, got {short(part.strip())}")
            try:
                stated = request_rate(value) if unit == "1/s" else amount(_APART.sub(r"\1 \2", value), unit)
                number = float(stated.m_as(unit))
            except ValueError as error:
                raise ArgumentError(f"{known}: {error}") from error
            if not number > 0:
                raise ArgumentError(f"{known} must be above zero, got {value}")
            if known.lower() in found:
                raise ArgumentError(f"{known} is given twice. Give it once")
            found[known.lower()] = number
        return cls(**found)

    @property
    def step(self) -> float | None:
        """Most seconds between tokens, by ``tpot`` and ``rate``."""
        both = [each for each in (self.tpot, None if self.rate is None else 1 / self.rate) if each is not None]
        return min(both, default=None)


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
