"""JSON Schema of placement scenarios, and validation with all errors reported."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from mlsys.errors import did_you_mean
from mlsys.faults import Place, endless, in_order, is_number, json_schema, located_faults, schema_file, short

SCHEMA: dict[str, Any] = schema_file("mlsys.planner.placement")["schema"]


@functools.cache
def _validator() -> Any:
    return json_schema().Draft202012Validator(SCHEMA)


def scenario_faults(data: Any) -> list[tuple[Place, str]]:
    """Return every error of a scenario, each with its place: schema, names, and dependencies.

    Parameters
    ----------
    data
        Contents of the file.
    """
    if not isinstance(data, Mapping):
        return [((), f"a scenario is a mapping of keys to values, got {short(data)}")]
    complaints = [fault for error in _validator().iter_errors(data) for fault in located_faults(error)]
    complaints += endless(data)
    devices = _names(data, "devices", "device", complaints)
    stages = _names(data, "stages", "stage", complaints)
    seen: dict[tuple[str, str], int] = {}
    for keys, link in _entries(data, "links"):
        ends = (link.get("from"), link.get("to"))
        for key, end in zip(("from", "to"), ends, strict=True):
            if isinstance(end, str) and end not in devices:
                complaints.append(((*keys, key), f"unknown device {end!r}.{did_you_mean(end, devices)}"))
        if isinstance(ends[0], str) and isinstance(ends[1], str):
            if ends[0] == ends[1]:
                complaints.append((keys, f"a link from {ends[0]!r} to itself: staying on a device costs nothing"))
            if ends in seen:
                complaints.append((keys, f"duplicate link from {ends[0]!r} to {ends[1]!r}, as links.{seen[ends]}"))
            seen.setdefault(ends, keys[1])  # type: ignore[arg-type]
    for keys, stage in _entries(data, "stages"):
        profiles = stage.get("profiles")
        for device in profiles if isinstance(profiles, Mapping) else ():
            if device not in devices:
                hint = did_you_mean(str(device), devices)
                complaints.append(((*keys, "profiles", device), f"unknown device {device!r}.{hint}"))
    complaints += _waits(data, stages)
    caps = data.get("constraints")
    if isinstance(caps, Mapping) and caps.get("accuracy") is not None and "accuracy" not in data:
        complaints.append((("constraints", "accuracy"), "needs the `accuracy` of the scenario without any loss"))
    ambient = data.get("ambient_c", 25)
    for keys, device in _entries(data, "devices"):
        thermal = device.get("thermal")
        limit = thermal.get("limit_c") if isinstance(thermal, Mapping) else None
        if is_number(limit) and is_number(ambient) and not limit > ambient:
            complaints.append(
                (
                    (*keys, "thermal", "limit_c"),
                    f"must be above the ambient temperature of {ambient!r} °C, got {limit!r}",
                )
            )
    return in_order(complaints)


def _entries(data: Mapping[str, Any], key: str) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    value = data.get(key)
    for index, entry in enumerate(value if isinstance(value, list) else ()):
        if isinstance(entry, Mapping):
            yield (key, index), entry


def _names(data: Mapping[str, Any], key: str, what: str, complaints: list[tuple[Place, str]]) -> dict[str, int]:
    names: dict[str, int] = {}
    for keys, entry in _entries(data, key):
        name = entry.get("name")
        if isinstance(name, str):
            if name in names:
                complaints.append(((*keys, "name"), f"duplicate {what} {name!r}, first as {key}.{names[name]}"))
            names.setdefault(name, keys[1])
    return names


def _waits(data: Mapping[str, Any], stages: Mapping[str, int]) -> list[tuple[Place, str]]:
    complaints: list[tuple[Place, str]] = []
    before: dict[str, list[str]] = {name: [] for name in stages}
    for keys, stage in _entries(data, "stages"):
        after = stage.get("after")
        name = stage.get("name")
        listed = after if isinstance(after, list) else []
        for index, other in enumerate(listed):
            if not isinstance(other, str):
                continue
            if other not in stages:
                complaints.append(((*keys, "after", index), f"unknown stage {other!r}.{did_you_mean(other, stages)}"))
            elif other in listed[:index]:
                complaints.append(((*keys, "after", index), f"duplicate {other!r}"))
            elif isinstance(name, str):
                before[name].append(other)
    left = dict(before)
    while free := [name for name, waits in left.items() if not any(other in left for other in waits)]:
        for name in free:
            del left[name]
    if left:
        names = ", ".join(map(repr, sorted(left)))
        complaints.append((("stages",), f"stages depend on each other in a cycle, or on one that does: {names}"))
    return complaints
