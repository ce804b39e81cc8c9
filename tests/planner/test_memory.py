"""Memory plans: real networks, published sizes, a solver, and a replay in one flat block of memory."""

import functools
import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from mlsys.errors import ArgumentError, ArgumentUnitError, UnknownNameError
from mlsys.hardware import Hardware
from mlsys.mapping.fusion import fuse
from mlsys.models import roofline
from mlsys.planner.memory import (
    STRATEGIES,
    MemoryPlan,
    compare_strategies,
    conflicts,
    fits_on,
    lean_order,
    liveness,
    place_in_order,
    plan_memory,
)
from mlsys.planner.streams import schedule_streams
from mlsys.units import Q_
from mlsys.workloads import Workload, load, relu, zoo
from mlsys.workloads.graph import OperatorGraph, Value

BYTE = Q_(1, "byte")
workload = functools.cache(load)


def chain(*sizes: int, names: str = "v") -> OperatorGraph:
    """One operator after the other, each making a value of the given size."""
    values = [
        Value(
            f"{names}{i}", "made", size, (size,), "int8", i, (i + 1,) if i + 1 < len(sizes) else (), i + 1 == len(sizes)
        )
        for i, size in enumerate(sizes)
    ]
    return OperatorGraph("chain", (relu(64),) * len(sizes), tuple(values))


@pytest.fixture(scope="module")
def resnet() -> Workload:
    return workload("resnet50", batch=32)


# --- published sizes ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bytes_in_int8"),
    [("mobilenet-v1", 1_204_224), ("mobilenet-v2", 1_505_280)],
)
def test_mobilenets_need_what_ml_memory_analyser_publishes(name: str, bytes_in_int8: int) -> None:
    """github.com/petewarden/ml_memory_analyser, README.md@0e7eee2, "RAM required" for the quantised models.

    It reads TFLite files, in which normalisation and activation are part of the convolution; in place they
    need no memory either. Ours is captured in FP32: four bytes where the file has one.
    """
    plan = plan_memory(workload(name, batch=1), in_place=True)
    assert plan.peak == plan.lower_bound == 4 * bytes_in_int8 * BYTE


def test_mobilenet_v2_side_by_side_needs_what_tensorflow_publishes() -> None:
    """J. Lee, Y. Pisarchyk, "Optimizing TensorFlow Lite Runtime Memory", 2020: 65 tensors, about 26 MB.

    The 65th is the softmax, which our network leaves out. The megabytes must be binary: 27.6 million bytes.
    """
    graph = workload("mobilenet-v2", batch=1).graph
    kept = {"conv2d", "elementwise", "pooling", "gemm"}  # normalisation and activation belong to the convolution
    tensors = [value.bytes for value in graph.values if value.producer and graph.operators[value.producer].kind in kept]
    tensors.append(next(value.bytes for value in graph.values if value.producer == 0))
    assert len(tensors) == 65 - 1
    assert int(Q_(sum(tensors), "byte").m_as("MiB")) == 26


def test_resnet50_at_batch_32(resnet: Workload) -> None:
    """11,113,984 outputs of convolutions an image; the fullest step of fused kernels holds 1,806,336 numbers."""
    convolutions = {i for i, op in enumerate(resnet.graph.operators) if op.kind == "conv2d"}
    outputs = sum(value.bytes for value in resnet.graph.values if value.producer in convolutions)
    assert outputs == 11_113_984 * 32 * 4  # 1.42 GB
    in_place = plan_memory(resnet, in_place=True)
    assert in_place.peak == in_place.lower_bound == 1_806_336 * 32 * 4 * BYTE  # 231 MB
    apart = plan_memory(resnet)
    assert apart.peak == apart.lower_bound == 3 * 802_816 * 32 * 4 * BYTE, "a sum writes beside its two operands"
    assert in_place.sum > outputs * BYTE
    half = plan_memory(workload("resnet50", batch=32, precision="fp16"), in_place=True)
    assert half.peak == in_place.peak / 2  # 116 MB


