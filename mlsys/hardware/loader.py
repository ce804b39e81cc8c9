"""From a YAML file to a device, or one error that lists every fault.

PyYAML parses to nodes (with line numbers), ``jsonschema`` checks the shape, and
the units are ours. Duplicate keys, anchors, tags and files larger than
:data:`MAX_BYTES` are refused before anything is built.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from mlsys.errors import DeviceFileError, did_you_mean
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device, Link, MemoryLevel
from mlsys.provenance import Fact
from mlsys.units import Q_, DimensionalityError, Quantity, UndefinedUnitError

__all__ = ["MAX_BYTES", "load_device"]

MAX_BYTES = 200_000
_MAX_DEPTH = 12
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Place = tuple[Any, ...]


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
    document = _Document(path)
    if not validate and not document.faults:
        try:
            return _build(document.data, owner)
        except (KeyError, TypeError, AttributeError, ValueError):
            pass  # the file is at fault: say where, below
    shape = _schema_faults(document.data)
    faults = document.faults + [document.located(*fault) for fault in shape]
    faults = faults or [document.located(*fault) for fault in _reference_faults(document.data)]
    if faults:
        raise DeviceFileError("\n".join(faults))
    try:
        return _build(document.data, owner)
    except ValueError as error:
        raise DeviceFileError(f"{path}: {error}") from None


class _Document:
    """A YAML file as plain data, with the line of every place in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Place, int] = {(): 1}
        self.faults: list[str] = []
        self.data: Any = None
        try:
            with path.open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise DeviceFileError(f"{path}: cannot be read ({error.strerror})") from None
        if len(raw) > MAX_BYTES:
            raise DeviceFileError(f"{path}: too large; a device file has at most {MAX_BYTES:,} bytes")
        try:
            text = raw.decode("utf-8")
            self._refuse_what_no_device_needs(text)
            node = yaml.compose(text, Loader=_Loader)
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f":{mark.line + 1}" if mark else ""
            problem = getattr(error, "problem", None) or str(error).splitlines()[0]
            raise DeviceFileError(f"{path}{where}: not readable as YAML: {problem}") from None
        if node is None:
            raise DeviceFileError(f"{path}: the file is empty")
        self.data = self._plain(node, ())

    def located(self, place: Place, text: str, node: yaml.Node | None = None) -> str:
        """Return one fault as ``file:line: place: text``, at ``node`` or where ``place`` was first written."""
        written = (place[:size] for size in range(len(place), -1, -1) if place[:size] in self.lines)
        line = node.start_mark.line + 1 if node else self.lines[next(written)]
        where = ".".join(map(str, place))
        return f"{self.path}:{line}: {where + ': ' if where else ''}{text}"

    def _refuse_what_no_device_needs(self, text: str) -> None:
        """Refuse anchors, tags and depth while the text is still a stream: deep trees crash the parser."""
        depth = 0
        event: Any
        for event in yaml.parse(text, Loader=_Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_DEPTH:
                problem = f"nested deeper than {_MAX_DEPTH} levels"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
            anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
            if anchor or tag:
                what = f"anchor or alias {anchor!r}" if anchor else f"tag {tag!r}"
                raise yaml.MarkedYAMLError(problem=f"{what} is not allowed", problem_mark=event.start_mark)

    def _plain(self, node: yaml.Node, place: Place) -> Any:
        self.lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(item, (*place, index)) for index, item in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return _scalar(node)
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                key_text = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "of a list or mapping"
                self.faults.append(self.located(place, f"key {key_text} must be text", key_node))
                continue
            here = (*place, key)
            if key in found:
                self.faults.append(self.located(here, f"duplicate key {key!r}", key_node))
                continue
            self.lines[here] = key_node.start_mark.line + 1
            found[key] = self._plain(value_node, here)
        return found


def _scalar(node: yaml.Node) -> Any:
    if node.tag == "tag:yaml.org,2002:int":
        try:
            return int(node.value)
        except ValueError:
            return node.value
    if node.tag == "tag:yaml.org,2002:float":
        try:
            return float(node.value)
        except ValueError:
            return node.value
    if node.tag == "tag:yaml.org,2002:null":
        return None
    return node.value


@functools.cache
def _validator() -> Any:
    import jsonschema

    schema = yaml.load((resources.files("mlsys.hardware") / "schema.yaml").read_text("utf-8"), Loader=_Loader)
    checker = jsonschema.FormatChecker(formats=())
    for field in schema["$defs"]["fields"].values():
        unit = field["properties"]["value"]["format"]
        checker.checks(unit, raises=ValueError)(functools.partial(_check_value, unit=unit))
    return jsonschema.Draft202012Validator(schema, format_checker=checker)


def _check_value(text: Any, unit: str) -> bool:
    if isinstance(text, str):
        _quantity(text, unit)
    return True


# Unit names joined by * and /, with powers of one digit. Anything more could keep pint's parser busy for ever.
_NAME = r"(?:[^\W\d]\w*|%)(?:\*\*\d)?"
_UNIT = re.compile(rf"(?:{_NAME}(?: ?[*/] ?{_NAME})*)?")


def _quantity(text: str, unit: str) -> Quantity:
    """Return ``"312 TFLOP/s"`` as a quantity, or raise ValueError saying what is wrong."""
    number, _, written = text.strip().partition(" ")
    if not _UNIT.fullmatch(written.strip()):
        raise ValueError(f"{text!r}: {written.strip()!r} is not a unit such as '{unit}'")
    try:
        magnitude = float(number.replace(",", ""))
    except ValueError:
        raise ValueError(f"{text!r} must be a number, a space and a unit, such as '1 {unit}'") from None
    if not math.isfinite(magnitude) or magnitude <= 0:
        raise ValueError(f"{text!r} must be finite and above zero")
    try:
        quantity = Q_(int(magnitude) if magnitude.is_integer() else magnitude, written.strip() or "count")
        quantity.to(unit)
    except UndefinedUnitError as error:
        raise ValueError(f"{text!r}: {error}") from None
    except DimensionalityError:
        raise ValueError(f"{text!r} must be in {unit} or a multiple of it") from None
    except Exception as error:  # pint's parser raises many kinds; each is the file's fault
        raise ValueError(f"{text!r} is not a quantity ({type(error).__name__})") from None
    return quantity


def _schema_faults(data: Any) -> list[tuple[Place, str]]:
    if not isinstance(data, dict):
        return [((), "a device file is a mapping of keys to values")]
    errors = sorted(_validator().iter_errors(data), key=lambda error: [str(part) for part in error.absolute_path])
    return [fault for error in errors for fault in _told(error)]


def _told(error: Any) -> list[tuple[Place, str]]:
    """Return a fault of the schema in words, at the line where it stands."""
    place = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = error.schema["properties"]
        return [
            ((*place, key), f"unknown key {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}")
            for key in error.instance
            if key not in known
        ]
    if "propertyNames" in error.absolute_schema_path:
        key, known = error.instance, error.schema["enum"]
        return [((*place, key), f"unknown key {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}")]
    return [(place, str(error.cause or error.message))]


def _reference_faults(data: dict[str, Any]) -> list[tuple[Place, str]]:
    faults: list[tuple[Place, str]] = []
    for place, field in _fields(data, ()):
        if field["source"] not in data["sources"]:
            known = ", ".join(data["sources"])
            faults.append(((*place, "source"), f"{field['source']!r} is not among this file's sources: {known}"))
    if data["headline"] not in data["peaks"]:
        faults.append((("headline",), f"{data['headline']!r} has no peak in this file"))
    main = data.get("main_memory", next(iter(data["memory"])))
    if main not in data["memory"]:
        faults.append((("main_memory",), f"{main!r} is not a memory level of this file"))
    elif "bandwidth" not in data["memory"][main]:
        faults.append((("memory", main), "the main memory needs a bandwidth"))
    return faults


def _fields(data: Any, place: Place) -> Iterator[tuple[Place, dict[str, Any]]]:
    if isinstance(data, dict) and place[:1] != ("sources",):
        if isinstance(data.get("source"), str):
            yield place, data
        else:
            for key, value in data.items():
                yield from _fields(value, (*place, key))


def _build(data: dict[str, Any], owner: str) -> Device:
    def fact(*place: str, meaning: str) -> Quantity | None:
        field: Any = data
        for key in place:
            field = (field or {}).get(key)
        if field is None:
            return None
        source = data["sources"][field["source"]]
        quantity = _quantity(field["value"], "count" if " " not in field["value"].strip() else _unit_of(field["value"]))
        quantity._origin = Fact(
            name="/".join((data["id"], *place)),
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
        for precision, units in data["peaks"].items()
        for unit, rates in units.items()
        for sparsity in rates
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
    chip = {
        key: fact("chip", key, meaning=f"{key.replace('_', ' ')} of the chip")
        for key in data.get("chip", {})
        if key not in ("systolic_array", "node")
    }
    array = data.get("chip", {}).get("systolic_array")
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
        process_node=data.get("chip", {}).get("node", {}).get("value", ""),
        systolic_array=(array["rows"], array["columns"], array["count"]) if array else None,
        _peaks=FrozenDict(peaks),
        _chip=FrozenDict(chip),
        _tdp=fact("power", "tdp", meaning="thermal design power"),
        _idle_power=fact("power", "idle", meaning="power when idle"),
        _price=fact("price", meaning="price"),
    )


_SPARSITY = {"dense": "dense", "2:4": "2:4 structured-sparse"}
_PER = {None: "", "device": "", "unit": ", each unit"}


def _unit_of(text: str) -> str:
    return text.strip().partition(" ")[2].strip()
