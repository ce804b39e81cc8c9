"""Minimum and maximum of several results, with the facts of the others as compared facts."""

from collections.abc import Iterable
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.provenance.origin import Fact, Step, used_facts

__all__ = ["extremes"]


def extremes(results: Iterable[Any]) -> tuple[Any, Any]:
    """Return the minimum and maximum of quantities of the same dimension.

    Each depends on the facts of the selected quantity. The facts of the others are recorded as compared, as they
    change the result once another quantity is selected; Python's ``min`` and ``max`` do not record that.

    Parameters
    ----------
    results
        Quantities, at least one.

    Returns
    -------
    tuple
        Copies of the minimum and the maximum.

    Raises
    ------
    ArgumentError
        If ``results`` is empty.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> least, most = extremes(Hardware[name].memory_bw for name in ("T4", "A100"))
    >>> print(least, [fact.name for fact in least.origin.compared()])
    320 GB/s ['A100_80GB/memory/HBM/bandwidth']
    >>> [fact.name for fact in most.origin.sets()]
    ['A100_80GB/memory/HBM/bandwidth']
    """
    candidates = list(results)
    if not candidates:
        raise ArgumentError("extremes: `results` must contain at least one quantity, got none")
    facts = used_facts(*candidates)
    return _with_compared(min(candidates), "the least", facts), _with_compared(max(candidates), "the most", facts)


def _with_compared(result: Any, symbol: str, facts: tuple[Fact, ...]) -> Any:
    copy = result.__copy__()
    copy._origin = Step(symbol, (result,), against=facts)
    return copy
