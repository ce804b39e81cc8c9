"""Tracing of models: results that record the model, its arguments and the facts that it read.

A model computes with plain floats. :func:`traced` records the facts that are read while it runs, and
gives its result, and every quantity in it without an origin, a step that names them.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ParamSpec, TypeVar

from mlsys.frozen import FrozenDict
from mlsys.provenance.origin import Fact, Origin, Step, origin_of
from mlsys.provenance.reading import recording

P = ParamSpec("P")
T = TypeVar("T")

_FEW = 4
_PLAIN = frozenset({int, float, str, bool, type(None)})  # types without name or origin
_LONGEST = 60  # characters of a printed argument


def label_of(value: Any) -> str:
    """Return a short label of an argument: its name, its value, or its type.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> label_of(Hardware.Cloud.T4), label_of(3), label_of((1, 2)), label_of(len)
    ('NVIDIA T4', '3', '(1, 2)', 'len')
    """
    if type(value) in _PLAIN:
        return str(value)
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    if isinstance(name, str) and name:
        return name
    if hasattr(value, "magnitude"):
        return "an array" if getattr(value.magnitude, "ndim", 0) else str(value)
    if isinstance(value, (int, float, str, bool, type(None))):
        return str(value)
    short = isinstance(value, (tuple, list)) and len(value) <= _FEW
    if short and all(isinstance(item, (int, float, str)) for item in value):
        return str(value)
    if isinstance(value, (tuple, list, Mapping)):
        return f"{len(value)} values"
    if getattr(value, "size", 0) > _LONGEST:  # an array, whose repr would be slow
        return type(value).__name__
    text = repr(value)
    return text if len(text) <= _LONGEST and " at 0x" not in text else type(value).__name__


class TracedInt(int):
    """An int that records its origin; arithmetic on it gives plain numbers."""

    _origin: Origin


class TracedFloat(float):
    """A float that records its origin; arithmetic on it gives plain numbers."""

    _origin: Origin


def traced(model: Callable[P, T]) -> Callable[P, T]:
    """Wrap a model so that its result records the model, its arguments and the facts read meanwhile.

    Parameters
    ----------
    model
        A function that returns a dataclass, a quantity, or a container of them.

    Returns
    -------
    callable
        The wrapped function. Quantities in its result that have an origin keep it.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.units import Q_
    >>> @traced
    ... def drain(device, share):
    ...     return Q_(share * device.memory_capacity.m_as("GB") / device.memory_bw.m_as("GB/s"), "s")
    >>> drain(Hardware.Cloud.A100, 0.5).origin.expression()
    'drain(device=NVIDIA A100 80 GB SXM4, share=0.5)'
    >>> [fact.name for fact in drain(Hardware.Cloud.A100, 0.5).facts]
    ['A100_80GB/memory/HBM/capacity', 'A100_80GB/memory/HBM/bandwidth']
    """
    signature = inspect.signature(model)

    @functools.wraps(model)
    def answer(*args: P.args, **named: P.kwargs) -> T:
        with recording() as seen:
            result = model(*args, **named)
        bound = signature.bind(*args, **named).arguments
        given = {name: value for name, value in bound.items() if value is not None}
        labels = tuple(label_of(value) for value in given.values())
        arguments = tuple(given.values())
        origins = [*map(origin_of, seen.values()), *origins_within(arguments)]
        step = Step(model.__name__, labels, tuple(given))  # its facts are added below
        own = _Owned(arguments, result if origin_of(result) is not None else None)
        result = _marked(result, step, ".".join(model.__module__.split(".")[:2]), own)
        incomplete = own.without or not own.origins or (own.plain and not is_dataclass(result))
        # If every number in the result has an origin, all other facts that were read were only compared.
        compared = seen.compared if incomplete else seen.keys() - {fact.name for fact in own.sets()}
        # Thousands of parts may share one step.
        each_once = {id(origin): origin for origin in origins if origin is not None}.values()
        sets = dict.fromkeys(
            fact for origin in each_once for fact in origin.sets() if fact is not origin or fact.name not in compared
        )
        facts = dict.fromkeys(fact for origin in each_once for fact in origin.facts())
        step._known.append((tuple(sets), tuple(fact for fact in facts if fact not in sets)))
        return result

    return answer


class _Owned:
    """Origins that the quantities of a result already have, whether any lacks one, and the model's arguments."""

    def __init__(self, arguments: tuple[Any, ...], traced_result: Any = None) -> None:
        self.traced_result = traced_result  # a result to which its model already gave an origin
        lists = (entry for given in arguments if isinstance(given, (tuple, list)) for entry in given)
        self.arguments = {id(given) for given in (*arguments, *lists) if is_dataclass(given)}
        self.origins: dict[int, Origin] = {}
        self.marked: dict[
            int, tuple[object, Any]
        ] = {}  # visited objects and their replacements, as layers share objects
        self.without = self.plain = False

    def sets(self) -> Iterator[Fact]:
        """Yield the facts that set any of the quantities."""
        for origin in self.origins.values():
            yield from origin.sets()


