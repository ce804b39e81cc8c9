"""What makes an ONNX model no network: sizes below one, groups that divide nothing, functions that explode."""

from collections.abc import Iterator
from typing import Any

from mlsys.errors import ArgumentError

MOST_NODES = 200_000  # the largest language models have some ten thousand
_DEEPEST = 100
_WHOLE = ("kernel_shape", "strides", "dilations")


def refuse_impossible_sizes(proto: Any) -> None:
    """Refuse inputs, weights and attributes with sizes that nothing can have.

    Raises
    ------
    ArgumentError
        If a size of an input is below 1, one of a weight is negative, or a convolution has no groups.
    """
    stored = {item.name: tuple(item.dims) for item in proto.graph.initializer}
    for item in proto.graph.input:
        for extent in item.type.tensor_type.shape.dim:
            if extent.HasField("dim_value") and extent.dim_value < (0 if item.name in stored else 1):
                raise ArgumentError(
                    f"from_onnx(): the input {item.name!r} has a size of {extent.dim_value}. Sizes are 1 or more"
                )
    for name, dims in stored.items():
        if min(dims, default=0) < 0:
            raise ArgumentError(f"from_onnx(): the weight {name!r} has a size of {min(dims)}. Sizes are not negative")
    for node in _nodes(proto):
        for attribute in node.attribute:
            if attribute.name == "group" and attribute.i < 1:
                raise ArgumentError(
                    f"from_onnx(): the node {_label(node)} has `group` {attribute.i}. It must be 1 or more"
                )
            if attribute.name in _WHOLE and any(size < 1 for size in attribute.ints):
                raise ArgumentError(
                    f"from_onnx(): the node {_label(node)} has `{attribute.name}` {list(attribute.ints)}. "
                    "Each must be 1 or more"
                )


def refuse_impossible_shapes(proto: Any) -> None:
    """Refuse a graph in which shape inference left a tensor of a negative size, or nothing of a picture.

    Raises
    ------
    ArgumentError
        With the name of the tensor.
    """
    shapes = {
        item.name: [extent.dim_value for extent in item.type.tensor_type.shape.dim if extent.HasField("dim_value")]
        for item in (*proto.graph.value_info, *proto.graph.output)
    }
    weights = {item.name: tuple(item.dims) for item in proto.graph.initializer}
    for node in proto.graph.node:
        least = 1 if node.op_type in ("Conv", "ConvTranspose", "MaxPool", "AveragePool") else 0
        for name in node.output:
            if min(shapes.get(name, ()), default=least) < least:
                raise ArgumentError(
                    f"from_onnx(): nothing is left of {name!r}, of shape {shapes[name]}, which {_label(node)} makes. "
                    "Give a larger input"
                )
        group = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
        weight = weights.get(node.input[1]) if node.op_type == "Conv" and len(node.input) > 1 else None
        if weight and weight[0] % group:
            raise ArgumentError(
                f"from_onnx(): the node {_label(node)} has `group` {group}, which does not divide its filters, "
                f"{weight[0]}"
            )


def refuse_too_many_nodes(proto: Any) -> None:
    """Refuse a model whose functions call themselves or write out to more nodes than any network has.

    A file of a few kB can write out to gigabytes: each function calls the next one twice.

    Raises
    ------
    ArgumentError
        With the number of nodes, or the function that calls itself.
    """
    functions = {(function.domain, function.name): function for function in proto.functions}
    sizes: dict[tuple[str, str], int] = {}
    open_now: list[tuple[str, str]] = []

    def written_out(nodes: Any) -> int:
        return sum(of_node(node) for node in nodes)

    def of_node(node: Any) -> int:
        within = sum(written_out(graph.node) for graph in _subgraphs(node))
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
            f"from_onnx(): written out, the functions of the model come to {nodes:,} nodes; at most {MOST_NODES:,} "
            "are read. Take the part that matters"
        )


def _nodes(proto: Any) -> Iterator[Any]:
    yield from proto.graph.node
    for function in proto.functions:
        yield from function.node


def _subgraphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _label(node: Any) -> str:
    return repr(node.name or node.op_type)
