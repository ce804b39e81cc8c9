"""Tensors of an ONNX graph: shapes, formats, and stored weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from mlsys.errors import ArgumentError
from mlsys.workloads.onnx_topology import is_standard, subgraphs
from mlsys.workloads.torch_import.calls import Tensor

_FORMATS = {
    "float": "float32",
    "double": "float64",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float4e2m1": "fp4",
    "uint4": "int4",
}
_BITS = {"int4": 4, "uint4": 4, "float4e2m1": 4, "int2": 2, "uint2": 2}
_NOT_LEARNED = frozenset({"int64", "uint64", "bool", "string"})
# Inputs that configure an operator and hold no data, by operator: the first one, or their indices.
_SETTINGS = {
    **dict.fromkeys(("Reshape", "Expand", "Tile", "Squeeze", "Unsqueeze", "Split", "TopK", "CumSum", "Trilu"), (1,)),
    **dict.fromkeys(("Slice", "Pad", "Resize", "Upsample", "Clip", "OneHot", "Dropout"), (1, 2, 3, 4)),
    **dict.fromkeys(("Gather", "GatherElements", "GatherND", "ScatterND", "ScatterElements"), (1,)),
    **dict.fromkeys(("ConstantOfShape", "Range", "Where", "If", "EyeLike"), (0,)),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), (4, 5, 6)),
    "Loop": (0, 1),
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
}
# Weight inputs of layers, by operator.
_WEIGHTS = {
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm", "LayerNormalization", "GroupNormalization"), (1, 2)),
    **dict.fromkeys(("InstanceNormalization", "RMSNormalization"), (1, 2)),
    **dict.fromkeys(("MatMul", "Add", "Sub", "Mul"), (0, 1)),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), (1, 2, 3)),
    "BatchNormalization": (1, 2, 3, 4),
    "PRelu": (1,),
    "Gather": (0,),
}
# Operators whose output elements are input elements in another position or format.
SAME_ELEMENTS = frozenset({"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Cast", "CastLike",
                           "DequantizeLinear", "Dropout"})  # fmt: skip
_PASSES_ON = SAME_ELEMENTS | {"Slice", "Split", "Concat", "Expand", "Tile"}


class TensorInfo(NamedTuple):
    """Information about a tensor.

    Attributes
    ----------
    kind
        Its ``TypeProto``.
    constant
        Whether it is the same in every pass.
    learned
        Whether it is a weight, or computed from weights only.
    sized
        Whether it was computed from the sizes of an input.
    data
        Its values, if few and known.
    source
        The stored weight that it is a reshaped or converted version of.
    """

    kind: Any
    constant: bool = False
    learned: bool = False
    sized: bool = False
    data: Any = None
    source: str = ""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Its sizes; None if one is unknown."""
        tensor = self.kind.tensor_type
        if not self.kind.HasField("tensor_type") or not tensor.HasField("shape"):
            return None
        if not all(extent.HasField("dim_value") for extent in tensor.shape.dim):
            return None
        return tuple(extent.dim_value for extent in tensor.shape.dim)

    @property
    def code(self) -> int:
        """ONNX's number of its element type; 0 if unknown."""
        return int(self.kind.tensor_type.elem_type)


class StoredTensor(NamedTuple):
    """A tensor stored in the file: a weight, or a constant of the graph."""

    name: str
    tensor: Any
    shape: tuple[int, ...]
    literal: bool = False  # a constant of a formula, such as the 0.5 of a GELU or the ones of a plain normalisation


def stored_tensors(onnx: Any, graph: Any) -> Iterator[StoredTensor]:
    """Yield the weights and constants of a graph, without those of its subgraphs."""
    for item in graph.initializer:
        yield StoredTensor(item.name, item, tuple(item.dims))
    for item in graph.sparse_initializer:
        yield StoredTensor(item.values.name, item.values, tuple(item.dims))
    plain = _identity_maps(graph)
    for node in graph.node:
        if node.op_type == "Constant" and is_standard(node) and node.output and node.attribute:
            attribute = node.attribute[0]
            tensor = constant_tensor(onnx, attribute)
            if tensor is not None:
                shape = tuple(attribute.sparse_tensor.dims if attribute.name == "sparse_value" else tensor.dims)
                literal = math.prod(shape) == 1 or _filled_with(onnx, tensor, plain.get(node.output[0]))
                yield StoredTensor(node.output[0], tensor, shape, literal)


def _identity_maps(graph: Any) -> dict[str, float]:
    """Return the value that fills scale and shift of an ``InstanceNormalization`` that maps nothing, by tensor.

    The operator demands both. An exporter writes a normalisation without learned parameters, and the first step of a
    group normalisation, with constants of ones and zeros; learned ones are initializers.
    """
    nodes = [node for node in graph.node if node.op_type == "InstanceNormalization" and len(node.input) == 3]
    return {name: float(value) for node in nodes for name, value in zip(node.input[1:], (1, 0), strict=True)}


def _filled_with(onnx: Any, tensor: Any, value: float | None) -> bool:
    if value is None or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    try:
        return bool((onnx.numpy_helper.to_array(tensor) == value).all())
    except Exception:  # its data do not match its shape: `refuse_broken_tensor` says which
        return False


