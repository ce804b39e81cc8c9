"""What holds for every plan of memory, every choice of layouts and every schedule on streams."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.planner.layout import choose_layouts, layout_offsets
from mlsys.planner.memory import STRATEGIES, MemoryPlan, conflicts, lean_order, liveness, plan_memory
from mlsys.planner.streams import schedule_streams
from mlsys.units import Q_, Quantity
from mlsys.workloads import conv2d, relu
from mlsys.workloads.graph import OperatorGraph, Value

BYTE = Q_(1, "byte")


@st.composite
def graphs(draw: st.DrawFn, largest: int = 12) -> OperatorGraph:
    """Operators that read some of what was made before; each makes one value, or two."""
    number = draw(st.integers(1, largest))
    values = [Value("x", "input", draw(st.integers(0, 300)), consumers=(0,))]
    for index in range(number):
        for part in range(draw(st.integers(1, 2))):
            later = st.sets(st.integers(index + 1, number - 1), max_size=3) if index + 1 < number else st.just(set())
            values.append(
                Value(
                    f"v{index}.{part}",
                    "made",
                    draw(st.integers(0, 300)),
                    (1,),
                    "int8",
                    index,
                    tuple(sorted(draw(later))),
                    draw(st.booleans()),
                )
            )
    return OperatorGraph("drawn", (relu(8),) * number, tuple(values))


strategies = st.sampled_from([*STRATEGIES, "best"])
alignments = st.sampled_from([1, 16, 64]).map(lambda size: Q_(size, "byte"))


def disjoint(plan: MemoryPlan) -> bool:
    """No two buffers in use at one step share a byte, tried byte by byte."""
    for step in range(len(plan.liveness.steps)):
        used: set[int] = set()
        for buffer in plan.placements:
            if buffer.first <= step <= buffer.last:
                mine = set(range(buffer.offset, buffer.offset + buffer.bytes))
                if used & mine:
                    return False
                used |= mine
    return True


@given(graphs(), strategies, alignments, st.booleans(), st.booleans())
def test_the_peak_lies_between_the_fullest_step_and_the_sum(
    graph: OperatorGraph, strategy: str, alignment: Quantity, in_place: bool, inputs: bool
) -> None:
    plan = plan_memory(graph, strategy=strategy, alignment=alignment, in_place=in_place, inputs=inputs)
    assert plan.liveness.largest_live <= plan.lower_bound <= plan.peak <= plan.sum
    assert plan.proved == (plan.peak == plan.lower_bound)
    assert disjoint(plan)
    assert all(
        buffer.offset % alignment.magnitude == 0 == buffer.bytes % alignment.magnitude for buffer in plan.placements
    )
    again = plan_memory(graph, strategy=strategy, alignment=alignment, in_place=in_place, inputs=inputs)
    assert again == plan, "the same every time"


@given(graphs())
def test_lifetimes_are_what_a_run_would_see(graph: OperatorGraph) -> None:
    """Reference counting, as an interpreter does it: free a value when its last reader is done."""
    lifetimes = liveness(graph)
    held: dict[int, int] = {}
    for step in range(len(graph)):
        for value_index in graph.outputs_of[step]:
            held[value_index] = graph.values[value_index].bytes
        assert lifetimes.live[step] == sum(held.values())
        for value_index in list(held):
            value = graph.values[value_index]
            if not value.output and all(user <= step for user in value.consumers):
                del held[value_index]


@given(graphs(8), st.booleans())
def test_working_in_place_never_needs_more(graph: OperatorGraph, inputs: bool) -> None:
    apart, shared = (liveness(graph, in_place=in_place, inputs=inputs) for in_place in (False, True))
    assert shared.largest_live <= apart.largest_live and shared.sum <= apart.sum
    assert sorted(v for b in shared.buffers for v in b.values) == sorted(v for b in apart.buffers for v in b.values)


def orders(graph: OperatorGraph) -> list[tuple[int, ...]]:
    return [
        order
        for order in itertools.permutations(range(len(graph)))
        if all(order.index(a) < order.index(b) for b in range(len(graph)) for a in graph.waits_for(b))
    ]


@given(graphs(5))
def test_the_lean_order_is_the_best_of_all(graph: OperatorGraph) -> None:
    lean = lean_order(graph)
    assert lean.proved
    assert lean.largest_live == min(liveness(graph, order=order).largest_live for order in orders(graph))
    bounded = lean_order(graph, limit=1, width=2)
    assert lean.largest_live <= bounded.largest_live <= bounded.before
    assert liveness(graph, order=bounded.order).largest_live == bounded.largest_live


times = st.lists(st.floats(0, 10), min_size=12, max_size=12)


@given(graphs(), times, st.integers(1, 4))
def test_schedules_keep_their_bounds(graph: OperatorGraph, drawn: list[float], streams: int) -> None:
    taken = drawn[: len(graph)]
    scheduled = schedule_streams(graph, Q_(taken, "s"), streams=streams)
    span, work, path = (q.m_as("s") for q in (scheduled.makespan, scheduled.work, scheduled.critical_path))
    hair = 1e-9 * (1 + work)
    assert max(path, work / streams) <= span + hair
    assert span <= work / streams + (1 - 1 / streams) * path + hair, "Graham 1969"
    assert span <= work + hair
    for index, task in enumerate(scheduled.tasks):
        assert task.end - task.start == pytest.approx(taken[index], abs=hair)
        assert all(scheduled.tasks[earlier].end <= task.start for earlier in graph.waits_for(index))
    for a, b in itertools.combinations(scheduled.tasks, 2):
        if a.stream == b.stream:
            assert a.end <= b.start or b.end <= a.start
    assert sum(taken[operator] for operator in scheduled.critical) == pytest.approx(path, abs=hair)


@given(graphs(), strategies)
def test_one_stream_in_the_order_of_the_graph_never_breaks_a_plan(graph: OperatorGraph, strategy: str) -> None:
    """A run-time pool that follows the plan never hands out memory that is still in use."""
    one_stream = schedule_streams(graph, Q_([1.0] * len(graph), "s"), streams=1)
    order = sorted(range(len(graph)), key=lambda operator: one_stream.tasks[operator].start)
    plan = plan_memory(graph, strategy=strategy, order=order, alignment=BYTE)
    assert conflicts(plan, one_stream) == ()


@given(graphs(), times, st.integers(1, 4), strategies)
def test_a_plan_for_a_schedule_never_hands_out_memory_in_use(
    graph: OperatorGraph, drawn: list[float], streams: int, strategy: str
) -> None:
    schedule = schedule_streams(graph, Q_(drawn[: len(graph)], "s"), streams=streams)
    plan = plan_memory(graph, strategy=strategy, schedule=schedule, alignment=BYTE)
    assert conflicts(plan, schedule) == ()
    assert plan.lower_bound <= plan.peak <= plan.sum and disjoint(plan)


sizes = st.integers(1, 5)


@given(sizes, sizes, sizes, sizes, st.sampled_from(["NCHW", "NHWC", "NCHW2c", "NCHW4c"]))
def test_every_element_has_its_own_place(n: int, c: int, h: int, w: int, layout: str) -> None:
    offsets = layout_offsets(n, c, h, w, layout)
    assert len(np.unique(offsets)) == offsets.size
    padded = -(-c // int(layout[4])) * int(layout[4]) if layout.endswith("c") else c
    assert offsets.min() == 0 and offsets.max() < n * padded * h * w
    if padded == c:
        assert offsets.max() == offsets.size - 1, "and none is left over"


@given(st.lists(st.integers(0, 200), min_size=2, max_size=7), st.integers(1, 1000))
def test_layouts_never_cost_more_than_one_for_all(drawn: list[int], seed: int) -> None:
    number = len(drawn) - 1
    values = [
        Value(f"v{i}", "input" if not i else "made", size, (1, 4, 5, 5), producer=i - 1 if i else None,
              consumers=(i,) if i < number else (), output=i == number)
        for i, size in enumerate(drawn)
    ]  # fmt: skip
    graph = OperatorGraph("chain", (conv2d(1, 4, 4, 5, 3),) * number, tuple(values))
    prices = np.random.default_rng(seed).integers(0, 300, (number, 2))

    def traffic(_: OperatorGraph, operator: int, layout: str) -> float:
        return float(prices[operator, int(layout == "NHWC")])

    plan = choose_layouts(Q_(1, "GB/s"), graph, traffic=traffic)
    assert plan.method == "tree"
    assert all(plan.moved <= moved for moved in plan.uniform.values())
    assert (
        plan.moved.magnitude == choose_layouts(Q_(1, "GB/s"), graph, traffic=traffic, method="solver").moved.magnitude
    )
