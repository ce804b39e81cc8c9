"""Who makes which tensor and who reads it: edges of captured networks, checked against the networks themselves."""

import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional

from mlsys.errors import ArgumentError
from mlsys.workloads import Workload, load, relu, zoo
from mlsys.workloads.graph import Access, OperatorGraph, Value


class Function(nn.Module):
    def __init__(self, function: object, **buffers: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer)

    def forward(self, *given: torch.Tensor) -> object:
        return self.function(*given, **dict(self.named_buffers()))


def graph_of(function: object, *given: torch.Tensor, **buffers: torch.Tensor) -> OperatorGraph:
    return Workload.from_torch(Function(function, **buffers), given).graph


def edges(graph: OperatorGraph) -> set[tuple[str, str]]:
    return {
        (graph.operators[value.producer].name, graph.operators[user].name)
        for value in graph.values
        if value.producer is not None
        for user in value.consumers
    }


X = torch.zeros(4, 6)


# --- which tensor is which --------------------------------------------------------------------


def test_views_are_looked_through() -> None:
    graph = graph_of(lambda x: x.exp().t().view(2, 3, 4).transpose(0, 1).neg(), X)
    assert edges(graph) == {("exp", "neg")}
    (hidden,) = (graph.values[value] for value in graph.intermediates)
    assert (hidden.name, hidden.shape, hidden.bytes) == ("exp", (4, 6), 96)


def test_a_reshape_that_copies_is_an_operator() -> None:
    graph = graph_of(lambda x: x.exp().t().reshape(24).neg(), X)
    assert edges(graph) == {("exp", "reshape"), ("reshape", "neg")}
    assert [value.bytes for value in graph.values if value.producer is not None] == [96, 96, 96]


def test_parts_of_a_tensor_are_that_tensor() -> None:
    """Two halves of one tensor: one value, two consumers, half of it each."""

    def halves(x: torch.Tensor) -> torch.Tensor:
        first, second = x.exp().chunk(2, -1)
        return first.sin() * second.cos()

    graph = graph_of(halves, X)
    assert graph.made_by(0)[0].consumers == (1, 2)
    first, second = graph.reads[1][0], graph.reads[2][0]
    assert (first.bytes, second.bytes) == (48, 48)
    assert first.view != second.view


def test_a_dropout_at_rest_hands_its_input_on() -> None:
    graph = graph_of(lambda x: functional.dropout(x.exp(), 0.5, training=False).neg(), X)
    assert edges(graph) == {("exp", "neg")}


def test_the_same_tensor_twice_is_read_once() -> None:
    graph = graph_of(lambda x: x.exp() * x.exp(), X)
    assert [len(row) for row in graph.reads] == [1, 1, 2]
    squared = graph_of(lambda x: (y := x.exp()) * y, X)
    assert squared.reads[1] == (Access(squared.inputs_of[1][0], 96),)


def test_a_turned_view_says_so() -> None:
    graph = graph_of(lambda x: x.exp() @ x.exp().t(), X)
    assert [access.turned for access in graph.reads[2]] == [False, True]


def test_several_results_are_several_values() -> None:
    graph = Workload.from_torch(nn.LSTM(6, 3, batch_first=True), torch.zeros(1, 4, 6)).graph
    made = graph.made_by(len(graph) - 1)
    assert [(value.name, value.bytes, value.output) for value in made] == [
        ("lstm.0", 48, True),
        ("lstm.1", 12, True),
        ("lstm.2", 12, True),
    ]


# --- in place ---------------------------------------------------------------------------------


