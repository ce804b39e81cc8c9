"""Liveness of tensors: from the operator that makes them to the last one that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.planner.graphs import checked_order, graph_of
from mlsys.provenance import traced
from mlsys.units import Quantity, ureg

if TYPE_CHECKING:
    from mlsys.planner.streams import Schedule
    from mlsys.workloads.graph import OperatorGraph
    from mlsys.workloads.operator import Operator
    from mlsys.workloads.workload import Workload

IN_PLACE_KINDS = ("elementwise", "activation")
_BYTE = ureg.Unit("byte")


@dataclass(frozen=True)
class Buffer:
    """Memory of one value, or of several that reuse it in place.

    Attributes
    ----------
    values
        Names of the values, in the order in which they are made.
    bytes
        Size of the largest of them.
    first, last
        Steps between which it is in use, both included.
    places
        Indices of the values in the graph.
    """

    values: tuple[str, ...]
    bytes: int
    first: int
    last: int
    places: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Name of the first value."""
        return self.values[0]


@dataclass(frozen=True)
class Liveness:
    """Contents of memory at each step of a run.

    Attributes
    ----------
    network
        Name.
    steps
        Names of the operators in execution order; on several streams a step is the time between two starts or ends,
        named after the operators that start then.
    buffers
        Buffers to be placed, by the step of first use.
    weight_bytes
        Weights and constants, which are live throughout.
    input_bytes
        Inputs kept by the caller; zero if the inputs are among the buffers.
    in_place, inputs
        Options of the analysis.
    operators
        Number of operators of the network.
    """

    network: str
    steps: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    weight_bytes: int
    input_bytes: int
    in_place: bool = False
    inputs: bool = False
    operators: int = 0

    @cached_property
    def live(self) -> tuple[int, ...]:
        """Live bytes at each step: inputs and outputs of the operator, and values for later ones."""
        return tuple(map(int, live_bytes([b.bytes for b in self.buffers], self._first, self._last, len(self.steps))))

    @property
    def _first(self) -> list[int]:
        return [buffer.first for buffer in self.buffers]

    @property
    def _last(self) -> list[int]:
        return [buffer.last for buffer in self.buffers]

    @property
    def largest_live(self) -> Quantity:
        """Peak of the live bytes: a lower bound for this order."""
        return ureg.Quantity(max(self.live, default=0), _BYTE)

    @property
    def fullest_step(self) -> int:
        """First step at the peak."""
        return int(np.argmax(self.live)) if self.live else 0

    @property
    def sum(self) -> Quantity:
        """Sum of all buffers, without any reuse."""
        return ureg.Quantity(sum(buffer.bytes for buffer in self.buffers), _BYTE)

    def alive_at(self, step: int) -> tuple[Buffer, ...]:
        """Return the buffers live at a step, largest first."""
        alive = [buffer for buffer in self.buffers if buffer.first <= step <= buffer.last]
        return tuple(sorted(alive, key=lambda buffer: -buffer.bytes))


def live_bytes(sizes: Sequence[int], first: Sequence[int], last: Sequence[int], steps: int) -> np.ndarray:
    """Return the live bytes at each step, shape (steps,)."""
    change = np.zeros(steps + 1, np.int64)
    np.add.at(change, np.asarray(first, np.int64), np.asarray(sizes, np.int64))
    np.subtract.at(change, np.asarray(last, np.int64) + 1, np.asarray(sizes, np.int64))
    return np.cumsum(change)[:-1]


@traced
def liveness(
    workload: Workload | OperatorGraph,
    *,
    order: Sequence[int] | None = None,
    schedule: Schedule | None = None,
    in_place: bool = False,
    inputs: bool = False,
) -> Liveness:
    """Return the lifetime of each tensor of a network.

    A value made by an operator lives from that operator to the last one that reads it, both included, since an operator
    reads its inputs while it writes its outputs. Outputs of the network live to the end. Weights and constants are
    counted separately, and so are the inputs, which the caller keeps.

    Parameters
    ----------
    workload
        A captured network, or its graph.
    order
        Operator indices in execution order; by default the order of the graph.
    schedule
        Start and end of each operator, instead of an order: on several streams values live longer.
    in_place
        Whether an element-wise operator may overwrite an input that is not read later. In-place operators of the
        network itself are always in place.
    inputs
        Whether to plan the inputs too, from the first step to their last reader, as on a microcontroller.

    Returns
    -------
    Liveness

    Raises
    ------
    ArgumentError
        If the network has no graph, or cannot run in that order.

    Examples
    --------
    >>> from mlsys.workloads import relu
    >>> from mlsys.workloads.graph import OperatorGraph, Value
    >>> a = Value("a", "made", 8192, producer=0, consumers=(1,))
    >>> b = Value("b", "made", 8192, producer=1, consumers=(2,))
    >>> c = Value("c", "made", 8192, producer=2, output=True)
    >>> three = OperatorGraph("three rectifiers", (relu(4096),) * 3, (a, b, c))
    >>> liveness(three).live
    (8192, 16384, 16384)
    >>> [(buffer.values, buffer.first, buffer.last) for buffer in liveness(three, in_place=True).buffers]
    [(('a', 'b', 'c'), 0, 2)]
    """
    graph = graph_of("liveness", workload)
    starts, ends, steps = _runs("liveness", graph, order, schedule)
    final = len(steps) - 1
    spans: dict[int, tuple[int, int]] = {}
    for index, value in enumerate(graph.values):
        if value.role == "made" or (inputs and value.role == "input"):
            born = 0 if value.producer is None else starts[value.producer]
            users = [*value.consumers, *(() if value.producer is None else (value.producer,))]
            spans[index] = born, final if value.output else max((ends[user] for user in users), default=born)
    buffers = []
    operators = range(len(graph)) if in_place else ()
    reused = [pair for operator in operators if (pair := _reusable(graph, operator, starts, ends))]
    for group in _groups(graph, spans, reused):
        first, last = min(spans[member][0] for member in group), max(spans[member][1] for member in group)
        members = tuple(sorted(group, key=lambda member: (spans[member][0], member)))
        names = tuple(graph.values[member].name for member in members)
        buffers.append(Buffer(names, max(graph.values[member].bytes for member in group), first, last, members))
    held = {role: sum(v.bytes for v in graph.values if v.role == role) for role in ("weight", "constant", "input")}
    return Liveness(
        graph.name,
        steps,
        tuple(sorted(buffers, key=lambda buffer: (buffer.first, buffer.places))),
        held["weight"] + held["constant"],
        0 if inputs else held["input"],
        in_place,
        inputs,
        len(graph),
    )


