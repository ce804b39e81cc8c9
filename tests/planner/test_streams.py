"""Schedules on streams: against the best of all schedules, by hand, and on real networks."""

import functools
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from mlsys.errors import ArgumentError, ArgumentUnitError
from mlsys.hardware import Hardware
from mlsys.models import roofline
from mlsys.planner.streams import Schedule, schedule_streams
from mlsys.units import Q_
from mlsys.workloads import load, relu
from mlsys.workloads.graph import OperatorGraph, Value


def graph_with(edges: set[tuple[int, int]], number: int) -> OperatorGraph:
    values = tuple(
        Value(f"v{i}", "made", 8, producer=i, consumers=tuple(sorted(b for a, b in edges if a == i)))
        for i in range(number)
    )
    return OperatorGraph("drawn", (relu(8),) * number, values)


def shortest(edges: set[tuple[int, int]], times: list[int], streams: int) -> int:
    """The best makespan, by trying at every moment every set of operators that could start, waiting included."""
    number = len(times)
    before = [sum(1 << a for a, b in edges if b == i) for i in range(number)]

    @functools.cache
    def rest(done: int, running: tuple[tuple[int, int], ...]) -> int:
        if done == (1 << number) - 1:
            return 0
        busy = {operator for operator, _ in running}
        best = 10**9
        ready = [i for i in range(number) if not done >> i & 1 and i not in busy and not before[i] & ~done]
        if len(running) < streams:
            for i in ready:
                best = min(best, rest(done, tuple(sorted((*running, (i, times[i]))))))
        if running:
            step = min(left for _, left in running)
            finished = sum(1 << operator for operator, left in running if left == step)
            later = tuple((operator, left - step) for operator, left in running if left > step)
            best = min(best, step + rest(done | finished, later))
        return best

    return rest(0, ())


def respects(schedule: Schedule) -> bool:
    """Nothing starts before what it waits for has ended, and a stream runs one operator at a time."""
    for index, task in enumerate(schedule.tasks):
        if any(schedule.tasks[earlier].end > task.start for earlier in schedule.graph.waits_for(index)):
            return False
    for stream in range(schedule.streams):
        mine = sorted((task.start, task.end) for task in schedule.tasks if task.stream == stream)
        if any(a[1] > b[0] for a, b in itertools.pairwise(mine)):
            return False
    return True


@pytest.mark.parametrize("seed", range(25))
def test_schedules_are_near_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    number, streams = int(rng.integers(3, 7)), int(rng.integers(1, 4))
    edges = {(a, b) for a in range(number) for b in range(a + 1, number) if rng.random() < 0.35}
    times = [int(t) for t in rng.integers(1, 8, number)]
    scheduled = schedule_streams(graph_with(edges, number), Q_([float(t) for t in times], "s"), streams=streams)
    best = shortest(edges, times, streams)
    assert respects(scheduled)
    assert scheduled.lower_bound.m_as("s") <= best <= scheduled.makespan.m_as("s")
    assert scheduled.makespan.m_as("s") <= (2 - 1 / streams) * best + 1e-9, "Graham 1969"


def test_the_longest_chain_goes_first() -> None:
    """Three short ones and a chain: whoever starts with the short ones loses."""
    edges, times = {(3, 4), (4, 5)}, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    scheduled = schedule_streams(graph_with(edges, 6), Q_(times, "s"), streams=2)
    assert scheduled.makespan.m_as("s") == 3 == scheduled.lower_bound.m_as("s")
    assert scheduled.critical == (3, 4, 5)
    assert scheduled.speedup == 2.0


def test_a_schedule_that_greed_makes_longer_than_the_best() -> None:
    """No stream may idle by choice, which costs here: the best schedule waits for the long chain."""
    edges, times = {(0, 2)}, [1, 4, 9, 4]
    scheduled = schedule_streams(graph_with(edges, 4), Q_([float(t) for t in times], "s"), streams=2)
    assert scheduled.makespan.m_as("s") >= shortest(edges, times, 2)


def test_work_in_place_waits_for_the_readers_of_what_it_overwrites() -> None:
    a = Value("a", "made", 8, producer=0, consumers=(1, 2))
    b = Value("b", "made", 8, producer=1)
    c = Value("c", "made", 8, producer=2, overwrites=0)
    scheduled = schedule_streams(OperatorGraph("g", (relu(8),) * 3, (a, b, c)), Q_([1.0, 5.0, 1.0], "s"), streams=2)
    assert scheduled.tasks[2].start == scheduled.tasks[1].end == 6


def test_times_of_a_model_and_a_real_network() -> None:
    squeezed = load("squeezenet-1.0", batch=32, precision="fp16")
    result = roofline(Hardware.Cloud.A100, squeezed)
    single, two, many = (schedule_streams(squeezed, result, streams=streams) for streams in (1, 2, 8))
    assert single.makespan.m_as("s") == pytest.approx(result.time.m_as("s"), rel=1e-12)
    assert single.work.m_as("s") == pytest.approx(result.time.m_as("s"), rel=1e-12)
    assert two.makespan.m_as("s") == pytest.approx(two.critical_path.m_as("s"), rel=1e-12)
    assert many.makespan.m_as("s") == pytest.approx(two.makespan.m_as("s"), rel=1e-12), "two branches, two streams"
    assert 1.1 < two.speedup < 1.3
    assert respects(two) and {task.stream for task in two.tasks} == {0, 1}
    assert {task.stream for task in many.tasks} < set(range(8))
    assert "critical path of 48 of 64 operators" in two.explain()


def test_operators_that_take_no_time() -> None:
    scheduled = schedule_streams(graph_with({(0, 1), (1, 2)}, 3), Q_([0.0, 0.0, 0.0], "s"))
    assert scheduled.makespan.magnitude == 0 and scheduled.speedup == 1.0 and scheduled.critical == (0, 1, 2)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda g: schedule_streams(g, Q_([1.0] * 2, "s")), ArgumentError, "one time for each of 3 operators, got 2"),
        (lambda g: schedule_streams(g, [1.0] * 3), ArgumentUnitError, "`times` must be a quantity in s"),
        (lambda g: schedule_streams(g, Q_([1.0] * 3, "byte")), ArgumentUnitError, "which is [information]"),
        (lambda g: schedule_streams(g, Q_([1.0, -1.0, 1.0], "s")), ArgumentError, "a finite number >= 0 in s"),
        (lambda g: schedule_streams(g, Q_([1.0, float("nan"), 1.0], "s")), ArgumentError, "a finite number >= 0 in s"),
        (lambda g: schedule_streams(g, Q_(1.0, "s")), ArgumentUnitError, "one time for each operator"),
        (lambda g: schedule_streams(g, Q_([1.0] * 3, "s"), streams=0), ArgumentError, "`streams` must be a whole"),
        (lambda g: schedule_streams(g, Q_([1.0] * 3, "s"), streams=1.5), ArgumentError, "`streams` must be a whole"),
        (lambda g: schedule_streams(g, Q_([1.0] * 3, "s"), streams=True), ArgumentError, "`streams` must be a whole"),
        (
            lambda g: schedule_streams(g, roofline(Hardware.Cloud.A100, relu(8))),
            ArgumentError,
            "with 0 children, but 'drawn' has 3 operators",
        ),
    ],
)
def test_bad_input_is_refused(wrong: Callable[[OperatorGraph], object], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        wrong(graph_with({(0, 1)}, 3))
    assert text in str(caught.value)
