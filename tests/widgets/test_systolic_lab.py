"""Lab 4: closed before the prediction, honest answers, a picture that follows, a state that comes back."""

import html
import re

import pytest

pytest.importorskip("ipywidgets")

from mlsys.labs.questions import ChoiceQuestion
from mlsys.models.systolic import count_systolic
from mlsys.widgets import SystolicLab
from mlsys.widgets.parts import options_of


@pytest.fixture
def lab() -> SystolicLab:
    return SystolicLab()


@pytest.fixture
def opened(lab: SystolicLab) -> SystolicLab:
    lab.predict("About half")
    return lab


def message(widget) -> str:
    return html.unescape(re.sub("<[^>]+>", "", widget.value))


def utilisation(lab: SystolicLab, rows: int) -> float:
    """Return the share of the multipliers that work in the lab's layer."""
    side, width = lab.scenario["side"], lab.scenario["n"]
    return count_systolic(rows, width, width, side, side, fold_overlap="load").utilisation


def test_it_is_closed_until_the_prediction_is_locked(lab: SystolicLab) -> None:
    assert all(control.widget.disabled for control in lab.controls.values())
    share = f"{100 * utilisation(lab, 1):.3g}%"
    assert share not in message(lab.summary)
    lab.predict("Nearly all")
    assert not any(control.widget.disabled for control in lab.controls.values())
    assert "You predicted “Nearly all”" in message(lab.comparison) and share in message(lab.comparison)
    assert f"{share} of the array" in message(lab.summary), "the predicted situation is shown"


def test_the_right_prediction_is_the_computed_one(lab: SystolicLab) -> None:
    assert utilisation(lab, 1) < 0.01
    assert lab.prediction.judge("Less than a hundredth")[0]


def test_every_control_changes_the_picture(opened: SystolicLab) -> None:
    start = {"m": 200, "n": 360, "k": 512, "side": 64, "dataflow": "ws", "overlap": "load", "along": "N"}
    for name, control in opened.controls.items():
        opened._set(start)
        before = opened.png
        control.widget.value = next(value for value in options_of(control.widget) if value != control.value)
        assert opened.png != before, name
        assert opened.view.summary in html.unescape(opened.picture.value)


def test_answers_are_what_the_model_says(opened: SystolicLab) -> None:
    assert list(opened.questions) == [
        "streamed",
        "fringe",
        "reuse",
        "remedy",
        "larger",
        "column",
        "cores",
        "saving",
        "multiples",
    ]
    share = 100 * utilisation(opened, opened.questions["streamed"].setting["m"])
    assert opened.questions["streamed"].judge(share) == (True, opened.questions["streamed"].solution)
    assert not opened.questions["streamed"].judge(1.2 * share)[0]
    right = {
        name: next(choice.text for choice in question.choices if choice.right)
        for name, question in opened.questions.items()
        if isinstance(question, ChoiceQuestion)
    }
    assert right == {
        "fringe": "They nearly double",
        "reuse": "The activation",
        "remedy": f"{opened.questions['remedy'].setting['m']} requests in one batch",
        "larger": "Twice to three times",
        "column": "A weight serves one PE; it is the activation that is shared",
        "cores": "Each core has more arrays",
        "saving": "The processor of the comparison has neither registers nor a cache",
        "multiples": "Nothing: it is right",
    }


def test_errors_found_in_print_are_claims_of_the_page(opened: SystolicLab) -> None:
    on_page = [name for name, question in opened.questions.items() if not question.in_app]
    assert on_page == ["column", "cores", "saving", "multiples"]
    for name, number in {"cores": "68.8 TFLOP/s", "saving": "3.73"}.items():
        assert number in opened.questions[name].solution, name
