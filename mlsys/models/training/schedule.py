"""Schedules of pipeline parallelism, simulated event by event.

A schedule is the order in which each stage runs the forward and backward passes of micro-batches. The simulator runs
that order under its dependencies alone; closed forms of bubbles and of live activations are not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from mlsys.choices import PipelineSchedule
from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_choice, checked_count, checked_number, nonnegative, plain_arguments, positive
from mlsys.units import Q_, Quantity

Pass = Literal["forward", "backward"]

_SECONDS, _TRANSFER = positive("s"), nonnegative("s")


class Task(NamedTuple):
    """A pass of one micro-batch through one chunk of a stage's layers."""

    kind: Pass
    micro_batch: int
    chunk: int


class Slot(NamedTuple):
    """A task with its stage and the times at which it starts and ends, s."""

    stage: int
    task: Task
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """A simulated step of a pipeline.

    Attributes
    ----------
    schedule
        Name of the schedule.
    stages, micro_batches, chunks
        Stages, micro-batches of the step, and chunks of layers on each stage.
    slots
        All passes by stage, and in the order in which the stage runs them.
    """

    schedule: PipelineSchedule
    stages: int
    micro_batches: int
    chunks: int
    slots: tuple[Slot, ...]

    @cached_property
    def by_stage(self) -> tuple[tuple[Slot, ...], ...]:
        """The passes of each stage in the order in which they run."""
        rows: list[list[Slot]] = [[] for _ in range(self.stages)]
        for slot in self.slots:
            rows[slot.stage].append(slot)
        return tuple(map(tuple, rows))

    @property
    def time(self) -> Quantity:
        """Time from the first start to the last end, s."""
        return Q_(max(slot.end for slot in self.slots), "s")

    @property
    def busy(self) -> tuple[Quantity, ...]:
        """Time that each stage computes, s."""
        return tuple(Q_(sum(slot.end - slot.start for slot in row), "s") for row in self.by_stage)

    @property
    def bubble_share(self) -> float:
        """Share of the step in which stages idle, averaged over stages."""
        busy = sum(float(row.m_as("s")) for row in self.busy)
        return 1 - busy / self.stages / float(self.time.m_as("s"))

    @property
    def live_activations(self) -> tuple[int, ...]:
        """Most forward passes of each stage whose backward pass has not ended: chunks of layers times micro-batches."""
        peaks = []
        for row in self.by_stage:
            live = peak = 0
            for slot in row:
                live += 1 if slot.task.kind == "forward" else -1
                peak = max(peak, live)
            peaks.append(peak)
        return tuple(peaks)


def task_order(
    schedule: PipelineSchedule, stage: int, stages: int, micro_batches: int, chunks: int = 1
) -> tuple[Task, ...]:
    """Return the passes of one stage in the order in which it runs them.

    Parameters
    ----------
    schedule
        ``"gpipe"``, ``"1f1b"`` or ``"interleaved"``.
    stage, stages
        Stage from 0, and number of stages.
    micro_batches, chunks
        Micro-batches of the step, and chunks of layers on the stage.

    References
    ----------
    Y. Huang et al., GPipe, arXiv:1811.06965; D. Narayanan et al., SC21, arXiv:2104.04473, figure 4.

    Examples
    --------
    >>> [f"{task.kind[0]}{task.micro_batch}" for task in task_order("1f1b", 0, 2, 3)]
    ['f0', 'f1', 'b0', 'f2', 'b1', 'b2']
    """
    forward = [Task("forward", *_place(index, stages, chunks)) for index in range(micro_batches * chunks)]
    backward = [Task("backward", task.micro_batch, chunks - 1 - task.chunk) for task in forward]
    if schedule == "gpipe":
        return (*forward, *reversed(backward))
    behind = stages - stage - 1
    warm_up = behind if schedule == "1f1b" else 2 * behind + (chunks - 1) * stages
    warm_up = min(warm_up, len(forward))
    steady = [task for pair in zip(forward[warm_up:], backward, strict=False) for task in pair]
    return (*forward[:warm_up], *steady, *backward[len(forward) - warm_up :])


def _place(index: int, stages: int, chunks: int) -> tuple[int, int]:
    """Return micro-batch and chunk of a pass: as many micro-batches as there are stages visit one chunk in turn."""
    if chunks == 1:
        return index, 0
    group, within = divmod(index, stages * chunks)
    return group * stages + within % stages, within // stages