def _runs(
    where: str, graph: OperatorGraph, order: Sequence[int] | None, schedule: Schedule | None
) -> tuple[dict[int, int], dict[int, int], tuple[str, ...]]:
    """Return the first and the last step of each operator, and the names of the steps."""
    if schedule is None:
        steps = checked_order(where, graph, order)
        when = {operator: step for step, operator in enumerate(steps)}
        return when, when, tuple(graph.operators[operator].name for operator in steps)
    if order is not None or (schedule.graph is not graph and schedule.graph != graph):
        raise ArgumentError(
            f"{where}(): `schedule` must be of the same network and replaces `order`, got one of "
            f"{schedule.graph.name!r} for {graph.name!r}. Write e.g. schedule=schedule_streams(workload, times)"
        )
    moments = sorted({moment for task in schedule.tasks for moment in (task.start, task.end)})
    step_at = {moment: step for step, moment in enumerate(moments)}
    starts = {task.operator: min(step_at[task.start], max(len(moments) - 2, 0)) for task in schedule.tasks}
    ends = {task.operator: max(step_at[task.end] - 1, starts[task.operator]) for task in schedule.tasks}
    started: list[list[str]] = [[] for _ in range(max(len(moments) - 1, 1))]
    for task in sorted(schedule.tasks, key=lambda task: task.start):
        started[starts[task.operator]].append(graph.operators[task.operator].name)
    return starts, ends, tuple(" + ".join(names) or "…" for names in started)


def _groups(
    graph: OperatorGraph, spans: dict[int, tuple[int, int]], reused: Sequence[tuple[int, int]]
) -> list[list[int]]:
    """Return the values that share memory in place, without those in memory of the caller."""
    group = {value: [value] for value in spans}
    outside = set()

    def join(old: int, new: int) -> None:
        if group[old] is not group[new]:
            group[old].extend(group[new])
            for member in group[new]:
                group[member] = group[old]

    for value in spans:
        old = graph.values[value].overwrites
        if old is not None and old in group:
            join(old, value)
        elif old is not None:  # written into an input or a weight, which has its own memory
            outside.add(value)
    for old, new in reused:
        if old in spans:
            join(old, new)
    distinct = {id(members): members for members in group.values()}
    return [members for members in distinct.values() if not outside.intersection(members)]


def _reusable(
    graph: OperatorGraph, operator: int, starts: dict[int, int], ends: dict[int, int]
) -> tuple[int, int] | None:
    """Return the input that the operator may overwrite, and its output; None if there is none."""
    made = graph.outputs_of[operator]
    if not _element_wise(graph.operators[operator]) or len(made) != 1 or graph.values[made[0]].overwrites is not None:
        return None
    new = graph.values[made[0]]
    for value in graph.inputs_of[operator]:
        old = graph.values[value]
        whole = all(
            access.bytes == old.bytes and not access.view for access in graph.reads[operator] if access.value == value
        )
        same_type = (old.bytes, old.dtype, old.shape) == (new.bytes, new.dtype, new.shape)
        last = all(ends[user] < starts[operator] for user in old.consumers if user != operator)
        if whole and same_type and last and not old.output and old.role in ("made", "input"):
            return value, made[0]
    return None


def _element_wise(work: Operator) -> bool:
    """Return whether each output element depends only on input elements at the same position."""
    members: tuple[Operator, ...] = getattr(work, "members", ())
    if len(members) > 1:  # a fused kernel
        return all(map(_element_wise, members))
    learned = work.kind == "normalisation" and "batch_norm" in getattr(work, "target", "")
    return work.kind in IN_PLACE_KINDS or learned
