"""Fusion on random graphs, by brute force: disjoint, convex, in an order that runs, never more bytes, no favourites."""

import itertools
import math
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlsys.frozen import FrozenDict
from mlsys.mapping.fusion import DEFAULT_PATTERNS, FusionGroup, find_groups
from mlsys.mapping.fusion.match import traffic_of
from mlsys.units import Q_
from mlsys.workloads.counted_operator import CountedOperator
from mlsys.workloads.graph import OperatorGraph, Value
from mlsys.workloads.torch_import.rules.counts import Counts

KINDS = {
    "conv": ("conv2d", "aten.conv2d.default", 1, True),
    "norm": ("normalisation", "aten.batch_norm.default", 1, True),
    "layer_norm": ("normalisation", "aten.layer_norm.default", 1, True),
    "linear": ("gemm", "aten.linear.default", 1, True),
    "matmul": ("gemm", "aten.matmul.default", 2, False),
    "softmax": ("softmax", "aten.softmax.int", 1, False),
    "add": ("elementwise", "aten.add.Tensor", 2, False),
    "relu": ("activation", "aten.relu.default", 1, False),
    "relu_": ("activation", "aten.relu_.default", 1, False),
    "cumsum_": ("reduction", "aten.cumsum_.default", 1, False),
    "mul": ("elementwise", "aten.mul.Tensor", 2, False),
    "pool": ("pooling", "aten.max_pool2d.default", 1, False),
}
KEEPING = {pattern.name for pattern in DEFAULT_PATTERNS if pattern.keeps}
EASY = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def operator(name: str, kind: str) -> CountedOperator:
    family, target, _, _ = KINDS[kind]
    shape = {"elements": 16}
    if family == "gemm":
        shape = {"m": 4, "n": 4, "k": 4, "copies": 1}
    work = 32 if kind == "norm" else 160
    macs = 64 if family in ("gemm", "conv2d") else 0
    counts = Counts(family, macs, work, 0, 0, 0, 0, 0, True, tuple(shape.items()))
    flops = Q_(2 * macs + work, "FLOP")
    return CountedOperator(name, family, "fp32", flops, Q_(0, "byte"), FrozenDict(shape), counts=counts, target=target)


@st.composite
def graphs(draw: st.DrawFn) -> OperatorGraph:
    """Return up to 14 operators that read what earlier ones made; some in place, some results returned."""
    count = draw(st.integers(1, 14))
    values = [Value("x", "input", 64, (4, 4)), Value("y", "input", 64, (4, 4))]
    alive, names, consumers = [0, 1], [], {0: [], 1: []}
    for index in range(count):
        kind = draw(st.sampled_from(sorted(KINDS)))
        _, _, wanted, has_weight = KINDS[kind]
        recent = alive[-3:] if draw(st.booleans()) else alive
        taken = draw(st.lists(st.sampled_from(recent), min_size=1, max_size=wanted, unique=True))
        for value in taken:
            consumers[value].append(index)
        if has_weight:
            values.append(Value(f"w{index}", "weight", 16, (4,)))
            consumers[len(values) - 1] = [index]
        overwrites = taken[0] if kind.endswith("_") else None
        if overwrites is not None:
            alive.remove(overwrites)
        alive.append(len(values))
        consumers[len(values)] = []
        values.append(Value(f"v{index}", "made", 64, (4, 4), "", index, (), False, overwrites))
        names.append((f"{kind}{index}", kind))
    returned = {value for value in alive if draw(st.integers(0, 5)) == 0} | {len(values) - 1}
    values = [
        replace(value, consumers=tuple(consumers[index]), output=index in returned)
        for index, value in enumerate(values)
    ]
    return OperatorGraph("random", tuple(operator(*name) for name in names), tuple(values))


def reachable(graph: OperatorGraph) -> list[set[int]]:
    """For each operator, all that must have run before it."""
    before: list[set[int]] = []
    for index in range(len(graph)):
        waits = graph.waits_for(index)
        before.append(set(waits).union(*(before[other] for other in waits)) if waits else set())
    return before


