"""Latency objectives of a service, such as ``"TTFT<1 s, TPOT<50 ms"``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlsys.amounts import amount
from mlsys.errors import ArgumentError, did_you_mean
from mlsys.faults import short

_NAMES = ("TTFT", "TPOT", "E2E")
_PART = re.compile(r"\s*([A-Za-z0-9]+)\s*<=?\s*(.+?)\s*")
_EXAMPLE = "Write e.g. 'TTFT<1 s, TPOT<50 ms'"


@dataclass(frozen=True)
class Objectives:
    """Latency that each request must meet to count as good; None where nothing is asked.

    Attributes
    ----------
    ttft, tpot, e2e
        Seconds to the first token, for each token after it, and from arrival to the last token.

    Examples
    --------
    >>> Objectives.parse("TTFT<1 s, TPOT<50 ms")
    Objectives(ttft=1.0, tpot=0.05, e2e=None)
    """

    ttft: float | None = None
    tpot: float | None = None
    e2e: float | None = None

    @classmethod
    def parse(cls, text: str) -> Objectives:
        """Return the objectives that a text states, with commas between them.

        Raises
        ------
        ArgumentError
            If a part is none, is given twice, or is not above zero.
        """
        if not isinstance(text, str) or not text.strip():
            raise ArgumentError(f"`slo` must name latencies to meet, got {short(text)}. {_EXAMPLE}")
        found: dict[str, float] = {}
        for part in text.split(","):
            match = _PART.fullmatch(part)
            if match is None:
                raise ArgumentError(f"`slo`: {short(part.strip())} is no upper limit of a latency. {_EXAMPLE}")
            name, value = match.groups()
            if name.upper() not in _NAMES:
                raise ArgumentError(
                    f"`slo`: no latency is called {short(name)}. Known: {', '.join(_NAMES)}."
                    f"{did_you_mean(name, _NAMES)}"
                )
            try:
                seconds = float(amount(value, "s").m_as("s"))
            except ValueError as error:
                raise ArgumentError(f"`slo`: {name}: {error}") from error
            if not seconds > 0:
                raise ArgumentError(f"`slo`: {name} must be above zero, got {value}")
            if name.lower() in found:
                raise ArgumentError(f"`slo`: {name} is given twice. Give it once")
            found[name.lower()] = seconds
        return cls(**found)

    def __str__(self) -> str:
        return ", ".join(f"{name.upper()} < {value:g} s" for name, value in vars(self).items() if value is not None)
