"""ONNX models, made here node by node, are counted like the same layers in torch."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from mlsys import Hardware
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.models import roofline
from mlsys.units import Q_
from mlsys.workloads import Workload

FLOAT = TensorProto.FLOAT
Shape = tuple[int | str, ...]


def weight(name: str, *shape: int, dtype: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(shape, dtype), name)


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Shape],
    weights: list[onnx.TensorProto],
    kind: int = FLOAT,
    opset: int = 20,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(nodes[-1].output[0], FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def picture(batch: int | str = 2) -> onnx.ModelProto:
    """The same network as ``torch_picture``."""
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], group=2
        ),
        helper.make_node("BatchNormalization", ["c", "g", "h", "m", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("ConvTranspose", ["r", "t"], ["u"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("MaxPool", ["u"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["q"]),
        helper.make_node("Flatten", ["q"], ["f"]),
        helper.make_node("Gemm", ["f", "k", "l"], ["y"], transB=1),
    ]
    weights = [weight("w", 8, 2, 3, 3), *(weight(name, 8) for name in "bghmv"), weight("t", 8, 6, 2, 2)]
    return model(nodes, {"x": (batch, 4, 16, 16)}, [*weights, weight("k", 5, 6), weight("l", 5)])


def torch_picture() -> nn.Module:
    layers = [
        nn.Conv2d(4, 8, 3, 2, 1, groups=2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.ConvTranspose2d(8, 6, 2, 2, bias=False),
    ]
    return nn.Sequential(*layers, nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))


@pytest.mark.parametrize("batch", [1, 2])
def test_a_convolutional_network_is_the_one_in_torch(batch: int) -> None:
    ours = Workload.from_onnx(picture("batch"), sizes={"batch": batch})
    theirs = Workload.from_torch(torch_picture, torch.zeros(batch, 4, 16, 16))
    assert [(op.kind, op.counts.macs, op.counts.elementwise) for op in ours] == [
        (op.kind, op.counts.macs, op.counts.elementwise) for op in theirs
    ]
    assert (ours.read, ours.written) == (theirs.read, theirs.written)
    assert ours.parameters == theirs.parameters + Q_(16, "param"), "ONNX holds running statistics among the weights"
    assert (ours.coverage, ours.views, ours.source, ours.name) == (1, 1, "ONNX", "net")
    assert roofline(Hardware.Cloud.A100, ours).time.magnitude > 0


def layer(
    op: str, inputs: dict[str, Shape], weights: list[onnx.TensorProto], opset: int = 20, **given: object
) -> Workload:
    names = [*inputs, *(item.name for item in weights)]
    return Workload.from_onnx(model([helper.make_node(op, names, ["y"], **given)], inputs, weights, opset=opset))


@pytest.mark.parametrize(
    ("make", "macs"),
    [
        (lambda: layer("MatMul", {"a": (2, 3, 5), "b": (5, 7)}, []), 6 * 35),
        (lambda: layer("Gemm", {"a": (5, 3)}, [weight("b", 5, 7)], transA=1), 3 * 5 * 7),
        (lambda: layer("Conv", {"x": (1, 4, 9)}, [weight("w", 6, 4, 3)], pads=[1, 1]), 9 * 72),
        (
            lambda: layer("LSTM", {"x": (5, 2, 8)}, [weight("w", 1, 64, 8), weight("r", 1, 64, 16)], hidden_size=16),
            10 * 64 * 24,
        ),
        (
            lambda: layer("GRU", {"x": (5, 2, 8)}, [weight("w", 1, 48, 8), weight("r", 1, 48, 16)], hidden_size=16),
            10 * 48 * 24,
        ),
        (lambda: layer("Attention", {n: (2, 4, 9, 8) for n in "qkv"}, [], opset=23), 2 * 8 * 81 * 8),
        (
            lambda: layer("Attention", {n: (2, 9, 32) for n in "qkv"}, [], opset=23, q_num_heads=4, kv_num_heads=4),
            2 * 8 * 81 * 8,
        ),
    ],
)
def test_products(make: object, macs: int) -> None:
    network = make()
    assert network.macs == Q_(macs, "MAC")
    assert network.coverage == 1


def test_elementwise_and_moving_operators() -> None:
    assert layer("Gelu", {"x": (4, 6)}, []).elementwise_flops == Q_(5 * 24, "FLOP")
    assert layer("Softmax", {"x": (4, 6)}, []).elementwise_flops == Q_(5 * 24, "FLOP")
    assert layer("Transpose", {"x": (4, 6)}, []).data == Q_(2 * 96, "byte")
    assert layer("Identity", {"x": (4, 6)}, []).data == Q_(0, "byte")
    assert layer("ReduceMean", {"x": (4, 6)}, [], keepdims=0).elementwise_flops == Q_(25, "FLOP")
    table = model(
        [helper.make_node("Gather", ["w", "i"], ["y"])], {"i": (3, 5)}, [weight("w", 100, 8)], TensorProto.INT64
    )
    assert Workload.from_onnx(table).read == Q_(15 * 8 * 4 + 15 * 8, "byte")


def test_unknown_operators_are_reported_with_their_traffic() -> None:
    (unknown,) = layer("Det", {"x": (6, 6)}, []).unknown
    assert (unknown.target, unknown.data) == ("ai.onnx.Det", Q_(4 * 36 + 4, "byte"))
    custom = helper.make_node("Magic", ["x"], ["y"], name="trick", domain="com.example")
    proto = model([custom, helper.make_node("Relu", ["y"], ["z"])], {"x": (6, 6)}, [])
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    network = Workload.from_onnx(proto)
    assert {op.name for op in network.unknown} >= {"trick"}
    assert network.coverage < 1


def test_a_file_and_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(picture("batch"), str(path))
    assert Workload.from_onnx(path, sizes={"batch": 3}, name="mine").name == "mine"
    (tmp_path / "bad.onnx").write_bytes(b"not a model at all")
    for make, complaint in (
        (lambda: Workload.from_onnx(path), r"'x' leaves a size open: batch. Give sizes=\{'batch': 1\}"),
        (lambda: Workload.from_onnx(path, sizes={"batch": 0}), r"`batch` must be a whole number"),
        (lambda: Workload.from_onnx(tmp_path / "absent.onnx"), r"there is no file"),
        (lambda: Workload.from_onnx(tmp_path / "bad.onnx"), r"is not an ONNX model"),
        (lambda: Workload.from_onnx(3), r"must be an ONNX model .* got int"),
    ):
        with pytest.raises(ArgumentError, match=complaint):
            make()
    with pytest.raises(UnknownNameError, match=r"no open size 'bacth'. Open: batch. Did you mean 'batch'"):
        Workload.from_onnx(path, sizes={"bacth": 1})
