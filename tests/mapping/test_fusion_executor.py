"""Kernels run one by one on a machine whose memory is watched: same result, and the bytes that the formula says.

The machine knows nothing of the graph's edges: it follows torch's own program, keeps in memory
only what a later kernel or the caller asks for, and counts the distinct addresses each kernel touches.
"""

import importlib.util
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import fx, nn
from torch.nn import functional

from mlsys.mapping.fusion import FusedWorkload, fuse
from mlsys.workloads import Workload


def addresses(tensor: torch.Tensor) -> tuple[int, set[int]]:
    """Return the storage of a tensor and the addresses in it that the tensor reaches, one for each element."""
    reached = np.zeros(1, dtype=np.int64) + tensor.storage_offset()
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        reached = (reached[:, None] + stride * np.arange(size)).ravel()
    return tensor.untyped_storage().data_ptr(), {int(element) * tensor.element_size() for element in reached}


class Touched(dict[int, set[int]]):
    """Addresses by storage, and how many bytes they are."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def add(self, tensor: torch.Tensor) -> None:
        storage, places = addresses(tensor)
        known = self.setdefault(storage, set())
        self.bytes += len(places - known) * tensor.element_size()
        known |= places


class Machine:
    """Runs a program kernel by kernel; what a kernel makes and nobody asks for is lost when it ends."""

    def __init__(self, module: nn.Module, given: tuple[torch.Tensor, ...], kernels: list[list[str]]) -> None:
        program = torch.export.export(module, given, strict=False)
        self.nodes = {node.name: node for node in program.graph.nodes}
        self.memory: dict[fx.Node, Any] = {}
        self.kernels = kernels
        self.operators = {name for kernel in kernels for name in kernel}
        inputs = iter(given)
        state = {**program.state_dict, **program.constants}
        for spec in program.graph_signature.input_specs:
            value = next(inputs) if spec.kind.name == "USER_INPUT" else state[spec.target]
            self.memory[self.nodes[spec.arg.name]] = value

    def run(self) -> tuple[list[tuple[int, int]], list[torch.Tensor]]:
        """Return bytes read and written by each kernel, and the results."""
        moved = [self.kernel(set(names), names) for names in self.kernels]
        (end,) = (node for node in self.nodes.values() if node.op == "output")
        return moved, [self.fetch(node, {}) for node in end.all_input_nodes]

    def kernel(self, inside: set[str], names: list[str]) -> tuple[int, int]:
        local: dict[fx.Node, Any] = {}
        own: set[int] = set()
        read, written = Touched(), Touched()
        for name in names:
            node = self.nodes[name]
            for taken in node.all_input_nodes:
                for tensor in tensors(self.fetch(taken, local)):
                    if tensor.untyped_storage().data_ptr() not in own:
                        read.add(tensor)
            made = node.target(
                *fx.node.map_arg(node.args, lambda node_given: self.fetch(node_given, local)),
                **fx.node.map_arg(node.kwargs, lambda node_given: self.fetch(node_given, local)),
            )
            local[node] = made
            own |= {tensor.untyped_storage().data_ptr() for tensor in tensors(made)}
        for node, made in local.items():
            if self.is_needed(node, inside):
                self.memory[node] = made
                for tensor in tensors(made):
                    written.add(tensor)
        return read.bytes, written.bytes

    def fetch(self, node: fx.Node, local: dict[fx.Node, Any]) -> Any:
        """Return a value: of this kernel, from memory, or a view of one of them."""
        if node in local:
            return local[node]
        if node in self.memory:
            return self.memory[node]
        if node.name in self.operators:
            raise AssertionError(f"{node} is needed and was never written")
        args = fx.node.map_arg(node.args, lambda node_given: self.fetch(node_given, local))
        return node.target(*args, **node.kwargs)

    def is_needed(self, node: fx.Node, inside: set[str]) -> bool:
        for user in node.users:
            if user.op == "output" or (user.name in self.operators and user.name not in inside):
                return True
            if user.name not in self.operators and self.is_needed(user, inside):
                return True
        return False


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in tensors(item)] if isinstance(value, (list, tuple)) else []


def watched(network: Workload, module: nn.Module, *given: torch.Tensor) -> tuple[FusedWorkload, list[tuple[int, int]]]:
    """Run a network fused, check its results, and return the bytes that each kernel moved."""
    module.eval().requires_grad_(False)
    fused = fuse(network)
    kernels = [[member.name for member in kernel.members] for kernel in fused]
    expected = module(*(tensor.clone() for tensor in given))
    moved, results = Machine(module, tuple(tensor.clone() for tensor in given), kernels).run()
    for result, wanted in zip(results, tensors(expected), strict=True):
        torch.testing.assert_close(result, wanted, rtol=0, atol=0, equal_nan=True)
    return fused, moved


def holds(fused: FusedWorkload, moved: list[tuple[int, int]]) -> None:
    """The bytes that were watched are those that every kernel says it moves."""
    for kernel, (read, written) in zip(fused, moved, strict=True):
        assert (kernel.counts.read, kernel.counts.written) == (read, written), kernel


class Residual(nn.Module):
    def __init__(self, channels: int = 4, in_place: bool = False) -> None:
        super().__init__()
        self.a, self.b, self.skip = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(3))
        self.na, self.nb, self.ns = (nn.BatchNorm2d(channels) for _ in range(3))
        self.act, self.in_place = nn.ReLU(inplace=in_place), in_place

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.nb(self.b(self.act(self.na(self.a(x)))))
        if self.in_place:
            y += self.ns(self.skip(x))
            return self.act(y)
        return self.act(y + self.ns(self.skip(x)))


class Attention(nn.Module):
    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        shape = (batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = self.qkv(x).reshape(shape).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (query @ key.transpose(-2, -1)) * 0.5 + mask
        seen = scores.softmax(-1) @ value
        return self.norm(x + self.out(seen.transpose(1, 2).reshape(x.shape)))


class WrittenOut(nn.Module):
    """GELU in its tanh form, SwiGLU and rotary positions, of single element-wise operators."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.both, self.down = nn.Linear(8, 12), nn.Linear(12, 24), nn.Linear(12, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.up(x)
        h = 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))
        gate, up = self.both(h).chunk(2, -1)
        h = gate * torch.sigmoid(gate) * up
        first, second = self.down(h).chunk(2, -1)
        return torch.cat([first * 0.6 - second * 0.8, first * 0.8 + second * 0.6], -1)


