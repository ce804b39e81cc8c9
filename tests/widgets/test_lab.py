"""The labs: closed before the prediction, honest feedback, state that comes back whole or not at all."""

import base64
import copy
import functools
import html
import json
import re

import pytest

pytest.importorskip("ipywidgets")

from mlsys.labs.questions import Choice, ChoiceQuestion, NumberQuestion
from mlsys.widgets import AmdahlLab, LabStateError, RooflineLab
from mlsys.widgets.box import QuestionBox
from mlsys.widgets.parts import options_of
from mlsys.widgets.state import VERSION, read_state
from mlsys.widgets.static import INVITATION

LABS = {"amdahl": AmdahlLab, "roofline": RooflineLab}
GUESS = {"amdahl": 50, "roofline": "48"}


@pytest.fixture(params=LABS)
def name(request):
    return request.param


@functools.cache
def made_once(name):
    made = LABS[name]()
    made.fresh = made.state()
    return made


@pytest.fixture
def lab(name):
    """Return a lab that nobody has answered yet; emptying one is quicker than making one."""
    made = made_once(name)
    made.restore(made.fresh)
    return made


@pytest.fixture
def opened(name, lab):
    lab.predict(GUESS[name])
    return lab


def reported(widget):
    return html.unescape(re.sub("<[^>]+>", "", widget.value))


def other_value(control):
    if not hasattr(control.widget, "options"):
        return not control.value
    return next(value for value in options_of(control.widget) if value != control.value)


# --- stages ---------------------------------------------------------------------------


def test_everything_is_closed_before_the_prediction(name):
    lab = LABS[name]()  # as it is made, not as it is emptied
    assert all(control.widget.disabled for control in lab.controls.values())
    assert all(box.button.disabled for box in lab.boxes.values() if box.question.in_app)
    assert not lab.locked and lab.comparison.value == ""
    assert "open when your prediction is locked" in reported(lab.hint)


def test_locking_without_an_answer_opens_nothing(lab):
    lab.lock_button.click()
    assert not lab.locked and "first. A guess is enough." in reported(lab.comparison)
    assert all(control.widget.disabled for control in lab.controls.values())


def test_locking_opens_the_sliders_and_closes_the_prediction(opened):
    assert not any(control.widget.disabled for control in opened.controls.values())
    assert not any(box.button.disabled for box in opened.boxes.values())
    assert opened.field.disabled and opened.lock_button.disabled
    assert {name: opened.controls[name].value for name in opened.scenario} == dict(opened.scenario)


def test_the_prediction_is_compared_with_the_computed_answer():
    lab = AmdahlLab()
    lab.field.value = "50"
    lab.lock_button.click()
    share, speedup = lab.scenario["share"], lab.scenario["speedup"]
    answer = 1 / (1 - share + share / speedup)
    assert f"You predicted 50×; it is {answer:.1f}×." in reported(lab.comparison)
    lab = RooflineLab()
    lab.field.value = "48"
    lab.lock_button.click()
    assert f"You predicted “48”; it is “{lab.scenario['batch']}”." in reported(lab.comparison)


def test_a_right_prediction_is_told_so():
    lab = AmdahlLab()
    share, speedup = lab.scenario["share"], lab.scenario["speedup"]
    answer = 1 / (1 - share + share / speedup)
    lab.predict(answer)
    assert f"and it is {answer:.1f}×" in reported(lab.comparison)


@pytest.mark.parametrize("typed", ["fifty", "", "nan", "inf", "0,5", "-3", "1e999"])
def test_what_is_no_number_is_not_locked(typed):
    lab = AmdahlLab()
    lab.field.value = typed
    lab.lock()
    assert not lab.locked and "Your" not in reported(lab.comparison) and len(reported(lab.comparison)) > 20


def test_predict_refuses_what_is_no_answer(lab):
    with pytest.raises(ValueError, match=r"predict\(\): .* is no answer"):
        lab.predict("perhaps")


# --- explore --------------------------------------------------------------------------


def test_every_control_has_a_label_and_numbers_have_a_unit(lab):
    for control in lab.controls.values():
        assert control.widget.description
        if type(control.widget).__name__ == "SelectionSlider":
            assert re.search(r"\(.+\)", control.widget.description), control.name


