"""What a scenario of placement may say (JSON Schema), and every fault of one that says something else."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from mlsys.errors import did_you_mean
from mlsys.faults import MOST, Place, endless, in_order, is_number, json_schema, short, told

__all__ = ["MOST", "SCHEMA", "scenario_faults"]


def _positive(what: str, example: float) -> dict[str, Any]:
    return {"type": "number", "exclusiveMinimum": 0, "maximum": MOST, "description": what, "examples": [example]}


def _from_zero(what: str, example: float) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "maximum": MOST, "description": what, "examples": [example]}


def _cap(what: str, example: float) -> dict[str, Any]:
    return {**_positive(what, example), "type": ["number", "null"]}


def _name(what: str, example: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": 200, "description": what, "examples": [example]}


def _mapping(required: list[str], properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "additionalProperties": False,
        "properties": properties,
        **more,
    }


_COSTS = {
    "latency_ms": _positive("Time of the stage on this device, ms.", 9.1),
    "energy_mj": _positive("Energy of the stage on this device, mJ.", 14.0),
    "memory_mb": _from_zero("Memory that it holds on this device, MB.", 1240),
}
_FORMAT = _mapping(
    ["latency_ms", "energy_mj", "memory_mb"],
    {
        **_COSTS,
        "accuracy_loss": _from_zero("Accuracy that this number format costs, percentage points.", 0.4),
        "output_mb": _from_zero("Output in this number format, MB; by default that of the stage.", 2.0),
    },
)
_PROFILE = _mapping(
    ["latency_ms", "energy_mj", "memory_mb"],
    {
        **_COSTS,
        "formats": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": _FORMAT,
            "description": "The same stage in other number formats, by their name.",
            "examples": [{"int8": {"latency_ms": 3.1, "energy_mj": 4.2, "memory_mb": 310, "accuracy_loss": 0.4}}],
        },
    },
)
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Scenario of mlsys plan",
    **_mapping(
        ["devices", "stages"],
        {
            "name": _name("What the report is headed with.", "mobile vision pipeline"),
            "devices": {
                "type": "array",
                "minItems": 1,
                "maxItems": 64,
                "items": _mapping(
                    ["name", "memory_mb"],
                    {
                        "name": _name("Used by links and profiles.", "gpu"),
                        "memory_mb": _positive("Memory that the stages on it may hold, MB.", 4096),
                        "streams": {
                            "type": "integer",
                            "minimum": 1,
                            "maximum": 1024,
                            "description": "Stages of a graph that it runs at once; by default 1.",
                            "examples": [2],
                        },
                        "thermal": _mapping(
                            ["resistance_k_per_w", "capacity_j_per_k", "limit_c"],
                            {
                                "resistance_k_per_w": _positive("From the chip to the air, K/W.", 12.0),
                                "capacity_j_per_k": _positive("Heat that warms it by one kelvin, J/K.", 5.0),
                                "limit_c": {
                                    "type": "number",
                                    "minimum": -273.15,
                                    "maximum": 1000,
                                    "description": "Temperature that it may not exceed, °C.",
                                    "examples": [85],
                                },
                            },
                            description="What holds it below its limit when it runs for long.",
                        ),
                    },
                ),
            },
            "links": {
                "type": "array",
                "maxItems": 4096,
                "items": _mapping(
                    ["from", "to", "latency_ms", "bandwidth_gb_s", "energy_mj_per_mb"],
                    {
                        "from": _name("The device that sends.", "gpu"),
                        "to": _name("The device that receives: a link is one direction.", "npu"),
                        "latency_ms": _from_zero("Of every transfer, ms.", 0.05),
                        "bandwidth_gb_s": _positive("Decimal gigabytes per second; 1 MB takes 1 ms at 1 GB/s.", 8.0),
                        "energy_mj_per_mb": _from_zero("Energy of every megabyte, mJ.", 0.02),
                    },
                ),
            },
            "stages": {
                "type": "array",
                "minItems": 1,
                "maxItems": 2000,
                "items": _mapping(
                    ["name", "output_mb", "profiles"],
                    {
                        "name": _name("Used by the report and by `after`.", "backbone"),
                        "output_mb": _from_zero("What it hands on, MB.", 8.0),
                        "after": {
                            "type": "array",
                            "items": _name("A stage whose output it reads.", "decode"),
                            "description": "Stages that it waits for; without any `after` "
                            "each waits for the one before.",
                            "examples": [["decode", "resize"]],
                        },
                        "profiles": {
                            "type": "object",
                            "minProperties": 1,
                            "additionalProperties": _PROFILE,
                            "description": "Costs by device; a device without a profile may not run it.",
                        },
                    },
                ),
            },
            "constraints": _mapping(
                [],
                {
                    "latency_ms": _cap("Most time from end to end, ms.", 40),
                    "energy_mj": _cap("Most energy of one run, mJ.", 50),
                    "accuracy": {
                        "type": ["number", "null"],
                        "minimum": 0,
                        "maximum": 100,
                        "description": "Least accuracy, %; needs `accuracy` of the scenario.",
                        "examples": [75.0],
                    },
                    "rate_hz": _cap("Runs per second to be kept up for ever, with every chip below its limit.", 30),
                },
            ),
            "memory": {
                "enum": ["cumulative", "peak"],
                "description": "Whether all stages on a device stay resident, or only the one that runs.",
                "examples": ["cumulative"],
            },
            "accuracy": {
                "type": "number",
                "minimum": 0,
                "maximum": 100,
                "description": "Of the pipeline without any loss, %.",
                "examples": [76.1],
            },
            "ambient_c": {
                "type": "number",
                "minimum": -273.15,
                "maximum": 1000,
                "description": "Temperature around the chips, °C; by default 25.",
                "examples": [25],
            },
        },
    ),
}


@functools.cache
def _validator() -> Any:
    return json_schema().Draft202012Validator(SCHEMA)


def scenario_faults(data: Any) -> list[tuple[Place, str]]:
    """Return every fault of a scenario, each with its place: of form, of names, of what waits for what.

    Parameters
    ----------
    data
        What the file says.
    """
    if not isinstance(data, Mapping):
        return [((), f"a scenario is a mapping of keys to values, got {short(data)}")]
    complaints = [fault for error in _validator().iter_errors(data) for fault in told(error)]
    complaints += endless(data)
    devices = _names(data, "devices", "device", complaints)
    stages = _names(data, "stages", "stage", complaints)
    seen: dict[tuple[str, str], int] = {}
    for place, link in _entries(data, "links"):
        ends = (link.get("from"), link.get("to"))
        for key, end in zip(("from", "to"), ends, strict=True):
            if isinstance(end, str) and end not in devices:
                complaints.append(((*place, key), f"there is no device {end!r}.{did_you_mean(end, devices)}"))
        if isinstance(ends[0], str) and isinstance(ends[1], str):
            if ends[0] == ends[1]:
                complaints.append((place, f"a link from {ends[0]!r} to itself: what stays on a device costs nothing"))
            if ends in seen:
                complaints.append((place, f"a second link from {ends[0]!r} to {ends[1]!r}, as links.{seen[ends]}"))
            seen.setdefault(ends, place[1])  # type: ignore[arg-type]
    for place, stage in _entries(data, "stages"):
        profiles = stage.get("profiles")
        for device in profiles if isinstance(profiles, Mapping) else ():
            if device not in devices:
                hint = did_you_mean(str(device), devices)
                complaints.append(((*place, "profiles", device), f"there is no device {device!r}.{hint}"))
    complaints += _waits(data, stages)
    caps = data.get("constraints")
    if isinstance(caps, Mapping) and caps.get("accuracy") is not None and "accuracy" not in data:
        complaints.append((("constraints", "accuracy"), "needs the `accuracy` of the scenario without any loss"))
    ambient = data.get("ambient_c", 25)
    for place, device in _entries(data, "devices"):
        thermal = device.get("thermal")
        limit = thermal.get("limit_c") if isinstance(thermal, Mapping) else None
        if is_number(limit) and is_number(ambient) and not limit > ambient:
            complaints.append(
                ((*place, "thermal", "limit_c"), f"must lie above the {ambient!r} °C around it, got {limit!r}")
            )
    return in_order(complaints)


def _entries(data: Mapping[str, Any], key: str) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    value = data.get(key)
    for index, entry in enumerate(value if isinstance(value, list) else ()):
        if isinstance(entry, Mapping):
            yield (key, index), entry


def _names(data: Mapping[str, Any], key: str, what: str, complaints: list[tuple[Place, str]]) -> dict[str, int]:
    names: dict[str, int] = {}
    for place, entry in _entries(data, key):
        name = entry.get("name")
        if isinstance(name, str):
            if name in names:
                complaints.append(((*place, "name"), f"{what} {name!r} is there twice, first as {key}.{names[name]}"))
            names.setdefault(name, place[1])
    return names


def _waits(data: Mapping[str, Any], stages: Mapping[str, int]) -> list[tuple[Place, str]]:
    complaints: list[tuple[Place, str]] = []
    before: dict[str, list[str]] = {name: [] for name in stages}
    for place, stage in _entries(data, "stages"):
        after = stage.get("after")
        name = stage.get("name")
        listed = after if isinstance(after, list) else []
        for index, other in enumerate(listed):
            if not isinstance(other, str):
                continue
            if other not in stages:
                complaints.append(
                    ((*place, "after", index), f"there is no stage {other!r}.{did_you_mean(other, stages)}")
                )
            elif other in listed[:index]:
                complaints.append(((*place, "after", index), f"{other!r} is there twice"))
            elif isinstance(name, str):
                before[name].append(other)
    left = dict(before)
    while free := [name for name, waits in left.items() if not any(other in left for other in waits)]:
        for name in free:
            del left[name]
    if left:
        names = ", ".join(map(repr, sorted(left)))
        complaints.append((("stages",), f"stages wait for each other in a circle, or for one that does: {names}"))
    return complaints
