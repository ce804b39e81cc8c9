"""Placement of graphs, against every order of starting of every choice; heat, against Euler's method."""

import itertools
import random
from fractions import Fraction
from typing import Any

import pytest

from mlsys.planner.placement import Scenario, example, heating, plan, sustained_rate
from mlsys.planner.placement.schedule import critical_path, schedule
from mlsys.planner.placement.thermal import peak_temperatures, ripple_peak


def graph(rng: random.Random, stages: int, devices: int) -> dict[str, Any]:
    names = ["cpu", "gpu", "npu"][:devices]

    def number(low: int, high: int) -> int:
        return rng.randint(low, high)

    return {
        "devices": [{"name": name, "memory_mb": 60, "streams": rng.choice([1, 1, 2])} for name in names],
        "links": [
            {"from": a, "to": b, "latency_ms": number(0, 2), "bandwidth_gb_s": number(1, 9), "energy_mj_per_mb": 1}
            for a in names
            for b in names
            if a != b and rng.random() < 0.85
        ],
        "stages": [
            {
                "name": f"s{index}",
                "output_mb": number(0, 9),
                "after": sorted({f"s{rng.randrange(index)}" for _ in range(rng.choice([1, 1, 2]))})
                if index and rng.random() < 0.9
                else [],
                "profiles": {
                    name: {"latency_ms": number(1, 9), "energy_mj": number(1, 9), "memory_mb": 1} for name in names
                },
            }
            for index in range(stages)
        ],
    }


def shortest(scenario: Scenario) -> Fraction | None:
    stages = scenario.stages
    position = {stage.name: number for number, stage in enumerate(stages)}
    orders = [
        order
        for order in itertools.permutations(range(len(stages)))
        if all(
            order.index(position[name]) < order.index(index)
            for index, stage in enumerate(stages)
            for name in stage.after
        )
    ]
    best = None
    for choices in itertools.product(*(stage.choices for stage in stages)):
        for order in orders:
            scheduled = schedule(scenario, choices, order)
            if scheduled is None:
                break
            best = scheduled.latency if best is None else min(best, scheduled.latency)
    return best


def test_every_makespan_equals_enumeration() -> None:
    rng = random.Random(1)
    for _ in range(15):
        scenario = Scenario(graph(rng, rng.randint(2, 5), 2))
        truth, result = shortest(scenario), plan(scenario)
        assert result.optimal
        assert (truth is None) == (not result.placements)
        if truth is not None:
            assert result.best.latency == truth
            assert truth >= critical_path(scenario)


def test_ten_stages_on_three_devices_are_proven() -> None:
    rng = random.Random(4)
    for _ in range(4):
        scenario = Scenario(graph(rng, 10, 3))
        result = plan(scenario)
        assert result.optimal
        assert result.best.latency >= critical_path(scenario)
        for device in scenario.devices:  # never more at once than there are streams
            runs = [
                (end - stage.choice.latency, end)
                for stage, (_, end) in zip(result.best.stages, result.best.spans, strict=True)
                if stage.choice.device == device.name
            ]
            for start, _ in runs:
                assert sum(begin <= start < end for begin, end in runs) <= device.streams


def test_a_second_stream_helps_a_fork() -> None:
    cost = {"cpu": {"latency_ms": 3, "energy_mj": 1, "memory_mb": 1}}
    stages = [{"name": name, "output_mb": 1, "after": [], "profiles": cost} for name in "ab"]
    data = {"devices": [{"name": "cpu", "memory_mb": 9}], "stages": stages}
    assert plan(data).best.latency == 6
    data["devices"] = [{"name": "cpu", "memory_mb": 9, "streams": 2}]
    assert plan(data).best.latency == 3


def test_heating_follows_the_differential_equation() -> None:
    resistance, capacity, power, warm, step = 12.0, 5.0, 3.0, 0.0, 1e-3
    for number in range(60_000):
        if number % 15_000 == 0:
            exact = heating(power, number * step, resistance=resistance, capacity=capacity)
            assert warm == pytest.approx(exact, rel=1e-3, abs=1e-12)
        warm += step * (power - warm / resistance) / capacity
    assert warm == pytest.approx(heating(power, 60, resistance=resistance, capacity=capacity), rel=1e-3)


def test_bursts_for_ever_peak_where_the_closed_form_says() -> None:
    resistance, capacity, energy, on, period = 12.0, 0.01, 0.1, 0.02, 0.05
    warm = 0.0
    for _ in range(200):
        top = heating(energy / on, on, resistance=resistance, capacity=capacity, start=warm)
        warm = heating(0.0, period - on, resistance=resistance, capacity=capacity, start=top)
    assert top == pytest.approx(ripple_peak(energy, on, period, resistance=resistance, capacity=capacity), rel=1e-9)


def hot_example(limit: float) -> dict[str, Any]:
    data = example()
    for device in data["devices"]:
        device["thermal"] = {"resistance_k_per_w": 20.0, "capacity_j_per_k": 3.0, "limit_c": limit}
    return data


def test_the_sustained_plan_never_exceeds_its_limit() -> None:
    for limit in (30, 40, 45, 60, 120):
        scenario = Scenario(hot_example(limit))
        best = plan(scenario).best
        rate = sustained_rate(scenario, best)
        assert 0 < rate <= 1e3 / float(best.bottleneck)
        assert max(peak_temperatures(scenario, best, rate).values()) <= limit


def test_a_rate_for_ever_is_a_cap() -> None:
    data = hot_example(40)
    scenario = Scenario(data)
    rate = sustained_rate(scenario, plan(scenario).best)
    data["constraints"] = {"rate_hz": rate * 0.999}
    assert plan(data).best.key == plan(scenario).best.key
    data["constraints"] = {"rate_hz": rate * 1.5}
    result = plan(data)
    assert not result.placements or result.best.key != plan(scenario).best.key
    data["constraints"] = {"rate_hz": 1e6}
    assert "rate_hz" in plan(data).binding[0] or "thermal limit" in plan(data).binding[0]
