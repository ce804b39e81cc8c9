"""Loading of device files: a YAML file gives a device, or one error that lists every fault.

:mod:`mlsys.hardware.document` parses the text, ``jsonschema`` validates the structure, and
:mod:`mlsys.amounts` checks the units.
"""

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mlsys.errors import ArgumentError, DeviceFileError, UnreadableError, did_you_mean
from mlsys.faults import json_schema, schema_file
from mlsys.frozen import FrozenDict
from mlsys.hardware.consistency import check_date, check_whole, contradictions
from mlsys.hardware.device import Device, Link, MemoryLevel
from mlsys.hardware.document import MAX_BYTES, Document, Place
from mlsys.hardware.fields import checked_value, fields_with_source, quantity_of, recorded, unknown_source_faults
from mlsys.hardware.parts import OperandPaths, OperatingPoint
from mlsys.hardware.technology import node_of, technology_of
from mlsys.inputs import read_bytes
from mlsys.precision import PRECISIONS
from mlsys.units import Q_, Quantity, ureg

__all__ = ["MAX_BYTES", "is_system_file", "load_device"]


def load_device(path: str | Path, validate: bool = True, owner: str = "") -> Device:
    """Return the device that a file describes.

    Parameters
    ----------
    path
        A YAML file as described by ``schema.yaml``.
    validate
        Whether to validate the file against the schema first. The catalogue skips this for the
        files of the package, which the tests validate, to start quickly.
    owner
        Description of the file's origin if it is not part of the package; it is added to every source,
        and so appears in every claim that depends on the device.

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
            pass  # the file has faults, which are located below
    problems = [*schema_faults(document.data, _validator(), "device"), *_reference_faults(document.data)]
    faults = document.faults + [document.located(*fault) for fault in problems]
    if faults:
        raise DeviceFileError("\n".join(faults))
    try:
        return _build(document.data, owner)
    except ValueError as error:
        raise DeviceFileError(f"{path}: {error}") from None


def is_system_file(path: Path) -> bool:
    """Return whether a YAML file describes a system: it has a line that begins with ``chips_per_node:``.

    Examples
    --------
    >>> is_system_file(Path("no such file"))
    False
    """
    if not path.is_file():  # a pipe can be read once only
        return False
    try:
        return any(line.startswith(b"chips_per_node:") for line in read_bytes(path, MAX_BYTES).splitlines())
    except UnreadableError:
        return False


@functools.cache
def _validator() -> Any:
    schema = schema_file("mlsys.hardware")
    checker = json_schema().FormatChecker(formats=())
    for field in schema["$defs"]["fields"].values():
        unit = field["properties"]["value"]["format"]
        checker.checks(unit, raises=ValueError)(functools.partial(checked_value, unit=unit))
    checker.checks("date of publication", raises=ValueError)(check_date)
    checker.checks("whole count", raises=ValueError)(check_whole)
    return json_schema().Draft202012Validator(schema, format_checker=checker)


def schema_faults(data: Any, validator: Any, kind: str) -> list[tuple[Place, str]]:
    """Return the violations of a schema in the content of a file of this kind, each as a location and a message."""
    if not isinstance(data, dict):
        return [((), f"a {kind} file is a mapping of keys to values")]
    errors = sorted(validator.iter_errors(data), key=lambda error: [str(part) for part in error.absolute_path])
    return [fault for error in errors for fault in _messages(error)]


_REST = re.compile(r"\d+ [^\W\d]")  # what YAML makes of the rest of a number with a decimal comma


def _decimal_comma_hint(key: object) -> str:
    """Return a hint if a key looks like the rest of a decimal comma: inside braces a comma ends a YAML value."""
    return " Write a decimal point: in braces a comma ends a value." if _REST.match(str(key)) else ""


def _messages(error: Any) -> list[tuple[Place, str]]:
    """Return the faults behind a schema error, each as a location and a message."""
    where = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = error.schema["properties"]
        return [
            (
                (*where, key),
                f"unknown key {key!r}.{_decimal_comma_hint(key)}{did_you_mean(key, known)} Known: {', '.join(known)}",
            )
            for key in error.instance
            if key not in known
        ]
    if "propertyNames" in error.absolute_schema_path:
        key, known = error.instance, error.schema["enum"]
        return [((*where, key), f"unknown key {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}")]
    return [(where, str(error.cause or error.message))]


def _reference_faults(data: Any) -> list[tuple[Place, str]]:
    """Return a fault for each reference to something that the file lacks; malformed data are skipped."""
    sources, peaks, memory, chip = (_mapping(data, key) for key in ("sources", "peaks", "memory", "chip"))
    faults = unknown_source_faults(data, sources) if sources else []
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
            faults.append((("memory", name), "a level of scope `unit` needs `instances`, or `units` of the chip"))
        if level and "capacity" not in level and (name != main or not level.get("note")):
            why = "a main memory without one needs a `note`, such as 'the board decides its size'"
            faults.append((("memory", name), f"'capacity' is a required property; {why}"))
        faults += _unknown_words(("memory", name, "kind"), level.get("kind"), technology_of)
    for operand, path in _mapping(_mapping(data, "operands"), "paths").items():
        for name in path if isinstance(path, list) else ():
            if name not in memory:
                faults.append((("operands", "paths", operand), f"{name!r} is not a memory level of this file"))
    node = _mapping(chip, "node").get("value")
    faults += _unknown_words(("chip", "node", "value"), node, node_of)
    return [*faults, *_assumed_faults(data, sources), *contradictions(data)]


def _unknown_words(keys: Place, text: Any, reader: Callable[[str], Any]) -> list[tuple[Place, str]]:
    """Return a fault if ``reader`` does not recognise ``text``."""
    try:
        known = not isinstance(text, str) or not text or reader(text) is not None
    except ArgumentError as error:
        return [(keys, str(error))]
    return [] if known else [(keys, f"{text!r} is not a process node such as 'TSMC 7 nm', 'N5P', '4NP' or 'Intel 7'")]


def _mapping(data: Any, key: Any) -> dict[str, Any]:
    """Return the mapping under ``key``, or an empty one if there is none."""
    mapping = data.get(key) if isinstance(data, dict) and isinstance(key, str) else None
    return mapping if isinstance(mapping, dict) else {}


# Values that vendors rarely publish may be assumed in a real device too, with a source and a range.
_MAY_BE_ASSUMED = (("power", "active"), ("power", "idle"), ("power", "points"), ("price",), ("links",))


def _assumed_faults(data: Any, sources: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield faults of assumed values in a real device, and of values not marked as assumed in a teaching profile."""
    teaching = isinstance(data, dict) and data.get("profile") == "teaching"
    for where, field in fields_with_source(data):
        source = _mapping(sources, field["source"])
        assumed = field.get("confidence", source.get("confidence")) == "assumed"
        if assumed and not teaching:
            if not any(where[: len(start)] == start for start in _MAY_BE_ASSUMED):
                yield (
                    where,
                    "only power, price and links of a real device may be assumed: "
                    "write `profile: teaching`, or give a source",
                )
            elif not field.get("uncertainty"):
                yield (
                    where,
                    "an assumed value of a real device needs a range: add `uncertainty: 0.1`, in the unit of the value",
                )
        if teaching and source and not assumed:
            yield where, "values of a teaching profile are assumed: add `confidence: assumed`"


def _build(data: dict[str, Any], owner: str) -> Device:
    def fact(*keys: str, meaning: str, reader: Callable[[str], Quantity | None] = quantity_of) -> Quantity | None:
        return recorded(data, keys, meaning, owner, reader)

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
        _node=fact("chip", "node", meaning=f"process node: {node}, a name and no length", reader=_node),
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
    """Return the number of units of the chip, the default number of instances of a level of scope ``unit``."""
    return int(float(data["chip"]["units"]["value"]))


def _node(text: str) -> Quantity | None:
    number = node_of(text)
    return None if number is None else Q_(number, _NM)
