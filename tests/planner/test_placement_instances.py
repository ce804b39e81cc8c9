"""Published instances, with values that other programs reached; the evaluator by hand on a case of three."""

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from mlsys.errors import ScenarioFileError
from mlsys.planner.placement.instances.bounds import lower_bound
from mlsys.planner.placement.instances.grouped import Grouped
from mlsys.planner.placement.instances.instance import Instance, evaluate
from mlsys.planner.placement.instances.solve import solve
from sampled import drawn

DATA = Path(__file__).parent / "instances"


@pytest.fixture
def searched_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a small instance to the search, which gets a twentieth of its steps: there it must do with those."""
    monkeypatch.setattr("mlsys.planner.placement.instances.solve._EXHAUSTIVE_GROUPS", 0)
    monkeypatch.setattr("mlsys.planner.placement.instances.solve._steps", lambda grouped: 20_000)


def small(objective: str, **changes: Any) -> dict[str, Any]:
    return {
        "format": "mlsys-placement-1",
        "objective": objective,
        "devices": [
            {"class": "accelerator", "count": 2, "memory_bytes": 10},
            {"class": "cpu", "count": 1, "memory_bytes": None},
        ],
        "node_columns": ["id", "cpu_ms", "acc_ms", "bytes", "acc_ok", "colour"],
        "nodes": [["a", 10, 1, 5, 1, None], ["b", 20, 2, 5, 1, None], ["c", 30, 3, 5, 1, None]],
        "edge_columns": ["src", "dst", "transfer_ms"],
        "edges": [["a", "b", 0.5], ["a", "c", 0.5], ["b", "c", 0.25]],
        **changes,
    }


def test_loads_by_hand() -> None:
    instance = Instance.from_data(small("max_load"))
    score = evaluate(instance, [1, 1, 2])  # 1 + 2 and both outputs leave; 3 and both come in
    assert score.loads_ms == (0, 3.75, 3.75)
    score = evaluate(instance, [0, 1, 1])  # a on the CPU: one fetch of its output, though two read it
    assert score.loads_ms == (10, 5.5, 0) and score.value_ms == 10
    assert evaluate(instance, [1, 1, 1]).broken == ("accelerator 1 holds 15 B, more than 10 B",)


def test_latency_by_hand() -> None:
    instance = Instance.from_data(small("latency"))
    assert evaluate(instance, [1, 1, 2]).value_ms == 7.5  # the second block waits for the first
    assert evaluate(instance, [1, 0, 1]).broken == ("the blocks of the accelerators wait for each other in a circle",)
    assert evaluate(instance, [0, 0, 0]).value_ms == 60


def test_bounds_by_hand() -> None:
    """One sample runs through a, b and c in turn; with room for everything, two accelerators share 6 ms of work."""
    roomy = [{"class": "accelerator", "count": 2, "memory_bytes": 100}, {"class": "cpu", "count": 0}]
    assert lower_bound(Grouped(Instance.from_data(small("latency", devices=roomy)))) == pytest.approx(6)
    assert lower_bound(Grouped(Instance.from_data(small("max_load", devices=roomy)))) == pytest.approx(3)


# The value that the repository's own dynamic program reaches, or its greedy for latency; see README of the data:
# github msr-fiddle/dnn-partitioning@b207b6ad27a1, MIT. Ours must be no worse.
@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("thr-layer-bert24-inference", 17.714719),
        ("thr-layer-bert24-training", 39.789539),
        ("lat-layer-bert24-inference", 100.2185),
    ],
)
def test_published_instances(name: str, published: float) -> None:
    instance = Instance.load(DATA / f"{name}.json")
    solution = solve(instance, rounds=1)
    assert solution.placement is not None
    score = evaluate(instance, solution.placement)
    assert not score.broken
    assert score.value_ms == solution.objective_ms <= published * (1 + 1e-6)
    assert solution.lower_bound_ms <= solution.objective_ms


def test_the_same_seed_gives_the_same_placement() -> None:
    instance = Instance.load(DATA / "thr-layer-bert24-inference.json")
    assert solve(instance, rounds=1) == solve(instance, rounds=1)


def random_instance(rng: random.Random, objective: str, nodes: int) -> Instance:
    edges = [[a, b, 0] for a in range(nodes) for b in range(a + 1, nodes) if rng.random() < 0.3]
    fee = [rng.randint(0, 4) for _ in range(nodes)]
    rows = [
        [
            index,
            rng.randint(1, 30),
            rng.randint(1, 9),
            rng.randint(0, 5),
            int(rng.random() < 0.9),
            rng.choice([None, None, index % 3]),
        ]
        for index in range(nodes)
    ]
    return Instance.from_data(small(objective, nodes=rows, edges=[[a, b, fee[a]] for a, b, _ in edges]))


@pytest.mark.exhaustive
@pytest.mark.parametrize("objective", ["max_load", "latency"])
def test_exhaustion_equals_enumeration(objective: str) -> None:
    for number in drawn(range(40), 6, f"placements of least {objective}"):
        instance = random_instance(random.Random(number), objective, 6)
        best = least_by_enumeration(instance)
        solution = solve(instance)
        assert solution.proven == (best is not None)
        assert solution.placement is None if best is None else solution.objective_ms == best


@pytest.mark.exhaustive
@pytest.mark.parametrize("objective", ["max_load", "latency"])
@pytest.mark.usefixtures("searched_only")
def test_search_equals_enumeration(objective: str) -> None:
    for number in drawn(range(40), 6, f"searched placements of least {objective}"):
        instance = random_instance(random.Random(number), objective, 6)
        best = least_by_enumeration(instance)
        searched = solve(instance, rounds=1)
        assert searched.lower_bound_ms <= (best if best is not None else float("inf"))
        if best is not None:
            assert searched.objective_ms == pytest.approx(best)


def least_by_enumeration(instance: Instance) -> float | None:
    """Return the least value of all placements that are allowed, None where there is none."""
    devices = range(instance.accelerators + 1)
    scores = (evaluate(instance, placement) for placement in itertools.product(devices, repeat=len(instance.ids)))
    return min((score.value_ms for score in scores if not score.broken), default=None)


def tight_instance(rng: random.Random) -> Instance:
    """Five operators, caps of memory about as large as one, times that differ by many orders, often no CPU."""
    edges = [(a, b) for a in range(5) for b in range(a + 1, 5) if rng.random() < 0.4]
    fee = [rng.choice([0, 0, 1, 3]) for _ in range(5)]
    slow, fast = rng.choice([([0, 1, 5, 20, 1e-300, 1e15], [0, 1, 2, 9, 1e14]), ([3, 4, 5, 9], [0, 0.1])])
    node = [[index, rng.choice(slow), rng.choice(fast), rng.randint(0, 9)] for index in range(5)]
    rows = [[*row, int(rng.random() < 0.9), rng.choice([None, None, "x"])] for row in node]
    devices = [
        {"class": "accelerator", "count": rng.randint(0, 2), "memory_bytes": rng.choice([0, 4, 7, 10, 15, 25])},
        {"class": "cpu", "count": rng.choice([0, 1]), "memory_bytes": None},
    ]
    objective = rng.choice(["max_load", "latency"])
    return Instance.from_data(small(objective, nodes=rows, edges=[[a, b, fee[a]] for a, b in edges], devices=devices))


@pytest.mark.filterwarnings("error")
def test_bounds_and_proofs_under_tight_caps_equal_enumeration() -> None:
    """No bound is above the least value, and it is said to be impossible where no placement is allowed."""
    seen = {"impossible": 0, "reached": 0, "below": 0}
    for number in range(150):
        instance = tight_instance(random.Random(number))
        best = least_by_enumeration(instance)
        bound = lower_bound(Grouped(instance))
        solution = solve(instance)
        assert solution.impossible == (best is None) and solution.proven == (best is not None)
        assert solution.record()["objective_ms"] == best
        if best is None:
            seen["impossible"] += 1
            continue
        assert bound <= best
        seen["reached" if bound >= best * (1 - 1e-9) else "below"] += 1
    assert min(seen.values()) >= 10


def test_what_the_accelerators_have_no_room_for_bounds_by_enumeration() -> None:
    """All may run anywhere, accelerators take no time, and hold about half: the CPU takes the rest."""
    close = 0
    for number in range(40):
        rng = random.Random(number)
        rows = [[index, rng.randint(3, 9), 0.1, rng.randint(2, 9), 1, None] for index in range(5)]
        devices = [{"class": "accelerator", "count": 1, "memory_bytes": 14}, {"class": "cpu", "count": 1}]
        instance = Instance.from_data(small("max_load", nodes=rows, edges=[], devices=devices))
        best, bound = least_by_enumeration(instance), lower_bound(Grouped(instance))
        assert best is not None and bound <= best
        close += bound >= 0.8 * best
    assert close >= 20


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("searched_only")
def test_searches_under_tight_caps_prove_nothing_false() -> None:
    """The search by itself, also where an accelerator holds nothing at all."""
    for number in range(12):
        instance = tight_instance(random.Random(number))
        best = least_by_enumeration(instance)
        solution = solve(instance, rounds=1)
        assert best is None or not solution.impossible
        assert not solution.proven or (best is not None and solution.objective_ms <= best * (1 + 1e-9))
        assert solution.placement is None or not evaluate(instance, solution.placement).broken


def test_what_fits_no_accelerator_bounds_by_its_time_on_the_cpu() -> None:
    """Two of three operators are too large: the CPU needs 30 ms and 20 ms for them, and no placement needs less."""
    data = small("max_load")
    data["devices"][0]["memory_bytes"] = 4
    data["nodes"][0][3] = 4
    assert lower_bound(Grouped(Instance.from_data(data))) == pytest.approx(50, rel=1e-9)
    data["devices"][0]["memory_bytes"] = 0
    assert lower_bound(Grouped(Instance.from_data(data))) == pytest.approx(60, rel=1e-9)
    data["devices"][1]["count"] = 0
    solution = solve(Instance.from_data(data))
    assert solution.impossible and solution.record()["lower_bound_ms"] is None and solution.gap == float("inf")


def test_faults_of_an_instance_are_told_in_one_pass() -> None:
    data = small("max_load")
    data["nodes"][1][0] = "a"
    data["nodes"][2][1] = -1
    data["edges"][0][2] = float("nan")
    with pytest.raises(ScenarioFileError) as caught:
        Instance.from_data(data)
    assert str(caught.value).splitlines() == [
        "nodes.1: node 'a' is there twice",
        "nodes.2.cpu_ms: must be a finite number that is not negative, got -1",
        "edges.0.dst: there is no node 'b'",
        "edges.0.transfer_ms: must be a finite number that is not negative, got nan",
        "edges.2.src: there is no node 'b'",
    ]


def test_mutated_instances_are_read_or_refused() -> None:
    rng = random.Random(9)
    text = json.dumps(small("latency"))
    for _ in range(200):
        data = json.loads(text)
        target = rng.choice([data, data["devices"][0], data["nodes"][1], data["edges"][2]])
        key = rng.choice(list(target) if isinstance(target, dict) else range(len(target)))
        target[key] = rng.choice([None, -1, 0, "x", [], {}, 1e400, True, 10**30])
        try:
            Instance.from_data(data)
        except ScenarioFileError as error:
            assert str(error)
