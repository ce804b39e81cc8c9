"""ONNX models as workloads: every node becomes a call and is counted by the rules of torch's operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mlsys.door import checked_count
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean, first_line
from mlsys.frozen import FrozenDict
from mlsys.workloads.onnx_faults import refuse_impossible_shapes, refuse_impossible_sizes, refuse_too_many_nodes
from mlsys.workloads.onnx_operators import VIEWS, call_of
from mlsys.workloads.onnx_sizes import named_sizes
from mlsys.workloads.torch_import.calls import Call, Tensor

if TYPE_CHECKING:
    from mlsys.workloads.workload import Workload

_NOT_DATA = frozenset({"Shape", "Size", "Constant", "ConstantOfShape", "Range"})
_WHOLE_NUMBERS = frozenset({"int64", "bool"})


class _Value(NamedTuple):
    shape: tuple[int, ...]
    dtype: str
    itemsize: int
    role: str


_NOTHING = _Value((0,), "", 0, "activation")


def from_onnx(model: object, *, sizes: Mapping[str, int] | None = None, name: str | None = None) -> Workload:
    """Read an ONNX model as a workload; weights kept in other files are not loaded.

    Reshaping is a view; transposing, slicing and splitting copy, as ONNX defines them.

    Parameters
    ----------
    model
        The path of a ``.onnx`` file, or an ``onnx.ModelProto``.
    sizes
        Numbers for the sizes that the model leaves open, by the model's names for them.
    name
        What to call it; by default the name of the graph.

    Raises
    ------
    ArgumentError
        If the file is missing or no ONNX model, onnx is not installed, or a size is open.
    UnknownNameError
        If ``sizes`` names a size that the model does not have.

    Examples
    --------
    >>> from onnx import TensorProto, helper
    >>> shapes = {"a": ("n", 4), "b": (4, 5)}
    >>> inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    >>> output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    >>> graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["y"])], "product", inputs, [output])
    >>> print(from_onnx(helper.make_model(graph), sizes={"n": 3}).macs)
    60 MAC
    """
    onnx = _onnx()
    proto = _loaded(onnx, model)
    try:
        return _built(onnx, proto, dict(sizes or {}), name)
    except (ArgumentError, UnknownNameError):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # parts that no writer makes
        raise ArgumentError(
            f"from_onnx(): the model is not sound ({type(error).__name__}: {first_line(error)})"
        ) from error


def _built(onnx: Any, proto: Any, sizes: dict[str, int], name: str | None) -> Workload:
    refuse_impossible_sizes(proto)
    refuse_too_many_nodes(proto)
    _fix_sizes(proto, sizes)
    try:
        proto = onnx.shape_inference.infer_shapes(onnx.inliner.inline_local_functions(proto), data_prop=True)
    except Exception as error:  # the checker's errors have no common class
        raise ArgumentError(f"from_onnx(): the shapes of the model do not fit: {first_line(error)}") from error
    refuse_impossible_shapes(proto)

    from mlsys.workloads.torch_import.assemble import Template
    from mlsys.workloads.torch_import.symbolic import Expressions
    from mlsys.workloads.torch_import.wiring import Ends, Look, Wire
    from mlsys.workloads.totals import Held

    values = dict(_values(onnx, proto.graph))
    stored = [values[item.name] for item in proto.graph.initializer]
    learned = [value for value in stored if value.dtype not in _WHOLE_NUMBERS]
    held = Held(
        sum(_elements(value.shape) for value in learned),
        sum(_elements(value.shape) * value.itemsize for value in learned),
    )
    template = Template(name or proto.graph.name or "ONNX model", "ONNX", held, Expressions(), {}, {})
    looks: dict[str, Look] = {}

    def look(tensor: str) -> Look:
        if tensor not in looks:
            looks[tensor] = Look(len(template.wires))
            template.wires.append(Wire(tensor, _tensor(values.get(tensor, _NOTHING), 0)))
        return looks[tensor]

    for index, node in enumerate(proto.graph.node):
        if node.op_type not in _NOT_DATA:
            label = node.name or f"{node.op_type.lower()}_{index}"
            call = _call(onnx, node, values)
            names = [name for name in dict.fromkeys(node.input) if name in values]
            taken = tuple(look(names[tensor.identity]) for tensor in call.inputs)
            if call.is_view:
                looks[node.output[0]] = look(node.input[0])._replace(view=index + 1)
            made = () if call.is_view else tuple(look(name).wire for name in node.output if name)
            template.add(label, f"{node.domain or 'ai.onnx'}.{node.op_type}", "", call, Ends(taken, made))
    template.returned = tuple(looks[item.name].wire for item in proto.graph.output if item.name in looks)
    initializers = {item.name for item in proto.graph.initializer}
    template.inputs = [_tensor(values[item.name], 0) for item in proto.graph.input if item.name not in initializers]
    workload = template.at({})
    if not workload.data.m_as("byte") and not any(node.op_type in VIEWS for node in proto.graph.node):
        raise ArgumentError("from_onnx(): the model has no operator whose shapes are known: is the file whole?")
    return replace(workload, sizes=FrozenDict(named_sizes(proto.graph, sizes)))


def open_sizes(model: object) -> tuple[str, ...]:
    """Return the model's names for the sizes of its inputs that it leaves open."""
    return tuple(dict.fromkeys(extent.dim_param for _, extent in _extents(_loaded(_onnx(), model)) if extent.dim_param))


