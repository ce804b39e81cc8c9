"""What a model answers remembers the model, its arguments and the facts that it read.

A model computes with plain floats. :func:`traced` notes the facts that are read while it runs, and
gives its answer, and every quantity of it that has no origin of its own, one step that names them.
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
_PLAIN = frozenset({int, float, str, bool, type(None)})  # which have no name and no origin
_LONGEST = 60  # characters of an argument in words


def label_of(value: Any) -> str:
    """Return an argument in few words: its name, its number, or what it is.

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
    if getattr(value, "size", 0) > _LONGEST:  # an array: writing it out would take longer than many a model
        return type(value).__name__
    text = repr(value)
    return text if len(text) <= _LONGEST and " at 0x" not in text else type(value).__name__


class TracedInt(int):
    """A whole number that knows what it was computed from; sums of it are plain numbers."""

    _origin: Origin


class TracedFloat(float):
    """A number that knows what it was computed from; sums of it are plain numbers."""

    _origin: Origin


def traced(model: Callable[P, T]) -> Callable[P, T]:
    """Let what ``model`` answers remember the model, its arguments and the facts read meanwhile.

    Parameters
    ----------
    model
        A function that answers with a dataclass, with quantities, or with a few of them.

    Returns
    -------
    callable
        The same function. Quantities in its answer that have an origin keep it.

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
        words = tuple(label_of(value) for value in given.values())
        arguments = tuple(given.values())
        origins = [*map(origin_of, seen.values()), *origins_within(arguments)]
        step = Step(model.__name__, words, tuple(given))  # what it leans on follows
        own = _Owned(arguments, result if origin_of(result) is not None else None)
        result = _marked(result, step, ".".join(model.__module__.split(".")[:2]), own)
        unsaid = own.without or not own.origins or (own.plain and not is_dataclass(result))
        # Where every number says what it comes from, all else that was read was compared with that.
        compared = seen.compared if unsaid else seen.keys() - {fact.name for fact in own.sets()}
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
    """What an answer's quantities come from by themselves, whether any number does not say, and what was given."""

    def __init__(self, arguments: tuple[Any, ...], told: Any = None) -> None:
        self.told = told  # an answer that its model already gave an origin
        lists = (entry for given in arguments if isinstance(given, (tuple, list)) for entry in given)
        self.arguments = {id(given) for given in (*arguments, *lists) if is_dataclass(given)}
        self.origins: dict[int, Origin] = {}
        self.marked: dict[int, tuple[object, Any]] = {}  # what was gone through, and what became of it: layers share
        self.without = self.plain = False

    def sets(self) -> Iterator[Fact]:
        """Yield the facts that set any of them."""
        for origin in self.origins.values():
            yield from origin.sets()


@functools.cache
def _names_of(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _marked(value: Any, step: Step, room: str, own: _Owned) -> Any:
    """Return an answer whose quantities, and records, have an origin: their own, or else ``step``.

    Plain numbers become traced ones, but in a dataclass, which knows by itself. Of dataclasses,
    those of the model's own room are entered: what the answer hands back of its arguments, such as
    a network's operators, stays as it is.
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
        parts = [_marked(part, step, room, own) for part in value]
        return _became(value, parts, value, tuple, own)
    elif isinstance(value, (dict, FrozenDict)):
        pairs = {name: _marked(part, step, room, own) for name, part in value.items()}
        return _became(value, pairs.values(), value.values(), lambda _: type(value)(pairs), own)
    elif is_dataclass(value) and not isinstance(value, type) and type(value).__module__.startswith(room):
        origin = origin_of(value)
        if origin is not None and value is not own.told:
            return value  # marked already; or another model's answer, which knows its own facts
        for name in _names_of(type(value)):
            part = getattr(value, name)
            marked = part if type(part) in _PLAIN else _marked(part, step, room, own)
            if marked is not part:
                object.__setattr__(value, name, marked)
        if hasattr(value, "__dict__") and value is not own.told:
            object.__setattr__(value, "_origin", step)
    return value


def _became(
    value: Any, parts: Collection[Any], before: Iterable[Any], make: Callable[[Collection[Any]], Any], own: _Owned
) -> Any:
    """Return a container with its marked parts: itself, where none of them changed."""
    same = all(part is old for part, old in zip(parts, before, strict=True))
    result = value if same else make(parts)
    own.marked[id(value)] = value, result
    return result


def origins_within(value: object, depth: int = 2) -> Iterator[Origin]:
    """Yield the origins of a value, or of what a container holds, up to a few levels deep."""
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