def constant_tensor(onnx: Any, attribute: Any) -> Any:
    """Return the tensor in an attribute of a ``Constant``; None for other attributes."""
    make = onnx.helper.make_tensor
    kinds = onnx.TensorProto
    if attribute.name == "value":
        return attribute.t
    if attribute.name == "sparse_value":
        return attribute.sparse_tensor.values
    single = {"value_float": (kinds.FLOAT, "f"), "value_int": (kinds.INT64, "i"), "value_string": (kinds.STRING, "s")}
    if attribute.name in single:
        kind, field = single[attribute.name]
        return make("", kind, (), [getattr(attribute, field)])
    several = {"value_floats": (kinds.FLOAT, "floats"), "value_ints": (kinds.INT64, "ints"),
               "value_strings": (kinds.STRING, "strings")}  # fmt: skip
    if attribute.name in several:
        kind, field = several[attribute.name]
        values = list(getattr(attribute, field))
        return make("", kind, (len(values),), values)
    return None


def element_format(onnx: Any, code: int) -> tuple[str, float]:
    """Return torch's name of an element type, and the bytes of an element."""
    name = onnx.TensorProto.DataType.Name(code).lower()
    if not code or name == "string":
        return name, 0
    itemsize = _BITS[name] / 8 if name in _BITS else int(onnx.helper.tensor_dtype_to_np_dtype(code).itemsize)
    return _FORMATS.get(name, name), itemsize


def is_weight_format(onnx: Any, code: int) -> bool:
    """Return whether weights can have an element type; shapes and masks are not counted as weights."""
    return bool(code) and element_format(onnx, code)[0] not in _NOT_LEARNED


def settings_alone(graph: Any) -> set[str]:
    """Return the tensors that only configure operators, such as the scales of a ``Resize``.

    Initial states of recurrent layers are included, also if they are slices of another tensor.
    """
    data: set[str] = {item.name for item in graph.output}
    every: set[str] = set()
    for node in reversed(graph.node):
        settings = _SETTINGS.get(node.op_type, ())
        passed_on = node.op_type in _PASSES_ON and data.isdisjoint(node.output) and every.issuperset(node.output)
        every.update(node.input)
        if not passed_on:
            data.update(name for slot, name in enumerate(node.input) if slot not in settings)
        for inner in subgraphs(node):
            data |= {name for each in inner.node for name in each.input} | {item.name for item in inner.output}
    return every - data


def read_as_weights(graph: Any) -> set[str]:
    """Return the tensors that an operator uses as layer weights, unchanged or reshaped."""
    names: set[str] = set()
    for node in reversed(graph.node):
        for slot, name in enumerate(node.input):
            passed_on = node.op_type in SAME_ELEMENTS and not slot and node.output[0] in names
            if passed_on or slot in _WEIGHTS.get(node.op_type, ()):
                names.add(name)
    return names


def packed_weights(graph: Any) -> dict[str, int]:
    """Return the number of parameters in sub-byte weights, several of which are packed into a byte."""
    packed = {}
    for node in graph.node:
        if node.op_type == "MatMulNBits" and len(node.input) > 1:
            sizes = {item.name: item.i for item in node.attribute}
            packed[node.input[1]] = sizes["K"] * sizes["N"]
    return packed


def call_tensor(onnx: Any, info: TensorInfo, stored: TensorInfo, role: str, identity: int) -> Tensor:
    """Return a tensor of known shape for the counting rules: in its own shape, and in its stored format."""
    shape = info.shape or ()
    dtype, itemsize = element_format(onnx, stored.code)
    return Tensor(shape, shape, dtype, itemsize, role, identity)


def elements(shape: tuple[int, ...]) -> int:
    """Return the number of elements of a shape."""
    return math.prod(shape)


def refuse_broken_tensor(onnx: Any, tensor: Any, shape: tuple[int, ...], name: str) -> None:
    """Raise for a stored tensor whose data do not match its shape.

    Raises
    ------
    ArgumentError
        With the actual bytes or numbers and those that its shape needs.
    """
    if tensor.data_type not in onnx.TensorProto.DataType.values() or not tensor.data_type:
        raise ArgumentError(f"from_onnx(): the weight {name!r} has the unknown element type {tensor.data_type}")
    if min(shape, default=0) < 0:
        raise ArgumentError(f"from_onnx(): the weight {name!r} has a size of {min(shape)}. Sizes must be >= 0")
    if tensor.dims and tuple(tensor.dims) != shape:
        return  # sparse: its values are fewer than its elements
    kind = onnx.TensorProto.DataType.Name(tensor.data_type)
    count = elements(shape)
    needed = math.ceil(count * element_format(onnx, tensor.data_type)[1])
    unit = "bytes of data"
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        if not entries.get("length", "").isdecimal():
            return
        given = int(entries["length"])
    elif tensor.HasField("raw_data"):
        given = len(tensor.raw_data)
    elif kind == "STRING":
        given, needed, unit = len(tensor.string_data), count, "texts"
    else:
        typed = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data)
        given, unit = sum(map(len, typed)), "numbers"
        bits = _BITS.get(kind.lower())
        needed = math.ceil(count * bits / 8) if bits else count * (2 if kind.startswith("COMPLEX") else 1)
    if given != needed:
        size = " × ".join(map(str, shape)) or "one element"
        raise ArgumentError(
            f"from_onnx(): the weight {name!r} of {size} needs {needed:,} {unit} and has {given:,}. "
            "Export the model again"
        )
