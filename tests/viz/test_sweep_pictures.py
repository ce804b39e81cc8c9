"""Pictures of a sweep say what its table says."""

import matplotlib

matplotlib.use("Agg")

import pytest

from mlsys import Hardware, viz
from mlsys.errors import ArgumentError
from mlsys.sweep import SweepSpec, SweepTable, sweep
from mlsys.sweep.table import costs
from mlsys.viz.sweep import sweep_figure


@pytest.fixture(scope="module")
def table() -> SweepTable:
    spec = SweepSpec(
        models=["resnet50", "bert-base"], devices=["T4", "A100", "EdgeTPU"], batches=[1, 32], precisions=["fp16"]
    )
    return sweep(spec)


def test_the_map_has_a_cell_for_every_device_and_network(table: SweepTable) -> None:
    _, ax, _, plt = viz.setup_plot()
    viz.rate_map(ax, table, devices=["A100_80GB", "EdgeTPU", "T4"])
    cells = {(round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in ax.texts}
    assert cells[1, 0] == cells[1, 1] == "×"
    best = max(row.samples_per_second for row in table if row.device == "T4" and row.model == "bert-base")
    assert float(cells[2, 1].replace(",", "")) == pytest.approx(best, rel=0.01)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["A100_80GB", "EdgeTPU", "T4"]
    viz.rate_map(ax, table)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["A100_80GB", "T4"]
    plt.close("all")


def test_the_speed_ratio_of_two_devices_is_that_of_their_rows(table: SweepTable) -> None:
    _, ax, _, plt = viz.setup_plot()
    a100, t4 = Hardware["A100"], Hardware["T4"]
    viz.speed_ratio_by_batch(ax, table, a100, t4, ["resnet50", "bert-base"])
    rates = {(row.model, row.device, row.batch): row.samples_per_second for row in table.answered}
    for line, model in zip(ax.lines, ("resnet50", "bert-base"), strict=False):
        ratios = [rates[model, "A100_80GB", batch] / rates[model, "T4", batch] for batch in (1, 32)]
        assert line.get_xdata().tolist() == [1, 32] and line.get_ydata().tolist() == pytest.approx(ratios)
    levels = [line.get_ydata()[0] for line in ax.lines[2:]]
    assert levels == pytest.approx([312 / 65, 2039 / 320], rel=1e-3)  # the dense peaks, and the bandwidths
    with pytest.raises(ArgumentError, match=r"has 'gpt2', which the sweep does not estimate in fp16 on both A100_80GB"):
        viz.speed_ratio_by_batch(ax, table, a100, t4, ["gpt2"])
    plt.close("all")


@pytest.mark.parametrize("against", ["energy", "price"])
def test_the_front_is_drawn_where_the_table_has_it(table: SweepTable, against: str) -> None:
    _, ax, _, plt = viz.setup_plot()
    viz.cost_front(ax, table, "resnet50", against)
    front = [costs(row, against) for row in table.pareto("resnet50", against)]
    drawn = ax.collections[-1].get_offsets().tolist()
    assert drawn == [pytest.approx(list(point)) for point in front]
    assert len(ax.texts) == min(6, len(front))
    whiskers = [lines.get_segments()[0] for lines in ax.collections if hasattr(lines, "get_segments")]
    for row, ((low, _), (high, _)) in zip(table.pareto("resnet50", against), whiskers, strict=True):
        assert (low, high) == pytest.approx((row.low_seconds / row.batch, row.high_seconds / row.batch))
        assert low <= row.estimate_seconds / row.batch <= high
    plt.close("all")


def test_the_figure_of_a_whole_sweep(table: SweepTable) -> None:
    assert len(sweep_figure(table).axes) == 2