def test_in_place_makes_a_new_value_in_the_same_memory() -> None:
    def overwritten(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        y.relu_()
        return y.neg()

    graph = graph_of(overwritten, X)
    assert edges(graph) == {("exp", "relu_"), ("relu_", "neg")}
    (new,) = graph.made_by(1)
    assert graph.values[new.overwrites].name == "exp"


def test_what_reads_the_old_contents_goes_first() -> None:
    def raced(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        z = y.neg()
        y.relu_()
        return z.sin() * y

    graph = graph_of(raced, X)
    names = [operator.name for operator in graph.operators]
    assert names[:3] == ["exp", "neg", "relu_"]
    assert graph.producers(2) == (0,)
    assert graph.waits_for(2) == (0, 1), "relu_ reads nothing of neg, and must wait for it"


def test_a_cache_is_written_where_it_lies() -> None:
    def step(x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        cache[:, 1:2] = x.exp()[:, :1]
        return cache.sum(1)

    graph = graph_of(step, X, cache=torch.zeros(4, 8))
    (written,) = (value for value in graph.values if value.overwrites is not None)
    held = graph.values[written.overwrites]
    assert (held.name, held.role, held.bytes, written.bytes) == ("cache", "weight", 128, 128)
    assert edges(graph) == {("exp", written.name), (written.name, "sum_1")}


# --- roles ------------------------------------------------------------------------------------


def test_every_tensor_has_its_role() -> None:
    def function(x: torch.Tensor, unused: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        return y, (y * mask).exp()

    graph = graph_of(function, X, torch.zeros(3), mask=torch.ones(6))
    roles = {value.name: (value.role, value.output) for value in graph.values if value.role != "made"}
    constants = [name for name, (role, _) in roles.items() if role == "constant"]
    assert len(constants) == 1
    assert roles["mask"] == ("weight", False)
    assert [name for name, (role, _) in roles.items() if role == "input"] == ["given_0", "given_1"]
    assert [value.name for value in graph.values if value.output] == ["add", "exp"]
    assert [graph.values[value].name for value in graph.intermediates] == ["mul"]


def test_weights_have_the_names_of_the_module() -> None:
    graph = Workload.from_torch(nn.Sequential(nn.Linear(6, 3), nn.ReLU()), X).graph
    assert [value.name for value in graph.read_by(0)] == ["input", "0.weight", "0.bias"]


def test_a_weight_that_is_shared_is_one_value() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 6)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return functional.linear(self.table(tokens), self.table.weight)

    graph = Workload.from_torch(Tied(), torch.zeros(2, 3, dtype=torch.long)).graph
    (table,) = (value for value in graph.values if value.role == "weight")
    assert (table.bytes, table.consumers) == (240, (0, 1))
    assert [access.bytes for row in graph.reads for access in row if graph.values[access.value] is table] == [
        2 * 3 * 6 * 4,  # the rows that are looked up
        240,
    ]


def test_one_example_for_two_inputs_stands_for_two_tensors() -> None:
    graph = graph_of(lambda x, y: x + y, X, X)
    assert [(value.role, value.bytes) for value in graph.read_by(0)] == [("input", 96), ("input", 96)]


def test_an_input_that_is_returned_is_an_output() -> None:
    graph = graph_of(lambda x: (x, x.exp()), X)
    assert [(value.role, value.output) for value in graph.values] == [("input", True), ("made", True)]


# --- whole networks ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["resnet50", "mobilenet-v2", "unet", "bert-base", "gpt2", "lstm-lm"])
def test_edges_carry_the_bytes_that_the_operators_count(name: str) -> None:
    """Every byte an operator reads or writes is on an edge, at the captured sizes and at others."""
    captured = load(name)
    for network in (captured, captured.at(batch=3)):
        graph = network.graph
        assert graph.operators == network.operators
        for operator, reads, writes in zip(network, graph.reads, graph.writes, strict=True):
            assert sum(access.bytes for access in reads) == operator.counts.read, operator
            assert sum(access.bytes for access in writes) == operator.counts.written, operator
        made = sum(value.bytes for value in graph.values if value.role == "made" and value.overwrites is None)
        assert made == network.activation_bytes.magnitude


def test_resnet50_has_a_chain_with_shortcuts() -> None:
    """Every operator but the first of a block has one consumer; 16 block inputs have two."""
    graph = load("resnet50").graph
    consumers = [len(graph.consumers(index)) for index in range(len(graph))]
    assert (consumers.count(0), consumers.count(1), consumers.count(2)) == (1, 174 - 1 - 16, 16)
    learned = sum(value.bytes for value in graph.values if value.role == "weight")
    captured = load("resnet50")
    counters = 53 * 8  # how many batches each normalisation has seen: nobody reads it
    assert learned == (captured.weight_bytes + captured.buffer_bytes).magnitude - counters


def test_free_sizes_are_free_in_the_graph() -> None:
    captured = load("bert-base")
    small, large = captured.graph, captured.at(batch=2, sequence=64).graph
    fresh = load("bert-base", batch=2, sequence=64).graph
    assert [value.shape for value in large.values] == [value.shape for value in fresh.values]
    assert [value.consumers for value in large.values] == [value.consumers for value in small.values]
    assert large.reads == fresh.reads


def test_a_workload_with_a_graph_is_pickled() -> None:
    captured = load("small-cnn")
    again = pickle.loads(pickle.dumps(captured))
    assert again.graph == captured.graph
    assert again.at(batch=7).graph == captured.at(batch=7).graph


def test_the_graph_of_torch_fx() -> None:
    class Stateful(nn.Module):
        """torch.export refuses it: it counts its calls in a list of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.layer, self.calls = nn.Linear(6, 6), []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if torch.compiler.is_exporting():
                raise RuntimeError("not for export")
            return self.layer(x).relu()

    captured = Workload.from_torch(Stateful(), X)
    assert captured.source.startswith("torch.fx")
    assert len(captured.graph.made_by(len(captured) - 1)) == 1
    assert captured.graph.values[-1].output
    assert {"layer.weight", "layer.bias"} <= {value.name for value in captured.graph.values}


def test_the_graph_of_onnx() -> None:
    onnx = pytest.importorskip("onnx")
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    weight = helper.make_tensor("w", number, (4, 4), [1.0] * 16)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Sigmoid", ["b"], ["c"]),
        helper.make_node("Mul", ["a", "c"], ["y"]),
    ]
    given, out = helper.make_tensor_value_info("x", number, (2, 4)), helper.make_tensor_value_info("y", number, None)
    network = Workload.from_onnx(helper.make_model(helper.make_graph(nodes, "silu", [given], [out], [weight])))
    graph = network.graph
    assert [(value.name, value.role, value.producer, value.consumers, value.output) for value in graph.values] == [
        ("x", "input", None, (0,), False),
        ("w", "weight", None, (0,), False),
        ("a", "made", 0, (1, 2), False),
        ("c", "made", 1, (2,), False),
        ("y", "made", 2, (), True),
    ]


# --- refusals ---------------------------------------------------------------------------------


def test_a_network_written_by_hand_has_no_edges() -> None:
    with pytest.raises(ArgumentError, match="graph: 'ResNet-50' was built by hand and has no edges"):
        _ = Workload.from_network(zoo.network("resnet50")).graph


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((Value("a", "made", 4, producer=1, consumers=(0,)),), "'a' is read by an operator that runs before 1"),
        ((Value("a", "made", 4, producer=0, consumers=(0,)),), "'a' is read by an operator that runs before 0"),
        ((Value("a", "input", 4, consumers=(2,)),), "names an operator that does not exist; indices are 0 to 1"),
        ((Value("a", "made", 4),), "has the role 'made' and producer None"),
        ((Value("a", "weight", 4, producer=0),), "has the role 'weight' and producer 0"),
        ((Value("a", "activation", 4, producer=0),), "has the role 'activation'. Roles: input, weight, constant, made"),
        ((Value("a", "input", 4), Value("a", "input", 4)), "has duplicate value names"),
        ((Value("a", "input", 4, consumers=(1, 0)),), "lists its consumers (1, 0) out of order"),
        ((Value("a", "made", 4, producer=0, overwrites=3),), "overwrites 3, whose memory it cannot reuse"),
        (
            (Value("a", "input", 4, consumers=(1,)), Value("b", "made", 4, producer=0, overwrites=0)),
            "overwrites 'a', which is read later",
        ),
    ],
)
def test_a_graph_that_cannot_run_is_refused(values: tuple[Value, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match="OperatorGraph") as refused:
        OperatorGraph("mine", (relu(1), relu(1)), values)
    assert message in str(refused.value)
