"""Tornado of assumptions: how far each of them, changed alone from its low to its high value, moves an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.faults import short
from mlsys.models.breakdown import Breakdown, shown
from mlsys.models.record import VERSION, plain_amount
from mlsys.tables import Table
from mlsys.units import Q_, Quantity

Answer = Breakdown | Quantity | float
"""What a model may return: a breakdown, of which the total counts, or a quantity, or a number."""


@dataclass(frozen=True)
class Swing:
    """Effect of one assumption.

    Attributes
    ----------
    name
        Name of the assumption.
    low, base, high
        Its values.
    at_low, at_high
        Answers at its low and at its high value, all others at their base.
    """

    name: str
    low: Any
    base: Any
    high: Any
    at_low: Quantity
    at_high: Quantity

    @property
    def swing(self) -> Quantity:
        """Distance between the two answers, never negative."""
        distance: Quantity = abs(self.at_high - self.at_low)
        return distance


@dataclass(frozen=True)
class Tornado:
    """Effects of assumptions on one answer, the largest first.

    Attributes
    ----------
    base
        Answer with every assumption at its base value.
    swings
        One for each assumption.
    """

    base: Quantity
    swings: tuple[Swing, ...]

    def record(self) -> dict[str, Any]:
        """Return the effects as plain data."""
        return {
            "record": VERSION,
            "model": "tornado",
            "base": plain_amount(self.base),
            "swings": [
                {
                    "name": each.name,
                    "low": str(each.low),
                    "high": str(each.high),
                    "at_low": plain_amount(each.at_low),
                    "at_high": plain_amount(each.at_high),
                    "swing": plain_amount(each.swing),
                }
                for each in self.swings
            ],
        }

    def table(self) -> Table:
        """Return a table with a row for each assumption."""
        rows = [
            (each.name, str(each.low), str(each.high), shown(each.at_low), shown(each.at_high), shown(each.swing))
            for each in self.swings
        ]
        return Table(
            f"{shown(self.base)} at the base", ("assumption", "low", "high", "at low", "at high", "swing"), rows
        )

    def explain(self) -> str:
        """Return the table as text."""
        return str(self.table())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.table()._repr_mimebundle_(include, exclude)


def tornado(model: Callable[..., Answer], inputs: Mapping[str, tuple[Any, Any, Any]]) -> Tornado:
    """Return how far each assumption moves the answer of a model, one at a time.

    Effects are exact for each assumption alone; together, assumptions may do more or less than the sum.

    Parameters
    ----------
    model
        Function of the inputs by keyword: ``functools.partial`` or a lambda holds what does not vary.
    inputs
        For each argument its low, base and high value.

    Returns
    -------
    Tornado
        Sorted by swing, the largest first; those of the same swing stay in the order given.

    Raises
    ------
    ArgumentError
        If there are no inputs, or one does not have three values.

    References
    ----------
    T. G. Eschenbach, Spiderplots versus Tornado Diagrams for Sensitivity Analysis, Interfaces 22(6), 1992.

    Examples
    --------
    >>> from mlsys.formulas import operational_carbon
    >>> from mlsys.units import Q_
    >>> year = tornado(
    ...     operational_carbon,
    ...     {
    ...         "energy": (Q_(80, "MWh"), Q_(100, "MWh"), Q_(120, "MWh")),
    ...         "pue": (1.1, 1.2, 1.6),
    ...         "grid_intensity": (Q_(40, "gCO2e/kWh"), Q_(400, "gCO2e/kWh"), Q_(700, "gCO2e/kWh")),
    ...     },
    ... )
    >>> [(each.name, f"{each.swing.to('tCO2e'):.1f}") for each in year.swings]
    [('grid_intensity', '79.2 tCO2e'), ('pue', '20.0 tCO2e'), ('energy', '19.2 tCO2e')]
    """
    if not isinstance(inputs, Mapping) or not inputs:
        raise ArgumentError(
            f"tornado(): `inputs` must map at least one argument to its low, base and high value, got {short(inputs)}. "
            "Write e.g. inputs={'pue': (1.1, 1.2, 1.6)}"
        )
    for name, values in inputs.items():
        if not isinstance(values, (tuple, list)) or len(values) != 3:
            raise ArgumentError(
                f"tornado(): `inputs` of {name!r} must be its low, base and high value, got {short(values)}. "
                f"Write e.g. inputs={{{name!r}: (1.1, 1.2, 1.6)}}"
            )
    base = {name: values[1] for name, values in inputs.items()}
    swings = [
        Swing(name, low, middle, high, _total(model(**{**base, name: low})), _total(model(**{**base, name: high})))
        for name, (low, middle, high) in inputs.items()
    ]
    return Tornado(_total(model(**base)), tuple(sorted(swings, key=lambda each: -float(each.swing.to_base_units().m))))


def _total(answer: Answer) -> Quantity:
    """Return the quantity that an answer stands for."""
    if isinstance(answer, Breakdown):
        return answer.total
    return answer if isinstance(answer, Quantity) else Q_(float(answer), "")
