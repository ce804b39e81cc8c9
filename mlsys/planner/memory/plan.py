"""One memory block for all activations: offsets, bounds and proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, get_args

import numpy as np

from mlsys.choices import PackingStrategy
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.formatting import compact
from mlsys.planner.memory.liveness import Buffer, Liveness, live_bytes, liveness
from mlsys.planner.memory.offsets import STRATEGIES, peak_of
from mlsys.planner.memory.smallest import smallest_offsets
from mlsys.provenance import traced
from mlsys.tables import Table
from mlsys.unit_checks import Argument, checked_number
from mlsys.units import Q_, Quantity, ureg

if TYPE_CHECKING:
    from mlsys.planner.streams import Schedule
    from mlsys.workloads.graph import OperatorGraph
    from mlsys.workloads.workload import Workload

_BYTE = ureg.Unit("byte")
_ALIGNMENT = Argument("byte", low=1, whole=True)
CHOICES = get_args(PackingStrategy)


@dataclass(frozen=True)
class Placement(Buffer):
    """Offset and lifetime of one buffer: ``offset`` is its first byte; ``bytes`` includes padding to the alignment."""

    offset: int = 0


@dataclass(frozen=True)
class MemoryPlan:
    """A placement of every activation in one memory block.

    Attributes
    ----------
    liveness
        Input of the plan: execution order, lifetimes, weights and inputs.
    strategy
        The heuristic that found this plan.
    alignment
        Alignment of every offset, in bytes.
    placements
        Buffers, by the step of first use.
    proved
        Whether no plan for this order and alignment can be smaller: the peak equals the lower bound, or a search has
        proved it.
    """

    liveness: Liveness
    strategy: str
    alignment: int
    placements: tuple[Placement, ...]
    proved: bool

    @property
    def network(self) -> str:
        """Name of the network."""
        return self.liveness.network

    @property
    def peak(self) -> Quantity:
        """Size of the block, bytes."""
        return ureg.Quantity(
            max((placement.offset + placement.bytes for placement in self.placements), default=0), _BYTE
        )

    @cached_property
    def live(self) -> tuple[int, ...]:
        """Live bytes at each step, including padding."""
        rows = [(placement.bytes, placement.first, placement.last) for placement in self.placements]
        sizes, first, last = zip(*rows, strict=True) if rows else ((), (), ())
        return tuple(map(int, live_bytes(sizes, first, last, len(self.liveness.steps))))

    @property
    def lower_bound(self) -> Quantity:
        """Peak of the live bytes, including padding: a lower bound of every plan."""
        return ureg.Quantity(max(self.live, default=0), _BYTE)

    @property
    def sum(self) -> Quantity:
        """Sum of all buffers without reuse."""
        return ureg.Quantity(sum(placement.bytes for placement in self.placements), _BYTE)

    @property
    def gap(self) -> float:
        """Relative distance of the plan from the lower bound."""
        least = self.lower_bound.m_as("byte")
        return float(self.peak.m_as("byte") / least - 1) if least else 0.0

    @property
    def weights(self) -> Quantity:
        """Bytes of weights and constants, which are stored outside the block."""
        return ureg.Quantity(self.liveness.weight_bytes, _BYTE)

    @property
    def inputs(self) -> Quantity:
        """Bytes of inputs outside the block; zero if they are planned too."""
        return ureg.Quantity(self.liveness.input_bytes, _BYTE)

    def table(self, largest: int | None = None) -> Table:
        """Return the placements as a table, by size or, unless ``largest`` limits it, by first use."""
        shown = self.placements
        if largest is not None:
            shown = tuple(sorted(shown, key=lambda buffer: (-buffer.bytes, buffer.first)))[:largest]
        steps = self.liveness.steps
        rows = [
            (
                " → ".join(buffer.values),
                f"{buffer.offset:,}",
                f"{buffer.bytes:,}",
                steps[buffer.first],
                steps[buffer.last],
            )
            for buffer in shown
        ]
        columns = ("value", "offset, byte", "size, byte", "from", "to")
        return Table(f"{self.network}: {len(self.placements)} buffers in {compact(self.peak)}", columns, rows)

    def explain(self, largest: int = 8) -> str:
        """Return the plan as sentences, with its largest buffers."""
        liveness = self.liveness
        step = int(np.argmax(self.live)) if self.live else 0
        share = self.peak.m_as("byte") / self.sum.m_as("byte") if self.sum.m_as("byte") else 0.0
        if self.proved:
            verdict = "no plan for this order is smaller"
        else:
            verdict = f"{self.gap:.1%} above the lower bound; a smaller plan may exist"
        beside = [f"{compact(self.weights)} of weights"]
        beside += [f"{compact(self.inputs)} of inputs"] if self.inputs.magnitude else []
        shared = sum(len(placement.values) > 1 for placement in self.placements)
        lines = [
            f"{self.network}: {compact(self.peak)} hold {len(self.placements)} buffers over {len(liveness.steps)} "
            f"steps (strategy {self.strategy}, alignment {self.alignment} byte).",
            f"Lower bound {compact(self.lower_bound)}, {verdict}.",
            f"Without reuse the sum is {compact(self.sum)}: the plan needs {share:.1%} of it.",
            f"Peak at step {step}, {liveness.steps[step]}." if liveness.steps else "",
            f"Outside the block: {' and '.join(beside)}.",
        ]
        lines += [f"{shared} buffers hold several values in sequence, in place."] if shared else []
        return "\n".join([*lines, "", str(self.table(largest))])


@traced
def plan_memory(
    workload: Workload | OperatorGraph,
    *,
    strategy: PackingStrategy = "best",
    alignment: Quantity | None = None,
    order: Sequence[int] | None = None,
    schedule: Schedule | None = None,
    in_place: bool = False,
    inputs: bool = False,
) -> MemoryPlan:
    """Return a placement of every activation of a network in one memory block.

    Parameters
    ----------
    workload
        A captured network, or its graph. A fused kernel counts as one operator.
    strategy
        One of ``STRATEGIES``; ``"best"``, the best of them; or ``"exact"``, which searches further and mostly proves
        that no block is smaller.
    alignment
        Alignment of offsets and sizes; by default 64 byte, a cache line.
    order, schedule, in_place, inputs
        As for :func:`liveness`.

    Returns
    -------
    MemoryPlan
        The plan; lower bound ≤ peak ≤ sum.

    Raises
    ------
    UnknownNameError
        If the strategy is unknown.
    ArgumentError, ArgumentUnitError
        If the network has no graph, cannot run in that order, or the alignment is not a whole number of bytes.

    References
    ----------
    Y. Pisarchyk, J. Lee, Efficient memory management for deep neural net inference, arXiv:2001.03288, 2020.

    Examples
    --------
    >>> from mlsys.workloads import relu
    >>> from mlsys.workloads.graph import OperatorGraph, Value
    >>> a = Value("a", "made", 8192, producer=0, consumers=(1, 3))
    >>> b = Value("b", "made", 8192, producer=1, consumers=(2,))
    >>> c = Value("c", "made", 8192, producer=2, consumers=(3,))
    >>> d = Value("d", "made", 8192, producer=3, output=True)
    >>> plan = plan_memory(OperatorGraph("residual", (relu(4096),) * 4, (a, b, c, d)))
    >>> plan.peak == plan.lower_bound == 3 * Q_(8192, "byte"), [buffer.offset for buffer in plan.placements]
    (True, [0, 8192, 16384, 8192])
    """
    return _planned(
        liveness(workload, order=order, schedule=schedule, in_place=in_place, inputs=inputs), strategy, alignment
    )


def compare_strategies(
    workload: Workload | OperatorGraph,
    *,
    alignment: Quantity | None = None,
    order: Sequence[int] | None = None,
    schedule: Schedule | None = None,
    in_place: bool = False,
    inputs: bool = False,
) -> tuple[MemoryPlan, ...]:
    """Return the plan of each heuristic of ``STRATEGIES``, smallest first; arguments as for :func:`plan_memory`.

    Examples
    --------
    >>> from mlsys.workloads import relu
    >>> from mlsys.workloads.graph import OperatorGraph, Value
    >>> alone = OperatorGraph("alone", (relu(4096),), (Value("y", "made", 8192, producer=0, output=True),))
    >>> sorted(plan.strategy for plan in compare_strategies(alone))
    ['breadth', 'first-come', 'lifetime', 'size']
    """
    lifetimes = liveness(workload, order=order, schedule=schedule, in_place=in_place, inputs=inputs)
    plans = (_planned(lifetimes, strategy, alignment) for strategy in STRATEGIES)
    return tuple(sorted(plans, key=lambda plan: plan.peak.m_as("byte")))


def _planned(liveness: Liveness, strategy: str, alignment: Quantity | None) -> MemoryPlan:
    if strategy not in CHOICES:
        meant = did_you_mean(str(strategy), CHOICES)
        raise UnknownNameError(f"plan_memory(): unknown strategy {strategy!r}. Known: {', '.join(CHOICES)}.{meant}")
    grain = int(
        checked_number("plan_memory", "alignment", Q_(64, "byte") if alignment is None else alignment, _ALIGNMENT, {})
    )
    rows = np.array(
        [(-(-buffer.bytes // grain) * grain, buffer.first, buffer.last) for buffer in liveness.buffers], np.int64
    )
    sizes, first, last = rows.reshape(-1, 3).T
    steps = len(liveness.steps)
    least = int(live_bytes(sizes.tolist(), first.tolist(), last.tolist(), steps).max(initial=0))
    if strategy == "exact":
        offsets, proved = smallest_offsets(sizes, first, last)
    else:
        rules = STRATEGIES if strategy == "best" else (strategy,)
        tried = {}
        for rule in rules:
            tried[rule] = STRATEGIES[rule](sizes, first, last)
            if peak_of(tried[rule], sizes) == least:
                break
        strategy = min(tried, key=lambda rule: peak_of(tried[rule], sizes))
        offsets = tried[strategy]
        proved = peak_of(offsets, sizes) == least
    placements = tuple(
        Placement(buffer.values, int(size), buffer.first, buffer.last, buffer.places, int(offset))
        for buffer, offset, size in zip(liveness.buffers, offsets, sizes, strict=True)
    )
    return MemoryPlan(liveness, strategy, grain, placements, proved)


def conflicts(plan: MemoryPlan, schedule: Schedule) -> tuple[tuple[str, str], ...]:
    """Return pairs of values that a schedule on several streams would keep at the same addresses at the same time.

    A plan is valid for one execution order. On several streams operators overlap in time and values live longer, so
    addresses that are free in sequential execution may not be. ``plan_memory(schedule=...)`` plans for the streams.

    Parameters
    ----------
    plan
        A plan of the scheduled network.
    schedule
        Start and end of each operator.

    Returns
    -------
    tuple of pairs of names
        Pairs of names; empty if the plan is valid for the schedule.

    Raises
    ------
    ArgumentError
        If the schedule is of another network.
    """
    graph = schedule.graph
    if graph.name != plan.network or len(graph) != plan.liveness.operators:
        raise ArgumentError(
            f"conflicts(): `schedule` is of {graph.name!r} with {len(graph)} operators, `plan` of {plan.network!r} "
            f"with {plan.liveness.operators}. Plan and schedule the same network"
        )
    start = {task.operator: task.start for task in schedule.tasks}
    end = {task.operator: task.end for task in schedule.tasks}
    finish = max(end.values(), default=0.0)
    spans = []
    for buffer in plan.placements:
        made = [graph.values[index] for index in buffer.places]
        born = min(0.0 if value.producer is None else start[value.producer] for value in made)
        users = [end[user] for value in made for user in value.consumers]
        users += [end[value.producer] for value in made if value.producer is not None]
        spans.append((born, finish if any(value.output for value in made) else max(users, default=born)))
    rows = np.array(
        [(placement.offset, placement.offset + placement.bytes) for placement in plan.placements], np.int64
    ).reshape(-1, 2)
    times = np.array(spans, float).reshape(-1, 2)
    at_once = (times[:, None, 0] < times[None, :, 1]) & (times[None, :, 0] < times[:, None, 1])
    same = (rows[:, None, 0] < rows[None, :, 1]) & (rows[None, :, 0] < rows[:, None, 1])
    left, right = np.nonzero(np.triu(at_once & same, 1))
    return tuple((plan.placements[i].name, plan.placements[j].name) for i, j in zip(left, right, strict=True))
