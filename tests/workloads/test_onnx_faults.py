"""ONNX files that people have: what is no graph is refused in one line, and constants are weights."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import ModelProto, TensorProto, helper, numpy_helper

from mlsys.cli import main
from mlsys.errors import ArgumentError
from mlsys.planner.memory import liveness
from mlsys.units import Q_
from mlsys.workloads import Workload, load

FILES = Path(__file__).parent / "onnx"
FLOAT, WHOLE = TensorProto.FLOAT, TensorProto.INT64
node = helper.make_node


def weight(name: str, *shape: int, dtype: Any = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.ones(shape, dtype), name)


def whole(name: str, *numbers: int) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def model(
    nodes: Sequence[Any],
    weights: Sequence[TensorProto] = (),
    x: tuple[Any, ...] = (2, 3),
    y: tuple[Any, ...] | None = None,
    kind: int = FLOAT,
    made: str = "y",
) -> ModelProto:
    given = [helper.make_tensor_value_info("x", FLOAT, x)]
    output = helper.make_tensor_value_info(made, kind, y)
    graph = helper.make_graph(list(nodes), "net", given, [output], list(weights))
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)],
        ir_version=10,
    )


def branch(op: str, source: str, made: str) -> Any:
    return helper.make_graph([node(op, [source], [made])], made, [], [helper.make_tensor_value_info(made, FLOAT, None)])


RELU = node("Relu", ["x"], ["y"])
MINUS = whole("n", 3, -10)


def declaring_its_weight(proto: Any, shape: tuple[int, ...]) -> Any:
    """Return a model whose weight is an input as well, as before version 4 of the format."""
    proto.graph.input.append(helper.make_tensor_value_info("w", FLOAT, shape))
    return proto


FAULTS: dict[str, tuple[ModelProto, Sequence[str]]] = {
    "cycle": (model([node("Relu", ["z"], ["y"]), node("Abs", ["y"], ["z"])]), ["cycle", "Relu", "Abs"]),
    "own output": (model([node("Add", ["y", "x"], ["y"], name="sum")]), ["'sum' (Add)", "its own output 'y'"]),
    "one name twice": (model([RELU, node("Abs", ["x"], ["y"])]), ["two nodes have the output 'y'", "Relu", "Abs"]),
    "name of a weight": (model([RELU, node("Abs", ["x"], ["w"])], [weight("w", 3)]), ["Abs", "weight"]),
    "unknown input": (model([node("Add", ["x", "wx"], ["y"])], [weight("w", 3)]), ["Add", "'wx'", "Did you mean"]),
    "output not computed": (model([RELU], made="z"), ["'z' is declared and no node computes it"]),
    "declared shape": (model([RELU], y=(2, 4)), ["declared as 2 × 4", "compute 2 × 3"]),
    "declared axes": (model([RELU], y=(2, 3, 1)), ["declared as 2 × 3 × 1", "compute 2 × 3"]),
    "declared type": (model([RELU], kind=WHOLE), ["declared as int64", "compute float"]),
    "groups": (
        model([node("Conv", ["x", "w"], ["y"], group=10**9)], [weight("w", 8, 3, 3, 3)], (1, 3, 8, 8)),
        ["Conv", "1,000,000,000 groups", "has 3"],
    ),
    "filters in groups": (
        model([node("Conv", ["x", "w"], ["y"], group=3)], [weight("w", 8, 1, 3, 3)], (1, 3, 8, 8)),
        ["Conv", "`group` 3", "8"],
    ),
    "channels last": (
        model([node("Conv", ["x", "w"], ["y"], name="stem")], [weight("w", 32, 3, 3, 3)], (1, 160, 160, 3)),
        ["'stem' (Conv)", "needs 3 channels", "has 160"],
    ),
    "transposed twice": (
        model(
            [node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), node("Conv", ["t", "w"], ["y"])],
            [weight("w", 32, 3, 3, 3)],
            (1, 3, 160, 160),
        ),
        ["Conv", "needs 3 channels", "has 160"],
    ),
    "product": (model([node("MatMul", ["x", "w"], ["y"])], [weight("w", 4, 5)]), ["MatMul", "2 × 3", "4 × 5"]),
    "gemm": (model([node("Gemm", ["x", "w"], ["y"])], [weight("w", 4, 5)]), ["Gemm", "2 × 3", "4 × 5"]),
    "bias": (
        model([node("Gemm", ["x", "w", "b"], ["y"])], [weight("w", 3, 5), weight("b", 7)]),
        ["Gemm", "(7)", "2 × 5"],
    ),
    "sum": (model([node("Add", ["x", "w"], ["y"])], [weight("w", 4)]), ["Add", "2 × 3", "(4)"]),
    "joined": (model([node("Concat", ["x", "w"], ["y"], axis=1)], [weight("w", 3, 3)]), ["Concat", "2 × 3", "3 × 3"]),
    "reshaped": (model([node("Reshape", ["x", "n"], ["y"])], [whole("n", 4, 2)]), ["Reshape", "2 × 3", "4 × 2"]),
    "statistics": (
        model([node("BatchNormalization", ["x", *"abcd"], ["y"])], [weight(name, 4) for name in "abcd"], (1, 3, 4, 4)),
        ["BatchNormalization", "3", "(4)"],
    ),
    "element types": (
        model([node("Add", ["x", "w"], ["y"])], [weight("w", 2, 3, dtype=np.int64)]),
        ["Add", "float32", "int64"],
    ),
    "fused product": (
        model([node("FusedMatMul", ["x", "w"], ["y"], domain="com.microsoft")], [weight("w", 5, 3)]),
        ["FusedMatMul", "2 × 3", "5 × 3"],
    ),
    "unknown operator": (model([node("Rellu", ["x"], ["y"])]), ["Rellu"]),
    "unknown attribute": (model([node("Relu", ["x"], ["y"], alpha=3)]), ["Relu", "alpha"]),
    "no data": (
        model([node("Add", ["x", "w"], ["y"])], [TensorProto(name="w", data_type=FLOAT, dims=(2, 3))]),
        ["'w' of 2 × 3", "has 0"],
    ),
    "few data": (
        model([node("Add", ["x", "w"], ["y"])], [TensorProto(name="w", data_type=1, dims=(2, 3), raw_data=b"1234")]),
        ["'w' of 2 × 3", "24", "4"],
    ),
    "negative, alone": (model([node("ConstantOfShape", ["n"], ["y"])], [MINUS]), ["ConstantOfShape", "size 1 is -10"]),
    "negative, beside": (model([node("ConstantOfShape", ["n"], ["z"]), RELU], [MINUS]), ["size 1 is -10"]),
    "negative, added": (
        model([node("ConstantOfShape", ["n"], ["z"]), node("Add", ["x", "z"], ["y"])], [MINUS]),
        ["size 1 is -10"],
    ),
    "negative, computed": (
        model(
            [node("Shape", ["x"], ["s"]), node("Sub", ["s", "k"], ["n"]), node("ConstantOfShape", ["n"], ["z"]), RELU],
            [whole("k", 1, 7)],
        ),
        ["size 1 is -4"],
    ),
    "negative, in a branch": (
        model(
            [
                node("ReduceMax", ["x"], ["m"], keepdims=0),
                node("Cast", ["m"], ["c"], to=TensorProto.BOOL),
                node("If", ["c"], ["y"], then_branch=branch("ConstantOfShape", "n", "t"),
                     else_branch=branch("Relu", "x", "e")),
            ],
            [MINUS],
        ),
        ["ConstantOfShape", "size 1 is -10"],
    ),
    "too large": (
        model([node("ConstantOfShape", ["n"], ["z"]), node("MatMul", ["x", "z"], ["y"])], [whole("n", 3, 2**61)]),
        ["ConstantOfShape", "more than 100,000,000"],
    ),
    "padded twice": (
        model(
            [node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], auto_pad="SAME_UPPER")],
            [weight("w", 2, 3, 3, 3)],
            (1, 3, 8, 8),
        ),
        ["Conv", "auto_pad"],
    ),
    "declared weight": (
        declaring_its_weight(model([node("MatMul", ["x", "w"], ["y"])], [weight("w", 3, 4)]), (3, 5)),
        ["'w'", "3 × 5", "3 × 4"],
    ),
    "nothing to run": (model([node("ConstantOfShape", ["n"], ["y"])], [whole("n", 4)]), ["no node depends on"]),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_graph_is_refused(fault: str, tmp_path: Path) -> None:
    proto, words = FAULTS[fault]
    onnx.save(proto, tmp_path / "net.onnx")
    with pytest.raises(ArgumentError) as caught:
        load(tmp_path / "net.onnx")
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value) and "not sound" not in str(caught.value)


@pytest.mark.parametrize("command", [["flops"], ["memory"], ["analyze", "--device", "A100"]])
@pytest.mark.parametrize("fault", ["cycle", "product", "channels last", "declared shape"])
def test_each_command_refuses_it(command: list[str], fault: str, tmp_path: Path) -> None:
    onnx.save(FAULTS[fault][0], tmp_path / "net.onnx")
    result = CliRunner().invoke(main, [command[0], str(tmp_path / "net.onnx"), *command[1:]])
    assert (result.exit_code, result.stdout, result.output.count("\n")) == (1, "", 1)


def test_pooling_rounds_up_by_the_rule() -> None:
    (pool,) = load(FILES / "pool_rounded_up.onnx")
    assert dict(pool.shape)["out_elements"] == 3 * 3


def test_weights_in_constant_nodes_are_parameters() -> None:
    work = load(FILES / "weights_in_constants.onnx")
    assert (work.parameters, work.macs) == (Q_(15_888, "param"), Q_(172_480, "MAC"))
    assert work.weight_bytes == work.weights == Q_(4 * 15_888, "byte")
    assert liveness(work).weight_bytes == 4 * 15_888


def test_negative_shape() -> None:
    with pytest.raises(ArgumentError, match=r"shape \(-10\): its size 0 is -10"):
        load(FILES / "negative_shape.onnx")


def test_channels_last() -> None:
    for batch in (1, 4):
        work = load(FILES / "channels_last.onnx", batch=batch)
        assert (work.macs, work.sizes["batch"]) == (Q_(5_529_600 * batch, "MAC"), batch)


def product(*nodes: Any, weights: Sequence[TensorProto] = ()) -> Workload:
    return Workload.from_onnx(model([*nodes, node("MatMul", ["x", "v"], ["y"])], weights))


@pytest.mark.parametrize(
    ("work", "stored"),
    [
        (lambda: product(weights=[weight("v", 3, 5)]), 60),
        (lambda: product(node("Identity", ["w"], ["v"]), weights=[weight("w", 3, 5)]), 60),
        (lambda: product(node("Transpose", ["w"], ["v"]), weights=[weight("w", 5, 3)]), 60),
        (lambda: product(node("Reshape", ["w", "n"], ["v"]), weights=[weight("w", 15), whole("n", 3, 5)]), 60),
        (lambda: product(node("Cast", ["w"], ["v"], to=FLOAT), weights=[weight("w", 3, 5, dtype=np.float16)]), 30),
        (lambda: product(node("ConstantOfShape", ["n"], ["v"]), weights=[whole("n", 3, 5)]), 60),
        (lambda: product(node("Constant", [], ["v"], value=weight("", 3, 5))), 60),
        (
            lambda: product(
                node("Constant", [], ["w"], value=weight("", 5, 3)), node("Transpose", ["w"], ["v"], perm=[1, 0])
            ),
            60,
        ),
    ],
)
def test_a_weight_is_one_however_it_is_stored(work: Callable[[], Workload], stored: int) -> None:
    network = work()
    assert (network.macs, network.parameters, len(network)) == (Q_(30, "MAC"), Q_(15, "param"), 1)
    assert network.weight_bytes == network.weights == Q_(stored, "byte")
    assert liveness(network).weight_bytes == stored


def test_dequantised_weights_are_read_as_they_are_stored() -> None:
    scale = numpy_helper.from_array(np.float32(0.1), "s")
    work = product(node("DequantizeLinear", ["w", "s"], ["v"]), weights=[weight("w", 3, 5, dtype=np.int8), scale])
    assert (work.macs, work.weights, work.parameters) == (Q_(30, "MAC"), Q_(15, "byte"), Q_(16, "param"))


def test_a_shared_weight_is_held_once_and_read_twice() -> None:
    nodes = [node("MatMul", ["x", "w"], ["z"]), node("MatMul", ["z", "w"], ["y"])]
    work = Workload.from_onnx(model(nodes, [weight("w", 3, 3)]))
    assert (work.parameters, work.weights) == (Q_(9, "param"), Q_(72, "byte"))


def test_sparse_weights_have_the_parameters_of_their_shape() -> None:
    proto = model([node("MatMul", ["x", "w"], ["y"])])
    values = weight("w", 2)
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, whole("i", 0, 7), [3, 5]))
    assert Workload.from_onnx(proto).parameters == Q_(15, "param")


def test_weights_in_another_file_are_counted_without_it(tmp_path: Path) -> None:
    proto = model([node("MatMul", ["x", "w"], ["y"])], [weight("w", 3, 500)])
    onnx.save(proto, tmp_path / "net.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    assert load(tmp_path / "net.onnx").parameters == Q_(1500, "param")


def test_nodes_may_stand_in_any_order() -> None:
    work = Workload.from_onnx(model([node("Relu", ["z"], ["y"]), node("Abs", ["x"], ["z"])]))
    assert [op.name for op in work] == ["abs_0", "relu_1"]


def test_graphs_in_nodes() -> None:
    """The larger branch of an ``If``; the body of a ``Loop`` as often as it runs."""
    boolean = [node("ReduceMax", ["x"], ["m"], keepdims=0), node("Cast", ["m"], ["c"], to=TensorProto.BOOL)]
    larger = helper.make_graph(
        [node("MatMul", ["x", "w"], ["t"])], "t", [], [helper.make_tensor_value_info("t", FLOAT, None)]
    )
    choice = node("If", ["c"], ["y"], name="choice", then_branch=larger, else_branch=branch("Relu", "x", "e"))
    work = Workload.from_onnx(model([*boolean, choice], [weight("w", 3, 3)]))
    assert work.macs == Q_(18, "MAC") and "the branch with more work" in work.source
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("MatMul", ["s", "w"], ["t"])],
        "body",
        [helper.make_tensor_value_info("i", WHOLE, ()), helper.make_tensor_value_info("go", TensorProto.BOOL, ()),
         helper.make_tensor_value_info("s", FLOAT, None)],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, ()), helper.make_tensor_value_info("t", FLOAT, None)],
    )  # fmt: skip
    loop = node("Loop", ["n", "", "x"], ["y"], body=body, name="steps")
    counted = Workload.from_onnx(model([loop], [weight("w", 3, 3), numpy_helper.from_array(np.array(5), "n")]))
    assert (counted.macs, counted.parameters) == (Q_(5 * 18, "MAC"), Q_(9, "param"))
    counter = node("Cast", ["m"], ["n"], to=WHOLE)
    (unknown,) = Workload.from_onnx(model([boolean[0], counter, loop], [weight("w", 3, 3)])).unknown
    assert (unknown.name, unknown.target) == ("steps", "ai.onnx.Loop")


def test_what_follows_from_an_unknown_operator_says_so() -> None:
    proto = model([node("Magic", ["x"], ["z"], domain="own"), node("MatMul", ["z", "w"], ["y"])], [weight("w", 3, 3)])
    proto.opset_import.append(helper.make_opsetid("own", 1))
    assert [op.target for op in Workload.from_onnx(proto).unknown] == ["own.Magic", "ai.onnx.MatMul, of unknown shape"]
    proto.graph.value_info.append(helper.make_tensor_value_info("z", FLOAT, (2, 3)))
    assert Workload.from_onnx(proto).macs == Q_(18, "MAC")


@pytest.mark.parametrize(
    ("x", "given", "sizes"),
    [
        ((32, 3), {}, {"batch": 32}),
        (("batch", 3), {"batch": 8}, {"batch": 8}),
        (("s0", 3), {"batch": 8}, {"batch": 8}),
        ((None, 3), {"batch": 8}, {"batch": 8}),
        (("N", "sequence", 3), {"batch": 2, "sequence": 7}, {"batch": 2, "sequence": 7}),
        (("N", "width"), {"batch": 2, "sizes": {"width": 5}}, {"batch": 2, "width": 5}),
    ],
)
@pytest.mark.parametrize("precision", [None, "fp16"])
def test_sizes(
    x: tuple[Any, ...], given: dict[str, Any], sizes: dict[str, int], precision: str, tmp_path: Path
) -> None:
    onnx.save(model([RELU], x=x), tmp_path / "net.onnx")
    assert dict(load(tmp_path / "net.onnx", **given, precision=precision).sizes) == sizes


def test_what_stays_open_is_named_as_the_door_takes_it(tmp_path: Path) -> None:
    file = tmp_path / "net.onnx"
    onnx.save(model([RELU], x=("N", "width", "height")), file)
    with pytest.raises(ArgumentError, match="leaves sizes open: width, height. Give e.g. sizes={'width': 8}"):
        load(file)
    result = CliRunner().invoke(main, ["flops", str(file), "--size", "width=3"])
    assert result.exit_code == 1 and result.output.endswith("leaves sizes open: height. Give e.g. --size height=8\n")


def test_a_fixed_sequence_may_be_given_as_it_is(tmp_path: Path) -> None:
    proto = model([node("Gather", ["w", "x"], ["y"])], [weight("w", 100, 4)], (2, 9))
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    onnx.save(proto, tmp_path / "net.onnx")
    assert dict(load(tmp_path / "net.onnx", batch=2, sequence=9).sizes) == {"batch": 2, "sequence": 9}
    with pytest.raises(ArgumentError, match="`sequence` 8: the model's inputs fix it at 9"):
        load(tmp_path / "net.onnx", sequence=8)


def test_the_second_input_of_an_old_operator_lies_along_an_axis() -> None:
    proto = model([node("Add", ["x", "w"], ["y"], broadcast=1, axis=0)], [weight("w", 2)], (2, 3))
    proto.opset_import[0].version = 6
    assert Workload.from_onnx(proto).flops == Q_(6, "FLOP")
    del proto.graph.node[0].attribute[:]
    proto.graph.node[0].attribute.extend([helper.make_attribute("broadcast", 1), helper.make_attribute("axis", 1)])
    with pytest.raises(ArgumentError, match="at its axis 1"):
        Workload.from_onnx(proto)


def test_the_rate_is_that_of_the_batch(tmp_path: Path) -> None:
    onnx.save(model([RELU], x=("batch", 3)), tmp_path / "net.onnx")
    result = CliRunner().invoke(
        main, ["analyze", str(tmp_path / "net.onnx"), "--device", "A100", "--batch", "32", "--json"]
    )
    assert json.loads(result.output)["batch"] == 32
    onnx.save(model([RELU], x=(4, 3)), tmp_path / "net.onnx")
    result = CliRunner().invoke(main, ["flops", str(tmp_path / "net.onnx"), "--batch", "32"])
    assert result.exit_code == 1 and "--batch 32: the model's inputs fix it at 4" in result.output


def varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


BAD_FILES: dict[str, tuple[bytes, int | None, str]] = {
    "sparse": (b"", 2**32, "has 4,294,967,296 bytes, but an ONNX file has at most 2,147,483,647"),
    "zeros": (b"", 2**31 - 1, "there is no field at byte 0"),
    "cut": ((FILES / "weights_in_constants.onnx").read_bytes()[:-100], None, "it is truncated"),
    "empty": (b"", None, "it is empty"),
    "many nodes": (field(7, b"\x0a\x00" * 20_000_000), None, "more than 300,000 parts"),
    "many numbers": (field(7, field(1, field(5, b"\x40\x01" * 20_000_000))), None, "more than 300,000 parts"),
    "much structure": (field(7, field(11, b"\x00" * 500) * 80_000), None, "its nodes take more than"),
    "more behind": ((FILES / "channels_last.onnx").read_bytes(), 2**30, "there is no field at byte"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files_are_refused_at_once(kind: str, tmp_path: Path) -> None:
    content, size, words = BAD_FILES[kind]
    with (tmp_path / "net.onnx").open("wb") as stream:
        stream.write(content)
        if size:
            stream.truncate(size)
    with little_memory(), pytest.raises(ArgumentError, match=words):
        load(tmp_path / "net.onnx")


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """Assert that a file is read without holding it."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