def test_fused_kernels_need_what_work_in_place_needs(resnet: Workload) -> None:
    fused = fuse(resnet)
    plan = plan_memory(fused)
    assert len(plan.placements) == 56 and plan.peak.m_as("MB") == pytest.approx(231.2, abs=0.05)
    assert plan.peak == plan_memory(resnet, in_place=True).peak
    assert plan_memory(fused, in_place=True).placements == plan.placements, "a convolution cannot work in place"


def test_strategies_differ_and_the_best_is_taken(resnet: Workload) -> None:
    plans = compare_strategies(resnet, in_place=True)
    peaks = {plan.strategy: plan.peak for plan in plans}
    assert set(peaks) == set(STRATEGIES)
    assert [plan.peak for plan in plans] == sorted(peaks.values())
    assert peaks["size"] == plans[0].lower_bound < peaks["first-come"], "foresight pays"
    best = plan_memory(resnet, in_place=True)
    assert best.peak == plans[0].peak and best.proved
    assert not plan_memory(resnet, in_place=True, strategy="first-come").proved


# --- placing -----------------------------------------------------------------------


def smallest_block(sizes: np.ndarray, first: np.ndarray, last: np.ndarray) -> int:
    """Every order, each buffer at its lowest place: one of them is a smallest block."""
    orders = itertools.permutations(range(len(sizes)))
    return min(int((place_in_order(order, sizes, first, last, lowest=True) + sizes).max()) for order in orders)


def as_graph(sizes: np.ndarray, first: np.ndarray, last: np.ndarray) -> OperatorGraph:
    """A graph whose values live as told: made by one operator each step, read by the last that needs it."""
    steps = int(last.max()) + 1
    values = [
        Value(f"v{i}", "made", int(size), (int(size),), "int8", int(a), (int(b),) if b > a else ())
        for i, (size, a, b) in enumerate(zip(sizes, first, last, strict=True))
    ]
    return OperatorGraph("told", (relu(64),) * steps, tuple(values))


def test_the_exact_strategy_finds_the_smallest_block() -> None:
    rng = np.random.default_rng(7)
    for _ in range(12):
        first = rng.integers(0, 6, 6)
        last = np.minimum(first + rng.integers(0, 4, 6), 6)
        sizes = rng.integers(1, 9, 6)
        plan = plan_memory(as_graph(sizes, first, last), strategy="exact", alignment=BYTE)
        assert plan.proved and no_overlap(plan)
        assert plan.peak.magnitude == smallest_block(sizes, first, last)


@pytest.mark.parametrize(
    ("sizes", "first", "last", "by_rule", "exact"),
    [
        ([4, 1, 3, 5, 3], [2, 0, 0, 0, 1], [5, 3, 2, 0, 2], 12, 11),
        ([5, 4, 4, 5, 2], [2, 1, 0, 4, 1], [5, 4, 3, 5, 3], 16, 15),
        ([2, 3, 2, 4, 3], [1, 2, 0, 0, 1], [1, 2, 1, 0, 2], 8, 7),
    ],
)
def test_cases_where_every_rule_fails_and_the_solver_does_not(
    sizes: list[int], first: list[int], last: list[int], by_rule: int, exact: int
) -> None:
    result = np.array(sizes), np.array(first), np.array(last)
    assert compare_strategies(as_graph(*result), alignment=BYTE)[0].peak.magnitude == by_rule
    plan = plan_memory(as_graph(*result), strategy="exact", alignment=BYTE)
    assert plan.peak.magnitude == exact == smallest_block(*result)
    assert plan.proved and no_overlap(plan)


def no_overlap(plan: MemoryPlan) -> bool:
    for first, two in itertools.combinations(plan.placements, 2):
        together = first.first <= two.last and two.first <= first.last
        apart = first.offset + first.bytes <= two.offset or two.offset + two.bytes <= first.offset
        if together and not apart:
            return False
    return True


