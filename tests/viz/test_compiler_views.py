"""Pictures of compilation: what is drawn equals what is stored."""

from itertools import pairwise

import pytest

from mlsys import viz
from mlsys.errors import UnknownNameError
from mlsys.measure import compile_table, pass_table, stored_compile_results, stored_pass_results
from mlsys.viz.views.compiler import CompilerScene, cases
from mlsys.viz.words import times


def test_the_waterfall_goes_from_the_first_time_to_the_last(ax):
    ladder = stored_pass_results()[0]
    viz.pass_waterfall(ax, ladder)
    seconds = [step.timing.median.m_as("s") for step in ladder.steps]
    ends = [(0, seconds[0]), *pairwise(seconds), (0, seconds[-1])]
    for bar, end in zip(ax.patches, ends, strict=True):
        assert [bar.get_x(), bar.get_x() + bar.get_width()] == pytest.approx(
            sorted(time / max(seconds) for time in end)
        )
    reported = [text.get_text() for text in ax.texts]
    assert reported[0].endswith(f"{ladder.steps[0].kernels} kernels") and reported[-1].endswith(
        times(ladder.total.value)
    )
    assert reported[1:-1] == [times(factor.value) for factor in ladder.factors]


def test_page_and_lab_draw_the_same_waterfall(ax):
    ladder = stored_pass_results()[0]
    viz.pass_waterfall(ax, ladder)
    scene = CompilerScene()
    scene.update(case=f"{ladder.model}, batch {ladder.batch}")
    assert [bar.get_bbox().bounds for bar in ax.patches] == [bar.get_bbox().bounds for bar in scene._passes.bars]


def test_kernel_bars_are_the_counts(ax):
    results = [result for result in stored_compile_results() if result.batch == 1]
    viz.kernel_bars(ax, results)
    names = [label.get_text() for label in ax.get_yticklabels()]
    widths = [bar.get_width() for bar in ax.patches]
    plain = {result.model: result for result in results if not result.frozen}
    assert sorted(names) == sorted(plain)
    assert widths[: len(names)] == [plain[name].operators for name in names]
    assert widths[len(names) : 2 * len(names)] == [plain[name].kernels for name in names]


def test_the_scatter_has_a_point_for_each_prediction(ax):
    results = stored_compile_results()
    viz.speedup_scatter(ax, results, [("mlp", 1, False)])
    points = [line for line in ax.lines if line.get_marker() in ("o", "s")]
    drawn = sorted(y for line in points for y in line.get_ydata())
    assert drawn == pytest.approx(sorted(result.speedup.value for result in results))
    assert [text.get_text() for text in ax.texts] == ["mlp, batch 1"]
    assert ax.get_xlim() == ax.get_ylim()


def test_the_scene_shows_times_to_scale():
    scene = CompilerScene()
    view = scene.update(case="resnet50, batch 1", frozen=True)
    result = view.values["result"]
    widths = [bar.get_width() for bar in scene._time_bars]
    assert widths[2] / widths[0] == pytest.approx(1 / result.speedup.value)
    assert widths[3] / widths[1] == pytest.approx(1 / result.predicted.speedup)
    assert max(widths) == 1
    counts = [bar.get_width() for bar in scene._kernel_bars]
    assert counts[1] / counts[0] == pytest.approx(result.kernels / result.operators)


def test_a_network_without_passes_says_so():
    scene = CompilerScene()
    scene.update(case="mlp, batch 1")
    assert "not measured one by one" in scene._none.get_text()
    assert not any(artist.get_visible() for artist in scene._passes.artists)
    scene.update(case="resnet50, batch 1")
    assert scene._none.get_text() == ""


def test_an_unknown_case_is_refused():
    with pytest.raises(UnknownNameError, match=r"CompilerScene\(\): `case` must be one of mlp, batch 1"):
        CompilerScene().update("no such network")


def test_tables_have_a_line_for_each():
    results = stored_compile_results()
    assert len(compile_table(results, "all").rows) == len(results)
    ladder = stored_pass_results()[0]
    assert [row[0] for row in pass_table(ladder, "it").rows] == [*(step.name for step in ladder.steps), "all passes"]
    assert len(cases()) == len({(result.model, result.batch) for result in results})
