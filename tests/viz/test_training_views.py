"""Figures of training: bars are the passes of the schedule, and the parts of the memory."""

import matplotlib.pyplot as plt
import pytest

from mlsys import Q_, viz
from mlsys.hardware import systems
from mlsys.mapping.parallel import Layout
from mlsys.models.training import simulate_schedule, training_step
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
