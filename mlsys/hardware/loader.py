"""From a YAML file to a device, or one error that lists every fault.

:mod:`mlsys.hardware.document` reads the text, ``jsonschema`` checks the shape, and
the units are ours.
"""

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mlsys.amounts import amount
from mlsys.errors import ArgumentError, DeviceFileError, did_you_mean
from mlsys.faults import json_schema, schema_file
from mlsys.frozen import FrozenDict
from mlsys.hardware.consistency import check_date, check_whole, contradictions
from mlsys.hardware.device import Device, Link, MemoryLevel
from mlsys.hardware.document import MAX_BYTES, Document, Place
from mlsys.hardware.parts import OperandPaths, OperatingPoint
from mlsys.hardware.technology import node_of, technology_of
from mlsys.precision import PRECISIONS
from mlsys.provenance import Fact
from mlsys.units import Q_, Quantity, ureg

__all__ = ["MAX_BYTES", "load_device"]


def load_device(path: str | Path, validate: bool = True, owner: str = "") -> Device:
    """Read one device file.

    Parameters
    ----------
    path
        A YAML file as described by ``schema.yaml``.
    validate
        Check the file against the schema first. The catalogue leaves it out for the
        files of the package, which the tests have checked, to start quickly.
    owner
        Whose file it is, where it is not the package's own; every source then says so,
        and with it every claim that leans on the device.

    Raises
    ------
    DeviceFileError
        If the file is unreadable or has faults; all are listed, with file and line.

    Examples
    --------
    >>> load_device("no_such_device.yaml")
    Traceback (most recent call last):
        ...
    mlsys.errors.DeviceFileError: no_such_device.yaml: cannot be read (No such file or directory)
    """
    path = Path(path)
    document = Document(path)
    if not validate and not document.faults:
        try:
            return _build(document.data, owner)
        except (KeyError, TypeError, AttributeError, ValueError):
            pass  # the file is at fault: say where, below
    problems = [*_schema_faults(document.data), *_reference_faults(document.data)]
    faults = document.faults + [document.located(*fault) for fault in problems]
    if faults:
        raise DeviceFileError("\n".join(faults))
    try:
        return _build(document.data, owner)
    except ValueError as error:
        raise DeviceFileError(f"{path}: {error}") from None


@functools.cache
def _validator() -> Any:
    schema = schema_file("mlsys.hardware")
    checker = json_schema().FormatChecker(formats=())
    for field in schema["$defs"]["fields"].values():
        unit = field["properties"]["value"]["format"]
        checker.checks(unit, raises=ValueError)(functools.partial(_check_value, unit=unit))
    checker.checks("date of publication", raises=ValueError)(check_date)
    checker.checks("whole count", raises=ValueError)(check_whole)
    return json_schema().Draft202012Validator(schema, format_checker=checker)


def _check_value(text: Any, unit: str) -> bool:
    if isinstance(text, str):
        amount(text, unit)
    return True


def _schema_faults(data: Any) -> list[tuple[Place, str]]:
    if not isinstance(data, dict):
        return [((), "a device file is a mapping of keys to values")]
    errors = sorted(_validator().iter_errors(data), key=lambda error: [str(part) for part in error.absolute_path])
    return [fault for error in errors for fault in _told(error)]


_REST = re.compile(r"\d+ [^\W\d]")  # of an amount with a decimal comma


def _of_a_comma(key: object) -> str:
    """Return the hint for the rest of a decimal comma: within braces YAML ends a value there."""
    return " Write a decimal point: in braces a comma ends a value." if _REST.match(str(key)) else ""


def _told(error: Any) -> list[tuple[Place, str]]:
    """Return a fault of the schema in words, at the line where it stands."""
    where = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = error.schema["properties"]
        return [
            (
                (*where, key),
                f"unknown key {key!r}.{_of_a_comma(key)}{did_you_mean(key, known)} Known: {', '.join(known)}",
            )
            for key in error.instance
            if key not in known
        ]
    if "propertyNames" in error.absolute_schema_path:
        key, known = error.instance, error.schema["enum"]
        return [((*where, key), f"unknown key {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}")]
    return [(where, str(error.cause or error.message))]


