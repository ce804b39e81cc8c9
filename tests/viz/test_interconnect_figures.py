"""Figures of links and of one request's way: what is drawn are the rates, sums and legs of the models."""

import itertools

import numpy as np
import pytest

from mlsys import Q_, viz
from mlsys.errors import ArgumentError
from mlsys.hardware import systems
from mlsys.models.journey import request_journey
from mlsys.models.overlap import overlapped_steps

DGX = systems["DGX_H100"]


def message(ax) -> str:
    return " | ".join(text.get_text() for text in ax.texts)


def roles(ax, role):
    return [patch for patch in ax.patches if patch.get_gid() == role]


def test_the_taper_is_that_of_one_generation_a_block_and_one_direction(ax):
    viz.bandwidth_taper(ax, [systems["DGX_A100"], DGX])
    ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
    assert ends == pytest.approx([2039, 300, 31.5, 25, 3350, 450, 63, 50])
    for step in ("÷ 6.80", "÷ 9.52", "÷ 7.44", "÷ 7.14"):
        assert step in message(ax)
    assert message(ax).count("÷ 1.26") == 2
    with pytest.raises(ArgumentError, match="has no network between nodes"):
        viz.bandwidth_taper(ax, [systems["Server_8x_A100_PCIe"]])


def test_half_of_the_bandwidth_is_marked_where_latency_and_transfer_are_equal(ax):
    viz.attained_bandwidth(ax, {"NVLink": DGX.scale_up, "PCIe": DGX.host})
    curve, mark = ax.lines[:2]
    sizes, rates = np.asarray(curve.get_xdata()), np.asarray(curve.get_ydata())
    assert rates == pytest.approx(sizes / (0.6e-6 + sizes / 450e9) / 1e9)
    assert list(mark.get_xdata()) == pytest.approx([0.6e-6 * 450e9])
    assert "half at 270 kB" in message(ax) and "half at 63 kB" in message(ax)


def test_the_ring_shows_the_series_and_its_limit(ax):
    viz.ring_time(ax, Q_(1, "GB"), {"NVLink 3": Q_(300, "GB/s")}, (2, 4, 8, 64))
    assert list(ax.lines[0].get_ydata()) == pytest.approx([3.33, 5.0, 5.83, 6.56], abs=0.005)
    assert "limit 6.67 ms" in message(ax)


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
def test_after_each_round_of_a_ring_one_block_of_each_rank_has_grown(ax, ranks):
    viz.ring_steps(ax, ranks)
    counts = [int(text.get_text()) for text in ax.texts if text.get_text().isdigit()]
    rounds = [counts[start : start + ranks**2] for start in range(0, len(counts), ranks**2)]
    assert len(rounds) == 2 * (ranks - 1) + 1
    assert set(rounds[0]) == {1} and set(rounds[-1]) == {ranks}
    for before, after in itertools.pairwise(rounds):
        assert sum(new > old for old, new in zip(before, after, strict=True)) == ranks, "one message a rank"
    assert rounds[ranks - 1].count(ranks) == ranks, "the reduce-scatter leaves each rank one full block"


def test_only_pageable_memory_is_copied_twice(ax):
    viz.copy_paths(ax)
    assert len(roles(ax, "host")) == len(roles(ax, "device")) == 3
    assert len(roles(ax, "staging")) == 1 and len(roles(ax, "copy")) == 2 + 1 + 3
    assert all(text.get_fontsize() >= 9 for text in ax.texts)


def test_two_time_lines_stand_one_above_the_other(ax):
    once, twice = (overlapped_steps("DGX_A100", Q_(150, "MB"), Q_(8, "ms"), steps=5, buffers=n) for n in (1, 2))
    viz.copy_timeline(ax, twice, once)
    upper = [bar for bar in ax.patches if bar.get_y() > 2]
    assert len(upper) == len(ax.patches) / 2 == 10
    ends = [max(bar.get_x() + bar.get_width() for bar in bars) for bars in (upper, [*ax.patches][10:])]
    assert ends == pytest.approx([once.time.m_as("ms"), twice.time.m_as("ms")])


def test_the_way_of_a_request_names_bytes_passes_and_prices(ax):
    result = request_journey(DGX, 16_000, 1024)
    viz.tensor_path(ax, result)
    assert len(roles(ax, "station")) == 6 and len(roles(ax, "inward")) == 5 and len(roles(ax, "outward")) == 2
    assert "32 kB, once, 243 pJ/byte" in message(ax) and "2.05 MB, 64 ×, 1.6 pJ/byte" in message(ax)


def test_the_parts_of_a_request_follow_each_other(ax):
    result = request_journey(DGX, 16_000, 1024)
    viz.journey_time(ax, result)
    edges = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    assert all(end == pytest.approx(start) for (_, end), (start, _) in itertools.pairwise(edges))
    assert edges[-1][1] == pytest.approx(result.time.m_as("us"))


def test_the_energy_of_legs_sums_to_that_of_the_request(ax):
    result = request_journey(DGX, 16_000, 1024)
    viz.journey_energy(ax, result)
    drawn = sum(bar.get_x() + bar.get_width() for bar in ax.patches)
    assert drawn == pytest.approx(result.figures["energy"].m_as("uJ"))


def test_price_and_number_of_passes_multiply_to_the_energy_of_a_byte(ax):
    result = request_journey(DGX, 16_000, 1024)
    viz.price_by_passes(ax, result)
    points = max(ax.lines, key=lambda line: len(line.get_xdata()))
    energy = (np.asarray(points.get_xdata()) * np.asarray(points.get_ydata())).sum() * 32_000 * 1e-6
    inward = sum((leg.request_energy for leg in result.legs[:-2]), start=Q_(0.0, "J"))
    assert energy == pytest.approx((inward + result.energy["arithmetic"]).m_as("uJ"))
