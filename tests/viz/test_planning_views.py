"""Pictures of plans: what is drawn is what was planned."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlsys import viz
from mlsys.planner.layout import layout_offsets
from mlsys.planner.memory import MemoryPlan, plan_memory
from mlsys.planner.streams import schedule_streams
from mlsys.units import Q_
from mlsys.workloads import relu
from mlsys.workloads.graph import OperatorGraph, Value


@pytest.fixture
def graph() -> OperatorGraph:
    a = Value("a", "made", 4_000_000, producer=0, consumers=(1, 2))
    b = Value("b", "made", 2_000_000, producer=1, consumers=(3,))
    c = Value("c", "made", 2_000_000, producer=2, consumers=(3,))
    d = Value("d", "made", 1_000_000, producer=3, output=True)
    return OperatorGraph("fork", (relu(64),) * 4, (a, b, c, d))


@pytest.fixture
def plan(graph: OperatorGraph) -> MemoryPlan:
    return plan_memory(graph)


def test_the_live_chart_shows_every_step_and_both_bounds(plan: MemoryPlan) -> None:
    _, ax, _, _ = viz.setup_plot()
    viz.live_chart(ax, plan)
    line = next(line for line in ax.lines if line.get_label() == "in use")
    assert np.allclose(np.asarray(line.get_ydata()) * 1e6, plan.live)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["in use", "lower bound 8 MB", "block of the plan 8 MB"]
    assert ax.get_ylabel() == "in use, MB"
    plt.close("all")


def test_rectangles_are_where_the_plan_says(plan: MemoryPlan) -> None:
    _, ax, _, _ = viz.setup_plot()
    viz.memory_map(ax, plan, names=True)
    drawn = {(p.get_x() + 0.5, round(p.get_y() * 1e6), p.get_width(), round(p.get_height() * 1e6)) for p in ax.patches}
    assert drawn == {
        (buffer.first, buffer.offset, buffer.last - buffer.first + 1, buffer.bytes) for buffer in plan.placements
    }
    assert {text.get_text() for text in ax.texts} == {"a", "b", "c", "d"}
    viz.memory_map(viz.setup_plot()[1], plan, first_step=3)
    assert len(viz.memory_figure(plan).axes) == 2
    plt.close("all")


def test_bars_are_the_tasks_and_the_critical_path_is_marked(graph: OperatorGraph) -> None:
    schedule = schedule_streams(graph, Q_([1.0, 2.0, 1.0, 1.0], "ms"), streams=2)
    _, ax, _, _ = viz.setup_plot()
    viz.stream_gantt(ax, schedule)
    bars = [(round(p.get_x(), 9), round(p.get_width(), 9), round(p.get_y() + 0.3)) for p in ax.patches]
    expected = [(round(t.start * 1e3, 9), round((t.end - t.start) * 1e3, 9), t.stream) for t in schedule.tasks]
    assert sorted(bars) == sorted(expected)
    assert sum(bool(patch.get_hatch()) for patch in ax.patches) == len(schedule.critical) == 3
    assert ax.get_xlabel() == "time, ms"
    plt.close("all")


def test_the_strip_puts_each_element_at_its_offset() -> None:
    _, ax, _, _ = viz.setup_plot()
    viz.layout_strip(ax, 3, 2, 2, layouts=("NCHW", "NHWC", "NCHW2c"))
    assert len(ax.patches) == 3 * 12
    for row, layout in enumerate(("NCHW", "NHWC", "NCHW2c")):
        shown = {t.get_text(): t.get_position()[0] - 0.5 for t in ax.texts if t.get_position()[1] == row}
        offsets = layout_offsets(1, 3, 2, 2, layout)[0]
        assert shown == {f"{c}\n{h}{w}": offsets[c, h, w] for c, h, w in np.ndindex(3, 2, 2)}
    plt.close("all")
