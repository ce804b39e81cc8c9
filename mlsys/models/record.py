"""Records: results as plain data, as printed by ``--json`` and stored by other programs.

Every quantity is ``{"value": …, "unit": …}`` in the unit of :data:`UNITS`, or a plain number whose unit is listed under
``units`` by the number's name. ``record`` is the version of this format; it increases when a name is removed or changes
its meaning.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from mlsys.provenance import Fact, origin_of, origins_within
from mlsys.units import Quantity

VERSION = 1
# The unit of a record's quantities, by dimension.
UNITS = (
    "s", "byte", "FLOP", "MAC", "cycle", "J", "W", "USD", "gCO2e", "FLOP/s", "byte/s", "FLOP/byte", "FLOP/W", "1/s", "",
    "USD/hour", "USD/Mtoken", "USD/kWh", "gCO2e/hour", "gCO2e/Mtoken", "gCO2e/kWh", "kWh/Mtoken",
)  # fmt: skip
# Units of plain numbers, by full name or else by suffix.
_BY_NAME = {
    "bytes": "byte", "capacity": "byte", "offset": "byte", "alignment": "byte", "flops": "FLOP", "macs": "MAC",
    "params": "param", "seconds": "s", "joules": "J", "samples_per_second": "1/s", "percent": "%", "words": "word",
    "bound": "word", "compulsory": "word", "lb_smith": "word", "lb_safe": "word", "S": "word", "A": "word", "B": "word",
    "M": "", "N": "", "K": "",
}  # fmt: skip
_BY_ENDING = {
    "_bytes_per_second": "byte/s",
    "_flop_per_byte": "FLOP/byte", "flop_per_byte": "FLOP/byte", "_seconds": "s", "_bytes": "byte", "_flops": "FLOP",
    "flops_by_kind": "FLOP", "_cycles": "cycle", "_pct": "%", "_words": "word", "_reads": "word", "_writes": "word",
    "_sram_kb": "KiB", "_joules": "J", "_watts": "W",
}  # fmt: skip


def unit_of_name(name: str) -> str:
    """Return the unit of a plain number of this name; empty for shares, counts and non-numeric values.

    Examples
    --------
    >>> unit_of_name("estimate_seconds"), unit_of_name("product_flops"), unit_of_name("utilisation")
    ('s', 'FLOP', '')
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    return next((unit for ending, unit in _BY_ENDING.items() if name.endswith(ending)), "")


def with_units(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with its format version, and the unit of each plain number, at any depth, under ``units``.

    Examples
    --------
    >>> with_units({"model": "lenet5", "flops": 850, "kinds": [{"bytes": 4}]})["units"]
    {'flops': 'FLOP', 'bytes': 'byte'}
    """
    units = {name: unit_of_name(name) for name in _numbers_in(record) if unit_of_name(name)}
    return {"record": VERSION, **{name: value for name, value in record.items() if name != "units"}, "units": units}


def _numbers_in(value: Any) -> Iterator[str]:
    """Yield the names of plain numbers; quantities with a unit are skipped."""
    if isinstance(value, Mapping) and "unit" not in value:
        for name, entry in value.items():
            entries = (
                list(entry.values()) if isinstance(entry, Mapping) else entry if isinstance(entry, list) else [entry]
            )
            if any(isinstance(number, (int, float)) and not isinstance(number, bool) for number in entries):
                yield name
            yield from _numbers_in(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _numbers_in(entry)


def plain_amount(quantity: Quantity) -> dict[str, Any]:
    """Return a quantity as a number and a unit; an infinite number becomes None.

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
    """Return the facts that values and their parts depend on, without duplicates.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> [fact.name for fact in facts_of({"tdp": Hardware.Cloud.A100.tdp})]
    ['A100_80GB/power/tdp']
    """
    facts: dict[Fact, None] = {}
    for value in values:
        for origin in origins_within(value):
            facts.update(dict.fromkeys(origin.facts()))
    return tuple(facts)


def facts_behind(result: object, *values: Any) -> tuple[Fact, ...]:
    """Return the facts that the model of a result read, and those that values depend on, without duplicates.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.models import roofline
    >>> from mlsys.workloads import dense
    >>> result = roofline(Hardware.Cloud.A100, dense(1, 8, 8))
    >>> sorted(fact.name.split("/")[1] for fact in facts_behind(result, result.time))
    ['memory', 'peaks']
    """
    own = origin_of(result)
    return tuple(dict.fromkeys((*(own.facts() if own is not None else ()), *facts_of(*values))))
