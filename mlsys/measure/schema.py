"""Public format of a log: JSON lines, one kind of record per line, each with a schema."""

import functools
import json
from typing import Any

from mlsys.faults import dotted, endless, json_schema, located_faults, schema_file, short

VERSION = "mlsys-explain/1"
"""Format version in the first line of every log; readers of another version report it."""

Fault = tuple[int, str]
SCHEMA: dict[str, dict[str, Any]] = schema_file("mlsys.measure")["schema"]
"""A JSON Schema for each kind of line: one header, then cold starts, samples and layers, then the end."""


@functools.cache
def _validators() -> dict[str, Any]:
    return {kind: json_schema().Draft202012Validator(rule) for kind, rule in SCHEMA.items()}


class _TwiceError(ValueError):
    """A duplicate key in one record."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _TwiceError(f"duplicate key {twice!r}")
    return record


def line_faults(number: int, text: str) -> tuple[dict[str, Any] | None, list[Fault]]:
    """Return the record of one line, or None, and all of its errors with the line number."""
    try:
        record = json.loads(text, object_pairs_hook=_once)
    except _TwiceError as error:
        return None, [(number, str(error))]
    except (ValueError, RecursionError) as error:
        return None, [(number, f"is not JSON: {str(error)[:100]}")]
    kind = record.get("kind") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in SCHEMA:
        return None, [(number, f"`kind` must be one of {', '.join(SCHEMA)}, got {short(kind)}")]
    problems = [fault for error in _validators()[kind].iter_errors(record) for fault in located_faults(error)]
    faults = [(number, f"{dotted(where)}{words}") for where, words in problems + endless(record)]
    return (None if faults else record), faults


def whole_faults(records: list[tuple[int, dict[str, Any]]], last: int, *, broken: bool) -> list[Fault]:
    """Return errors between lines: order, counts, names; ``broken`` says that a line was already rejected."""
    faults: list[Fault] = []
    kinds = [record["kind"] for _, record in records]
    headers = [number for number, record in records if record["kind"] == "header"]
    if (headers or not broken) and headers[:1] != [1]:
        faults.append((1, "the first line must be the header"))
    faults += [(number, "a second header") for number in headers[1:]]
    header = next((record for _, record in records if record["kind"] == "header"), None)
    if header is not None and header["schema"] != VERSION:
        faults.append((headers[0], f"schema: must be {VERSION!r}, got {short(header['schema'])}"))
    if not broken and "end" not in kinds:
        faults.append((last, "the log is truncated: its last line is not the record of kind 'end'"))
    names = [layer["name"] for layer in header["layers"]] if header else []
    faults += [
        (headers[0], f"layers.{index}.name: duplicate {name!r}")
        for index, name in enumerate(names)
        if name in names[:index]
    ]
    seen: set[tuple[Any, ...]] = set()
    for number, record in records:
        if record["kind"] == "end":
            if number != last:
                faults.append((number, "there are lines after the end"))
            if not broken and record["lines"] != number:
                faults.append((number, f"lines: the log claims {record['lines']} lines but has {number}"))
            continue
        key = (record["kind"], record.get("run"), record.get("iteration"), record.get("layer"))
        if record["kind"] != "header" and key in seen:
            words = f"duplicate {record['kind']} of run {record.get('run')}, iteration {record.get('iteration')}"
            faults.append((number, words))
        seen.add(key)
        if header is not None and record["kind"] == "layer" and record["layer"] not in names:
            faults.append((number, f"layer: the header has no layer {record['layer']!r}"))
        if header is not None and "run" in record and record["run"] >= header["protocol"]["runs"]:
            faults.append((number, f"run: must be below the {header['protocol']['runs']} runs of the protocol"))
    if not broken and "sample" not in kinds:
        faults.append((last, "there are no samples"))
    return faults