def simulate_schedule(
    schedule: PipelineSchedule,
    forward: Sequence[Quantity],
    backward: Sequence[Quantity],
    micro_batches: int,
    *,
    chunks: int = 1,
    transfer: Quantity | None = None,
) -> Timeline:
    """Return the time line of one step of a pipeline, simulated event by event.

    Parameters
    ----------
    schedule
        ``"gpipe"``, ``"1f1b"`` or ``"interleaved"``.
    forward, backward
        Time of each stage for the forward and the backward pass of one micro-batch through all its chunks, s.
    micro_batches
        Micro-batches of the step.
    chunks
        Chunks of layers on each stage; more than 1 for ``"interleaved"`` alone.
    transfer
        Time from one stage to the next for activations or their gradients, s, during which both stages compute;
        by default none.

    Returns
    -------
    Timeline
        Its ``slots`` hold every pass with start and end.

    Raises
    ------
    ArgumentError
        If the times are not of as many stages, a time or count is out of range, ``chunks`` does not suit the
        schedule, or the micro-batches are not a multiple of the stages, as interleaving needs.
    UnknownNameError
        If the schedule is unknown.

    Examples
    --------
    >>> line = simulate_schedule("1f1b", [Q_(1, "ms")] * 4, [Q_(2, "ms")] * 4, 8)
    >>> print(f"{line.time.to('ms'):.0f~P}, {line.bubble_share:.4f} idle", line.live_activations)
    33 ms, 0.2727 idle (4, 3, 2, 1)
    """
    where = "simulate_schedule"
    checked_choice(where, "schedule", schedule, get_args(PipelineSchedule))
    micro_batches, chunks = checked_count(where, "micro_batches", micro_batches), checked_count(where, "chunks", chunks)
    stages = len(forward)
    if not stages or len(backward) != stages:
        raise ArgumentError(
            f"{where}(): `backward` must have a time for each of the {stages} stages of `forward`, got {len(backward)}"
        )
    check_schedule(where, schedule, stages, micro_batches, chunks)
    times = {
        "forward": [float(checked_number(where, "forward", time, _SECONDS, {})) / chunks for time in forward],
        "backward": [float(checked_number(where, "backward", time, _SECONDS, {})) / chunks for time in backward],
    }
    delay = 0.0 if transfer is None else float(checked_number(where, "transfer", transfer, _TRANSFER, {}))
    slots = _run(
        [task_order(schedule, stage, stages, micro_batches, chunks) for stage in range(stages)], times, chunks, delay
    )
    return Timeline(schedule, stages, micro_batches, chunks, slots)


def check_schedule(where: str, schedule: PipelineSchedule, stages: int, micro_batches: int, chunks: int) -> None:
    """Raise if chunks or micro-batches do not suit a schedule."""
    if schedule != "interleaved" and chunks > 1:
        raise ArgumentError(
            f'{where}(): `chunks` must be 1 for the schedule {schedule}, got {chunks}. Write schedule="interleaved"'
        )
    if schedule == "interleaved" and chunks > 1 and micro_batches % stages:
        raise ArgumentError(
            f"{where}(): `micro_batches` must be a multiple of the {stages} stages for the interleaved schedule, "
            f"got {micro_batches}. Write e.g. {-(-micro_batches // stages) * stages}"
        )


@plain_arguments
def live_micro_batches(
    schedule: PipelineSchedule, stage: int, stages: int, micro_batches: int, chunks: int = 1
) -> float:
    """Return how many micro-batches' activations a stage holds at most, in units of all its layers.

    Examples
    --------
    >>> live_micro_batches("1f1b", 0, 4, 8), live_micro_batches("interleaved", 0, 4, 8, 2)
    (4.0, 5.5)
    """
    if schedule == "gpipe":
        return float(micro_batches)
    behind = stages - stage - 1
    passes = behind + 1 if schedule == "1f1b" else 2 * behind + (chunks - 1) * stages + 1
    return min(passes, micro_batches * chunks) / chunks


@plain_arguments
def pipeline_time(stage_times: Sequence[float], micro_batches: int, chunks: int = 1) -> float:
    """Return the time of a step from the time of each stage for one micro-batch, forward and backward.

    The slowest stage works on all micro-batches; the first and last chunk pass through all other stages.

    Examples
    --------
    >>> pipeline_time([3.0] * 4, 8)
    33.0
    """
    slowest = max(stage_times)
    return micro_batches * slowest + (sum(stage_times) - slowest) / chunks


def _run(orders: list[tuple[Task, ...]], times: dict[str, list[float]], chunks: int, delay: float) -> tuple[Slot, ...]:
    """Return all passes with their times: each stage runs its order, and a pass waits for what it depends on."""
    stages = len(orders)
    ended: dict[tuple[int, Task], float] = {}
    free, following = [0.0] * stages, [0] * stages
    rows: list[list[Slot]] = [[] for _ in range(stages)]
    waiting = True
    while waiting:
        waiting = False
        for stage, order in enumerate(orders):
            while following[stage] < len(order):
                task = order[following[stage]]
                before = _depends_on(stage, task, stages, chunks)
                if before is not None and before not in ended:
                    break
                ready = 0.0 if before is None else ended[before] + (delay if before[0] != stage else 0.0)
                start = max(free[stage], ready)
                free[stage] = ended[stage, task] = start + times[task.kind][stage]
                rows[stage].append(Slot(stage, task, start, free[stage]))
                following[stage] += 1
                waiting = True
    return tuple(slot for row in rows for slot in row)


def _depends_on(stage: int, task: Task, stages: int, chunks: int) -> tuple[int, Task] | None:
    """Return the pass, with its stage, whose output a pass needs; None for the first forward pass."""
    kind, micro_batch, chunk = task
    if kind == "forward":
        if stage:
            return stage - 1, task
        return (stages - 1, Task("forward", micro_batch, chunk - 1)) if chunk else None
    if stage < stages - 1:
        return stage + 1, task
    if chunk < chunks - 1:
        return 0, Task("backward", micro_batch, chunk + 1)
    return stage, Task("forward", micro_batch, chunk)
