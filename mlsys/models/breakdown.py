"""Answer of models of money and of emissions: a total, its range, and the parts that sum to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsys.frozen import FrozenDict
from mlsys.models.record import VERSION, amounts, facts_of, plain_amount
from mlsys.provenance import Fact
from mlsys.units import Quantity


@dataclass(frozen=True)
class Breakdown:
    """A total with its range and its parts.

    Attributes
    ----------
    model
        Name of the function that returned it.
    subject
        What it is the total of, in words.
    total
        Money, emissions, or either per hour or per million tokens.
    low, high
        Ends of its range: the total at the lowest and at the highest of the published values that enter it.
    parts
        Quantities by cause; they sum to ``total``.
    figures
        Further quantities worth reporting.
    assumptions
        What the model takes for granted, in words.
    """

    model: str
    subject: str
    total: Quantity
    low: Quantity
    high: Quantity
    parts: FrozenDict[str, Quantity]
    figures: FrozenDict[str, Quantity]
    assumptions: tuple[str, ...]

    @property
    def range(self) -> tuple[Quantity, Quantity]:
        """Low and high end of the total."""
        return self.low, self.high

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the total, its range and its parts depend on, without duplicates."""
        return facts_of(self.total, self.parts, self.figures, self.low, self.high)

    def record(self) -> dict[str, Any]:
        """Return the answer as plain data, for JSON: numbers with their units, and the names of the facts.

        Examples
        --------
        >>> from mlsys.models.cost import cost_of_run
        >>> from mlsys.units import Q_
        >>> cost_of_run(Q_(1000, "hour"), rent=Q_(2, "USD/hour")).record()["total"]
        {'value': 2000.0, 'unit': 'USD'}
        """
        return {
            "record": VERSION,
            "model": self.model,
            "subject": self.subject,
            "total": plain_amount(self.total),
            "low": plain_amount(self.low),
            "high": plain_amount(self.high),
            "parts": amounts(self.parts),
            "figures": amounts(self.figures),
            "assumptions": list(self.assumptions),
            "facts": [fact.name for fact in self.facts],
        }

    def explain(self) -> str:
        """Return the answer in sentences and a small table."""
        ends = "" if self.low.m == self.high.m else f" ({shown(self.low)} to {shown(self.high)})"
        lines = [f"{self.subject}: {shown(self.total)}{ends}", "Parts:"]
        for name, part in self.parts.items():
            share = (part / self.total).m_as("") if self.total.magnitude else 0.0
            lines.append(f"  {name:<22} {shown(part):>18}  {share:6.1%}")
        if self.figures:
            lines.append("Figures:")
            lines += [f"  {name:<22} {shown(figure):>18}" for name, figure in self.figures.items()]
        lines.append("Assumptions:")
        lines += [f"  - {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)


def shown(quantity: Quantity) -> str:
    """Return a quantity of money, energy or emissions as people write it: money with commas, the rest compact.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> shown(Q_(61_680_000, "USD")), shown(Q_(0.816, "USD/Mtoken")), shown(Q_(22_613, "gCO2e"))
    ('61,680,000 USD', '0.816 USD/Mtoken', '22.61 kgCO2e')
    """
    if quantity.is_compatible_with("USD") and abs(quantity.m_as("USD")) >= 1000:
        return f"{quantity.m_as('USD'):,.0f} USD"
    for unit, larger in (("gCO2e", ("tCO2e", "kgCO2e")), ("Wh", ("GWh", "MWh", "kWh"))):
        if quantity.is_compatible_with(unit):
            fits = next((each for each in larger if abs(quantity.m_as(each)) >= 1), unit)
            return f"{quantity.to(fits):.4g~P}"
    return f"{quantity:.4g~P}"
