"""The catalogue against what other libraries count, exactly: work and parameters of whole networks."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from mlsys.workloads import Network, zoo
from mlsys.workloads.zoo.cnn_builder import CnnBuilder

DATA = Path(__file__).parent / "data"


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


# --- recorded: torchvision, timm and transformers (data/README.md) --------------------------------

RECORDED = rows("zoo_counts.csv")
LABELS = [f"{row['library'].split()[0]}:{row['model']}:{row['image'] or row['sequence']}" for row in RECORDED]


def build(row: dict[str, str]) -> Network:
    image, sequence = (int(row[key]) if row[key] else None for key in ("image", "sequence"))
    entry = zoo.entry(row["model"])
    return entry.build(image=image, sequence=sequence or (128 if entry.model else None))


@pytest.mark.parametrize("row", RECORDED, ids=LABELS)
def test_recorded_work_and_parameters(row: dict[str, str]) -> None:
    network = build(row)
    assert network.parameters.m_as("param") == int(row["parameters"])
    if row["flops"]:
        assert 2 * network.macs.m_as("MAC") == int(row["flops"])


def test_the_record_is_wide() -> None:
    """At least a hundred rows, so that a lost file does not pass for success."""
    assert len(RECORDED) >= 100
    assert len({zoo.entry(row["model"]).name for row in RECORDED}) >= 80


@pytest.mark.parametrize("row", rows("flops.csv"), ids=lambda row: row["model"])
def test_the_reference_derived_by_hand(row: dict[str, str]) -> None:
    sequence = {"gpt2": 1024, "bert_base": 128}.get(row["model"])
    network = zoo.network(row["model"], sequence=sequence)
    assert network.macs.m_as("MAC") == int(row["reference_macs"])
    assert network.parameters.m_as("param") == int(row["params"])


# --- written down again in plain torch, nothing computed (meta device) ----------------------------


def counted(run: Callable[[], object]) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def meta(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, device="meta")


def held(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def unit(into: int, out: int, kernel: int, stride: int = 1, groups: int = 1, bias: bool = False) -> nn.Sequential:
    """A convolution, its normalisation, its rectifier."""
    conv = nn.Conv2d(into, out, kernel, stride, kernel // 2, groups=groups, bias=bias)
    return nn.Sequential(conv, nn.BatchNorm2d(out), nn.ReLU())


class Plus(nn.Module):
    """A branch beside a shortcut."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.branch, self.shortcut = branch, shortcut or nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.branch(x)
        return y + self.shortcut(x)[..., : y.shape[-2], : y.shape[-1]]


def resnet18() -> nn.Module:
    layers: list[nn.Module] = [unit(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    into = 64
    for out in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if out > 64 and not block else 1
            branch = nn.Sequential(unit(into, out, 3, stride), unit(out, out, 3))
            shortcut = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))
            layers.append(Plus(branch, shortcut if stride > 1 else None))
            into = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def vgg16() -> nn.Module:
    layers: list[nn.Module] = []
    into = 3
    for times, out in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(times):
            layers += [nn.Conv2d(into, out, 3, padding=1), nn.ReLU()]
            into = out
        layers.append(nn.MaxPool2d(2, 2))
    head = [nn.Linear(512 * 49, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers, nn.Flatten(), *head)


def mobilenet_v2() -> nn.Module:
    layers: list[nn.Module] = [unit(3, 32, 3, 2)]
    into = 32
    table = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expansion, out, times, first in table:
        for repeat in range(times):
            stride, wide = first if not repeat else 1, expansion * into
            steps = [unit(into, wide, 1)] if expansion > 1 else []
            branch = nn.Sequential(*steps, unit(wide, wide, 3, stride, wide), unit(wide, out, 1)[:2])
            layers.append(Plus(branch) if stride == 1 and into == out else branch)
            into = out
    return nn.Sequential(*layers, unit(320, 1280, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


def resnet8() -> nn.Module:
    """mlcommons/tiny, image_classification/keras_model.py: biases everywhere, bare shortcuts."""

    def biased(into: int, out: int, stride: int = 1) -> nn.Module:
        return unit(into, out, 3, stride, bias=True)

    first = Plus(nn.Sequential(biased(16, 16), biased(16, 16)))
    second = Plus(nn.Sequential(biased(16, 32, 2), biased(32, 32)), nn.Conv2d(16, 32, 1, 2))
    third = Plus(nn.Sequential(biased(32, 64, 2), biased(64, 64)), nn.Conv2d(32, 64, 1, 2))
    return nn.Sequential(biased(3, 16), first, second, third, nn.AvgPool2d(8), nn.Flatten(), nn.Linear(64, 10))


def visual_wake_words() -> nn.Module:
    """MobileNet v1 at a quarter of the width, with the biases that Keras adds by default."""
    layers: list[nn.Module] = [unit(3, 8, 3, 2, bias=True)]
    into = 8
    for out, stride in [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)]:
        layers += [unit(into, into, 3, stride, into, bias=True), unit(into, out, 1, bias=True)]
        into = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 2))


