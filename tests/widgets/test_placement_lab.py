"""The placement lab: what it shows and says is what trying every placement gives."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("ipywidgets")

from mlsys.planner.placement import example
from mlsys.viz.views.placement import MEMORY, pipeline_of, placement_view
from mlsys.widgets import PlacementLab
from mlsys.widgets.questions import ChoiceQuestion


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


def test_every_choice_has_exactly_one_right_answer(lab):
    for item in (lab._prediction(), *lab._questions()):
        if isinstance(item, ChoiceQuestion):
            assert sum(choice.right for choice in item.choices) == 1, item.name


def test_a_stage_that_no_longer_fits_sends_others_back(lab):
    right = next(choice.text for choice in lab._prediction().choices if choice.right)
    assert right == "Four times"
    assert [stage.choice.device for stage in pipeline_of(memory=1800).best.stages] == [
        "gpu", "gpu", "npu", "gpu", "npu", "gpu", "gpu"
    ]  # fmt: skip


def test_what_does_not_fit_is_said():
    assert "does not fit" in placement_view(memory=1800).summary
    assert "does not fit" not in placement_view().summary


def test_three_questions_are_for_the_page(lab):
    assert [item.name for item in lab._questions() if not item.in_app] == ["units", "each-fastest", "never-slower"]
