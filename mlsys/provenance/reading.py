"""Reading of facts: recording which are used, and what-ifs that change them."""

import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from numbers import Real
from typing import Any, TypeVar

T = TypeVar("T")

_KEPT = 8  # cached results per function and arguments, each under different what-ifs


class Seen(dict[str, Any]):
    """Facts that were read, by name.

    Attributes
    ----------
    compared
        Names of those that were only compared with others and did not set a result.
    direct
        Names of those that were read outside of any traced model.
    """

    def __init__(self) -> None:
        super().__init__()
        self.compared: set[str] = set()
        self.direct: set[str] = set()

    def note(self, name: str, quantity: Any, compared: bool, direct: bool) -> None:
        """Record a fact; once read as more than a comparison, it is no longer in ``compared``."""
        if not compared:
            self.compared.discard(name)
        elif name not in self:
            self.compared.add(name)
        if direct:
            self.direct.add(name)
        self[name] = quantity


# State of this thread or task, and of contexts copied from it. Recorders and what-ifs are never modified in place,
# so that threads do not affect each other.
_recorders: ContextVar[tuple[Seen, ...]] = ContextVar("recorders", default=())
_comparing: ContextVar[bool] = ContextVar("comparing", default=False)
_silent: ContextVar[bool] = ContextVar("silent", default=False)
_whatifs: ContextVar[dict[str, float] | None] = ContextVar("whatifs", default=None)
# Pages stay open across cells, which may run in different contexts, so that listeners receive reads of every thread.
_listeners: list[Seen] = []
_environment_factors: dict[str, float] = {}


def _factor(factor: object) -> float:
    """Return the factor of a what-if as a float, or raise if it is not a finite number above zero.

    Raises
    ------
    ValueError
        If it is not a finite number above zero.
    """
    number = math.nan if isinstance(factor, bool) or not isinstance(factor, Real) else float(factor)
    if not 0 < number < math.inf:
        raise ValueError(
            f"perturbed(): `factor` must be a finite number above zero, got {factor!r}. Write e.g. factor=1.01"
        )
    return number


def _factors_from_environment() -> None:
    """Read the what-ifs of the tests from ``MLSYS_PERTURB="name=1.01,other=0.99"``."""
    for item in filter(None, os.environ.get("MLSYS_PERTURB", "").split(",")):
        name, _, factor = item.rpartition("=")
        try:
            _environment_factors[name.strip()] = _factor(float(factor))
        except ValueError:
            raise ValueError(
                f'MLSYS_PERTURB must be like "A100_80GB/power/tdp=1.01,other=0.99", got {item!r}'
            ) from None


_factors_from_environment()


def _factors() -> dict[str, float]:
    own = _whatifs.get()
    return _environment_factors if own is None else own


def whatifs_from_outside() -> tuple[str, ...]:
    """Return the names of the facts that ``MLSYS_PERTURB`` changes."""
    return tuple(_environment_factors)


def active_whatifs() -> tuple[tuple[str, float], ...]:
    """Return the active what-ifs as pairs of fact name and factor, to be used in keys of caches.

    Examples
    --------
    >>> with perturbed("A100_80GB/power/tdp", 1.01):
    ...     active_whatifs()
    (('A100_80GB/power/tdp', 1.01),)
    >>> active_whatifs()
    ()
    """
    return tuple(sorted(_factors().items()))


def _record(name: str, quantity: Any, compared: bool = False) -> None:
    recorders = _recorders.get()
    compared = compared or _comparing.get()
    for recorder in recorders:
        recorder.note(name, quantity, compared, False)
    if _listeners and not _silent.get():
        for recorder in _listeners:
            recorder.note(name, quantity, compared, not recorders)


def _record_again(seen: Seen) -> None:
    for name, quantity in seen.items():
        _record(name, quantity, name in seen.compared)


def read(quantity: Any) -> Any:
    """Return a copy of a fact with the active what-if applied, and record its use.

    A quantity that was already returned by this function is not changed again.
    """
    fact = quantity._origin
    factors = _factors()
    factor = factors.get(fact.name) if factors else None
    if factor is not None and not quantity._handed_out:
        changed = quantity.__class__(quantity.magnitude * factor, quantity.units)
        changed._origin = fact
        quantity = changed
    else:
        quantity = quantity.__copy__()
    quantity._handed_out = True
    _record(fact.name, quantity)
    return quantity


class _Within:
    """Context manager that sets context variables; kept light, as one result may enter it thousands of times."""

    __slots__ = ("_tokens", "_values")

    def __init__(self, *values: tuple[ContextVar[Any], Any]) -> None:
        self._values = values

    def __enter__(self) -> None:
        self._tokens = [variable.set(value) for variable, value in self._values]

    def __exit__(self, *_: object) -> None:
        for (variable, _value), token in zip(self._values, self._tokens, strict=True):
            variable.reset(token)


class _Recording:
    """Context manager that collects the facts read inside its block."""

    __slots__ = ("_token",)

    def __enter__(self) -> Seen:
        seen = Seen()
        self._token = _recorders.set((*_recorders.get(), seen))
        return seen

    def __exit__(self, *_: object) -> None:
        _recorders.reset(self._token)


