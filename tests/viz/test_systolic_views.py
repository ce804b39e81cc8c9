"""Pictures of systolic arrays: what is drawn is what the machine did, and the exports stand alone."""

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")


from axesfaults import figure_faults
from mlsys.errors import UnknownNameError
from mlsys.models.systolic import count_systolic, energy_baselines, simulate_array
from mlsys.viz import SystolicAnimation, busy_elements, energy_per_mac_levels, utilisation_teeth
from mlsys.viz.systolic import array_frame
from mlsys.viz.views.systolic import SystolicScene, cycle_shares


@pytest.fixture(scope="module")
def animation():
    return SystolicAnimation([[2, 4], [1, 3]], [[1, 3], [5, 7]], 2, 2, "os")


# --- frames ---------------------------------------------------------------------------


@pytest.mark.parametrize("dataflow", ["ws", "os", "is"])
def test_every_value_in_the_cells_is_in_the_registers(ax, dataflow: str) -> None:
    animation = SystolicAnimation([[11, 12], [13, 14], [15, 16]], [[21, 22], [23, 24]], 2, 2, dataflow)
    for frame in animation.run.frames:
        array_frame(ax, animation.run, frame, dataflow)
        drawn = [text.get_text() for text in ax.texts if re.fullmatch(r"\d+", text.get_text())]
        held = [value for grid in (frame.moving, frame.second, frame.sums) for value in grid.ravel()]
        edges = [value for _, value in (*frame.entering, *frame.leaving)]
        wanted = [f"{value:.4g}" for value in (*held, *edges) if not np.isnan(value)]
        assert sorted(drawn) == sorted(wanted), frame.cycle
        assert f"cycle {frame.cycle + 1} of {animation.run.cycles}" in ax.get_title()
        marked = sum(patch.get_linewidth() == 2 for patch in ax.patches)
        assert marked == frame.busy.sum(), "places that multiply are marked"


def test_sentences_say_what_enters_and_leaves(animation: SystolicAnimation) -> None:
    assert animation.sentences[0] == "Cycle 1: 1 of 4 PEs multiply; 2 enters."
    assert animation.sentences[1] == "Cycle 2: 3 of 4 PEs multiply; 4 and 1 enter."
    assert len(animation.sentences) == len(animation) == animation.run.cycles
    left = [value for frame in animation.run.frames for _, value in frame.leaving]
    assert sorted(left) == sorted(animation.run.product.ravel())
    assert "weight" not in animation.alt and "33% of all chances to multiply are used" in animation.alt


def test_loading_is_said(ax) -> None:
    animation = SystolicAnimation(np.ones((3, 2)), np.ones((2, 2)), 2, 2, "ws")
    assert animation.sentences[0] == "Cycle 1: the next row of words is pushed in."


# --- exports --------------------------------------------------------------------------