def _reference_faults(data: Any) -> list[tuple[Place, str]]:
    """Find what names something that the file does not have; what is of the wrong shape is passed over."""
    sources, peaks, memory, chip = (_mapping(data, key) for key in ("sources", "peaks", "memory", "chip"))
    faults: list[tuple[Place, str]] = []
    for where, field in _fields(data, ()):
        if sources and field["source"] not in sources:
            known = ", ".join(sources)
            faults.append(((*where, "source"), f"{field['source']!r} is not among this file's sources: {known}"))
    headline = data.get("headline") if isinstance(data, dict) else None
    published = isinstance(data, dict) and data.get("profile") == "published model"
    if peaks and isinstance(headline, str) and headline in PRECISIONS and headline not in peaks:
        faults.append((("headline",), f"{headline!r} has no peak in this file"))
    main = data.get("main_memory", next(iter(memory))) if memory else None
    if memory and isinstance(main, str) and main not in memory:
        faults.append((("main_memory",), f"{main!r} is not a memory level of this file"))
    elif memory and not published and "bandwidth" not in (_mapping(memory, main) or {"bandwidth": None}):
        faults.append((("memory", main), "the main memory needs a bandwidth"))
    for name in memory:
        level = _mapping(memory, name)
        if level.get("scope") == "unit" and "instances" not in level and "units" not in chip:
            faults.append((("memory", name), "a level by unit needs its `instances`, or `units` of the chip"))
        if level and "capacity" not in level and (name != main or not level.get("note")):
            why = "the main memory without one needs a `note`, such as 'the board decides its size'"
            faults.append((("memory", name), f"'capacity' is a required property; {why}"))
        faults += _unread(("memory", name, "kind"), level.get("kind"), technology_of)
    for operand, path in _mapping(_mapping(data, "operands"), "paths").items():
        for name in path if isinstance(path, list) else ():
            if name not in memory:
                faults.append((("operands", "paths", operand), f"{name!r} is not a memory level of this file"))
    node = _mapping(chip, "node").get("value")
    faults += _unread(("chip", "node", "value"), node, node_of)
    return [*faults, *_assumed_faults(data, sources), *contradictions(data)]


def _unread(keys: Place, text: Any, reader: Callable[[str], Any]) -> list[tuple[Place, str]]:
    """Find words that the package has no type for."""
    try:
        known = not isinstance(text, str) or not text or reader(text) is not None
    except ArgumentError as error:
        return [(keys, str(error))]
    return [] if known else [(keys, f"{text!r} names no process, such as 'TSMC 7 nm', 'N5P', '4NP' or 'Intel 7'")]


def _mapping(data: Any, key: Any) -> dict[str, Any]:
    """Return the mapping under ``key``, or an empty one where there is none."""
    mapping = data.get(key) if isinstance(data, dict) and isinstance(key, str) else None
    return mapping if isinstance(mapping, dict) else {}


# What makers seldom publish may be a named assumption in a real device, too: a source says it, a range comes along.
_MAY_BE_ASSUMED = (("power", "active"), ("power", "idle"), ("power", "points"), ("price",), ("links",))


