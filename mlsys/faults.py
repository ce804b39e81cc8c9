"""What is wrong with data that somebody wrote: the faults of a JSON Schema in words, each with its place."""

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
_SHOWN = 40  # faults of one file that are listed; a damaged one may have as many as lines
Place = tuple[Any, ...]


def is_number(value: object) -> bool:
    """Tell whether a value is a number; true and false are none.

    Examples
    --------
    >>> is_number(2), is_number(True)
    (True, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def short(value: object) -> str:
    """Return a value as Python writes it, 60 characters at most."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def by_line(where: object, faults: Iterable[tuple[int, str]]) -> str:
    r"""Return the faults of a file in the order of its lines, one a line; of very many the first.

    Examples
    --------
    >>> print(by_line("a.csv", [(3, "no number"), (2, "no name")]))
    a.csv, line 2: no name
    a.csv, line 3: no number
    """
    listed = sorted(faults)
    lines = [f"{where}, line {line}: {words}" for line, words in listed[:_SHOWN]]
    more = len(listed) - _SHOWN
    return "\n".join([*lines, f"{where}: and {more:,} more faults"] if more > 0 else lines)


def dotted(keys: Place) -> str:
    """Return a place as the head of a line; nothing for the whole.

    Examples
    --------
    >>> dotted(("stages", 0, "name"))
    'stages.0.name: '
    """
    return f"{'.'.join(map(str, keys))}: " if keys else ""


def numbers(value: object, keys: Place = ()) -> Iterator[tuple[Place, float]]:
    """Yield each number with a fraction in nested data, with its place."""
    if isinstance(value, float):
        yield keys, value
    elif isinstance(value, (Mapping, list)):
        for key, entry in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from numbers(entry, (*keys, key))


def endless(value: object) -> list[tuple[Place, str]]:
    """Return a fault for each number in nested data that is not finite.

    Examples
    --------
    >>> endless({"times": [1.0, float("nan")]})
    [(('times', 1), 'must be finite, got nan')]
    """
    return [(where, f"must be finite, got {number!r}") for where, number in numbers(value) if not math.isfinite(number)]


def in_order(faults: Iterable[tuple[Place, str]]) -> list[tuple[Place, str]]:
    """Return faults by their place, numbers before names, each once.

    Examples
    --------
    >>> in_order([(("b",), "is wrong"), (("a", 10), "is wrong"), (("a", 9), "is wrong"), (("b",), "is wrong")])
    [(('a', 9), 'is wrong'), (('a', 10), 'is wrong'), (('b',), 'is wrong')]
    """
    return sorted(
        dict.fromkeys(faults),
        key=lambda fault: [(isinstance(key, str), key if isinstance(key, str) else f"{key:09d}") for key in fault[0]],
    )


_ADDRESSES = "rfc3987_syntax"  # builds its parsers when it is imported, which takes a second


@functools.cache
def json_schema() -> Any:
    """Return the library ``jsonschema``, which is loaded when there is something to check.

    Where it finds rfc3987-syntax, which comes with Jupyter, it would load that for its format "iri", of which no
    schema of ours speaks; here that waits until somebody checks an address.

    Examples
    --------
    >>> json_schema().Draft202012Validator({"type": "integer"}).is_valid(3)
    True
    """
    if "jsonschema" not in sys.modules and _ADDRESSES not in sys.modules and importlib.util.find_spec(_ADDRESSES):
        later = ModuleType(_ADDRESSES)
        later.__dict__["is_valid_syntax"] = _is_address
        sys.modules[_ADDRESSES] = later
        try:
            import jsonschema
        finally:
            del sys.modules[_ADDRESSES]
    import jsonschema

    return jsonschema


def schema_file(package: str) -> Any:
    """Return what ``schema.yaml`` of a package says: ``schema``, and in ``kinds`` the parts that it is made of.

    Examples
    --------
    >>> schema_file("mlsys.edge")["schema"]["title"]
    'Configuration of mlsys edge'
    """
    return yaml_of(shipped_text(package, "schema.yaml"))


def _is_address(rule: str, text: str) -> bool:
    return bool(importlib.import_module(_ADDRESSES).is_valid_syntax(rule, text))


def told(error: Any) -> Iterator[tuple[Place, str]]:
    """Yield an error of ``jsonschema`` as faults in words."""
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
        yield where, f"must be {_wanted(rule)}, got {short(value)}"
    else:
        yield where, f"{error.message[:160]}"


def _wanted(rule: Mapping[str, Any]) -> str:
    kinds = rule.get("type", "number")
    kind = next(name for name in ([kinds] if isinstance(kinds, str) else kinds) if name != "null")
    words = {"object": "a mapping", "array": "a list", "string": "a text", "integer": "a whole number"}
    if kind not in ("number", "integer"):
        return words[kind]
    low = f" above {rule['exclusiveMinimum']}" if "exclusiveMinimum" in rule else f" from {rule.get('minimum', 0)}"
    return f"{words.get(kind, 'a number')}{low} to {rule.get('maximum', MOST):g}"
