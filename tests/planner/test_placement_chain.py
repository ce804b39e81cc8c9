"""Placement of chains, against enumeration of every placement in exact decimals."""

import copy
import itertools
import json
import random
from fractions import Fraction
from typing import Any

import pytest

from mlsys.errors import ArgumentError, ScenarioFileError, UnknownNameError
from mlsys.planner.placement import Scenario, example, plan
from mlsys.planner.placement.report import as_csv, plan_text, record
from sampled import drawn


def enumerate_all(data: dict[str, Any]) -> list[tuple[Fraction, Fraction, int, tuple[str, ...]]]:
    """Every placement that the caps allow: latency, energy, switches, devices; straight from the data."""

    def dec(value: float) -> Fraction:
        return Fraction(str(value))

    links = {(link["from"], link["to"]): link for link in data["links"]}
    budgets = {device["name"]: dec(device["memory_mb"]) for device in data["devices"]}
    caps = data.get("constraints", {})
    allowed = []
    for devices in itertools.product(*(sorted(stage["profiles"]) for stage in data["stages"])):
        latency = energy = Fraction(0)
        switches, held, bad = 0, dict.fromkeys(budgets, Fraction(0)), False
        for index, (device, stage) in enumerate(zip(devices, data["stages"], strict=True)):
            profile = stage["profiles"][device]
            latency += dec(profile["latency_ms"])
            energy += dec(profile["energy_mj"])
            more = dec(profile["memory_mb"])
            held[device] = max(held[device], more) if data.get("memory") == "peak" else held[device] + more
            if index and devices[index - 1] != device:
                link = links.get((devices[index - 1], device))
                if link is None:
                    bad = True
                    break
                size = dec(data["stages"][index - 1]["output_mb"])
                latency += dec(link["latency_ms"]) + size / dec(link["bandwidth_gb_s"])
                energy += size * dec(link["energy_mj_per_mb"])
                switches += 1
        bad = bad or any(held[name] > budgets[name] for name in budgets)
        bad = bad or ("latency_ms" in caps and latency > dec(caps["latency_ms"]))
        bad = bad or ("energy_mj" in caps and energy > dec(caps["energy_mj"]))
        if not bad:
            allowed.append((latency, energy, switches, devices))
    return allowed


def chain(rng: random.Random, stages: int, devices: int) -> dict[str, Any]:
    names = rng.sample(["cpu", "gpu", "npu", "dsp", "vpu"], devices)
    coarse = rng.random() < 0.5  # small whole numbers make ties
    number = (
        (lambda low, high: rng.randint(low, high)) if coarse else (lambda low, high: round(rng.uniform(low, high), 3))
    )
    data: dict[str, Any] = {
        "devices": [{"name": name, "memory_mb": number(4, 30)} for name in names],
        "links": [
            {
                "from": a,
                "to": b,
                "latency_ms": number(0, 2),
                "bandwidth_gb_s": number(1, 9),
                "energy_mj_per_mb": number(0, 2),
            }
            for a in names
            for b in names
            if a != b and rng.random() < 0.85
        ],
        "stages": [
            {
                "name": f"s{index}",
                "output_mb": number(0, 9),
                "profiles": {
                    name: {"latency_ms": number(1, 9), "energy_mj": number(1, 9), "memory_mb": number(0, 9)}
                    for name in names
                    if rng.random() < 0.8
                }
                or {names[0]: {"latency_ms": 1, "energy_mj": 1, "memory_mb": 1}},
            }
            for index in range(stages)
        ],
        "constraints": {},
    }
    if rng.random() < 0.3:
        data["memory"] = "peak"
    if rng.random() < 0.4:
        data["constraints"]["latency_ms"] = number(3 * stages, 8 * stages)
    if rng.random() < 0.4:
        data["constraints"]["energy_mj"] = number(3 * stages, 8 * stages)
    return data


