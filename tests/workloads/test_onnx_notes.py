"""What an ONNX model is counted by, where several counts are in use: unused nodes, and orders of contraction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.utils import Extractor

from mlsys.workloads import Workload

FLOAT = TensorProto.FLOAT
node = helper.make_node


def graph(name: str, nodes: list[Any], made: str) -> Any:
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(made, FLOAT, None)])


def model(nodes: list[Any]) -> ModelProto:
    weights = [
        numpy_helper.from_array(np.ones((3, 3), np.float32), "w"),
        numpy_helper.from_array(np.array(True), "yes"),
    ]
    x, y = helper.make_tensor_value_info("x", FLOAT, (2, 3)), helper.make_tensor_value_info("y", FLOAT, None)
    return helper.make_model(
        helper.make_graph(nodes, "net", [x], [y], weights),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=10,
    )


RELU = node("Relu", ["x"], ["y"], name="used")
LAST = node("Exp", ["a"], ["b"], name="last")
CHAIN = [node("MatMul", ["x", "w"], ["a"], name="first"), LAST]
CONDITION = [node("ReduceMax", ["x"], ["m"], keepdims=0), node("Cast", ["m"], ["c"], to=TensorProto.BOOL)]
INNER = [node("MatMul", ["x", "w"], ["q"], name="unused"), node("Relu", ["x"], ["t"], name="taken")]
THEN, ELSE = graph("then", [node("MatMul", ["x", "w"], ["t"])], "t"), graph("else", [node("Abs", ["x"], ["e"])], "e")
UNUSED: dict[str, tuple[list[Any], int, int]] = {  # nodes, how many of them no output needs, and their FLOP
    "none": ([CHAIN[0], node("Relu", ["a"], ["y"])], 0, 0),
    "one": ([CHAIN[0], RELU], 1, 2 * 18),
    "a chain": ([*CHAIN, RELU], 2, 2 * 18 + 6),
    "one of two outputs": ([node("Split", ["x"], ["y", "z"], axis=0, num_outputs=2), node("Exp", ["z"], ["e"])], 1, 3),
    "a view": ([node("Flatten", ["x"], ["z"]), RELU], 0, 0),
    "only its shape": ([CHAIN[0], node("Shape", ["a"], ["s"]), node("Reshape", ["x", "s"], ["y"])], 1, 2 * 18),
    "a whole if": ([*CONDITION, node("If", ["c"], ["z"], then_branch=THEN, else_branch=ELSE), RELU], 3, 6 + 2 * 18),
    "within a branch": (
        [*CONDITION, node("If", ["c"], ["y"], then_branch=graph("then", INNER, "t"), else_branch=ELSE)], 1, 2 * 18,
    ),
    "read within a branch": (
        [CHAIN[0], *CONDITION, node("If", ["c"], ["y"], then_branch=THEN, else_branch=graph("e", [LAST], "b"))], 0, 0,
    ),
    "read by a branch not taken": (
        [CHAIN[0], node("If", ["yes"], ["y"], then_branch=graph("then", [node("Abs", ["x"], ["t"])], "t"),
                        else_branch=graph("else", [node("Abs", ["a"], ["e"])], "e"))], 1, 2 * 18,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNUSED)
def test_nodes_that_no_output_needs_are_counted_and_named(kind: str) -> None:
    nodes, count, flops = UNUSED[kind]
    notes = [note for note in Workload.from_onnx(model(nodes)).notes if "unused tensors" in note]
    many = "1 node makes" if count == 1 else f"{count} nodes make"
    assert [(note.split(" unused tensors")[0], note.rpartition("with ")[2]) for note in notes] == (
        [(many, f"{flops:,} FLOP")] if count else []
    )


def test_the_rest_is_what_the_extractor_of_onnx_keeps() -> None:
    whole = model([*CHAIN, RELU])
    kept = Workload.from_onnx(Extractor(whole).extract_model(["x"], ["y"]))
    counted = Workload.from_onnx(whole)
    assert int((counted.flops - kept.flops).m_as("FLOP")) == UNUSED["a chain"][2] and kept.notes == ()


def test_onnx_runtime_runs_unused_nodes(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "run")
    proto = model([*CHAIN, RELU]).SerializeToString()
    session = onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
    session.run(None, {"x": np.ones((2, 3), np.float32)})
    events = json.loads(Path(session.end_profiling()).read_text())
    run = {event["name"].removesuffix("_kernel_time") for event in events if event["name"].endswith("_kernel_time")}
    assert run >= {"first", "last"}


EINSUMS: dict[
    str, tuple[list[tuple[int, ...]], int, int | None]
] = {  # of three operands, with the FLOP from left to right and in the cheapest order, worked out by hand
    "ij,jk,kl->il": ([(2, 3), (3, 5), (5, 7)], 2 * (30 + 70), None),
    "ij,jk,kl": ([(7, 3), (3, 5), (5, 2)], 2 * (7 * 3 * 5 + 7 * 5 * 2), 2 * (3 * 5 * 2 + 7 * 3 * 2)),
    "...ij,jk,kl->...il": ([(4, 2, 3), (3, 5), (5, 7)], 2 * 4 * (30 + 70), 2 * (3 * 5 * 7 + 4 * 2 * 3 * 7)),
    "...ij,...jk,...kl": ([(4, 2, 3), (4, 3, 5), (1, 5, 7)], 2 * 4 * (30 + 70), None),
    "ai,jk,kl->jl": ([(6, 4), (3, 5), (5, 7)], 24 + 2 * 15 + 2 * 3 * 5 * 7, None),
}


@pytest.mark.parametrize("equation", EINSUMS)
def test_the_order_of_an_einsum_is_said(equation: str) -> None:
    shapes, flops, least = EINSUMS[equation]
    inputs = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in zip("xyz", shapes, strict=True)]
    nodes = [node("Einsum", ["x", "y", "z"], ["made"], equation=equation)]
    graph = helper.make_graph(nodes, "net", inputs, [helper.make_tensor_value_info("made", FLOAT, None)])
    work = Workload.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))
    order = f"; its cheapest order takes {least:,} FLOP" if least else ", the minimum of all orders"
    assert work.notes == (
        f"einsum {equation} is counted left to right, as ONNX Runtime runs it: {flops:,} FLOP{order}",
    )
    assert int(work.flops.m_as("FLOP")) == flops
