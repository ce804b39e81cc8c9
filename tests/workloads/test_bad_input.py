"""What cannot be a network: one clear line each, in bounded time, whatever the file or the factory does."""

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

from mlsys.cli import main
from mlsys.errors import ArgumentError
from mlsys.workloads import load

SMALL = {"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 10, "n_positions": 16}

FACTORIES = """
import sys

class Silent(Exception):
    def __str__(self):
        raise ValueError("not even this")

def raises_value():
    raise ValueError("line one\\nline two")

def raises_silent():
    raise Silent

def leaves():
    sys.exit(7)

def recurses():
    return recurses()

def asserts():
    assert False

def stops():
    raise StopIteration

def module(forward, *given):
    import torch
    made = torch.nn.Module()
    made.forward = forward
    return made, given

def unfit(): return module(lambda: None)
def gradient():
    import torch
    return module(lambda x: x.sum().backward(), torch.zeros(4, 8))
def branch():
    import torch
    return module(lambda x: torch.cond(x.sum() > 0, lambda y: y.double(), torch.cos, (x,)), torch.zeros(4, 8))
def script():
    import torch
    return torch.jit.script(torch.nn.ReLU())
def lazy():
    import torch
    return torch.nn.Sequential(torch.nn.ReLU(), torch.nn.LazyLinear(4)), torch.zeros(4, 8)
def pixel():
    import torch
    return torch.nn.Conv2d(3, 8, 3), torch.zeros(1, 3, 8, 8)
"""


def convolution(
    shape: tuple[Any, ...] = (1, 4, 8, 8), weight: tuple[int, ...] = (8, 4, 3, 3), **attributes: Any
) -> Any:
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    kernel = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=weight, raw_data=bytes(4 * max(math.prod(weight), 0))
    )
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv", **attributes)
    return helper.make_model(helper.make_graph([node], "net", [given], [made], [kernel]))


def nested(levels: int, calls: int = 2, itself: bool = False) -> Any:
    """Return a model of functions, each of which calls the next one several times."""
    opset = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    functions = []
    for level in range(levels):
        inner = ("Relu", "") if level == levels - 1 and not itself else (f"f{(level + 1) % levels}", "own")
        names = ["x", *(f"t{index}" for index in range(1, calls)), "y"]
        nodes = [helper.make_node(inner[0], [a], [b], domain=inner[1]) for a, b in itertools.pairwise(names)]
        functions.append(helper.make_function("own", f"f{level}", ["x"], ["y"], nodes, opset))
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 4)) for name in "ab")
    graph = helper.make_graph([helper.make_node("f0", ["a"], ["b"], domain="own")], "net", [given], [made])
    return helper.make_model(graph, functions=functions, opset_imports=opset)


ONNX: list[tuple[str, Callable[[], Any], str]] = [
    ("negative size", lambda: convolution((1, 4, -8, 8)), "the input 'x' has a size of -8. Sizes must be at least 1"),
    ("size of zero", lambda: convolution((0, 4, 8, 8)), "the input 'x' has a size of 0"),
    ("negative weight", lambda: convolution(weight=(8, 4, -3, 3)), "the weight 'w' has a size of -3"),
    ("no groups", lambda: convolution(group=0), "the node 'conv' (Conv) has `group` 0. It must be at least 1"),
    ("negative groups", lambda: convolution(group=-2), "the node 'conv' (Conv) has `group` -2"),
    ("groups that divide nothing", lambda: convolution(weight=(8, 1, 3, 3), group=3), "in 3 groups"),
    ("stride of zero", lambda: convolution(strides=[0, 1]), "the node 'conv' (Conv) has `strides` [0, 1]"),
    ("kernel larger than the picture", lambda: convolution((1, 4, 2, 2)), "from_onnx()"),
    ("functions that explode", lambda: nested(60), "expand to 1,152,921,504,606,846,976 nodes; at most 200,000"),
    ("functions that call each other", lambda: nested(3, itself=True), "calls itself, which ONNX does not allow"),
    ("functions nested deep", lambda: nested(150, 1), "functions are nested more than 100 deep"),
]
CONFIGS: list[tuple[str, str]] = [
    (json.dumps(SMALL | {"n_layer": -2}), "`n_layer` must be a whole number from 1 to 1,000, got -2"),
    (json.dumps(SMALL | {"n_layer": 0}), "`n_layer` must be a whole number from 1 to 1,000, got 0"),
    (json.dumps(SMALL | {"n_layer": 10**6}), "`n_layer` must be a whole number from 1 to 1,000, got 1000000"),
    (json.dumps(SMALL | {"n_positions": 0}), "`n_positions` must be a whole number from 1"),
    (json.dumps(SMALL | {"vocab_size": 0}), "`vocab_size` must be a whole number from 1"),
    (json.dumps(SMALL | {"n_head": 0}), "`n_head` must be a whole number from 1"),
    (json.dumps(SMALL | {"n_head": "two"}), "`n_head` must be a whole number from 1 to 100,000,000, got 'two'"),
    (json.dumps(SMALL | {"n_embd": 8.5}), "`n_embd` must be a whole number"),
    (json.dumps(SMALL | {"vocab_size": True}), "`vocab_size` must be a whole number"),
    (json.dumps(SMALL | {"n_head": 3}), "no multiple of the 3 of `n_head`"),
    (json.dumps(SMALL | {"model_type": 7}), "`model_type` must be text, got 7"),
    (json.dumps(SMALL | {"architectures": 5}), "`architectures` must be a list of names, got 5"),
    (json.dumps(SMALL | {"architectures": ["GTP2Model"]}), "Did you mean"),
    ("[1, 2]", "a config.json must be a JSON object, got [1, 2]"),
    ("{", "not readable as JSON"),
    ("\xff\xfe", "it must be UTF-8 text, got byte 0xff in line 1"),
    ("[" * 100_000, "not readable as JSON: nested too deeply"),
    ('{"model_type": "gpt2", "n_layer": ' + "9" * 5000 + "}", "not readable as JSON: Exceeds the limit"),
]


