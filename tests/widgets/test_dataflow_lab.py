"""The dataflow lab: one right answer to each question, and it is the counted one."""

import pytest

pytest.importorskip("ipywidgets")

from mlsys.viz.views.dataflow import words_of
from mlsys.widgets import DataflowLab


@pytest.fixture(scope="module")
def lab() -> DataflowLab:
    return DataflowLab()


def question(lab: DataflowLab, name: str):  # type: ignore[no-untyped-def]
    return next(item for item in lab.questions.values() if item.id == name)


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("batch-one", "Hardly at all"),
        ("short-sum", "Output stationary"),
        ("larger-tile", "About a half"),
        ("kept-weights", "It forgets the partial sums"),
        ("perfect", "One row has no reuse, so nothing is compromised"),
    ],
)
def test_the_right_answers(lab: DataflowLab, name: str, right: str) -> None:
    choice_question = question(lab, name)
    assert next(choice.text for choice in choice_question.choices if choice.right) == right


def test_answers_name_the_counted_words(lab: DataflowLab) -> None:
    words = words_of(*(lab.scenario[name] for name in ("m", "k", "n", "tile")))
    why = lab.prediction.solution
    assert all(f"{words.total(flow):,}" in why for flow in ("ws", "os", "is"))
    assert "15,120 against 10,944" in question(lab, "kept-weights").solution


def test_the_sliders_move_the_picture() -> None:
    lab = DataflowLab()
    lab.predict("Output stationary")
    before = lab.view.values["words"]
    lab.controls["m"].widget.value = 1
    assert lab.view.values["words"] != before
    lab.controls["flow"].widget.value = "is"
    assert lab.view.summary.startswith("Input stationary")
