"""The views of the labs: what is drawn equals the formulas, and the words match what is drawn."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure

from mlsys import Q_, Hardware, viz
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.viz.live import LiveFigure, image_tag
from mlsys.viz.views import KINDS, AmdahlScene, RooflineScene, View, layer
from mlsys.viz.views.view import number, percent, times

A100, H100, T4 = Hardware.Cloud.A100, Hardware.Cloud.H100, Hardware.Cloud.T4

# --- Amdahl ---------------------------------------------------------------------------


def by_hand(p, s):
    return 1 / ((1 - p) + p / s)


@pytest.fixture
def amdahl():
    return AmdahlScene()


def test_views_return_a_figure_with_words():
    for view in (AmdahlScene().update(0.9, 10), RooflineScene().update(A100)):
        assert isinstance(view, View) and isinstance(view.figure, Figure)
        assert view.summary in view.alt and len(view.alt) > len(view.summary)
        assert view.summary.endswith(".")


@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 0.8, 0.95, 0.999])
@pytest.mark.parametrize("s", [1, 1.5, 19, 100, 1000])
def test_amdahl_draws_the_law(amdahl, p, s):
    view = amdahl.update(parallel_fraction=p, accelerator_speedup=s)
    x, y = amdahl._law.curve.get_data()
    assert np.allclose(y, by_hand(p, np.asarray(x)))
    assert amdahl._point.get_xdata()[0] == s
    assert amdahl._point.get_ydata()[0] == pytest.approx(by_hand(p, s))
    assert list(amdahl._law.ceiling.get_ydata()) == pytest.approx([1 / (1 - p)] * 2)
    assert view.values["speedup"] == pytest.approx(by_hand(p, s))


@pytest.mark.parametrize("p, s", [(0.95, 100), (0.2, 3), (0.8, 4), (0.999, 1000)])
def test_amdahl_bars_are_the_time_before_and_after(amdahl, p, s):
    amdahl.update(parallel_fraction=p, accelerator_speedup=s)
    (host_before, device_before), (host_after, device_after) = amdahl._time.bars
    heights = [bar.get_height() for pair in amdahl._time.bars for bar in pair]
    assert heights == pytest.approx([100 * (1 - p), 100 * p, 100 * (1 - p), 100 * p / s])
    assert device_before.get_y() == pytest.approx(host_before.get_height())
    assert device_after.get_y() == pytest.approx(host_after.get_height())
    assert host_before.get_hatch() and not device_before.get_hatch(), "told apart without colour"


def test_page_and_lab_draw_the_same_bars_and_the_same_law(amdahl):
    page, curves = (Figure().add_subplot() for _ in range(2))
    viz.time_bars(page, 0.9, [1, 10])
    viz.scaling_laws(curves, 0.9)
    amdahl.update(parallel_fraction=0.9, accelerator_speedup=10)
    assert [bar.get_bbox().bounds for bar in page.patches] == [
        bar.get_bbox().bounds for pair in amdahl._time.bars for bar in pair
    ]
    assert np.allclose(curves.lines[1].get_xydata(), amdahl._law.curve.get_xydata())


def test_amdahl_balance_mark_is_where_host_and_device_take_equally_long(amdahl):
    amdahl.update(parallel_fraction=0.95, accelerator_speedup=10)
    s = amdahl._balance.get_xdata()[0]
    assert 0.95 / s == pytest.approx(1 - 0.95)
    assert amdahl._balance.get_ydata()[0] == pytest.approx(by_hand(0.95, s))


@pytest.mark.parametrize("s", [1, 4, 100, 999])
def test_amdahl_words_flip_at_the_boundary(s):
    boundary = s / (s + 1)
    below, at, above = (AmdahlScene().update(p, s) for p in (boundary - 1e-5, boundary, boundary + 1e-5))
    assert "Host-bound" in below.summary and "Device-bound" not in below.summary
    assert "Balanced" in at.summary
    assert "Device-bound" in above.summary and "Host-bound" not in above.summary
    assert [view.values["bound_by"] for view in (below, at, above)] == ["host", "balanced", "device"]


def test_amdahl_words_never_compare_equal_numbers():
    words = AmdahlScene().update(0.999, 1000).summary
    assert "99.9% is below S/(S+1) = 99.9%" not in words and "99.9001" in words


def test_amdahl_words_hold_the_numbers():
    words = AmdahlScene().update(0.95, 100).summary
    for expected in ("95%", "100×", "16.8×", "20×", "84.0%", "99.0%"):
        assert expected in words


def test_amdahl_compare_shows_the_other_curves(amdahl):
    amdahl.update(parallel_fraction=0.5, accelerator_speedup=10, compare=True)
    shown = [share for share, curve, label in amdahl._others if curve.get_visible() and label.get_visible()]
    assert shown == [0.9, 0.99, 0.999], "the curve in front is not drawn twice"
    amdahl.update(parallel_fraction=0.5, accelerator_speedup=10, compare=False)
    assert not any(curve.get_visible() for _, curve, _ in amdahl._others)


@pytest.mark.parametrize(
    "p, s, name", [(1.0, 2, "parallel_fraction"), (-0.1, 2, "parallel_fraction"), (0.5, 0.5, "accelerator_speedup")]
)
def test_amdahl_refuses_what_has_no_meaning(p, s, name):
    with pytest.raises(ArgumentError, match=rf"AmdahlScene\(\): `{name}`"):
        AmdahlScene().update(p, s)


# --- roofline -------------------------------------------------------------------------

PEAK, BANDWIDTH = 312e12, 2039e9


@pytest.fixture
def roofs():
    return RooflineScene()


def test_roofline_draws_the_roof(roofs):
    roofs.update(device=A100)
    x, y = roofs._front.line.get_data()
    assert np.allclose(y, [min(PEAK, BANDWIDTH * i) / 1e12 for i in x])
    assert roofs._front.ridge.get_xdata()[0] == pytest.approx(PEAK / BANDWIDTH)
    assert roofs._front.ridge.get_ydata()[0] == pytest.approx(312)


@pytest.mark.parametrize("batch, width", [(1, 256), (32, 2048), (256, 2048), (4096, 8192)])
def test_roofline_point_is_the_dense_layer(roofs, batch, width):
    roofs.update(device=A100, batch=batch, width=width)
    flops = 2 * batch * width * width
    data = 2 * (batch * width + width * width + batch * width)
    time = max(flops / PEAK, data / BANDWIDTH)
    assert roofs._front.point.get_xdata()[0] == pytest.approx(flops / data)
    assert roofs._front.point.get_ydata()[0] == pytest.approx(flops / time / 1e12)


def test_page_and_lab_draw_the_same_roof(roofs):
    ax = Figure().add_subplot()
    viz.roofs(ax, [A100, H100], intensities=(0.1, 1e5))
    roofs.update(device=A100, other=H100)
    for line, roof in zip((ax.lines[0], ax.lines[3]), (roofs._front, roofs._back), strict=True):
        assert np.allclose(line.get_xydata(), roof.line.get_xydata())
        assert line.get_linestyle() == roof.line.get_linestyle() and line.get_color() == roof.line.get_color()


def test_roofline_words_flip_at_the_ridge():
    before, after = (RooflineScene().update(A100, batch=batch) for batch in (128, 256))
    assert "below the A100's ridge" in before.summary and "memory-bound" in before.summary
    assert "above the A100's ridge" in after.summary and "compute-bound" in after.summary


def test_roofline_launch_overhead_drops_the_point_below_the_roof(roofs):
    view = roofs.update(device=A100, launch_overhead=Q_(50, "us"))
    low, high = roofs._front.gap.get_ydata()
    assert low < high == pytest.approx(view.values["result"].figures["roof"].magnitude)
    assert "bound by launch overhead" in view.summary and "of what the roof allows" in view.summary


def test_roofline_without_overlap_is_slower():
    with_, without = (RooflineScene().update(A100, batch=128, overlap=flag).values["result"] for flag in (True, False))
    assert without.time > with_.time


def test_roofline_compares_two_devices(roofs):
    view = roofs.update(device=A100, other=H100)
    assert "On H100" in view.summary and "1.64× as fast" in view.summary
    assert roofs._back.line.get_visible()
    assert roofs._back.line.get_linestyle() != roofs._front.line.get_linestyle(), "told apart without colour"
    assert roofs._back.point.get_marker() != roofs._front.point.get_marker()
    roofs.update(device=A100)
    assert not any(artist.get_visible() for artist in roofs._back.artists)


def test_roofline_says_when_the_other_device_lacks_the_format(roofs):
    view = roofs.update(device=T4, precision="int8", other=Hardware.Cloud.V100)
    assert "V100 has no INT8 rate and is left out" in view.summary
    assert not roofs._back.line.get_visible()
    assert "FLOP" not in view.summary, "integers do no floating-point operations"


def test_roofline_refuses_a_format_the_device_lacks():
    with pytest.raises(UnknownNameError, match="has no fp8 peak"):
        RooflineScene().update(A100, precision="fp8")


def test_roofline_says_when_the_point_lies_outside(roofs):
    roofs.update(device=A100, kind="layernorm", batch=1, width=256, launch_overhead=Q_(50, "us"))
    assert "below the picture" in roofs._label.get_text()
    assert roofs._front.point.get_marker() == "v"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_layer_is_drawn(roofs, kind):
    for batch, width in ((1, 256), (4096, 8192)):
        view = roofs.update(device=A100, kind=kind, batch=batch, width=width)
        assert KINDS[kind] in view.summary


def test_layers_by_hand():
    assert layer("layernorm", 7, 300).intensity.magnitude == pytest.approx(8 / 4)
    assert layer("decode", 5, 512).intensity.magnitude == pytest.approx(5)
    assert layer("decode", 5, 512).data.to("byte").magnitude == 12 * 512**2 * 2
    conv = layer("conv", 2, 64)
    assert conv.flops.magnitude == 2 * 2 * 14 * 14 * 64 * 64 * 9
    with pytest.raises(UnknownNameError, match=r"`kind` must be one of dense, .* got 'pool'"):
        layer("pool", 1, 1)


# --- drawing --------------------------------------------------------------------------


def pixels(png):
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(png)))


def test_a_redraw_equals_a_drawing_from_scratch():
    """The cached background must not keep anything of an earlier state."""
    scene = AmdahlScene()
    live = LiveFigure(scene.figure, scene.moving)
    for p, s, compare in ((0.2, 2, True), (0.999, 1000, False), (0.95, 100, False)):
        scene.update(parallel_fraction=p, accelerator_speedup=s, compare=compare)
        last = live.png()
    fresh = AmdahlScene().update(0.95, 100)
    buffer = io.BytesIO()
    fresh.figure.savefig(buffer, format="png", dpi=fresh.figure.dpi)
    other = pixels(buffer.getvalue())[..., :3]
    redrawn = pixels(last)
    assert redrawn.shape == (*other.shape[:2], 4) and (redrawn[..., 3] == 255).all()
    assert (np.abs(other.astype(int) - redrawn[..., :3]).max(axis=2) > 8).mean() < 0.002


def test_the_same_state_gives_the_same_bytes():
    def picture():
        scene = RooflineScene()
        live = LiveFigure(scene.figure, scene.moving)
        scene.update(device=A100, other=H100)
        return live.png()

    assert picture() == picture()


def test_notebook_settings_do_not_change_the_picture():
    import matplotlib

    def picture():
        scene = AmdahlScene()
        live = LiveFigure(scene.figure, scene.moving)
        scene.update(parallel_fraction=0.9, accelerator_speedup=10)
        return live.png()

    before = picture()
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9, "axes.grid": True, "text.usetex": False}):
        assert picture() == before


def test_views_leave_pyplot_alone():
    import matplotlib.pyplot as plt

    open_before = plt.get_fignums()
    AmdahlScene().update(0.9, 10)
    RooflineScene().update(A100)
    assert plt.get_fignums() == open_before


def test_image_tag_escapes_its_text():
    tag = image_tag(b"", 'a "b" <c> & d', 10, 5)
    assert 'alt="a &quot;b&quot; &lt;c&gt; &amp; d"' in tag


@pytest.mark.parametrize("value, text", [(1 / 3, "33.3%"), (0.95, "95%"), (0.0, "0%"), (1.0, "100%")])
def test_percent(value, text):
    assert percent(value) == text


def test_numbers_lose_the_dust_of_floating_point():
    assert number(1 / (1 - 0.95)) == "20" and times(1 / (1 - 0.999)) == "1,000×"
