"""Two ways to make a fact: quote it, or compute it from other facts."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mlsys.inputs import shipped_text, yaml_of
from mlsys.provenance import Fact
from mlsys.units import Q_, Quantity


def fact(
    value: float,
    unit: str,
    *,
    name: str,
    meaning: str,
    source: str,
    date: str,
    uncertainty: float | None = None,
    confidence: str = "unverified",
) -> Quantity:
    """Return a quantity with its provenance.

    Parameters
    ----------
    value
        The number as its source prints it, in ``unit``.
    unit
        A unit of :data:`mlsys.units.ureg`.
    name
        Unique name of the fact.
    meaning
        What exactly was counted or measured.
    source
        The public document, precise enough to find the number again.
    date
        When the source was published, ``YYYY``, ``YYYY-MM`` or ``YYYY-MM-DD``.
    uncertainty
        In ``unit``; None where the source states none.
    confidence
        See :class:`mlsys.provenance.Fact`. Claim more than ``unverified`` only for
        what you have read.

    Returns
    -------
    Quantity
        ``value`` in ``unit``; its ``origin`` is a :class:`mlsys.provenance.Fact`.

    Raises
    ------
    ValueError
        If name, meaning, source or date is missing: no source, no constant.

    Examples
    --------
    >>> moon = fact(384_400, "km", name="MOON", meaning="mean distance to the Moon, centre to centre",
    ...             source="NASA Moon Fact Sheet", date="2021")
    >>> print(moon, "|", moon.source)
    384400 km | NASA Moon Fact Sheet
    >>> fact(384_400, "km", name="MOON", meaning="mean distance to the Moon", source="", date="2021")
    Traceback (most recent call last):
        ...
    ValueError: Fact 'MOON': `source` must say who published the value, got ''. Write e.g. source="NVIDIA A100 ..."
    """
    birth_certificate = Fact(name, meaning, source, date, uncertainty, confidence)
    quantity = Q_(value, unit)
    quantity._origin = birth_certificate
    return quantity


Entry = Mapping[str, Any]


def quoted(topic: str) -> Iterator[tuple[str, Entry]]:
    """Yield the facts that ``<topic>.yaml`` quotes: name and entry.

    Examples
    --------
    >>> name, entry = next(quoted("links"))
    >>> print(name, entry["value"])
    PCIE_GEN3_BW 15.75 GB/s
    """
    yield from yaml_of(shipped_text("mlsys._facts", f"{topic}.yaml"))["facts"].items()


def fact_of(name: str, entry: Entry) -> Quantity:
    """Return an entry of :func:`quoted` as a fact.

    Examples
    --------
    >>> print(fact_of(*next(quoted("links"))))
    15.75 GB/s
    """
    number, _, unit = entry["value"].partition(" ")
    described = {key: value for key, value in entry.items() if key != "value"}
    return fact(float(number) if "." in number else int(number), unit, name=name, **described)


@dataclass(frozen=True)
class Derived:
    """A fact that is computed from other facts, each time it is read.

    Attributes
    ----------
    name
        Unique name of the fact.
    meaning
        What the result stands for.
    unit
        Unit of the result.
    parts
        Names of the facts it is computed from.
    formula
        The sum in words, for the source.
    compute
        The sum itself, over the parts in their order.
    """

    name: str
    meaning: str
    unit: str
    parts: tuple[str, ...]
    formula: str
    compute: Callable[..., Quantity]

    def value(self, known: Mapping[str, Quantity]) -> Quantity:
        """Return the fact computed from ``known``, which maps names to quantities."""
        operands = [known[part] for part in self.parts]
        sources = dict.fromkeys(operand.source for operand in operands)
        exact = self.compute(*operands).to(self.unit)
        result = Q_(float(f"{exact.magnitude:.12g}"), self.unit)  # 0.9 + 3.7 is 4.6, not 4.6000000000000005
        result._origin = Fact(
            name=self.name,
            meaning=self.meaning,
            source=f"computed: {self.formula}; {'; '.join(sources)}",
            date=max(each.date for operand in operands for each in operand.facts),
            confidence="derived",
        )
        return result
