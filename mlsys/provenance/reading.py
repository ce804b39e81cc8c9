"""Reading facts: who used them, and what if they were different."""

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

_KEPT = 8  # answers under different what-ifs, of one function for one set of arguments


class Seen(dict[str, Any]):
    """Facts that were read, by name.

    Attributes
    ----------
    compared
        Names of those that were only compared with others: they did not set what was computed.
    direct
        Names of those that were read outside of any model that tells by itself what its answers lean on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.compared: set[str] = set()
        self.direct: set[str] = set()

    def note(self, name: str, quantity: Any, compared: bool, direct: bool) -> None:
        """Note a fact; what was ever read for a sum is no longer only compared."""
        if not compared:
            self.compared.discard(name)
        elif name not in self:
            self.compared.add(name)
        if direct:
            self.direct.add(name)
        self[name] = quantity


# What holds in this thread (or task), and in a context copied from it: recorders and what-ifs are never changed in
# place, so that no thread loses or inherits what another one set.
_recorders: ContextVar[tuple[Seen, ...]] = ContextVar("recorders", default=())
_comparing: ContextVar[bool] = ContextVar("comparing", default=False)
_silent: ContextVar[bool] = ContextVar("silent", default=False)
_whatifs: ContextVar[dict[str, float] | None] = ContextVar("whatifs", default=None)
# Pages stay open from one cell to another, each of which may run in a context of its own: they hear every thread.
_listeners: list[Seen] = []
_from_outside: dict[str, float] = {}


def _factor(factor: object) -> float:
    """Return what a fact is multiplied by, once it is known to be a finite number above zero.

    Raises
    ------
    ValueError
        If it is not.
    """
    number = math.nan if isinstance(factor, bool) or not isinstance(factor, Real) else float(factor)
    if not 0 < number < math.inf:
        raise ValueError(
            f"perturbed(): `factor` must be a finite number above zero, got {factor!r}. Write e.g. factor=1.01"
        )
    return number


def _factors_from_environment() -> None:
    """Read ``MLSYS_PERTURB="name=1.01,other=0.99"``: the what-if switch of the tests."""
    for item in filter(None, os.environ.get("MLSYS_PERTURB", "").split(",")):
        name, _, factor = item.rpartition("=")
        try:
            _from_outside[name.strip()] = _factor(float(factor))
        except ValueError:
            raise ValueError(
                f'MLSYS_PERTURB must be like "A100_80GB/power/tdp=1.01,other=0.99", got {item!r}'
            ) from None


_factors_from_environment()


def _factors() -> dict[str, float]:
    own = _whatifs.get()
    return _from_outside if own is None else own


def whatifs_from_outside() -> tuple[str, ...]:
    """Return the facts that ``MLSYS_PERTURB`` changes."""
    return tuple(_from_outside)


def active_whatifs() -> tuple[tuple[str, float], ...]:
    """Return the facts that are changed here and their factors: a key for whatever is kept for later.

    Examples
    --------
    >>> with perturbed("A100_80GB/power/tdp", 1.01):
    ...     active_whatifs()
    (('A100_80GB/power/tdp', 1.01),)
    >>> active_whatifs()
    ()
    """
    return tuple(sorted(_factors().items()))


def _note(name: str, quantity: Any, compared: bool = False) -> None:
    recorders = _recorders.get()
    compared = compared or _comparing.get()
    for recorder in recorders:
        recorder.note(name, quantity, compared, False)
    if _listeners and not _silent.get():
        for recorder in _listeners:
            recorder.note(name, quantity, compared, not recorders)


def _note_again(seen: Seen) -> None:
    for name, quantity in seen.items():
        _note(name, quantity, name in seen.compared)


def read(quantity: Any) -> Any:
    """Hand out a fact: note that it was used and apply a perturbation, if one is set.

    What was handed out already comes back as it is: no what-if acts twice.
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
    _note(fact.name, quantity)
    return quantity


