"""Any torch module becomes a workload: real shapes, honest bytes, nothing dropped, errors in one line."""

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest
import torch
from torch import nn
from torch.nn import functional

from mlsys import Hardware
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.models import roofline
from mlsys.units import Q_
from mlsys.workloads import CountedOperator, Network, Workload, attention, gemm, load, relu, zoo
from mlsys.workloads.torch_import.module_inputs import ModuleInputs
from mlsys.workloads.zoo import ACTIVATION_OPERATIONS


class Function(nn.Module):
    def __init__(self, function: object) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: torch.Tensor) -> torch.Tensor:
        return self.function(*given)


def captured(function: object, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Workload:
    return Workload.from_torch(Function(function), tuple(torch.zeros(shape, dtype=dtype) for shape in shapes))


def only(network: Workload) -> CountedOperator:
    (operator,) = network.operators
    return operator


class Block(nn.Module):
    """A residual block whose shortcut is strided too, as He et al. 2016 have it."""

    def __init__(self, into: int = 64, out: int = 128, stride: int = 1) -> None:
        super().__init__()
        self.a, self.a_norm = nn.Conv2d(into, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.b, self.b_norm = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.skip, self.skip_norm = nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.b_norm(self.b(self.a_norm(self.a(x)).relu()))
        return (y + self.skip_norm(self.skip(x))).relu()


# --- the errors that pipelines of this kind commonly make -------------------------------------


def test_the_output_is_not_taken_for_the_input() -> None:
    """A convolution that halves its picture reads four times the pixels it writes."""
    layer = only(Workload.from_torch(nn.Conv2d(8, 8, 3, 2, 1, bias=False), torch.zeros(1, 8, 32, 32)))
    assert (layer.counts.read - layer.counts.weights, layer.counts.written) == (8 * 1024 * 4, 8 * 256 * 4)
    assert layer.macs == Q_(8 * 256 * 72, "MAC")


def test_a_block_counts_its_skip_connection() -> None:
    """14.80 + 29.60 + 1.64 GFLOP of convolutions; normalisation, rectifiers and the sum: 9 FLOP an element."""
    block = Workload.from_torch(Block, torch.zeros(32, 64, 56, 56))
    convolutions = [op.macs.m_as("GMAC") * 2 for op in block if op.kind == "conv2d"]
    assert [round(convolution, 2) for convolution in convolutions] == [14.80, 29.60, 1.64]
    elements = 32 * 128 * 56 * 56
    assert block.elementwise_flops == Q_(elements * (3 * 2 + 2 * 1 + 1), "FLOP")
    assert Workload.from_torch(lambda: Block(stride=2), torch.zeros(32, 64, 56, 56)).flops == block.flops / 4


def test_an_activation_works_at_its_own_width_whatever_comes_first() -> None:
    network = Workload.from_torch(
        nn.Sequential(nn.ReLU(), nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64)), torch.zeros(32, 128)
    )
    assert [op.counts.elementwise for op in network if op.kind == "activation"] == [32 * 128, 32 * 256]
    assert network.flops == network.product_flops + network.elementwise_flops == Q_(3_164_160 + 32 * 128, "FLOP")


def test_small_cnn_to_the_byte() -> None:
    """Outputs, weights and MACs of two convolutions and a classifier, batch 64, added up by hand."""
    network = load("small-cnn", batch=64)
    rows = [(op.counts.macs, op.counts.written, op.counts.weights) for op in network if op.counts.macs]
    assert rows == [
        (7_225_344, 3_211_264, 640),
        (57_802_752, 1_605_632, 18_560),
        (1_003_520, 2_560, 62_760),
    ]
    assert network.macs == Q_(66_031_616, "MAC")
    assert network.parameters == Q_(20_490, "param")
    assert network.weight_bytes == Q_(81_960, "byte")
    # every tensor read and written: image, two convolutions and their rectifiers, two poolings, the scores
    image, first, second, pooled = 64 * 784, 802_816, 401_408, (200_704, 100_352)
    moved = image + first * 4 + pooled[0] * 2 + second * 4 + pooled[1] * 2 + 640
    assert network.data == Q_(4 * moved + 81_960, "byte")


# --- bytes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "shape", "moved"),
    [
        (lambda x: x.transpose(0, 1), (4, 6), 0),
        (lambda x: x.view(24), (4, 6), 0),
        (lambda x: x.reshape(24), (4, 6), 0),
        (lambda x: x.t().reshape(24), (4, 6), 2 * 96),
        (lambda x: x.t().contiguous(), (4, 6), 2 * 96),
        (lambda x: x.contiguous(), (4, 6), 0),
        (lambda x: x[:, 2:], (4, 6), 0),
        (lambda x: x.unbind(0)[1], (4, 6), 0),
        (lambda x: x.expand(5, 4, 6), (4, 6), 0),
        (lambda x: x.to(torch.float32), (4, 6), 0),
        (lambda x: x.to(torch.float16), (4, 6), 96 + 48),
        (lambda x: torch.cat([x, x], 1), (4, 6), 96 + 192),
        (lambda x: functional.pad(x, (1, 1)), (4, 6), 96 + 128),
        (lambda x: functional.dropout(x, 0.5, training=False), (4, 6), 0),
        (lambda x: x + x, (4, 6), 96 + 96),
        (lambda x: x.sum(1), (4, 6), 96 + 16),
        (lambda x: x * x[:, :1], (4, 6), 96 + 16 + 96),
        (lambda x: x * x[:1].expand(4, 6), (4, 6), 96 + 24 + 96),
        (lambda x: x.relu_(), (4, 6), 96 + 96),
    ],
)
def test_copies_are_counted_where_they_copy(function: object, shape: tuple[int, ...], moved: int) -> None:
    network = captured(function, shape)
    assert network.data == Q_(moved, "byte")
    assert len(network) == bool(moved)
    assert network.coverage == 1


