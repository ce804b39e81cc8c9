"""One door, one recipe: the same network whoever asks and however it was stored."""

import csv
import gzip
import sys
from pathlib import Path

import pytest
import torch

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.mapping.fusion import as_kernels
from mlsys.units import Q_
from mlsys.workloads import Workload, load, zoo
from mlsys.workloads.captures import as_text, from_text
from mlsys.workloads.captures.store import NARROW, WIDE, file_of
from mlsys.workloads.torch_import.build import from_torch
from mlsys.workloads.torch_models import RECIPES, recipe, torch_dtype
from sampled import drawn

FORMATS = ("fp32", "fp16", "bf16", "fp64")
CASES = [(name, precision) for name in RECIPES for precision in FORMATS]
DRAWN = [entry.name for entry in map(zoo.entry, zoo.networks()) if entry.drawn]


def everything(work: Workload) -> list[object]:
    """What is counted of each operator, and of the whole; how many nodes only look depends on which sizes are free."""
    rows = [(op.kind, op.precision, op.counts, dict(op.shape), op.target.split(" ")[-1]) for op in work]
    return [rows, work.held, work.flops, work.macs, work.data]


def captured_anew(name: str, precision: str, **sizes: int) -> Workload:
    """Capture at fixed sizes: no symbol, no file."""
    module, inputs = recipe(name).ready(sizes.pop("batch", 1), **sizes, dtype=torch_dtype(precision))
    return from_torch(module, inputs, name=name)


def test_every_recipe_is_stored_and_is_an_entry_of_the_catalogue() -> None:
    for name in RECIPES:
        assert file_of(name).is_file(), f"run make captures: {name} is missing"
        assert zoo.entry(name).code == name
    assert {entry.code for entry in map(zoo.entry, zoo.networks()) if entry.code} == set(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_a_capture_that_is_read_and_written_is_the_same_text(name: str) -> None:
    for precision in (WIDE, NARROW):
        file = file_of(name, precision)
        if file.is_file():
            text = gzip.decompress(file.read_bytes()).decode("utf-8")
            template = from_text(text)
            assert as_text(template) == text
            tensors = [wire.tensor for wire in template.wires]
            assert len({id(tensor) for tensor in tensors}) == len(set(tensors)), "each stands once in memory"


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "precision"), drawn(CASES, 2, "captures"))
def test_a_stored_capture_is_what_torch_captures_now(name: str, precision: str) -> None:
    for batch in (1, 3):
        ours, theirs = load(name, batch=batch, precision=precision), captured_anew(name, precision, batch=batch)
        assert everything(ours) == everything(theirs), (name, precision, batch)


def edges(work: Workload) -> list[object]:
    """Return, for each operator, which operators made what it reads, which weights it reads, and how many bytes."""
    graph = work.graph
    return [
        sorted((graph.values[read.value].producer or 0, graph.values[read.value].role, read.bytes) for read in row)
        for row in graph.reads
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "precision"), drawn([(name, form) for name in DRAWN for form in FORMATS], 2, "drawings")
)
def test_a_drawn_graph_is_what_torch_captures_of_its_module(name: str, precision: str) -> None:
    """One recipe, two readers: edges without torch, and calls of torch's own layers followed by torch."""
    ours, theirs = load(name, batch=3, precision=precision), captured_anew(name, precision, batch=3)
    assert everything(ours) == everything(theirs)
    assert edges(ours) == edges(theirs)


@pytest.mark.parametrize(("name", "sizes"), [("resnet18", {"image": 160}), ("bert-base", {"sequence": 77}),
                                             ("vit-b32", {"image": 64}), ("unet", {"image": 32})])  # fmt: skip
def test_other_sizes_are_what_torch_captures_at_them(name: str, sizes: dict[str, int]) -> None:
    assert everything(load(name, batch=2, **sizes)) == everything(captured_anew(name, "fp32", batch=2, **sizes))


