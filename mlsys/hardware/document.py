"""A YAML file as plain data that knows the line of everything in it.

The data are built from the stream of events: duplicate keys are noted, and anchors, tags, deep
trees and files larger than :data:`MAX_BYTES` are refused before anything is built.
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
    """A YAML file: its ``data``, the ``lines`` of every place, and the ``faults`` of the text."""

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
        """Return one fault as ``file:line: place: text``, at ``event`` or where ``keys`` was first written."""
        written = (keys[:size] for size in range(len(keys), -1, -1) if keys[:size] in self.lines)
        line = event.start_mark.line + 1 if event else self.lines[next(written)]
        where = ".".join(map(str, keys))
        return f"{self.path}:{line}: {where + ': ' if where else ''}{text}"

    def _document(self, events: Iterator[Any]) -> Any:
        """Build the data from the stream of events: what no device needs is refused before it is built."""
        next(events)  # the stream begins
        if isinstance(next(events), yaml.StreamEndEvent):
            raise self._raises(f"{self.path}: the file is empty")
        data = self._value(events, next(events), ())
        next(events)  # the document ends
        after = next(events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise yaml.MarkedYAMLError(problem="but found another document", problem_mark=after.start_mark)
        return data

    def _value(self, events: Iterator[Any], event: Any, keys: Place) -> Any:
        _refuse_what_no_device_needs(event, len(keys))
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
            _refuse_what_no_device_needs(key_event, len(keys))
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


def _refuse_what_no_device_needs(event: Any, depth: int) -> None:
    """Refuse anchors, tags and depth while the text is still a stream: deep trees crash the parser."""
    anchor, tag = event.anchor, getattr(event, "tag", None)  # an alias has no tag
    if anchor or tag:
        problem = f"{f'anchor or alias {anchor!r}' if anchor else f'tag {tag!r}'} is not allowed"
    elif depth >= _MAX_DEPTH:
        problem = f"nested deeper than {_MAX_DEPTH} levels"
    else:
        return
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _skip(events: Iterator[Any], event: Any, depth: int) -> None:
    """Pass over a value without building it."""
    _refuse_what_no_device_needs(event, depth)
    if isinstance(event, yaml.CollectionStartEvent):
        while not isinstance(inner := next(events), yaml.CollectionEndEvent):
            _skip(events, inner, depth + 1)


_RESOLVERS = {
    first: [(tag, pattern) for tag, pattern in rules if tag.rpartition(":")[2] in ("int", "float", "null")]
    for first, rules in _Loader.yaml_implicit_resolvers.items()
}


def _scalar(event: Any) -> Any:
    """Return a plain number or null as what it is, and everything else as text."""
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
    """Return what a YAML file says, or raise with every fault of it, each with its line and place.

    Parameters
    ----------
    path
        The file; JSON is YAML, too.
    kind
        What the file is, for messages.
    error
        What is raised where it cannot be read or has faults.
    faults
        Finds the faults of what it says.
    """
    document = Document(path, kind, error)
    problems = [*document.faults, *(document.located(*fault) for fault in faults(document.data))]
    if problems:
        raise error("\n".join(problems))
    return document.data
