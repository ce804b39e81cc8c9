"""The facts behind :mod:`mlsys.constants`, the published ones one topic a file in YAML.

Read them through ``mlsys.constants``, which notes the use and applies what-ifs.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

from mlsys._facts import derived
from mlsys._facts.make import Derived, Entry, fact, fact_of, quoted
from mlsys.units import Quantity

__all__ = ["DERIVED", "PUBLISHED", "Derived", "fact"]

_TOPICS = ("energy", "latency", "links", "matmul", "networks")


class _Published(Mapping[str, Quantity]):
    """The published facts by name; files are parsed on first use, and each quantity is made on its first use."""

    def __init__(self) -> None:
        self._made: dict[str, Quantity] = {}

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        named = [pair for topic in _TOPICS for pair in quoted(topic)]
        entries = dict(named)
        if len(entries) < len(named) or entries.keys() & DERIVED.keys():
            raise ValueError("mlsys._facts: a name is used twice")
        return entries

    def __getitem__(self, name: str) -> Quantity:
        if name not in self._made:
            self._made[name] = fact_of(name, self._entries[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries


DERIVED: dict[str, Derived] = {rule.name: rule for rule in derived.DERIVED}
PUBLISHED: Mapping[str, Quantity] = _Published()

if len(DERIVED) != len(derived.DERIVED):
    raise ValueError("mlsys._facts: a name is used twice")
