"""Pictures and views of memory and tiles: what is drawn equals the models, and the words match it."""

import json

import numpy as np
import pytest

import lru_table
from mlsys import Q_, Hardware, constants, viz
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.models.cache import Cache, gemm_trace, simulate
from mlsys.models.tiling import gemm_traffic
from mlsys.viz.lru import CAPACITIES, LINES, SIZES
from mlsys.viz.tiling import lru_cliff, lru_curve
from mlsys.viz.views import MemoryScene, TilingScene
from sampled import drawn

A100, H100, V100, B200 = (Hardware.Cloud[name] for name in ("A100", "H100", "V100", "B200"))
WORD = Q_(4, "byte")


# --- figures ----------------------------------------------------------------------------


@pytest.mark.parametrize("words", [64, 255, 256, 257, 1000, 1024, 4096])
def test_the_cliff_is_the_last_tile_with_which_rows_of_b_stay(words):
    edge = lru_cliff(words)
    assert edge**2 + 3 * edge < words <= (edge + 1) ** 2 + 3 * (edge + 1)


def test_traffic_by_tile_draws_what_is_counted_and_simulated(ax):
    viz.traffic_by_tile(ax, 32, 256, (2, 4, 8, 16, 32))
    plain, managed = ax.lines[:2]
    cache = Cache(Q_(1, "KiB"), WORD)
    for tile, misses in zip(*plain.get_data(), strict=True):
        assert misses == simulate(gemm_trace(32, 32, 32, WORD, int(tile)), cache).last.misses
    assert list(managed.get_xdata()) == [2, 4, 8], "3 · 9² is the most that fits"
    assert list(managed.get_ydata()) == [gemm_traffic(32, 32, 32, t).words for t in (2, 4, 8)]
    message = " ".join(text.get_text() for text in ax.texts)
    assert "3T² fits: T ≤ 9" in message and "T²+3T fits: T ≤ 14" in message


def test_the_map_holds_ratios_to_the_compulsory_traffic(ax):
    viz.tile_cache_map(ax, 32, (4, 8, 32), (128, 4096))
    shown = np.asarray(ax.collections[0].get_array())
    assert shown.shape == (2, 3)
    assert shown[0, 1] == lru_curve(32, 8).at(Q_(512, "byte")) / (3 * 32**2)
    assert np.allclose(shown[1], 1), "everything fits"
    framed = [patch for patch in ax.patches if not patch.get_fill()]
    assert round(framed[0].get_x() + 0.48) == shown[0].argmin()


def test_the_stored_traffic_is_what_a_simulation_of_single_accesses_finds():
    stored = json.loads(lru_table.FILE.read_text("utf-8"))
    wanted = {f"{size} {tile} {line}" for size in SIZES for line in LINES for tile in lru_table.edges(size)}
    assert set(stored) == wanted, "run make captures"
    for size, tile, line in (map(int, key.split()) for key in drawn(sorted(stored), 5, "stored traffic")):
        for words, moved in zip(CAPACITIES, stored[f"{size} {tile} {line}"], strict=True):
            cache = Cache(words * WORD, line * WORD)
            assert simulate(gemm_trace(size, size, size, WORD, tile), cache).last.misses * line == moved


def test_sectors_by_stride_ends_on_its_floor(ax):
    viz.sectors_by_stride(ax)
    assert [line.get_ydata()[-1] for line in ax.lines] == [25, 12.5, 6.25]
    assert all(line.get_ydata()[0] == 100 for line in ax.lines)


def test_energies_are_sorted_and_compared(ax):
    energies = {"DRAM": constants.ENERGY_DRAM_ACCESS_PJ, "MAC": constants.ENERGY_MAC_FP32_PJ}
    viz.access_energies(ax, energies, "MAC")
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([4.6, 640])
    assert "139×" in ax.texts[1].get_text() and "×" not in ax.texts[0].get_text()
    assert ax.patches[1].get_hatch() and not ax.patches[0].get_hatch(), "told apart without colour"


def test_ridges_are_those_of_the_devices(ax):
    viz.ridge_by_year(ax, [B200, V100, H100], ("fp16", "fp8"))
    half, eight = ax.lines
    assert half.get_xdata().tolist() == [2017, 2022, 2024], "in the order of years"
    assert half.get_ydata().tolist() == pytest.approx(
        [device.ridge_point("fp16").m_as("FLOP/byte") for device in (V100, H100, B200)]
    )
    assert len(eight.get_xdata()) == 2, "V100 has no eight-bit floating point"


def test_levels_lie_at_their_latency_and_bandwidth(ax):
    viz.level_map(ax, [A100])
    level = A100.level("L1")
    end = list(zip(*ax.lines[0].get_data(), strict=True))[-1]
    assert end == pytest.approx((level.latency.m_as("ns"), 108 * level.bandwidth.m_as("TB/s")))
    with pytest.raises(UnknownNameError, match=r"level_map\(\): NVIDIA Tesla K80 has no memory level with both"):
        viz.level_map(ax, [Hardware.Cloud.K80])