def test_a_gigabyte_of_weights_is_not_read(tmp_path: Path) -> None:
    proto = model([node("MatMul", ["x", "w"], ["y"])])
    tensor = TensorProto(name="w", data_type=FLOAT, dims=(3, 10**8)).SerializeToString()
    before, after = proto.SerializeToString(), 3 * 4 * 10**8

    head = tensor + b"\x4a" + varint(after)  # raw_data
    inner = b"\x2a" + varint(len(head) + after) + head  # an initializer
    outer = before + b"\x3a" + varint(len(inner) + after) + inner  # the graph, merged with the one before
    with (tmp_path / "net.onnx").open("wb") as stream:
        stream.write(outer)
        stream.truncate(len(outer) + after)
    with little_memory():
        assert load(tmp_path / "net.onnx").parameters == Q_(3 * 10**8, "param")


FUSED: list[tuple[str, list[tuple[str, tuple[int, ...]]], dict[str, Any], int]] = [
    ("FusedMatMul", [("x", (2, 3)), ("w", (5, 3))], {"transB": 1}, 2 * 3 * 5),
    ("MatMulNBits", [("x", (2, 32)), ("w", (16, 2, 8)), ("s", (32,))],
     {"K": 32, "N": 16, "bits": 4, "block_size": 16}, 2 * 32 * 16),
    ("MultiHeadAttention", [(name, (2, 9, 32)) for name in "xkv"], {"num_heads": 4}, 2 * 2 * 9 * 9 * 32),
    ("Attention", [("x", (2, 5, 8)), ("w", (8, 24)), ("b", (24,))], {"num_heads": 2},
     2 * 5 * 8 * 24 + 2 * 2 * 5 * 5 * 8),
    ("SkipLayerNormalization", [("x", (2, 3, 8)), ("k", (2, 3, 8)), ("g", (8,))], {}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("op", "tensors", "attributes", "macs"), FUSED, ids=[each[0] for each in FUSED])
def test_fused_operators(
    op: str, tensors: list[tuple[str, tuple[int, ...]]], attributes: dict[str, Any], macs: int
) -> None:
    weights = [weight(name, *shape, dtype=np.uint8 if op == "MatMulNBits" and name == "w" else np.float32)
               for name, shape in tensors[1:]]  # fmt: skip
    fused = node(op, [name for name, _ in tensors], ["y"], domain="com.microsoft", **attributes)
    work = Workload.from_onnx(model([fused], weights, tensors[0][1]))
    assert work.macs == Q_(macs, "MAC") and work.coverage == 1


@pytest.mark.parametrize(
    ("equation", "shapes", "macs"),
    [
        ("ij,jk->ik", [(2, 3), (3, 5)], 30),
        ("bij,bjk", [(4, 2, 3), (4, 3, 5)], 120),
        ("...ij,jk->...ik", [(4, 2, 3), (3, 5)], 120),
        ("ij,jk,kl->il", [(2, 3), (3, 5), (5, 7)], 30 + 70),
        ("i,j->ij", [(2,), (3,)], 6),
        ("ij->i", [(2, 3)], 0),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]], macs: int) -> None:
    names = "xabc"[: len(shapes)]
    weights = [weight(name, *shape) for name, shape in zip(names[1:], shapes[1:], strict=True)]
    work = Workload.from_onnx(model([node("Einsum", list(names), ["y"], equation=equation)], weights, shapes[0]))
    assert work.macs == Q_(macs, "MAC") and not work.unknown
