"""A picture network that is recorded without torch.export is the one that torch.export gives, operator by operator."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from mlsys.errors import ArgumentError
from mlsys.workloads import Workload
from mlsys.workloads.torch_import import capture
from mlsys.workloads.torch_import.recorded import UnrecordedOperation
from mlsys.workloads.torch_models import RECIPES
from sampled import drawn

RECORDED = "torch's dispatcher"
PICTURES = [name for name, recipe in RECIPES.items() if recipe.free != "sequence"]


class Net(nn.Module):
    """Layers that run one after another, then a function of what they give."""

    def __init__(self, *layers: nn.Module, then: Callable[[Any], Any] = lambda x: x) -> None:
        super().__init__()
        self.layers, self.then = nn.Sequential(*layers), then

    def forward(self, x: torch.Tensor) -> Any:
        return self.then(self.layers(x))


def convolution(channels: int = 3, made: int = 8, **how: Any) -> nn.Module:
    return nn.Conv2d(channels, made, 3, **how)


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.relu_()
    y += x
    return y.mul_(y).sigmoid()


SMALL = {
    "uneven": (convolution(stride=(2, 1), padding=(0, 2), dilation=(1, 2)), nn.ReLU(), nn.MaxPool2d((2, 3), 2, (1, 1))),
    "grouped": (convolution(8, 16, groups=4, bias=False), nn.BatchNorm2d(16), nn.Hardswish(), nn.AvgPool2d(3, 1, 1)),
    "in place": (convolution(), nn.ReLU6(inplace=True), nn.SiLU(inplace=True), nn.Hardsigmoid(inplace=True)),
    "head": (convolution(), nn.AdaptiveAvgPool2d((2, 3)), nn.Flatten(), nn.Linear(48, 5), nn.Tanh()),
}
THEN: dict[str, Callable[[Any], Any]] = {
    "skip": lambda x: torch.cat([x, x + x, x * x], 1),
    "a mean": lambda x: x * x.mean((2, 3), keepdim=True),
    "gates": lambda x: x * nn.functional.adaptive_avg_pool2d(x, 1).sigmoid(),
    "written over": in_place,
    "two results": lambda x: (x.relu(), x),
    "several ways out": lambda x: {"a": x.sigmoid(), "b": [x]},
}
OTHERWISE: dict[str, tuple[nn.Module, Callable[[Any], Any]]] = {  # what only torch.export takes
    "another operator": (convolution(), lambda x: x.cumsum(1)),
    "a constant": (convolution(), lambda x: x + torch.ones(1)),
    "a number": (convolution(), lambda x: x + 1),
    "not in order": (convolution(), lambda x: x.transpose(2, 3).relu()),
    "rounded up": (nn.Sequential(convolution(), nn.MaxPool2d(2, ceil_mode=True)), lambda x: x),
    "in columns": (convolution().to(memory_format=torch.channels_last), lambda x: x.relu()),
    "twice the same": (nn.Sequential(*[convolution(3, 3, padding=1)] * 2), lambda x: x),
}


def both(module: nn.Module, inputs: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Workload, Workload]:
    """Return what we record and what torch.export gives."""

    def refused(*_: Any) -> None:
        raise UnrecordedOperation

    recorded = Workload.from_torch(module, inputs)
    with monkeypatch.context() as patch:
        patch.setattr(capture, "_recorded", refused)
        return recorded, Workload.from_torch(module, inputs)


def everything_of(network: Workload) -> Any:
    operators = [(op.name, op.kind, op.precision, op.counts, op.target, op.path, op.shape) for op in network]
    graph = network.graph
    values = [(value.name, value.producer, value.consumers, value.role, value.shape) for value in graph.values]
    return operators, values, network.held, network.views, repr(graph)


def agree(module: nn.Module, inputs: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    recorded, exported = both(module, inputs, monkeypatch)
    assert exported.source == "torch.export"
    assert everything_of(recorded) == everything_of(exported)
    return recorded.source


@pytest.mark.parametrize("name", [*SMALL, *THEN])
def test_small_networks_are_those_of_torch_export(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layers = SMALL.get(name, (convolution(),))
    channels = next(layer.in_channels for layer in layers if isinstance(layer, nn.Conv2d))
    sizes = (6, 6) if name == "head" else (17, 19)
    with torch.device("meta"):
        x = torch.zeros(2, channels, *sizes)
    module = Net(*layers, then=THEN.get(name, lambda x: x))
    source = agree(module, x, monkeypatch)
    assert source == ("torch.export" if name == "a mean" else RECORDED)


@pytest.mark.parametrize("name", OTHERWISE)
def test_whatever_is_not_in_the_table_goes_to_torch_export(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, then = OTHERWISE[name]
    assert agree(Net(layer, then=then), torch.zeros(2, 3, 16, 18), monkeypatch) == "torch.export"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", drawn(PICTURES, 2, "recorded without torch.export"))
def test_networks_of_the_catalogue_are_those_of_torch_export(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = RECIPES[name]
    with torch.device("meta"):
        inputs = torch.zeros(1, *(recipe.default if isinstance(size, str) else size for size in recipe.shape))
        module = recipe.make()
    agree(module, inputs, monkeypatch)


def test_weights_in_memory_are_neither_read_nor_changed() -> None:
    module = Net(convolution(), nn.BatchNorm2d(8), nn.ReLU())
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    network = Workload.from_torch(module, torch.zeros(1, 3, 9, 9))
    assert network.source == RECORDED
    assert network.macs.m_as("MAC") == 8 * 3 * 9 * 7 * 7
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert module(torch.zeros(1, 3, 9, 9)).shape == (1, 8, 7, 7), "it still runs, and nothing watches it"


@pytest.mark.parametrize(
    ("module", "shape", "complaint"),
    [
        (convolution(), (1, 4, 9, 9), "conv2d does not fit"),
        (
            nn.Sequential(convolution(), nn.BatchNorm2d(9)),
            (1, 3, 9, 9),
            "layer '1' .BatchNorm2d.: the operator batch_norm does not fit",
        ),
        (nn.Sequential(convolution(), nn.Flatten(), nn.Linear(7, 7)), (1, 3, 9, 9), "Check the shapes"),
        (convolution(), (1, 3, 2, 2), "conv2d does not fit"),
        (Net(convolution(), then=lambda x: x.view(-1, 7, 7).nothing), (1, 3, 9, 9), "has no attribute 'nothing'"),
        (convolution().double(), (1, 3, 9, 9), "conv2d gets tensors of float32 and float64"),
    ],
)
def test_what_torch_refuses_is_refused_with_layer_operator_and_shapes(
    module: nn.Module, shape: Any, complaint: str
) -> None:
    with pytest.raises(ArgumentError, match=complaint):
        Workload.from_torch(module, torch.zeros(shape))


def test_no_compiler_is_loaded_for_a_picture_network() -> None:
    """What makes the first count quick: loading torch's compiler takes longer than all the rest."""
    code = (
        "import sys, torch; from mlsys.workloads import Workload\n"
        "net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU())\n"
        "assert Workload.from_torch(net, torch.zeros(1, 3, 9, 9)).macs.magnitude == 4 * 3 * 9 * 49\n"
        "print([name for name in ('torch._dynamo', 'torch._inductor', 'networkx', 'sympy') if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"
