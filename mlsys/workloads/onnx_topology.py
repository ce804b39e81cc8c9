"""Topological order of an ONNX graph's nodes: names have one producer, and there are no cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mlsys.errors import ArgumentError, did_you_mean


def node_label(node: Any) -> str:
    """Return a node's label for messages: its name and operator, or its output.

    Examples
    --------
    >>> from onnx import helper
    >>> node_label(helper.make_node("Relu", ["x"], ["y"], name="act"))
    "the node 'act' (Relu)"
    >>> node_label(helper.make_node("Relu", ["x"], ["y"]))
    "the Relu that makes 'y'"
    """
    if node.name:
        return f"the node {node.name!r} ({node.op_type})"
    made = next((name for name in node.output if name), "nothing")
    return f"the {node.op_type} that makes {made!r}"


def is_standard(node: Any) -> bool:
    """Return whether a node's operator belongs to ONNX itself."""
    return node.domain in ("", "ai.onnx")


def subgraphs(node: Any) -> Iterator[Any]:
    """Yield the subgraphs of a node, such as the branches of an ``If``."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def sort_nodes(graph: Any) -> None:
    """Sort the nodes of a graph and of its subgraphs topologically.

    Raises
    ------
    ArgumentError
        If a name is made twice, nothing makes a name that is read or declared as an output, or there is a cycle.
    """
    if not graph.output:
        raise ArgumentError("from_onnx(): the model declares no output, so nothing is computed")
    _sort(graph, frozenset())


def _sort(graph: Any, outer: frozenset[str]) -> None:
    producers = _producers(graph, outer)
    known = outer | producers.keys()
    nodes = list(graph.node)
    reads = [_reads(node) for node in nodes]
    for node, names in zip(nodes, reads, strict=True):
        for name in names:
            if name in node.output:
                raise ArgumentError(f"from_onnx(): {node_label(node)} reads its own output {name!r}")
            if name not in known:
                raise ArgumentError(
                    f"from_onnx(): {node_label(node)} reads {name!r}, which is neither an input, a weight nor the "
                    f"output of a node.{did_you_mean(name, sorted(known))}"
                )
    for item in graph.output:
        if item.name not in known:
            raise ArgumentError(
                f"from_onnx(): the output {item.name!r} is declared and no node computes it."
                f"{did_you_mean(item.name, sorted(known))}"
            )
    order = _ordered(nodes, reads, producers)
    if order != list(range(len(nodes))):
        ordered = [nodes[index] for index in order]
        copies = [type(node).FromString(node.SerializeToString()) for node in ordered]
        del graph.node[:]
        graph.node.extend(copies)
    for node in graph.node:
        for inner in subgraphs(node):
            _sort(inner, known)


def _producers(graph: Any, outer: frozenset[str]) -> dict[str, int]:
    """Return the index of the node that makes each name; -1 for inputs and weights."""
    producers: dict[str, int] = {}
    inputs = [item.name for item in graph.input]
    weights = [*(item.name for item in graph.initializer), *(item.values.name for item in graph.sparse_initializer)]
    for what, names in (("inputs", inputs), ("weights", weights)):  # a weight may also be listed as an input
        name, times = next(iter(Counter(names).most_common(1)), ("", 0))
        if times > 1:
            raise ArgumentError(f"from_onnx(): two {what} have the name {name!r}. Tensor names must be unique")
        producers |= dict.fromkeys(names, -1)
    for index, node in enumerate(graph.node):
        for name in node.output:
            if not name:
                continue
            if name in producers or name in outer:
                other = producers.get(name, -1)
                if other < 0:
                    raise ArgumentError(
                        f"from_onnx(): {node_label(node)} has the name of an input or a weight as its output"
                    )
                raise ArgumentError(
                    f"from_onnx(): two nodes have the output {name!r}: {_short(graph.node[other])} and {_short(node)}. "
                    "Tensor names must be unique"
                )
            producers[name] = index
    return producers


def _short(node: Any) -> str:
    return f"{node.name!r} ({node.op_type})" if node.name else str(node.op_type)


def _reads(node: Any) -> list[str]:
    """Return the names that a node reads, including those read by its subgraphs."""
    names = dict.fromkeys(name for name in node.input if name)
    for inner in subgraphs(node):
        names |= dict.fromkeys(_free_names(inner))
    return list(names)


def _free_names(graph: Any) -> Iterable[str]:
    """Return the names that a subgraph takes from the enclosing graphs."""
    own = {item.name for item in (*graph.input, *graph.initializer)}
    own |= {item.values.name for item in graph.sparse_initializer}
    own |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        yield from (name for name in _reads(node) if name not in own)
    yield from (item.name for item in graph.output if item.name not in own)


def _ordered(nodes: list[Any], reads: list[list[str]], producers: Mapping[str, int]) -> list[int]:
    """Return the nodes in a topological order, as close as possible to the written one."""
    done: set[int] = set()
    order: list[int] = []
    for first in range(len(nodes)):
        stack = [first]
        waiting: dict[int, None] = {}
        while stack:
            index = stack[-1]
            if index in done:
                stack.pop()
                continue
            needed = [producers.get(name, -1) for name in reads[index]]
            needed = [other for other in needed if other >= 0 and other not in done]
            if not needed:
                done.add(index)
                order.append(index)
                waiting.pop(index, None)
                stack.pop()
                continue
            waiting[index] = None
            circle = next((other for other in needed if other in waiting), None)
            if circle is not None:
                raise ArgumentError(
                    f"from_onnx(): the graph has a cycle: {node_label(nodes[index])} reads what "
                    f"{node_label(nodes[circle])} makes, which in turn waits for it"
                )
            stack += needed
    return order
