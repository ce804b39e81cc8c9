"""Patterns over edges: what is fused, what is not and why; counts of whole networks; errors."""

import pickle
from functools import cache

import pytest
import torch
from torch import nn
from torch.nn import functional

from mlsys import Hardware
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.mapping.fusion import DEFAULT_PATTERNS, FusedWorkload, Pattern, PatternRegistry, fuse
from mlsys.models import roofline
from mlsys.units import Q_
from mlsys.workloads import Workload, load, zoo
from mlsys.workloads.counted_operator import CountedOperator
from sampled import drawn


class Function(nn.Module):
    def __init__(self, function: object, *layers: nn.Module) -> None:
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, *given: torch.Tensor) -> object:
        return self.function(*self.layers, *given)


def fused(function: object, *given: torch.Tensor, layers: tuple[nn.Module, ...] = (), **how: object) -> FusedWorkload:
    return fuse(Workload.from_torch(Function(function, *layers), given), **how)


def shapes(network: FusedWorkload) -> list[tuple[str, tuple[str, ...]]]:
    """Return the pattern and the members of every kernel, names without their numbers."""
    return [
        (group.pattern, tuple(member.name.partition("2d")[0].rstrip("_0123456789") for member in kernel.members))
        for group, kernel in zip(network.groups, network, strict=True)
    ]


workload = cache(load)  # many tests look at the same few networks
X = torch.zeros(2, 8, 6, 6)
T = torch.zeros(2, 5, 8)
CONV = nn.Conv2d(8, 8, 3, padding=1, bias=False)
NORM = nn.BatchNorm2d(8)


# --- ResNet-50, to the kernel -----------------------------------------------------------------


def test_resnet50_has_56_kernels() -> None:
    """53 convolutions with everything around them, two poolings, one classifier; 118 tensors are never written."""
    network = workload("resnet50")
    kinds = {row.kind: row.count for row in network.by_kind()}
    assert kinds == {"conv2d": 53, "normalisation": 53, "activation": 49, "elementwise": 16, "pooling": 2, "gemm": 1}
    result = fuse(network)
    assert (len(network), result.kernels, len(result), result.removed) == (174, 56, 56, 33 * 2 + 16 * 3 + 4)
    rows = {row.pattern: (row.groups, row.members, row.removed) for row in result.by_pattern()}
    assert rows == {
        "conv-bn-add-act": (16, 64, 48),
        "conv-bn-act": (33, 99, 66),
        "conv-bn": (4, 8, 4),
        "unfused": (3, 3, 0),
    }


def test_what_resnet50_saves_is_what_it_does_not_write_and_read() -> None:
    """Each swallowed tensor was written once and read once; nothing else changes."""
    network = workload("resnet50")
    result = fuse(network)
    values = network.graph.values
    swallowed = sum(values[tensor].bytes for group in result.groups for tensor in group.swallowed)
    assert result.saved == Q_(2 * swallowed, "byte")
    assert result.activation_bytes == network.activation_bytes - Q_(swallowed, "byte")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", drawn(["mobilenet-v2", "bert-base", "gpt2", "unet"], 1, "work of fused networks"))
def test_work_is_the_same_to_the_last_flop(name: str) -> None:
    network = workload(name)
    for before in (network, network.at(batch=3)):
        after = fuse(before)
        for what in ("flops", "macs", "elementwise_flops", "parameters", "weight_bytes", "input_bytes", "coverage"):
            assert getattr(after, what) == getattr(before, what), what
        assert sum(op.parameters for op in after) == sum(op.parameters for op in before)
        assert sum(op.flops.magnitude for op in after) == sum(op.flops.magnitude for op in before)
        assert after.data < before.data
        assert after.kernels < len(before)
        assert sum(row.before.magnitude for row in after.by_pattern()) == before.data.magnitude
        assert sum(row.after.magnitude for row in after.by_pattern()) == after.data.magnitude