def shuffled(graph: OperatorGraph, dice: list[float]) -> OperatorGraph:
    """Return the same graph with its operators listed in another order in which they can run."""
    left, order = set(range(len(graph))), []
    for chance in dice[: len(graph)]:
        ready = sorted(operator for operator in left if not left.intersection(graph.waits_for(operator)))
        order.append(ready[int(chance * len(ready))])
        left.remove(order[-1])
    new = {old: index for index, old in enumerate(order)}
    values = tuple(
        replace(
            value,
            producer=None if value.producer is None else new[value.producer],
            consumers=tuple(sorted(new[user] for user in value.consumers)),
        )
        for value in graph.values
    )
    return OperatorGraph(graph.name, tuple(graph.operators[old] for old in order), values)


def crossing(graph: OperatorGraph, group: FusionGroup) -> int:
    """Return the bytes that cross the border of a group, one value after the other."""
    inside, moved = set(group.members), 0
    for index, value in enumerate(graph.values):
        users, made_here = set(value.consumers), value.producer in inside
        if made_here and (users - inside or not users or index in graph.lasting):
            moved += value.bytes
        if not made_here and users & inside:
            moved += value.bytes
    return moved


@given(graphs())
@EASY
def test_groups_are_a_partition_into_convex_sets(graph: OperatorGraph) -> None:
    groups = find_groups(graph, DEFAULT_PATTERNS)
    assert sorted(itertools.chain.from_iterable(group.members for group in groups)) == list(range(len(graph)))
    before = reachable(graph)
    for group in groups:
        inside = set(group.members)
        for outside in set(range(len(graph))) - inside:
            follows, precedes = before[outside] & inside, any(outside in before[member] for member in inside)
            assert not (follows and precedes), (graph.operators, group)


@given(graphs())
@EASY
def test_groups_come_in_an_order_that_runs(graph: OperatorGraph) -> None:
    done: set[int] = set()
    for group in find_groups(graph, DEFAULT_PATTERNS):
        for member in group.members:
            assert set(graph.waits_for(member)) <= done | set(group.members)
        done |= set(group.members)


@given(graphs())
@EASY
def test_bytes_never_rise_and_are_those_that_cross(graph: OperatorGraph) -> None:
    for group in find_groups(graph, DEFAULT_PATTERNS):
        moved = traffic_of(graph, group.members).moved
        alone = sum(crossing(graph, FusionGroup("", (member,))) for member in group.members)
        if len(group.members) > 1:
            assert moved == crossing(graph, group)
            assert group.saved == alone - moved > 0
        if group.pattern not in KEEPING:
            assert len(group.swallowed) == len(group.members) - 1, "every value but the last stays inside"
        for tensor in group.swallowed:
            value = graph.values[tensor]
            assert not value.output
            assert {value.producer, *value.consumers} <= set(group.members)


@given(graphs())
@EASY
def test_members_of_a_group_hang_together(graph: OperatorGraph) -> None:
    """Along edges, whatever stands between them in the list."""
    for group in find_groups(graph, DEFAULT_PATTERNS):
        reached, inside = {group.members[0]}, set(group.members)
        while True:
            more = {p for m in reached for p in (*graph.producers(m), *graph.consumers(m))} & inside - reached
            if not more:
                break
            reached |= more
        assert reached == inside


@given(graphs(), st.lists(st.floats(0, 0.999), min_size=14, max_size=14))
@EASY
def test_the_order_of_independent_operators_makes_no_difference(graph: OperatorGraph, dice: list[float]) -> None:
    other = shuffled(graph, dice)

    def named(graph: OperatorGraph) -> set[tuple[str, frozenset[str], int]]:
        return {
            (group.pattern, frozenset(graph.operators[member].name for member in group.members), group.saved)
            for group in find_groups(graph, DEFAULT_PATTERNS)
        }

    assert named(graph) == named(other)


