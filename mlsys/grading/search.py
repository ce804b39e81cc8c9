"""The search for hand-ins in a notebook: in metadata, in outputs, in cells that were retyped."""

import base64
import html
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mlsys.grading.folder import UngradableFile
from mlsys.labs.handin import FORMAT

__all__ = ["candidates", "pairs_once", "refuse_constant"]

_MOST_CANDIDATES = 50
_DEEPEST = 60
_DATA = re.compile(r"data:application/json;base64,([A-Za-z0-9+/]{40,}={0,2})")


def pairs_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dictionary; refuse a key that stands twice."""
    record = dict(pairs)
    if len(record) < len(pairs):
        raise UngradableFile(
            "a key stands twice in one mapping, so that its meaning is unclear. Hand in what the lab writes"
        )
    return record


def refuse_constant(constant: str) -> float:
    """Refuse NaN and the infinities, which Python's JSON has and JSON has not."""
    raise ValueError(f"{constant} is no number")


def candidates(notebook: Any) -> Iterator[Any]:
    """Yield every hand-in in a notebook: in metadata, in outputs, in a retyped cell; None for a damaged one."""
    left = [_MOST_CANDIDATES]
    stack: list[tuple[Any, int]] = [(notebook, 0)]
    while stack:
        value, depth = stack.pop()
        if isinstance(value, Mapping):
            if value.get("format") == FORMAT:
                yield _plain(value)
                continue
            if depth < _DEEPEST:
                stack.extend((each, depth + 1) for each in value.values())
        elif isinstance(value, list):
            if value and all(isinstance(each, str) for each in value):
                stack.append(("".join(value), depth + 1))  # lines, as notebooks keep them
            elif depth < _DEEPEST:
                stack.extend((each, depth + 1) for each in value)
        elif isinstance(value, str) and (FORMAT in value or _DATA.search(value)):
            yield from _in_text(value, left)


def _in_text(text: str, left: list[int]) -> Iterator[Any]:
    if "&quot;" in text or "&#34;" in text:
        text = html.unescape(text)
    text += "".join(_decoded(match[1]) for match in itertools.islice(_DATA.finditer(text), _MOST_CANDIDATES))
    if f'"{FORMAT}"' not in text:
        return
    decoder = json.JSONDecoder(parse_constant=refuse_constant, object_pairs_hook=pairs_once)
    at, any_found = text.find("{"), False
    while at >= 0 and left[0] > 0:
        left[0] -= 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        if isinstance(value, dict) and value.get("format") == FORMAT:
            any_found = True
            yield value
        at = text.find("{", end)
    if not any_found and re.search(rf'"format"\s*:\s*"{FORMAT}"', text):
        yield None


def _decoded(data: str) -> str:
    """Return the text of a data address, which the download link of a hand-in is."""
    try:
        return "\n" + base64.b64decode(data, validate=True).decode("utf-8")
    except (ValueError, UnicodeDecodeError):
        return ""


def _plain(value: Any, depth: int = 0) -> Any:
    """Return nested data of nbformat as plain dictionaries and lists."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(each, depth + 1) for key, each in value.items()}
    return [_plain(each, depth + 1) for each in value] if isinstance(value, list) else value
