"""Pipelines too large to search: the bounds hold, the solver agrees with enumeration, and time is a limit."""

import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from test_placement_chain import chain, enumerate_all

from mlsys.deadline import Deadline
from mlsys.errors import ArgumentError
from mlsys.planner.placement import Scenario, plan
from mlsys.planner.placement.balance import balanced
from mlsys.planner.placement.chain import search_chain
from mlsys.planner.placement.costs import Caps, caps_of
from mlsys.planner.placement.layers import Layers, Steps, Weights, bottleneck_bound
from mlsys.planner.placement.milp import solve_chain
from mlsys.planner.placement.report import plan_text, record

LATENCY = Weights(Fraction(1), Fraction(0))
AMPLE = 600.0  # seconds: no test waits for its end


def wide(stages: int, devices: int, **constraints: float) -> dict[str, Any]:
    """A pipeline whose every stage runs on every device, all of them linked."""
    rng = random.Random(7)
    names = [f"d{number}" for number in range(devices)]
    return {
        "name": "wide",
        "devices": [{"name": name, "memory_mb": 1000.0} for name in names],
        "links": [
            {"from": a, "to": b, "latency_ms": 0.1, "bandwidth_gb_s": 1.0, "energy_mj_per_mb": 0.1}
            for a in names for b in names if a != b
        ],
        "stages": [
            {"name": f"s{number}", "output_mb": round(rng.uniform(0.1, 2), 3),
             "profiles": {name: {"latency_ms": round(rng.uniform(1, 5), 3), "energy_mj": round(rng.uniform(1, 5), 3),
                                 "memory_mb": 2.0} for name in names}}
            for number in range(stages)
        ],
        **({"constraints": constraints} if constraints else {}),
    }  # fmt: skip


def bottleneck(data: dict[str, Any], devices: tuple[str, ...]) -> float:
    links = {(link["from"], link["to"]): link for link in data["links"]}
    busy = dict.fromkeys(devices, 0.0)
    for index, (device, stage) in enumerate(zip(devices, data["stages"], strict=True)):
        busy[device] += stage["profiles"][device]["latency_ms"]
        if index and devices[index - 1] != device:
            link = links[devices[index - 1], device]
            busy[device] += link["latency_ms"] + data["stages"][index - 1]["output_mb"] / link["bandwidth_gb_s"]
    return max(busy.values())


def busy_layers(scenario: Scenario, limit: float) -> Layers:
    entries = ((f"busy_ms {device.name}", Fraction(limit)) for device in scenario.devices)
    return Layers(Steps(scenario), LATENCY, Caps((*caps_of(scenario).entries, *entries)))


@pytest.mark.parametrize("seed", range(6))
def test_the_solver_and_the_bounds_agree_with_enumeration(seed: int) -> None:
    data = chain(random.Random(seed), 5, 3)
    allowed, scenario = enumerate_all(data), Scenario(data)
    layers = Layers(Steps(scenario), LATENCY, caps_of(scenario))
    places, bound = solve_chain(layers, Deadline(AMPLE))
    if not allowed:
        assert places is None and bound == np.inf
        return
    least = float(min(allowed)[0])
    assert bound <= least * (1 + 1e-9) and bound == pytest.approx(least, rel=1e-5)
    assert places is not None
    chosen = tuple(stage.choices[place].device for stage, place in zip(scenario.stages, places, strict=True))
    assert any(devices == chosen and float(latency) == pytest.approx(least) for latency, _, _, devices in allowed)
    optimum = min(bottleneck(data, devices) for *_, devices in allowed)
    layers = busy_layers(scenario, 1e9)
    assert 0 < bottleneck_bound(layers, Deadline(AMPLE)) <= optimum * (1 + 1e-9)
    _, solved = solve_chain(layers, Deadline(AMPLE), bottleneck=True)
    assert solved <= optimum * (1 + 1e-9) and solved == pytest.approx(optimum, rel=1e-5)
    slowest = max(allowed)[3]
    start = [
        next(i for i, choice in enumerate(stage.choices) if choice.device == device)
        for stage, device in zip(scenario.stages, slowest, strict=True)
    ]
    moved = balanced(layers, start, Deadline(AMPLE))
    after = tuple(stage.choices[place].device for stage, place in zip(scenario.stages, moved, strict=True))
    assert any(devices == after for *_, devices in allowed), "a move broke a cap"
    assert optimum <= bottleneck(data, after) * (1 + 1e-9) <= bottleneck(data, slowest) * (1 + 2e-9)


