"""The simulator of pipeline schedules against closed forms, and against dependencies checked one by one."""

import itertools

import pytest

from mlsys import formulas
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.models.training import live_micro_batches, pipeline_time, simulate_schedule, task_order
from mlsys.models.training.schedule import Task
from mlsys.units import Q_
from sampled import over_all

CASES = [
    (schedule, stages, stages * groups if chunks > 1 else count, chunks)
    for schedule in ("gpipe", "1f1b", "interleaved")
    for stages in (1, 2, 3, 4, 8)
    for groups, count in ((1, 1), (2, 3), (4, 16))
    for chunks in ((1, 2, 3) if schedule == "interleaved" else (1,))
]


def times(seconds: float, stages: int) -> list:
    return [Q_(seconds, "s")] * stages


@over_all(CASES, spread=True)
def test_equal_stages_give_the_closed_forms(schedule: str, stages: int, micro_batches: int, chunks: int) -> None:
    line = simulate_schedule(schedule, times(1.0, stages), times(2.0, stages), micro_batches, chunks=chunks)
    share = formulas.pipeline_bubble_share(stages, micro_batches, chunks).magnitude
    assert line.bubble_share == pytest.approx(share, abs=1e-12)
    assert line.time.m_as("s") == pytest.approx(pipeline_time([3.0] * stages, micro_batches, chunks))
    live = [chunks * live_micro_batches(schedule, stage, stages, micro_batches, chunks) for stage in range(stages)]
    assert list(line.live_activations) == pytest.approx(live)


@over_all(CASES, spread=True)
def test_every_pass_runs_once_after_what_it_needs(schedule: str, stages: int, micro_batches: int, chunks: int) -> None:
    """Dependencies are written out here for the chain of all chunks, not as the simulator has them."""
    forward = [Q_(0.5 + 0.3 * ((7 * stage) % 5), "s") for stage in range(stages)]
    backward = [Q_(1.1 + 0.2 * ((3 * stage) % 4), "s") for stage in range(stages)]
    line = simulate_schedule(schedule, forward, backward, micro_batches, chunks=chunks, transfer=Q_(0.05, "s"))
    at = {(slot.stage, slot.task): slot for slot in line.slots}
    assert len(at) == len(line.slots) == 2 * stages * micro_batches * chunks
    for row in line.by_stage:
        assert all(one.end <= two.start + 1e-12 for one, two in itertools.pairwise(row))
    for micro_batch in range(micro_batches):
        chain = [(stage, Task("forward", micro_batch, chunk)) for chunk in range(chunks) for stage in range(stages)]
        chain += [(stage, Task("backward", task.micro_batch, task.chunk)) for stage, task in reversed(chain)]
        for before, after in itertools.pairwise(chain):
            delay = 0.05 if before[0] != after[0] else 0.0
            assert at[after].start >= at[before].end + delay - 1e-12


@over_all(range(40))
def test_unequal_stages_take_no_longer_than_the_closed_form(seed: int) -> None:
    stages, micro_batches = 2 + seed % 5, 1 + (3 * seed) % 13
    each = [1 + ((seed * 31 + stage * 17) % 10) / 10 for stage in range(stages)]
    line = simulate_schedule("1f1b", [Q_(t, "s") for t in each], [Q_(2 * t, "s") for t in each], micro_batches)
    total = [3 * t for t in each]
    least = max(micro_batches * max(total), sum(total))
    assert least - 1e-9 <= line.time.m_as("s") <= pipeline_time(total, micro_batches) + 1e-9


def test_one_forward_one_backward_holds_no_more_than_its_stages() -> None:
    """GPipe holds every micro-batch, and both take the same time."""
    gpipe, turns = (simulate_schedule(name, times(1, 4), times(2, 4), 32) for name in ("gpipe", "1f1b"))
    assert gpipe.time == turns.time
    assert gpipe.live_activations == (32, 32, 32, 32)
    assert turns.live_activations == (4, 3, 2, 1)


def test_the_interleaved_order_is_that_of_the_paper() -> None:
    """Figure 4 of arXiv:2104.04473: on four stages with two chunks, the first runs eleven passes forward."""
    order = task_order("interleaved", 0, 4, 8, 2)
    assert [task.chunk for task in order[:11]] == [0] * 4 + [1] * 4 + [0] * 3
    assert {task.kind for task in order[:11]} == {"forward"}
    assert order[11] == Task("backward", 0, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("1f1b", times(1, 2), times(1, 3), 4), "for each of the 2 stages"),
        (("1f1b", [], [], 4), "for each of the 0 stages"),
        (("1f1b", times(0, 2), times(1, 2), 4), "forward"),
        (("1f1b", times(1, 2), times(1, 2), 0), "micro_batches"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        simulate_schedule(*arguments)


def test_an_unknown_schedule_is_named() -> None:
    with pytest.raises(UnknownNameError, match="1f1b"):
        simulate_schedule("zero-bubble", times(1, 2), times(1, 2), 4)
