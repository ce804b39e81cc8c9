"""A generated YAML file with one entry per line, each parsed on first use."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from mlsys.inputs import read_text, yaml_of

V = TypeVar("V")


class EntriesByLine(Mapping[str, V]):
    """The entries of a file, by name; parsed lazily, since an estimate needs only a few of hundreds.

    Parameters
    ----------
    path
        A file with lines such as ``name: {a: 1, b: 2}`` and comments; a missing file has no entries.
    made
        Function that builds an entry from its plain data.

    Examples
    --------
    >>> from mlsys.models.estimate.library import machines
    >>> machines()["ncnn network on CPU"]["RaspberryPi5"] > 0
    True
    """

    def __init__(self, path: Path, made: Callable[[Any], V]) -> None:
        lines = read_text(path).splitlines() if path.exists() else []
        pairs = (line.partition(": ") for line in lines if line and not line.startswith("#"))
        self._texts = {name: text for name, _, text in pairs}
        self._made = made
        self._entries: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        if name not in self._entries:
            self._entries[name] = self._made(yaml_of(self._texts[name]))
        return self._entries[name]

    def __contains__(self, name: object) -> bool:  # of Mapping, it would parse the entry
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


class WithAliases(Mapping[str, V]):
    """Entries with aliases.

    Parameters
    ----------
    entries
        Entries by name.
    aliases
        Aliases, each with the name it stands for; an alias that is itself an entry, or stands for none, is ignored.

    Examples
    --------
    >>> both = WithAliases({"a": 1, "b": 2}, {"first": "a", "b": "a", "third": "c"})
    >>> dict(both)
    {'a': 1, 'b': 2, 'first': 1}
    """

    def __init__(self, entries: Mapping[str, V], aliases: Mapping[str, str]) -> None:
        self._entries = entries
        self._aliases = {name: own for name, own in aliases.items() if own in entries and name not in entries}

    def __getitem__(self, name: str) -> V:
        return self._entries[self._aliases.get(name, name)]

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._aliases

    def __iter__(self) -> Iterator[str]:
        yield from self._entries
        yield from self._aliases

    def __len__(self) -> int:
        return len(self._entries) + len(self._aliases)
