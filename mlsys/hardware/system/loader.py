"""Loading of system files: a YAML file gives a system, or one error that lists every fault."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlsys.amounts import amount
from mlsys.errors import DeviceFileError, UnknownNameError
from mlsys.faults import json_schema, schema_file
from mlsys.frozen import FrozenDict
from mlsys.hardware.catalogue import Hardware
from mlsys.hardware.consistency import check_date, check_whole
from mlsys.hardware.document import Document, Place
from mlsys.hardware.fields import checked_value, fields_with_source, recorded, unknown_source_faults
from mlsys.hardware.loader import schema_faults
from mlsys.hardware.system.model import Link, System
from mlsys.units import Quantity

_LINKS = ("scale_up", "scale_out", "host", "between_hosts")
_COUNTS = ("chips_per_node", "hosts_per_node", "nodes_per_fabric")


def load_system(path: str | Path, validate: bool = True, owner: str = "") -> System:
    """Return the system that a file describes.

    Parameters
    ----------
    path
        A YAML file as described by ``schema.yaml`` beside this module.
    validate
        Whether to validate the file against the schema first; the catalogue skips this for the files of the package.
    owner
        Description of the file's origin if it is not part of the package; it is added to every source.

    Raises
    ------
    DeviceFileError
        If the file is unreadable or has faults; all are listed, with file and line.

    Examples
    --------
    >>> load_system("no_such_system.yaml")
    Traceback (most recent call last):
        ...
    mlsys.errors.DeviceFileError: no_such_system.yaml: cannot be read (No such file or directory)
    """
    path = Path(path)
    document = Document(path, "system")
    if not validate and not document.faults:
        return _build(document.data, owner)
    problems = [*schema_faults(document.data, _validator(), "system"), *_reference_faults(document.data)]
    faults = document.faults + [document.located(*fault) for fault in problems]
    if faults:
        raise DeviceFileError("\n".join(faults))
    return _build(document.data, owner)


@functools.cache
def _validator() -> Any:
    schema = schema_file("mlsys.hardware.system")
    checker = json_schema().FormatChecker(formats=())
    for unit in ("byte/s", "s", "W"):
        checker.checks(unit, raises=ValueError)(functools.partial(checked_value, unit=unit))
    checker.checks("date of publication", raises=ValueError)(check_date)
    checker.checks("whole count", raises=ValueError)(check_whole)
    checker.checks("ratio of one or more", raises=ValueError)(_check_ratio)
    return json_schema().Draft202012Validator(schema, format_checker=checker)


def _check_ratio(text: Any) -> bool:
    if isinstance(text, str) and amount(text, "").magnitude < 1:
        raise ValueError(f"{text!r} must be 1 or more, the ratio of the bandwidth below to that above")
    return True


def _reference_faults(data: Any) -> list[tuple[Place, str]]:
    """Return a fault for each reference to something that does not exist, and for values that contradict each other."""
    if not isinstance(data, dict) or not isinstance(data.get("sources"), dict):
        return []
    sources = data["sources"]
    faults = unknown_source_faults(data, sources)
    for where, field in fields_with_source(data):
        source = sources.get(field["source"])
        grade = field.get("confidence", source.get("confidence") if isinstance(source, dict) else None)
        if grade == "assumed" and not field.get("uncertainty"):
            text = "an assumed value needs a range: add `uncertainty: 0.1`, in the unit of the value"
            faults.append((where, text))
    device = data.get("device")
    links: Any = {}
    if isinstance(device, str):
        try:
            links = Hardware[device].links
        except UnknownNameError as error:
            faults.append((("device",), str(error)))
    for name in _LINKS:
        link = data.get(name)
        if isinstance(link, dict):
            faults += [((name, *where), text) for where, text in _link_faults(link, device, links)]
    chips = _count(data, "chips_per_node")
    if chips > 1 and "scale_up" not in data:
        faults.append(((), "a node of more than one chip needs `scale_up`, the link between them"))
    up = data.get("scale_up")
    sizes = up.get("dimensions") if isinstance(up, dict) else None
    if isinstance(sizes, list) and all(isinstance(size, int) for size in sizes):
        whole = functools.reduce(lambda product, size: product * size, sizes, 1)
        if whole != chips:
            text = f"the product of `dimensions` is {whole}, but `chips_per_node` is {chips}"
            faults.append((("scale_up", "dimensions"), text))
    return faults


def _link_faults(link: dict[str, Any], device: Any, links: Any) -> list[tuple[Place, str]]:
    faults: list[tuple[Place, str]] = []
    named = link.get("device_link")
    if named is not None and named not in links:
        have = ", ".join(links) or "none"
        faults.append((("device_link",), f"{device} has no link {named!r}. It has: {have}"))
    if (named is None) == ("bandwidth" not in link):
        text = "give either `device_link`, a link of the device file, or `bandwidth` with its source"
        if not (named is None and link.get("topology") == "shared memory"):
            faults.append(((), text))
    if (link.get("topology") == "torus") != ("dimensions" in link):
        faults.append(((), "`dimensions` goes with `topology: torus`: chips along each axis"))
    return faults


def _count(data: dict[str, Any], name: str) -> int:
    field = data.get(name)
    try:
        return int(float(field["value"])) if isinstance(field, dict) else 1
    except (KeyError, TypeError, ValueError):
        return 1


def _build(data: dict[str, Any], owner: str) -> System:
    def fact(*keys: str, meaning: str) -> Quantity | None:
        return recorded(data, keys, meaning, owner)

    device = Hardware[data["device"]]
    links = {name: _link(name, data, device.links, fact) for name in _LINKS}
    counts = {name: fact(name, meaning=name.replace("_", " ")) for name in _COUNTS}
    return System(
        id=data["id"],
        name=data["name"],
        vendor=data["vendor"],
        release_year=data["release_year"],
        device=device,
        chips_per_node=_count(data, "chips_per_node"),
        hosts_per_node=_count(data, "hosts_per_node"),
        nodes_per_fabric=_count(data, "nodes_per_fabric") if "nodes_per_fabric" in data else None,
        scale_up=links["scale_up"],
        scale_out=links["scale_out"] if links["scale_out"].exists else None,
        host=links["host"],
        between_hosts=links["between_hosts"] if links["between_hosts"].exists else None,
        aliases=tuple(data.get("aliases", ())),
        note=data.get("note", ""),
        sources=FrozenDict({key: FrozenDict(source) for key, source in data["sources"].items()}),
        _power=fact("power", meaning="most power that one node draws"),
        _counts=FrozenDict({name: value for name, value in counts.items() if value is not None}),
    )


def _link(name: str, data: dict[str, Any], links: Any, fact: Callable[..., Quantity | None]) -> Link:
    entry = data.get(name)
    if entry is None:
        return Link(name, data["id"])
    own = links[entry["device_link"]] if "device_link" in entry else None
    bandwidth = own._per_direction if own else fact(name, "bandwidth", meaning=f"{name} bandwidth of a chip, one way")
    latency = fact(name, "latency", meaning=f"{name} latency of one hop")
    return Link(
        name=name,
        owner=data["id"],
        kind=entry.get("kind", own.kind if own else ""),
        topology=entry["topology"],
        ports=entry.get("ports", 1),
        dimensions=tuple(entry.get("dimensions", ())),
        shared_by=entry.get("shared_by", 1),
        in_network_reduction=entry.get("in_network_reduction", ""),
        note=entry.get("note", ""),
        _bandwidth=bandwidth,
        _latency=latency if latency is not None or own is None else own._latency,
        _taper=fact(name, "taper", meaning=f"{name} taper"),
    )
