"""ONNX graphs against ONNX Runtime: what it computes has our shapes and work, what it refuses is refused."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx_graphs import Graph, Shape, graphs, run

from mlsys.errors import ArgumentError
from mlsys.workloads import Workload

TIMES = int(os.environ.get("MLSYS_TIMES") or 0)
# The same graphs each time, for another release of a runtime may refuse more; MLSYS_TIMES=20 draws new ones.
DRAWN = settings(
    max_examples=40 * max(TIMES, 1), derandomize=not TIMES, deadline=None, suppress_health_check=list(HealthCheck)
)


def refused(model: ModelProto) -> bool:
    """Return whether we refuse a model, in one line that is not about our own code."""
    try:
        Workload.from_onnx(model)
    except ArgumentError as error:
        assert "\n" not in str(error) and "not sound" not in str(error), str(error)
        return True
    return False


def macs_by_hand(graph: Graph) -> int:
    """Return the multiply-accumulates by the definitions, from the shapes that ONNX Runtime computed."""
    shapes = {**graph.tensors, **{item.name: tuple(item.dims) for item in graph.weights}}
    total = 0
    for node in graph.nodes:
        out = shapes[node.output[0]]
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        if node.op_type == "Conv":  # for each output: the channels of its group times the window
            total += math.prod(out) * math.prod(shapes[node.input[1]][1:])
        elif node.op_type == "ConvTranspose":  # for each input: the filters of its group times the window
            total += math.prod(shapes[node.input[0]]) * math.prod(shapes[node.input[1]][1:])
        elif node.op_type == "MatMul":
            total += math.prod(out) * shapes[node.input[0]][-1]
        elif node.op_type == "Gemm":
            total += math.prod(out) * shapes[node.input[0]][0 if attributes.get("transA") else 1]
        elif node.op_type in ("LSTM", "GRU", "RNN"):
            steps, batch = shapes[node.input[0]][:2]
            total += steps * batch * sum(math.prod(shapes[name]) for name in node.input[1:3])
    return total


@DRAWN
@given(graphs())
def test_random_graphs(drawn: tuple[Graph, list[ModelProto]]) -> None:
    graph, not_run = drawn
    for model in not_run:
        assert refused(model), f"ONNX Runtime does not run {model.graph.node[-1]}"
    if not graph.nodes:
        return
    work = Workload.from_onnx(graph.model(graph.tensors))  # each tensor is declared with the shape that was computed
    assert not work.unknown
    if not any(node.op_type == "Einsum" for node in graph.nodes):
        assert work.macs.m_as("MAC") == macs_by_hand(graph)
    data = {name for node in graph.nodes for name in settings_free(node)}
    floats = [item for item in graph.weights if item.data_type == TensorProto.FLOAT]
    used = [item for item in floats if item.name in data]
    assert work.parameters.m_as("param") == sum(math.prod(item.dims) for item in used)


def settings_free(node: Any) -> list[str]:
    """Return the inputs of a node that are data: not the scales of a Resize or the bounds of a Clip."""
    return list(node.input)[:1] if node.op_type in ("Resize", "Clip") else list(node.input)


@DRAWN
@given(graphs(), st.data())
def test_mutated_graphs(drawn: tuple[Graph, list[ModelProto]], source: st.DataObject) -> None:
    """One thing of a graph that runs is changed: what ONNX Runtime then refuses is never counted."""
    graph, _ = drawn
    if not graph.nodes:
        return
    model = graph.model(graph.tensors)
    mutated(model, source.draw)
    if run(model) is None:
        assert refused(model), model.graph.node
    else:
        refused(model)


def mutated(model: ModelProto, draw: Callable[..., Any]) -> None:
    """Change one thing of a model: a node, a name, a size, an attribute."""
    graph = model.graph
    node = draw(st.sampled_from(list(graph.node)))
    names = [
        *(item.name for item in (*graph.input, *graph.initializer)),
        *(n for each in graph.node for n in each.output),
    ]
    way = draw(
        st.sampled_from(["drop", "input", "output", "twice", "weight", "declared", "type", "number", "operator"])
    )
    if way == "drop":
        graph.node.remove(node)
    elif way == "input" and node.input:
        place = draw(st.integers(0, len(node.input) - 1))
        node.input[place] = draw(st.sampled_from([*names, "nowhere"]))
    elif way == "output":
        node.output[0] = draw(st.sampled_from([*names, "elsewhere"]))
    elif way == "twice":
        graph.node.add().CopyFrom(node)
    elif way == "weight" and graph.initializer:
        tensor = draw(st.sampled_from(list(graph.initializer)))
        values = numpy_helper.to_array(tensor)
        axis = draw(st.integers(0, max(values.ndim - 1, 0)))
        values = np.concatenate([values, values], axis) if values.ndim else values.reshape(1)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    elif way == "declared":
        dims = draw(st.sampled_from(list(graph.input))).type.tensor_type.shape.dim
        draw(st.sampled_from(list(dims))).dim_value = draw(st.integers(1, 7))
    elif way == "type":
        draw(st.sampled_from(list(graph.input))).type.tensor_type.elem_type = TensorProto.INT64
    elif way == "number":
        whole = [item for item in node.attribute if item.ints or item.HasField("i")]
        if whole:
            attribute = draw(st.sampled_from(whole))
            number = draw(st.sampled_from([-1, 0, 1, 2, 3, 5, 10**9]))
            if attribute.ints:
                attribute.ints[draw(st.integers(0, len(attribute.ints) - 1))] = number
            else:
                attribute.i = number
    elif way == "operator":
        node.op_type = draw(st.sampled_from(["Relu", "MatMul", "Add", "Concat", "Conv", "Gemm", "Nonsense"]))


@DRAWN
@given(graphs(), st.integers(2, 9))
def test_work_is_linear_in_an_open_batch(drawn: tuple[Graph, list[ModelProto]], batch: int) -> None:
    graph = drawn[0]
    linear = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Relu",
              "Sigmoid", "Tanh", "Exp", "BatchNormalization", "InstanceNormalization"}  # fmt: skip
    kept = [node for node in graph.nodes if node.op_type in linear and node.input[0] in ("x", *made(graph, linear))]
    if not kept:
        return
    graph.nodes[:] = kept
    model = graph.model(None, batch="batch")
    one, many = (Workload.from_onnx(model, sizes={"batch": size}) for size in (1, batch))
    assert many.flops.m_as("FLOP") == batch * one.flops.m_as("FLOP")
    assert many.parameters == one.parameters
    assert (one.sizes["batch"], many.sizes["batch"]) == (1, batch)


def made(graph: Graph, linear: set[str]) -> Iterator[str]:
    """Yield the tensors that follow from the input through the operators of ``linear``."""
    known = {"x"}
    for node in graph.nodes:
        if node.op_type in linear and node.input[0] in known:
            known.add(node.output[0])
    yield from known


@pytest.mark.parametrize("opset", [13, 22])
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_pooling_rounded_up(kind: str, opset: int) -> None:
    """Every small window: no window begins in the padding at the end."""
    checked = 0
    for size in range(1, 7):
        for window in range(1, 4):
            for stride in range(1, 4):
                for begin in range(window):
                    for end in range(window):
                        if size + begin + end < window:
                            continue
                        node = helper.make_node(kind, ["x"], ["y"], kernel_shape=[window], strides=[stride],
                                                pads=[begin, end], ceil_mode=1)  # fmt: skip
                        graph = Graph({"x": (1, 1, size)}, opset, [node])
                        found = run(graph.model())
                        rule = math.ceil((size + begin + end - window) / stride) + 1
                        rule -= (rule - 1) * stride >= size + begin
                        assert found == {"y": (1, 1, rule)}
                        Workload.from_onnx(graph.model({"y": (1, 1, rule)}))
                        other: dict[str, Shape] = {"y": (1, 1, rule + 1)}
                        with pytest.raises(ArgumentError, match="is declared as"):
                            Workload.from_onnx(graph.model(other))
                        checked += 1
    assert checked > 200