def test_bandwidth_rises_with_bytes_in_flight_to_the_peak(ax):
    viz.bandwidth_by_bytes_in_flight(ax, [A100])
    x, y = ax.lines[0].get_data()
    assert y[0] == pytest.approx(x[0] / 391.6 * 1e3) and y[-1] == 2039
    with pytest.raises(UnknownNameError, match="no latency is recorded"):
        viz.bandwidth_by_bytes_in_flight(ax, [B200])


# --- views ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "warps, stride, precision", [(1, 1, "fp32"), (16, 2, "fp16"), (64, 8, "fp64"), (64, 32, "int8")]
)
def test_the_memory_view_is_littles_law_with_sectors(warps, stride, precision):
    width = {"fp64": 8, "fp32": 4, "fp16": 2, "int8": 1}[precision]
    sectors = len({lane * stride * width // 32 for lane in range(32)})
    flying = warps * sectors * 32 * 108
    moved = min(2039.0, flying / 391.6)
    values = MemoryScene().update(A100, warps, stride, precision).values
    assert values["sectors"] == sectors
    assert values["in_flight"].m_as("byte") == pytest.approx(flying)
    assert values["moved"].m_as("GB/s") == pytest.approx(moved)
    assert values["useful"].m_as("GB/s") == pytest.approx(moved * width / sectors)
    assert values["bound_by"] == ("bandwidth" if flying >= 2039 * 391.6 else "latency")


def test_page_and_lab_draw_the_same_slope_and_roof(ax):
    viz.bandwidth_by_bytes_in_flight(ax, [A100, H100])
    scene = MemoryScene()
    scene.update(device=A100, other=H100)
    for line, machine in zip((ax.lines[0], ax.lines[3]), (scene._front, scene._back), strict=True):
        assert np.allclose(np.asarray(line.get_xydata())[1:], np.asarray(machine.moved.get_xydata())[1:])


def test_memory_words_flip_at_the_knee():
    before, after = (MemoryScene().update(A100, warps).summary for warps in (57, 58))
    assert "bound by latency" in before and "bound by bandwidth" in after


def test_memory_compares_two_devices():
    scene = MemoryScene()
    view = scene.update(device=A100, warps=8, other=H100)
    assert all(artist.get_visible() for artist in scene._back.artists if artist is not scene._back.useful)
    assert "H100 delivers" in view.summary and "1.28× as much" in view.summary
    scene.update(device=A100, warps=8)
    assert not any(artist.get_visible() for artist in scene._back.artists)


def test_memory_refuses_what_it_does_not_know():
    with pytest.raises(UnknownNameError, match="no latency is recorded"):
        MemoryScene().update(B200)
    with pytest.raises(ArgumentError, match=r"MemoryScene\(\): `warps` must be a whole number >= 1"):
        MemoryScene().update(A100, warps=0)


@pytest.mark.parametrize(
    "tile, buffers, words, line", [(16, 1, 1024, 1), (8, 2, 256, 1), (12, 1, 512, 4), (40, 1, 2048, 1)]
)
def test_the_tiling_view_counts_and_simulates(tile, buffers, words, line):
    view = TilingScene().update(48, tile, buffers, words, line)
    cache = Cache(Q_(4 * words, "byte"), Q_(4 * line, "byte"))
    assert view.values["cache"] == simulate(gemm_trace(48, 48, 48, WORD, tile), cache).last.misses * line
    fits = 3 * buffers * tile**2 <= words
    assert view.values["buffer"] == (gemm_traffic(48, 48, 48, tile).words if fits else None)
    assert ("cannot hold them" in view.summary) == (not fits)
    assert view.summary in view.alt and f"{view.values['cache']:,}" in view.summary


def test_tiling_shows_the_cliff_of_single_words_only():
    scene = TilingScene()
    scene.update(size=32, words=256, line_words=1)
    cliff, label = scene._traffic._marks[1]
    assert cliff.get_visible() and cliff.get_xdata()[0] == lru_cliff(256)
    scene.update(size=32, words=256, line_words=4)
    assert not cliff.get_visible() and not label.get_visible(), "longer lines move it"


def test_page_and_lab_draw_traffic_over_tiles_alike(ax):
    viz.traffic_by_tile(ax, 64, 1024)
    scene = TilingScene()
    scene.update(size=64, words=1024)
    page = dict(zip(*ax.lines[0].get_data(), strict=True))
    lab = dict(zip(*scene._traffic.cache.get_data(), strict=True))
    assert page.items() <= lab.items()


@pytest.mark.parametrize(
    "options, words",
    [
        ({"size": 65}, r"TilingScene\(\): `size` must be at most 64"),
        ({"tile": 0}, r"TilingScene\(\): `tile` must be a whole number >= 1"),
        ({"words": 1000, "line_words": 16}, r"`line_words` of 16 must divide the 1000 words"),
    ],
)
def test_tiling_refuses_what_has_no_meaning(options, words):
    with pytest.raises(ArgumentError, match=words):
        TilingScene().update(**options)
