"""Schema of a sweep specification, and validation with all errors reported."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.faults import Place, json_schema, located_faults, schema_file
from mlsys.precision import PRECISIONS
from mlsys.sweep.devices import matching

CLASSES = ("Cloud", "CPU", "Edge", "Mobile", "Tiny", "Generic", "User")
_KINDS = ("GPU", "TPU", "NPU", "CPU", "MCU", "SoC")


def listed(value: object) -> list[Any]:
    """Return a list unchanged, and a single value as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


@functools.cache
def _validators() -> tuple[Any, Any, Any]:
    rules, checker = schema_file("mlsys.sweep"), json_schema().Draft202012Validator
    return checker(rules["schema"]), checker(rules["kinds"]["model"]), checker(rules["kinds"]["filter"])


def spec_faults(data: object, folder: Path) -> list[tuple[Place, str]]:
    """Return every error of a specification, each with its place.

    Parameters
    ----------
    data
        Contents of the YAML file.
    folder
        Base folder of relative paths of models.
    """
    if not isinstance(data, Mapping):
        return [((), "a specification of a sweep is a mapping of keys to values")]
    whole, model, device = _validators()
    complaints = [fault for error in whole.iter_errors(data) for fault in faults_of(error)]
    for keys, entry in entries_of(data, "models"):
        if isinstance(entry, Mapping):
            complaints += [
                ((*keys, *rest), text) for error in model.iter_errors(entry) for rest, text in faults_of(error)
            ]
        elif not isinstance(entry, str):
            complaints.append((keys, f"a model is a name or a mapping with `model`, got {entry!r}"))
        name = entry.get("model") if isinstance(entry, Mapping) else entry
        if isinstance(name, str):
            complaints += [(keys, text) for text in _model_faults(name, folder)]
    for keys, entry in entries_of(data, "devices"):
        if isinstance(entry, Mapping):
            of_form = [((*keys, *rest), text) for error in device.iter_errors(entry) for rest, text in faults_of(error)]
            complaints += of_form or [(keys, text) for text in _filter_faults(entry)]
        elif isinstance(entry, str):
            complaints += [(keys, text) for text in _device_faults(entry)]
        else:
            complaints.append((keys, f"a device is a name or a mapping of criteria, got {entry!r}"))
    complaints += [
        ((*keys,), f"unknown precision {entry!r}.{did_you_mean(entry, PRECISIONS)} Known: {', '.join(PRECISIONS)}")
        for keys, entry in entries_of(data, "precisions")
        if isinstance(entry, str) and entry.lower() not in PRECISIONS
    ]
    complaints += [fault for keys, entry in entries_of(data, "settings") for fault in _setting_faults(keys, entry)]
    for key in ("batches", "precisions", "fusion", "settings"):
        complaints += repeated(key, data.get(key))
    return complaints


def entries_of(data: Mapping[str, Any], key: str) -> Iterator[tuple[Place, Any]]:
    """Yield the entries of an axis, each with its place."""
    value = data.get(key)
    if isinstance(value, (list, tuple)):
        for index, entry in enumerate(value):
            yield (key, index), entry
    elif value is not None:
        yield (key,), value


def repeated(key: str, value: Any) -> list[tuple[Place, str]]:
    """Return a fault for each entry of an axis that stands there twice."""
    entries = [str(entry).lower() for entry in listed(value)]
    return [
        ((key, index), f"duplicate {entry!r}")
        for index, entry in enumerate(entries)
        if entry in entries[:index] and isinstance(value, (list, tuple))
    ]


def faults_of(error: Any) -> list[tuple[Place, str]]:
    """Return an error of the schema in words."""
    keys = tuple(error.absolute_path)
    if error.validator == "anyOf":
        single = error.validator_value[0]
        return [(keys, text) for text in _wanted(error.instance, single)]
    return list(located_faults(error))


def _wanted(value: Any, single: Mapping[str, Any]) -> list[str]:
    if value == []:
        return ["the list is empty"]
    what = (
        f"one of {', '.join(map(repr, single['enum']))}"
        if "enum" in single
        else f"a whole number from {single['minimum']} to {single['maximum']}"
        if single.get("type") == "integer"
        else "a name"
    )
    return [f"must be {what}, or a list of such; got {value!r}"]


def _model_faults(name: str, folder: Path) -> list[str]:
    from mlsys.workloads import zoo

    path = folder / name
    if path.suffix in (".onnx", ".json"):
        return [] if path.is_file() else [f"there is no file {name!r}"]
    if (path / "config.json").is_file():
        return []
    if ":" in name:
        return _factory_faults(name)
    if zoo.resolve(name) is not None:
        return []
    return [
        f"unknown network {name!r}.{did_you_mean(name, zoo.networks())} Give a name (as for `mlsys flops`), "
        "package.module:factory, a config.json or a .onnx file"
    ]


def _factory_faults(name: str) -> list[str]:
    import sys
    from importlib.util import find_spec

    home, _, factory = name.partition(":")
    if not factory.isidentifier():
        return [f"{name!r} must be package.module:factory"]
    sys.path.insert(0, "")
    try:
        known = find_spec(home) is not None
    except (ImportError, ValueError):
        known = False
    finally:
        sys.path.remove("")
    return [] if known else [f"{name!r}: there is no module {home!r}. Run the command in the folder of that module"]


def _device_faults(name: str) -> list[str]:
    from mlsys.hardware import Hardware

    if name.lower() == "all":
        return []
    try:
        Hardware.class_of(name)
    except UnknownNameError:
        known = [word for group in Hardware.groups for word in dir(group)]
        return [f"unknown device {name!r}.{did_you_mean(name, known)} `mlsys devices` lists all"]
    return []


def _filter_faults(entry: Mapping[str, Any]) -> list[str]:
    for key, known in (("class", CLASSES), ("kind", _KINDS), ("precision", tuple(PRECISIONS))):
        given = entry.get(key)
        if given is not None and given.lower() not in {name.lower() for name in known}:
            return [f"unknown {key} {given!r}.{did_you_mean(given, known)} Known: {', '.join(known)}"]
    try:
        return [] if matching(entry) else ["no device meets these criteria"]
    except ValueError as error:
        return [str(error)]


def _setting_faults(keys: Place, entry: Any) -> list[tuple[Place, str]]:
    from mlsys.models.estimate.library import fitted
    from mlsys.models.software import SoftwareStack

    if not isinstance(entry, str):
        return []
    stacks = SoftwareStack.known()
    software = sorted({str(replace(stack, machine="", **left)) for stack in stacks for left in ({}, {"work": ""})})
    if entry in fitted() or entry in software:
        return []
    return [(keys, f"setting {entry!r} was never fitted.{did_you_mean(entry, (*fitted(), *software))}")]
