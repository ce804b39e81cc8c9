"""Our counts against torch's own FlopCounterMode, exactly; nothing is computed (meta device)."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from mlsys import formulas
from mlsys.units import Q_
from mlsys.workloads import attention, conv2d, dense, depthwise_conv2d, gemm, zoo


def counted(run: Callable[[], object]) -> int:
    """Return the FLOPs that torch counts while ``run`` executes."""
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def empty(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, device="meta")


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (32, 2048, 2048), (7, 11, 13), (1, 4096, 1024), (128, 3, 999)])
def test_products(m: int, n: int, k: int) -> None:
    flops = counted(lambda: empty(m, k) @ empty(k, n))
    assert formulas.gemm_macs(m, n, k).m_as("FLOP") == flops
    assert gemm(m, n, k).flops.m_as("FLOP") == flops
    assert dense(m, k, n).flops.m_as("FLOP") == counted(lambda: functional.linear(empty(m, k), empty(n, k)))


@pytest.mark.parametrize(
    ("batch", "into", "out", "size", "kernel", "stride", "padding", "groups"),
    [
        (1, 3, 64, 224, 7, 2, 3, 1),
        (32, 128, 256, 56, 3, 1, 1, 1),
        (2, 64, 64, 56, 1, 1, 0, 1),
        (2, 64, 128, 57, 1, 2, 0, 1),
        (4, 32, 32, 28, 3, 1, 1, 32),  # depthwise
        (4, 32, 64, 28, 5, 2, 2, 32),  # depthwise with two filters for each channel, strided
        (1, 12, 24, 15, 4, 3, 2, 4),  # grouped, even kernel
        (1, 6, 9, 9, 3, 1, 0, 3),
    ],
)
def test_convolutions(
    batch: int, into: int, out: int, size: int, kernel: int, stride: int, padding: int, groups: int
) -> None:
    image, filters = empty(batch, into, size, size), empty(out, into // groups, kernel, kernel)
    result = functional.conv2d(image, filters, stride=stride, padding=padding, groups=groups)
    flops = counted(lambda: functional.conv2d(image, filters, stride=stride, padding=padding, groups=groups))
    side = int(formulas.conv_output_size(size, kernel, stride, padding).magnitude)
    assert result.shape == (batch, out, side, side)
    assert formulas.conv2d_macs(batch, into, out, side, side, kernel, kernel, groups).m_as("FLOP") == flops
    operator = conv2d(batch, into, out, size, kernel, stride, padding, groups)
    assert operator.flops.m_as("FLOP") == flops
    elements = image.numel() + filters.numel() + result.numel()
    assert operator.data.m_as("byte") == 2 * elements


def test_depthwise_maker() -> None:
    flops = counted(lambda: functional.conv2d(empty(8, 32, 28, 28), empty(32, 1, 3, 3), padding=1, groups=32))
    assert depthwise_conv2d(8, 32, 28).flops.m_as("FLOP") == flops


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation"), [(32, 3, 1, 2, 2), (33, 3, 2, 0, 4), (9, 5, 1, 4, 2)]
)
def test_sizes_of_dilated_outputs(size: int, kernel: int, stride: int, padding: int, dilation: int) -> None:
    image, filters = empty(1, 2, size, size), empty(4, 2, kernel, kernel)
    result = functional.conv2d(image, filters, stride=stride, padding=padding, dilation=dilation)
    assert formulas.conv_output_size(size, kernel, stride, padding, dilation).magnitude == result.shape[-1]


@pytest.mark.parametrize(
    ("batch", "heads", "queries", "keys", "head_dim"),
    [(1, 1, 2048, 2048, 64), (2, 12, 128, 128, 64), (3, 4, 1, 777, 32)],
)
def test_attention(batch: int, heads: int, queries: int, keys: int, head_dim: int) -> None:
    q = empty(batch, heads, queries, head_dim)
    k, v = empty(batch, heads, keys, head_dim), empty(batch, heads, keys, head_dim)
    macs = formulas.attention_macs(batch, heads, queries, keys, head_dim)
    assert macs.m_as("FLOP") == counted(lambda: torch.softmax(q @ k.transpose(-1, -2), -1) @ v)
    softmax = Q_(5 * batch * heads * queries * keys, "FLOP")  # which torch does not count
    assert (attention(batch, heads, queries, keys, head_dim).flops - softmax).m_as("FLOP") == macs.m_as("FLOP")


# --- ResNet-50, written down a second time, in plain torch -----------------------------------


class Bottleneck(nn.Module):
    """He et al. 2016, figure 5, right; the stride sits in the 3 × 3 convolution."""

    def __init__(self, into: int, width: int, stride: int, widen: bool) -> None:
        super().__init__()
        self.a, self.a_norm = nn.Conv2d(into, width, 1, bias=False), nn.BatchNorm2d(width)
        self.b, self.b_norm = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.c, self.c_norm = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.shortcut = (
            nn.Sequential(nn.Conv2d(into, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
            if widen
            else None
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a_norm(self.a(x)).relu()
        y = self.b_norm(self.b(y)).relu()
        y = self.c_norm(self.c(y))
        return (y + (x if self.shortcut is None else self.shortcut(x))).relu()


def torch_resnet50() -> nn.Sequential:
    layers: list[nn.Module] = [
        *(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    ]
    into = 64
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            layers.append(Bottleneck(into, width, 2 if stage and not block else 1, widen=not block))
            into = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 1000))


@pytest.fixture(scope="module")
def network() -> nn.Sequential:
    with torch.device("meta"):
        return torch_resnet50()


def weighted(network: nn.Module) -> Iterator[nn.Module]:
    """Yield convolutions and the classifier in the order in which they are written down."""
    yield from (module for module in network.modules() if isinstance(module, (nn.Conv2d, nn.Linear)))


@pytest.mark.parametrize("batch", [1, 32])
def test_resnet50_as_a_whole_and_layer_by_layer(network: nn.Sequential, batch: int) -> None:
    ours = zoo.network("resnet50", batch=batch, precision="fp16")
    assert ours.flops.m_as("FLOP") == counted(lambda: network(empty(batch, 3, 224, 224)))

    def observe(module: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        work = counted(lambda: module.forward(*inputs))
        seen[module] = work, inputs[0].numel() + module.weight.numel() + output.numel()

    seen: dict[nn.Module, tuple[int, int]] = {}
    hooks = [module.register_forward_hook(observe) for module in weighted(network)]
    network(empty(batch, 3, 224, 224))
    for hook in hooks:
        hook.remove()
    theirs = [seen[module] for module in weighted(network)]
    assert [(layer.flops.m_as("FLOP"), layer.data.m_as("byte") / 2) for layer in ours] == theirs
    assert [layer.kind for layer in ours] == ["conv2d"] * 53 + ["gemm"]


def test_resnet50_has_the_weights_that_torch_holds(network: nn.Sequential) -> None:
    def weights(shape: dict[str, int]) -> int:
        if "kernel" in shape:
            return shape["out_channels"] * shape["in_channels"] // shape["groups"] * shape["kernel"] ** 2
        return shape["n"] * shape["k"]

    ours = [weights(dict(layer.shape)) for layer in zoo.network("resnet50", precision="fp16")]
    assert ours == [module.weight.numel() for module in weighted(network)]
    norms = sum(p.numel() for m in network.modules() if isinstance(m, nn.BatchNorm2d) for p in m.parameters())
    assert sum(p.numel() for p in network.parameters()) == sum(ours) + norms + 1000 == 25_557_032
