"""A safe YAML reader that records the line number of every value.

The data are built from the stream of parser events. Duplicate keys are reported; anchors, tags, deeply
nested data and files larger than :data:`MAX_BYTES` are refused before anything is built.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from mlsys.errors import DeviceFileError, UnreadableError
from mlsys.inputs import read_bytes

MAX_BYTES = 200_000
_MAX_DEPTH = 12
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Place = tuple[Any, ...]


class Document:
    """A YAML file: its ``data``, the line number of every location in ``lines``, and its ``faults``."""

    def __init__(self, path: Path, what: str = "device", raises: type[ValueError] = DeviceFileError) -> None:
        self.path = path
        self._raises = raises
        self.lines: dict[Place, int] = {(): 1}
        self.faults: list[str] = []
        self.data: Any = None
        try:
            raw = read_bytes(path, MAX_BYTES)
        except UnreadableError as error:
            raise self._raises(str(error)) from None
        try:
            self.data = self._document(yaml.parse(raw.decode("utf-8"), Loader=_Loader))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f":{mark.line + 1}" if mark else ""
            problem = getattr(error, "problem", None) or str(error).splitlines()[0]
            raise self._raises(f"{path}{where}: not readable as YAML: {problem}") from None

    def located(self, keys: Place, text: str, event: Any = None) -> str:
        """Return a fault as ``file:line: location: text``, at the line of ``event`` or of ``keys``."""
        written = (keys[:size] for size in range(len(keys), -1, -1) if keys[:size] in self.lines)
        line = event.start_mark.line + 1 if event else self.lines[next(written)]
        where = ".".join(map(str, keys))
        return f"{self.path}:{line}: {where + ': ' if where else ''}{text}"

    def _document(self, events: Iterator[Any]) -> Any:
        """Build the data from the stream of events; unsupported YAML is refused before it is built."""
        next(events)  # stream start
        if isinstance(next(events), yaml.StreamEndEvent):
            raise self._raises(f"{self.path}: the file is empty")
        data = self._value(events, next(events), ())
        next(events)  # document end
        after = next(events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise yaml.MarkedYAMLError(problem="but found another document", problem_mark=after.start_mark)
        return data

    def _value(self, events: Iterator[Any], event: Any, keys: Place) -> Any:
        _refuse_unsupported(event, len(keys))
        if keys not in self.lines:
            self.lines[keys] = event.start_mark.line + 1
        if type(event) is yaml.ScalarEvent:
            return _scalar(event)
        if type(event) is yaml.SequenceStartEvent:
            items: list[Any] = []
            while not isinstance(item := next(events), yaml.SequenceEndEvent):
                items.append(self._value(events, item, (*keys, len(items))))
            return items
        mapping: dict[Any, Any] = {}
        while not isinstance(key_event := next(events), yaml.MappingEndEvent):
            _refuse_unsupported(key_event, len(keys))
            is_scalar = type(key_event) is yaml.ScalarEvent
            key = _scalar(key_event) if is_scalar else None
            if not is_scalar:
                _skip(events, key_event, len(keys) + 1)
            if not isinstance(key, str):
                key_text = str(key_event.value) if is_scalar else "of a list or mapping"
                self.faults.append(self.located(keys, f"key {key_text} must be text", key_event))
            elif key in mapping:
                self.faults.append(self.located((*keys, key), f"duplicate key {key!r}", key_event))
            else:
                below = (*keys, key)
                self.lines[below] = key_event.start_mark.line + 1
                mapping[key] = self._value(events, next(events), below)
                continue
            _skip(events, next(events), len(keys) + 1)
        return mapping


def _refuse_unsupported(event: Any, depth: int) -> None:
    """Refuse anchors, tags and deep nesting at the level of events: deep trees crash the parser."""
    anchor, tag = event.anchor, getattr(event, "tag", None)  # an alias has no tag
    if anchor or tag:
        problem = f"{f'anchor or alias {anchor!r}' if anchor else f'tag {tag!r}'} is not allowed"
    elif depth >= _MAX_DEPTH:
        problem = f"nested deeper than {_MAX_DEPTH} levels"
    else:
        return
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _skip(events: Iterator[Any], event: Any, depth: int) -> None:
    """Skip a value without building it."""
    _refuse_unsupported(event, depth)
    if isinstance(event, yaml.CollectionStartEvent):
        while not isinstance(inner := next(events), yaml.CollectionEndEvent):
            _skip(events, inner, depth + 1)


_RESOLVERS = {
    first: [(tag, pattern) for tag, pattern in rules if tag.rpartition(":")[2] in ("int", "float", "null")]
    for first, rules in _Loader.yaml_implicit_resolvers.items()
}


def _scalar(event: Any) -> Any:
    """Return the value of a scalar: plain numbers and null are converted, everything else is a string."""
    text: str = event.value
    if not event.implicit[0]:
        return text
    rules = _RESOLVERS.get(text[:1])
    if not rules:
        return text
    kind = next((tag for tag, pattern in rules if pattern.match(text)), "")
    if kind.endswith("null"):
        return None
    try:
        return int(text) if kind.endswith("int") else float(text) if kind.endswith("float") else text
    except ValueError:
        return text


def read_faultless(
    path: Path, kind: str, error: type[ValueError], faults: Callable[[Any], Iterable[tuple[Place, str]]]
) -> Any:
    """Return the content of a YAML file, or raise an error that lists every fault with its line and location.

    Parameters
    ----------
    path
        The file; JSON is accepted too, as a subset of YAML.
    kind
        Kind of file, for messages.
    error
        Exception class to raise if the file cannot be read or has faults.
    faults
        Function that returns the faults of the data, each as a location and a message.
    """
    document = Document(path, kind, error)
    problems = [*document.faults, *(document.located(*fault) for fault in faults(document.data))]
    if problems:
        raise error("\n".join(problems))
    return document.data
