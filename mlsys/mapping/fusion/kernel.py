"""Operators made into one kernel, and the graph of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.mapping.fusion.match import FusionGroup, GroupTraffic, traffic_of
from mlsys.mapping.fusion.steps import is_elementwise
from mlsys.units import ureg
from mlsys.workloads.counted_operator import CountedOperator
from mlsys.workloads.graph import Access, OperatorGraph, Value
from mlsys.workloads.operator import Operator
from mlsys.workloads.torch_import.rules.counts import Counts

_BYTE, _FLOP = ureg.Unit("byte"), ureg.Unit("FLOP")


@dataclass(frozen=True, repr=False)
class FusedOperator(CountedOperator):
    """Several operators that run as one kernel.

    Its work is that of its members. Kind, shape, number format and products are those of its
    anchor, the member with the most multiply-accumulates; element-wise operators alone are
    one of the kind ``"elementwise"``, a fused attention is of the kind ``"attention"``.

    Attributes
    ----------
    pattern
        Name of the pattern.
    parts
        The operators that it is made of, in the order in which they ran.
    """

    pattern: str = field(kw_only=True)
    parts: tuple[CountedOperator, ...] = field(kw_only=True)

    @property
    def members(self) -> tuple[CountedOperator, ...]:
        """The operators that it is made of, in the order in which they ran."""
        return self.parts


def kernel_of(graph: OperatorGraph, group: FusionGroup) -> CountedOperator:
    """Return the operators of a group as one kernel; one alone stays as it is."""
    parts = [graph.operators[member] for member in group.members]
    members = tuple(part for part in parts if isinstance(part, CountedOperator))
    if len(members) < len(parts):
        raise ArgumentError(f"fuse(): {graph.name!r} has operators that were not captured. Use a captured network")
    if len(members) == 1:
        return members[0]
    anchor = max(members, key=lambda member: (member.counts.macs, member.counts.elementwise))
    kind, shape = _kind(graph, group, anchor)
    counts = _counts(graph, members, traffic_of(graph, group.members), kind, shape)
    return FusedOperator(
        _name(members),
        kind,
        anchor.precision,
        ureg.Quantity(2 * counts.macs + counts.elementwise, _FLOP),
        ureg.Quantity(counts.read + counts.written, _BYTE),
        shape,
        ureg.Quantity(counts.weights, _BYTE),
        counts.parameters,
        counts=counts,
        target=" + ".join(member.target for member in members),
        path=anchor.path,
        pattern=group.pattern,
        parts=members,
    )


def _name(members: Sequence[CountedOperator]) -> str:
    names = [member.name for member in members]
    return " + ".join(names) if len(names) <= 4 else f"{names[0]} + … + {names[-1]} ({len(names)})"


def _kind(graph: OperatorGraph, group: FusionGroup, anchor: CountedOperator) -> tuple[str, FrozenDict[str, int]]:
    if all(is_elementwise(graph, member) for member in group.members):
        return "elementwise", FrozenDict({"elements": graph.operators[group.members[-1]].shape.get("elements", 0)})
    first, last = graph.operators[group.members[0]].products, graph.operators[group.members[-1]].products
    if group.pattern == "attention" and first is not None and last is not None:
        sizes = {"batch": 1, "heads": first.copies, "queries": first.m, "keys": int(first.n), "head_dim": first.k}
        return "attention", FrozenDict(sizes)
    return anchor.kind, anchor.shape


def _counts(
    graph: OperatorGraph,
    members: Sequence[CountedOperator],
    crossing: GroupTraffic,
    kind: str,
    shape: FrozenDict[str, int],
) -> Counts:
    learned = [size for value, size in crossing.reads.items() if graph.values[value].role == "weight"]
    new = [
        value for value in crossing.writes if _memory(graph, value, crossing.swallowed) is None
    ]  # in place, or in the place of what was swallowed, nothing is made
    return Counts(
        kind=kind,
        macs=sum(member.counts.macs for member in members),
        elementwise=sum(member.counts.elementwise for member in members),
        read=sum(crossing.reads.values()),
        written=sum(crossing.writes.values()),
        weights=sum(learned),
        made=sum(graph.values[value].bytes for value in new),
        parameters=sum(member.counts.parameters for member in members),
        known=all(member.counts.known for member in members),
        shape=tuple(shape.items()),
    )


def _memory(graph: OperatorGraph, value: int, swallowed: Iterable[int]) -> int | None:
    """Return the value whose memory a value takes over, looking past those that are never written."""
    gone, old = set(swallowed), graph.values[value].overwrites
    while old is not None and old in gone:
        old = graph.values[old].overwrites
    return old


def fused_graph(graph: OperatorGraph, groups: Sequence[FusionGroup], kernels: Sequence[Operator]) -> OperatorGraph:
    """Return the graph of kernels: what was swallowed is gone, and what crosses keeps its tensors."""
    home = {member: kernel for kernel, group in enumerate(groups) for member in group.members}
    gone = {value for group in groups for value in group.swallowed}
    number = {old: new for new, old in enumerate(old for old in range(len(graph.values)) if old not in gone)}
    crossing = [traffic_of(graph, group.members) for group in groups]

    def moved(old: int) -> Value:
        value, memory = graph.values[old], _memory(graph, old, gone)
        producer = None if value.producer is None else home[value.producer]
        users = {home[user] for user in value.consumers} - {producer}
        return Value(
            value.name,
            value.role,
            value.bytes,
            value.shape,
            value.dtype,
            producer,
            tuple(sorted(user for user in users if user is not None)),
            value.output,
            None if memory is None else number[memory],
        )

    def row(kernel: int) -> tuple[Access, ...]:
        if len(groups[kernel].members) == 1:
            return tuple(
                Access(number[access.value], access.bytes, access.view, access.turned)
                for access in graph.reads[groups[kernel].members[0]]
            )
        return tuple(Access(number[value], size) for value, size in crossing[kernel].reads.items())

    return OperatorGraph(
        graph.name,
        tuple(kernels),
        tuple(moved(old) for old in number),
        tuple(row(kernel) for kernel in range(len(groups))),
        tuple(tuple(Access(number[value], size) for value, size in traffic.writes.items()) for traffic in crossing),
    )
