"""The lab "find the error": a workbench that looks facts up, and claims that are turned like pages."""

import pytest

pytest.importorskip("ipywidgets")

from mlsys import Hardware
from mlsys.labs.claimed import Verdict
from mlsys.labs.questions import NOTHING
from mlsys.viz.views.slips import SlipsScene
from mlsys.widgets import FindErrorLab
from mlsys.widgets.find_error import _MACHINES


@pytest.fixture(scope="module")
def lab() -> FindErrorLab:
    lab = FindErrorLab(student="ada")
    lab.predict(6)
    return lab


def test_every_machine_is_read_as_its_data_sheet_says() -> None:
    scene = SlipsScene()
    for name in _MACHINES:
        device = Hardware.Cloud[name]
        for what in ("bandwidth", "capacity"):
            first, second, bits, *_ = scene.update(device, what).values["readings"]
            assert (first.factor, bits.factor) == (1, 8) and second.factor == pytest.approx(1e9 / 2**30)
        links = scene.update(device, "links").values["readings"]
        assert links[1].factor == 2 * links[0].factor and "both" in links[1].name
        peaks = {each.name: each.factor for each in scene.update(device, "peak", "bf16").values["readings"]}
        if "BF16, 2:4 sparse" in peaks:
            assert peaks["BF16, 2:4 sparse"] == pytest.approx(2, rel=1e-2)


def test_a_machine_without_the_rate_of_the_plan_says_so() -> None:
    view = SlipsScene().update(Hardware.Cloud.V100, "plan")
    assert not view.values["readings"] and "no sparse FP8" in view.summary


def test_claims_are_turned_and_their_state_is_listed(lab: FindErrorLab) -> None:
    shown = lab._claim.children[0]
    assert shown is lab.boxes["peak"].view
    lab.next_button.click()
    assert lab._claim.children[0] is lab.boxes["nvlink"].view
    box = lab.boxes["nvlink"]
    box.field.value = box.question.shown(box.question.expected)
    box.button.click()
    assert box.right and "2: found" in [label for label, _ in lab.page.options] and "1 of 12" in lab.count.value
    lab.back_button.click()
    assert lab._claim.children[0] is shown


def test_the_value_is_closed_where_nothing_is_wrong_and_open_where_something_is(lab: FindErrorLab) -> None:
    box = next(box for box in lab.boxes.values() if box.question.slip)
    box.field.value = (NOTHING, "")
    assert box.field.text.disabled
    box.field.value = (box.question.slip, "")
    assert not box.field.text.disabled
    box.button.click()
    assert box.tries == 0 and "number first" in box.feedback.value
    box.field.text.value = f"{box.question.answer}"
    box.button.click()
    assert box.right and box.given == Verdict(box.question.slip, box.question.answer).text()


def test_the_calculator_asks_again_for_what_is_no_number(lab: FindErrorLab) -> None:
    lab.calculator.choice.value = "weights"
    lab.calculator.fields[0].value = "many"
    lab.calculator.compute()
    assert "is no number" in lab.calculator.result.value
    lab.calculator.fields[0].value = "70"
    lab.calculator.compute()
    assert "140 GB" in lab.calculator.result.value and "weight_bytes" in lab.calculator.result.value


def test_a_name_typed_later_draws_other_claims_and_another_report() -> None:
    named, typed = FindErrorLab(student="Mona"), FindErrorLab()
    assert list(named.boxes) != list(typed.boxes), "choose a name that gets other claims"
    typed.student_field.value = "Mona"
    assert list(typed.boxes) == list(named.boxes) == [name for _, name in typed.page.options]
    assert [box.question for box in typed.boxes.values()] == [box.question for box in named.boxes.values()]
    assert typed.design_boxes["checks"].design.text == named.design_boxes["checks"].design.text
    assert typed._claim.children[0] is typed.boxes[typed.page.value].view
    typed.predict(6)
    box = typed.boxes[typed.page.value]
    box.field.value = box.question.shown(box.question.expected)
    box.button.click()
    assert box.right and "1 of 12" in typed.count.value
    other = FindErrorLab()
    other.restore(typed.state())
    assert other.state() == typed.state() and other.student == "Mona" and "1 of 12" in other.count.value
