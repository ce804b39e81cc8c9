"""A student's own numbers in a live lab, and the file that the lab hands in."""

import json

import pytest

pytest.importorskip("ipywidgets")

from mlsys import labs
from mlsys.grading.submissions import parse
from mlsys.labs.questions import NumberQuestion
from mlsys.widgets import AmdahlLab, LabStateError
from mlsys.widgets.hand_in import file_name
from mlsys.widgets.progress import Progress


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("MLSYS_LAB_STATE", "VOILA_REQUEST_URL", "SERVER_SOFTWARE"):
        monkeypatch.delenv(name, raising=False)


def texts(lab):
    return [box.question.text for box in lab.boxes.values()]


def answer_all(lab):
    lab.predict(3)
    for box in lab.boxes.values():
        box.field.value = box.question.shown(box.question.expected)
        box.button.click()
    for box in lab.design_boxes.values():
        best = max(box.design.choices(), key=lambda choice: box.design.score(choice).score)
        for name, field in box.fields.items():
            field.value = best[name]
        box.button.click()
        box.reason.value = "It keeps the host busy for the shortest time."


def test_a_name_draws_the_numbers_of_that_student_until_something_is_answered():
    lab, printed = AmdahlLab(), [question.text for question in labs.questions("01-amdahl")]
    assert texts(lab) == printed
    lab.student_field.value = "Grace Hopper"
    own = [question.text for question in labs.questions("01-amdahl", "grace hopper")]
    assert texts(lab) == own != printed and lab.prediction.text in lab._prompt.value
    assert texts(AmdahlLab(student="Grace Hopper")) == own
    lab.predict(3)
    assert lab.student_field.disabled and {name: lab.value(name) for name in lab.scenario} == lab.scenario
    lab.student_field.value = "Ada"
    assert texts(lab) == own and lab.student == "Grace Hopper"


def test_a_state_brings_its_student_back_and_is_not_taken_by_another(tmp_path):
    lab = AmdahlLab(student="Grace")
    answer_all(lab)
    path = lab.save(tmp_path / "mine.json")
    again = AmdahlLab()
    again.restore(path)
    assert again.student == "Grace" and again.state() == lab.state() and again.work().design == lab.work().design
    other = AmdahlLab(student="Ada")
    with pytest.raises(LabStateError, match="the work of 'Grace', and this lab that of 'Ada'"):
        other.restore(path)
    assert texts(other) == [question.text for question in labs.questions("01-amdahl", "Ada")]


def test_handing_in_writes_what_a_grader_can_recompute(tmp_path):
    lab = AmdahlLab(student="Grace Hopper")
    assert lab.missing().startswith("the prediction, 4 questions, 3 claims, 1 design")
    answer_all(lab)
    lab.keep_measurement("test", {"seconds": 1.5})
    assert not lab.missing() and lab.wrap.open
    lab.handing.button.click()
    [path] = tmp_path.glob("*.handin.json")
    assert str(path) in lab.handing.message.value and path.name in lab.handing.link.value
    work = parse(json.loads(path.read_text("utf-8")))
    assert work.seed == labs.seed_of(work.lab, work.student) and work.student == "Grace Hopper"
    assert work.measurements["test"]["seconds"] == 1.5
    given = {**work.questions, **work.claims}
    for question in labs.questions(work.lab, work.student):
        assert (question.id in work.questions) == question.in_app
        assert [question.mark(each.answer).correct for each in given[question.id].attempts] == [True]
    [task] = labs.designs(work.lab, work.student)
    assert task.score(work.design["months"].choice).score == work.design["months"].claimed == 1
    assert "shortest time" in work.design["months"].reason


def test_an_untouched_lab_hands_in_that_nothing_was_done():
    work = AmdahlLab().work()
    assert not work.design and not any(answer.attempts for answer in {**work.questions, **work.claims}.values())
    assert file_name(work) == "lab-01-amdahl.handin.json"


def test_a_repeated_answer_is_no_second_attempt():
    lab = AmdahlLab()
    lab.predict(3)
    box = next(box for box in lab.boxes.values() if isinstance(box.question, NumberQuestion))
    for typed in ("1", "1.0", " 1 "):
        box.field.value = typed
        box.button.click()
    assert box.tries == 1 and box.reveal_button.disabled and "change it first" in box.feedback.value


def test_where_work_is_saved_is_said_for_each_environment(monkeypatch, tmp_path):
    import sys
    import types

    assert str(tmp_path) in Progress("x", "file").where() and "deleted" not in Progress("x", "file").where()
    assert "as long as this page is open" in Progress("x", "memory").where()
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    assert "Colab" in Progress("x", "file").where() and "hand in before you leave" in Progress("x", "file").where()


def test_a_state_is_plain_json():
    lab = AmdahlLab(student="Grace")
    answer_all(lab)
    assert json.loads(json.dumps(lab.state())) == lab.state()
