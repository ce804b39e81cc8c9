"""The labs on memory and tiling: their answers follow the models, and give nothing away."""

import math
import re

import pytest

pytest.importorskip("ipywidgets")

from mlsys.labs.questions import NumberQuestion
from mlsys.provenance import perturbed
from mlsys.widgets import MemoryLab, TilingLab

GUESS = {MemoryLab: 8, TilingLab: "Past 8"}


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
        (MemoryLab, "next-chip", "1.28×"),
        (MemoryLab, "stacked", "3.50×"),
        (TilingLab, "equal-room", "1,040 words"),
    ],
)
def test_explanations_hold_the_numbers(kind, question, expected):
    assert expected in kind().questions[question].solution


def test_numbers_to_find_by_hand():
    needed, double = MemoryLab().questions["in-flight"], TilingLab().questions["double"]
    product = {"V100": 900 * 0.3143, "H100": 3350 * 0.3734}[needed.setting["device"]]  # GB/s times µs
    share = int(re.search(r"(\d+)%", needed.text)[1]) / 100
    assert isinstance(needed, NumberQuestion) and needed.answer == pytest.approx(share * product, rel=2e-3)
    words = int(re.search(r"[\d,]+(?= words)", double.text)[0].replace(",", ""))
    edge = math.isqrt(words // 6)
    assert double.answer == edge and double.judge(edge)[0] and not double.judge(edge + 1)[0]


def test_explanations_follow_the_facts():
    before = MemoryLab().questions["stacked"].solution
    with perturbed("A100_80GB/memory/HBM/latency", 1.1):
        assert MemoryLab().questions["stacked"].solution != before


def test_every_machine_of_the_memory_lab_can_be_shown():
    lab = MemoryLab()
    lab.predict(8)
    assert {"V100", "A100", "H100"} <= set(lab.machines)
    for name in lab.machines:
        lab.controls["device"].widget.value = name
        assert "No picture" not in lab.picture.value