def test_moving_a_control_changes_picture_and_words(opened):
    for control in opened.controls.values():
        if control.name in ("other", "compare", "precision", "device"):
            continue
        picture, words = opened.picture.value, opened.summary.value
        control.widget.value = other_value(control)
        assert opened.picture.value != picture, control.name
        if control.name != "overlap":  # changes time only where neither side bounds alone
            assert opened.summary.value != words, control.name


def test_picture_and_summary_speak(opened):
    assert f'alt="{html.escape(opened.alt)}"' in opened.picture.value and opened.view.alt in opened.alt
    assert 'role="status" aria-live="polite"' in opened.summary.value
    assert reported(opened.summary) == opened.view.summary


def test_the_picture_is_the_view_of_the_controls():
    lab = AmdahlLab()
    lab.predict(50)
    lab.controls["share"].widget.value, lab.controls["speedup"].widget.value = 0.8, 4
    assert lab.view.values["speedup"] == pytest.approx(1 / (0.2 + 0.8 / 4))
    data = re.search(r"base64,([^\"]+)", lab.picture.value)[1]
    assert base64.b64decode(data) == lab.png


def test_only_formats_that_the_machine_has_are_offered():
    lab = RooflineLab()
    lab.predict("48")
    assert lab.value("precision") == "fp16"
    for name, device in lab.machines.items():
        lab.controls["device"].widget.value = name
        assert lab.value("precision") in device.precisions, name
        assert set(options_of(lab.controls["precision"].widget)) <= set(device.precisions)
        assert "No picture" not in lab.picture.value, name


def test_a_format_that_is_lacking_gives_way_to_the_nearest():
    lab = RooflineLab()
    lab.predict("48")
    lab.controls["device"].widget.value = "H100"
    lab.controls["precision"].widget.value = "fp8"
    lab.controls["device"].widget.value = "T4"
    assert lab.value("precision") == "fp16"
    lab.controls["precision"].widget.value = "int8"
    lab.controls["device"].widget.value = "A100"
    assert lab.value("precision") == "int8"


def test_classes_for_styles_and_tests(lab):
    marks = {name for widget in _tree(lab.root) for name in widget._dom_classes}
    assert {"mlsys-predict", "mlsys-lock", "mlsys-picture", "mlsys-summary", "mlsys-check"} <= marks


