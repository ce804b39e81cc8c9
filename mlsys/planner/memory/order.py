"""Execution orders that need less memory: exact search over sets of finished operators, with bounds."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mlsys.planner.graphs import graph_of
from mlsys.planner.memory.liveness import liveness
from mlsys.unit_checks import checked_count
from mlsys.units import Quantity

if TYPE_CHECKING:
    from mlsys.workloads.graph import OperatorGraph
    from mlsys.workloads.workload import Workload


@dataclass(frozen=True)
class OperatorOrder:
    """A valid execution order of the operators.

    Attributes
    ----------
    order
        Operator indices.
    largest_live
        Peak of the live bytes.
    before
        The same for the order of the graph.
    proved
        Whether no order needs less.
    """

    order: tuple[int, ...]
    largest_live: Quantity
    before: Quantity
    proved: bool


class _State(NamedTuple):
    """Finished operators, as bits, and the memory that they leave live."""

    peak: int
    left: int
    done: int
    live: int


def lean_order(workload: Workload | OperatorGraph, *, limit: int = 50_000, width: int = 64) -> OperatorOrder:
    """Return an execution order with a peak of live memory as small as can be found.

    Live memory depends on the set of finished operators, not on their order. The search visits these sets, the smallest
    peak first, and ends with a proof; networks with few branches have few of them. If there are more than ``limit``, a
    beam of the best ``width`` sets of each size is used instead, and the order of the graph is kept unless the beam
    finds a better one. Only operators that are in place in the network itself are treated as in place.

    Parameters
    ----------
    workload
        A captured network, or its graph.
    limit
        Number of sets visited before the proof is abandoned.
    width
        Width of the beam.

    Raises
    ------
    ArgumentError
        If the network has no graph, or an option is not a positive whole number.

    References
    ----------
    B. H. Ahn and others, Ordering chaos: memory-aware scheduling of irregularly wired neural networks for edge
    devices, MLSys 2020, for the search over sets.

    Examples
    --------
    >>> from mlsys.workloads import relu
    >>> from mlsys.workloads.graph import OperatorGraph, Value
    >>> wide = [Value(f"wide {i}", "made", 9000, producer=i, consumers=(i + 2,)) for i in (0, 1)]
    >>> thin = [Value(f"thin {i}", "made", 1000, producer=i + 2, consumers=(4,)) for i in (0, 1)]
    >>> end = Value("end", "made", 1000, producer=4, output=True)
    >>> lean = lean_order(OperatorGraph("two branches", (relu(9),) * 5, (*wide, *thin, end)))
    >>> lean.before.magnitude, lean.largest_live.magnitude, lean.proved
    (19000, 11000, True)
    """
    graph = graph_of("lean_order", workload)
    bounds = [checked_count("lean_order", name, value) for name, value in (("limit", limit), ("width", width))]
    search = _Search(graph)
    before = liveness(graph).largest_live
    order, proved = search.exact(bounds[0])
    if order is None:
        order = search.beam(bounds[1])
        if liveness(graph, order=order).largest_live >= before:
            order = tuple(range(len(graph)))
    return OperatorOrder(order, liveness(graph, order=order).largest_live, before, proved)


class _Search:
    """Inputs, outputs and freed memory of each operator, as bits."""

    def __init__(self, graph: OperatorGraph) -> None:
        self.number = len(graph)
        self.needs = [sum(1 << earlier for earlier in graph.waits_for(operator)) for operator in range(self.number)]
        buffers = [[graph.values[index] for index in buffer.places] for buffer in liveness(graph).buffers]
        self.sizes = [max(value.bytes for value in members) for members in buffers]
        self.makers = [sum({1 << v.producer for v in members if v.producer is not None}) for members in buffers]
        self.users = [  # operators that must finish before the buffer is free: readers, and later writers
            sum({1 << user for value in members for user in value.consumers}) | makers
            for members, makers in zip(buffers, self.makers, strict=True)
        ]
        self.kept = [any(value.output for value in members) for members in buffers]
        self.touched: list[list[int]] = [[] for _ in range(self.number)]
        for buffer, users in enumerate(self.users):
            for operator in range(self.number):
                if users >> operator & 1:
                    self.touched[operator].append(buffer)

    def steps(self, state: _State) -> Iterator[tuple[int, _State]]:
        """Yield every operator that can run next, and the resulting state."""
        for operator in range(self.number):
            if state.done >> operator & 1 or self.needs[operator] & ~state.done:
                continue
            done = state.done | 1 << operator
            during, after = state.live, state.live
            for buffer in self.touched[operator]:
                fresh = self.makers[buffer] >> operator & 1 and not self.makers[buffer] & state.done
                during += self.sizes[buffer] if fresh else 0
                after += self.sizes[buffer] if fresh else 0
                if not self.users[buffer] & ~done and not self.kept[buffer]:
                    after -= self.sizes[buffer]
            yield operator, _State(max(state.peak, during), state.left - 1, done, after)

    def exact(self, limit: int) -> tuple[tuple[int, ...] | None, bool]:
        """Return the order with the smallest peak, or None if there are too many sets."""
        start = _State(0, self.number, 0, 0)
        came: dict[int, tuple[int, int]] = {}
        best = {0: 0}
        heap = [start]
        seen = 0
        while heap:
            state = heapq.heappop(heap)
            if state.peak > best[state.done]:
                continue
            if not state.left:
                return self._path(came, state.done), True
            seen += 1
            if seen > limit:
                return None, False
            for operator, following in self.steps(state):
                if following.peak < best.get(following.done, following.peak + 1):
                    best[following.done] = following.peak
                    came[following.done] = state.done, operator
                    heapq.heappush(heap, following)
        raise AssertionError("a graph with a valid order has an optimal one")

    def beam(self, width: int) -> tuple[int, ...]:
        """Return the order found by beam search over sets of each size."""
        came: dict[int, tuple[int, int]] = {}
        front = [_State(0, self.number, 0, 0)]
        for _ in range(self.number):
            following: dict[int, _State] = {}
            for state in front:
                for operator, new in self.steps(state):
                    if new.done not in following or new < following[new.done]:
                        following[new.done] = new
                        came[new.done] = state.done, operator
            front = sorted(following.values(), key=lambda state: (state.peak, state.live))[:width]
        return self._path(came, front[0].done)

    @staticmethod
    def _path(came: dict[int, tuple[int, int]], done: int) -> tuple[int, ...]:
        order = []
        while done:
            done, step = came[done]
            order.append(step)
        return tuple(reversed(order))