class SqueezeExcite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.squeeze, self.excite = nn.Conv2d(4, 2, 1), nn.Conv2d(2, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = self.excite(functional.silu(self.squeeze(x.mean((2, 3), keepdim=True)))).sigmoid()
        return x * weights + x


class SeveralResults(nn.Module):
    """An intermediate is returned, another is read twice, a dense block joins three."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(8, 4, 1)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = self.a(x)
        z = self.b(self.norm(torch.cat([y, x], 1)).relu())
        w = z.relu()
        return y, w, z.exp() + w


@pytest.fixture(autouse=True)
def without_inference_kernels() -> Iterator[None]:
    """Let torch's own transformer layers run the code that is captured, not a kernel of their own."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    torch.manual_seed(0)
    yield
    torch.backends.mha.set_fastpath_enabled(before)


IMAGE = (torch.randn(2, 4, 6, 5),)
TEXT = (torch.randn(2, 5, 8),)
NETWORKS = {
    "residual": (Residual(), IMAGE),
    "residual in place": (Residual(in_place=True), IMAGE),
    "attention": (Attention(), (*TEXT, torch.randn(5, 5))),
    "attention with a mask of one row": (Attention(), (*TEXT, torch.randn(5))),
    "written out": (WrittenOut(), TEXT),
    "squeeze and excite": (SqueezeExcite(), IMAGE),
    "several results": (SeveralResults(), IMAGE),
    "transformer layer": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), TEXT),
    "recurrent": (nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.LSTM(8, 4, batch_first=True)), TEXT),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_move_the_bytes_they_say(name: str) -> None:
    module, given = NETWORKS[name]
    fused, moved = watched(Workload.from_torch(module, given), module, *given)
    assert fused.kernels < len(fused.unfused)
    holds(fused, moved)


def test_single_operators_move_the_bytes_they_say() -> None:
    """The unfused network on the same machine: the counts that fusion starts from."""
    module, given = NETWORKS["residual"]
    network = Workload.from_torch(module.eval(), given)
    moved, _ = Machine(module, given, [[operator.name] for operator in network]).run()
    assert [(op.counts.read, op.counts.written) for op in network] == moved


def test_the_machine_notices_what_was_not_written() -> None:
    """A kernel that keeps what another one needs fails on the machine: it would on a real one."""
    module, given = NETWORKS["several results"]
    fused = fuse(Workload.from_torch(module.eval(), given))
    kernels = [[member.name for member in kernel.members] for kernel in fused]
    machine = Machine(module, given, kernels)
    machine.is_needed = lambda node, inside: False
    with pytest.raises(AssertionError, match="is needed and was never written"):
        machine.run()


def fuzz() -> Any:
    path = Path(__file__).parents[1] / "workloads" / "test_torch_import_fuzz.py"
    spec = importlib.util.spec_from_file_location("random_networks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.exhaustive
def test_random_networks_on_the_machine() -> None:
    """What is read in overlapping slices may be counted up to twice; nothing is counted short."""
    make, exact, kernels = fuzz(), 0, 0
    networks = 30 if os.environ.get("MLSYS_ALL") else 12
    for seed in range(networks):
        dice = random.Random(10_000 + seed)
        steps, shape = (make.picture_network if dice.random() < 0.5 else make.token_network)(dice)
        module, given = make.Steps(steps).eval(), torch.randn(shape)
        try:
            module(given)
        except RuntimeError:
            continue  # a kernel larger than its input: no network
        if any(isinstance(part, nn.RNNBase) for part in module.modules()):
            continue
        network = Workload.from_torch(module, given)
        if any(" → " in operator.target for operator in network):
            continue  # an einsum is several operators to us and one node to this machine
        fused, moved = watched(network, module, given)
        for kernel, (read, written) in zip(fused, moved, strict=True):
            if len(kernel.members) > 1:
                kernels += 1
                assert kernel.counts.read >= read, (seed, kernel)
                assert kernel.counts.written == written, (seed, kernel)
                exact += kernel.counts.read == read
    assert kernels >= networks * 2 // 3
    assert exact >= 0.95 * kernels
