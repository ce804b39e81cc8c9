"""Concurrent operators on several streams: list scheduling by the critical path."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mlsys.errors import ArgumentError, ArgumentUnitError
from mlsys.models.result import Result
from mlsys.planner.graphs import graph_of
from mlsys.provenance import traced
from mlsys.unit_checks import checked_count, checked_number, nonnegative
from mlsys.units import Quantity, ureg

if TYPE_CHECKING:
    from mlsys.workloads.graph import OperatorGraph
    from mlsys.workloads.workload import Workload

_SECOND = ureg.Unit("s")


class Task(NamedTuple):
    """One operator on one stream, with start and end in seconds."""

    operator: int
    stream: int
    start: float
    end: float


@dataclass(frozen=True)
class Schedule:
    """Schedule of operators on streams.

    Attributes
    ----------
    graph
        The scheduled graph.
    streams
        Number of streams, used or not.
    tasks
        One per operator, in the order of the graph.
    """

    graph: OperatorGraph
    streams: int
    tasks: tuple[Task, ...]

    @property
    def makespan(self) -> Quantity:
        """Time from the first start to the last end."""
        return ureg.Quantity(max(task.end for task in self.tasks), _SECOND)

    @property
    def work(self) -> Quantity:
        """Time on a single stream: the sum of all times."""
        return ureg.Quantity(sum(task.end - task.start for task in self.tasks), _SECOND)

    @property
    def critical_path(self) -> Quantity:
        """Longest chain of dependent operators: a lower bound for any number of streams."""
        return ureg.Quantity(float(max(self._tails)), _SECOND)

    @cached_property
    def _tails(self) -> np.ndarray:
        return _tails(self.graph, [task.end - task.start for task in self.tasks])

    @property
    def lower_bound(self) -> Quantity:
        """The longer of the critical path and an equal share of the work."""
        bound = max(self.critical_path.m_as("s"), self.work.m_as("s") / self.streams)
        return ureg.Quantity(min(bound, self.makespan.m_as("s")), _SECOND)  # sums in another order differ by rounding

    @property
    def speedup(self) -> float:
        """Ratio of the time on one stream to the makespan."""
        span = self.makespan.m_as("s")
        return float(self.work.m_as("s") / span) if span else 1.0

    @property
    def critical(self) -> tuple[int, ...]:
        """Indices of the operators of one longest chain, in execution order."""
        after = _followers(self.graph)
        chain = [int(np.argmax(self._tails))]
        while after[chain[-1]]:
            chain.append(max(after[chain[-1]], key=lambda operator: self._tails[operator]))
        return tuple(chain)

    def explain(self) -> str:
        """Return the times and their bounds, as sentences."""
        chain = self.critical
        first, last = (self.graph.operators[step].name for step in (chain[0], chain[-1]))
        return "\n".join(
            (
                f"{self.graph.name} on {self.streams} streams: {self.makespan.to_compact():.4g}, "
                f"{self.speedup:.2f} times as fast as on one.",
                f"One stream takes {self.work.to_compact():.4g}; the critical path of {len(chain)} of "
                f"{len(self.graph)} operators, {first} to {last}, {self.critical_path.to_compact():.4g}.",
                f"No schedule is faster than {self.lower_bound.to_compact():.4g}.",
                "Assumptions: an operator takes as long next to others as alone, and streams wait for each other "
                "at no cost.",
            )
        )


def _followers(graph: OperatorGraph) -> list[list[int]]:
    after: list[list[int]] = [[] for _ in range(len(graph))]
    for index in range(len(graph)):
        for earlier in graph.waits_for(index):
            after[earlier].append(index)
    return after


def _tails(graph: OperatorGraph, times: Sequence[float]) -> np.ndarray:
    """Return the longest chain from the start of each operator to the end of the run, shape (operators,)."""
    tails = np.array(times, float)
    longest = np.zeros(len(tails))
    for operator in reversed(range(len(graph))):
        tails[operator] += longest[operator]
        for earlier in graph.waits_for(operator):
            longest[earlier] = max(longest[earlier], tails[operator])
    return tails


@traced
def schedule_streams(
    workload: Workload | OperatorGraph,
    times: Result | Quantity | Sequence[Quantity],
    *,
    streams: int = 2,
) -> Schedule:
    """Return a list schedule, in which no stream idles while an operator is ready to run.

    Of the ready operators, the one with the longest remaining chain runs first. The makespan is at least the critical
    path and an equal share of the work, and by Graham's bound at most ``work / streams + (1 - 1 / streams) × critical
    path``, and so within ``2 - 1 / streams`` of the optimum.

    Parameters
    ----------
    workload
        A captured network, or its graph.
    times
        Result of a model for that network, whose children are its operators; or a time for each, s.
    streams
        Number of operators that can run at once.

    Returns
    -------
    Schedule

    Raises
    ------
    ArgumentError, ArgumentUnitError
        If the number of times is not that of the operators, or a value is negative or not a time.

    References
    ----------
    R. L. Graham, Bounds on multiprocessing timing anomalies, SIAM J. Appl. Math. 17(2), 1969.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> from mlsys.workloads import relu
    >>> from mlsys.workloads.graph import OperatorGraph, Value
    >>> stem = Value("stem", "made", 1, producer=0, consumers=(1, 2))
    >>> left, right = (Value(f"branch {i}", "made", 1, producer=i, consumers=(3,)) for i in (1, 2))
    >>> graph = OperatorGraph("fork", (relu(9),) * 4, (stem, left, right, Value("end", "made", 1, producer=3)))
    >>> schedule = schedule_streams(graph, Q_([1.0, 3.0, 2.0, 1.0], "ms"), streams=2)
    >>> print(f"{schedule.makespan.to('ms'):.0f~P} instead of {schedule.work.to('ms'):.0f~P}", schedule.critical)
    5 ms instead of 7 ms (0, 1, 3)
    """
    graph = graph_of("schedule_streams", workload)
    number = checked_count("schedule_streams", "streams", streams)
    seconds = _seconds(graph, times)
    tails = _tails(graph, seconds)
    after = _followers(graph)
    waiting = [len(graph.waits_for(index)) for index in range(len(graph))]
    ready = [(-tails[index], index) for index in range(len(graph)) if not waiting[index]]
    heapq.heapify(ready)
    free = list(range(number))
    running: list[tuple[float, int, int]] = []
    tasks: dict[int, Task] = {}
    now = 0.0
    while ready or running:
        while ready and free:
            _, operator = heapq.heappop(ready)
            stream = heapq.heappop(free)
            tasks[operator] = Task(operator, stream, now, now + seconds[operator])
            heapq.heappush(running, (tasks[operator].end, operator, stream))
        now = running[0][0]
        while running and running[0][0] <= now:
            _, done, stream = heapq.heappop(running)
            heapq.heappush(free, stream)
            for later in after[done]:
                waiting[later] -= 1
                if not waiting[later]:
                    heapq.heappush(ready, (-tails[later], later))
    return Schedule(graph, number, tuple(tasks[index] for index in range(len(graph))))


def _seconds(graph: OperatorGraph, times: Result | Quantity | Sequence[Quantity]) -> list[float]:
    """Return the time of each operator in seconds, checked."""
    where = "schedule_streams"
    if isinstance(times, Result):
        names = [child.workload for child in times.children]
        if names != [operator.name for operator in graph.operators]:
            raise ArgumentError(
                f"{where}(): `times` is a result on {times.workload!r} with {len(names)} children, but {graph.name!r} "
                f"has {len(graph)} operators of other names. Write e.g. times=roofline(device, workload)"
            )
        return [float(child.time.m_as("s")) for child in times.children]
    given = list(times) if isinstance(times, Sequence) or (isinstance(times, Quantity) and np.ndim(times)) else None
    if given is None:
        raise ArgumentUnitError(
            f"{where}(): `times` must be a result or one time for each operator, got {times!r}. "
            f'Write e.g. times=Q_([1.0] * {len(graph)}, "ms")'
        )
    if len(given) != len(graph):
        raise ArgumentError(
            f"{where}(): `times` must have one time for each of {len(graph)} operators, got {len(given)}. "
            f'Write e.g. times=Q_([1.0] * {len(graph)}, "ms")'
        )
    factors: dict[object, float] = {}
    return [float(checked_number(where, "times", operator, nonnegative("s"), factors)) for operator in given]
