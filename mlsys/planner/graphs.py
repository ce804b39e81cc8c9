"""Inputs of planners: the graph of a network, and an order in which its operators can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError

if TYPE_CHECKING:
    from mlsys.workloads.graph import OperatorGraph
    from mlsys.workloads.workload import Workload


def graph_of(where: str, workload: Workload | OperatorGraph) -> OperatorGraph:
    """Return the graph of a workload, or the graph itself."""
    from mlsys.workloads.graph import OperatorGraph
    from mlsys.workloads.workload import Workload

    if not isinstance(workload, (OperatorGraph, Workload)):
        raise ArgumentError(
            f"{where}(): `workload` must be a captured network or an OperatorGraph, got {type(workload).__name__}. "
            "Capture one with Workload.from_torch(model, example_inputs)"
        )
    graph = workload if isinstance(workload, OperatorGraph) else workload.graph
    if not len(graph):
        raise ArgumentError(f"{where}(): {graph.name!r} has no operators, so there is nothing to plan")
    return graph


def checked_order(where: str, graph: OperatorGraph, order: Sequence[int] | None) -> tuple[int, ...]:
    """Return a valid execution order, by default the graph's own; raise for an invalid one."""
    if order is None:
        return tuple(range(len(graph)))
    given = tuple(order)
    if sorted(given) != list(range(len(graph))):
        raise ArgumentError(
            f"{where}(): `order` must name each of the operators 0 to {len(graph) - 1} once, got {len(given)} places. "
            f"Write e.g. order=range({len(graph)})"
        )
    step = {operator: when for when, operator in enumerate(given)}
    for operator in given:
        for earlier in graph.waits_for(operator):
            if step[earlier] > step[operator]:
                raise ArgumentError(
                    f"{where}(): `order` runs operator {operator} ({graph.operators[operator].name}) before operator "
                    f"{earlier} ({graph.operators[earlier].name}), which it needs. Write e.g. order=range({len(graph)})"
                )
    return given