@pytest.mark.parametrize("goal", ["latency", "throughput", "efficiency", "balanced"])
def test_a_search_without_time_answers_with_its_gap_or_says_that_it_does_not_know(goal: Any) -> None:
    data = wide(16, 4)
    quick, slow = plan(data, goal, seconds=1e-9), plan(data, goal, seconds=AMPLE)
    assert quick.stopped
    if quick.optimal:  # the first pass, which has no limit, was a proof
        assert quick.placements[0].score == slow.placements[0].score
        return
    assert slow.bound <= slow.placements[0].score * (1 + 1e-9)
    if quick.placements:
        assert quick.placements[0].score >= slow.bound * (1 - 1e-9)
        assert quick.bound <= slow.placements[0].score * (1 + 1e-9), "a bound that something beats"
        assert "stopped by the time limit" in plan_text(quick) and record(quick)["stopped"]
    else:
        assert "not known" in plan_text(quick) and not quick.impossible


@pytest.mark.parametrize("memory", [1000.0, 2.2])
@pytest.mark.parametrize("goal", ["latency", "throughput", "efficiency", "balanced"])
def test_little_is_done_once_the_time_is_up(goal: Any, memory: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: each search prices the caps once, and carries on in a beam of a few labels."""
    data = wide(60, 10)
    for device in data["devices"]:
        device["memory_mb"] = memory * 60 / 10
    rounds, cheapest_chain = 0, Layers.cheapest_chain

    def counted(self: Layers, multipliers: Any) -> Any:
        nonlocal rounds
        rounds += 1
        return cheapest_chain(self, multipliers)

    monkeypatch.setattr(Layers, "cheapest_chain", counted)
    limited = plan(data, goal, seconds=1e-9)
    searches = 1 + (goal == "throughput") + 2 * (goal == "balanced")
    assert rounds <= 3 * searches
    assert limited.labels <= searches * 60 * 10 * 4


def test_a_cap_below_the_floor_is_named_alone_and_at_once() -> None:
    data = wide(60, 8, energy_mj=10.0)
    floor = sum(min(profile["energy_mj"] for profile in stage["profiles"].values()) for stage in data["stages"])
    result = plan(data, seconds=AMPLE)
    assert result.impossible and result.optimal and len(result.binding) == 1
    assert "energy_mj: at most 10 mJ" in result.binding[0] and "the least" in result.binding[0]
    cap = float(result.binding[0].rpartition(" is ")[2].split()[0].replace(",", ""))
    assert floor <= cap < 1.5 * floor


def test_labels_fit_into_memory_however_wide_the_pipeline() -> None:
    """A million labels with twenty choices and forty caps each would take seven gigabytes."""
    scenario = Scenario(wide(12, 20))
    entries = ((f"busy_ms {device.name}", Fraction(5)) for device in scenario.devices)
    found = search_chain(scenario, LATENCY, Caps((*caps_of(scenario).entries, *entries)), deadline=Deadline(AMPLE))
    assert found.bound <= float(found.best[0][0]) * (1 + 1e-9)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "5", True, None])
def test_seconds_out_of_range(seconds: Any) -> None:
    with pytest.raises(ArgumentError, match="seconds"):
        plan(wide(2, 2), seconds=seconds)
