"""Export of a network as a PyTorch module, an ONNX model or a LiteRT model, in FP32 or INT8, with the same weights."""

from typing import Any

import numpy as np

from mlsys.measure.networks.chains import Layer, Net
from mlsys.measure.networks.int8 import Grid, QuantizedNet

Array = np.ndarray[Any, np.dtype[Any]]


def as_torch(net: Net) -> Any:
    """Return a ``torch.nn.Sequential`` with input ``(count, channels, height, width)``; one entry per layer."""
    import torch

    parts = []
    for layer in net.layers:
        steps: list[Any] = []
        if layer.kind == "pool":
            steps.append(torch.nn.AvgPool2d(layer.kernel))
        elif layer.kind == "dense":
            assert layer.weight is not None
            linear = torch.nn.Linear(layer.weight.shape[1], layer.weight.shape[0])
            _fill(linear, layer.weight, layer.bias)
            steps += [torch.nn.Flatten(), linear]
        else:
            assert layer.weight is not None
            top, left, bottom, right = layer.pads
            even = top == bottom and left == right
            if not even:
                steps.append(torch.nn.ZeroPad2d((left, right, top, bottom)))
            groups = layer.source[2] if layer.kind == "depthwise" else 1
            convolution = torch.nn.Conv2d(
                layer.source[2], layer.shape[2], layer.kernel, layer.stride, (top, left) if even else 0, groups=groups
            )
            order = (3, 0, 1, 2) if layer.kind == "depthwise" else (0, 3, 1, 2)
            _fill(convolution, layer.weight.transpose(order), layer.bias)
            steps.append(convolution)
        if layer.relu:
            steps.append(torch.nn.ReLU())
        parts.append(steps[0] if len(steps) == 1 else torch.nn.Sequential(*steps))
    return torch.nn.Sequential(*parts).eval()


def _fill(module: Any, weight: Array, bias: Array | None) -> None:
    import torch

    assert bias is not None
    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(np.array(weight)))
        module.bias.copy_(torch.from_numpy(np.array(bias)))


def as_onnx(net: Net | QuantizedNet) -> bytes:
    """Return a serialised ONNX model with input ``(1, channels, height, width)``; INT8 in the QDQ format.

    Raises
    ------
    ModuleNotFoundError
        If the package ``onnx`` is not installed.
    """
    from onnx import TensorProto, checker, helper, numpy_helper

    whole = net if isinstance(net, QuantizedNet) else None
    plain = net.net if isinstance(net, QuantizedNet) else net
    nodes: list[Any] = []
    constants: list[Any] = []

    def put(name: str, values: Array) -> str:
        constants.append(numpy_helper.from_array(np.array(values, order="C"), name))
        return name

    def grid(name: str, quantised: Grid, given: str) -> str:
        scale = put(f"{name}/scale", np.array(quantised.scale, np.float32))
        zero = put(f"{name}/zero", np.array(quantised.zero, np.int8))
        nodes.append(helper.make_node("QuantizeLinear", [given, scale, zero], [f"{name}/q"], f"{name}/q"))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}/q", scale, zero], [f"{name}/d"], f"{name}/d"))
        return f"{name}/d"

    now = "input" if whole is None else grid("input_grid", whole.source, "input")
    for index, layer in enumerate(plain.layers):
        each = whole.layers[index] if whole is not None else None
        name, inputs = layer.name, [now]
        if layer.kind == "dense":
            nodes.append(helper.make_node("Flatten", [now], [f"{name}/flat"], f"{name}/flat", axis=1))
            inputs = [f"{name}/flat"]
        if layer.weight is not None:
            assert layer.bias is not None
            if each is None:
                inputs += [put(f"{name}/w", _ordered(layer, layer.weight)), put(f"{name}/b", layer.bias)]
            else:
                assert each.weight is not None and each.bias is not None and each.scales is not None
                for tag, values, scales in (
                    ("w", _ordered(layer, each.weight), each.scales),
                    ("b", each.bias, (each.scales * each.source.scale).astype(np.float32)),
                ):
                    zeros = np.zeros(len(scales), values.dtype)
                    names = [
                        put(f"{name}/{tag}", values), put(f"{name}/{tag}s", scales), put(f"{name}/{tag}z", zeros),
                    ]  # fmt: skip
                    nodes.append(helper.make_node("DequantizeLinear", names, [f"{name}/{tag}d"], axis=0))
                    inputs.append(f"{name}/{tag}d")
        if layer.kind == "pool":
            nodes.append(helper.make_node("AveragePool", inputs, [f"{name}/y"], name, kernel_shape=layer.kernel))
        elif layer.kind == "dense":
            nodes.append(helper.make_node("Gemm", inputs, [f"{name}/y"], name, transB=1))
        else:
            nodes.append(
                helper.make_node(
                    "Conv", inputs, [f"{name}/y"], name, kernel_shape=layer.kernel, strides=layer.stride,
                    pads=layer.pads, group=layer.source[2] if layer.kind == "depthwise" else 1,
                )
            )  # fmt: skip
        now = f"{name}/y"
        if layer.relu:
            nodes.append(helper.make_node("Relu", [now], [f"{name}/relu"], f"{name}/relu"))
            now = f"{name}/relu"
        if each is not None:
            now = grid(name, each.target, now)
    nodes[-1].output[0] = "output"
    high, wide, deep = plain.shape
    last = plain.layers[-1]
    shape = [1, last.shape[2]] if last.kind == "dense" else [1, last.shape[2], *last.shape[:2]]
    graph = helper.make_graph(
        nodes, plain.name.replace(":", "_"),
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, deep, high, wide])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)], constants,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _ordered(layer: Layer, weight: Array) -> Array:
    if layer.kind == "dense":
        return weight
    return weight.transpose((3, 0, 1, 2) if layer.kind == "depthwise" else (0, 3, 1, 2))