def test_an_embedding_reads_the_requested_rows() -> None:
    table = Workload.from_torch(nn.Embedding(1000, 16), torch.zeros(3, 5, dtype=torch.long))
    assert table.read == Q_(15 * 16 * 4 + 15 * 8, "byte")
    assert only(table).parameters == 16_000
    assert table.weight_bytes == Q_(64_000, "byte")


def test_gather_and_scatter_move_what_is_moved() -> None:
    index = torch.zeros(2, 3, dtype=torch.long)
    gathered = Workload.from_torch(Function(lambda x, i: x.gather(1, i)), (torch.zeros(2, 100), index))
    assert (gathered.read, gathered.written) == (Q_(6 * 4 + 6 * 8, "byte"), Q_(24, "byte"))
    scattered = Workload.from_torch(
        Function(lambda x, i, v: x.scatter_add_(1, i, v)), (torch.zeros(2, 100), index, torch.ones(2, 3))
    )
    assert scattered.written == Q_(24, "byte")
    assert scattered.elementwise_flops == Q_(6, "FLOP")


def test_work_in_place_makes_no_new_tensor() -> None:
    apart, in_place = captured(lambda x: x.relu(), (4, 6)), captured(lambda x: x.relu_(), (4, 6))
    assert apart.data == in_place.data
    assert (apart.activation_bytes, in_place.activation_bytes) == (Q_(96, "byte"), Q_(0, "byte"))


def test_shared_weights_count_once_as_parameters() -> None:
    layer = nn.Linear(8, 8, bias=False)
    network = Workload.from_torch(nn.Sequential(layer, layer), torch.zeros(2, 8))
    assert network.parameters == Q_(64, "param")
    assert network.weights == Q_(2 * 64 * 4, "byte"), "read twice"


# --- what is not understood -------------------------------------------------------------------


