"""The labs on memory and tiling: their answers follow the models, and give nothing away."""

import pytest

pytest.importorskip("ipywidgets")

from mlsys.labs.questions import NumberQuestion
from mlsys.provenance import perturbed
from mlsys.widgets import MemoryLab, TilingLab

GUESS = {MemoryLab: "About 8", TilingLab: "Past 18"}


@pytest.fixture(params=GUESS, ids=lambda kind: kind.__name__)
def lab(request):
    return request.param()


def test_a_wrong_guess_is_compared_with_the_computed_answer(lab):
    lab.predict(GUESS[type(lab)])
    assert lab.locked and "it is" in lab.comparison.value
    assert {name: lab.controls[name].value for name in lab.scenario} == dict(lab.scenario)


@pytest.mark.parametrize(
    ("kind", "question", "expected"),
    [
        (MemoryLab, "stride", "12.5%"),
        (MemoryLab, "next-chip", "1.28×"),
        (MemoryLab, "distance", "334 ps"),
        (MemoryLab, "stacked", "3.50×"),
        (MemoryLab, "kv-cache", "1.07 to 2.15 GB, 2×"),
        (TilingLab, "equal-room", "1,040 words"),
        (TilingLab, "best", "20: 48,870"),
        (TilingLab, "lines", "140,736 and 36,864"),
        (TilingLab, "shared-memory", "leaves 139"),
        (TilingLab, "three-tiles", "24,568"),
        (TilingLab, "bound", "286,720"),
    ],
)
def test_explanations_hold_the_numbers(kind, question, expected):
    assert expected in kind().questions[question].solution


def test_numbers_to_find_by_hand():
    needed, double = MemoryLab().questions["in-flight"], TilingLab().questions["double"]
    assert isinstance(needed, NumberQuestion) and needed.answer == pytest.approx(3350 * 373.4 / 1000)
    assert double.answer == 26 and double.judge(26)[0] and not double.judge(27)[0]


def test_explanations_follow_the_facts():
    before = MemoryLab().questions["stacked"].solution
    with perturbed("A100_80GB/memory/HBM/latency", 1.1):
        assert MemoryLab().questions["stacked"].solution != before


def test_every_machine_of_the_memory_lab_can_be_shown():
    lab = MemoryLab()
    lab.predict("About 8")
    assert {"V100", "A100", "H100"} <= set(lab.machines)
    for name in lab.machines:
        lab.controls["device"].widget.value = name
        assert "No picture" not in lab.picture.value