def as_litert(net: Net | QuantizedNet) -> bytes:
    """Return a serialised LiteRT model with input ``(1, height, width, channels)``, in FP32 or INT8.

    Raises
    ------
    ModuleNotFoundError
        If the package ``ai-edge-litert`` is not installed.
    """
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    whole = net if isinstance(net, QuantizedNet) else None
    plain = net.net if isinstance(net, QuantizedNet) else net
    build = _LiteRT(schema)
    number = schema.TensorType.INT8 if whole else schema.TensorType.FLOAT32
    high, wide, deep = plain.shape
    now = build.tensor("input", (1, high, wide, deep), number, whole.source if whole else None)
    first = now
    for index, layer in enumerate(plain.layers):
        each = whole.layers[index] if whole is not None else None
        shape = (1, *layer.shape) if layer.kind != "dense" else (1, layer.shape[2])
        target = build.tensor(layer.name, shape, number, each.target if each else None)
        inputs = [now]
        if layer.weight is not None:
            weight, bias = (each.weight, each.bias) if each else (layer.weight, layer.bias)
            assert weight is not None and bias is not None
            scales = each.scales if each else None
            axis = 3 if layer.kind == "depthwise" else 0
            inputs.append(build.constant(f"{layer.name}/w", weight, scales, axis))
            both = None if each is None or scales is None else scales * np.float32(each.source.scale)
            inputs.append(build.constant(f"{layer.name}/b", bias, both, 0))
        build.operator(layer, inputs, target)
        now = target
    builder = flatbuffers.Builder(1024)
    builder.Finish(build.model(plain.name, first, now).Pack(builder), b"TFL3")
    return bytes(builder.Output())


class _LiteRT:
    """Builder of a LiteRT model's tensors, buffers and operators."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._tensors: list[Any] = []
        self._buffers: list[Any] = [schema.BufferT()]
        self._operators: list[Any] = []
        self._codes: list[tuple[int, int]] = []

    def tensor(self, name: str, shape: tuple[int, ...], number: int, grid: Grid | None, buffer: int = 0) -> int:
        made = self._schema.TensorT()
        made.name, made.shape, made.type, made.buffer = name, list(shape), number, buffer
        if grid is not None:
            made.quantization = self._schema.QuantizationParametersT()
            made.quantization.scale, made.quantization.zeroPoint = [grid.scale], [grid.zero]
        self._tensors.append(made)
        return len(self._tensors) - 1

    def constant(self, name: str, values: Array, scales: Array | None, axis: int) -> int:
        kinds = {
            "float32": self._schema.TensorType.FLOAT32,
            "int8": self._schema.TensorType.INT8,
            "int32": self._schema.TensorType.INT32,
        }
        buffer = self._schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        self._buffers.append(buffer)
        index = self.tensor(name, values.shape, kinds[values.dtype.name], None, len(self._buffers) - 1)
        if scales is not None:
            grid = self._tensors[index].quantization = self._schema.QuantizationParametersT()
            grid.scale, grid.zeroPoint = [float(scale) for scale in scales], [0] * len(scales)
            grid.quantizedDimension = axis
        return index

    def operator(self, layer: Layer, inputs: list[int], target: int) -> None:
        schema = self._schema
        builtin = schema.BuiltinOperator
        relu = schema.ActivationFunctionType.RELU if layer.relu else schema.ActivationFunctionType.NONE
        same, valid = schema.Padding.SAME, schema.Padding.VALID
        if layer.kind == "pool":
            code, kind, options = (
                (builtin.AVERAGE_POOL_2D, 2),
                schema.BuiltinOptions.Pool2DOptions,
                schema.Pool2DOptionsT(),
            )
            options.filterHeight, options.filterWidth = layer.kernel
            options.padding, options.strideH, options.strideW = valid, 1, 1
        elif layer.kind == "dense":
            code, kind = (builtin.FULLY_CONNECTED, 4), schema.BuiltinOptions.FullyConnectedOptions
            options = schema.FullyConnectedOptionsT()
            options.fusedActivationFunction = relu
        else:
            deep = layer.kind == "depthwise"
            options = schema.DepthwiseConv2DOptionsT() if deep else schema.Conv2DOptionsT()
            code = (builtin.DEPTHWISE_CONV_2D if deep else builtin.CONV_2D, 3)
            kind = schema.BuiltinOptions.DepthwiseConv2DOptions if deep else schema.BuiltinOptions.Conv2DOptions
            options.padding, options.fusedActivationFunction = same, relu
            options.strideH, options.strideW = layer.stride
            options.dilationHFactor = options.dilationWFactor = 1
            if deep:
                options.depthMultiplier = 1
        if code not in self._codes:
            self._codes.append(code)
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = self._codes.index(code), inputs, [target]
        made.builtinOptionsType, made.builtinOptions = kind, options
        self._operators.append(made)

    def model(self, name: str, first: int, last: int) -> Any:
        schema = self._schema
        graph = schema.SubGraphT()
        graph.name, graph.tensors, graph.operators = name, self._tensors, self._operators
        graph.inputs, graph.outputs = [first], [last]
        model = schema.ModelT()
        model.version, model.description, model.subgraphs, model.buffers = 3, name, [graph], self._buffers
        model.operatorCodes = []
        for builtin, version in self._codes:
            code = schema.OperatorCodeT()
            code.builtinCode, code.deprecatedBuiltinCode, code.version = builtin, builtin, version
            model.operatorCodes.append(code)
        return model
