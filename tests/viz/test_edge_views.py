"""Pictures of a network made smaller: what is drawn equals what was stored."""

import numpy as np
import pytest

from mlsys.edge.layers import layer_stats
from mlsys.edge.stored import packed, stored_run
from mlsys.errors import UnknownNameError
from mlsys.planner.placement import heating
from mlsys.units import Q_
from mlsys.viz.edge import duty_cycle, edge_figures, layer_memory, mac_bars
from mlsys.viz.placement import thermal_step
from mlsys.viz.views.edge import CUTS, EdgeScene
from mlsys.workloads import load


def test_bars_are_the_layers(ax):
    rows = layer_stats(load("small-cnn", batch=64))
    mac_bars(ax, rows)
    assert [bar.get_height() for bar in ax.patches] == [row.macs / 1e6 for row in rows]


def test_marks_of_memory_stand_at_the_bytes_and_say_them(ax):
    rows = layer_stats(load("small-cnn", batch=64))
    layer_memory(ax, rows)
    makes, keeps = ax.get_lines()
    assert makes.get_ydata().tolist() == [3_211_264, 1_605_632, 2_560]
    assert keeps.get_ydata().tolist() == [row.parameter_bytes for row in rows]
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.texts[:3]] == ["3.21 MB", "1.61 MB", "2.56 kB"]


def test_three_figures_with_words():
    rows = layer_stats(load("small-cnn"))
    figures = edge_figures(rows, stored_run().points(), 0.1)
    assert set(figures) == {"layerwise_activation_memory.png", "layerwise_macs.png", "precision_tradeoffs.png"}
    assert "conv2d_1 has most" in figures["layerwise_macs.png"][1]


def test_bars_of_the_view_stack_to_its_numbers():
    scene = EdgeScene()
    view = scene.update(cut="50 % of channels cut", precision="int8-static", clock="half", budget=50)
    for bars, name in zip(scene._bars, ("memory", "time", "energy"), strict=True):
        assert sum(bar.get_width() for bar in bars) == pytest.approx(view.values[name])
        assert bars[1].get_x() == pytest.approx(bars[0].get_width())
    x, y = scene._ring.get_data()
    assert (x[0], y[0]) == (view.values["memory"], 100 * view.values["accuracy"])


def test_open_marks_are_those_above_the_budget_or_below_the_floor():
    scene = EdgeScene()
    scene.update(cut="as trained", precision="fp32", budget=50)
    marks = [(line.get_xdata(), line.get_ydata()) for line in scene._full]
    assert all(np.all(np.asarray(x) <= 50) and np.all(np.asarray(y) >= 95) for x, y in marks)
    shown = sum(len(line.get_xdata()) for line in (*scene._full, *scene._open))
    assert shown == len(stored_run().measured)


def test_half_the_clock_doubles_the_core_and_leaves_memory():
    full, half = (EdgeScene().update("as trained", "fp32", clock) for clock in ("full", "half"))
    fixed = stored_run().measured[0].moved_bytes / 12.8e9 * 1e3
    assert half.values["time"] - full.values["time"] == pytest.approx(full.values["time"] - fixed)


@pytest.mark.parametrize("bad", [{"cut": "x"}, {"precision": "int4"}, {"clock": "double"}])
def test_unknown_names_are_refused(bad):
    with pytest.raises(UnknownNameError, match=next(iter(bad))):
        EdgeScene().update(**{"cut": "as trained", "precision": "fp32", **bad})


def test_stored_run_is_whole():
    run = stored_run()
    assert [measurement.variant for measurement in run.measured] == list(run.config.variants)
    assert all(len(measurement.samples_ms) == 1000 and not measurement.failed for measurement in run.measured)
    assert run.machine
    assert packed(run) == packed(run)
    whole = run.measured[0]
    assert (whole.weight_bytes, whole.macs) == (81_960, 1_031_744)
    dynamic = next(measurement for measurement in run.measured if measurement.precision == "int8-dynamic")
    assert dynamic.weight_bytes == 34_920, "packed weights are counted"
    assert {CUTS[name][0] for name in CUTS} == {measurement.method for measurement in run.measured}


def test_a_duty_cycle_shows_work_sleep_and_their_mean(ax) -> None:
    duty_cycle(ax, Q_(20, "mJ"), Q_(0.1, "s"), Q_(10, "s"), Q_(1, "mW"))
    trace, mean = ax.lines
    assert list(trace.get_ydata()) == pytest.approx([200, 1, 200, 1, 1])
    assert mean.get_ydata()[0] == pytest.approx((20 + 1 * 9.9) / 10)


def test_a_thermal_step_marks_when_the_limit_is_reached(ax) -> None:
    thermal_step(ax, [0.5, 2.0], resistance=20, capacity=3, ambient=25, limit=42)
    (mark,) = [line for line in ax.lines if line.get_marker() == "o"]
    assert 25 + heating(2.0, float(mark.get_xdata()[0]), resistance=20, capacity=3) == pytest.approx(42)
    for curve, power in zip([line for line in ax.lines if len(line.get_xdata()) > 10], (0.5, 2.0), strict=True):
        assert curve.get_ydata()[-1] == pytest.approx(25 + 20 * power * (1 - 2.718281828**-4), rel=1e-6)
