"""Schematics of batching and figures of load: areas are shares of waste, marks are the numbers of the simulation."""

import itertools

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from mlsys import viz
from mlsys.errors import ArgumentError
from mlsys.models.serving import (
    Objectives,
    Requests,
    ServerSettings,
    ServingResult,
    TabulatedSteps,
    poisson_requests,
    simulate,
    static_batching,
)
from mlsys.units import Q_


def boxes(ax, role: str) -> list[Rectangle]:
    return [patch for patch in ax.patches if str(patch.get_gid()).startswith(role)]


def width(ax, role: str) -> float:
    return sum(patch.get_width() for patch in boxes(ax, role))


def test_padding_and_free_places_have_the_width_of_what_is_wasted(ax) -> None:
    viz.padded_rows(ax, [300, 90], [128, 512])
    assert (width(ax, "tokens"), width(ax, "padding")) == (390, 512 - 300 + 128 - 90)
    assert any("39.1%" in text.get_text() for text in ax.texts)  # 250 / 640
    viz.cache_blocks(ax, [37, 16], 16, 64)
    assert (width(ax, "stored"), width(ax, "block"), width(ax, "reserved")) == (53, 64, 128)
    shown = [text.get_text() for text in ax.texts]
    assert any("17.2%" in text for text in shown) and any("58.6%" in text for text in shown)
    with pytest.raises(ArgumentError, match="more than `longest`"):
        viz.cache_blocks(ax, [65], 16, 64)


def test_slots_show_the_same_work_twice_and_what_a_static_batch_adds(ax) -> None:
    draws = np.random.default_rng(3)
    requests = Requests(np.sort(draws.random(20)), np.ones(20), draws.integers(1, 12, 20))
    steps = TabulatedSteps.constant(Q_(1, "s"))
    static = static_batching(requests, steps, batch=4, buckets=[1])
    run = simulate(requests, steps, ServerSettings(4, 8, 64))
    viz.batch_slots(ax, static, run)
    bars = boxes(ax, "request ")
    assert sum(bar.get_width() for bar in bars) == pytest.approx(2 * requests.output.sum())
    unused = width(ax, "unused")
    assert unused / (unused + requests.output.sum()) == pytest.approx(static.output_waste)
    rows: dict[float, list[tuple[float, float]]] = {}
    for bar in bars:
        rows.setdefault(round(bar.get_y(), 6), []).append((bar.get_x(), bar.get_x() + bar.get_width()))
    assert len(rows) == 8
    for spans in rows.values():
        ordered = sorted(spans)
        assert all(after[0] >= before[1] - 1e-9 for before, after in itertools.pairwise(ordered))
    with pytest.raises(ArgumentError, match="same requests"):
        viz.batch_slots(ax, static, simulate(Requests([0.0], [1], [1]), steps, ServerSettings(4, 8, 64)))


def test_waits_of_closed_forms_and_of_simulations(ax) -> None:
    viz.waits_by_load(ax, {0.5: (1.1, 0.1)}, {0.5: (0.4, 0.05)}, highest=0.9)
    curves = [line for line in ax.lines if len(line.get_xdata()) > 10]
    assert [line.get_ydata()[-1] for line in curves] == pytest.approx([9.0, 4.5])
    points = [
        tuple(line.get_xydata()[0]) for line in ax.lines if len(line.get_xdata()) == 1 and line.get_marker() in "os"
    ]
    assert points == [(0.5, 1.1), (0.5, 0.4)]


def result(rate: float, slo: str | None) -> ServingResult:
    steps = TabulatedSteps.of(lambda p, b, c: 1e-4 * p + 1e-2 * b, 512, 4, 4096)
    run = simulate(poisson_requests(Q_(rate, "1/s"), 64, 16, count=400, seed=1), steps, ServerSettings(4, 512, 64))
    objectives = None if slo is None else Objectives.parse(slo)
    return ServingResult("model", "device", "requests", run, None, None, objectives, None, None, (), ())


def test_goodput_is_the_served_rate_times_the_good_share_and_its_best_is_marked(ax) -> None:
    results = [result(rate, "E2E<1 s") for rate in (1.0, 6.0, 12.0)]
    viz.goodput_by_load(ax, results)
    offered, served, good = (np.asarray(line.get_ydata()) for line in ax.lines)
    by_hand = [(one.run.latency <= 1).mean() * 400 / one.run.span for one in results]
    assert good == pytest.approx(by_hand)
    assert (good <= served).all() and (served <= offered * 1.01).all()
    assert any(f"best: {max(by_hand):.3g}/s" == text.get_text() for text in ax.texts)
    with pytest.raises(ArgumentError, match="objectives"):
        viz.goodput_by_load(ax, [result(1.0, None)])


def test_a_distribution_holds_as_many_requests_as_it_says(ax) -> None:
    one = result(6.0, None)
    viz.latency_distribution(ax, [one], "ttft", limit=0.1)
    curve = ax.lines[0]
    for value, share in list(curve.get_xydata())[::10]:
        ttft = 1e3 * one.run.ttft  # many are equal: the light load serves them at once
        assert (
            (ttft < value * (1 - 1e-12)).mean() - 0.005 <= share / 100 <= (ttft <= value * (1 + 1e-12)).mean() + 0.005
        )
