"""What a configuration of the edge optimiser may say (JSON Schema), and every fault of one that says something else."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from mlsys.errors import did_you_mean
from mlsys.faults import MOST, Place, endless, in_order, is_number, json_schema, told

__all__ = ["BACKENDS", "FORMATS", "SCHEMA", "faults"]

FORMATS = ("fp32", "fp16", "bf16", "int8-dynamic", "int8-static")
BACKENDS = ("fbgemm", "qnnpack", "x86", "onednn")
_POWER = "Power while the clock runs at its reference, W: of all formats, or by format."


def _positive(what: str, example: float, most: float = MOST) -> dict[str, Any]:
    return {"type": "number", "exclusiveMinimum": 0, "maximum": most, "description": what, "examples": [example]}


def _from_zero(what: str, example: float, most: float = MOST) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "maximum": most, "description": what, "examples": [example]}


def _whole(what: str, example: int, low: int = 1, high: int = 1_000_000) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high, "description": what, "examples": [example]}


def _text(what: str, example: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": 200, "description": what, "examples": [example]}


def _mapping(properties: dict[str, Any], required: tuple[str, ...] = (), what: str = "") -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    if required:
        schema["required"] = list(required)
    return {**schema, "description": what} if what else schema


def _list(entry: dict[str, Any], what: str, example: list[Any], most: int = 1000) -> dict[str, Any]:
    return {
        "type": "array",
        "minItems": 1,
        "maxItems": most,
        "items": entry,
        "description": what,
        "examples": [example],
    }


_LEVEL = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
_POINT = _mapping(
    {
        "clock_mhz": _positive("Clock at which it was measured, MHz.", 168),
        "time_ms": _positive("Time of one inference, ms.", 145),
        "energy_mj": _positive("Energy of one inference, mJ.", 18),
        "voltage": _positive("Supply over that at the highest clock; by default 1.", 1.0, 10),
    },
    ("clock_mhz", "time_ms", "energy_mj"),
)
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Configuration of mlsys edge",
    **_mapping(
        {
            "name": _text("What the report is headed with.", "digits on a small network"),
            "network": _text("A network of the catalogue with PyTorch code, or package.module:factory.", "small-cnn"),
            "data": _text("digits, or package.module:loader that returns train_x, train_y, test_x, test_y.", "digits"),
            "seed": _whole("Of initial weights, order of batches and split of the data.", 0, 0, 2**31 - 1),
            "training": _mapping(
                {
                    "epochs": _whole("Passes over the training data; 0 takes the weights as they are.", 8, 0, 10_000),
                    "finetune_epochs": _whole("Passes after pruning, pruned weights kept at zero.", 2, 0, 10_000),
                    "batch": _whole("Images of one step.", 64),
                    "learning_rate": _positive("Of Adam.", 0.002, 10),
                },
            ),
            "batch": _whole("Images of one inference, as deployed.", 1, 1, 65_536),
            "pruning": _mapping(
                {
                    "structured": _list(_LEVEL, "Shares of the channels that are cut away.", [0, 0.25, 0.5], 100),
                    "unstructured": _list(_LEVEL, "Shares of the weights that are set to zero.", [0.5, 0.9], 100),
                },
                what="Levels by method. Level 0 is the network as trained, once, whichever method names it.",
            ),
            "precisions": _list({"enum": list(FORMATS)}, "Number formats.", list(FORMATS), len(FORMATS)),
            "clocks": _list(
                {
                    "anyOf": [
                        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                        _mapping(
                            {
                                "scale": _positive("Clock over the reference clock.", 0.5, 1),
                                "voltage": _positive("Supply over that at the reference clock.", 0.8, 1),
                            },
                            ("scale", "voltage"),
                        ),
                    ]
                },
                "Clocks over the reference clock, each a number or scale and voltage.",
                [1.0, 0.5],
            ),
            "latency": _mapping(
                {
                    "source": {
                        "enum": ["measured", "modelled"],
                        "description": "Measured here, or the calibrated estimate of a device.",
                        "examples": ["measured"],
                    },
                    "samples": _whole("Inferences timed one by one in each window.", 200),
                    "warmup": _whole("Inferences before each window.", 10, 0),
                    "threads": _whole("Of PyTorch while it is timed.", 1, 1, 1024),
                    "device": _text("For modelled: a device of the catalogue.", "RaspberryPi4"),
                }
            ),
            "benchmark_repeats": _whole("Windows of timing for each variant.", 5, 1, 1000),
            "quantization_backend": {
                "enum": list(BACKENDS),
                "description": "Kernels of PyTorch for INT8: fbgemm needs AVX2, qnnpack is for Arm.",
                "examples": ["fbgemm"],
            },
            "memory_bandwidth_gb_s": _positive(
                "Of the main memory, decimal GB/s; left out, that of `latency.device`.", 12.8
            ),
            "power": _mapping(
                {
                    "static_w": _from_zero("Power that does not follow the clock, W.", 0.5),
                    "dynamic_w": {
                        "anyOf": [
                            {"type": "number", "minimum": 0, "maximum": MOST},
                            {
                                "type": "object",
                                "minProperties": 1,
                                "additionalProperties": {"type": "number", "minimum": 0, "maximum": MOST},
                                "propertyNames": {"enum": list(FORMATS)},
                            },
                        ],
                        "description": _POWER,
                        "examples": [1.5, {"fp32": 1.5, "int8-static": 1.1}],
                    },
                    "measured": _list(
                        _POINT,
                        "Instead of both: time and energy of one network at several clocks.",
                        [
                            {"clock_mhz": 168, "time_ms": 145, "energy_mj": 18},
                            {"clock_mhz": 80, "time_ms": 305, "energy_mj": 24},
                        ],
                    ),
                },
                what="Static and dynamic power, or measurements that they follow from; left out, that of the device.",
            ),
            "reserve_mb": _from_zero("Memory that something else needs: stack, runtime, buffers of a sensor.", 0.02),
            "memory_budgets_mb": _list(
                _positive("", 1.0), "Budgets that are reported, MB of 10^6 byte.", [0.5, 1, 2, 5], 100
            ),
            "active_memory_budget_mb": _positive("The budget that a variant must meet, MB of 10^6 byte.", 1.0),
            "advice": _mapping(
                {
                    "least_sram_share": _positive(
                        "Share of a device's memory that a budget should take at least.", 0.6, 1
                    ),
                    "most_sram_share": _positive("And at most, so that stack and runtime have room.", 0.8, 1),
                    "least_accepted": _from_zero("Accepted share below which budgets are called strict.", 0.5, 1),
                },
                what="From where on the report gives advice.",
            ),
            "limits": _mapping(
                {
                    "latency_ms": _positive("Median time of one inference at most, ms.", 10),
                    "energy_mj": _positive("Energy of one inference at most, mJ.", 20),
                    "accuracy": _positive("Share of the test images that must be right, 0 to 1.", 0.95, 1),
                },
                what="Other budgets that a variant must meet.",
            ),
        },
        ("network",),
    ),
}


@functools.lru_cache(maxsize=1)
def _validator() -> Any:
    return json_schema().Draft202012Validator(SCHEMA)


def faults(data: object) -> list[tuple[Place, str]]:
    """Return every fault of a configuration, each with its place.

    Parameters
    ----------
    data
        What the file says.

    Examples
    --------
    >>> faults({"network": "small-cnn", "batch": 0, "clocks": [1.0, 1]})
    [(('batch',), 'must be a whole number from 1 to 65536, got 0'),
     (('clocks', 1), 'is there twice, first as clocks.0')]
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
    place = tuple(error.absolute_path)
    if error.validator == "anyOf" and place[:1] == ("clocks",):
        yield place, f"must be a number above 0 to 1, or scale and voltage above 0 to 1, got {str(error.instance)[:60]}"
    elif error.validator == "anyOf":
        wanted = f"a number from 0, or numbers from 0 by format ({', '.join(FORMATS)})"
        yield place, f"must be {wanted}, got {str(error.instance)[:60]}"
    elif error.validator == "exclusiveMaximum":
        yield place, f"must be a share from 0 to below 1, got {error.instance!r}"
    elif error.validator == "enum" and isinstance(error.instance, str):
        known = [str(one) for one in error.validator_value]
        yield place, f"must be one of {', '.join(known)}, got {error.instance!r}.{did_you_mean(error.instance, known)}"
    else:
        yield from told(error)


