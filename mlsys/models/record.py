"""Results as plain data: what ``--json`` prints, and what another program may keep.

Every quantity is ``{"value": …, "unit": …}`` in the unit of :data:`UNITS`; ``record`` is the version
of this form, which grows when a name is taken away or changes its meaning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mlsys.provenance import Fact, origins_within
from mlsys.units import Quantity

__all__ = ["UNITS", "VERSION", "amounts", "facts_of", "plain_amount"]

VERSION = 1
# By dimension, the unit that a record states a quantity in.
UNITS = (
    "s", "byte", "FLOP", "MAC", "cycle", "J", "W", "USD", "FLOP/s", "byte/s", "FLOP/byte", "FLOP/W", "1/s", "",
)  # fmt: skip


def plain_amount(quantity: Quantity) -> dict[str, Any]:
    """Return a quantity as its number and its unit; None in the place of an infinite number.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> plain_amount(Q_(3, "ms")), plain_amount(Q_(312, "TFLOP/s"))
    ({'value': 0.003, 'unit': 's'}, {'value': 312000000000000.0, 'unit': 'FLOP/s'})
    """
    unit = next((unit for unit in UNITS if quantity.is_compatible_with(unit)), None)
    stated = quantity.to_base_units() if unit is None else quantity.to(unit)
    number = float(stated.magnitude)
    return {"value": number if math.isfinite(number) else None, "unit": f"{stated.units:~C}" if unit is None else unit}


def amounts(quantities: Mapping[str, Quantity]) -> dict[str, dict[str, Any]]:
    """Return named quantities as plain data."""
    return {name: plain_amount(quantity) for name, quantity in quantities.items()}


def facts_of(*values: Any) -> tuple[Fact, ...]:
    """Return the facts that values lean on, and what is inside them, each once.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> [fact.name for fact in facts_of({"tdp": Hardware.Cloud.A100.tdp})]
    ['A100_80GB/power/tdp']
    """
    found: dict[Fact, None] = {}
    for value in values:
        for origin in origins_within(value):
            found.update(dict.fromkeys(origin.facts()))
    return tuple(found)
