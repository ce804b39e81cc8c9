"""One block of memory for all activations: which tensor lies where, and how good that is."""

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
    """Where one buffer lies and when: ``offset`` is its first byte; ``bytes`` has the padding to the alignment, too."""

    offset: int = 0


@dataclass(frozen=True)
class MemoryPlan:
    """A place for every activation in one block of memory.

    Attributes
    ----------
    liveness
        What was planned: the order of running, lifetimes, weights and inputs.
    strategy
        The rule that made this plan.
    alignment
        Every offset is a multiple of it, in bytes.
    placements
        Buffers, by the step at which they are first used.
    proved
        Whether no plan for this order and alignment can be smaller: the peak meets the lower bound, or a
        search has shown it.
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
        """Bytes of the block."""
        return ureg.Quantity(
            max((placement.offset + placement.bytes for placement in self.placements), default=0), _BYTE
        )

    @cached_property
    def live(self) -> tuple[int, ...]:
        """Bytes in use at each step, padding included."""
        rows = [(placement.bytes, placement.first, placement.last) for placement in self.placements]
        sizes, first, last = zip(*rows, strict=True) if rows else ((), (), ())
        return tuple(map(int, live_bytes(sizes, first, last, len(self.liveness.steps))))

    @property
    def lower_bound(self) -> Quantity:
        """The most that is in use at one step, padding included: no plan needs less."""
        return ureg.Quantity(max(self.live, default=0), _BYTE)

    @property
    def sum(self) -> Quantity:
        """What the buffers would take side by side."""
        return ureg.Quantity(sum(placement.bytes for placement in self.placements), _BYTE)

    @property
    def gap(self) -> float:
        """How much more the plan takes than the lower bound, as a share of it."""
        least = self.lower_bound.m_as("byte")
        return float(self.peak.m_as("byte") / least - 1) if least else 0.0

    @property
    def weights(self) -> Quantity:
        """Bytes of weights and constants, which lie beside the block."""
        return ureg.Quantity(self.liveness.weight_bytes, _BYTE)

    @property
    def inputs(self) -> Quantity:
        """Bytes of inputs that lie beside the block; none if they are planned too."""
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
        """Return the plan in sentences, and its largest buffers."""
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
            f"Side by side they would take {compact(self.sum)}: the plan needs {share:.1%} of it.",
            f"Fullest at step {step}, {liveness.steps[step]}." if liveness.steps else "",
            f"Beside them lie {' and '.join(beside)}.",
        ]
        lines += [f"{shared} buffers hold several values, one after the other, in place."] if shared else []
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
    """Return a place in one block of memory for every activation of a network.

    Parameters
    ----------
    workload
        A captured network, or its graph. Fused kernels plan as one operator.
    strategy
        One of ``STRATEGIES``; ``"best"``, the smallest of them; or ``"exact"``, which searches on
        from there, and mostly proves that no block is smaller.
    alignment
        Offsets are multiples of it and sizes are padded to it; by default 64 byte, a cache line.
    order, schedule, in_place, inputs
        As :func:`liveness` takes them.

    Returns
    -------
    MemoryPlan
        Lower bound ≤ peak ≤ sum, always.

    Raises
    ------
    UnknownNameError
        If there is no such strategy.
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
    """Return the plan of each rule of ``STRATEGIES``, smallest first; arguments as :func:`plan_memory`.

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
        raise UnknownNameError(f"plan_memory(): no strategy {strategy!r}. Known: {', '.join(CHOICES)}.{meant}")
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
    """Return pairs of values that a schedule on several streams would keep at the same addresses at one time.

    A plan is made for one way of running. On several streams operators overlap in time, values live longer, and
    addresses that are free when one operator runs after the other may not be. ``plan_memory(schedule=...)`` plans
    for the streams.

    Parameters
    ----------
    plan
        Of the network that ``schedule`` runs.
    schedule
        When each operator starts and ends.

    Returns
    -------
    tuple of pairs of names
        Empty if the plan holds for the schedule.

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
