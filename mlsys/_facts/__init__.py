"""The facts behind :mod:`mlsys.constants`, the published ones one topic a file in YAML.

Read them through ``mlsys.constants``, which notes the use and applies what-ifs.
"""

from mlsys._facts import derived
from mlsys._facts.make import Derived, fact, quoted
from mlsys.units import Quantity

__all__ = ["DERIVED", "PUBLISHED", "Derived", "fact"]

_TOPICS = ("energy", "latency", "links", "matmul", "networks")
_FACTS = [named for topic in _TOPICS for named in quoted(topic)]

PUBLISHED: dict[str, Quantity] = dict(_FACTS)
DERIVED: dict[str, Derived] = {rule.name: rule for rule in derived.DERIVED}

if len(PUBLISHED) + len(DERIVED) != len(_FACTS) + len(derived.DERIVED) or PUBLISHED.keys() & DERIVED.keys():
    raise ValueError("mlsys._facts: a name is used twice")
