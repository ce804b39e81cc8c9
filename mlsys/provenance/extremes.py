"""The least and the most of several results, with the facts of those that lost."""

from collections.abc import Iterable
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.provenance.origin import Fact, Step, used_facts

__all__ = ["extremes"]


def extremes(results: Iterable[Any]) -> tuple[Any, Any]:
    """Return the least and the most of quantities of one dimension.

    Each leans on the facts of the one that it is. Those of the others are compared: they move it once they win, which
    Python's own ``min`` and ``max`` do not know.

    Parameters
    ----------
    results
        Quantities, at least one.

    Returns
    -------
    tuple
        Copies of the least and of the most.

    Raises
    ------
    ArgumentError
        If there is none.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> least, most = extremes(Hardware[name].memory_bw for name in ("T4", "A100"))
    >>> print(least, [fact.name for fact in least.origin.compared()])
    320 GB/s ['A100_80GB/memory/HBM/bandwidth']
    >>> [fact.name for fact in most.origin.sets()]
    ['A100_80GB/memory/HBM/bandwidth']
    """
    every = list(results)
    if not every:
        raise ArgumentError("extremes: must be given at least one result, got none")
    facts = used_facts(*every)
    return _marked(min(every), "the least", facts), _marked(max(every), "the most", facts)


def _marked(result: Any, words: str, facts: tuple[Fact, ...]) -> Any:
    copy = result.__copy__()
    copy._origin = Step(words, (result,), against=facts)
    return copy
