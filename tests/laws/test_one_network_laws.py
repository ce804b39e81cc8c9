"""One network, one answer: the estimate of a network does not depend on how it was loaded."""

from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest
import torch

from mlsys import Hardware
from mlsys.mapping.fusion import as_kernels, fuse
from mlsys.models.analysis import analyze
from mlsys.workloads import Network, Workload, load, zoo
from mlsys.workloads.epilogue_fusion import fuse_epilogues
from mlsys.workloads.torch_import import from_torch
from mlsys.workloads.torch_models import tiny
from sampled import drawn

NAMES = [entry.name for entry in map(zoo.entry, zoo.networks()) if entry.drawn]
MACHINES = (
    (Hardware.Cloud.A100, "compiled network"),
    (Hardware.Cloud.A100, "eager network"),
    (Hardware["EPYC_7742"], "compiled network"),
)
FACTORIES = {
    "alexnet": "vision:alexnet",
    "squeezenet_1.0": "vision:squeezenet",
    "densenet121": "vision:densenet",
    "efficientnet_b0": "vision:efficientnet",
    "ic_resnet8": "tiny:resnet8",
    "ad_autoencoder": "tiny:autoencoder",
    "unet": "small:UNet",
}


@lru_cache(maxsize=8)
def kernels(name: str, batch: int) -> Workload:
    return as_kernels(load(name, batch=batch, precision="fp16"))  # type: ignore[return-value]


def times(network: Network) -> list[float]:
    return [
        analyze(device, network, precision=device.headline, software=setting, samples=1).estimate.m_as("s")
        for device, setting in MACHINES
    ]


def named(name: str, network: Network) -> Network:
    """Effects of measurements are looked up by the network's name."""
    return Network(name, network.operators)


@pytest.mark.parametrize(("name", "batch"), drawn([(name, batch) for name in NAMES for batch in (1, 16)], 8, "routes"))
def test_a_graph_is_timed_as_the_products_that_are_written_down(name: str, batch: int) -> None:
    """One recipe, read in two ways: products of the builder, and a graph brought to products."""
    written = named(zoo.entry(name).title, zoo.entry(name).build(batch=batch, precision="fp16", whole=True))
    assert times(kernels(name, batch)) == pytest.approx(times(written), rel=0.02)
    assert len(kernels(name, batch)) == len(written)


@pytest.mark.parametrize("name", drawn(NAMES, 6, "abridged"))
def test_layers_that_are_left_out_are_like_the_second(name: str) -> None:
    """Kernels of three layers, the second of them repeated, are those of the whole graph, one by one and by name."""
    loaded = load(name, batch=3, precision="int4")
    whole = zoo.entry(name).drawing(batch=3, precision="int4").finished().at({})
    short = loaded.abridged()
    assert (loaded.operators, loaded.held, loaded.views) == (whole.operators, whole.held, whole.views)
    assert loaded.graph.reads == whole.graph.reads and loaded.graph.values == whole.graph.values
    assert short.at(batch=5).with_layers().operators == load(name, batch=5, precision="int4").operators
    assert as_kernels(loaded).operators == fuse_epilogues(fuse(whole)).operators
    assert bool(short.left_out) == name.startswith(("vit", "bert", "gpt", "llama", "mistral"))


PICTURES = [name for name in NAMES if zoo.entry(name).image and not name.startswith("vit")]


@pytest.mark.parametrize("name", drawn(PICTURES, 3, "kernels of pictures"))
def test_kernels_of_a_graph_are_those_that_are_written_down(name: str) -> None:
    """Found along the edges, or counted as appended; an addition goes with either of two convolutions."""
    lowered, written = kernels(name, 3), zoo.entry(name).build(batch=3, precision="fp16", whole=True)
    rows = [
        Counter(
            (operator.kind, operator.parameters, float(operator.data.m_as("byte")), operator.products)
            for operator in network
        )
        for network in (lowered, written)
    ]
    assert rows[0] == rows[1]
    assert (lowered.flops, lowered.weights) == (written.flops, written.weights)