def test_the_block_of_the_literature_keeps_its_46_gflop() -> None:
    """Fused estimators that take the output for the input and drop the shortcut say 59.24 GFLOP; it has 46.13."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(64, 128, 3, 1, 1, bias=False), nn.Conv2d(128, 128, 3, 1, 1, bias=False)
            self.skip, self.norms = nn.Conv2d(64, 128, 1, bias=False), nn.ModuleList(nn.BatchNorm2d(128) for _ in "abc")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.norms[0](self.a(x)).relu()
            return (self.norms[1](self.b(y)) + self.norms[2](self.skip(x))).relu()

    result = fuse(Workload.from_torch(Block, torch.zeros(32, 64, 56, 56)))
    assert round(result.flops.m_as("GFLOP"), 2) == 46.15  # 46.03 + 9 FLOP an element
    assert [group.pattern for group in result.groups] == ["conv-bn-act", "conv-bn", "conv-bn-add-act"]


# --- edges, not neighbours in a list ----------------------------------------------------------


def test_neighbours_in_the_list_that_do_not_feed_each_other_stay_apart() -> None:
    """conv, bn, relu stand side by side, and the rectifier reads the input."""
    network = fused(lambda conv, norm, x: (norm(conv(x)), x.relu()), X, layers=(CONV, NORM))
    assert shapes(network) == [("conv-bn", ("conv", "batch_norm")), ("", ("relu",))]


def test_what_stands_far_apart_in_the_list_is_fused_along_its_edge() -> None:
    def forward(conv: nn.Module, norm: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = conv(x)
        z = x.mean((2, 3))
        return norm(y), z

    network = fused(forward, X, layers=(CONV, NORM))
    assert sorted(shapes(network)) == [("", ("mean",)), ("conv-bn", ("conv", "batch_norm"))]


def test_the_addition_goes_to_one_of_its_two_branches() -> None:
    def forward(a: nn.Module, b: nn.Module, na: nn.Module, nb: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return (na(a(x)) + nb(b(x))).relu()

    layers = (CONV, nn.Conv2d(8, 8, 1), NORM, nn.BatchNorm2d(8))
    assert sorted(len(kernel.members) for kernel in fused(forward, X, layers=layers)) == [2, 4]


# --- legality ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("why", "forward", "expected"),
    [
        ("another consumer", lambda c, n, x: ((y := c(x)).sum(), n(y)), [("conv",), ("sum",), ("batch_norm",)]),
        ("returned", lambda c, n, x: ((y := c(x)), n(y)), [("conv",), ("batch_norm",)]),
        ("a view is returned", lambda c, n, x: ((y := c(x)).flatten(1), n(y)), [("conv",), ("batch_norm",)]),
        ("a part of it is spread", lambda c, n, x: c(x)[:, :1] + x, [("conv",), ("add",)]),
        ("a part of it is read", lambda c, n, x: c(x)[:, :4].relu(), [("conv",), ("relu",)]),
        (
            "two consumers of the same kind",
            lambda c, n, x: (n(y := c(x)), y.relu()),
            [("conv",), ("batch_norm",), ("relu",)],
        ),
    ],
)
def test_what_others_need_is_not_swallowed(why: str, forward: object, expected: list[tuple[str, ...]]) -> None:
    network = fused(forward, X, layers=(CONV, NORM))
    assert sorted(
        tuple(m.name.partition("2d")[0].rstrip("_0123456789") for m in kernel.members) for kernel in network
    ) == sorted(expected)
    assert network.removed == 0


def test_a_view_between_two_operators_is_no_obstacle() -> None:
    network = fused(lambda c, x: c(x).flatten(2).transpose(1, 2).relu(), X, layers=(CONV,))
    assert shapes(network) == [("conv-act", ("conv", "relu"))]


def test_a_reduction_ends_a_chain_and_so_does_spreading() -> None:
    network = fused(lambda x: ((x.exp() + 1).mean((2, 3), keepdim=True).sqrt().neg() * x).sin().cos(), X)
    assert shapes(network) == [
        ("element-wise", ("exp", "add")),
        ("", ("mean",)),
        ("element-wise", ("sqrt", "neg")),  # two numbers a channel, spread over the picture by what follows
        ("element-wise", ("mul", "sin", "cos")),
    ]


def test_pooling_is_not_swallowed_by_the_defaults_and_can_be() -> None:
    def forward(conv: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return functional.max_pool2d(conv(x).relu(), 2)

    assert [kernel.kind for kernel in fused(forward, X, layers=(CONV,))] == ["conv2d", "pooling"]
    mine = [Pattern("conv-act-pool", ("conv", "activation", "pooling"))]
    (kernel,) = fused(forward, X, layers=(CONV,), patterns=mine)
    assert kernel.counts.written == 2 * 8 * 3 * 3 * 4


def test_what_a_buffer_is_left_with_is_written() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.zeros(64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.state.add_(x)
            return self.state.exp()

    network = fuse(Workload.from_torch(Counter(), torch.zeros(64)))
    assert shapes(network) == [("", ("add",)), ("", ("exp",))]


def test_batch_norm_in_training_is_a_reduction() -> None:
    def forward(conv: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return functional.batch_norm(conv(x), torch.zeros(8), torch.ones(8), training=True).relu()

    assert fused(forward, X, layers=(CONV,)).removed == 0


def test_softmax_over_another_axis_is_no_attention() -> None:
    q = torch.zeros(2, 6, 6)
    pattern = [group.pattern for group in fused(lambda q: (q @ q.mT).softmax(-1) @ q, q).groups]
    assert pattern == ["attention"]
    for other in (lambda q: (q @ q.mT).softmax(1) @ q, lambda q: (q @ q.mT).softmax(-1).mT @ q):
        assert "attention" not in [group.pattern for group in fused(other, q).groups]


# --- activations ------------------------------------------------------------------------------

ACTIVATIONS = {
    "relu": functional.relu,
    "relu6": functional.relu6,
    "silu": functional.silu,
    "hardswish": functional.hardswish,
    "gelu": functional.gelu,
    "gelu, tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "leaky": functional.leaky_relu,
    "in place": lambda x: functional.relu(x, inplace=True),
    "silu of two": lambda x: x * torch.sigmoid(x),
    "hardswish of four": lambda x: x * (x + 3).clamp(0, 6) / 6,
    "gelu of nodes": lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)),
    "gelu, tanh, of nodes": lambda x: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3))),
    "mish of nodes": lambda x: x * torch.tanh(torch.log1p(torch.exp(x))),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_any_function_of_one_tensor_is_an_activation(name: str) -> None:
    """However many nodes it takes, it rides along with the product before it: one kernel, one read, one write."""
    for layer, given, pattern in ((CONV, X, "conv-act"), (nn.Linear(8, 8), T, "linear-act")):
        network = fused(lambda layer, x: ACTIVATIONS[name](layer(x)), given, layers=(layer,))
        (kernel,) = network
        assert [group.pattern for group in network.groups] == [pattern]
        weights = sum(p.numel() for p in layer.parameters())
        assert network.data == Q_(4 * (2 * given.numel() + weights), "byte")
        assert (kernel.kind, kernel.products) == (
            network.unfused.operators[0].kind,
            network.unfused.operators[0].products,
        )


def test_a_gate_reads_its_other_half_from_memory() -> None:
    network = fused(lambda a, b, x: functional.silu(a(x)) * b(x), T, layers=(nn.Linear(8, 8), nn.Linear(8, 8)))
    assert sorted(shapes(network)) == [("", ("linear",)), ("", ("mul",)), ("linear-act", ("linear", "silu"))]


# --- attention, normalisation, chains ---------------------------------------------------------


def test_explicit_attention_moves_what_sdpa_moves() -> None:
    q, k, v = (torch.zeros(2, 4, 16, 8) for _ in "qkv")
    mask = torch.zeros(16, 16)
    explicit = fused(lambda q, k, v, m: ((q @ k.mT) * 0.35 + m).softmax(-1) @ v, q, k, v, mask)
    (kernel,) = explicit
    (known,) = fused(lambda q, k, v, m: functional.scaled_dot_product_attention(q, k, v, m), q, k, v, mask)
    assert kernel.kind == known.kind == "attention"
    assert kernel.data == known.data
    assert kernel.products == known.products._replace(copies=known.products.copies)
    assert explicit.macs == Q_(kernel.products.macs, "MAC")
    assert explicit.unfused.data > 3 * explicit.data


def test_addition_and_normalisation() -> None:
    """Where the sum is needed again it is written all the same: one read less, not two passes less."""
    norm, elements = nn.LayerNorm(8), 4 * T.numel()
    after = fused(lambda n, x, y: n(x + y), T, T, layers=(norm,))
    before = fused(lambda n, x, y: ((s := x + y), n(s)), T, T, layers=(norm,))
    assert shapes(after) == shapes(before) == [("add-norm", ("add", "layer_norm"))]
    assert (after.saved, after.removed) == (Q_(2 * elements, "byte"), 1)
    assert (before.saved, before.removed) == (Q_(elements, "byte"), 0)


@pytest.mark.parametrize("length", [2, 3, 10, 40])
def test_a_chain_of_n_moves_two_passes_instead_of_2n(length: int) -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(length):
            x = x.sin()
        return x

    network = fused(chain, X)
    assert network.kernels == 1
    assert network.unfused.data == length * network.data
    assert network.data == Q_(2 * 4 * X.numel(), "byte")


def test_a_tree_of_element_wise_operators_is_one_kernel() -> None:
    network = fused(lambda x, y: (x.sin() * y.cos() + x.exp()).tanh(), X, X)
    assert network.kernels == 1
    assert network.data == Q_(3 * 4 * X.numel(), "byte"), "x is read once, though two operators look at it"


def test_the_anchor_gives_kind_shape_and_products() -> None:
    (kernel,) = fused(lambda c, n, x: n(c(x)).relu(), X, layers=(CONV, NORM))
    conv = kernel.members[0]
    assert (kernel.kind, kernel.shape, kernel.products, kernel.precision) == (
        "conv2d",
        conv.shape,
        conv.products,
        "fp32",
    )
    assert kernel.name == "conv2d + batch_norm + relu"
    assert kernel.weights == Q_(4 * (8 * 8 * 9 + 4 * 8), "byte")
    (chain,) = fused(lambda x: x.sin() + 1, X)
    assert (chain.kind, chain.shape["elements"], chain.products) == ("elementwise", X.numel(), None)


# --- where it goes ----------------------------------------------------------------------------


def test_a_fused_network_goes_where_a_network_goes() -> None:
    network = workload("resnet50", precision="fp16")
    result = fuse(network)
    device = Hardware.Cloud.A100
    assert roofline(device, result).time < roofline(device, network).time
    assert len(roofline(device, result).children) == 56
    assert result.to_network().flops == network.to_network().flops
    assert result.arrays.flops.sum() == sum(op.flops.magnitude for op in network)


def test_its_graph_is_that_of_the_kernels() -> None:
    result = fuse(workload("resnet50"))
    graph = result.graph
    assert graph.operators == result.operators
    for kernel, reads, writes in zip(result, graph.reads, graph.writes, strict=True):
        assert sum(access.bytes for access in reads) == kernel.counts.read
        assert sum(access.bytes for access in writes) == kernel.counts.written
    assert sum(value.role == "made" for value in graph.values) == 56
    assert sum(len(graph.consumers(index)) == 2 for index in range(len(graph))) == 16


def test_other_sizes_are_fused_anew() -> None:
    network = fuse(workload("bert-base"))
    larger = network.at(batch=4, sequence=64)
    assert larger.kernels == network.kernels
    assert larger.unfused.sizes == {"batch": 4, "sequence": 64}
    assert larger.data == fuse(workload("bert-base", batch=4, sequence=64)).data
    assert pickle.loads(pickle.dumps(network)).at(batch=2).data == network.at(batch=2).data


def test_every_operator_says_what_it_is_made_of() -> None:
    result = fuse(workload("resnet50"))
    assert [len(kernel.members) for kernel in result] == [len(group.members) for group in result.groups]
    assert sum(len(kernel.members) for kernel in result) == 174
    single: CountedOperator = result.operators[-1]
    assert single.members == (single,)


def test_explain() -> None:
    lines = fuse(workload("resnet50", precision="fp16")).explain().splitlines()
    assert lines[:2] == [
        "ResNet-50: 174 operators in 56 kernels",
        "moved one by one 213 MB, fused 108 MB (50.7%); 118 tensors are not written",
    ]
    assert lines[4].split() == ["conv-bn-add-act", "16", "64", "48", "101.3", "MB", "35.02", "MB"]
    assert len({len(line) for line in lines[3:]}) == 1, "columns are aligned"


def test_onnx_is_fused_too() -> None:
    """SiLU as Sigmoid and Mul, a bias as an Add: as exporters write them."""
    onnx = pytest.importorskip("onnx")
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    weights = [helper.make_tensor("w", number, (4, 4), [1.0] * 16), helper.make_tensor("b", number, (4,), [1.0] * 4)]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Sigmoid", ["c"], ["d"]),
        helper.make_node("Mul", ["c", "d"], ["y"]),
    ]
    given, out = helper.make_tensor_value_info("x", number, (2, 4)), helper.make_tensor_value_info("y", number, None)
    network = fuse(Workload.from_onnx(helper.make_model(helper.make_graph(nodes, "silu", [given], [out], weights))))
    assert [group.pattern for group in network.groups] == ["linear-act"]
    assert network.data == Q_(4 * (8 + 16 + 4 + 8), "byte")


# --- patterns of one's own --------------------------------------------------------------------


def test_a_pattern_of_ones_own() -> None:
    mine = PatternRegistry(DEFAULT_PATTERNS)
    mine.register(Pattern("norm-act", ("norm", "activation")))
    network = fused(lambda n, x: n(x).tanh(), T, layers=(nn.LayerNorm(8),), patterns=mine)
    assert shapes(network) == [("norm-act", ("layer_norm", "tanh"))]
    assert fused(lambda n, x: n(x).tanh(), T, layers=(nn.LayerNorm(8),)).removed == 0


def test_only_the_requested_patterns() -> None:
    network = workload("resnet50")
    assert fuse(network, []).data == network.data
    assert fuse(network, ["conv-bn"]).kernels == 174 - 53
    assert fuse(network, ["conv-bn", Pattern("mine", ("add", "activation"))]).kernels == 174 - 53 - 16


def test_the_longer_match_wins_whatever_comes_first_in_the_registry() -> None:
    backwards = fuse(workload("resnet50"), DEFAULT_PATTERNS[::-1])
    assert (backwards.kernels, backwards.removed) == (56, 118)


def test_a_condition_of_ones_own() -> None:
    small = Pattern("small", ("conv", "activation"), fits=lambda graph, places: len(places) > 2)
    assert fused(lambda c, x: c(x).relu(), X, layers=(CONV,), patterns=[small]).kernels == 2
    assert fused(lambda c, x: c(x).sin().cos(), X, layers=(CONV,), patterns=[small]).kernels == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pattern("", ("conv", "add")), "`name` must be a text, got ''"),
        (lambda: Pattern("p", ()), "`steps` of 'p' must name at least one step, got ()"),
        (lambda: Pattern("p", "conv"), "`steps` of 'p' must name at least one step, got 'conv'"),
        (lambda: Pattern("p", ("conv", 3)), "`steps` of 'p' must be names of steps, got 3"),
        (lambda: Pattern("p", ("conv",)), "one operator alone fuses with nothing"),
        (lambda: Pattern("p", ("add?", "norm")), "begins with 'add?', which may be missing"),
        (lambda: Pattern("p", ("conv", "add?*")), "ends in '?*'"),
        (lambda: PatternRegistry().register("conv-bn"), "`pattern` must be a Pattern, got 'conv-bn'"),
        (
            lambda: PatternRegistry(DEFAULT_PATTERNS).register(DEFAULT_PATTERNS[0]),
            "there is a pattern 'attention' already",
        ),
        (lambda: fuse(zoo.network("resnet50")), "`workload` must be a captured Workload, got Network"),
        (lambda: fuse(Workload.from_network(zoo.network("resnet50"))), "was built by hand"),
        (lambda: fuse(fuse(workload("mlp"))), "is fused already. Write fuse(workload.unfused, patterns)"),
        (lambda: fuse(workload("mlp"), "conv-bn"), "`patterns` must be several, got 'conv-bn' alone"),
    ],
)
def test_refusals(make: object, message: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        make()
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pattern("p", ("convolution", "relu")), "'p' has an unknown step 'convolution'. Known: conv, linear"),
        (lambda: Pattern("p", ("conv", "batchnorm")), "Did you mean 'batch_norm'?"),
        (lambda: fuse(workload("mlp"), ["conv-nb"]), "unknown pattern 'conv-nb'"),
        (lambda: PatternRegistry(DEFAULT_PATTERNS)["conv-bm"], "Did you mean 'conv-bn'?"),
    ],
)
def test_unknown_names(make: object, message: str) -> None:
    with pytest.raises(UnknownNameError) as refused:
        make()
    assert message in str(refused.value)
