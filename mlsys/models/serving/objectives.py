"""Latency objectives of a service, such as ``"TTFT<1 s, TPOT<50 ms"``."""

from __future__ import annotations

from dataclasses import dataclass

from mlsys.models.inference.limits import parsed_limits

_LATENCIES = {"TTFT": ("s", True), "TPOT": ("s", True), "E2E": ("s", True)}
_EXAMPLE = "Write e.g. 'TTFT<1 s, TPOT<50 ms'"


@dataclass(frozen=True)
class Objectives:
    """Latency that each request must meet to count as good; None without a limit.

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
            If a part is no limit, is given twice, or is not above zero.
        """
        return cls(**parsed_limits(text, "`slo`", _LATENCIES, _EXAMPLE))

    def __str__(self) -> str:
        return ", ".join(f"{name.upper()} < {value:g} s" for name, value in vars(self).items() if value is not None)