@pytest.mark.parametrize(("make", "message"), [case[1:] for case in ONNX], ids=[case[0] for case in ONNX])
def test_onnx_files(make: Callable[[], Any], message: str, tmp_path: Path) -> None:
    file = tmp_path / "net.onnx"
    file.write_bytes(make().SerializeToString())
    assert file.stat().st_size < 100_000
    with pytest.raises(ArgumentError) as caught:
        load(file)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_an_honest_function_is_read(tmp_path: Path) -> None:
    onnx.save(nested(4), tmp_path / "net.onnx")
    assert len(load(tmp_path / "net.onnx")) == 16


@pytest.mark.parametrize(("text", "message"), CONFIGS, ids=[message[:40] for _, message in CONFIGS])
def test_configurations(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(text, encoding="latin-1")
    result = CliRunner().invoke(main, ["flops", str(file)])
    assert result.exit_code == 1 and message in result.output and result.output.count("\n") == 1, result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fixtures_of_bad_input:raises_value"], "failed to build a module: ValueError: line one"),
        (["fixtures_of_bad_input:raises_silent"], "failed to build a module: Silent"),
        (["fixtures_of_bad_input:leaves"], "failed to build a module: SystemExit: 7"),
        (["fixtures_of_bad_input:recurses"], "failed to build a module: RecursionError"),
        (["fixtures_of_bad_input:asserts"], "failed to build a module: AssertionError"),
        (["fixtures_of_bad_input:stops"], "failed to build a module: StopIteration"),
        (["fixtures_of_bad_input:unfit"], "returns no example inputs"),
        (["fixtures_of_bad_input:gradient"], "backward() has nothing to differentiate by"),
        (["fixtures_of_bad_input:branch"], "torch compiles a part of it"),
        (["fixtures_of_bad_input:script"], "fixtures_of_bad_input:script': `module` is a TorchScript module"),
        (["fixtures_of_bad_input:lazy"], "the layer '1' (LazyLinear) has no sizes before its first run"),
        (["fixtures_of_bad_input:pixel", "--batch", str(10**9), "--image", str(10**9)], "has more than 100,000,000"),
        (["fixtures_of_bad_input.py:pixel"], "Write fixtures_of_bad_input:pixel"),
        (["torch.nn:ReLU"], "the inputs cannot be guessed from a module without weights"),
        (["torch.nn:ReLU", "--shape", "4,,8"], "--shape must be whole numbers separated by commas"),
        (["torch.nn:ReLU", "--shape", ",".join(["1000000000"] * 3)], "has more than 100,000,000"),
        (["net.onnx", "--size", "=3"], "--size must be NAME=NUMBER"),
        (["../x:y"], "'../x:y' must be package.module:factory"),
        (["x:y:z"], "must be package.module:factory"),
        ([":y"], "must be package.module:factory"),
        (["torch.nn:Linear", "--shape", ",".join(["2"] * 5000)], "--shape must have at most 16 sizes, got 5000"),
        (["torch.nn:Identity", "--shape", "0,3"], "--shape must be whole numbers separated by commas"),
        (["torch.nn:Identity", "--shape", "9" * 30], "--shape must be whole numbers separated by commas"),
        (["resnet50", "--batch", str(10**18)], "--batch must be a whole number from 1 to 1,000,000,000"),
        (["resnet50", "--batch", "-3"], "--batch must be a whole number from 1"),
        (["resnet50", "--image", "0"], "--image must be a whole number from 1"),
        (["gpt2", "--sequence", str(10**12)], "--sequence must be a whole number from 1"),
    ],
)
def test_factories_and_sizes(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fixtures_of_bad_input.py").write_text(FACTORIES)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "net.onnx").touch()
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["flops", *arguments])
    assert result.exit_code == 1 and message in result.output and result.output.count("\n") == 1, result.output


@pytest.mark.parametrize("command", [["analyze", "--device", "A100"], ["tiles", "--device", "A100"], ["memory"]])
def test_every_command_refuses_it_in_one_line(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "net.onnx"
    file.write_bytes(nested(60).SerializeToString())
    result = CliRunner().invoke(main, [command[0], str(file), *command[1:]])
    assert result.exit_code == 1 and "at most 200,000" in result.output and result.output.count("\n") == 1


@pytest.mark.parametrize("command", ["analyze", "compare"])
def test_a_fixed_batch_is_no_fault_where_none_is_requested(command: str, tmp_path: Path) -> None:
    onnx.save(convolution(), tmp_path / "fixed_batch.onnx")
    devices = ["--device", "A100"] if command == "analyze" else ["--devices", "A100,T4"]
    result = CliRunner().invoke(main, [command, str(tmp_path / "fixed_batch.onnx"), *devices])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(main, [command, str(tmp_path / "fixed_batch.onnx"), *devices, "--batch", "2"])
    assert result.exit_code == 1 and "--batch 2: the model's inputs fix it at 1" in result.output
