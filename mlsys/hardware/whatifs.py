"""Validation of the environment variable ``MLSYS_PERTURB``, which changes facts: unknown names are refused."""

from collections.abc import Iterable

from mlsys._facts import DERIVED, PUBLISHED
from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.faults import short
from mlsys.hardware.catalogue import Hardware
from mlsys.hardware.system import systems


def _known_facts(name: str) -> Iterable[str]:
    """Return the names of all facts of the device or system that ``name`` refers to, or of all constants."""
    owner, slash, _ = name.partition("/")
    if not slash:
        return PUBLISHED.keys() | DERIVED.keys()
    group = Hardware._group_of(owner)
    if group is None and owner in systems:
        return sorted(fact.name for quantity in systems[owner].recorded() for fact in quantity.facts)
    return (
        sorted(fact.name for quantity in group[owner].recorded() for fact in quantity.facts)
        if group is not None
        else ()
    )


def refuse_unknown_facts(names: Iterable[str]) -> None:
    """Raise if a name in ``MLSYS_PERTURB`` is not a fact, as the change would silently have no effect.

    Raises
    ------
    UnknownNameError
        If there is no fact of that name.

    Examples
    --------
    >>> refuse_unknown_facts(["A100_80GB/memory/HBM/bandwith"])
    Traceback (most recent call last):
        ...
    mlsys.errors.UnknownNameError: MLSYS_PERTURB: there is no fact ... Did you mean 'A100_80GB/memory/HBM/bandwidth'?
    """
    for name in names:
        known = _known_facts(name)
        if name in known:
            continue
        _, slash, field = name.partition("/")
        devices = [] if not slash or known else [each for group in Hardware.groups for each in group._ids]
        devices = [f"{each}/{field}" for each in devices]
        hint = did_you_mean(name, known or devices)
        raise UnknownNameError(f"MLSYS_PERTURB: there is no fact {short(name)} to change.{hint}")
