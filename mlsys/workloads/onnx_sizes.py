"""The batch, the sequence and the image side of an ONNX graph, by the shapes of its inputs and outputs."""

from collections.abc import Mapping
from typing import Any

BATCH_NAMES = ("batch", "batch_size", "N", "n")
SEQUENCE_NAMES = ("sequence", "sequence_length", "seq_len", "seq", "length")
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_WHOLE = frozenset({6, 7})  # int32 and int64, which token numbers are
_CHANNELS = (1, 3, 4)


def named_sizes(graph: Any, given: Mapping[str, int]) -> dict[str, int]:
    """Return the batch, the sequence and the image side of a graph, as far as it has them, and its other open sizes.

    The batch is the first axis that all inputs and an output have in common; of a recurrent layer that reads an input
    time step by time step, as ONNX has it by default, the second axis of that input.

    Parameters
    ----------
    graph
        An ``onnx.GraphProto`` whose shapes are known.
    given
        Numbers for the sizes that the file leaves open, by its names for them.

    Examples
    --------
    >>> from onnx import TensorProto, helper
    >>> given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 3, 8, 8)) for name in "xy")
    >>> named_sizes(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", [given], [made]), {})
    {'batch': 4, 'image': 8}
    """
    weights = {item.name for item in graph.initializer}
    inputs = {item.name: item.type.tensor_type for item in graph.input if item.name not in weights}
    shapes = {name: _shape(kind) for name, kind in inputs.items()}
    axis = 1 if _by_time_step(graph, shapes) else 0
    batches = {shape[axis] for shape in shapes.values() if len(shape) > 1}
    returned = {
        shape[axis] for shape in map(_shape, (item.type.tensor_type for item in graph.output)) if len(shape) > 1
    }
    sizes: dict[str, int] = {}
    if len(batches) == 1 and (axis or not returned or batches <= returned):
        sizes["batch"] = batches.pop()
    for name, shape in shapes.items():
        if len(shape) == 2 and inputs[name].elem_type in _WHOLE:
            sizes.setdefault("sequence", shape[1])
        if len(shape) == 3 and axis:
            sizes.setdefault("sequence", shape[0])
        if len(shape) == 4 and shape[2] == shape[3]:
            sizes.setdefault("image", shape[2])
        elif len(shape) == 4 and shape[1] == shape[2] and shape[3] in _CHANNELS:
            sizes.setdefault("image", shape[1])
    known = {"batch": BATCH_NAMES, "sequence": SEQUENCE_NAMES}
    for size, names in known.items():
        number = next((given[name] for name in names if name in given), None)
        if number is not None:
            sizes[size] = number
    others = {name: number for name, number in given.items() if not any(name in names for names in known.values())}
    return {**{name: sizes[name] for name in ("batch", "sequence", "image") if name in sizes}, **others}


def _shape(kind: Any) -> tuple[int, ...]:
    return tuple(extent.dim_value for extent in kind.shape.dim)


def _by_time_step(graph: Any, inputs: Mapping[str, tuple[int, ...]]) -> bool:
    return any(
        node.op_type in _RECURRENT
        and node.input[0] in inputs
        and len(inputs[node.input[0]]) == 3
        and not any(attribute.name == "layout" and attribute.i for attribute in node.attribute)
        for node in graph.node
    )