def ranking(data: dict[str, Any], goal: str) -> list[tuple[Fraction, int, tuple[str, ...]]]:
    allowed = enumerate_all(data)
    if not allowed:
        return []
    quickest, lowest_energy = min(costs[0] for costs in allowed), min(costs[1] for costs in allowed)
    score = {
        "latency": lambda costs: costs[0],
        "efficiency": lambda costs: costs[1],
        "balanced": lambda costs: (costs[0] / quickest + costs[1] / lowest_energy) / 2,
    }[goal]
    return sorted((score(costs), costs[2], costs[3]) for costs in allowed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("block", drawn(range(10), 3, "rankings of chains"))
def test_every_ranking_equals_enumeration(block: int) -> None:
    rng = random.Random(block)
    for _ in range(100):
        data = chain(rng, rng.randint(1, 7), rng.randint(1, 3))
        goal = rng.choice(["latency", "efficiency", "balanced"])
        top = rng.choice([1, 3, 10])
        truth = ranking(data, goal)[:top]
        result = plan(data, goal, top=top)  # type: ignore[arg-type]
        assert result.optimal
        assert [tuple(device for device, _ in ranked.placed.key) for ranked in result.placements] == [
            ranked[2] for ranked in truth
        ]
        assert [ranked.score for ranked in result.placements] == [float(ranked[0]) for ranked in truth]
        assert [ranked.placed.switches for ranked in result.placements] == [ranked[1] for ranked in truth]
        assert bool(result.binding) == (not truth)
        if goal == "balanced" and truth:
            assert result.placements[0].score >= 1


def test_beam_is_never_better_and_seldom_worse() -> None:
    rng = random.Random(77)
    cases = equal = 0
    for _ in range(300):
        data = chain(rng, rng.randint(2, 7), 3)
        best = plan(data)
        if not best.placements:
            continue
        cases += 1
        beam = plan(data, strategy="beam", width=4)
        if beam.placements:
            assert beam.placements[0].score >= best.placements[0].score
            assert beam.bound <= best.placements[0].score * (1 + 1e-9)
            equal += beam.placements[0].score == best.placements[0].score
    assert cases > 100
    assert equal >= 0.99 * cases


def test_example_is_the_published_table() -> None:
    result = plan(example(), top=3)
    best = result.best
    assert result.optimal and result.strategy == "exact"
    assert (float(best.latency), float(best.energy), best.switches) == (27.97, 32.18, 2)
    assert {name: float(held) for name, held in best.memory.items()} == {"gpu": 1030, "npu": 2576}
    hops = [(stage.stage, float(stage.transfer_latency), float(stage.transfer_energy)) for stage in best.stages]
    assert [hop for hop in hops if hop[1]] == [("backbone", 1.08, 0.72), ("overlay", 0.09, 0.06)]
    assert len({ranked.placed.key for ranked in result.placements}) == 3


@pytest.mark.parametrize(
    ("limit", "key", "exactly"), [("latency_ms", "latency", 27.97), ("energy_mj", "energy", 32.18)]
)
def test_a_cap_exactly_met_passes_and_one_unit_less_fails(limit: str, key: str, exactly: float) -> None:
    data = example()
    data["constraints"] = {limit: exactly}
    assert float(getattr(plan(data).best, key)) == exactly
    data["constraints"] = {limit: exactly - 0.01}
    result = plan(data)
    assert not result.placements and result.optimal
    assert f"constraints.{limit}: at most {exactly - 0.01:g}" in result.binding[0]


def test_a_memory_budget_exactly_met_passes_and_one_unit_less_fails() -> None:
    data = example()
    for stage in data["stages"]:
        stage["profiles"] = {name: cost for name, cost in stage["profiles"].items() if name != "cpu"}
    data["stages"][2]["profiles"] = {"npu": data["stages"][2]["profiles"]["npu"]}
    for index in (3, 4, 5):
        del data["stages"][index]["profiles"]["gpu"]
    data["devices"][2]["memory_mb"] = 2576
    data["devices"][1]["memory_mb"] = 1030
    assert plan(data).best.switches == 2
    data["devices"][2]["memory_mb"] = 2575
    assert plan(data).binding == ("memory_mb of npu: at most 2,575 MB",)
    data["memory"] = "peak"
    data["devices"][2]["memory_mb"] = 1240
    assert plan(data).best.switches == 2
    data["devices"][2]["memory_mb"] = 1239
    assert plan(data).binding == ("memory_mb of npu: at most 1,239 MB",)


def test_decimals_meet_caps_that_binary_fractions_miss() -> None:
    data = {
        "devices": [{"name": "a", "memory_mb": 0.3}],
        "stages": [
            {"name": name, "output_mb": 0, "profiles": {"a": {"latency_ms": size, "energy_mj": 1, "memory_mb": size}}}
            for name, size in (("x", 0.1), ("y", 0.2))
        ],
        "constraints": {"latency_ms": 0.3},
    }
    assert plan(data).placements


def test_shuffled_input_gives_the_same_bytes() -> None:
    data = example()
    reported = (
        json.dumps(record(plan(data, "balanced", top=5))),
        plan_text(plan(data, top=5)),
        as_csv(plan(data, top=5)),
    )
    rng = random.Random(3)
    for _ in range(5):
        other = copy.deepcopy(data)
        rng.shuffle(other["devices"])
        rng.shuffle(other["links"])
        for stage in other["stages"]:
            profiles = list(stage["profiles"].items())
            rng.shuffle(profiles)
            stage["profiles"] = dict(profiles)
        again = (
            json.dumps(record(plan(other, "balanced", top=5))),
            plan_text(plan(other, top=5)),
            as_csv(plan(other, top=5)),
        )
        assert again == reported


def test_sixty_stages_are_proven_with_tight_caps() -> None:
    rng = random.Random(5)
    data = chain(rng, 60, 4)
    names = [device["name"] for device in data["devices"]]
    for stage in data["stages"]:
        stage["profiles"] = {
            name: {
                "latency_ms": round(rng.uniform(1, 9), 3),
                "energy_mj": round(rng.uniform(1, 9), 3),
                "memory_mb": rng.randint(1, 9),
            }
            for name in names
        }
    data["links"] = [
        {"from": a, "to": b, "latency_ms": 0.5, "bandwidth_gb_s": 10, "energy_mj_per_mb": 0.1}
        for a in names
        for b in names
        if a != b
    ]
    data["constraints"] = {}
    data.pop("memory", None)
    for device in data["devices"]:
        device["memory_mb"] = 90
    result = plan(data)
    assert result.optimal
    assert all(held <= 90 for held in result.best.memory.values())


def test_formats_under_a_floor_of_accuracy() -> None:
    data = example()
    data["accuracy"] = 76.0
    for stage in (2, 3, 4):
        costs = data["stages"][stage]["profiles"]["npu"]
        costs["formats"] = {
            "int8": {key: value / 2 for key, value in costs.items()} | {"accuracy_loss": (stage - 1) / 10}
        }
    best = {}
    for floor in (76.0, 75.9, 75.7, 75.6, 75.4, 70.0):
        data["constraints"] = {"accuracy": floor}
        result = plan(data)
        assert float(result.best.loss) <= 76.0 - floor + 1e-12
        best[floor] = float(result.best.latency)
    # gains: backbone 3.7 ms for 0.1 points, neck 2.35 ms for 0.2, head 3.1 ms for 0.3: the best subsets by hand
    assert best == pytest.approx({76.0: 27.97, 75.9: 24.27, 75.7: 21.92, 75.6: 21.17, 75.4: 18.82, 70.0: 18.82})


def test_throughput_equals_enumeration() -> None:
    rng = random.Random(11)
    for _ in range(25):
        data = chain(rng, 5, 3)
        data["constraints"] = {}
        links = {(link["from"], link["to"]): link for link in data["links"]}
        truth = None
        for *_, devices in enumerate_all(data):
            busy: dict[str, float] = {}
            for index, device in enumerate(devices):
                time = data["stages"][index]["profiles"][device]["latency_ms"]
                if index and devices[index - 1] != device:
                    link = links[devices[index - 1], device]
                    time += link["latency_ms"] + data["stages"][index - 1]["output_mb"] / link["bandwidth_gb_s"]
                busy[device] = busy.get(device, 0) + time
            truth = min(max(busy.values()), truth if truth is not None else float("inf"))
        result = plan(data, "throughput")
        if truth is None:
            assert not result.placements
        else:
            assert result.placements[0].score == pytest.approx(truth, rel=1e-8)


def test_options_are_checked() -> None:
    with pytest.raises(
        UnknownNameError, match="`goal` must be one of latency, efficiency, balanced, throughput, got 'fast'"
    ):
        plan(example(), "fast")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="`top` must be a whole number >= 1, got 0"):
        plan(example(), top=0)
    with pytest.raises(ArgumentError, match="`weight` must lie between 0 and 1, got nan"):
        plan(example(), "balanced", weight=float("nan"))


