"""Fields with a source in YAML files of devices and systems: their places, the sources they name, and their facts."""

from collections.abc import Callable, Iterator
from typing import Any

from mlsys.amounts import amount
from mlsys.hardware.document import Place
from mlsys.provenance import Fact
from mlsys.units import Quantity


def checked_value(text: Any, unit: str) -> bool:
    """Return True if a text is a quantity of this unit; raise ``ValueError`` otherwise."""
    if isinstance(text, str):
        amount(text, unit)
    return True


def quantity_of(text: str) -> Quantity:
    """Return the quantity that a text states in its own unit, a count where there is none.

    Examples
    --------
    >>> print(quantity_of("450 GB/s"), quantity_of("8"))
    450 GB/s 8 count
    """
    return amount(text, text.strip().partition(" ")[2].strip() or "count")


def fields_with_source(data: Any, keys: Place = ()) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield every mapping that names a source, with its location; the table of sources is skipped."""
    if isinstance(data, dict) and keys[:1] != ("sources",):
        if isinstance(data.get("source"), str):
            yield keys, data
        else:
            for key, value in data.items():
                yield from fields_with_source(value, (*keys, key))
    elif isinstance(data, list):
        for at, value in enumerate(data):
            yield from fields_with_source(value, (*keys, at))


def unknown_source_faults(data: Any, sources: dict[str, Any]) -> list[tuple[Place, str]]:
    """Return a fault for each field that names a source which the file does not list."""
    known = ", ".join(sources)
    return [
        ((*where, "source"), f"{field['source']!r} is not among this file's sources: {known}")
        for where, field in fields_with_source(data)
        if field["source"] not in sources
    ]


def recorded(
    data: dict[str, Any],
    keys: tuple[str, ...],
    meaning: str,
    owner: str = "",
    reader: Callable[[str], Quantity | None] = quantity_of,
) -> Quantity | None:
    """Return the quantity of a field with its fact; None if the file does not have the field.

    Parameters
    ----------
    data
        Content of a valid file.
    keys
        Path of the field; an index of a list is a string of digits.
    meaning
        Meaning of the field, where it does not state its own.
    owner
        Description of the file's origin if it is not part of the package; it is added to the source.
    reader
        Function that returns the quantity of the text of the field, or None if it has none.
    """
    field: Any = data
    for key in keys:
        if isinstance(field, list):
            field = field[int(key)]
            continue
        field = (field or {}).get(key)
    if field is None:
        return None
    quantity = reader(field["value"])
    if quantity is None:
        return None
    source = data["sources"][field["source"]]
    quantity._origin = Fact(
        name="/".join((data["id"], *keys)),
        meaning=field.get("meaning", meaning) + (f" ({field['note']})" if "note" in field else ""),
        source=f"{source['title']} [{owner}]" if owner else source["title"],
        date=source["date"],
        uncertainty=field.get("uncertainty"),
        confidence=field.get("confidence", source["confidence"]),
    )
    return quantity