def test_an_unknown_operator_is_reported_and_counted_as_traffic() -> None:
    network = captured(lambda x: torch.linalg.svd(x.relu())[1], (6, 6))
    (unknown,) = network.unknown
    assert "_linalg_svd" in unknown.target
    assert unknown.kind == "unknown"
    assert unknown.data.magnitude >= 4 * 36
    assert unknown.operations.magnitude == 0
    assert network.coverage == pytest.approx(1 / 2)
    assert f"no rule for {unknown.target} ({unknown.name}): counted as traffic only" in network.explain()


def test_operators_written_in_terms_of_others_are_taken_apart() -> None:
    network = captured(lambda x: functional.cross_entropy(x, torch.zeros(4, dtype=torch.long)), (4, 6))
    assert network.coverage == 1
    assert any("cross_entropy_loss" in op.target and "_log_softmax" in op.target for op in network)


def test_pointwise_operators_nobody_listed_count_one() -> None:
    assert captured(torch.sinc, (4, 6)).elementwise_flops == Q_(24, "FLOP")
    assert captured(torch.sinc, (4, 6)).coverage == 1


def test_operators_of_ones_own_and_branches_are_reported() -> None:
    @torch.library.custom_op("mlsys_test::twist", mutates_args=())
    def twist(x: torch.Tensor) -> torch.Tensor:
        return x.flip(0)

    twist.register_fake(lambda x: torch.empty_like(x))
    network = captured(lambda x: twist(x) + 1, (4, 6))
    assert [(op.target, op.counts.read, op.counts.written) for op in network.unknown] == [
        ("mlsys_test.twist.default", 96, 96)
    ]
    for _ in range(2):  # the first run of a factory's module is watched, and torch cannot compile the branches in it
        branching = Function(lambda x: torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,)))
        assert ModuleInputs(branching, torch.zeros(4, 6)).run() is not None
        branch = Workload.from_torch(branching, torch.zeros(4, 6))
        assert [(op.target, op.data) for op in branch.unknown] == [("cond", Q_(2 * 96 + 1, "byte"))]
        assert branch.coverage == pytest.approx(2 / 3)


