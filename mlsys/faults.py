"""Error messages for user-written data: JSON Schema violations in plain words, each with its location."""

import functools
import importlib.util
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from mlsys.errors import did_you_mean
from mlsys.inputs import shipped_text, yaml_of

MOST = 1e12
_SHOWN = 40  # faults listed per file; a damaged file may have one per line
Place = tuple[Any, ...]


def is_number(value: object) -> bool:
    """Return whether a value is a number; booleans are not.

    Examples
    --------
    >>> is_number(2), is_number(True)
    (True, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def short(value: object) -> str:
    """Return the ``repr`` of a value, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def by_line(where: object, faults: Iterable[tuple[int, str]]) -> str:
    r"""Return the faults of a file as text, sorted by line number; a long list is cut.

    Examples
    --------
    >>> print(by_line("a.csv", [(3, "value is missing"), (2, "name is missing")]))
    a.csv, line 2: name is missing
    a.csv, line 3: value is missing
    """
    listed = sorted(faults)
    lines = [f"{where}, line {line}: {message}" for line, message in listed[:_SHOWN]]
    more = len(listed) - _SHOWN
    return "\n".join([*lines, f"{where}: and {more:,} more faults"] if more > 0 else lines)


def dotted(keys: Place) -> str:
    """Return a location as the prefix of a message; empty for the whole document.

    Examples
    --------
    >>> dotted(("stages", 0, "name"))
    'stages.0.name: '
    """
    return f"{'.'.join(map(str, keys))}: " if keys else ""


def numbers(value: object, keys: Place = ()) -> Iterator[tuple[Place, float]]:
    """Yield each float in nested data, with its location."""
    if isinstance(value, float):
        yield keys, value
    elif isinstance(value, (Mapping, list)):
        for key, entry in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from numbers(entry, (*keys, key))


def endless(value: object) -> list[tuple[Place, str]]:
    """Return a fault for each number in nested data that is infinite or NaN.

    Examples
    --------
    >>> endless({"times": [1.0, float("nan")]})
    [(('times', 1), 'must be finite, got nan')]
    """
    return [(where, f"must be finite, got {number!r}") for where, number in numbers(value) if not math.isfinite(number)]


def in_order(faults: Iterable[tuple[Place, str]]) -> list[tuple[Place, str]]:
    """Return faults sorted by location, list indices before keys, without duplicates.

    Examples
    --------
    >>> in_order([(("b",), "is wrong"), (("a", 10), "is wrong"), (("a", 9), "is wrong"), (("b",), "is wrong")])
    [(('a', 9), 'is wrong'), (('a', 10), 'is wrong'), (('b',), 'is wrong')]
    """
    return sorted(
        dict.fromkeys(faults),
        key=lambda fault: [(isinstance(key, str), key if isinstance(key, str) else f"{key:09d}") for key in fault[0]],
    )


_IRI_PARSER = "rfc3987_syntax"  # takes a second to import, because it builds its parsers then


@functools.cache
def json_schema() -> Any:
    """Return the module ``jsonschema``, imported on first use.

    If rfc3987-syntax is installed, which comes with Jupyter, ``jsonschema`` would import it for its format "iri",
    which no schema of mlsys uses. Here that import is deferred until an IRI is checked.

    Examples
    --------
    >>> json_schema().Draft202012Validator({"type": "integer"}).is_valid(3)
    True
    """
    if "jsonschema" not in sys.modules and _IRI_PARSER not in sys.modules and importlib.util.find_spec(_IRI_PARSER):
        deferred = ModuleType(_IRI_PARSER)
        deferred.__dict__["is_valid_syntax"] = _is_iri
        sys.modules[_IRI_PARSER] = deferred
        try:
            import jsonschema
        finally:
            del sys.modules[_IRI_PARSER]
    import jsonschema

    return jsonschema


def schema_file(package: str) -> Any:
    """Return the content of the ``schema.yaml`` of a package: ``schema``, and in ``kinds`` its definitions.

    Examples
    --------
    >>> schema_file("mlsys.edge")["schema"]["title"]
    'Configuration of mlsys edge'
    """
    return yaml_of(shipped_text(package, "schema.yaml"))


def _is_iri(rule: str, text: str) -> bool:
    return bool(importlib.import_module(_IRI_PARSER).is_valid_syntax(rule, text))


def located_faults(error: Any) -> Iterator[tuple[Place, str]]:
    """Yield the faults behind an error of ``jsonschema``, each as a location and a message."""
    where, value, rule = tuple(error.absolute_path), error.instance, error.schema
    if error.validator == "additionalProperties":
        known = rule["properties"]
        for key in value:
            if key not in known:
                hint = did_you_mean(str(key), known)
                yield (*where, key), f"unknown key {key!r}.{hint} Known: {', '.join(known)}"
    elif error.validator == "required":
        missing = [key for key in error.validator_value if key not in value and f"'{key}'" in error.message]
        for key in missing[:1]:
            yield where, f"`{key}` is missing"
    elif error.validator in ("minItems", "minProperties", "minLength"):
        yield where, "must not be empty"
    elif error.validator == "enum":
        yield where, f"must be one of {', '.join(map(str, error.validator_value))}, got {short(value)}"
    elif error.validator in ("type", "minimum", "exclusiveMinimum", "maximum"):
        yield where, f"must be {_expected(rule)}, got {short(value)}"
    else:
        yield where, f"{error.message[:160]}"


def _expected(rule: Mapping[str, Any]) -> str:
    kinds = rule.get("type", "number")
    kind = next(each for each in ([kinds] if isinstance(kinds, str) else kinds) if each != "null")
    names = {"object": "a mapping", "array": "a list", "string": "a string", "integer": "a whole number"}
    if kind not in ("number", "integer"):
        return names[kind]
    low = f" above {rule['exclusiveMinimum']}" if "exclusiveMinimum" in rule else f" from {rule.get('minimum', 0)}"
    return f"{names.get(kind, 'a number')}{low} to {rule.get('maximum', MOST):g}"
