"""The placement lab: what it shows and says is what trying every placement gives."""

from itertools import product

import pytest

pytest.importorskip("ipywidgets")

from mlsys.labs import questions
from mlsys.planner.placement import example
from mlsys.viz.views.placement import MEMORY, PlacementScene, pipeline_of
from mlsys.widgets import PlacementLab


@pytest.fixture(scope="module")
def lab() -> PlacementLab:
    return PlacementLab()


def brute_force(link: float, memory: int, npu: float, value: str) -> float:
    """Return the least time or energy of any placement, in plain floats."""
    data = example()
    joined = {(hop["from"], hop["to"]): hop for hop in data["links"]}
    room = {device["name"]: device["memory_mb"] for device in data["devices"]} | {"npu": memory}
    best = float("inf")
    for devices in product(*(stage["profiles"] for stage in data["stages"])):
        used = dict.fromkeys(room, 0.0)
        total = 0.0
        for at, (stage, device) in enumerate(zip(data["stages"], devices, strict=True)):
            profile = stage["profiles"][device]
            used[device] += profile["memory_mb"]
            total += (
                profile["energy_mj"] if value == "energy" else profile["latency_ms"] / (npu if device == "npu" else 1)
            )
            if at and devices[at - 1] != device:
                hop, size = joined[devices[at - 1], device], data["stages"][at - 1]["output_mb"]
                way = hop["latency_ms"] + size / (hop["bandwidth_gb_s"] * link)
                total += size * hop["energy_mj_per_mb"] if value == "energy" else way
        if all(used[name] <= room[name] for name in room):
            best = min(best, total)
    return best


@pytest.mark.parametrize(
    ("link", "memory", "npu"), [(1.0, MEMORY, 1.0), (1 / 32, MEMORY, 1.0), (1.0, 1800, 1.0), (0.25, 1300, 4.0)]
)
def test_the_plan_shown_is_the_best_of_all(link, memory, npu):
    time = pipeline_of(link, memory, npu, "latency").best.latency
    energy = pipeline_of(link, memory, npu, "efficiency").best.energy
    assert float(time) == pytest.approx(brute_force(link, memory, npu, "time"))
    assert float(energy) == pytest.approx(brute_force(link, memory, npu, "energy"))


def test_a_stage_that_no_longer_fits_sends_others_back(lab):
    for student in ("", "ada", "bob", "cy", "dee"):
        prediction, drawn = PlacementLab(student).prediction, PlacementLab(student).scenario
        low, high = (float(end.removesuffix(" ms")) for end in prediction.right_answer().split(" to "))
        assert low <= brute_force(drawn["link"], drawn["memory"], drawn["npu"], "time") < high
    assert [stage.choice.device for stage in pipeline_of(memory=1800).best.stages] == [
        "gpu", "gpu", "npu", "gpu", "npu", "gpu", "gpu"
    ]  # fmt: skip


def test_what_does_not_fit_is_said():
    assert "does not fit" in PlacementScene().update(memory=1800).summary
    assert "does not fit" not in PlacementScene().update().summary


# --- words of questions and explanations ----------------------------------------------------

ON_NPU = ("backbone", "neck", "detection head", "box filter")


def profile(stage: str, device: str) -> dict[str, float]:
    """Return what the example says of one stage on one device."""
    return next(each for each in example()["stages"] if each["name"] == stage)["profiles"][device]


def way(stage: str, start: str, end: str, link: float = 1.0) -> float:
    """Return how long the output of a stage takes from one device to another, ms: 1 MB at 1 GB/s is 1 ms."""
    data = example()
    size = next(each for each in data["stages"] if each["name"] == stage)["output_mb"]
    hop = next(each for each in data["links"] if (each["from"], each["to"]) == (start, end))
    return float(hop["latency_ms"] + size / (hop["bandwidth_gb_s"] * link))


def saved(stage: str) -> float:
    """Return by how much the NPU is faster than the GPU for one stage, ms."""
    return profile(stage, "gpu")["latency_ms"] - profile(stage, "npu")["latency_ms"]


