"""JSON Schema of edge configurations, and validation with all errors reported."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from mlsys.errors import did_you_mean
from mlsys.faults import Place, endless, in_order, is_number, json_schema, located_faults, schema_file

SCHEMA: dict[str, Any] = schema_file("mlsys.edge")["schema"]
FORMATS = tuple(SCHEMA["properties"]["precisions"]["items"]["enum"])


@functools.cache
def _validator() -> Any:
    return json_schema().Draft202012Validator(SCHEMA)


def faults(data: object) -> list[tuple[Place, str]]:
    """Return every error of a configuration, each with its place.

    Parameters
    ----------
    data
        Contents of the file.

    Examples
    --------
    >>> faults({"network": "small-cnn", "batch": 0, "clocks": [1.0, 1]})
    [(('batch',), 'must be a whole number from 1 to 65536, got 0'),
     (('clocks', 1), 'is a duplicate of clocks.0')]
    """
    if not isinstance(data, Mapping):
        return [((), "a configuration is a mapping of keys to values")]
    complaints = [fault for error in _validator().iter_errors(data) for fault in _in_words(error)]
    complaints += endless(data) + _twice(data) + _together(data)
    network = data.get("network")
    if isinstance(network, str) and ":" not in network:
        complaints += [(("network",), text) for text in _network_faults(network)]
    device = _inner(data, "latency").get("device")
    if isinstance(device, str):
        complaints += [(("latency", "device"), text) for text in _device_faults(device)]
    return in_order(complaints)


def _in_words(error: Any) -> Iterator[tuple[Place, str]]:
    path = tuple(error.absolute_path)
    if error.validator == "anyOf" and path[:1] == ("clocks",):
        yield path, f"must be a number above 0 to 1, or scale and voltage above 0 to 1, got {str(error.instance)[:60]}"
    elif error.validator == "anyOf":
        wanted = f"a number from 0, or numbers from 0 by format ({', '.join(FORMATS)})"
        yield path, f"must be {wanted}, got {str(error.instance)[:60]}"
    elif error.validator == "exclusiveMaximum":
        yield path, f"must be a share from 0 to below 1, got {error.instance!r}"
    elif error.validator == "enum" and isinstance(error.instance, str):
        known = [str(allowed) for allowed in error.validator_value]
        yield path, f"must be one of {', '.join(known)}, got {error.instance!r}.{did_you_mean(error.instance, known)}"
    else:
        yield from located_faults(error)


def _inner(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def _twice(data: Mapping[str, Any]) -> list[tuple[Place, str]]:
    complaints: list[tuple[Place, str]] = []
    listed: list[tuple[Place, Any]] = [((key,), data.get(key)) for key in ("precisions", "clocks", "memory_budgets_mb")]
    listed += [(("pruning", method), levels) for method, levels in _inner(data, "pruning").items()]
    for where, entries in listed:
        seen: dict[str, int] = {}
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            text = repr(float(entry)) if is_number(entry) else repr(entry)
            if text in seen:
                complaints.append(((*where, index), f"is a duplicate of {'.'.join(map(str, where))}.{seen[text]}"))
            seen.setdefault(text, index)
    return complaints


def _together(data: Mapping[str, Any]) -> list[tuple[Place, str]]:
    """Return conflicts between keys."""
    complaints: list[tuple[Place, str]] = []
    latency, power = _inner(data, "latency"), _inner(data, "power")
    if latency.get("source") == "modelled" and "device" not in latency:
        complaints.append((("latency",), "`device` is missing: modelled latency is that of a device of the catalogue"))
    if latency.get("source", "measured") == "measured" and "device" in latency:
        complaints.append(
            (("latency", "device"), "applies to `source: modelled`; measured latency is that of this machine")
        )
    if not power and isinstance(latency.get("device"), str) and not _device_faults(latency["device"]):
        complaints += _power_faults(latency["device"])
    if "measured" in power:
        for key in ("static_w", "dynamic_w"):
            if key in power:
                complaints.append((("power", key), "conflicts with `measured`, from which it would be computed"))
        if isinstance(power["measured"], list) and len(power["measured"]) == 1:
            complaints.append(
                (("power", "measured"), "at least two clocks are needed to separate static from dynamic energy")
            )
    dynamic, formats = power.get("dynamic_w"), data.get("precisions", list(FORMATS))
    if isinstance(dynamic, Mapping) and isinstance(formats, list):
        missing = [fmt for fmt in formats if isinstance(fmt, str) and fmt in FORMATS and fmt not in dynamic]
        if missing:
            complaints.append(
                (("power", "dynamic_w"), f"has no power for {', '.join(missing)}, which `precisions` names")
            )
    return complaints


def _network_faults(name: str) -> list[str]:
    from mlsys.workloads import zoo
    from mlsys.workloads.argument_checks import unknown_network

    entry = zoo.resolve(name)
    if entry is None:
        return [str(unknown_network(name))]
    if not entry.has_graph:
        return [f"{name!r} has counts but no graph, and cannot be trained. Give package.module:factory"]
    return []


def _power_faults(device: str) -> list[tuple[Place, str]]:
    from mlsys.hardware import Hardware
    from mlsys.models.energy.boards import work_power

    if work_power(Hardware[device]) is not None:
        return []
    return [
        (("power",), f"is missing: no power under load is known for {device} or its class. Give static_w and dynamic_w")
    ]


def _device_faults(name: str) -> list[str]:
    from mlsys.errors import UnknownNameError
    from mlsys.hardware import Hardware

    try:
        Hardware[name]
    except UnknownNameError as error:
        return [str(error).splitlines()[0]]
    return []
