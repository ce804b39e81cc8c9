"""Shares sum to the whole, none is negative, no promise beats Amdahl: on what nobody chose."""

import re

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from mlsys.measure import CAUSES, LayerWork, Log, attribute, attribute_times, stored_logs
from mlsys.measure.recommend.whatif import amdahl, what_ifs
from mlsys.viz.explain import layer_roofline

from .conftest import make_log


def drawn(draw: np.random.Generator):
    """Return layers, times and rates over many decades, some of them zero."""
    count = int(draw.integers(1, 12))

    def amount() -> int:
        return 0 if draw.random() < 0.2 else int(10 ** draw.uniform(0, 9))

    works = [LayerWork(f"l{index}", "conv", amount(), amount(), amount(), amount()) for index in range(count)]
    times = {work.name: 0.0 if draw.random() < 0.1 else float(10 ** draw.uniform(-6, 4)) for work in works}
    if draw.random() < 0.3:
        times.pop("l0")
    rates = {name: float(10 ** draw.uniform(3, 13)) for name in ("ops_per_s", "bytes_per_s")}
    return (
        works,
        times,
        rates | {"launch_s": float(10 ** draw.uniform(-9, -2)), "entry_s": float(10 ** draw.uniform(-9, -2))},
    )


def test_shares_sum_to_a_hundred_on_five_hundred_sets() -> None:
    draw = np.random.default_rng(500)
    for _ in range(500):
        works, times, rates = drawn(draw)
        total = float(10 ** draw.uniform(-6, 4))
        attribution = attribute_times("drawn", total, works, times, **rates)
        assert abs(sum(attribution.shares.values()) - 100) <= 1e-9
        assert all(share >= 0 for share in attribution.shares.values())
        assert sum(
            layer.time for layer in attribution.layers
        ) + attribution.entry + attribution.between == pytest.approx(total)
        for layer in attribution.layers:
            assert all(layer.parts[cause] >= 0 for cause in CAUSES)
            assert sum(layer.parts.values()) == pytest.approx(layer.time)
        for gain in what_ifs(attribution, int8_ops_per_s=float(10 ** draw.uniform(3, 14)), idle_cores=3):
            assert gain.why
            assert 1 <= gain.speedup <= gain.limit * (1 + 1e-12)
            assert gain.applies or gain.speedup == 1


def test_by_hand() -> None:
    """4 M operations at 1 GOP/s take 4 ms, 3 kB at 1 MB/s take 3 ms: held by arithmetic; 1 ms of 6 is a launch."""
    work = LayerWork("conv", "conv", 2_000_000, 1000, 1000, 1000)
    attribution = attribute_times("hand", 8.0, [work], {"conv": 6.0}, ops_per_s=1e9, bytes_per_s=1e6, launch_s=1e-3)
    assert attribution.layers[0].bound == "compute"
    assert attribution.layers[0].parts == {"compute": 4.0, "memory": 0.0, "launch": 1.0, "residual": 1.0}
    assert attribution.shares == {"compute": 50.0, "memory": 0.0, "launch": 12.5, "residual": 37.5}
    slow = attribute_times("hand", 8.0, [work], {"conv": 6.0}, ops_per_s=1e9, bytes_per_s=1e5)
    assert slow.layers[0].bound == "memory" and slow.layers[0].beats
    assert "Faster than their bound" in slow.notes[-1]
    idle = attribute_times("hand", 80.0, [work], {"conv": 60.0}, ops_per_s=1e9, bytes_per_s=1e6)
    assert idle.layers[0].bound == "overhead"


def test_a_timer_that_saw_more_than_the_whole_is_told() -> None:
    work = LayerWork("conv", "conv", 1000, 1, 1, 1)
    attribution = attribute_times("hand", 1.0, [work], {"conv": 4.0}, ops_per_s=1e9, bytes_per_s=1e9)
    assert attribution.scale == 0.25
    assert "4.00 times the whole" in attribution.notes[0]


def test_ranking_is_that_of_the_times(log: Log) -> None:
    attribution = attribute(log)
    assert max(attribution.layers, key=lambda layer: layer.time).name == "a"
    assert "Most of it: a 50 %" in attribution.explain()


@pytest.mark.parametrize(
    "change", [{"ops_per_s": 0.0}, {"bytes_per_s": float("nan")}, {"ops_per_s": -1.0}, {"launch_s": -1.0}]
)
def test_wrong_rates_are_refused(change: dict[str, float]) -> None:
    rates = {"ops_per_s": 1e9, "bytes_per_s": 1e9, "launch_s": 0.0} | change
    with pytest.raises(ValueError, match="attribute_times"):
        attribute_times("x", 1.0, [LayerWork("a", "conv", 1, 1, 1, 1)], {"a": 1.0}, **rates)


def test_without_layers_or_rates_it_says_why() -> None:
    with pytest.raises(ValueError, match="has no layer times"):
        attribute(make_log())


def test_amdahl_by_hand_and_refusals() -> None:
    assert amdahl(0.45, 4) == pytest.approx(1 / (0.55 + 0.1125))
    assert amdahl(1.0, float("inf")) == float("inf")
    for share, factor in ((-0.1, 2), (1.1, 2), (0.5, 0.5), (float("nan"), 2), (0.5, float("nan"))):
        with pytest.raises(ValueError, match="amdahl"):
            amdahl(share, factor)


def test_premises_that_fail_are_said() -> None:
    work = LayerWork("only", "pool", 0, 0, 1000, 10)
    attribution = attribute_times("pool", 2.0, [work], {"only": 2.0}, ops_per_s=1e9, bytes_per_s=1e6)
    result = {gain.change: gain for gain in what_ifs(attribution, int8_ops_per_s=4e9)}
    assert not result["INT8 arithmetic"].applies
    assert result["INT8 arithmetic"].why == "none of the time is spent on compute"
    assert result["fusing all layers into one kernel"].why == "there is only one layer"
    assert result["INT8 weights and activations"].applies
    slower = what_ifs(attribution, int8_ops_per_s=5e8)
    assert any("no faster" in gain.why for gain in slower)


@pytest.mark.parametrize("name", sorted(stored_logs()))
def test_no_layer_lies_above_the_roof_that_it_is_judged_by(name: str) -> None:
    """Read off the figure: points lie below their bars, except as many as the legend says; bars are the verdict."""
    log = stored_logs()[name]
    attribution = attribute(log)
    ax = Figure().add_subplot()
    layer_roofline(ax, attribution)
    bars = {x: y for line in ax.lines if line.get_marker() == "_" for x, y in line.get_xydata()}
    points = [point for group in ax.collections if isinstance(group, PathCollection) for point in group.get_offsets()]
    placed = {layer.name: layer for layer in attribution.layers if layer.rate and layer.intensity}
    faster = [x for x, rate in points if rate > bars[x] / 0.98]
    message = " ".join(text.get_text() for text in ax.get_legend().get_texts())
    assert len(points) == len(placed) > 5
    assert len(faster) == sum(map(int, re.findall(r"(\d+) of them faster", message)))
    for work in log.works:  # the operations of a layer at the rate of its bar take the least time that it is judged by
        if work.name in placed:
            layer = placed[work.name]
            assert 2e3 * work.macs / (bars[layer.intensity] * 1e9) == pytest.approx(max(layer.compute, layer.memory))