def test_alignment_pads_and_places() -> None:
    plan = plan_memory(chain(100, 10, 65), alignment=Q_(64, "byte"))
    assert [buffer.bytes for buffer in plan.placements] == [128, 64, 128]
    assert all(buffer.offset % 64 == 0 for buffer in plan.placements)
    tight = plan_memory(chain(100, 10, 65), alignment=BYTE)
    assert tight.peak.magnitude == 110 < plan.peak.magnitude == 192


def test_values_without_bytes_take_no_room() -> None:
    plan = plan_memory(chain(0, 0), alignment=BYTE)
    assert plan.peak.magnitude == 0 and plan.gap == 0
    assert "0 B" in plan.explain()


# --- lifetimes ---------------------------------------------------------------------


def test_lifetimes_end_with_the_last_reader_and_outputs_with_the_run() -> None:
    a = Value("a", "made", 10, producer=0, consumers=(1, 3))
    b = Value("b", "made", 20, producer=1, output=True)
    c = Value("c", "made", 40, producer=2)  # nobody reads it
    d = Value("d", "made", 80, producer=3, output=True)
    x = Value("x", "input", 160, consumers=(0, 2))
    w = Value("w", "weight", 320, consumers=(0,))
    lifetimes = liveness(OperatorGraph("four", (relu(8),) * 4, (a, b, c, d, x, w)))
    assert [(buffer.name, buffer.first, buffer.last) for buffer in lifetimes.buffers] == [
        ("a", 0, 3),
        ("b", 1, 3),
        ("c", 2, 2),
        ("d", 3, 3),
    ]
    assert lifetimes.live == (10, 30, 70, 110)
    assert (lifetimes.weight_bytes, lifetimes.input_bytes) == (320, 160)
    assert [buffer.name for buffer in lifetimes.alive_at(2)] == ["c", "b", "a"]
    planned = liveness(OperatorGraph("four", (relu(8),) * 4, (a, b, c, d, x, w)), inputs=True)
    assert planned.live == (170, 190, 230, 110) and planned.input_bytes == 0
    assert planned.fullest_step == 2


def test_in_place_needs_a_last_reader_of_the_same_shape_that_works_element_by_element() -> None:
    def joined(**changes: object) -> bool:
        old = {"bytes": 64, "shape": (64,), "dtype": "int8", "producer": 0, "consumers": (1,), "output": False}
        kind, access = changes.pop("kind", None), changes.pop("view", 0)
        old |= changes
        x = Value("x", "made", **old)  # type: ignore[arg-type]
        y = Value("y", "made", 64, (64,), "int8", 1, (2,))
        z = Value("z", "made", 64, (64,), "int8", 2, (), True)
        from dataclasses import replace

        from mlsys.workloads.graph import Access

        second = relu(64) if kind is None else replace(relu(64), kind=str(kind))
        readers = [(), (Access(0, x.bytes, int(access)),), (Access(1, 64),)]  # type: ignore[call-overload]
        if 2 in x.consumers:
            readers[2] = (Access(0, x.bytes), Access(1, 64))
        graph = OperatorGraph("g", (relu(64), second, replace(relu(64), kind="gemm")), (x, y, z), tuple(readers))
        return any(buffer.values == ("x", "y") for buffer in liveness(graph, in_place=True).buffers)

    assert joined()
    assert joined(kind="activation")
    assert not joined(kind="softmax")
    assert not joined(kind="gemm")
    assert not joined(consumers=(1, 2)), "somebody still needs it"
    assert not joined(output=True), "the caller still needs it"
    assert not joined(shape=(8, 8)), "broadcast or reshaped"
    assert not joined(bytes=128)
    assert not joined(dtype="uint8")
    assert not joined(view=3), "read through a transposed view"