def devices(placed) -> list[str]:
    return [stage.choice.device for stage in placed.stages]


def test_the_whole_plan_begins_and_ends_on_the_gpu_with_four_stages_between():
    assert devices(pipeline_of().best) == ["gpu"] * 2 + ["npu"] * 4 + ["gpu"]
    assert [stage.stage for stage in pipeline_of().best.stages[2:6]] == list(ON_NPU)


def test_the_four_no_longer_fit_together_and_the_head_pays_its_way():
    room = [profile(stage, "npu")["memory_mb"] for stage in ON_NPU]
    assert sum(room) > 1800 >= max(room)
    assert way("neck", "gpu", "npu") + way("detection head", "npu", "gpu") < saved("detection head")


def test_at_half_speed_the_npu_is_faster_for_no_stage():
    for stage in ON_NPU:
        assert 2 * profile(stage, "npu")["latency_ms"] > profile(stage, "gpu")["latency_ms"]


def test_over_slow_links_two_transfers_cost_more_than_the_npu_saves(lab):
    both = way("resize", "gpu", "npu", 1 / 32) + way("box filter", "npu", "gpu", 1 / 32)
    assert both > sum(map(saved, ON_NPU))
    assert set(devices(pipeline_of(link=1 / 32).best)) == {"gpu"}
    late = (both - sum(map(saved, ON_NPU))) / sum(
        profile(each["name"], "gpu")["latency_ms"] for each in example()["stages"]
    )
    assert f"{100 * late:.1f}%" in lab.questions["slow-links"].solution


@pytest.mark.parametrize("student", [f"s{number:04}" for number in range(1001, 1007)])
def test_answers_about_drawn_speeds_are_those_of_trying_every_placement(student):
    asked = {question.id: question for question in questions("08-placement", student)}
    whole = sum(profile(each["name"], "gpu")["latency_ms"] for each in example()["stages"])

    half = asked["half"].setting
    best = brute_force(half["link"], MEMORY, half["npu"], "time")
    assert (asked["half"].right_answer() == "None of them") == (best == pytest.approx(whole))
    gained = sum(
        profile(each, "gpu")["latency_ms"] - profile(each, "npu")["latency_ms"] / half["npu"] for each in ON_NPU
    )
    with_four = (
        whole - gained + way("resize", "gpu", "npu", half["link"]) + way("box filter", "npu", "gpu", half["link"])
    )
    assert best == pytest.approx(min(whole, with_four))

    set_ = asked["energy"].setting
    quick, frugal = (pipeline_of(set_["link"], MEMORY, set_["npu"], goal).best for goal in ("latency", "efficiency"))
    assert float(frugal.energy) == pytest.approx(brute_force(set_["link"], MEMORY, set_["npu"], "energy"))
    assert asked["energy"].right_answer().startswith("Nothing" if quick == frugal else "Less energy for more")


def test_the_npu_spends_less_on_each_stage_and_moving_is_cheap():
    for stage in ON_NPU:
        for other in ("cpu", "gpu"):
            assert profile(stage, "npu")["energy_mj"] < profile(stage, other)["energy_mj"]
    frugal = pipeline_of(link=1 / 32, goal="efficiency").best
    assert devices(frugal) == devices(pipeline_of().best)
    moved, waited = (
        sum(float(s.transfer_energy) for s in frugal.stages),
        sum(float(s.transfer_latency) for s in frugal.stages),
    )
    assert moved < 0.05 * float(frugal.energy) and waited > 0.5 * float(frugal.latency)


def test_a_faster_npu_leaves_gpu_and_transfers_as_they_are():
    usual, four = pipeline_of().best, pipeline_of(npu=4.0).best
    assert devices(usual) == devices(four)
    for before, after in zip(usual.stages, four.stages, strict=True):
        assert before.transfer_latency == after.transfer_latency
        shrinks = 4 if before.choice.device == "npu" else 1
        assert float(before.choice.latency) == pytest.approx(shrinks * float(after.choice.latency))


def test_with_the_links_of_the_example_the_simple_rule_is_right():
    assert pipeline_of().best.latency == pipeline_of().fastest.latency
