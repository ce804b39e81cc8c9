"""Random small networks: nothing crashes, every node is understood, and the work is what torch counts.

Fused, each does the same work and moves no more bytes.
"""

import random
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from mlsys.mapping.fusion import fuse
from mlsys.workloads import Workload
from sampled import drawn

NETWORKS = 300
PARTS = 10  # so that several processes share them
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
Step = Callable[[torch.Tensor], torch.Tensor]


class Steps(nn.Module):
    """Layers and functions, one after the other."""

    def __init__(self, steps: list[nn.Module | Step]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(step for step in steps if isinstance(step, nn.Module))
        self.steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            x = step(x)
        return x


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, explicit: bool) -> None:
        super().__init__()
        self.qkv, self.heads, self.explicit = nn.Linear(width, 3 * width), heads, explicit

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        shape = (batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = self.qkv(x).reshape(shape).permute(2, 0, 3, 1, 4).unbind(0)
        if self.explicit:
            seen = (query @ key.transpose(-2, -1)).softmax(-1) @ value
        else:
            seen = functional.scaled_dot_product_attention(query, key, value)
        return x + seen.transpose(1, 2).reshape(x.shape)


class Recurrent(nn.Module):
    def __init__(self, dice: random.Random, width: int) -> None:
        super().__init__()
        kind, both = dice.choice((nn.LSTM, nn.GRU, nn.RNN)), dice.random() < 0.5
        self.cells = kind(
            width,
            dice.randint(1, 9),
            dice.randint(1, 2),
            batch_first=True,
            bidirectional=both,
            bias=dice.random() < 0.8,
        )
        self.width = self.cells.hidden_size * (1 + both)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cells(x)[0]


def picture_network(dice: random.Random) -> tuple[list[nn.Module | Step], tuple[int, ...]]:
    """Convolutions of one, two or three dimensions with everything around them."""
    dims, channels = dice.choice((1, 2, 2, 2, 3)), dice.choice((2, 4, 6, 12))
    shape = (dice.randint(1, 3), channels, *(dice.randint(5, 11) for _ in range(dims)))
    steps: list[nn.Module | Step] = []
    for _ in range(dice.randint(1, 4)):
        out, groups = dice.choice((2, 4, 6, 12)), dice.choice((1, 1, 2, channels))
        out = out if out % groups == 0 else groups
        conv = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[dims]
        lift = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}[dims]
        norm = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[dims]
        what = dice.randrange(3)
        if what == 0:
            steps.append(conv(channels, out, 3, padding="same", dilation=dice.randint(1, 2), groups=groups))
        elif what == 1:
            steps.append(conv(channels, out, dice.choice((1, 2, 3)), dice.randint(1, 2), 1, groups=groups))
        else:
            steps.append(lift(channels, out, dice.choice((1, 2, 3)), dice.randint(1, 2), groups=groups))
        channels = out
        after: list[nn.Module | Step] = [
            norm(channels),
            nn.GroupNorm(2 if channels % 2 == 0 else 1, channels),
            nn.ReLU(),
        ]
        after += [nn.GELU(), nn.SiLU(), lambda x: x + x.relu(), lambda x: torch.cat([x, x * 2], 1)[:, : x.shape[1]]]
        after += [{1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}[dims](2, 1)]
        after += [{1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}[dims](2, 1)]
        steps += dice.sample(after, dice.randint(0, 2))
    return [*steps, lambda x: x.flatten(2).mean(2), nn.Linear(channels, 5)], shape


def token_network(dice: random.Random) -> tuple[list[nn.Module | Step], tuple[int, ...]]:
    """Products, attention and recurrent layers over (batch, tokens, width)."""
    width = dice.choice((4, 8, 12))
    shape = (dice.randint(1, 3), dice.randint(2, 7), width)
    steps: list[nn.Module | Step] = []
    for _ in range(dice.randint(1, 5)):
        out = dice.choice((4, 8, 12))
        what = dice.randrange(9)
        if what == 0:
            steps.append(nn.Linear(width, out, bias=dice.random() < 0.5))
        elif what == 1:
            steps.append(Attention(width, dice.choice((1, 2, 4)), explicit=dice.random() < 0.5))
        elif what == 2:
            steps.append(Recurrent(dice, width))
            out = steps[-1].width
            steps.append(nn.Linear(out, width))
            out = width
        elif what == 3:
            steps.append(lambda x: torch.einsum("bnd,bmd->bnm", x, x).softmax(-1) @ x)
        elif what == 4:
            steps.append(lambda x: torch.einsum("bnd,bnd->bn", x, x).unsqueeze(-1) * x)
        elif what == 5:
            steps += [nn.LayerNorm(width), nn.Tanh()]
        elif what == 6:
            steps += [lambda x: x.transpose(1, 2).contiguous().transpose(1, 2), nn.RMSNorm(width)]
        elif what == 7:
            steps.append(lambda x: x - x.mean(1, keepdim=True) + x.cumsum(1))
        else:
            steps.append(lambda x: torch.gather(x, 1, torch.zeros_like(x, dtype=torch.long)) + x.tril())
        width = out if what in (0,) else width
    return steps, shape


def check_fusion(network: Workload) -> None:
    """Work, parameters and edges are as before, bytes and kernels no more."""
    graph = network.graph
    for operator, reads, writes in zip(network, graph.reads, graph.writes, strict=True):
        assert sum(access.bytes for access in reads) == operator.counts.read, operator
        assert sum(access.bytes for access in writes) == operator.counts.written, operator
    fused = fuse(network)
    for what in ("flops", "macs", "elementwise_flops", "parameters", "unknown", "coverage"):
        assert getattr(fused, what) == getattr(network, what), what
    assert sum(op.flops.magnitude for op in fused) == sum(op.flops.magnitude for op in network)
    assert sum(op.parameters for op in fused) == sum(op.parameters for op in network)
    assert fused.read <= network.read
    assert fused.written <= network.written
    assert sum(len(kernel.members) for kernel in fused) == len(network) >= fused.kernels
    assert fused.saved.magnitude == sum(group.saved for group in fused.groups)
    for kernel, reads, writes in zip(fused, fused.graph.reads, fused.graph.writes, strict=True):
        assert sum(access.bytes for access in reads) == kernel.counts.read, kernel
        assert sum(access.bytes for access in writes) == kernel.counts.written, kernel


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
def test_random_networks(part: int) -> None:
    tried, seeds = 0, drawn(range(part, NETWORKS, PARTS), 5, f"random networks {part}")
    for seed in seeds:
        dice = random.Random(seed)
        dtype = dice.choice(DTYPES)
        with torch.device("meta"):
            steps, shape = (picture_network if dice.random() < 0.5 else token_network)(dice)
            network, given = Steps(steps).to(dtype).eval().requires_grad_(False), torch.zeros(shape, dtype=dtype)
        try:
            with FlopCounterMode(display=False) as counter:
                network(given)
        except RuntimeError:
            continue  # a kernel larger than its input: no network
        tried += 1
        workload = Workload.from_torch(network, given)
        assert workload.product_flops.m_as("FLOP") == counter.get_total_flops(), (seed, steps, shape)
        assert workload.coverage == 1, (seed, workload.unknown)
        assert workload.parameters.m_as("param") == sum(parameter.numel() for parameter in network.parameters())
        assert all(operator.data.magnitude > 0 for operator in workload)
        check_fusion(workload)
    assert tried > 0.5 * len(seeds)