def _extents(proto: Any) -> list[tuple[str, Any]]:
    """Return every size of every input, weights apart, with the name of the input."""
    initializers = {item.name for item in proto.graph.initializer}
    given = [item for item in proto.graph.input if item.name not in initializers]
    return [(item.name, extent) for item in given for extent in item.type.tensor_type.shape.dim]


def _onnx() -> Any:
    try:
        import onnx
        import onnx.inliner
        import onnx.shape_inference
    except ImportError as error:
        raise ArgumentError(
            "from_onnx(): the package onnx is not installed. Install it with: pip install 'mlsys[onnx]'"
        ) from error
    return onnx


def _loaded(onnx: Any, model: Any) -> Any:
    if isinstance(model, (str, Path)):
        if not Path(model).is_file():
            raise ArgumentError(f"from_onnx(): there is no file {str(model)!r}. Give the path of a .onnx file")
        try:
            model = onnx.load(str(model), load_external_data=False)
        except Exception as error:  # protobuf's own class
            raise ArgumentError(f"from_onnx(): {str(model)!r} is not an ONNX model: {first_line(error)}") from error
    if not isinstance(model, onnx.ModelProto) or not model.graph.node:
        raise ArgumentError(
            "from_onnx(): `model` must be an ONNX model with at least one node, or its path, "
            f"got {type(model).__name__}. Write e.g. from_onnx('model.onnx')"
        )
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _fix_sizes(proto: Any, sizes: dict[str, int]) -> None:
    """Write a number wherever an input leaves a size open."""
    extents = _extents(proto)
    names = dict.fromkeys(extent.dim_param for _, extent in extents if extent.dim_param)
    for name, size in sizes.items():
        if name not in names:
            open_sizes = ", ".join(names) or "none"
            raise UnknownNameError(
                f"from_onnx(): the model has no open size {name!r}. Open: {open_sizes}.{did_you_mean(name, names)}"
            )
        checked_count("from_onnx", name, size)
    for source, extent in extents:
        if extent.dim_param in sizes:
            extent.dim_value = int(sizes[extent.dim_param])
        elif not extent.HasField("dim_value"):
            label = extent.dim_param or "without a name"
            example = f"sizes={{{extent.dim_param!r}: 1}}" if extent.dim_param else "a model whose inputs have shapes"
            raise ArgumentError(f"from_onnx(): the input {source!r} leaves a size open: {label}. Give {example}")
    for item in proto.graph.output:  # the shapes that follow are inferred anew
        item.type.tensor_type.ClearField("shape")
    del proto.graph.value_info[:]


def _values(onnx: Any, graph: Any) -> Iterator[tuple[str, _Value]]:
    """Yield name and shape of every tensor whose shape is known."""
    for role, items in (("input", graph.input), ("activation", graph.value_info), ("activation", graph.output)):
        for item in items:
            kind = item.type.tensor_type
            if kind.HasField("shape") and all(extent.HasField("dim_value") for extent in kind.shape.dim):
                shape = tuple(extent.dim_value for extent in kind.shape.dim)
                yield item.name, _Value(shape, *_format(onnx, kind.elem_type), role)
    for item in graph.initializer:
        dtype, itemsize = _format(onnx, item.data_type)
        yield item.name, _Value(tuple(item.dims), dtype, itemsize, "parameter")
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    dtype, itemsize = _format(onnx, attribute.t.data_type)
                    yield node.output[0], _Value(tuple(attribute.t.dims), dtype, itemsize, "constant")


def _format(onnx: Any, code: int) -> tuple[str, int]:
    name = onnx.TensorProto.DataType.Name(code).lower()
    name = {"float": "float32", "double": "float64", "float8e4m3fn": "float8_e4m3fn", "float8e5m2": "float8_e5m2"}.get(
        name, name
    )
    return name, int(onnx.helper.tensor_dtype_to_np_dtype(code).itemsize) if code else 0


def _elements(shape: tuple[int, ...]) -> int:
    return Tensor(shape, shape, "", 1).elements


def _tensor(value: _Value, identity: int) -> Tensor:
    return Tensor(value.shape, value.shape, value.dtype, value.itemsize, value.role, identity)


def _call(onnx: Any, node: Any, values: Mapping[str, _Value]) -> Call:
    """Return a node as a call, of the tensors whose shapes are known."""
    identities: dict[str, int] = {}
    given = [
        _tensor(values[name], identities.setdefault(name, len(identities))) if name in values else None
        for name in node.input
    ]
    outputs = tuple(_tensor(values[name], -1 - index) for index, name in enumerate(node.output) if name in values)
    known = len(outputs) == sum(bool(name) for name in node.output) and all(
        tensor is not None or not name for name, tensor in zip(node.input, given, strict=True)
    )
    if not known:
        named = tuple((str(index), tensor) for index, tensor in enumerate(given))
        return Call(f"{node.op_type} (of unknown shape)", "", named, outputs)
    attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    return call_of(node.op_type, node.domain, given, outputs, attributes)
