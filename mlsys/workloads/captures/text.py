"""Serialisation of captured networks as JSON."""

import json
from typing import Any

from mlsys.workloads.torch_import.assemble import Place, Template
from mlsys.workloads.torch_import.calls import Call, Tensor, Unknown
from mlsys.workloads.torch_import.symbolic import Expressions
from mlsys.workloads.torch_import.wiring import Ends, View, Wire
from mlsys.workloads.totals import Held


def as_text(template: Template) -> str:
    """Return a captured network as JSON; :func:`from_text` is its inverse.

    Examples
    --------
    >>> from torch import nn, zeros
    >>> from mlsys.workloads.torch_import.build import template_of
    >>> template = template_of(nn.Linear(128, 256), zeros(2, 128), dynamic={"batch": 0})
    >>> print(from_text(as_text(template)).at({"batch": 7}).macs)
    229376 MAC
    """
    words: dict[str, int] = {}
    tensors: dict[Tensor, int] = {}

    def word(text: str) -> int:
        return words.setdefault(text, len(words))

    def plain(value: Any) -> Any:
        """Return tuples as lists, and a tensor (by its number) or an unknown size as an object with one key."""
        if isinstance(value, Tensor):
            return {"T": tensors.setdefault(value, len(tensors))}
        if isinstance(value, Unknown):
            return {"?": value.number}
        return [plain(item) for item in value] if isinstance(value, tuple) else value

    def number(tensor: Tensor) -> int:
        return tensors.setdefault(tensor, len(tensors))

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
        "inputs": [number(tensor) for tensor in template.inputs],
        "calls": [plain(tuple(call)) for call in template.calls],
        "wires": [[name, number(tensor), overwrites] for name, tensor, overwrites in template.wires],
        "places": [
            [index.name, word(index.target), word(index.path), index.call, plain(tuple(map(tuple, index.ends.takes))),
             plain(index.ends.makes)]
            for index in template.places
        ],
        "words": list(words),
    }  # fmt: skip
    record["tensors"] = [
        [plain(shape), None if stored == shape else plain(stored), *rest] for shape, stored, *rest in tensors
    ]
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def from_text(text: str) -> Template:
    """Return the captured network from the text of :func:`as_text`."""
    record = json.loads(text)
    template = Template(
        record["name"],
        record["source"],
        Held(*record["held"]),
        Expressions(record["expressions"], record["symbols"]),
        {name: tuple(symbols) for name, symbols in record["free"].items()},
        record["fixed"],
    )
    tensors: list[Tensor] = []  # one object for all its occurrences

    def made(value: Any) -> Any:
        if type(value) is list:
            return tuple([made(item) if type(item) in _NESTED else item for item in value])
        if type(value) is dict:
            return tensors[value["T"]] if "T" in value else Unknown(value["?"])
        return value

    for shape, stored, *rest in record["tensors"]:
        seen = made(shape)
        tensors.append(Tensor(seen, seen if stored is None else made(stored), *rest))
    template.sizes, template.values = record["sizes"], record["values"]
    template.returned = tuple(record["returned"])
    template.inputs = [tensors[number] for number in record["inputs"]]
    template.calls = [Call(*made(call)) for call in record["calls"]]
    template.wires = [Wire(name, tensors[number], overwrites) for name, number, overwrites in record["wires"]]
    words = record["words"]
    template.places = [
        Place(name, words[target], words[path], call, Ends(tuple([View(*look) for look in takes]), tuple(makes)))
        for name, target, path, call, takes, makes in record["places"]
    ]
    return template


_NESTED = (list, dict)
