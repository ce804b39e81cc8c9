"""Construction of the operator graph from the inputs and outputs of nodes."""

from collections.abc import Sequence
from typing import NamedTuple

from mlsys.errors import ArgumentError
from mlsys.workloads.graph import Access, OperatorGraph, Value
from mlsys.workloads.operator import Operator
from mlsys.workloads.torch_import.calls import WEIGHT_ROLES, Call, Tensor
from mlsys.workloads.torch_import.rules import Counts


class Wire(NamedTuple):
    """A whole tensor that nodes read or write; ``overwrites`` is the wire whose memory it reuses, or -1."""

    name: str
    tensor: Tensor
    overwrites: int = -1


class View(NamedTuple):
    """One input of a node: the wire, the view of it, and whether the view has another last axis."""

    wire: int
    view: int = 0
    turned: bool = False


class Ends(NamedTuple):
    """Inputs of a node, in the order of its call, and the wires that it writes."""

    takes: tuple[View, ...] = ()
    makes: tuple[int, ...] = ()


def operator_graph(
    name: str,
    operators: Sequence[Operator],
    nodes: Sequence[tuple[Ends, Call, Counts]],
    wires: Sequence[Wire],
    returned: Sequence[int],
) -> OperatorGraph:
    """Return the graph of the nodes that move data; the others are looked through.

    ``nodes`` are all nodes in order, with sizes that are numbers; ``operators`` those of them that move data.
    """
    source = _looked_through(nodes, wires)
    moving = [node for node in nodes if node[2].read or node[2].written]
    if len(moving) != len(operators):
        raise ArgumentError(
            f"graph: {name!r} has {len(operators)} operators and was captured with {len(moving)}. "
            "Ask the captured workload itself"
        )
    producer = {source[wire]: index for index, (ends, _, _) in enumerate(moving) for wire in ends.makes}
    there = {
        wire
        for wire, (_, tensor, _) in enumerate(wires)
        if source[wire] == wire and (wire in producer or tensor.role != "activation")
    }
    calls = {id(call): call for _, call, _ in moving}  # the same call stands in many places
    sizes = {key: [tensor.bytes for tensor in call.inputs] for key, call in calls.items()}
    reads = [_reads(ends, sizes[id(call)], counts, source, there) for ends, call, counts in moving]
    consumers: dict[int, list[int]] = {}
    for index, row in enumerate(reads):
        for wire in dict.fromkeys(access.value for access in row):
            consumers.setdefault(wire, []).append(index)
    outputs = {source[wire] for wire in returned}
    taken_over = {source[wires[wire].overwrites] for wire in producer if wires[wire].overwrites >= 0}
    given = {wire for wire in there if wires[wire].tensor.role == "input"}
    kept = sorted(there & (producer.keys() | consumers.keys() | outputs | taken_over | given))
    number = {wire: index for index, wire in enumerate(kept)}
    names = _unique([wires[wire].name for wire in kept])
    values = tuple(
        Value(
            label,
            "made" if wire in producer else _role(wires[wire].tensor.role),
            wires[wire].tensor.bytes,
            wires[wire].tensor.shape,
            wires[wire].tensor.dtype,
            producer.get(wire),
            tuple(consumers.get(wire, ())),
            wire in outputs,
            number.get(source[wires[wire].overwrites]) if wires[wire].overwrites >= 0 else None,
        )
        for label, wire in zip(names, kept, strict=True)
    )
    return OperatorGraph(
        name,
        tuple(operators),
        values,
        tuple(
            tuple(
                Access(number[row_index.value], row_index.bytes, row_index.view, row_index.turned) for row_index in row
            )
            for row in reads
        ),
        tuple(
            tuple(Access(number[access.value], access.bytes) for access in _writes(ends, counts, wires, source))
            for ends, _, counts in moving
        ),
    )


def _looked_through(nodes: Sequence[tuple[Ends, Call, Counts]], wires: Sequence[Wire]) -> list[int]:
    """Return the wire that each wire really is: a node that moves nothing hands on its first input."""
    source = list(range(len(wires)))
    for ends, _, counts in nodes:
        if not (counts.read or counts.written) and ends.takes:
            for wire in ends.makes:
                source[wire] = source[ends.takes[0].wire]
    return source


def _reads(ends: Ends, given: list[int], counts: Counts, source: Sequence[int], there: set[int]) -> list[Access]:
    """Return the bytes that a node reads of each value, from their sizes; they sum to the count of its rule."""
    if not counts.read:
        return []
    sizes = given.copy()
    surplus = sum(sizes) - counts.read  # rows of a table are read, not all of it
    if surplus and sizes:
        largest = sizes.index(max(sizes))
        sizes[largest] = max(sizes[largest] - surplus, 0)
    return [
        Access(source[wire], size, view, turned)
        for (wire, view, turned), size in zip(ends.takes, sizes, strict=True)
        if source[wire] in there and size
    ]


def _writes(ends: Ends, counts: Counts, wires: Sequence[Wire], source: Sequence[int]) -> list[Access]:
    made = list(dict.fromkeys(source[wire] for wire in ends.makes))
    sizes = [wires[wire].tensor.bytes for wire in made]
    if sizes:  # in place, a part may be written; a scatter writes some twice
        sizes[0] = max(sizes[0] + counts.written - sum(sizes), 0)
    return [Access(wire, size) for wire, size in zip(made, sizes, strict=True)]


def _role(role: str) -> str:
    return "weight" if role in WEIGHT_ROLES else role


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return unique