def _assumed_faults(data: Any, sources: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    """Find values assumed in a real device without a range or where none may be, or quoted in a made-up one."""
    teaching = isinstance(data, dict) and data.get("profile") == "teaching"
    for where, field in _fields(data, ()):
        source = _mapping(sources, field["source"])
        assumed = field.get("confidence", source.get("confidence")) == "assumed"
        if assumed and not teaching:
            if not any(where[: len(start)] == start for start in _MAY_BE_ASSUMED):
                yield (
                    where,
                    "a value may be assumed in a teaching profile only, but for power, price and links: "
                    "say `profile: teaching`, or find a source",
                )
            elif not field.get("uncertainty"):
                yield (
                    where,
                    "what a real device assumes needs its range: add `uncertainty: 0.1`, in the unit of the value",
                )
        if teaching and source and not assumed:
            yield where, "a value of a teaching profile is assumed: give it `confidence: assumed`"


def _fields(data: Any, keys: Place) -> Iterator[tuple[Place, dict[str, Any]]]:
    if isinstance(data, dict) and keys[:1] != ("sources",):
        if isinstance(data.get("source"), str):
            yield keys, data
        else:
            for key, value in data.items():
                yield from _fields(value, (*keys, key))
    elif isinstance(data, list):
        for at, value in enumerate(data):
            yield from _fields(value, (*keys, at))


def _build(data: dict[str, Any], owner: str) -> Device:
    def fact(*keys: str, meaning: str, amount: Callable[[str], Quantity | None] = _amount) -> Quantity | None:
        field: Any = data
        for key in keys:
            if isinstance(field, list):
                field = field[int(key)]
                continue
            field = (field or {}).get(key)
        if field is None:
            return None
        source = data["sources"][field["source"]]
        quantity = amount(field["value"])
        if quantity is None:
            return None
        quantity._origin = Fact(
            name="/".join((data["id"], *keys)),
            meaning=field.get("meaning", meaning) + (f" ({field['note']})" if "note" in field else ""),
            source=f"{source['title']} [{owner}]" if owner else source["title"],
            date=source["date"],
            uncertainty=field.get("uncertainty"),
            confidence=field.get("confidence", source["confidence"]),
        )
        return quantity

    peaks = {
        (precision, unit, sparsity): fact(
            "peaks", precision, unit, sparsity, meaning=f"{_SPARSITY[sparsity]} peak, {precision}, {unit} units"
        )
        for precision, units in data.get("peaks", {}).items()
        for unit, rates in units.items()
        for sparsity in rates
    }
    chip = {
        key: fact("chip", key, meaning=f"{key.replace('_', ' ')} of the chip")
        for key in data.get("chip", {})
        if key not in ("systolic_array", "node")
    }
    memory = {
        level: MemoryLevel(
            name=level,
            kind=entry.get("kind", ""),
            scope=entry.get("scope", "device"),
            _capacity=fact("memory", level, "capacity", meaning=f"capacity of {level}{_PER[entry.get('scope')]}"),
            _bandwidth=fact(
                "memory", level, "bandwidth", meaning=f"peak bandwidth of {level}{_PER[entry.get('scope')]}"
            ),
            _latency=fact("memory", level, "latency", meaning=f"load latency of {level}"),
            instances=entry.get("instances", _units(data) if entry.get("scope") == "unit" else 1),
            note=entry.get("note", ""),
            _usable=fact(
                "memory",
                level,
                "usable",
                meaning=f"capacity of {level} that a program may claim{_PER[entry.get('scope')]}",
            ),
            shared_along=tuple(entry.get("shared_along", ())),
            _read=fact("memory", level, "read", meaning=f"energy of one read of {level}"),
            _write=fact("memory", level, "write", meaning=f"energy of one write of {level}"),
            _width=fact("memory", level, "width", meaning=f"bits of one access of {level}"),
            _units=chip.get("units") if entry.get("scope") == "unit" and "instances" not in entry else None,
        )
        for level, entry in data["memory"].items()
    }
    links = {
        link: Link(
            name=link,
            kind=entry.get("kind", ""),
            _per_direction=fact("links", link, "per_direction", meaning=f"{link} bandwidth, one direction"),
            _latency=fact("links", link, "latency", meaning=f"{link} latency"),
        )
        for link, entry in data.get("links", {}).items()
    }
    points = [
        OperatingPoint(
            _clock=fact("power", "points", str(at), "clock", meaning="clock that the chip may run at"),
            _voltage=fact("power", "points", str(at), "voltage", meaning="least voltage of the cores at this clock"),
        )
        for at in range(len(data.get("power", {}).get("points", ())))
    ]
    array = data.get("chip", {}).get("systolic_array")
    node = data.get("chip", {}).get("node", {}).get("value", "")
    return Device(
        id=data["id"],
        name=data["name"],
        kind=data["kind"],
        vendor=data["vendor"],
        architecture=data.get("architecture", ""),
        release_year=data["release_year"],
        aliases=tuple(data.get("aliases", ())),
        note=data.get("note", ""),
        headline=data["headline"],
        main_memory=data.get("main_memory", next(iter(data["memory"]))),
        memory=FrozenDict(memory),
        links=FrozenDict(links),
        sources=FrozenDict({key: FrozenDict(source) for key, source in data["sources"].items()}),
        process_node=node,
        systolic_array=(array["rows"], array["columns"], array["count"]) if array else None,
        _peaks=FrozenDict(peaks),
        _chip=FrozenDict(chip),
        _tdp=fact("power", "tdp", meaning="thermal design power"),
        _idle_power=fact("power", "idle", meaning="power when idle"),
        _active_power=fact("power", "active", meaning="power while it computes"),
        points=tuple(points),
        _price=fact("price", meaning="price"),
        profile=data.get("profile", ""),
        product=data.get("product", ""),
        operands=_operands(data.get("operands"), fact("operands", "mac", meaning="energy of one multiply-accumulate")),
        _node=fact("chip", "node", meaning=f"process node: {node}, a name and no length", amount=_node),
    )


def _operands(given: dict[str, Any] | None, mac: Quantity | None) -> OperandPaths | None:
    if given is None or mac is None:
        return None
    paths = FrozenDict({operand: tuple(path) for operand, path in given["paths"].items()})
    return OperandPaths(FrozenDict(given["bits"]), FrozenDict(given["array"]), paths, mac)


_SPARSITY = {"dense": "dense", "2:4": "2:4 structured-sparse"}
_PER = {None: "", "device": "", "unit": ", each unit"}
_NM = ureg.Unit("nm")


def _units(data: dict[str, Any]) -> int:
    """Return how many units the chip has: as many pieces has a level that is counted by unit."""
    return int(float(data["chip"]["units"]["value"]))


def _amount(text: str) -> Quantity:
    return amount(text, _unit_of(text) or "count")


def _node(text: str) -> Quantity | None:
    number = node_of(text)
    return None if number is None else Q_(number, _NM)


def _unit_of(text: str) -> str:
    return text.strip().partition(" ")[2].strip()
