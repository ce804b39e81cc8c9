"""Rejection of invalid ONNX models: impossible sizes, unsound weights, functions that expand without bound."""

from collections.abc import Iterator
from typing import Any

from mlsys.errors import ArgumentError, first_line
from mlsys.workloads.onnx_contrib import DOMAIN, SAME_IN_STANDARD
from mlsys.workloads.onnx_node_view import text_of
from mlsys.workloads.onnx_tensors import refuse_broken_tensor, stored_tensors
from mlsys.workloads.onnx_topology import node_label, subgraphs

MOST_NODES = 200_000  # the largest language models have some ten thousand
_DEEPEST = 100
_WHOLE = ("kernel_shape", "strides", "dilations")


def refuse_impossible_sizes(proto: Any) -> None:
    """Raise for inputs, weights and attributes with impossible sizes.

    Raises
    ------
    ArgumentError
        If a size of an input is below 1 or differs from its weight's, one of a weight is negative, or a convolution has
        no groups.
    """
    stored = {item.name: tuple(item.dims) for item in proto.graph.initializer}
    for item in proto.graph.input:
        declared = item.type.tensor_type.shape.dim
        sizes = tuple(extent.dim_value if extent.HasField("dim_value") else None for extent in declared)
        if declared and item.name in stored and not _may_be(sizes, stored[item.name]):
            shown = text_of(["?" if size is None else size for size in sizes])
            raise ArgumentError(
                f"from_onnx(): the input {item.name!r} is declared as {shown}, but its weight has "
                f"{text_of(stored[item.name])}"
            )
        for extent in declared:
            if extent.HasField("dim_value") and extent.dim_value < (0 if item.name in stored else 1):
                raise ArgumentError(
                    f"from_onnx(): the input {item.name!r} has a size of {extent.dim_value}. Sizes must be at least 1"
                )
    for name, dims in stored.items():
        if min(dims, default=0) < 0:
            raise ArgumentError(f"from_onnx(): the weight {name!r} has a size of {min(dims)}. Sizes must be >= 0")
    for node in _nodes(proto):
        for attribute in node.attribute:
            if attribute.name == "group" and attribute.i < 1:
                raise ArgumentError(f"from_onnx(): {node_label(node)} has `group` {attribute.i}. It must be at least 1")
            if attribute.name in _WHOLE and any(size < 1 for size in attribute.ints):
                raise ArgumentError(
                    f"from_onnx(): {node_label(node)} has `{attribute.name}` {list(attribute.ints)}. "
                    "Each must be at least 1"
                )


def _may_be(declared: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    return len(declared) == len(shape) and all(size in (None, own) for size, own in zip(declared, shape, strict=True))


def refuse_unsound(onnx: Any, proto: Any) -> None:
    """Raise for a model whose weights do not match their shapes, or that onnx's own checker rejects.

    The checker tests attributes, operator sets and numbers of inputs.

    Raises
    ------
    ArgumentError
        With the weight, or with the checker's reason.
    """
    for graph in _graphs(proto.graph):
        for stored in stored_tensors(onnx, graph):
            refuse_broken_tensor(onnx, stored.tensor, stored.shape, stored.name)
    newest = onnx.defs.onnx_opset_version()
    for item in proto.opset_import:
        if item.domain in ("", "ai.onnx") and not 1 <= item.version <= newest:
            raise ArgumentError(
                f"from_onnx(): the model uses version {item.version} of ONNX's operators, but onnx "
                f"{onnx.__version__} supports 1 to {newest}. Install a newer onnx, or export for an older version"
            )
    skeleton = onnx.ModelProto()
    skeleton.CopyFrom(proto)
    for graph in _graphs(skeleton.graph):
        for tensor in (*graph.initializer, *(item.t for node in graph.node for item in node.attribute)):
            if tensor.data_location == onnx.TensorProto.EXTERNAL:  # the checker would look for its file
                tensor.ClearField("data_location")
                tensor.ClearField("external_data")
                tensor.ClearField("dims")
                tensor.dims.append(0)
        for node in graph.node:
            if node.op_type in SAME_IN_STANDARD and not node.domain:
                node.domain = DOMAIN
        for item in graph.output:
            if item.type.HasField("tensor_type") and not item.type.tensor_type.HasField("shape"):
                item.type.tensor_type.shape.SetInParent()
    if not any(item.domain == DOMAIN for item in skeleton.opset_import):
        skeleton.opset_import.add(domain=DOMAIN, version=1)
    try:
        onnx.checker.check_model(skeleton)
    except onnx.checker.ValidationError as error:
        raise ArgumentError(f"from_onnx(): the model is not valid ONNX: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return the checker's message in one line, with the node in words."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    context = next((line for line in lines if line.startswith("==> Context:")), "")
    where = context.removeprefix("==> Context: Bad node spec for node. ").removeprefix("==> Context: ")
    return first_line(ValueError(f"{lines[0]}{f' ({where})' if where else ''}" if lines else type(error).__name__))


def _graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph and every graph in its nodes."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _graphs(inner)


def refuse_too_many_nodes(proto: Any) -> None:
    """Raise for a model whose functions are recursive or expand to more nodes than any network has.

    A file of a few kB can expand to gigabytes: each function calls the next one twice.

    Raises
    ------
    ArgumentError
        With the number of nodes, or the recursive function.
    """
    functions = {(function.domain, function.name): function for function in proto.functions}
    sizes: dict[tuple[str, str], int] = {}
    open_now: list[tuple[str, str]] = []

    def written_out(nodes: Any) -> int:
        return sum(of_node(node) for node in nodes)

    def of_node(node: Any) -> int:
        within = sum(written_out(graph.node) for graph in subgraphs(node))
        key = (node.domain, node.op_type)
        if key not in functions:
            return 1 + within
        if key in open_now:
            raise ArgumentError(f"from_onnx(): the function {key[1]!r} calls itself, which ONNX does not allow")
        if len(open_now) > _DEEPEST:
            raise ArgumentError(f"from_onnx(): functions are nested more than {_DEEPEST} deep, at {key[1]!r}")
        if key not in sizes:
            open_now.append(key)
            sizes[key] = written_out(functions[key].node)
            open_now.pop()
        return sizes[key] + within

    try:
        nodes = written_out(proto.graph.node)
    except RecursionError:
        raise ArgumentError("from_onnx(): graphs within graphs are nested too deep") from None
    if nodes > MOST_NODES:
        raise ArgumentError(
            f"from_onnx(): the functions of the model expand to {nodes:,} nodes; at most {MOST_NODES:,} "
            "are supported. Extract the relevant part"
        )


def _nodes(proto: Any) -> Iterator[Any]:
    for graph in _graphs(proto.graph):
        yield from graph.node
    for function in proto.functions:
        yield from function.node
