"""Records of a page: its claims, its tables and figures, its cells, and the facts behind them."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mlsys import provenance
from mlsys.claims.slicing import behind_call
from mlsys.provenance.shown import PageExhibit
from mlsys.units import Quantity

_DIGITS = 6  # significant digits in the claims table; prose shows fewer


@dataclass(frozen=True)
class Claim:
    """A named value with its formula and the facts behind it.

    Facts that are ``compared`` do not enter the formula: their limit was not the binding one, or they decided a fit.
    """

    name: str
    value: float | str
    unit: str
    text: str
    formula: str
    facts: tuple[str, ...]
    compared: tuple[str, ...] = ()

    @property
    def pinned(self) -> str:
        """The value as text, as the claims table prints it."""
        return self.value if isinstance(self.value, str) else f"{self.value:.{_DIGITS}g}"

    def record(self) -> dict[str, Any]:
        """Return the claim as plain data, for the ledger."""
        return {
            "name": self.name,
            "value": self.pinned,
            "unit": self.unit,
            "text": self.text,
            "formula": self.formula,
            "facts": list(self.facts),
            **({"compared": list(self.compared)} if self.compared else {}),
        }


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of a page, and the facts that it depends on."""

    name: str
    digest: Callable[[], str]
    facts: tuple[str, ...]
    compared: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the table or figure as plain data, for the ledger."""
        more = {"compared": list(self.compared)} if self.compared else {}
        return {"name": self.name, "digest": self.digest(), "facts": list(self.facts), **more}


@dataclass(frozen=True)
class Cell:
    """The names that a cell of a page assigns, and the facts that were read while it ran."""

    assigned: set[str]
    facts: provenance.Seen = field(default_factory=provenance.Seen)


@dataclass
class Page:
    """The claims of a page, its tables and figures, and every fact that was read while it ran."""

    name: str
    claims: dict[str, Claim] = field(default_factory=dict)
    facts: provenance.Seen = field(default_factory=provenance.Seen)
    exhibits: dict[str, Exhibit] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list, repr=False)

    def add(self, claim: Claim) -> None:
        """Add a claim; raise ValueError if the name is already claimed with another value."""
        before = self.claims.get(claim.name)
        if before is not None and (before.pinned, before.unit) != (claim.pinned, claim.unit):
            raise ValueError(
                f"claim(): {claim.name!r} is already claimed on page {self.name!r} as {before.text}, "
                f"now as {claim.text}. Give the second value a name of its own"
            )
        self.claims[claim.name] = claim

    def show(self, shown: PageExhibit) -> None:
        """Add a table or figure; a second one of the same name gets a number."""
        first = name = f"{shown.kind} {shown.name}"
        row = 1
        while name in self.exhibits:
            row += 1
            name = f"{first} ({row})"
        digest = functools.cache(shown.digest)  # called when the page is complete, possibly several times
        if not WITH_PROVENANCE.get():
            self.exhibits[name] = Exhibit(name, digest, ())
            return
        basis, names = behind_call(shown.frame)
        facts = dict.fromkeys((*shown.facts, *basis.facts))
        for value in sorted(names):  # strings and plain numbers have no origin: use the cell that assigned them last
            assigned_in = next((cell for cell in reversed(self.cells) if value in cell.assigned), None)
            facts |= dict.fromkeys(assigned_in.facts if assigned_in is not None else ())
        self.exhibits[name] = Exhibit(name, digest, tuple(facts), basis.compared)

    def compared(self) -> set[str]:
        """Return the facts that enter no formula of this page and were only compared.

        Claims take precedence over tables and figures, which are made of whole results and show a part of them.
        """
        claims, exhibits = self.claims.values(), self.exhibits.values()
        in_claims = {fact for each in claims for fact in each.facts if fact not in each.compared}
        in_exhibits = {fact for each in exhibits for fact in each.facts if fact not in each.compared}
        of_claims = {fact for each in claims for fact in each.compared}
        of_exhibits = {fact for each in exhibits for fact in each.compared}
        return (of_claims | (of_exhibits - in_exhibits) | self.facts.compared) - in_claims

    def shown_facts(self) -> dict[str, Quantity]:
        """Return the facts that the page itself reads, and those behind its claims, tables and figures.

        Models may read further facts, for results that the page does not show.
        """
        stated = {fact for claim in self.claims.values() for fact in claim.facts}
        stated |= {fact for shown in self.exhibits.values() for fact in shown.facts}
        return {name: quantity for name, quantity in self.facts.items() if name in stated | self.facts.direct}

    def looks(self) -> dict[str, str]:
        """Return a digest of each table and figure, by name."""
        return {name: exhibit.digest() for name, exhibit in self.exhibits.items()}

    def record(self) -> dict[str, Any]:
        """Return the page as plain data, for the ledger."""
        facts, compared = [], self.compared()
        for name, quantity in sorted(self.shown_facts().items()):
            fact: Any = quantity.origin
            facts.append(
                {
                    "name": name,
                    "value": f"{quantity.magnitude:.{_DIGITS}g}",
                    "unit": f"{quantity.units:~P}",
                    "meaning": fact.meaning,
                    "source": fact.source,
                    "date": fact.date,
                    "confidence": fact.confidence,
                    **({"compared": True} if name in compared else {}),
                }
            )
        return {
            "page": self.name,
            "claims": [claim.record() for claim in self.claims.values()],
            "exhibits": [exhibit.record() for exhibit in self.exhibits.values()],
            "facts": facts,
        }


WITH_PROVENANCE: ContextVar[bool] = ContextVar("with_provenance", default=True)
"""Whether a page records the facts that it depends on."""


@contextlib.contextmanager
def without_provenance() -> Iterator[None]:
    """Record only the values of a page's claims, tables and figures inside the block, not the facts behind them.

    For running a page again to see what changes.
    """
    token = WITH_PROVENANCE.set(False)
    try:
        yield
    finally:
        WITH_PROVENANCE.reset(token)
