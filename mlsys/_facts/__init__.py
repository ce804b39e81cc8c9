"""The facts behind :mod:`mlsys.constants`, one topic a file.

Read them through ``mlsys.constants``, which notes the use and applies what-ifs.
"""

from __future__ import annotations

from mlsys._facts import energy, latency, links, networks
from mlsys._facts.make import Derived, fact
from mlsys.units import Quantity

__all__ = ["DERIVED", "PUBLISHED", "Derived", "fact"]

_TOPICS = (energy, latency, links, networks)

PUBLISHED: dict[str, Quantity] = {quantity._origin.name: quantity for topic in _TOPICS for quantity in topic.FACTS}
DERIVED: dict[str, Derived] = {rule.name: rule for topic in _TOPICS for rule in topic.DERIVED}

if len(PUBLISHED) + len(DERIVED) != sum(len(topic.FACTS) + len(topic.DERIVED) for topic in _TOPICS):
    raise ValueError("mlsys._facts: a name is used twice")