class _Within:
    """A block inside of which context variables have other values; many thousands are entered for one answer."""

    __slots__ = ("_tokens", "_values")

    def __init__(self, *values: tuple[ContextVar[Any], Any]) -> None:
        self._values = values

    def __enter__(self) -> None:
        self._tokens = [variable.set(value) for variable, value in self._values]

    def __exit__(self, *_: object) -> None:
        for (variable, _value), token in zip(self._values, self._tokens, strict=True):
            variable.reset(token)


class _Recording:
    """A block whose reads are collected."""

    __slots__ = ("_token",)

    def __enter__(self) -> Seen:
        seen = Seen()
        self._token = _recorders.set((*_recorders.get(), seen))
        return seen

    def __exit__(self, *_: object) -> None:
        _recorders.reset(self._token)


def comparing() -> AbstractContextManager[None]:
    """Note facts that are read inside the block as compared only, unless they are read for a sum elsewhere too.

    For a model that looks at several limits to find the one that holds, or asks whether something fits; it then reads
    what holds once more, outside the block.

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
    """Return the magnitude of a fact as :func:`read` hands it out, for the inner loops of models.

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
    _note(name, quantity)  # as it is: nobody gets hold of it
    return float(quantity._magnitude)


def recording() -> AbstractContextManager[Seen]:
    """Collect every fact read inside the block, by name.

    Facts that another thread reads are its own; one that is started with a copy of this context
    (``contextvars.copy_context().run``) is part of the block.

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
    """Leave facts that are read inside the block out of every collection around it.

    For a figure over a whole catalogue, which leans on so many facts that naming them says nothing.

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
    """Read facts inside the block as they are on record, whatever what-ifs hold around it, and out of every collection.

    For what kind of thing a machine is, which a what-if on one of its rates does not change.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> with perturbed("A100_80GB/memory/HBM/bandwidth", 2), as_recorded():
    ...     float(Hardware.Cloud.A100.memory_bw.magnitude)
    2039.0
    """
    return _Within((_whatifs, {}), (_recorders, ()), (_silent, True))


def listen(seen: Seen) -> Callable[[], None]:
    """Collect every fact that any thread reads from now on into ``seen``; return what ends it.

    For a page, which stays open from one cell to the next.

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
    """Run a function once for each set of arguments and for each what-if on a fact that it read.

    A recorder sees the facts of an answer whether it was kept or not. The arguments must be hashable.

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
    kept: dict[tuple[Any, ...], list[tuple[T, Seen, dict[str, float]]]] = {}

    @functools.wraps(function)
    def answer(*args: Any, **named: Any) -> T:
        factors = _factors()
        known = kept.setdefault((args, tuple(sorted(named.items()))), [])
        for result, seen, under in known:
            # The same, if the facts that it read are changed now as they were then.
            if all(
                factors.get(name, 1.0) == under.get(name, 1.0) for name in (under.keys() | factors.keys() & seen.keys())
            ):
                _note_again(seen)
                return result
        with recording() as seen:
            result = function(*args, **named)  # recorders around hear it, too
        if not _recorders.get():  # to pages, what is asked outside of any model was read directly
            _note_again(seen)
        if len(known) == _KEPT:
            del known[1]  # the first is the answer without what-ifs, as a rule
        known.append((result, seen, {name: factor for name, factor in factors.items() if name in seen}))
        return result

    return answer


@contextlib.contextmanager
def perturbed(name: str, factor: float) -> Iterator[None]:
    """Multiply the fact ``name`` by ``factor`` wherever it is read inside the block; blocks may nest.

    Holds in this thread; other threads go on with the facts as they are.
    """
    if not isinstance(name, str):
        raise ValueError(f"perturbed(): `name` must be that of a fact, such as 'A100_80GB/power/tdp', got {name!r}")
    factors = _factors()
    token = _whatifs.set({**factors, name: factors.get(name, 1.0) * _factor(factor)})
    try:
        yield
    finally:
        _whatifs.reset(token)
