"""``mlsys flops``: one object, one line for every mistake."""

import csv
import json
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

from mlsys.cli import main

KEYS = {
    *("model", "source", "flops", "macs", "elementwise_flops", "flops_by_kind", "elementwise_flops_by_kind"),
    *("product_flops", "product_flops_by_kind", "batch", "sequence", "image", "precision", "recipe", "notes"),
    *("operators", "params", "bytes", "coverage", "unknown"),
}
FACTORY = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 5)
    def forward(self, x):
        return torch.linalg.svd(self.layer(x))[1]

def with_inputs():
    return nn.Conv2d(3, 8, 3), torch.zeros(1, 3, 10, 10)

def convolution():
    return nn.Conv2d(3, 8, 3)

def recurrent():
    return nn.LSTM(4, 8)

def tokens():
    return nn.Embedding(10, 4)

def number():
    return 3

def wants(width):
    return nn.ReLU()
"""


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["flops", *map(str, arguments)])
    return result.exit_code, result.output


def report(*arguments: object) -> dict[str, object]:
    code, output = run(*arguments, "--json")
    assert code == 0, output
    return json.loads(output)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nets_for_flops.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_network_by_name() -> None:
    """ResNet-50 as recorded by independent counters (tests/oracles/data)."""
    answer = report("ResNet-50", "--batch", 2)
    assert set(answer) == {*KEYS, "record", "units"}
    assert answer["product_flops"] == 2 * answer["macs"] == 2 * 8_178_368_512
    assert answer["flops"] == answer["product_flops"] + answer["elementwise_flops"]
    assert sum(answer["product_flops_by_kind"].values()) == answer["product_flops"]
    assert (answer["batch"], answer["image"], answer["sequence"], answer["precision"]) == (2, 224, None, "fp32")
    assert "He et al. 2016" in answer["recipe"]
    assert sum(answer["flops_by_kind"].values()) == answer["flops"]
    assert sum(answer["elementwise_flops_by_kind"].values()) == answer["elementwise_flops"] > 0
    assert answer["params"] == 25_557_032
    assert answer["bytes"]["weights"] == 4 * 25_557_032
    assert answer["bytes"]["inputs"] == 4 * 2 * 3 * 224 * 224
    assert answer["coverage"]["percent"] == 100
    assert answer["unknown"] == []


def test_options_that_change_a_network() -> None:
    answer = report("gpt2", "--sequence", 16, "--precision", "fp16")
    assert answer["bytes"]["weights"] == 2 * answer["params"] == 2 * 124_439_808
    assert answer["macs"] == 12 * (12 * 768**2 * 16 + 2 * 16**2 * 768) + 16 * 768 * 50257
    assert report("vit-b32", "--image", 64)["flops"] < report("vit-b32")["flops"]


def test_a_network_of_the_catalogue_that_is_not_in_torch() -> None:
    answer = report("mobilenet_v3_large")
    assert (answer["source"], answer["params"]) == ("hand", 5_483_032)
    assert answer["elementwise_flops"] > 0


def test_factories(folder: Path) -> None:
    by_hand = 2 * 8 * 64 * 27
    assert report("nets_for_flops:with_inputs")["product_flops"] == by_hand
    assert report("nets_for_flops:with_inputs", "--batch", 3)["product_flops"] == 3 * by_hand
    assert report("nets_for_flops:convolution", "--shape", "1,3,10,10")["product_flops"] == by_hand
    assert report("nets_for_flops:convolution", "--image", 10, "--batch", 2)["product_flops"] == 2 * by_hand
    assert report("nets_for_flops:recurrent", "--shape", "5,1,4")["macs"] == 5 * 32 * 12
    assert report("nets_for_flops:tokens", "--sequence", 7)["bytes"]["inputs"] == 7 * 8
    half = report("nets_for_flops:with_inputs", "--precision", "bf16")
    assert half["bytes"]["weights"] == 2 * half["params"]
    answer = report("nets_for_flops:Net")
    assert [operator["operator"].partition(" ")[0] for operator in answer["unknown"]] == ["aten.linalg_svd.default"]
    assert answer["unknown"][0]["bytes"] > 0
    assert answer["coverage"]["percent"] == 50


def test_onnx_files(tmp_path: Path) -> None:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch_size", "seq", "w"))]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weight = helper.make_tensor("k", TensorProto.FLOAT, (8, 4), [0.0] * 32)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "k"], ["y"])], "net", inputs, [output], [weight])
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph), str(path))
    answer = report(path, "--batch", 3, "--sequence", 5, "--size", "w=8")
    assert (answer["macs"], answer["params"]) == (15 * 32, 32)
    assert run(path, "--size", "w") == (1, "Error: --size must be NAME=NUMBER, such as batch=8, got 'w'\n")
    assert "leaves sizes open: w. Give e.g. --size w=8" in run(path)[1]
    assert "--image does not apply to an ONNX file" in run(path, "--image", 3)[1]


def test_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 10})
    )
    for path in (tmp_path / "config.json", tmp_path):
        assert report(path, "--sequence", 4)["macs"] == 12 * 64 * 4 + 2 * 16 * 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["resnet5O"], ["unknown network 'resnet5O'. Did you mean 'resnet50'?", "config.json or a .onnx file"]),
        (["resnet50", "--batch", "0"], ["--batch must be a whole number from 1 to 1,000,000,000, got 0"]),
        (["resnet50", "--sequence", "8"], ["--sequence does not apply to 'resnet50'. It accepts --batch, --image"]),
        (["resnet50", "--precision", "fp61"], ["unknown precision 'fp61'", "Did you mean 'fp6'?"]),
        (["resnet50", "--shape", "1,3"], ["--shape does not apply to a network of the catalogue"]),
        (["resnet50", "--size", "n=1"], ["--size applies to the open sizes of an ONNX file"]),
        (["absent_module:net"], ["cannot import 'absent_module'"]),
        (["nets_for_flops:convolutoin"], ["has no 'convolutoin'. Did you mean 'convolution'?"]),
        (["nets_for_flops:number"], ["returned int; expected a torch.nn.Module"]),
        (["nets_for_flops:wants"], ["cannot be called without arguments"]),
        (["nets_for_flops:recurrent"], ["cannot be guessed from a first layer LSTM: give --shape"]),
        (["nets_for_flops:convolution", "--shape", "1,x"], ["--shape must be whole numbers separated by commas"]),
        (
            ["nets_for_flops:convolution", "--shape", "1,4,9,9"],
            ["the operator conv2d does not fit tensors of (1, 4, 9, 9)"],
        ),
    ],
)
def test_mistakes_get_one_line(folder: Path, arguments: list[str], words: list[str]) -> None:
    code, output = run(*arguments)
    assert code == 1
    assert output.startswith("Error: ")
    assert output.count("\n") == 1
    for word in words:
        assert word in output


def test_the_table_for_people() -> None:
    code, output = run("small-cnn")
    assert code == 0
    assert "captured by torch.export; 100.0% of 8 nodes understood" in output
    assert output.splitlines()[2].split() == ["kind", "count", "products", "element-wise", "moved"]


def test_csv_has_a_line_for_each_kind_that_sums_to_the_whole() -> None:
    code, output = run("resnet50", "--csv")
    assert code == 0
    rows = list(csv.DictReader(output.splitlines()))
    assert list(rows[0]) == ["kind", "operators", "macs", "flops", "product_flops", "elementwise_flops", "bytes"]
    assert sum(int(row["macs"]) for row in rows) == 4_089_184_256, "by hand, as the oracle has it"
    assert sum(int(row["operators"]) for row in rows) == 174
    code, output = run("resnet50", "--csv", "--json")
    assert (code, output) == (2, "Error: give either --json or --csv, not both\n")
