"""Figures of training: bars are the passes of the schedule, and the parts of the memory."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

from mlsys import Q_, viz
from mlsys.hardware import systems
from mlsys.mapping.parallel import Layout
from mlsys.models.collectives import schedule
from mlsys.models.training import simulate_schedule, training_step
from mlsys.viz.schematics.parallel_split import Split, split_cells
from mlsys.workloads.zoo import language_model


@pytest.mark.parametrize(("schedule", "chunks"), [("gpipe", 1), ("1f1b", 1), ("interleaved", 2)])
def test_bars_are_the_passes_one_row_for_each_stage(schedule: str, chunks: int) -> None:
    line = simulate_schedule(schedule, [Q_(10, "ms")] * 4, [Q_(20, "ms")] * 4, 8, chunks=chunks)
    _, ax, _, _ = viz.setup_plot()
    viz.pipeline_timeline(ax, line)
    bars = [(round(p.get_x(), 6), round(p.get_width(), 6), round(p.get_y() + 0.4)) for p in ax.patches]
    slots = [(round(s.start * 1e3, 6), round((s.end - s.start) * 1e3, 6), s.stage) for s in line.slots]
    assert sorted(bars) == sorted(slots)
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"stage {stage}" for stage in (1, 2, 3, 4)]
    assert f"{line.bubble_share:.1%}" in ax.get_xlabel()
    plt.close("all")


def test_parts_of_the_memory_are_stacked_to_what_is_needed() -> None:
    model, system = language_model("llama-3-8b"), systems["DGX_H100"]
    steps = [training_step(system, model, Layout(dp=8), batch=64, zero=zero) for zero in (1, 3)]
    _, ax, _, _ = viz.setup_plot()
    viz.training_memory(ax, steps, ["ZeRO 1", "ZeRO 3"])
    for row, step in enumerate(steps):
        bars = [patch for patch in ax.patches if round(patch.get_y() + 0.3) == row]
        assert max(bar.get_x() + bar.get_width() for bar in bars) == pytest.approx(step.needed.m_as("GB"))
    plt.close("all")


def roles(ax: Axes, role: str) -> int:
    return sum(patch.get_gid() == role for patch in ax.patches)


@pytest.mark.parametrize("kind", ["data", "tensor", "sequence", "pipeline"])
def test_each_token_meets_each_weight_on_one_chip(kind: Split) -> None:
    met = sum(np.multiply.outer(*split_cells(kind, chip)).astype(int) for chip in range(4))
    assert (met == 1).all()


@pytest.mark.parametrize(
    ("kind", "layout", "zero"),
    [
        ("data", Layout(dp=4), 0),
        ("sharded", Layout(dp=4), 3),
        ("tensor", Layout(tp=4), 0),
        ("sequence", Layout(cp=4), 0),
        ("pipeline", Layout(pp=4), 0),
    ],
)
def test_cells_of_a_chip_are_its_share_of_weights_and_of_activations(
    ax: Axes, kind: Split, layout: Layout, zero: int
) -> None:
    viz.parallel_split(ax, kind)
    drawn = [roles(ax, role) / (4 * 16) for role in ("weight", "token")]
    model, system = language_model("llama-2-7b"), systems["DGX_H100"]
    whole, part = (
        training_step(system, model, each, batch=4, micro_batch=size, zero=stage)
        for each, stage, size in ((Layout(), 0, 4), (layout, zero, 4 // layout.dp))
    )
    assert drawn[0] == pytest.approx(float((part.memory["weights"] / whole.memory["weights"]).m_as("")), rel=0.05)
    if kind in ("data", "sharded", "sequence"):
        kept = part.memory["activations"] / whole.memory["activations"]
        assert drawn[1] == pytest.approx(float(kept.m_as("")), rel=0.03)


def test_arrows_are_the_messages_of_a_schedule(ax: Axes) -> None:
    plan = schedule("all-reduce", "ring", 5)
    assert plan is not None
    viz.message_rounds(ax, plan)
    assert roles(ax, "adds") == roles(ax, "copies") == 5 * 4


def test_causes_of_a_step_sum_to_its_time(ax: Axes) -> None:
    step = training_step(
        systems["DGX_H100"], language_model("llama-3-8b"), Layout(tp=2, pp=2, dp=2), batch=16, recompute="full"
    )
    viz.step_parts(ax, [step], ["a step"])
    end = max(bar.get_x() + bar.get_width() for bar in ax.patches)
    assert end == pytest.approx(step.time.m_as("s"), rel=0.01)


def test_a_bucket_is_exposed_where_the_backward_pass_ends(ax: Axes) -> None:
    viz.gradient_buckets(ax, Q_(40, "ms"), Q_(8, "ms"), 4)
    assert max(bar.get_x() + bar.get_width() for bar in ax.patches) == pytest.approx(42)
    assert ax.lines[0].get_xdata()[0] == pytest.approx(40)


def test_eight_chips_that_wait_are_seven_times_as_fast() -> None:
    figure, *_ = viz.setup_plot()
    viz.scaling_panels(figure, Q_(50, "ms"), Q_(1, "GB"), Q_(0, "s"), Q_(300, "GB/s"))
    for ax in figure.axes:
        ideal, hidden, _, waiting = (line.get_ydata() for line in ax.lines)
        assert waiting[7] == pytest.approx(8 * 50 / (50 + 35 / 6))
        assert (hidden <= ideal * (1 + 1e-12)).all()
    plt.close("all")


def test_a_ring_sends_large_arrays_and_a_tree_small_ones_faster(ax: Axes) -> None:
    viz.all_reduce_times(ax, 8, Q_(5, "us"), Q_(100, "GB/s"))
    tree, ring, _ = (line.get_ydata() for line in ax.lines)
    sizes = ax.lines[0].get_xdata()
    at = int(np.argmin(abs(sizes - 1e6)))
    assert sizes[at] == pytest.approx(1e6)
    assert (tree[at], ring[at]) == pytest.approx((2 * 3 * (0.005 + 0.01), 0.0875))
    assert tree[0] < ring[0] and ring[-1] < tree[-1]
