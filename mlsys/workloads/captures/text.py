"""A captured network as JSON text and back."""

import json
from typing import Any

from mlsys.workloads.torch_import.assemble import Place, Template
from mlsys.workloads.torch_import.calls import Call, Tensor, Unknown
from mlsys.workloads.torch_import.symbolic import Expressions
from mlsys.workloads.torch_import.wiring import Ends, Look, Wire
from mlsys.workloads.totals import Held


def as_text(template: Template) -> str:
    """Return a captured network as JSON; :func:`from_text` reads it back.

    Examples
    --------
    >>> from torch import nn, zeros
    >>> from mlsys.workloads.torch_import.build import template_of
    >>> template = template_of(nn.Linear(128, 256), zeros(2, 128), dynamic={"batch": 0})
    >>> print(from_text(as_text(template)).at({"batch": 7}).macs)
    229376 MAC
    """
    words: dict[str, int] = {}

    def word(text: str) -> int:
        return words.setdefault(text, len(words))

    places = [
        [index.name, word(index.target), word(index.path), index.call, *_plain(index.ends)] for index in template.places
    ]
    record = {
        "name": template.name,
        "source": template.source,
        "held": list(template.held),
        "free": {name: list(symbols) for name, symbols in template.free.items()},
        "fixed": template.fixed,
        "sizes": template.sizes,
        "values": template.values,
        "symbols": list(template.expressions.symbols),
        "expressions": list(template.expressions.sources),
        "returned": list(template.returned),
        "inputs": _plain(tuple(template.inputs)),
        "calls": _plain(tuple(template.calls)),
        "wires": _plain(tuple(template.wires)),
        "places": places,
        "words": list(words),
    }
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def from_text(text: str) -> Template:
    """Return the captured network that :func:`as_text` wrote."""
    record = json.loads(text)
    template = Template(
        record["name"],
        record["source"],
        Held(*record["held"]),
        Expressions(record["expressions"], record["symbols"]),
        {name: tuple(symbols) for name, symbols in record["free"].items()},
        record["fixed"],
    )
    template.sizes, template.values = record["sizes"], record["values"]
    template.returned = tuple(record["returned"])
    template.inputs = list(_made(record["inputs"]))
    template.calls = list(_made(record["calls"]))
    template.wires = list(_made(record["wires"]))
    words = record["words"]
    template.places = [
        Place(name, words[target], words[path], call, Ends(tuple(_made(takes)), tuple(makes)))
        for name, target, path, call, takes, makes in record["places"]
    ]
    return template


_TYPES: dict[str, Any] = {"T": Tensor, "?": Unknown, "C": Call, "L": Look, "W": Wire}
_NESTED = (list, dict)
_MARKS = {made: mark for mark, made in _TYPES.items()}


def _plain(value: Any) -> Any:
    """Return lists for tuples; those of a type of ours begin with its mark, in an object of one key."""
    if not isinstance(value, tuple):
        return value
    items = [_plain(item) for item in value]
    mark = _MARKS.get(type(value))
    return {mark: items} if mark else items


def _sizes(shape: list[Any]) -> tuple[Any, ...]:
    return tuple([size if type(size) is int else _made(size) for size in shape])


def _made(value: Any) -> Any:
    if type(value) is list:
        return tuple([_made(item) if type(item) in _NESTED else item for item in value])
    if type(value) is dict:
        ((mark, items),) = value.items()
        if mark == "T":  # most of all
            shape, stored, *others = items
            return Tensor(_sizes(shape), _sizes(stored), *others)
        return _TYPES[mark](*[_made(item) if type(item) in _NESTED else item for item in items])
    return value
