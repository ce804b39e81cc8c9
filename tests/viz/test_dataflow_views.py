"""Pictures of mappings and dataflows: what is drawn equals what is counted, and words match."""

import numpy as np
import pytest

from mlsys import viz
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.mapping import gemm_space
from mlsys.models.dataflow import hierarchy
from mlsys.planner.mapper import pareto_front, random_mappings
from mlsys.viz.views.dataflow import FLOWS, DataflowScene, words_of


@pytest.mark.parametrize("shape", [(32, 256, 512, 32), (1, 4096, 4096, 128), (100, 7, 33, 16)])
def test_bars_are_the_words_of_each_operand(shape):
    m, k, n, tile = shape
    scene = DataflowScene()
    view = scene.update(m=m, k=k, n=n, flow="ws", tile=tile)
    words = view.values["words"]
    most = max(words.total(flow) for flow in FLOWS)
    for flow in FLOWS:
        heights = [bar.get_height() for bar in scene._flows.bars[FLOWS.index(flow)]]
        assert heights == pytest.approx([100 * part / most for part in words.parts[flow]])
        assert scene._flows.bars[FLOWS.index(flow)][2].get_y() == pytest.approx(sum(heights[:2]))
    assert scene._levels[1].get_ydata()[0] == pytest.approx(100 * words.compulsory / most)
    assert words.compulsory <= words.best <= min(words.total(flow) for flow in FLOWS)


def test_the_frame_and_the_words_follow_the_choice():
    scene = DataflowScene()
    for index, flow in enumerate(FLOWS):
        view = scene.update(m=32, k=256, n=512, flow=flow, tile=32)
        assert scene._frame.get_x() == pytest.approx(index - 0.36)
        assert f"{view.values['words'].total(flow):,} words" in view.summary
        assert view.summary in view.alt and view.summary.endswith(".")
    assert "Output stationary moves least" in DataflowScene().update(32, 256, 512, "ws").summary
    assert "Neither of the others moves less" in DataflowScene().update(32, 256, 512, "os").summary


def test_labels_stay_apart_and_inside():
    scene = DataflowScene()
    for shape in ((1, 4096, 4096, 128), (4096, 4096, 4096, 8), (1, 1, 1, 4)):
        scene.update(m=shape[0], k=shape[1], n=shape[2], flow="os", tile=shape[3])
        scene.figure.canvas.draw()
        first, second = (label.get_window_extent() for label in scene._names)
        assert not first.overlaps(second)
        assert max(first.y1, second.y1) <= scene.figure.bbox.y1


def test_bad_input_is_refused():
    with pytest.raises(UnknownNameError, match="`flow` must be one of ws, os, is, got 'rs'"):
        DataflowScene().update(8, 8, 8, "rs")
    with pytest.raises(ArgumentError, match="words_of.*`m` must be a whole number >= 1"):
        words_of(0, 8, 8, 4)


def test_order_counts_draw_every_order_once(ax):
    totals = {"a": [5, 5, 7], "b": [3, 9, 9]}
    panels = viz.order_counts(ax, totals)
    for panel, words in zip(panels, totals.values(), strict=True):
        heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in panel.patches}
        assert heights == {value: words.count(value) for value in set(words)}


def test_words_by_dataflow_stacks_to_the_total(ax):
    shapes = {"one": {"ws": [1, 2, 3], "os": [2, 2, 2]}, "two": {"ws": [10, 0, 0], "os": [1, 1, 3]}}
    panels = viz.words_by_dataflow(ax, shapes)
    assert [len(panel.patches) for panel in panels] == [6, 6]
    tops = [bar.get_y() + bar.get_height() for bar in panels[1].patches]
    assert max(tops) == pytest.approx(100) and tops[-1] == pytest.approx(50)


def test_the_front_is_below_everything_drawn(ax):
    from mlsys import Hardware

    machine, space = hierarchy(Hardware.Cloud.A100), gemm_space(256, 512, 128)
    drawn, front = random_mappings(machine, space, 40), pareto_front(machine, space)
    ax = viz.mapping_landscape(ax, drawn, front)
    assert np.allclose(ax.collections[0].get_offsets()[:, 0], drawn.times * 1e6)
    for energy, time in zip(drawn.energies, drawn.times, strict=True):
        assert ((front.energies <= energy) & (front.times <= time)).any()


def test_words_by_rows_are_the_closed_forms(ax):
    rows, (k, n, tile) = [1, 2, 16, 64], (64, 96, 16)
    viz.words_by_rows(ax, k, n, tile, rows)
    lines = {line.get_label(): line.get_ydata() for line in ax.lines if not line.get_label().startswith("_")}
    for index, m in enumerate(rows):
        tiles = {"m": -(-m // tile), "k": -(-k // tile), "n": -(-n // tile)}
        spilled = (2 * tiles["k"] - 1) * m * n
        forms = {
            "weight stationary": (m * k if m == 1 else m * k * tiles["n"]) + k * n + spilled,
            "input stationary": m * k + tiles["m"] * k * n + spilled,
            "output stationary": m * k * tiles["n"] + tiles["m"] * k * n + m * n,
        }
        for name, words in forms.items():
            assert lines[name][index] == pytest.approx(words / (m * k * n)), (name, m)