def test_a_picture_of_another_side_needs_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Published for ViT-B/16 at 384 × 384: 86.86 million parameters, 577 positions (Touvron et al. 2021, table 6)."""
    monkeypatch.setitem(sys.modules, "torch", None)
    work = load("vit_base_16", image=384)
    assert work.parameters.m_as("param") == zoo.entry("vit_base_16").parameters.m_as("param") + 768 * (577 - 197)
    assert work.macs == load("vit_base_patch16_384").macs
    assert len(work.graph) == len(load("vit_base_16"))


@pytest.mark.parametrize("name", DRAWN)
def test_work_and_parameters_of_the_graph_are_those_of_the_products(name: str) -> None:
    work, written = load(name), zoo.network(name)
    assert work.macs == written.macs
    assert work.parameters == written.parameters


def test_totals_that_others_counted() -> None:
    """tests/oracles/data/flops.csv: derived by hand, met by torch's own counter."""
    with (Path(__file__).parents[1] / "oracles" / "data" / "flops.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        sequence = {"gpt2": 1024, "bert_base": 128}.get(row["model"])
        work = load(row["model"], sequence=sequence)
        assert work.macs == Q_(int(row["reference_macs"]), "MAC")
        assert work.product_flops == Q_(2 * int(row["reference_macs"]), "FLOP")
        assert work.parameters == Q_(int(row["params"]), "param")
    assert len(rows) >= 4


@pytest.mark.parametrize("name", ["resnet50", "bert-base", "lstm-lm", "bloom", "inception_v3", "dlrm", "rnn_t"])
def test_work_is_products_and_the_rest_fused_or_not(name: str) -> None:
    work = load(name, precision="fp16")
    parts = [op.product_flops.magnitude + op.elementwise.magnitude for op in work]
    assert work.flops.magnitude == pytest.approx(sum(parts), rel=1e-12)
    assert work.flops.magnitude == pytest.approx(sum(op.flops.magnitude for op in work), rel=1e-12)
    assert as_kernels(work).macs == work.macs


@pytest.mark.parametrize("phase", [None, "decode"])
def test_kernels_do_all_the_work_of_every_network(phase: str | None) -> None:
    for entry in map(zoo.entry, zoo.networks()):
        if entry.written and (entry.model or phase is None):
            apart = entry.build(phase=phase, fused=False)
            together = entry.build(phase=phase, whole=True)
            assert together.flops.magnitude == pytest.approx(apart.flops.magnitude, rel=1e-12), entry.name
            assert (together.macs, together.parameters) == (apart.macs, apart.parameters)
            assert together.data == entry.build(phase=phase).data


def test_sizes_and_recipe_are_reported() -> None:
    assert dict(load("resnet50").sizes) == {"batch": 1, "image": 224}
    assert dict(load("llama-7b").sizes) == {"batch": 1, "sequence": 512}
    assert dict(load("bloom", batch=3, sequence=9).sizes) == {"batch": 3, "sequence": 9}
    assert "He et al. 2016" in load("ResNet-50").recipe and "PyTorch code" in load("VGG-16").recipe
    assert "defined operator by operator" in load("bloom").recipe
    assert load("resnet50").at(batch=4) == load("resnet50", batch=4)
    assert load("bloom").at(sequence=7).flops == load("bloom", sequence=7).flops
    assert load("bloom").stored_as("fp16").data == load("bloom", precision="fp16").data
    assert load("bloom").precision == "fp32"


@pytest.mark.parametrize("form", ["int8", "fp8", "int4", "tf32"])
def test_formats_that_torch_does_not_compute_in_take_their_bytes(form: str) -> None:
    single, other = load("resnet50"), load("resnet50", precision=form)
    bits = {"int8": 8, "fp8": 8, "int4": 4, "tf32": 32}[form]
    assert other.weight_bytes == single.weight_bytes * bits / 32
    assert other.data.magnitude == pytest.approx(single.data.magnitude * bits / 32, rel=1e-6)
    assert (other.macs, other.flops) == (single.macs, single.flops)
    assert {op.precision for op in other} == {form}


def test_the_networks_of_mlperf_tiny_have_graphs() -> None:
    """Parameters: mlcommons/tiny, counted by Keras (trainable ones)."""
    for name, parameters in (("ds-cnn", 23_756), ("resnet8", 78_186), ("vww", 216_322), ("ad", 267_928)):
        work = load(name)
        assert len(work.graph) == len(work) and work.parameters.m_as("param") == parameters


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"model": "resnet5O"}, UnknownNameError, "Did you mean 'resnet50'?"),
        ({"model": "resnet50", "batch": 0}, ArgumentError, "whole number"),
        (
            {"model": "resnet50", "batch": 10**18},
            ArgumentError,
            "`batch` must be a whole number from 1 to 1,",
        ),
        ({"model": "resnet50", "sequence": 8}, ArgumentError, "`sequence` does not apply to 'resnet50'. It accepts"),
        ({"model": "lenet5", "image": 8}, ArgumentError, "whose input has one size"),
        ({"model": "gpt2", "sequence": 1025}, ArgumentError, "`sequence` must be at most 1024"),
        ({"model": "alexnet", "image": 8}, ArgumentError, "nothing is left of the picture at"),
        ({"model": "unet", "image": 100}, ArgumentError, "`image` must be a multiple of 16"),
        ({"model": "resnet50", "phase": "decode"}, ArgumentError, "`phase` applies to models that generate tokens"),
        ({"model": "resnet50", "precision": "fp61"}, UnknownNameError, "unknown precision 'fp61'"),
        ({"model": "resnet50", "sizes": {"n": 3}}, ArgumentError, "open sizes of an ONNX file"),
        ({"model": "resnet50", "shape": (1, 3)}, ArgumentError, "`shape` does not apply to a network of the catalogue"),
    ],
)
def test_errors(given: dict[str, object], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        load(**given)  # type: ignore[arg-type]
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_torch_is_not_needed() -> None:
    assert torch.__name__ == "torch"  # imported here; tests/workloads/test_torch_import.py looks at a fresh process


QUANTISED = """
import torch
from torch import nn
from mlsys.workloads.torch_models.small import small_cnn

def net():
    made = torch.ao.quantization.quantize_dynamic(small_cnn().eval(), {nn.Linear}, dtype=torch.qint8)
    return made, torch.zeros(1, 1, 28, 28)
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_packed_weights_of_a_quantised_layer_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two convolutions in FP32, 4 × (160 + 4640) bytes; 10 × 1568 in one byte each; 10 biases in FP32."""
    (tmp_path / "net_that_is_quantised.py").write_text(QUANTISED)
    monkeypatch.syspath_prepend(tmp_path)
    work = load("net_that_is_quantised:net")
    assert work.weight_bytes == Q_(4 * (160 + 4640) + 10 * 1568 + 4 * 10, "byte") == Q_(34_920, "byte")
    assert work.parameters == Q_(20_490, "param")
    assert work.coverage == 1 and work.macs == load("small-cnn").macs
    (last,) = (op for op in work if op.kind == "gemm")
    assert last.weights == Q_(15_680 + 40, "byte")
    assert {value.role for value in work.graph.read_by(len(work) - 1)} == {"weight", "made"}


def test_a_module_that_its_owner_goes_on_using_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted without data and in another format; weights, their places and gradients stay the owner's."""
    kept = torch.nn.ModuleDict({"state": torch.nn.LSTM(4, 3), "scaled": torch.nn.BatchNorm1d(3)}).train()
    kept.forward = lambda x: kept["scaled"](kept["state"](x)[0][-1])
    inputs = torch.randn(5, 2, 4)
    kept(inputs).sum().backward()
    owned = {**dict(kept.named_parameters()), **dict(kept.named_buffers())}
    before = {name: (tensor, tensor.clone(), tensor.data_ptr(), tensor.grad) for name, tensor in owned.items()}
    monkeypatch.setattr(sys.modules["fractions"], "network", lambda: (kept, inputs), raising=False)
    assert load("fractions:network", precision="fp16", batch=3).weight_bytes == Q_(2 * (84 + 24 + 6), "byte")
    for name, tensor in {**dict(kept.named_parameters()), **dict(kept.named_buffers())}.items():
        same, values, place, gradient = before[name]
        assert tensor is same and tensor.grad is gradient and tensor.data_ptr() == place
        torch.testing.assert_close(tensor, values)
    assert kept.training
    kept(inputs).sum().backward()