@functools.cache
def _names_of(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _marked(value: Any, step: Step, package: str, own: _Owned) -> Any:
    """Return a result whose quantities and dataclasses have an origin: their own, or else ``step``.

    Plain numbers become traced ones, except in a dataclass, which has an origin itself. Only dataclasses
    of the model's own subpackage ``package`` are entered; arguments that reappear in the result, such as
    the operators of a network, are left unchanged.
    """
    if value is None or isinstance(value, (str, bool)) or id(value) in own.arguments:
        return value
    if hasattr(value, "magnitude"):
        if value._origin is None:
            own.without = True
            value = value.__copy__()
            value._origin = step
        elif value._origin is not step:
            own.origins[id(value._origin)] = value._origin
    elif type(value) in (int, float):
        own.plain = True
        value = TracedInt(value) if type(value) is int else TracedFloat(value)
        value._origin = step
    elif id(value) in own.marked:
        return own.marked[id(value)][1]
    elif isinstance(value, tuple) and not hasattr(value, "_fields"):
        parts = [_marked(part, step, package, own) for part in value]
        return _rebuilt(value, parts, value, tuple, own)
    elif isinstance(value, (dict, FrozenDict)):
        pairs = {name: _marked(part, step, package, own) for name, part in value.items()}
        return _rebuilt(value, pairs.values(), value.values(), lambda _: type(value)(pairs), own)
    elif is_dataclass(value) and not isinstance(value, type) and type(value).__module__.startswith(package):
        origin = origin_of(value)
        if origin is not None and value is not own.traced_result:
            return value  # already traced, or the result of another model
        for name in _names_of(type(value)):
            part = getattr(value, name)
            marked = part if type(part) in _PLAIN else _marked(part, step, package, own)
            if marked is not part:
                object.__setattr__(value, name, marked)
        if hasattr(value, "__dict__") and value is not own.traced_result:
            object.__setattr__(value, "_origin", step)
    return value


def _rebuilt(
    value: Any, parts: Collection[Any], before: Iterable[Any], make: Callable[[Collection[Any]], Any], own: _Owned
) -> Any:
    """Return a container of the marked parts: the original one if no part changed."""
    same = all(part is old for part, old in zip(parts, before, strict=True))
    result = value if same else make(parts)
    own.marked[id(value)] = value, result
    return result


def origins_within(value: object, depth: int = 2) -> Iterator[Origin]:
    """Yield the origins of a value, or of the values in a container, up to ``depth`` levels deep."""
    if type(value) in _PLAIN:
        return
    origin = origin_of(value)
    if origin is not None:
        yield origin
    elif depth and isinstance(value, Mapping):
        for part in value.values():
            yield from origins_within(part, depth - 1)
    elif depth and isinstance(value, (tuple, list)):
        for part in value:
            yield from origins_within(part, depth - 1)