def comparing() -> AbstractContextManager[None]:
    """Record facts that are read inside the block as only compared, unless they are also read outside.

    For a model that compares several limits to find the binding one, or checks whether something fits; it then
    reads the binding one again, outside the block.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> with recording() as seen:
    ...     with comparing():
    ...         _ = Hardware.Cloud.A100.tdp, Hardware.Cloud.A100.memory_bw
    ...     _ = Hardware.Cloud.A100.memory_bw
    >>> sorted(seen), seen.compared
    (['A100_80GB/memory/HBM/bandwidth', 'A100_80GB/power/tdp'], {'A100_80GB/power/tdp'})
    """
    return _Within((_comparing, True))


def fact_magnitude(quantity: Any) -> float:
    """Return the magnitude of a fact as :func:`read` returns it, for the inner loops of models.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> with perturbed("A100_80GB/memory/HBM/bandwidth", 2), recording() as seen:
    ...     fact_magnitude(Hardware.Cloud.A100.level()._bandwidth)
    4078.0
    >>> list(seen)
    ['A100_80GB/memory/HBM/bandwidth']
    """
    name, factors = quantity._origin.name, _factors()
    if name in factors:
        return float(read(quantity)._magnitude)
    _record(name, quantity)  # no copy needed, as the quantity itself is not returned
    return float(quantity._magnitude)


def recording() -> AbstractContextManager[Seen]:
    """Collect every fact read inside the block, by name.

    Reads of other threads are not collected, except those started with a copy of this context
    (``contextvars.copy_context().run``).

    Examples
    --------
    >>> from mlsys import Hardware
    >>> with recording() as seen:
    ...     _ = Hardware.Cloud.A100.memory_bw
    >>> list(seen)
    ['A100_80GB/memory/HBM/bandwidth']
    """
    return _Recording()


def unrecorded() -> AbstractContextManager[None]:
    """Exclude facts that are read inside the block from every enclosing recording.

    For a figure over the whole catalogue, which depends on too many facts to list.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> with recording() as seen, unrecorded():
    ...     _ = Hardware.Cloud.A100.memory_bw
    >>> list(seen)
    []
    """
    return _Within((_recorders, ()), (_silent, True))


def as_recorded() -> AbstractContextManager[None]:
    """Read facts inside the block without the active what-ifs, and without recording their use.

    For classifying a machine, which a what-if on one of its rates must not change.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> with perturbed("A100_80GB/memory/HBM/bandwidth", 2), as_recorded():
    ...     float(Hardware.Cloud.A100.memory_bw.magnitude)
    2039.0
    """
    return _Within((_whatifs, {}), (_recorders, ()), (_silent, True))


def listen(seen: Seen) -> Callable[[], None]:
    """Collect every fact that any thread reads from now on into ``seen``; return a function that stops it.

    For a page, which stays open across cells.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> seen = Seen()
    >>> stop = listen(seen)
    >>> _ = Hardware.Cloud.A100.memory_bw
    >>> stop()
    >>> _ = Hardware.Cloud.A100.tdp
    >>> list(seen)
    ['A100_80GB/memory/HBM/bandwidth']
    """
    _listeners.append(seen)

    def stop() -> None:
        _listeners[:] = [other for other in _listeners if other is not seen]

    return stop


def remembered(function: Callable[..., T]) -> Callable[..., T]:
    """Cache a function by its arguments and by the what-ifs on the facts that it read.

    A recorder receives the facts of a cached result too. The arguments must be hashable.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> @remembered
    ... def bandwidth(name):
    ...     return float(Hardware[name].memory_bw.magnitude)
    >>> bandwidth("A100")
    2039.0
    >>> with perturbed("A100_80GB/memory/HBM/bandwidth", 2), recording() as seen:
    ...     bandwidth("A100"), bandwidth("A100")
    (4078.0, 4078.0)
    >>> list(seen)
    ['A100_80GB/memory/HBM/bandwidth']
    >>> bandwidth("A100")
    2039.0
    """
    cache: dict[tuple[Any, ...], list[tuple[T, Seen, dict[str, float]]]] = {}

    @functools.wraps(function)
    def answer(*args: Any, **named: Any) -> T:
        factors = _factors()
        cached = cache.setdefault((args, tuple(sorted(named.items()))), [])
        for result, seen, under in cached:
            # Valid if the active what-ifs on the facts that it read are the same as then.
            if all(
                factors.get(name, 1.0) == under.get(name, 1.0) for name in (under.keys() | factors.keys() & seen.keys())
            ):
                _record_again(seen)
                return result
        # Recorded alone, so that what is kept does not depend on where it was first called, for instance inside a
        # comparison; then reported to the enclosing recorders and pages, as a cached result is.
        seen = Seen()
        try:
            with _Within((_recorders, (seen,)), (_comparing, False), (_silent, True)):
                result = function(*args, **named)
        finally:
            _record_again(seen)
        if len(cached) == _KEPT:
            del cached[1]  # the first is usually the result without what-ifs
        cached.append((result, seen, {name: factor for name, factor in factors.items() if name in seen}))
        return result

    return answer


@contextlib.contextmanager
def perturbed(name: str, factor: float) -> Iterator[None]:
    """Multiply the fact ``name`` by ``factor`` wherever it is read inside the block; blocks may nest.

    Applies to this thread only.
    """
    if not isinstance(name, str):
        raise ValueError(f"perturbed(): `name` must be the name of a fact, such as 'A100_80GB/power/tdp', got {name!r}")
    factors = _factors()
    token = _whatifs.set({**factors, name: factors.get(name, 1.0) * _factor(factor)})
    try:
        yield
    finally:
        _whatifs.reset(token)
