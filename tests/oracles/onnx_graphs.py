"""Random small ONNX graphs, grown node by node, with ONNX Runtime as the judge of what is a graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Shape = tuple[int, ...]
onnxruntime.set_default_logger_severity(4)
_TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_, "tensor(uint8)": np.uint8,
          "tensor(int8)": np.int8, "tensor(int32)": np.int32}  # fmt: skip


@dataclass
class Graph:
    """A graph that grows: its nodes, weights, and the shape of each float tensor as ONNX Runtime computed it."""

    inputs: dict[str, Shape]
    opset: int = 20
    nodes: list[NodeProto] = field(default_factory=list)
    weights: list[TensorProto] = field(default_factory=list)
    tensors: dict[str, Shape] = field(default_factory=dict)
    macs: int = 0

    def weight(self, shape: Shape, dtype: type = np.float32) -> str:
        name = f"w{len(self.weights)}"
        values = np.full(shape, 0.01 if dtype is np.float32 else 1, dtype)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def whole(self, *numbers: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
        return name

    def model(self, shapes: dict[str, Shape] | None = None, batch: str | None = None) -> ModelProto:
        """Return the model with every tensor that a node makes as an output; ``batch`` names the first axis."""
        made = {name for node in self.nodes for name in node.output if name}
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, (batch or shape[0], *shape[1:]))
            for name, shape in self.inputs.items()
        ]
        outputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None if shapes is None else shapes.get(name))
            for name in sorted(made)
        ]
        graph = helper.make_graph(self.nodes, "net", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)


def run(model: ModelProto) -> dict[str, Shape] | None:
    """Return the shape of each output as ONNX Runtime computes it; None if it refuses the model."""
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        feeds = {item.name: np.ones([1 if isinstance(size, str) or size is None else size for size in item.shape],
                                    _TYPES[item.type]) for item in session.get_inputs()}  # fmt: skip
        names = [item.name for item in session.get_outputs()]
        return {name: tuple(value.shape) for name, value in zip(names, session.run(None, feeds), strict=True)}
    except Exception:
        return None


Step = Callable[[Any, Graph, str, Shape, str], NodeProto]
STEPS: dict[str, Step] = {}


def step(function: Step) -> Step:
    STEPS[function.__name__] = function
    return function


def near(draw: Any, right: int) -> int:
    """Return a size that is mostly right, and sometimes another one."""
    return right if draw(st.integers(0, 9)) else draw(st.integers(1, 6))


def window(draw: Any, dims: int) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if draw(st.booleans()):
        given["strides"] = [draw(st.integers(1, 3)) for _ in range(dims)]
    if draw(st.booleans()):
        given["dilations"] = [draw(st.integers(1, 2)) for _ in range(dims)]
    way = draw(st.sampled_from(["none", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if way == "pads":
        given["pads"] = [draw(st.integers(0, 2)) for _ in range(2 * dims)]
    elif way != "none":
        given["auto_pad"] = way
        if way.startswith("SAME"):
            given.pop("dilations", None)
    return given


def without_overhang(given: dict[str, Any], kernel: list[int], shape: Shape) -> dict[str, Any]:
    """Drop the strides of a window larger than its padded input, for which ONNX Runtime divides toward zero."""
    dims = len(kernel)
    if len(shape) != dims + 2:
        return given
    pads = given.get("pads", [0] * 2 * dims)
    reach = [step * (size - 1) + 1 for step, size in zip(given.get("dilations", [1] * dims), kernel, strict=True)]
    room = [size + pads[axis] + pads[axis + dims] for axis, size in enumerate(shape[2:])]
    if not str(given.get("auto_pad")).startswith("SAME") and any(a > b for a, b in zip(reach, room, strict=True)):
        given.pop("strides", None)
    return given


@step
def conv(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    dims = max(len(shape) - 2, 1)
    channels = shape[1] if len(shape) > 1 else 1
    group = draw(st.sampled_from([size for size in range(1, channels + 1) if channels % size == 0] or [1]))
    filters = group * draw(st.integers(1, 3)) if draw(st.integers(0, 9)) else draw(st.integers(1, 5))
    kernel = [draw(st.integers(1, 3)) for _ in range(dims)]
    names = [x, graph.weight((filters, near(draw, channels // group), *kernel))]
    if draw(st.booleans()):
        names.append(graph.weight((near(draw, filters),)))
    return helper.make_node("Conv", names, [y], group=group, **without_overhang(window(draw, dims), kernel, shape))


@step
def conv_transpose(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    dims = max(len(shape) - 2, 1)
    group = draw(st.sampled_from([1, 2]))
    kernel = [draw(st.integers(1, 3)) for _ in range(dims)]
    channels = near(draw, shape[1] if len(shape) > 1 else 1)
    given = window(draw, dims)
    names = [x, graph.weight((channels, draw(st.integers(1, 3)), *kernel))]
    return helper.make_node("ConvTranspose", names, [y], group=group, **given)


@step
def pool(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    dims = min(max(len(shape) - 2, 1), 3)  # ONNX Runtime pools over no more axes
    kind = draw(st.sampled_from(["MaxPool", "AveragePool"]))
    given = window(draw, dims)
    if kind == "AveragePool" and graph.opset < 19:
        given.pop("dilations", None)
    if draw(st.booleans()):
        given["ceil_mode"] = 1
    kernel = [draw(st.integers(1, 3)) for _ in range(dims)]
    if str(given.get("auto_pad")).startswith("SAME"):  # ONNX Runtime pads by less than nothing where a stride is longer
        given["strides"] = [min(pair) for pair in zip(given.get("strides", kernel), kernel, strict=True)]
    return helper.make_node(kind, [x], [y], kernel_shape=kernel, **without_overhang(given, kernel, shape))


@step
def global_pool(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    return helper.make_node(draw(st.sampled_from(["GlobalAveragePool", "GlobalMaxPool"])), [x], [y])


@step
def matmul(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    inner = near(draw, shape[-1] if shape else 1)
    other = (
        graph.weight((inner, draw(st.integers(1, 4))))
        if draw(st.booleans())
        else draw(st.sampled_from(list(graph.tensors)))
    )
    return helper.make_node("MatMul", [x, other], [y])


@step
def gemm(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    turned_a, turned_b = draw(st.integers(0, 1)), draw(st.integers(0, 1))
    k = near(draw, (shape[0] if turned_a else shape[-1]) if shape else 1)
    n = draw(st.integers(1, 4))
    names = [x, graph.weight((n, k) if turned_b else (k, n))]
    if draw(st.booleans()):
        names.append(graph.weight(draw(st.sampled_from([(n,), (1, n), (1,), (n + 1,), ()]))))
    return helper.make_node("Gemm", names, [y], transA=turned_a, transB=turned_b)


@step
def arithmetic(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    op = draw(st.sampled_from(["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean"]))
    kept = shape[draw(st.integers(0, len(shape))) :]
    near_shape = tuple(size if draw(st.integers(0, 3)) else draw(st.sampled_from([1, size, size + 1])) for size in kept)
    other = graph.weight(near_shape) if draw(st.booleans()) else draw(st.sampled_from(list(graph.tensors)))
    return helper.make_node(op, [x, other], [y])


@step
def activation(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    names = ["Relu", "Sigmoid", "Tanh", "Exp", "Softplus", "HardSwish", "Elu", "LeakyRelu", "Identity", "Softmax",
             "Erf", "LogSoftmax", "Selu", "Celu", "HardSigmoid", "Mish", "Softsign", "Neg", "Abs"]  # fmt: skip
    op = draw(st.sampled_from(names + (["Gelu"] if graph.opset >= 20 else [])))
    return helper.make_node(op, [x], [y])


@step
def transpose(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    order = draw(st.permutations(range(len(shape) if draw(st.integers(0, 9)) else len(shape) + 1)))
    return helper.make_node("Transpose", [x], [y], **({"perm": list(order)} if order else {}))


@step
def reshape(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    whole = math.prod(shape)
    sizes = draw(
        st.sampled_from([(whole,), (1, whole), (-1,), (0, -1), (-1, 2), (2, -1), (whole, 1), (3, 3), (-1, -1)])
    )
    return helper.make_node("Reshape", [x, graph.whole(*sizes)], [y])


@step
def flatten(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    return helper.make_node("Flatten", [x], [y], axis=draw(st.integers(-len(shape), len(shape) + 1)))


@step
def concat(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    axis = draw(st.integers(-len(shape) - 1, len(shape)))
    other = tuple(draw(st.sampled_from([size, size, size, size + 1])) for size in shape)
    return helper.make_node("Concat", [x, graph.weight(other)], [y], axis=axis)


@step
def split(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    axis = draw(st.integers(-len(shape), len(shape)))
    size = shape[axis] if -len(shape) <= axis < len(shape) else 1
    if draw(st.booleans()) and size > 1:
        first = draw(st.integers(1, size))
        return helper.make_node("Split", [x, graph.whole(first, size - first)], [y, f"{y}b"], axis=axis)
    count = {"num_outputs": 2} if graph.opset >= 18 else {}
    return helper.make_node("Split", [x], [y, f"{y}b"], axis=axis, **count)


@step
def slice_(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    numbers = st.integers(-6, 6)
    names = [
        x,
        graph.whole(draw(numbers)),
        graph.whole(draw(numbers)),
        graph.whole(draw(st.integers(-len(shape), len(shape)))),
    ]
    return helper.make_node("Slice", [*names, graph.whole(draw(st.sampled_from([1, 1, 2, -1])))], [y])


@step
def pad(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    pads = [draw(st.sampled_from([0, 0, 1, 2, -1])) for _ in range(2 * len(shape))]
    return helper.make_node("Pad", [x, graph.whole(*pads)], [y])


@step
def squeeze(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    return helper.make_node("Squeeze", [x, graph.whole(draw(st.integers(-len(shape), len(shape))))], [y])


@step
def unsqueeze(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    return helper.make_node("Unsqueeze", [x, graph.whole(draw(st.integers(-len(shape) - 2, len(shape) + 1)))], [y])


@step
def expand(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    sizes = [size if size != 1 else draw(st.integers(1, 3)) for size in shape]
    return helper.make_node("Expand", [x, graph.whole(*(near(draw, size) for size in sizes))], [y])


@step
def tile(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    return helper.make_node("Tile", [x, graph.whole(*(draw(st.integers(1, 2)) for _ in shape))], [y])


@step
def gather(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    axis = draw(st.integers(-len(shape), len(shape)))
    return helper.make_node("Gather", [x, graph.whole(0, 0, 0)], [y], axis=axis)


@step
def reduction(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    op = draw(st.sampled_from(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSumExp"]))
    axes = [draw(st.integers(-len(shape), len(shape)))] if draw(st.booleans()) else []
    keep = draw(st.integers(0, 1))
    if op == "ReduceSum" or graph.opset >= 18:
        return helper.make_node(op, [x, *([graph.whole(*axes)] if axes else [])], [y], keepdims=keep)
    return helper.make_node(op, [x], [y], keepdims=keep, **({"axes": axes} if axes else {}))


@step
def batch_norm(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    channels = near(draw, shape[1] if len(shape) > 1 else 1)
    return helper.make_node("BatchNormalization", [x, *(graph.weight((channels,)) for _ in range(4))], [y])


@step
def layer_norm(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    axis = draw(st.integers(-len(shape), max(len(shape) - 1, 0)))
    scale = graph.weight(tuple(near(draw, size) for size in shape[axis:] if True) if shape else ())
    return helper.make_node("LayerNormalization", [x, scale], [y], axis=axis)


@step
def instance_norm(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    channels = near(draw, shape[1] if len(shape) > 1 else 1)
    return helper.make_node("InstanceNormalization", [x, graph.weight((channels,)), graph.weight((channels,))], [y])


@step
def prelu(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    slope = tuple(draw(st.sampled_from([1, size, size, size + 1])) for size in shape[1:])
    return helper.make_node("PRelu", [x, graph.weight(slope)], [y])


@step
def clip(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    return helper.make_node("Clip", [x, graph.weight(())], [y])


@step
def einsum(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    letters = "abcdef"[: len(shape)]
    inner = near(draw, shape[-1] if shape else 1)
    term = draw(st.sampled_from([f"{letters[-1:]}z", f"z{letters[-1:]}", "zz", "z"]))
    result = draw(st.sampled_from([f"{letters[:-1]}z", letters[:-1], f"z{letters[:-1]}", letters + "z"]))
    other = graph.weight((inner, inner + 1)[: len(term)] if term[:1] != "z" else (inner + 1, inner)[: len(term)])
    return helper.make_node("Einsum", [x, other], [y], equation=f"{letters},{term}->{result}")


@step
def depth_to_space(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    return helper.make_node(draw(st.sampled_from(["DepthToSpace", "SpaceToDepth"])), [x], [y], blocksize=2)


@step
def resize(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    scales = graph.weight((len(shape),))
    del graph.weights[-1]
    factors = [1.0] * min(2, len(shape)) + [draw(st.sampled_from([1.0, 2.0, 0.5, 1.5])) for _ in shape[2:]]
    graph.weights.append(numpy_helper.from_array(np.array(factors, np.float32), scales))
    return helper.make_node("Resize", [x, "", scales], [y], mode="nearest")


@step
def lstm(draw: Any, graph: Graph, x: str, shape: Shape, y: str) -> NodeProto:
    hidden, features = draw(st.integers(1, 3)), near(draw, shape[-1] if shape else 1)
    op, gates = draw(st.sampled_from([("LSTM", 4), ("GRU", 3), ("RNN", 1)]))
    rows = near(draw, gates * hidden)
    weights = [graph.weight((1, rows, features)), graph.weight((1, rows, hidden))]
    if draw(st.booleans()):
        weights.append(graph.weight((1, near(draw, 2 * rows))))
    return helper.make_node(op, [x, *weights], [y], hidden_size=hidden)


@st.composite
def graphs(draw: Any, steps: int = 4) -> tuple[Graph, list[ModelProto]]:
    """Return a graph that ONNX Runtime runs, and the models on the way to it that it refused."""
    rank = draw(st.sampled_from([2, 3, 4, 4, 5]))
    first = tuple(draw(st.integers(1, 6)) for _ in range(rank))
    graph = Graph({"x": first}, opset=draw(st.sampled_from([13, 17, 20, 22])))
    graph.tensors["x"] = first
    refused = []
    for index in range(draw(st.integers(1, steps))):
        x = draw(st.sampled_from(list(graph.tensors)))
        name = draw(st.sampled_from(sorted(STEPS)))
        weights = len(graph.weights)
        graph.nodes.append(STEPS[name](draw, graph, x, graph.tensors[x], f"t{index}"))
        model = graph.model()
        shapes = run(model)
        if shapes is None or any(0 in shape for shape in shapes.values()):
            if shapes is None:
                refused.append(model)
            graph.nodes.pop()
            del graph.weights[weights:]
        else:
            graph.tensors |= shapes
    return graph, refused
