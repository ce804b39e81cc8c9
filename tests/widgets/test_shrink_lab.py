"""The lab on shrinking: right answers from arithmetic, not from the lab."""

from __future__ import annotations

import pytest

pytest.importorskip("ipywidgets")

from mlsys.edge.stored import stored_run
from mlsys.widgets import ShrinkLab
from mlsys.widgets.questions import ChoiceQuestion, NumberQuestion


@pytest.fixture(scope="module")
def lab() -> ShrinkLab:
    return ShrinkLab()


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("one-step", "Dynamic INT8"),
        ("half-format", "It takes longer"),
        ("clock", "It rises"),
        ("twice", "The kernels multiply by zeros like by any number"),
        ("milliwatts", "Less power for much longer is more energy"),
        ("highest", "Nothing: it is right"),
    ],
)
def test_the_right_answers(lab: ShrinkLab, name: str, right: str) -> None:
    asked = lab.questions[name]
    assert isinstance(asked, ChoiceQuestion)
    assert asked.right_answer() == right


def test_operations_that_are_left(lab: ShrinkLab) -> None:
    """8 × 9 × 784, 16 × 8 × 9 × 196 and 784 × 10 of 16 × 9 × 784, 32 × 16 × 9 × 196 and 1568 × 10."""
    asked = lab.questions["operations"]
    assert isinstance(asked, NumberQuestion)
    left = 8 * 9 * 784 + 16 * 8 * 9 * 196 + 784 * 10
    whole = 16 * 9 * 784 + 32 * 16 * 9 * 196 + 1568 * 10
    assert asked.judge(100 * left / whole)[0]
    assert "112,896" in asked.prompt
    assert not asked.judge(50)[0]


def test_prediction_is_about_memory_that_stays(lab: ShrinkLab) -> None:
    assert lab.prediction.right_answer() == "As much as it needed"
    held = {one.weight_bytes for one in stored_run().measured if one.precision == "fp32" and one.method != "structured"}
    assert len(held) == 1


def test_controls_reach_every_variant(lab: ShrinkLab) -> None:
    lab.predict("As much as it needed")
    seen = set()
    for cut in lab.frames["cut"]:
        for precision in lab.frames["precision"]:
            lab._set({"cut": cut, "precision": precision})
            assert lab.view is not None
            seen.add((lab.view.values["memory"], lab.view.values["time"]))
    assert len(seen) == len(stored_run().measured)