def ds_cnn() -> nn.Module:
    """Zhang et al. 2017 as MLPerf Tiny ships it; TensorFlow pads 49 × 10 to 25 × 5."""
    first = nn.Conv2d(1, 64, (10, 4), 2)
    layers: list[nn.Module] = [nn.ZeroPad2d((1, 1, 4, 5)), first, nn.BatchNorm2d(64), nn.ReLU()]
    for _ in range(4):
        layers += [unit(64, 64, 3, groups=64, bias=True), unit(64, 64, 1, bias=True)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12))


def autoencoder() -> nn.Module:
    layers: list[nn.Module] = []
    into = 640
    for out in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        layers += [nn.Linear(into, out), nn.BatchNorm1d(out), nn.ReLU()]
        into = out
    return nn.Sequential(*layers, nn.Linear(into, 640))


PLAIN = {
    "resnet18": (resnet18, (3, 224, 224)),
    "vgg16": (vgg16, (3, 224, 224)),
    "mobilenet_v2": (mobilenet_v2, (3, 224, 224)),
    "ic_resnet8": (resnet8, (3, 32, 32)),
    "vww_mobilenet_v1_0.25": (visual_wake_words, (3, 96, 96)),
    "kws_ds_cnn": (ds_cnn, (1, 49, 10)),
    "ad_autoencoder": (autoencoder, (640,)),
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("batch", [1, 3])
def test_networks_in_plain_torch(name: str, batch: int) -> None:
    make, shape = PLAIN[name]
    with torch.device("meta"):
        module = make().eval()
    network = zoo.network(name, batch=batch)
    assert network.flops.m_as("FLOP") == counted(lambda: module(meta(batch, *shape)))
    assert network.parameters.m_as("param") == held(module)


def test_traffic_of_every_layer_is_what_torch_holds() -> None:
    """Inputs, weights and outputs of each convolution and dense layer, in elements."""
    with torch.device("meta"):
        module = resnet18().eval()
    seen: list[tuple[int, int]] = []

    def observe(layer: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        seen.append((inputs[0].numel() + layer.weight.numel() + output.numel(), layer.weight.numel()))

    for layer in module.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            layer.register_forward_hook(observe)
    module(meta(2, 3, 224, 224))
    ours = zoo.network("resnet18", batch=2, precision="fp32")
    assert sorted((op.data.m_as("byte") / 4, op.weights.m_as("byte") / 4) for op in ours) == sorted(seen)


@pytest.mark.parametrize("cell", ["vanilla", "gru", "lstm"])
def test_recurrent_layers(cell: str) -> None:
    """torch adds a second bias to each gate; its counter does not see recurrent layers, so the work is by hand."""
    make = {"vanilla": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[cell]
    layer = zoo.recurrent_layer(cell, batch=4, steps=7, inputs=24, hidden=40)
    with torch.device("meta"):
        theirs = make(24, 40)
    assert layer.parameters.m_as("param") == held(theirs)
    step = counted(lambda: (meta(4, 24) @ theirs.weight_ih_l0.T, meta(4, 40) @ theirs.weight_hh_l0.T))
    assert layer.flops.m_as("FLOP") == 7 * step


def test_a_decoding_step_with_shared_heads_in_plain_torch() -> None:
    """One block and the logits of Llama 3 8B, one token after 99 others, and the bytes that it touches."""
    hidden, heads, shared, width, ffn, words, context, batch = 4096, 32, 8, 128, 14336, 128256, 100, 3

    def step() -> None:
        x = meta(batch, hidden)
        for out in (heads * width, shared * width, shared * width):
            functional.linear(x, meta(out, hidden))
        query = meta(batch, shared, heads // shared, width)
        keys = values = meta(batch, shared, context, width)
        torch.softmax(query @ keys.transpose(-1, -2), -1) @ values
        functional.linear(meta(batch, heads * width), meta(hidden, heads * width))
        for _ in ("gate", "up"):
            functional.linear(x, meta(ffn, hidden))
        functional.linear(meta(batch, ffn), meta(hidden, ffn))
        functional.linear(x, meta(words, hidden))

    network = zoo.language_model("llama-3-8b").decode(batch=batch, context=context)
    operators = {operator.name: operator for operator in network}
    block = 2 * (operators["logits"].products.macs + sum(o.products.macs for o in list(network)[1:6]))  # type: ignore[union-attr]
    assert block == counted(step)
    cache = 2 * batch * shared * context * width
    assert operators["attention"].data.m_as("byte") == 2 * (cache + 2 * batch * heads * width)


@pytest.mark.parametrize("ceil", [False, True])
def test_sizes_after_pooling(ceil: bool) -> None:
    """Every size, kernel, stride and padding in a small box, against torch."""
    for size in range(4, 14):
        for kernel in (2, 3):
            for stride in (1, 2, 3, 4):
                for padding in range(kernel // 2 + 1):
                    net = CnnBuilder(1, (1, size, size), "fp16", True)
                    net.pool(kernel, stride, padding, ceil)
                    theirs = functional.max_pool2d(meta(1, 1, size, size), kernel, stride, padding, ceil_mode=ceil)
                    assert net.shape == tuple(theirs.shape[1:]), (size, kernel, stride, padding)
