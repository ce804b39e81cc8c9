"""Subgraphs of ONNX nodes: branches of an ``If``, bodies of ``Loop`` and ``Scan``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsys.workloads.onnx_tensors import TensorInfo

if TYPE_CHECKING:
    from mlsys.workloads.onnx_shapes import GraphShapes


def inputs_of_body(onnx: Any, node: Any, body: Any, given: Sequence[TensorInfo | None]) -> dict[str, TensorInfo]:
    """Return information about the inputs of a body from those of its node.

    Parameters
    ----------
    onnx
        The onnx package.
    node, body
        A ``Loop`` or ``Scan``, and its body.
    given
        Inputs of the node.
    """
    names = [item.name for item in body.input]
    declared = {item.name: TensorInfo(item.type) for item in body.input}
    if node.op_type == "Loop":
        kinds = [
            TensorInfo(onnx.helper.make_tensor_type_proto(onnx.TensorProto.INT64, ())),
            TensorInfo(onnx.helper.make_tensor_type_proto(onnx.TensorProto.BOOL, ())),
            *given[2:],
        ]
    elif node.op_type == "Scan":
        scanned = scanned_inputs(node)
        states = len(names) - scanned
        kinds = [*given[:states], *(_slice(onnx, node, info, index) for index, info in enumerate(given[states:]))]
    else:
        kinds = []
    known = {name: TensorInfo(info.kind) for name, info in zip(names, kinds, strict=False) if info is not None}
    return {name: known.get(name, info) for name, info in declared.items()}


def scanned_inputs(node: Any) -> int:
    """Return the number of scanned inputs of a ``Scan``."""
    return next((item.i for item in node.attribute if item.name == "num_scan_inputs"), 0)


def _axis(node: Any, name: str, index: int) -> int:
    axes = next((list(item.ints) for item in node.attribute if item.name == name), [])
    return axes[index] if index < len(axes) else 0


def _slice(onnx: Any, node: Any, info: TensorInfo | None, index: int) -> TensorInfo | None:
    if info is None or not info.shape:
        return None
    axis = _axis(node, "scan_input_axes", index) % len(info.shape)
    shape = (*info.shape[:axis], *info.shape[axis + 1 :])
    return TensorInfo(onnx.helper.make_tensor_type_proto(info.code, shape))


def trips(node: Any, tensors: Mapping[str, TensorInfo]) -> int | None:
    """Return the number of iterations of a body; None if it depends on data."""
    if node.op_type == "Scan":
        scanned = scanned_inputs(node)
        names = list(node.input)[len(node.input) - scanned :]
        info = tensors.get(names[0]) if names else None
        if info is None or not info.shape:
            return None
        return info.shape[_axis(node, "scan_input_axes", 0) % len(info.shape)]
    if node.op_type == "Loop" and node.input and node.input[0]:
        count = tensors[node.input[0]].data if node.input[0] in tensors else None
        condition = tensors.get(node.input[1]) if len(node.input) > 1 and node.input[1] else None
        if count is not None and (condition is None or (condition.data is not None and bool(condition.data.all()))):
            return max(int(count.ravel()[0]), 0)
    return None


def runs_to_the_end(node: Any, scope: GraphShapes) -> bool:
    """Return whether a ``Loop`` has no early exit."""
    if node.op_type != "Loop":
        return True
    body = scope.inner[node.output[0], "body"]
    going_on = body.graph.output[0].name
    info = body.tensors.get(going_on)
    if info is not None and info.data is not None:
        return bool(info.data.all())
    makers = {name: each for each in body.graph.node for name in each.output}
    while going_on in makers and makers[going_on].op_type == "Identity":
        going_on = makers[going_on].input[0]
    return len(body.graph.input) > 1 and going_on == body.graph.input[1].name


def bodies_that_may_run(node: Any, scope: GraphShapes) -> dict[str, GraphShapes]:
    """Return the subgraphs of a node by attribute; for an ``If`` with a known condition, only the branch taken."""
    bodies = {name: inner for (first, name), inner in scope.inner.items() if first == node.output[0]}
    condition = scope.tensors[node.input[0]].data if node.op_type == "If" and bodies else None
    if condition is None:
        return bodies
    taken = "then_branch" if condition.any() else "else_branch"
    return {taken: bodies[taken]}


def outputs_of_node(onnx: Any, node: Any, scope: GraphShapes) -> dict[str, Any]:
    """Return the output types of a node with subgraphs, as far as these define them."""
    bodies = [inner for (first, _), inner in scope.inner.items() if first == node.output[0]]
    if not bodies:
        return {}
    kinds: dict[str, Any] = {}
    count = trips(node, scope.tensors) if node.op_type != "If" and runs_to_the_end(node, scope) else None
    skipped = 1 if node.op_type == "Loop" else 0
    states = len(bodies[0].graph.input) - (2 if node.op_type == "Loop" else scanned_inputs(node))
    for index, name in enumerate(node.output):
        made = [
            body.tensors.get(body.graph.output[index + skipped].name)
            for body in bodies
            if index + skipped < len(body.graph.output)
        ]
        shapes = {info.shape for info in made if info is not None}
        if not name or len(made) != len(bodies) or None in made or not made:
            continue
        first = made[0]
        assert first is not None
        if node.op_type == "If" or index < states:
            shape = first.shape if len(shapes) == 1 else None
        else:
            shape = None if count is None or first.shape is None else (count, *first.shape)
            axis = _axis(node, "scan_output_axes", index - states)
            if shape is not None and axis:
                axis %= len(shape)
                shape = (*shape[1 : axis + 1], shape[0], *shape[axis + 1 :])
        kinds[name] = onnx.helper.make_tensor_type_proto(first.code, shape) if first.code else onnx.TypeProto()
    return kinds