@pytest.mark.parametrize("name", drawn(list(FACTORIES), 3, "factories"))
def test_a_factory_is_timed_as_the_catalogue_times_it(name: str) -> None:
    image = zoo.entry(name).image
    shape = (2, *image) if image else (2, 640)
    mine = load(f"mlsys.workloads.torch_models.{FACTORIES[name]}", shape=shape, precision="fp16")
    assert times(named(zoo.entry(name).title, as_kernels(mine))) == pytest.approx(times(kernels(name, 2)), rel=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_file_of_onnx_is_timed_as_the_code_that_it_was_written_from(tmp_path: Path) -> None:
    """The writer folds the normalisations into the convolutions, as the kernels do."""
    file = tmp_path / "resnet8.onnx"
    torch.onnx.export(tiny.resnet8().eval(), (torch.zeros(2, 3, 32, 32),), file, dynamo=False)
    written, mine = as_kernels(load(file)), as_kernels(load("resnet8", batch=2))
    assert (len(written), written.macs, written.data) == (len(mine), mine.macs, mine.data)
    assert times(named("resnet8", written)) == pytest.approx(times(named("resnet8", mine)), rel=1e-3)


@pytest.mark.parametrize("name", drawn(["lstm-lm", "detr-r50", "lenet5", "small-cnn", *NAMES], 5, "carried"))
def test_kernels_keep_all_work_and_move_no_more_than_fused_ones(name: str) -> None:
    work = load(name, batch=3)
    fused, lowered = fuse(work), as_kernels(work)
    assert (lowered.macs, lowered.flops) == (work.macs, work.flops)
    assert sum(operator.parameters for operator in lowered) == sum(operator.parameters for operator in work)
    assert lowered.data <= fused.data and len(lowered) <= len(fused)


def timed(module: torch.nn.Module, *shape: int) -> Network:
    return as_kernels(Workload.from_torch(module, torch.zeros(*shape, device="meta")))


class Spread(torch.nn.Module):
    """An outer sum: 64 times as much is made as is read."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x)
        return (x[:, :, None] + x[:, None, :]).tanh().sum(2)


def test_what_spreads_is_a_kernel_of_its_own() -> None:
    """Nothing carries a tensor that no product reads or writes: 8 × 64 × 64 values of 4 bytes cross memory."""
    product, spread = timed(Spread(), 8, 64)
    assert (product.kind, spread.kind) == ("gemm", "elementwise")
    assert spread.data.m_as("byte") >= 8 * 64 * 64 * 4


def test_a_network_without_products_is_made_of_its_operators() -> None:
    module = torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.Softmax(-1))
    assert [operator.kind for operator in timed(module, 8, 64)] == ["normalisation", "softmax"]


class Heads(torch.nn.Module):
    """Query, key and value as three layers, as transformers' BERT has them."""

    def __init__(self) -> None:
        super().__init__()
        self.three = torch.nn.ModuleList(torch.nn.Linear(32, width) for width in (32, 16, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([layer(x).relu() for layer in self.three], -1)


def test_layers_that_read_one_tensor_are_one_product() -> None:
    (attention,) = timed(Heads(), 8, 32)
    assert (attention.shape["m"], attention.shape["n"], attention.shape["k"]) == (8, 64, 32)
    assert attention.data.m_as("byte") == 4 * (8 * 32 + 32 * 64 + 8 * 64)
    assert attention.parameters == 32 * 64 + 64


class PositionMap(torch.nn.Module):
    """A convolution whose result is scaled per channel and added to a learned map."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(8, 8, 3, padding=1)
        self.gain = torch.nn.Parameter(torch.ones(8, 1, 1))
        self.map = torch.nn.Parameter(torch.zeros(8, 32, 32))

    def forward(self, x):
        return torch.relu(self.convolution(x) * self.gain + self.map)


@pytest.mark.parametrize("batch", [1, 4])
def test_a_learned_map_that_is_added_is_read_once_for_all_samples(batch):
    network = from_torch(PositionMap(), torch.zeros(batch, 8, 32, 32))
    image, matrix, learned = 8 * 32 * 32, 8 * 8 * 9, 8 * 32 * 32  # gain and bias are vectors per channel: folded
    for kernels_ in (fuse_epilogues(network), as_kernels(network)):
        assert kernels_.weights.m_as("byte") == 4 * (matrix + learned)
        assert kernels_.data.m_as("byte") == 4 * (2 * batch * image + matrix + learned)