def test_what_the_network_writes_in_place_shares_memory_by_default() -> None:
    class InPlace(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu_(x + 1) * 2

    graph = Workload.from_torch(InPlace(), torch.zeros(256)).graph
    assert plan_memory(graph, alignment=BYTE).sum.magnitude == 2 * 1024
    assert plan_memory(graph, alignment=BYTE, in_place=True).sum.magnitude == 1024


def test_on_streams_nobody_may_still_be_reading_what_is_overwritten() -> None:
    x = Value("x", "made", 64, (64,), "int8", 0, (1, 2))
    y, z = (Value(name, "made", 64, (64,), "int8", producer, (), True) for producer, name in ((1, "y"), (2, "z")))
    graph = OperatorGraph("fork", (relu(64),) * 3, (x, y, z))
    both = schedule_streams(graph, Q_([1.0, 1.0, 1.0], "s"), streams=2)
    assert plan_memory(graph, in_place=True).sum.magnitude == 2 * 64
    assert plan_memory(graph, in_place=True, schedule=both).sum.magnitude == 3 * 64


def test_writing_into_an_input_needs_no_memory_of_its_own() -> None:
    x = Value("x", "input", 64, consumers=(0,))
    y = Value("y", "made", 64, producer=0, output=True, overwrites=0)
    plan = plan_memory(OperatorGraph("g", (relu(64),), (x, y)))
    assert plan.placements == () and plan.peak.magnitude == 0


# --- replay ------------------------------------------------------------------------


class Branches(nn.Module):
    """Convolutions, a residual, a concatenation, a view, a sum with itself transposed, something in place."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.left, self.right = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 4, 3, padding=1)
        self.join = nn.Conv2d(12, 8, 1)
        self.head = nn.Linear(8 * 8 * 8, 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.stem(x)
        y = self.join(torch.cat([self.left(x).relu(), self.right(x)], 1))
        x = torch.sigmoid(x + y)
        x = x + x.transpose(2, 3)
        return self.head(x.flatten(1)), x.mean((2, 3))


class InOneBlock(torch.fx.Interpreter):
    """Runs an exported network with every activation at its planned offset; what is overwritten is lost."""

    def __init__(self, module: torch.fx.GraphModule, plan: MemoryPlan) -> None:
        super().__init__(module)
        self.block = torch.full((int(plan.peak.magnitude),), 255, dtype=torch.uint8)  # NaN, wherever it is read
        self.places = {name: buffer for buffer in plan.placements for name in buffer.values}
        self.placed = 0

    def run_node(self, node: torch.fx.Node) -> object:
        value = self.places.get(node.name)
        before = None if value is None or node.name != value.name else self.block[value.offset :][: value.bytes]
        if before is not None:
            before.fill_(255)  # before it runs: its inputs must lie elsewhere
        made = super().run_node(node)
        if value is None or not isinstance(made, torch.Tensor):
            return made
        if made.untyped_storage().data_ptr() == self.block.untyped_storage().data_ptr():
            return made  # written in place by the network itself
        raw = self.block[value.offset :][: made.numel() * made.element_size()]
        there = raw.view(made.dtype).as_strided(made.shape, made.stride())
        there.copy_(made)
        self.placed += 1
        return there


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("strategy", [*STRATEGIES, "best"])
def test_a_network_runs_in_the_planned_block(strategy: str, in_place: bool) -> None:
    torch.manual_seed(0)
    model, x = Branches().eval(), torch.randn(2, 3, 8, 8)
    plan = plan_memory(Workload.from_torch(model, x), strategy=strategy, in_place=in_place)
    outputs, replay = replayed(model, x, plan)
    assert replay.placed >= 10
    for expected, output in zip(model(x), outputs, strict=True):
        torch.testing.assert_close(output, expected, rtol=0, atol=0)


def test_the_replay_sees_a_wrong_plan() -> None:
    torch.manual_seed(0)
    model, x = Branches().eval(), torch.randn(2, 3, 8, 8)
    plan = plan_memory(Workload.from_torch(model, x))
    from dataclasses import replace

    wrong = []
    for k, buffer in enumerate(plan.placements):
        moved = replace(plan, placements=(*plan.placements[:k], replace(buffer, offset=0), *plan.placements[k + 1 :]))
        outputs, _ = replayed(model, x, moved)
        same = all(torch.equal(a, b) for a, b in zip(model(x), outputs, strict=True))
        assert same == no_overlap(moved), buffer.name
        wrong.append(not same)
    assert sum(wrong) >= 4


@functools.cache
def exported(model: nn.Module, x: torch.Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(model, (x,))


def replayed(model: nn.Module, x: torch.Tensor, plan: MemoryPlan) -> tuple[list[torch.Tensor], InOneBlock]:
    program = exported(model, x)
    held = {**dict(program.named_parameters()), **dict(program.named_buffers())}
    inputs = program.graph_signature.inputs_to_parameters | program.graph_signature.inputs_to_buffers
    replay = InOneBlock(program.graph_module, plan)
    names = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    with torch.no_grad():
        outputs = replay.run(*(held[inputs[name]] if name in inputs else x for name in names))
    return [output.clone() for output in outputs], replay


# --- order, fit, streams -----------------------------------------------------------


def fork() -> OperatorGraph:
    """Two branches that widen and then narrow: one after the other is better than side by side."""
    wide = [Value(f"wide{i}", "made", 9000, producer=i, consumers=(i + 2,)) for i in (0, 1)]
    thin = [Value(f"thin{i}", "made", 1000, producer=i + 2, consumers=(4,)) for i in (0, 1)]
    end = Value("end", "made", 1000, producer=4, output=True)
    return OperatorGraph("fork", (relu(64),) * 5, (*wide, *thin, end))


def test_a_lean_order_is_proved_and_can_be_planned() -> None:
    order = lean_order(fork())
    assert order.proved and order.largest_live.magnitude == 11_000 < order.before.magnitude == 19_000
    assert plan_memory(fork(), order=order.order, alignment=BYTE).peak == order.largest_live
    bounded = lean_order(fork(), limit=1)
    assert not bounded.proved and bounded.largest_live == order.largest_live


def test_the_solver_closes_the_gap_that_rules_leave_in_densenet() -> None:
    fused = fuse(workload("densenet121", batch=1))
    rules, exact = compare_strategies(fused), plan_memory(fused, strategy="exact")
    assert rules[0].peak > 1.1 * rules[0].lower_bound and not rules[0].proved
    assert exact.peak == exact.lower_bound == 9 * 802_816 * BYTE and exact.proved
    assert no_overlap(exact)


@pytest.mark.parametrize("name", ["resnet50", "densenet121"])
def test_deep_networks_are_planned_and_ordered(name: str) -> None:
    graph = workload(name, batch=1).graph
    assert all(plan.peak < plan.sum / 12 for plan in compare_strategies(graph))
    assert lean_order(graph).proved


def test_fit_on_a_microcontroller_and_a_gpu() -> None:
    plan = plan_memory(workload("mobilenet-v2", batch=1), in_place=True)
    small, large = fits_on(plan, Hardware.Tiny.nRF52840), fits_on(plan, Hardware.Cloud.A100)
    assert not small.fits and not small.shared and "does not fit" in small.explain()
    assert small.working == plan.peak + plan.inputs and small.weights == plan.weights
    assert large.fits and large.shared
    assert large.needed == plan.peak + plan.inputs + plan.weights
    assert not fits_on(plan, Hardware.Cloud.A100, reserved=Q_(80, "GB")).fits
    little = plan_memory(chain(1000, 1000))
    assert fits_on(little, Hardware.Tiny.nRF52840).fits


def test_a_plan_for_one_stream_may_fail_on_two() -> None:
    graph = fork()
    lean = plan_memory(graph, order=lean_order(graph).order, alignment=BYTE)
    times = Q_([1.0] * 5, "ms")
    assert conflicts(lean, schedule_streams(graph, times, streams=2)) == (("wide0", "wide1"),)
    assert conflicts(plan_memory(graph, alignment=BYTE), schedule_streams(graph, times, streams=1)) == ()


def test_a_plan_for_the_streams_holds_and_needs_more() -> None:
    fused = fuse(workload("resnet50", batch=32, precision="fp16"))
    schedule = schedule_streams(fused, roofline(Hardware.Cloud.A100, fused), streams=2)
    serial, two = plan_memory(fused), plan_memory(fused, schedule=schedule)
    assert len(conflicts(serial, schedule)) == 4
    assert conflicts(two, schedule) == ()
    assert two.peak >= serial.peak and two.lower_bound <= two.peak <= two.sum == serial.sum
    with pytest.raises(ArgumentError, match="replaces `order`"):
        plan_memory(fused, schedule=schedule, order=range(56))
    with pytest.raises(ArgumentError, match="got one of 'resnet50' for 'fork'"):
        plan_memory(fork(), schedule=schedule)


# --- errors ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (
            lambda: plan_memory(zoo.network("resnet50")),
            ArgumentError,
            "`workload` must be a captured network or an OperatorGraph",
        ),
        (lambda: plan_memory(Workload.from_network(zoo.network("resnet50"))), ArgumentError, "built by hand"),
        (lambda: plan_memory(OperatorGraph("none", (), ())), ArgumentError, "'none' has no operators"),
        (lambda: plan_memory(fork(), strategy="sise"), UnknownNameError, "Did you mean 'size'?"),
        (lambda: plan_memory(fork(), alignment=64), ArgumentUnitError, "`alignment` must be a quantity in byte"),
        (lambda: plan_memory(fork(), alignment=Q_(0, "byte")), ArgumentError, "a whole number >= 1 in byte"),
        (lambda: plan_memory(fork(), alignment=Q_(1.5, "byte")), ArgumentError, "a whole number >= 1 in byte"),
        (lambda: plan_memory(fork(), alignment=Q_(1, "s")), ArgumentUnitError, "which is [time]"),
        (lambda: liveness(fork(), order=[0, 1]), ArgumentError, "must name each of the operators 0 to 4 once"),
        (lambda: liveness(fork(), order=[4, 0, 1, 2, 3]), ArgumentError, "runs operator 4 (ReLU) before operator 2"),
        (lambda: lean_order(fork(), limit=0), ArgumentError, "`limit` must be a whole number >= 1"),
        (lambda: lean_order(fork(), width=True), ArgumentError, "`width` must be a whole number >= 1"),
        (
            lambda: fits_on(plan_memory(fork()), Hardware.Cloud.A100, reserved=Q_(-1, "byte")),
            ArgumentError,
            "`reserved` must be a finite number >= 0 in byte",
        ),
        (lambda: fits_on(plan_memory(fork()), "A100"), ArgumentError, "must be a device, such as Hardware.Cloud.A100"),  # type: ignore[arg-type]
        (
            lambda: conflicts(plan_memory(chain(1, 1)), schedule_streams(fork(), Q_([1.0] * 5, "ms"))),
            ArgumentError,
            "Plan and schedule the same network",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(wrong: Callable[[], object], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        wrong()
    assert text in str(caught.value)


def test_the_exact_strategy_takes_any_number_of_buffers() -> None:
    small = 45  # alive throughout, on top of a case that no rule solves
    sizes = np.array([4000, 1000, 3000, 5000, 3000] + [1] * small)
    first, last = np.array([2, 0, 0, 0, 1] + [0] * small), np.array([5, 3, 2, 0, 2] + [5] * small)
    plan = plan_memory(as_graph(sizes, first, last), strategy="exact", alignment=BYTE)
    assert plan.peak.magnitude == 11_000 + small and no_overlap(plan) and plan.proved


def test_explain_and_table_say_what_was_planned(resnet: Workload) -> None:
    plan = plan_memory(resnet, in_place=True)
    text = plan.explain()
    assert "231.2 MB hold" in text and "no plan for this order is smaller" in text
    assert "102.4 MB of weights and 19.27 MB of inputs" in text
    assert len(plan.table(5).rows) == 5 and len(plan.table().rows) == len(plan.placements)
    assert "above the lower bound" in plan_memory(resnet, in_place=True, strategy="first-come").explain()
