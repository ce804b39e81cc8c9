"""Shape inference and constant folding of an ONNX graph, node by node, at fixed sizes."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any

from mlsys.errors import ArgumentError, first_line
from mlsys.workloads.argument_checks import MOST_ELEMENTS
from mlsys.workloads.onnx_checks import checked_shapes
from mlsys.workloads.onnx_contrib import DOMAIN, SAME_IN_STANDARD, contrib_shapes
from mlsys.workloads.onnx_node_view import Mismatch, text_of
from mlsys.workloads.onnx_subgraphs import inputs_of_body, outputs_of_node
from mlsys.workloads.onnx_tensors import (
    SAME_ELEMENTS,
    StoredTensor,
    TensorInfo,
    element_format,
    elements,
    is_weight_format,
    packed_weights,
    read_as_weights,
    settings_alone,
    stored_tensors,
)
from mlsys.workloads.onnx_topology import is_standard, node_label, subgraphs

_FEW = 1024  # largest constant whose values are kept, elements
_RANDOM = frozenset({"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli",
                     "Multinomial"})  # fmt: skip


class GraphShapes:
    """The tensors of a graph and of its subgraphs.

    Parameters
    ----------
    onnx
        The onnx package.
    graph
        A ``GraphProto`` with sorted nodes and fixed input sizes.
    imports
        The operator sets that the model imports.
    outer
        The enclosing graph.
    inputs
        Information about its inputs in addition to its declarations.

    Attributes
    ----------
    tensors
        Information about each tensor that its nodes read or make, by name.
    stored
        The weights and constants stored in the file for this graph.
    inner
        The subgraphs, by the first output of the node and the attribute.

    Raises
    ------
    ArgumentError
        If the inputs of a node do not match each other, or a declared output differs from the computed one.
    """

    def __init__(
        self,
        onnx: Any,
        graph: Any,
        imports: Any,
        outer: GraphShapes | None = None,
        inputs: Mapping[str, TensorInfo] | None = None,
    ) -> None:
        self._onnx, self._imports, self.graph = onnx, list(imports), graph
        self._opsets = {item.domain or "ai.onnx": item.version for item in self._imports}
        around = outer.tensors.maps if outer else []
        self.tensors: ChainMap[str, TensorInfo] = ChainMap({}, *around)
        self.stored: dict[str, StoredTensor] = {}
        self.inner: dict[tuple[str, str], GraphShapes] = {}
        self._settings, self._weights = settings_alone(graph), read_as_weights(graph)
        self._fold: bool = outer._fold if outer else bool(graph.input)
        weights = {item.name for item in graph.initializer}
        for item in graph.input:
            if item.name not in weights:
                self.tensors[item.name] = (inputs or {}).get(item.name) or TensorInfo(item.type)
        for stored in stored_tensors(onnx, graph):
            self.stored[stored.name] = stored
            self.tensors[stored.name] = self._of_stored(stored)
        declared = {item.name: item for item in graph.value_info}
        for node in graph.node:
            if not (node.op_type == "Constant" and node.output[0] in self.stored):
                self._infer(node, declared)
        if outer is None:
            _refuse_other_outputs(onnx, graph, self.tensors)

    def weights(self) -> Iterator[tuple[int, int]]:
        """Yield parameters and bytes of every weight in the graph and its subgraphs, used or not."""
        packed = packed_weights(self.graph)
        filled = [node.output[0] for node in self.graph.node if node.op_type == "ConstantOfShape"]
        for name in (*self.stored, *filled):
            info = self.tensors[name]
            if info.learned:
                count = elements(info.shape or ())
                yield packed.get(name, count), math.ceil(count * element_format(self._onnx, info.code)[1])
        for scope in self.inner.values():
            yield from scope.weights()

    def _of_stored(self, stored: StoredTensor) -> TensorInfo:
        kind = self._onnx.helper.make_tensor_type_proto(stored.tensor.data_type, stored.shape)
        learned = (
            is_weight_format(self._onnx, stored.tensor.data_type)
            and not stored.literal
            and stored.name not in self._settings
        )
        data = None
        if elements(stored.shape) <= _FEW and tuple(stored.tensor.dims) == stored.shape:
            data = self._array(stored)
        return TensorInfo(kind, constant=True, learned=learned, data=data)

    def _array(self, stored: StoredTensor) -> Any:
        if stored.tensor.data_location == self._onnx.TensorProto.EXTERNAL:
            return None
        try:
            return self._onnx.numpy_helper.to_array(stored.tensor)
        except Exception as error:
            raise ArgumentError(
                f"from_onnx(): the weight {stored.name!r} cannot be read: {first_line(error)}"
            ) from error

    def _infer(self, node: Any, declared: Mapping[str, Any]) -> None:
        given = [self.tensors.get(name) for name in node.input]
        there = [info for info in given if info is not None]
        attributes = {item.name: self._onnx.helper.get_attribute_value(item) for item in node.attribute}
        for name, inner in attributes.items():
            if isinstance(inner, self._onnx.GraphProto):
                inputs = inputs_of_body(self._onnx, node, inner, given)
                self.inner[node.output[0], name] = GraphShapes(self._onnx, inner, self._imports, self, inputs)
        try:
            kinds = self._kinds(node, given, attributes)
        except Mismatch as error:
            raise ArgumentError(f"from_onnx(): {node_label(node)} {error}") from None
        except (self._onnx.shape_inference.InferenceError, self._onnx.checker.ValidationError) as error:
            sizes = ", ".join(
                f"{name!r} of {text_of(info.shape)} ({element_format(self._onnx, info.code)[0]})"
                for name, info in zip(node.input, given, strict=True)
                if info is not None and info.shape is not None
            )
            reason = first_line(error).replace("[ShapeInferenceError] ", "").replace("[TypeInferenceError] ", "")
            raise ArgumentError(
                f"from_onnx(): {node_label(node)} cannot process {sizes or 'its inputs'}: {reason}"
            ) from error
        sized = any(info.sized for info in there)
        constant = self._is_constant(node, given)
        data = self._evaluated(node, given, kinds) if constant else {}
        if node.op_type in ("Shape", "Size") and is_standard(node) and given and given[0] is not None:
            sized = sized or not given[0].constant
        for name in node.output:
            if not name:
                continue
            kind = kinds.get(name)
            if kind is None or not kind.WhichOneof("value"):
                kind = declared[name].type if name in declared else self._onnx.TypeProto()
            info = TensorInfo(kind, sized=sized, constant=constant, data=data.get(name))
            if node.op_type == "ConstantOfShape" and constant:
                made = (
                    not sized and bool(info.shape) and is_weight_format(self._onnx, info.code) and name in self._weights
                )  # fmt: skip
                info = info._replace(learned=made)
            elif constant:
                source = ""
                if node.op_type in SAME_ELEMENTS and there[0].learned:
                    source = there[0].source or node.input[0]
                info = info._replace(learned=any(each.learned for each in there), source=source)
            if info.shape is not None and min(info.shape, default=0) < 0:
                raise ArgumentError(
                    f"from_onnx(): {node_label(node)} makes {name!r} of {text_of(info.shape)}: "
                    f"a size of {min(info.shape)}. Sizes must be >= 0"
                )
            if info.shape is not None and elements(info.shape) > MOST_ELEMENTS:
                raise ArgumentError(
                    f"from_onnx(): {node_label(node)} makes {name!r} of {text_of(info.shape)}: more than "
                    f"{MOST_ELEMENTS:,} elements. Use smaller sizes"
                )
            self.tensors[name] = info

    def _is_constant(self, node: Any, given: list[TensorInfo | None]) -> bool:
        """Return whether a node's outputs are the same in every pass, and so computed before the first one."""
        if not is_standard(node) or node.op_type in _RANDOM or any(True for _ in subgraphs(node)):
            return False
        if node.op_type in ("Shape", "Size"):
            return given[0] is not None and given[0].shape is not None
        if not all(info is not None and info.constant for info, name in zip(given, node.input, strict=True) if name):
            return False
        return bool(given) and (self._fold or node.op_type in (*SAME_ELEMENTS, "ConstantOfShape", "Range"))

    def _kinds(self, node: Any, given: list[TensorInfo | None], attributes: dict[str, Any]) -> dict[str, Any]:
        """Return the types of a node's outputs, as far as defined by its operator."""
        onnx = self._onnx
        if any(True for _ in subgraphs(node)):
            return outputs_of_node(onnx, node, self)
        shapes = [info.shape if info is not None else None for info in given]
        if not is_standard(node):
            if (node.domain, node.op_type) == (DOMAIN, "FusedConv"):
                made = checked_shapes(node, shapes, [None] * len(given), attributes)
                return {node.output[0]: onnx.helper.make_tensor_type_proto(_code(given, 0), made[0])} if made else {}
            return {
                name: onnx.helper.make_tensor_type_proto(_code(given, made.like), made.shape)
                for name, made in zip(node.output, contrib_shapes(node, shapes, attributes), strict=False)
                if name
            }
        own = checked_shapes(node, shapes, [info.data if info is not None else None for info in given], attributes)
        version = self._opsets.get("ai.onnx", 1)
        try:
            schema = onnx.defs.get_schema(node.op_type, version, "")
        except onnx.defs.SchemaError:
            if node.op_type in SAME_IN_STANDARD:
                return {node.output[0]: given[0].kind} if given and given[0] is not None else {}
            raise Mismatch(f"is not an operator of ONNX in version {version} of its operators") from None
        types = {
            name: info.kind
            for name, info in zip(node.input, given, strict=True)
            if info is not None and info.kind.WhichOneof("value")
        }
        if any(name and name not in types for name in node.input):
            return {}
        data = {
            name: onnx.numpy_helper.from_array(info.data)
            for name, info in zip(node.input, given, strict=True)
            if info is not None and info.data is not None and info.data.dtype != object
        }
        kinds = dict(
            onnx.shape_inference.infer_node_outputs(schema, node, types, input_data=data, opset_imports=self._imports)
        )
        for name, shape in zip(node.output, own, strict=False):
            if shape is not None and name in kinds:
                kinds[name] = onnx.helper.make_tensor_type_proto(kinds[name].tensor_type.elem_type, shape)
        return kinds

    def _evaluated(self, node: Any, given: list[TensorInfo | None], kinds: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a node's outputs, if they are few and follow from known ones."""
        import numpy as np

        if node.op_type in ("Shape", "Size"):
            first = given[0]
            assert first is not None and first.shape is not None
            if node.op_type == "Size":
                return {node.output[0]: np.array(elements(first.shape), np.int64)}
            ends = {item.name: item.i for item in node.attribute}
            return {node.output[0]: np.array(first.shape[ends.get("start", 0) : ends.get("end")], np.int64)}
        feeds = {}
        for name, info in zip(node.input, given, strict=True):
            if name:
                if info is None or info.data is None:
                    return {}
                feeds[name] = info.data
        for name in node.output:
            shape = TensorInfo(kinds[name]).shape if name in kinds else None
            if name and (shape is None or elements(shape) > _FEW):
                return {}
        try:
            evaluator = self._onnx.reference.ReferenceEvaluator(node, opsets={"": self._opsets.get("ai.onnx", 1)})
            made = evaluator.run(None, feeds)
        except Exception:  # not supported by the reference implementation: its values stay unknown
            return {}
        return {
            name: value
            for name, value in zip(node.output, made, strict=False)
            if isinstance(value, (np.ndarray, np.generic)) and value.size <= _FEW
        }


def _code(given: list[TensorInfo | None], slot: int) -> int:
    info = given[slot] if slot < len(given) else None
    return info.code if info is not None else 0


def _refuse_other_outputs(onnx: Any, graph: Any, tensors: Mapping[str, TensorInfo]) -> None:
    """Raise for declared outputs whose shape or element type differs from the computed one."""
    for item in graph.output:
        declared, computed = TensorInfo(item.type), tensors[item.name]
        if declared.code and computed.code and declared.code != computed.code:
            names = [onnx.TensorProto.DataType.Name(info.code).lower() for info in (declared, computed)]
            raise ArgumentError(
                f"from_onnx(): the output {item.name!r} is declared as {names[0]}, but the nodes compute {names[1]}"
            )
        tensor = item.type.tensor_type
        if computed.shape is None or not item.type.HasField("tensor_type") or not tensor.HasField("shape"):
            continue
        sizes = [extent.dim_value if extent.HasField("dim_value") else None for extent in tensor.shape.dim]
        if len(sizes) != len(computed.shape) or any(
            size is not None and size != made for size, made in zip(sizes, computed.shape, strict=True)
        ):
            shown = text_of(tuple("?" if size is None else size for size in sizes))
            raise ArgumentError(
                f"from_onnx(): the output {item.name!r} is declared as {shown}, but the nodes compute "
                f"{text_of(computed.shape)}"
            )