@given(graphs())
@EASY
def test_more_patterns_never_move_more_than_none(graph: OperatorGraph) -> None:
    def moved(patterns: tuple) -> int:
        return sum(traffic_of(graph, group.members).moved for group in find_groups(graph, patterns))

    nothing = moved(())
    assert nothing == sum(crossing(graph, FusionGroup("", (index,))) for index in range(len(graph)))
    for pattern in DEFAULT_PATTERNS:
        assert moved((pattern,)) <= nothing
    assert moved(DEFAULT_PATTERNS) <= nothing


def made(name: str, producer: int, *consumers: int, overwrites: int | None = None, output: bool = False) -> Value:
    return Value(name, "made", 64, (4, 4), "", producer, consumers, output, overwrites)


def test_a_tie_between_two_branches_is_not_decided_by_the_list() -> None:
    """Two convolutions meet in an addition, which can go with one of them: always with the same one."""
    chosen = set()
    for first, second in (("a", "b"), ("b", "a")):
        operators = [operator(f"{branch} {kind}", kind) for branch in (first, second) for kind in ("conv", "norm")]
        x = Value("x", "input", 64, (4, 4), consumers=(0, 2))
        weights = [Value(f"w{index}", "weight", 16, (4,), consumers=(index,)) for index in range(4)]
        chain = [made("0", 0, 1), made("1", 1, 4), made("2", 2, 3), made("3", 3, 4), made("4", 4, 5)]
        operators += [operator("sum", "add"), operator("rectifier", "relu")]
        values = (x, *weights, *chain, made("5", 5, output=True))
        graph = OperatorGraph("tie", tuple(operators), values)
        longest = max(find_groups(graph, DEFAULT_PATTERNS), key=lambda group: len(group.members))
        chosen.add(frozenset(graph.operators[member].name for member in longest.members))
    assert chosen == {frozenset({"a conv", "a norm", "sum", "rectifier"})}


def test_two_groups_that_would_wait_for_each_other_are_not_made() -> None:
    """v = exp(x); t = sin(v); v.cumsum_(); y = t · v: the sum needs sin to have read v, and the product the sum."""
    values = (
        Value("x", "input", 64, (4, 4), consumers=(0,)),
        made("v", 0, 1, 2),
        made("t", 1, 3),
        made("summed", 2, 3, overwrites=1),
        made("y", 3, 4),
        made("z", 4, output=True),
    )
    kinds = ("relu", "relu", "cumsum_", "mul", "relu")
    graph = OperatorGraph("race", tuple(operator(f"{kind}{n}", kind) for n, kind in enumerate(kinds)), values)
    groups = find_groups(graph, DEFAULT_PATTERNS)
    assert [group.members for group in groups] == [(0,), (1,), (2,), (3,), (4,)]


@given(st.integers(2, 60), st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_a_chain_saves_what_the_law_says(length: int, returned: int) -> None:
    """n operators: 2n passes become 2; each result that is returned on the way starts a new kernel."""
    kept = {index * length // (returned + 1) for index in range(1, returned + 1)} - {0, length}
    values = [Value("v0", "input", 64, (4, 4), consumers=(0,))]
    values += [
        Value(
            f"v{index}",
            "made",
            64,
            (4, 4),
            producer=index - 1,
            consumers=(index,) if index < length else (),
            output=index in kept or index == length,
        )
        for index in range(1, length + 1)
    ]
    graph = OperatorGraph("chain", tuple(operator(f"relu{index}", "relu") for index in range(length)), tuple(values))
    groups = find_groups(graph, DEFAULT_PATTERNS)
    assert len(groups) == len(kept) + 1
    assert sum(traffic_of(graph, group.members).moved for group in groups) == 128 * len(groups)
    assert math.isclose(128 * length, sum(128 + group.saved for group in groups))