class Guarded(nn.Module):
    """Part of the work is done in a context, which the tracer keeps as a graph of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.set_grad_enabled(True), torch.autocast("cpu", enabled=False):
            y = self.layer(x).relu()
        return y * 2


def test_work_in_a_context_is_counted_like_any_other() -> None:
    network = Workload.from_torch(Guarded(), torch.zeros(2, 4))
    assert [op.kind for op in network] == ["gemm", "activation", "elementwise"]
    assert [op.counts.weights for op in network] == [100, 0, 0]
    assert network.coverage == 1


def test_a_projected_state_costs_no_gates() -> None:
    """4 gate sums with 2 biases each, 5 activations and 4 updates for each of 16 units and 10 tokens."""
    network = Workload.from_torch(lambda: nn.LSTM(8, 16, proj_size=4), torch.zeros(5, 2, 8))
    (layer,) = [op for op in network if op.kind == "recurrent"]
    assert layer.counts.elementwise == 10 * 16 * (4 * 3 + 9)


class Opaque:
    def __init__(self, scores: torch.Tensor) -> None:
        self.scores = scores


def test_the_second_tracer_says_why_the_first_refused() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 5)

        def forward(self, x: torch.Tensor) -> Opaque:
            return Opaque(self.layer(x).relu())

    network = Workload.from_torch(Net(), torch.zeros(2, 4))
    assert network.source.startswith("torch.fx, because torch.export: Found <class")
    assert network.product_flops == Q_(80, "FLOP")
    assert network.parameters == Q_(25, "param")
    assert [op.kind for op in network] == ["gemm", "activation"]


# --- sizes that are left free -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt2", "bert-base", "resnet18"])
def test_another_size_is_what_capturing_it_anew_gives(name: str) -> None:
    free = load(name, **({} if name == "resnet18" else {"sequence": 32}))
    for batch, sequence in ((1, 16), (5, 48)):
        sizes = {"batch": batch} if name == "resnet18" else {"batch": batch, "sequence": sequence}
        again, anew = free.at(**sizes), load(name, **sizes)
        assert (again.flops, again.elementwise_flops, again.read) == (anew.flops, anew.elementwise_flops, anew.read)
        assert (again.activation_bytes, again.input_bytes) == (anew.activation_bytes, anew.input_bytes)
        assert again.sizes == anew.sizes and sizes.items() <= dict(again.sizes).items()


def test_sizes_are_kept_until_changed() -> None:
    network = Workload.from_torch(nn.Linear(8, 4), torch.zeros(1, 7, 8), dynamic={"batch": 0, "tokens": 1})
    assert dict(network.sizes) == {"batch": 1, "tokens": 7}
    assert network.product_flops == Q_(2 * 7 * 32, "FLOP")
    assert network.at(batch=3).at(tokens=2).product_flops == Q_(2 * 6 * 32, "FLOP")


def test_sizes_of_inputs_without_names() -> None:
    two = (torch.zeros(2, 3, 5), torch.zeros(2, 5, 7))
    network = Workload.from_torch(Function(torch.bmm), two, dynamic={"batch": 0, "k": {"given.0": 2, "given.1": 1}})
    assert network.at(batch=4, k=11).product_flops == Q_(2 * 4 * 3 * 11 * 7, "FLOP")


def test_sizes_that_values_decide_are_taken_at_their_largest() -> None:
    assert captured(lambda x: x[x > 0].exp(), (4, 6)).by_kind()[0].elementwise == Q_(2 * 24, "FLOP")


def test_work_grows_with_the_batch_and_weights_do_not() -> None:
    network = load("mobilenet-v2")
    ladder = [network.at(batch=batch) for batch in (1, 2, 4, 8)]
    assert [rung.flops for rung in ladder] == [network.flops * batch for batch in (1, 2, 4, 8)]
    assert len({rung.weights.magnitude for rung in ladder}) == 1
    assert [rung.data for rung in ladder] == sorted(rung.data for rung in ladder)


def test_a_size_that_the_code_asks_for_cannot_be_changed() -> None:
    network = Workload.from_torch(nn.Linear(8, 4), torch.zeros(2, 8), dynamic={"batch": 0, "width": 1})
    assert network.at(batch=9, width=8).product_flops == Q_(2 * 9 * 32, "FLOP")
    with pytest.raises(ArgumentError, match=r"at\(\): 'Linear' holds `width` at 8: its code asks for that very size"):
        network.at(width=16)


# --- networks by hand and models of time ------------------------------------------------------


def test_a_workload_goes_wherever_a_network_goes() -> None:
    network = load("resnet18", batch=4, precision="fp16")
    direct, plain = (roofline(Hardware.Cloud.A100, work) for work in (network, network.to_network()))
    assert direct.time == plain.time
    assert direct.time > network.flops / Hardware.Cloud.A100.peak("fp16")
    assert {op.precision for op in network} == {"fp16"}
    assert network.arrays.order.size == len(network)


def test_hand_made_networks_come_and_go_unchanged() -> None:
    by_hand = Network("three", (gemm(8, 4, 2, "fp32"), relu(32, "fp32"), attention(1, 2, 8, 8, 4)))
    taken = Workload.from_network(by_hand)
    assert taken.to_network() == by_hand
    assert taken.macs == by_hand.macs
    assert taken.data == by_hand.data
    assert taken.elementwise_flops == Q_(32 + 5 * 2 * 64, "FLOP")
    assert Workload.from_network(taken).operators == taken.operators


def test_captured_and_by_hand_agree_on_resnet50() -> None:
    ours, theirs = zoo.network("resnet50", batch=4, precision="fp32"), load("resnet50", batch=4)
    assert theirs.product_flops == ours.product_flops
    layers = [op for op in theirs if op.counts.macs]
    assert sorted(op.macs.magnitude for op in layers) == sorted(op.products.macs for op in ours)
    assert sorted(op.products for op in layers) == sorted(op.products for op in ours)


@pytest.mark.parametrize("name", ["relu", "relu6", "sigmoid", "silu", "tanh"])
def test_activations_cost_what_the_catalogue_of_networks_says(name: str) -> None:
    assert captured(getattr(functional, name), (24,)).elementwise_flops == Q_(24 * ACTIVATION_OPERATIONS[name], "FLOP")


def test_gelu_in_its_tanh_form_costs_what_the_catalogue_of_networks_says() -> None:
    network = captured(lambda x: functional.gelu(x, approximate="tanh"), (24,))
    assert network.elementwise_flops == Q_(24 * ACTIVATION_OPERATIONS["gelu"], "FLOP")


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.ConvTranspose2d(6, 4, 3, 2, groups=2),
        lambda: nn.Conv2d(6, 4, 3, groups=2),
        lambda: nn.Conv2d(6, 6, 3),
    ],
)
def test_products_have_all_the_work(make: object) -> None:
    layer = only(Workload.from_torch(make, torch.zeros(2, 6, 9, 9)))
    assert layer.products.macs == layer.macs.magnitude


# --- manners ----------------------------------------------------------------------------------


def test_a_module_comes_back_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    module[1].eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    network = Workload.from_torch(module, torch.zeros(3, 4))
    assert [part.training for part in module] == [True, False, True]
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert torch.is_grad_enabled()
    assert "copy" not in {op.kind for op in network}


def test_nothing_is_allocated_for_the_weights() -> None:
    network = Workload.from_torch(lambda: nn.Linear(10**6, 10**6, bias=False), torch.zeros(1, 10**6))
    assert network.weight_bytes == Q_(4, "TB")


@pytest.mark.parametrize(
    ("dtype", "precision"), [(torch.float64, "fp64"), (torch.bfloat16, "bf16"), (torch.int8, "int8")]
)
def test_number_formats(dtype: torch.dtype, precision: str) -> None:
    assert only(captured(lambda x: x + x, (4,), dtype=dtype)).precision == precision


def test_indices_are_timed_at_the_format_of_the_network() -> None:
    network = load("gpt2", sequence=8, precision="fp16")
    assert {op.precision for op in network} == {"fp16"}
    assert any(op.kind == "fill" for op in network)


def test_a_workload_survives_pickling_and_a_compiled_module_is_the_module() -> None:
    network = Workload.from_torch(torch.compile(nn.Linear(8, 4)), torch.zeros(2, 8), dynamic={"batch": 0})
    again = pickle.loads(pickle.dumps(network))
    assert again == network
    assert again.name == "Linear"
    assert again.at(batch=5).product_flops == network.at(batch=5).product_flops == Q_(320, "FLOP")


def test_results_cannot_be_changed_and_say_what_they_are() -> None:
    network = Workload.from_torch(nn.Linear(128, 256), torch.zeros(4, 50, 128), name="projection")
    with pytest.raises(FrozenInstanceError):
        network.name = "other"
    assert repr(network) == "<workload projection: 1 operators, 13.16 MFLOP, 33.02 kparam, 100.0% understood>"
    assert "captured by torch.export; 100.0% of 1 nodes understood" in network.explain()
    (row,) = network.by_kind()
    assert (row.kind, row.count, row.flops, row.product_flops) == ("gemm", 1, network.flops, network.product_flops)
    assert only(network).shape == {"m": 200, "n": 256, "k": 128}


BATCH = {"batch": 0}


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Workload.from_torch(3, torch.zeros(2)), r"`module` must be a torch.nn.Module or a function .* got 3"),
        (lambda: Workload.from_torch(lambda: 3, torch.zeros(2)), r"`module` returned int where a torch.nn.Module"),
        (lambda: Workload.from_torch(lambda width: width, torch.zeros(2)), r"called without arguments"),
        (
            lambda: Workload.from_torch(nn.ReLU(), (2, 3)),
            r"must be tensors, got the numbers \(2, 3\). Write .*zeros\(2, 3\)",
        ),
        (lambda: Workload.from_torch(nn.ReLU(), None), r"must be a tensor, a tuple of arguments or a dict"),
        (lambda: Workload.from_torch(nn.ReLU(), {"y": torch.zeros(2)}), r"do not fit ReLU.forward\(input\): missing"),
        (
            lambda: Workload.from_torch(nn.Linear(4, 5), torch.zeros(2, 5)),
            r"Linear cannot be captured.* linear does not fit .* Check the shapes",
        ),
        (
            lambda: Workload.from_torch(nn.Embedding(4, 5), torch.zeros(2)),
            r"Embedding cannot be captured.*token numbers as torch.long",
        ),
        (
            lambda: Workload.from_torch(nn.Linear(4, 5), torch.zeros(2, 4).half()),
            r"float16 \(input\) and float32 \(param",
        ),
        (
            lambda: Workload.from_torch(Function(lambda x: x if x.sum() > 0 else -x), torch.zeros(2)),
            r"depends on the values of a tensor",
        ),
        (lambda: Workload.from_torch(nn.ReLU(), torch.zeros(2), dynamic={"batch": 3}), r"no input has that axis"),
        (
            lambda: Workload.from_torch(nn.ReLU(), torch.zeros(2), dynamic={"n": {"input": 1}}),
            r"frees axis 1 of 'input'",
        ),
        (
            lambda: Workload.from_torch(Function(torch.outer), (torch.zeros(2), torch.zeros(3)), dynamic={"n": 0}),
            r"calls sizes that differ by one name",
        ),
        (lambda: Workload.from_torch(nn.ReLU(), torch.zeros(2)).at(batch=2), r"'ReLU' has no free sizes"),
        (lambda: Workload.from_torch(nn.ReLU(), torch.zeros(2), dynamic=BATCH).at(batch=0), r"`batch` must be a whole"),
        (
            lambda: Workload.from_torch(nn.ReLU(), torch.zeros(2), dynamic=BATCH).at(batch=True),
            r"`batch` must be a whole",
        ),
        (lambda: load("resnet50", sequence=8), r"`sequence` does not apply to 'resnet50'"),
        (lambda: load("mlp", image=8), r"`image` does not apply to 'mlp', whose input has one size"),
        (lambda: load("bert-base", sequence=513), r"at most 512, the positions learned by bert-base, got 513"),
        (lambda: load("gpt2", batch=1.5), r"`batch` must be a whole number"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(make: object, complaint: str) -> None:
    with pytest.raises(ArgumentError, match=complaint) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: load("resnet5O"), r"unknown network 'resnet5O'.*Did you mean 'resnet50'\?"),
        (lambda: load("resnet50", precision="fp61"), r"unknown precision 'fp61'"),
        (
            lambda: Workload.from_torch(nn.ReLU(), torch.zeros(2), dynamic={"n": {"inptu": 0}}),
            r"names the input 'inptu', which is not there. Inputs: input. Did you mean 'input'",
        ),
        (
            lambda: Workload.from_torch(nn.ReLU(), torch.zeros(2), dynamic=BATCH).at(bach=2),
            r"has no free size 'bach'. Free: batch. Did you mean 'batch'",
        ),
    ],
)
def test_unknown_names_come_with_a_hint(make: object, complaint: str) -> None:
    with pytest.raises(UnknownNameError, match=complaint):
        make()


@pytest.mark.parametrize(
    "line",
    [
        "import mlsys.workloads",
        "from mlsys.workloads import load; load('resnet50').explain(); load('resnext50').explain()",
        "import mlsys.workloads.torch_models",
    ],
)
def test_torch_is_loaded_only_when_a_module_is_captured(line: str) -> None:
    names = ("torch", "sympy", "onnx", "transformers")
    code = f"{line}\nimport sys\nprint([name for name in {names} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