def test_every_fault_is_told_with_its_place() -> None:
    data = example()
    data["devices"][0]["memory_mb"] = 0
    data["devices"][2]["name"] = "gpu"
    data["links"][0]["bandwidth_gb_s"] = float("nan")
    data["stages"][0]["name"] = "resize"
    data["stages"][3]["profiles"]["npu"]["energy_mj"] = -1
    data["constraints"]["latency"] = 3
    with pytest.raises(ScenarioFileError) as caught:
        Scenario(data)
    lines = str(caught.value).splitlines()
    for line in (
        "constraints.latency: unknown key 'latency'. Did you mean 'latency_ms'? "
        "Known: latency_ms, energy_mj, accuracy, rate_hz",
        "devices.0.memory_mb: must be a number above 0 to 1e+12, got 0",
        "devices.2.name: duplicate device 'gpu', first as devices.1",
        "links.0.bandwidth_gb_s: must be finite, got nan",
        "links.0.to: unknown device 'npu'. Did you mean 'gpu'?",
        "stages.1.name: duplicate stage 'resize', first as stages.0",
        "stages.3.profiles.npu.energy_mj: must be a number above 0 to 1e+12, got -1",
        "stages.3.profiles.npu: unknown device 'npu'. Did you mean 'gpu'?",
    ):
        assert line in lines