def _inner(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def _twice(data: Mapping[str, Any]) -> list[tuple[Place, str]]:
    complaints: list[tuple[Place, str]] = []
    listed: list[tuple[Place, Any]] = [((key,), data.get(key)) for key in ("precisions", "clocks", "memory_budgets_mb")]
    listed += [(("pruning", method), levels) for method, levels in _inner(data, "pruning").items()]
    for place, entries in listed:
        seen: dict[str, int] = {}
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            text = repr(float(entry)) if is_number(entry) else repr(entry)
            if text in seen:
                complaints.append(
                    ((*place, index), f"is there twice, first as {'.'.join(map(str, place))}.{seen[text]}")
                )
            seen.setdefault(text, index)
    return complaints


def _together(data: Mapping[str, Any]) -> list[tuple[Place, str]]:
    """Return what does not go together."""
    complaints: list[tuple[Place, str]] = []
    latency, power = _inner(data, "latency"), _inner(data, "power")
    if latency.get("source") == "modelled" and "device" not in latency:
        complaints.append((("latency",), "`device` is missing: modelled latency is that of a device of the catalogue"))
    if latency.get("source", "measured") == "measured" and "device" in latency:
        complaints.append(
            (("latency", "device"), "goes with `source: modelled`; measured latency is that of this machine")
        )
    if not power and isinstance(latency.get("device"), str) and not _device_faults(latency["device"]):
        complaints += _power_faults(latency["device"])
    if "measured" in power:
        for key in ("static_w", "dynamic_w"):
            if key in power:
                complaints.append((("power", key), "does not go with `measured`, which it would follow from"))
        if isinstance(power["measured"], list) and len(power["measured"]) == 1:
            complaints.append(
                (("power", "measured"), "two clocks at least are needed to tell static from dynamic energy")
            )
    dynamic, formats = power.get("dynamic_w"), data.get("precisions", list(FORMATS))
    if isinstance(dynamic, Mapping) and isinstance(formats, list):
        missing = [one for one in formats if isinstance(one, str) and one in FORMATS and one not in dynamic]
        if missing:
            complaints.append(
                (("power", "dynamic_w"), f"has no power for {', '.join(missing)}, which `precisions` names")
            )
    return complaints


def _network_faults(name: str) -> list[str]:
    from mlsys.workloads import zoo
    from mlsys.workloads.resolve import unknown_network

    entry = zoo.resolve(name)
    if entry is None:
        return [str(unknown_network(name))]
    if not entry.has_graph:
        return [f"{name!r} is only counted, not drawn, and cannot be trained. Give package.module:factory"]
    return []


def _power_faults(device: str) -> list[tuple[Place, str]]:
    from mlsys.hardware import Hardware
    from mlsys.models.energy.boards import work_power

    if work_power(Hardware[device]) is not None:
        return []
    return [
        (("power",), f"is missing: no power at work is known of {device} or its class. Give static_w and dynamic_w")
    ]


def _device_faults(name: str) -> list[str]:
    from mlsys.errors import UnknownNameError
    from mlsys.hardware import Hardware

    try:
        Hardware[name]
    except UnknownNameError as error:
        return [str(error).splitlines()[0]]
    return []
