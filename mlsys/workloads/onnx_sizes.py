"""Input sizes of an ONNX model: open sizes, and the batch and sequence among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.unit_checks import checked_count

BATCH_NAMES = ("batch", "batch_size", "N", "n")
SEQUENCE_NAMES = ("sequence", "sequence_length", "seq_len", "seq", "length")
_WHOLE_NUMBERS = frozenset({6, 7})  # int32 and int64, the types of token ids
_CHANNELS = (1, 3, 4)


def data_inputs(graph: Any) -> list[Any]:
    """Return the inputs of a graph except weights."""
    weights = {item.name for item in graph.initializer}
    return [item for item in graph.input if item.name not in weights]


def open_names(graph: Any) -> list[str]:
    """Return the names of the open input sizes; an unnamed size is named by its position."""
    return list(dict.fromkeys(name for name, extent in _extents(graph) if not extent.HasField("dim_value")))


def _extents(graph: Any) -> Iterator[tuple[str, Any]]:
    for item in data_inputs(graph):
        for axis, extent in enumerate(item.type.tensor_type.shape.dim):
            yield extent.dim_param or f"{item.name}[{axis}]", extent


def batch_in_graph(graph: Any) -> str | int | None:
    """Return the batch of a graph: the name of the open size, its fixed value, or None if there is none.

    It is the open size with that name, or else the first axis of the inputs, if they agree on it; the second axis for
    inputs of recurrent layers.
    """
    names = open_names(graph)
    named = next((name for name in BATCH_NAMES if name in names), None)
    if named is not None:
        return named
    second = {
        node.input[0]
        for node in graph.node
        if node.op_type in ("LSTM", "GRU", "RNN")
        and node.input
        and not any(item.name == "layout" and item.i for item in node.attribute)
    }
    firsts: set[str | int] = set()
    for item in data_inputs(graph):
        dims = item.type.tensor_type.shape.dim
        axis = 1 if item.name in second else 0
        if axis < len(dims) and len(dims) > 1:
            extent = dims[axis]
            open_name = extent.dim_param or f"{item.name}[{axis}]"
            firsts.add(extent.dim_value if extent.HasField("dim_value") else open_name)
    only = next(iter(firsts)) if len(firsts) == 1 else None
    return None if only in SEQUENCE_NAMES else only


def sequence_in_graph(graph: Any) -> str | None:
    """Return the name of the open sequence size; None if there is none."""
    names = open_names(graph)
    return next((name for name in SEQUENCE_NAMES if name in names), None)


def sizes_of_inputs(graph: Any, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the batch, the sequence and every other open size of a graph, with values from ``sizes``."""
    record: dict[str, int] = {}
    batch, sequence = batch_in_graph(graph), sequence_in_graph(graph)
    if isinstance(batch, int):
        record["batch"] = batch
    for label, name in (("batch", batch), ("sequence", sequence)):
        if isinstance(name, str) and name in sizes:
            record[label] = int(sizes[name])
    if sequence is None and (length := _fixed_sequence(graph)):
        record["sequence"] = length
    if side := _image_side(graph):
        record["image"] = side
    return record | {name: int(size) for name, size in sizes.items() if name not in (batch, sequence)}


def _fixed_sequence(graph: Any) -> int | None:
    """Return the length of token ids fixed by a graph; None if there are none."""
    lengths = {
        item.type.tensor_type.shape.dim[1].dim_value
        for item in data_inputs(graph)
        if item.type.tensor_type.elem_type in _WHOLE_NUMBERS and len(item.type.tensor_type.shape.dim) == 2
    } - {0}
    return lengths.pop() if len(lengths) == 1 else None


def _image_side(graph: Any) -> int | None:
    """Return the side of the only square image input, channels first or last; None if there is none."""
    sides = set()
    for item in data_inputs(graph):
        extents = [extent.dim_value for extent in item.type.tensor_type.shape.dim]
        if len(extents) == 4 and extents[2] == extents[3]:
            sides.add(extents[2])
        elif len(extents) == 4 and extents[1] == extents[2] and extents[3] in _CHANNELS:
            sides.add(extents[1])
    sides.discard(0)
    return sides.pop() if len(sides) == 1 else None


def requested_sizes(graph: Any, given: Mapping[str, int], sizes: Mapping[str, int], option: str) -> dict[str, int]:
    """Return values of open sizes: from ``sizes``, from the batch and the sequence in ``given``, or defaults.

    Raises
    ------
    ArgumentError
        If the graph has no such size, fixes it at another value, or another size stays open.
    """
    wanted = dict(sizes)
    sequence = sequence_in_graph(graph) or _fixed_sequence(graph)
    for label, name, usual in (("batch", batch_in_graph(graph), 1), ("sequence", sequence, 128)):
        value = given.get(label)
        if isinstance(name, str):
            if value is not None and wanted.get(name, value) != value:
                raise ArgumentError(
                    f"{option.format(label)} {value} and {name}={wanted[name]} are the same size: give one"
                )
            wanted.setdefault(name, usual if value is None else value)
        elif value is not None and name is None:
            known = ", ".join(open_names(graph))
            by_name = f", or give an open size by its name: {known}" if known else ""
            raise ArgumentError(
                f"{option.format(label)} {value}: the model's inputs have no {label} axis. Omit it{by_name}"
            )
        elif value not in (None, name):
            raise ArgumentError(
                f"{option.format(label)} {value}: the model's inputs fix it at {name}. Export the model with an open "
                f"{label}, or omit the option"
            )
    missing = [name for name in open_names(graph) if name not in wanted]
    if missing:
        example = f"--size {missing[0]}=8" if option == "--{}" else f"sizes={{{missing[0]!r}: 8}}"
        raise ArgumentError(f"the model leaves sizes open: {', '.join(missing)}. Give e.g. {example}")
    return wanted


def fix_sizes(graph: Any, sizes: Mapping[str, int]) -> None:
    """Fix every open size of the inputs and of declared intermediate tensors.

    Raises
    ------
    UnknownNameError
        If a name is not that of an open size.
    ArgumentError
        If a size stays open, or an input has no shape.
    """
    names = open_names(graph)
    for name, size in sizes.items():
        if name not in names:
            known = ", ".join(names) or "none"
            raise UnknownNameError(
                f"from_onnx(): the model has no open size {name!r}. Open: {known}.{did_you_mean(name, names)}"
            )
        checked_count("from_onnx", name, size)
    for item in data_inputs(graph):
        if item.type.HasField("tensor_type") and not item.type.tensor_type.HasField("shape"):
            raise ArgumentError(
                f"from_onnx(): the input {item.name!r} has no shape. Export the model with shapes for its inputs"
            )
    for name, extent in _extents(graph):
        if extent.HasField("dim_value"):
            continue
        if name not in sizes:
            source = next(item.name for item in data_inputs(graph) if extent in item.type.tensor_type.shape.dim)
            raise ArgumentError(
                f"from_onnx(): the input {source!r} leaves a size open: {name}. Give sizes={{{name!r}: 1}}"
            )
        extent.dim_value = int(sizes[name])
    for item in graph.value_info:
        for extent in item.type.tensor_type.shape.dim:
            if extent.dim_param in sizes:
                extent.dim_value = int(sizes[extent.dim_param])