def _tree(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from _tree(child)


# --- check ----------------------------------------------------------------------------


def answer_right(question):
    if isinstance(question, NumberQuestion):
        return question.answer
    return next(choice.text for choice in question.choices if choice.right)


def answer_wrong(question):
    if isinstance(question, NumberQuestion):
        return question.answer / 3 + 0.1
    return next(choice.text for choice in question.choices if not choice.right)


def put(box, given):
    box.field.value = str(given) if isinstance(box.question, NumberQuestion) else given
    box.button.click()


def test_checking_without_an_answer_counts_no_try(opened):
    box = next(iter(opened.boxes.values()))
    box.button.click()
    assert "first" in reported(box.feedback) and box.tries == 0


def test_each_lab_has_questions_in_the_lab_and_an_error_to_find(lab):
    in_app = [question for question in lab.questions.values() if question.in_app]
    assert 4 <= len(in_app) <= 6 and len(lab.questions) > len(in_app)


PEAKS = {"V100": 125e12 / 900e9, "H100": 989.4e12 / 3350e9, "H200": 989.4e12 / 4800e9, "MI300X": 1307.4e12 / 5300e9}


def test_a_number_to_find_by_hand():
    layernorm = made_once("roofline").questions["layernorm"]
    assert layernorm.answer == pytest.approx(100 * 2 / PEAKS[layernorm.setting["device"]], rel=1e-3)


@pytest.mark.parametrize(
    "name, question, expected",
    [
        ("amdahl", "sparse-peak", ("247×", "495×")),
        ("roofline", "ridge", ("293", "587", "295")),
        ("roofline", "convolutions", ("36 of 53", "18")),
        ("roofline", "next-chip", ("1.64×",)),
    ],
)
def test_explanations_hold_the_audited_numbers(name, question, expected):
    item = made_once(name).questions[question]
    right, why = item.judge(answer_right(item))
    assert right and all(text in why for text in expected), why


def test_explanations_follow_the_facts():
    """The numbers are computed when the lab is made, not typed."""
    from mlsys.provenance import perturbed

    before = RooflineLab().questions["ridge"].solution
    with perturbed("B200/memory/HBM/bandwidth", 1.1):
        assert RooflineLab().questions["ridge"].solution != before


def test_a_choice_question_has_one_right_answer():
    with pytest.raises(ValueError, match="must have one right answer"):
        ChoiceQuestion("q", "?", choices=(Choice("a", ""), Choice("b", "")))
    with pytest.raises(ValueError, match="lists an answer twice"):
        ChoiceQuestion("q", "?", choices=(Choice("a", "", True), Choice("a", "")))


def test_numbers_may_be_typed_with_their_sign():
    box = QuestionBox(NumberQuestion("q", "?", answer=1000.0, unit="%"))
    for typed in ("1000", "1,000", "1000%", " 1e3 "):
        box.field.value = typed
        box.check()
        assert box.right, typed


# --- state ----------------------------------------------------------------------------


def used(lab, name):
    """Bring a lab into a state that differs from a new one everywhere."""
    lab.predict(GUESS[name])
    for control in lab.controls.values():
        control.widget.value = other_value(control)
    first, *_ = lab.boxes.values()
    put(first, answer_wrong(first.question))
    return lab


def test_state_survives_a_file(name, lab, tmp_path):
    state = used(lab, name).state()
    path = lab.save(tmp_path / "mine.json")
    assert json.loads(path.read_text("utf-8")) == state and state["version"] == VERSION
    fresh = LABS[name]()
    fresh.restore(path)
    assert fresh.state() == state
    assert fresh.locked and not any(control.widget.disabled for control in fresh.controls.values())
    assert fresh.summary.value == lab.summary.value and fresh.comparison.value == lab.comparison.value
    assert [box.feedback.value for box in fresh.boxes.values()] == [box.feedback.value for box in lab.boxes.values()]


def test_restoring_an_early_state_closes_the_sliders_again(name, lab):
    early = lab.state()
    used(lab, name).restore(early)
    assert lab.state() == early and all(control.widget.disabled for control in lab.controls.values())


def test_buttons_save_and_restore_beside_the_notebook(name, lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lab.restore_button.click()
    assert "Not restored: there is no file" in reported(lab.message)
    used(lab, name).save_button.click()
    assert [path.name for path in tmp_path.iterdir()] == [f"{lab.id}.state.json"]
    fresh = LABS[name]()
    fresh.restore_button.click()
    assert "Restored" in reported(fresh.message) and fresh.state() == lab.state()
    assert [path.name for path in tmp_path.iterdir()] == [f"{lab.id}.state.json"]


def spoil(state, path, value):
    state = copy.deepcopy(state)
    *parents, last = path
    node = state
    for key in parents:
        node = node[key]
    if value is KeyError:
        del node[last]
    else:
        node[last] = value
    return state


def spoiled(lab):
    state = lab.state()
    control = next(iter(lab.controls))
    question, design = next(iter(lab.boxes)), next(iter(lab.designs))
    for path, value, message in [
        (["lab"], "lab-99", "belongs to the lab 'lab-99'"),
        (["version"], 1, "version 1 of the state"),
        (["version"], True, "`version` must be a whole number"),
        (["controls"], [], "`controls` must be a set of named values, got a list"),
        (["answers"], KeyError, "lacks answers"),
        (["extra"], 1, "unknown parts: 'extra'"),
        (["controls", "warp"], 9, "'warp' missing or unknown"),
        (["controls", control], KeyError, f"'{control}' missing or unknown"),
        (["controls", control], "nonsense", f"`controls.{control}` cannot be 'nonsense'"),
        (["controls", control], None, f"`controls.{control}` cannot be None"),
        (["answers", question], {}, "must hold `attempts`, `shown`"),
        (["answers", question, "shown"], 1, "must be true or false"),
        (["answers", question, "attempts"], 10**5000, "must be a list, got a whole number"),
        (["answers", question, "attempts", 0, "answer"], 10**5000, "the question does not offer it"),
        (["version"], 10**5000, "has version a whole number of the state"),
        (["answers", question, "attempts", 0, "at"], "noon", "must be a time in ISO 8601, got 'noon'"),
        (["answers", question, "attempts", 0, "answer"], {"a": 1}, "the question does not offer it"),
        (["designs", design], {}, "must hold `choice`, `reason`"),
        (["designs", design, "choice"], {"a": 1}, "the task does not offer it"),
        (["designs", design, "reason"], 3, "must be a text"),
        (["started"], "noon", "must be a time in ISO 8601"),
        (["student"], 3, "`student` must be text"),
        (["prediction", "locked"], "yes", "must be true or false"),
        (["prediction", "locked"], False, "contradict each other"),
        (["prediction", "given"], [], "the question does not offer it"),
    ]:
        yield spoil(state, path, value), message


def test_nothing_is_half_restored(name, lab):
    used(lab, name)
    fresh = LABS[name]()
    before, shown = fresh.state(), (fresh.picture.value, fresh.summary.value, fresh.comparison.value)
    for state, message in spoiled(lab):
        with pytest.raises(LabStateError) as caught:
            fresh.restore(state)
        assert message in str(caught.value), (message, str(caught.value))
        assert fresh.state() == before
        assert (fresh.picture.value, fresh.summary.value, fresh.comparison.value) == shown


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "is not JSON"),
        ("[1]", "holds a list"),
        ("null", "holds nothing"),
        ("\x00", "is not JSON"),
        ("[" * 200_000, "nested too deeply"),
        ('{"version": ' + "9" * 5000 + "}", "is not JSON"),
        ('{"version": NaN}', "NaN is no number"),
        (" " * 1_000_001, "larger than any state"),
    ],
)
def test_files_that_are_no_state_are_refused(lab, tmp_path, text, message):
    path = tmp_path / "state.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LabStateError, match=message):
        lab.restore(path)
    with pytest.raises(LabStateError, match=r"no file 'absent\.json'"):
        lab.restore(tmp_path / "absent.json")


