"""Nodes of an ONNX graph that its outputs depend on; ONNX Runtime runs the others as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsys.workloads.onnx_subgraphs import bodies_that_may_run

if TYPE_CHECKING:
    from mlsys.workloads.onnx_shapes import GraphShapes


def needed_nodes(scope: GraphShapes) -> frozenset[int]:
    """Return the indices of the nodes of a graph on which one of its outputs depends.

    Shapes are known before the first pass, so a node of which only the shape is read is not included.

    Examples
    --------
    >>> import onnx
    >>> from onnx import helper
    >>> from mlsys.workloads.onnx_shapes import GraphShapes
    >>> x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (2, 3)) for name in "xy")
    >>> nodes = [helper.make_node("Exp", ["x"], ["unused"]), helper.make_node("Relu", ["x"], ["y"])]
    >>> graph = helper.make_graph(nodes, "net", [x], [y])
    >>> sorted(needed_nodes(GraphShapes(onnx, graph, [helper.make_opsetid("", 20)])))
    [1]
    """
    return _needed(scope)[0]


def _needed(scope: GraphShapes) -> tuple[frozenset[int], set[str]]:
    """Return the indices of the needed nodes, and all tensors that they and the outputs read."""
    read = {item.name for item in scope.graph.output}
    needed = set()
    for index, node in reversed(list(enumerate(scope.graph.node))):
        made = [name for name in node.output if name]
        if read.isdisjoint(made):
            continue
        needed.add(index)
        if all(scope.tensors[name].constant for name in made):
            continue
        read.update(name for name in node.input if name)
        for body in bodies_that_may_run(node, scope).values():
            read |= _needed(body)[1]
    return frozenset(needed), read