class Player(HTMLParser):
    """Collects what a reader of the exported page can meet."""

    def __init__(self) -> None:
        super().__init__()
        self.images, self.buttons, self.sliders, self.addresses = [], 0, [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.addresses += [attributes[name] for name in ("src", "href") if name in attributes]
        if tag == "img":
            self.images.append(attributes)
        self.buttons += tag == "button"
        if tag == "input":
            self.sliders.append(attributes)


def test_the_html_stands_alone_and_can_be_used_by_keyboard(animation: SystolicAnimation, tmp_path: Path) -> None:
    page = animation.save_html(tmp_path / "array.html").read_text("utf-8")
    player = Player()
    player.feed(page)
    assert len(player.images) == len(animation)
    assert [image["alt"] for image in player.images] == list(animation.sentences)
    assert sum("hidden" not in image for image in player.images) == 1, "one frame is seen without any script"
    assert all(address.startswith("data:image/png;base64,") for address in player.addresses)
    assert "http" not in re.sub(r"base64,[^\"]+", "", page), "nothing is fetched"
    assert player.buttons == 3 and player.sliders[0]["type"] == "range", "buttons and a slider take keys by themselves"
    assert player.sliders[0]["aria-label"] and 'aria-live="polite"' in page
    assert len(page) < 400_000


def test_print_takes_a_picture(animation: SystolicAnimation, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = animation._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/png", "text/plain"} and bundle["text/plain"] == animation.alt
    assert figure_faults(animation.strip()) == [], "shrunk to the page, its letters can still be read"
    monkeypatch.setenv("MLSYS_FIGURES", "vector")
    vectors = base64.b64decode(animation._repr_mimebundle_()["application/pdf"])
    assert vectors.startswith(b"%PDF") and b"/Type3" not in vectors, "letters stay letters"
    first, last = animation.png(0), animation.png(len(animation) - 1)
    assert first != last and first.startswith(b"\x89PNG")


# --- charts ---------------------------------------------------------------------------


def test_teeth_begin_behind_each_multiple_of_the_side(ax) -> None:
    utilisation_teeth(ax, side=16, largest=128, rest=512)
    smooth, saw = ax.get_lines()[:2]
    assert smooth.get_label() == "over M" and saw.get_label() == "over N or K"
    drops = np.flatnonzero(np.diff(saw.get_ydata()) < 0) + 1  # the size before each fall
    assert drops.tolist() == list(range(16, 128, 16))
    assert (np.diff(smooth.get_ydata()) > 0).all()


def test_a_rectangular_sweep_has_a_curve_for_each_size(ax) -> None:
    utilisation_teeth(ax, side=16, largest=64, rest=200, dataflow="os", fold_overlap="none")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["over M or N", "over K"]


def test_the_area_below_busy_elements_is_the_work(ax) -> None:
    runs = {
        str(rows): simulate_array(np.ones((rows, 4)), np.ones((4, 3)), rows=4, columns=3, record=True)
        for rows in (1, 9)
    }
    busy_elements(ax, runs)
    steps = [line for line in ax.get_lines() if line.get_label() in runs]
    assert [int(sum(line.get_ydata())) for line in steps] == [1 * 4 * 3, 9 * 4 * 3]
    assert max(steps[0].get_ydata()) < 4 * 3 == max(steps[1].get_ydata()), "a short stream never fills the array"


def test_marks_stand_at_the_energy_of_each_level_and_at_their_sum(ax) -> None:
    baselines = energy_baselines(levels="all")
    energy_per_mac_levels(ax, baselines)
    marks = {line.get_label(): dict(zip(line.get_ydata(), line.get_xdata(), strict=True)) for line in ax.get_lines()}
    assert marks.pop("sum") == pytest.approx({row: item.total.m_as("pJ") for row, item in enumerate(baselines)})
    for level, spent in marks.items():
        energies = {row: item.parts[level].m_as("pJ") for row, item in enumerate(baselines)}
        assert spent == pytest.approx({row: energy for row, energy in energies.items() if energy})
    assert set(marks) == {level for item in baselines for level, energy in item.parts.items() if energy}
    assert [label.get_text() for label in ax.get_yticklabels()] == [machine.name for machine in baselines]
    written = [text.get_text() for text in ax.texts]
    assert written == [f"{machine.total.m_as('pJ'):,.4g} pJ" for machine in baselines]


# --- the view of the lab --------------------------------------------------------------


@pytest.mark.parametrize("along", ["M", "N", "K"])
@pytest.mark.parametrize("overlap", ["none", "load", "full"])
def test_the_point_lies_on_the_curve(along: str, overlap: str) -> None:
    scene = SystolicScene()
    view = scene.update(m=100, n=129, k=300, side=32, dataflow="ws", fold_overlap=overlap, along=along)
    (x,), (y,) = scene._point.get_data()
    curve = dict(zip(*scene._used.get_data(), strict=True))
    counts = count_systolic(100, 129, 300, 32, 32, fold_overlap=overlap)
    assert x == {"M": 100, "N": 129, "K": 300}[along]
    assert y == pytest.approx(100 * counts.utilisation) == pytest.approx(curve[x])
    assert f"{counts.cycles:,} cycles" in view.summary and view.summary in view.alt


@pytest.mark.parametrize("shape", [(1, 1024, 1024), (512, 129, 64), (7, 5, 3)])
@pytest.mark.parametrize("dataflow", ["ws", "os", "is"])
def test_shares_of_the_cycles_sum_to_all(shape: tuple[int, int, int], dataflow: str) -> None:
    counts = SystolicScene().update(*shape, dataflow=dataflow).values["counts"]
    shares = cycle_shares(counts)
    assert sum(shares.values()) == pytest.approx(1) and min(shares.values()) >= -1e-12
    assert shares["multiplying"] == pytest.approx(counts.macs / counts.cycles / 128**2)


def test_reuse_is_said_in_words() -> None:
    summary = SystolicScene().update(1, 1024, 1024).summary
    assert "left operand that is read is used 128 times, one of the right operand once" in summary


def test_a_size_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="`along` must be one of M, N, K, got 'L'"):
        SystolicScene().update(along="L")