def test_a_failed_save_keeps_the_old_file(lab, tmp_path, monkeypatch):
    path = lab.save(tmp_path / "state.json")
    before = path.read_text("utf-8")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mlsys.files.os.fsync", fail)
    with pytest.raises(OSError):
        lab.save(path)
    assert path.read_text("utf-8") == before
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]  # nothing half-written stays


def test_the_state_of_another_lab_is_refused():
    with pytest.raises(LabStateError, match="belongs to the lab"):
        read_state(RooflineLab().state(), AmdahlLab.id)


# --- without a kernel -----------------------------------------------------------------


def test_the_mimebundle_falls_back_to_a_picture_with_words(lab):
    bundle = lab._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == lab.root.model_id
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    page = bundle["text/html"]
    assert f'alt="{html.escape(lab.alt)}"' in page and INVITATION in page
    assert INVITATION in bundle["text/plain"] and lab.title in bundle["text/plain"]
    assert all(html.escape(question.text) in page for question in lab.questions.values() if question.in_app)
    assert "<script" not in page


def test_colab_is_offered_the_widget_alone(lab, monkeypatch):
    import sys
    import types

    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    assert set(lab._repr_mimebundle_()) == {"text/plain", "application/vnd.jupyter.widget-view+json"}


def test_page_questions_can_be_answered_at_once(lab):
    for box in lab.boxes.values():
        assert box.button.disabled == box.question.in_app


def test_asking_an_unknown_question_lists_the_known(lab):
    with pytest.raises(ValueError, match=r"ask\(\): no question 'x'. Known: "):
        lab.ask("x")


def test_show_and_ask_display_live_and_static_forms(lab, monkeypatch):
    shown = []
    monkeypatch.setattr(lab, "_display", shown.append)
    monkeypatch.setenv("MLSYS_LAB_STATE", "nowhere")
    lab.show()
    lab.ask(list(lab.boxes)[-1])
    app, script, question = shown
    assert "image/png" in app and "<script>" in script["text/html"]
    assert lab.prediction.text in script["text/markdown"]
    assert "check your answer" in question["text/html"]
    assert list(lab.questions.values())[-1].text in question["text/markdown"]


def test_a_key_twice_in_a_state_is_refused(tmp_path):
    path = tmp_path / "state.json"
    path.write_text('{"lab": "x", "lab": "y"}')
    with pytest.raises(LabStateError, match="'lab' stands twice"):
        RooflineLab().restore(path)
