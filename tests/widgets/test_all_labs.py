"""What holds for every lab: nothing is given away, each wrong answer has its own hint, each check can be set."""

import functools
import html
import json
import re

import pytest

pytest.importorskip("ipywidgets")

from mlsys import widgets
from mlsys.labs.claimed import KINDS as SLIPS
from mlsys.labs.claimed import ClaimQuestion
from mlsys.labs.questions import NOTHING, ChoiceQuestion, NumberQuestion
from mlsys.viz.views.view import number
from mlsys.widgets.frames import _mark as frames_mark
from mlsys.widgets.frames import frames_of
from mlsys.widgets.parts import GROUPS, options_of
from mlsys.widgets.static import lab_page, lab_text, question_page, wrap_up_pages

KINDS = tuple(
    kind
    for kind in map(vars(widgets).get, widgets.__all__)
    if isinstance(kind, type) and kind.__bases__ == (widgets.Lab,)
)  # every lab that the package names, so that a new one is tested too
NUMBER = re.compile(r"(?<![A-Za-z\d])\d[\d,]*\.?\d*")


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@functools.cache
def made_once(kind):
    """Return a lab of a kind: making one takes a second."""
    made = kind()
    made.fresh = made.state()
    return made


@pytest.fixture
def lab(kind):
    """Return a lab that nobody has answered yet; emptying one is quicker than making one."""
    made = made_once(kind)
    made.restore(made.fresh)
    return made


@pytest.fixture
def opened(lab):
    lab.predict(lab.prediction.listed()[0] if lab.prediction.listed() else 3)
    return lab


def numbers(text: str) -> set[str]:
    return {number.rstrip(".,") for number in NUMBER.findall(text)}


def shown(lab) -> str:
    """Return every word that the lab shows, with its static forms."""
    return " ".join([lab_page(lab), lab_text(lab), *wrap_up_pages(lab), *words_of(lab.root), *words_of(lab.wrap.view)])


def words_of(widget):
    for name in ("value", "description", "tooltip"):
        if isinstance(getattr(widget, name, None), str):
            yield getattr(widget, name)
    for child in getattr(widget, "children", ()):
        yield from words_of(child)


# --- nothing is given away ------------------------------------------------------------


def test_before_the_prediction_the_picture_is_empty(lab):
    assert lab.view is None and lab.png == lab._live.blank_png()
    assert not numbers(lab.alt.replace("2:4", "")) and message(lab.summary) == ""


def message(widget):
    return html.unescape(re.sub("<[^>]+>", "", widget.value))


def test_before_the_prediction_no_solution_is_shown(lab):
    words = html.unescape(shown(lab))
    for question in (lab.prediction, *lab.questions.values()):
        assert question.solution not in words
        for choice in getattr(question, "choices", ()):
            assert not choice.hint or choice.hint not in words
    for finding in lab._wrap_up().findings:
        assert finding.text not in words


def test_a_predicted_number_stands_nowhere_before(lab):
    """What the solution of the prediction tells anew may be read nowhere in the closed lab."""
    solution = numbers(lab.prediction.solution) - numbers(lab.prediction.text) - numbers(str(lab.prediction.listed()))
    telling = {each for each in solution if len(each) > 2}
    stripped = re.sub(r'src="data:[^"]*"|<style>.*?</style>', "", shown(lab), flags=re.S)
    assert telling and not telling & numbers(html.unescape(stripped)), telling & numbers(stripped)


def test_the_right_prediction_is_not_marked_by_its_form(lab):
    """No listed answer differs from the others in kind: all have numbers, or none has."""
    listed = lab.prediction.listed()
    assert len({bool(NUMBER.search(text)) for text in listed}) <= 1
    assert not any("first" in text or "about" in text for text in listed[1:] if not listed[0].startswith("About"))


def test_the_wrap_up_opens_when_all_questions_and_claims_are_answered(opened):
    assert not opened.wrap.open and "opens here when" in opened.wrap.words.value
    for box in opened.boxes.values():
        box.reveal()  # not an answer: nothing was tried
        assert not box.shown and not opened.wrap.open
        give(box, *answers_to(box.question))
    assert opened.wrap.open
    for finding in opened._wrap_up().findings:
        assert finding.text in html.unescape(opened.wrap.words.value)


def test_every_field_and_button_has_a_label(opened):
    shown = widgets_of(opened.root, opened.handing.view, *(box.field for box in opened.boxes.values()))
    fields = [each for each in shown if hasattr(each, "description")]
    unlabelled = [type(each).__name__ for each in fields if type(each).__name__ != "HTML" and not each.description]
    assert fields and not unlabelled


def test_enter_checks_the_answer(opened):
    for box in opened.boxes.values():
        if isinstance(box.question, NumberQuestion):
            box.field._handle_custom_msg({"event": "submit"}, [])  # as the browser sends it: first the key
            box.field.value = answers_to(box.question)[1]  # then the text
            assert box.right and box.tries == 1
            box.field.value = "3"  # left without Enter
            assert box.tries == 1


def give(box, *answers):
    for answer in answers:
        box.field.value = answer
        box.button.click()


def widgets_of(*roots):
    for root in roots:
        yield root
        yield from widgets_of(*getattr(root, "children", ()))


def test_what_the_wrap_up_computes_is_what_it_says(opened):
    computed = 0
    for finding in opened._wrap_up().findings:
        if not finding.code:
            continue
        *before, last = finding.code.strip().splitlines()
        names: dict[str, object] = {}
        exec("\n".join(before), names)  # the lab's own lines
        value = eval(last, names)
        value = getattr(value, "magnitude", value)
        texts = {number(value), f"{value:,.0f}", number(100 * value)}
        assert texts & numbers(finding.text), (texts, finding.text)
        computed += 1
    assert computed


def test_the_book_keeps_answers_out_of_the_page_source(opened, monkeypatch):
    monkeypatch.setenv("MLSYS_BOOK", "html")
    monkeypatch.setattr("mlsys.widgets.static.frames_of", lambda kind: {"summaries": ["secret of the frames"]})
    opened.restore(opened.fresh)
    pages = [question_page(question)[0] for question in opened.questions.values()]
    source = html.unescape(" ".join([lab_page(opened), *pages, wrap_up_pages(opened)[0]]))
    for question in (opened.prediction, *opened.questions.values()):
        assert question.solution not in source and '"right":' not in source
    assert "secret" not in source and "application/x-mlsys" in source


# --- hints ----------------------------------------------------------------------------


def test_each_wrong_option_has_a_hint_of_its_own(lab):
    hints = [c.hint for q in lab.questions.values() for c in getattr(q, "choices", ()) if not c.right]
    assert all(len(hint) > 20 for hint in hints)
    assert len(set(hints)) == len(hints)


def test_hints_do_not_tell_the_solution(lab):
    for question in lab.questions.values():
        known = numbers(question.text) | numbers(" ".join(question.listed()))
        result = numbers(question.solution) - known
        right = question.right_answer()
        hints = [c.hint for c in getattr(question, "choices", ()) if not c.right]
        if isinstance(question, NumberQuestion):
            hints = [question.hint, *(text for _, text in question.slips)]
            assert question.hint
        for hint in hints:
            assert right not in hint
            assert not {each for each in numbers(hint) & result if len(each) > 2}, hint


def test_slips_are_wrong_answers(lab):
    for question in lab.questions.values():
        for value, text in getattr(question, "slips", ()):
            right, said_ = question.judge(value)
            assert not right and text in said_, (question.id, value)


def test_nothing_is_wrong_now_and_then(lab):
    """Each lab has a claim that is right, one in four where there are many, and more that are not."""
    judged = [q for q in lab.questions.values() if not q.in_app or isinstance(q, ClaimQuestion)]
    right = [q for q in judged if q.right_answer() == NOTHING]
    assert len(right) == max(1, len(judged) // 4) and len(judged) >= 3
    for question in judged:
        listed = question.listed() if question.listed() else [NOTHING] if question.accepts(NOTHING) else []
        assert any(text.startswith("Nothing") for text in listed), question.id


def test_no_solution_begins_with_its_verdict(lab):
    for question in lab.questions.values():
        assert not re.match(r"(Right|No|Yes|You|Wrong)\b", question.solution)


# --- every check can be set -----------------------------------------------------------


def test_every_check_can_be_set(opened):
    for question in opened.questions.values():
        for name, value in question.setting.items():
            assert opened.controls[name].accepts(value), (question.id, name, value)
        opened._set(question.setting)
        assert "No picture" not in opened.picture.value, question.id
        assert {name: opened.value(name) for name in question.setting} == dict(question.setting)
    shown_in_picture = [q for q in opened.questions.values() if q.in_app and q.setting]
    assert len(shown_in_picture) >= 3


def test_what_stays_unset_can_be_answered_without_the_picture():
    unset = {q.id for kind in KINDS for q in made_once(kind).questions.values() if q.in_app and not q.setting}
    assert unset == {"waiting"}


def test_every_value_of_every_control_draws(opened):
    """Tried one control at a time, from the scenario."""
    opened._redraw = lambda: None  # the picture itself is not needed
    try:
        for name, control in opened.controls.items():
            for value in [
                each[1] if isinstance(each, tuple) else each for each in getattr(control.widget, "options", ())
            ]:
                opened._set(opened.scenario)
                control.widget.value = value
                assert opened._scene.update(**opened._arguments()).summary, (name, value)
    finally:
        del opened._redraw


# --- frames of the book ---------------------------------------------------------------


@pytest.mark.parametrize("kind", [widgets.AmdahlLab, widgets.DataflowLab], ids=lambda kind: kind.__name__)
def test_frames_show_what_the_lab_shows(kind):
    import base64
    import io

    import numpy as np
    from PIL import Image

    class Few(kind):
        frames = {name: values[:2] for name, values in kind.frames.items()}  # noqa: RUF012

    frames = frames_of(Few)
    lab = kind()
    blank = np.asarray(Image.open(io.BytesIO(lab.png)).convert("RGB"))
    lab.predict(lab.prediction.listed()[0] if lab.prediction.listed() else 3)
    lab._set({name: values[1] for name, values in Few.frames.items()})
    layer = np.asarray(Image.open(io.BytesIO(base64.b64decode(frames["pictures"][-1]))))
    drawn = np.asarray(Image.open(io.BytesIO(lab.png)).convert("RGB"))
    assert (np.where(layer[..., 3:] > 0, layer[..., :3], blank) == drawn).all()
    assert frames["summaries"][-1] == lab.view.summary
    assert len(frames["pictures"]) == len(frames["alts"]) == 2 ** len(Few.frames)
    json.dumps(frames)


def test_frames_offer_the_scenario(kind):
    lab = made_once(kind)
    for name, values in kind.frames.items():
        assert all(lab.controls[name].accepts(value) for value in values), name
        if name in lab.scenario:
            assert lab.scenario[name] in values, name


@pytest.mark.parametrize("kind", [widgets.PlacementLab, widgets.ShrinkLab], indirect=True, ids=["placement", "shrink"])
def test_the_book_begins_with_the_predicted_situation(opened, monkeypatch):
    """Where the reader of the book locks a prediction, the picture is the one that compares with it."""

    class Few(type(opened)):
        frames = {  # noqa: RUF012
            name: tuple(dict.fromkeys((values[0], opened.value(name) if opened.value(name) in values else values[-1])))
            for name, values in type(opened).frames.items()
        }

    monkeypatch.setattr("mlsys.widgets.frames._layer", lambda blank, drawn: "")
    frames = frames_of(Few)
    cell = 0
    for control in frames["controls"]:
        cell = cell * len(control["labels"]) + control["start"]
    assert frames["summaries"][cell] == opened.view.summary


def test_questions_about_numbers_name_their_range(lab):
    for question in lab.questions.values():
        if isinstance(question, NumberQuestion):
            assert question.accepts(question.answer) and not question.accepts(-1)
        assert isinstance(question, (ChoiceQuestion, NumberQuestion, ClaimQuestion))


# --- the same in every lab ------------------------------------------------------------


def test_controls_stand_in_the_order_of_every_lab(lab):
    order = [GROUPS.index(control.group) for control in lab.controls.values()]
    assert order == sorted(order) and all(control.widget.description for control in lab.controls.values())


def test_everything_is_closed_before_the_prediction(lab):
    assert all(control.widget.disabled for control in lab.controls.values())
    assert all(box.button.disabled == box.question.in_app for box in lab.boxes.values())


def answers_to(question):
    """Return a wrong answer and the right one, as the reader gives them."""
    if isinstance(question, ClaimQuestion):
        return wrong_answers(question)[0], question.shown(question.expected)
    if isinstance(question, NumberQuestion):
        most = question.most if question.most != float("inf") else None
        wrong = question.answer / 3 + 0.1 if most is None else (question.answer + most / 2) % most
        return str(max(wrong, question.least)), str(question.answer)
    texts = {choice.right: choice.text for choice in question.choices}
    return texts[False], texts[True]


def wrong_answers(question):
    """Return two wrong answers that differ, or one where there are only two choices."""
    if isinstance(question, ClaimQuestion):
        other = next(kind for kind in SLIPS if kind != question.slip)
        return [(other, "1"), (NOTHING, "") if question.slip else (other, "2")]
    if isinstance(question, NumberQuestion):
        first = float(answers_to(question)[0])
        return [str(first), str(first * 0.999 if first > question.least else first + 0.001)]
    return [choice.text for choice in question.choices if not choice.right][:2]


def test_the_solution_opens_after_two_different_answers(opened):
    for box in opened.boxes.values():
        wrong = wrong_answers(box.question)
        for given, tries in ((wrong[0], 1), (wrong[0], 1), *((each, 2) for each in wrong[1:])):
            give(box, given)
            words = message(box.feedback)
            assert words.startswith("Not yet.") and box.question.solution not in words, (box.question.id, words)
            assert box.tries == tries and box.reveal_button.disabled == (tries < 2) == (not box.answered)
        if box.answered:
            box.reveal_button.click()
            assert box.question.solution in message(box.feedback) and box.answer().solution_shown
        give(box, answers_to(box.question)[1])
        words = message(box.feedback)
        assert words.startswith("Right.") and words.count(box.question.solution) == 1
        assert [each.correct for each in box.answer().attempts] == [False] * len(wrong) + [True]


def test_what_was_done_comes_back_whole(opened):
    for control in opened.controls.values():
        others = (
            [value for value in options_of(control.widget) if value != control.value]
            if hasattr(control.widget, "options")
            else [not control.value]
        )
        control.widget.value = others[0]
    box = next(iter(opened.boxes.values()))
    box.field.value = answers_to(box.question)[0]
    box.button.click()
    state, summary, feedback = json.loads(json.dumps(opened.state())), opened.summary.value, box.feedback.value
    opened.restore(opened.fresh)
    assert not opened.locked and opened.view is None
    opened.restore(state)
    assert opened.state() == state and (opened.summary.value, box.feedback.value) == (summary, feedback)
    with pytest.raises(widgets.LabStateError):
        opened.restore({**state, "controls": {**state["controls"], next(iter(state["controls"])): "nonsense"}})
    assert opened.state() == state


# --- the prediction in the figure -----------------------------------------------------

PLOTTED = {  # from the predicted situation alone: where the answer lies on the axis
    "AmdahlLab": (25, lambda lab: 25),
    "RooflineLab": ("48", lambda lab: 1 / (2 / lab.scenario["width"] + 1 / 48)),  # FLOP/byte of a dense layer in FP16
    "MemoryLab": (8, lambda lab: 8 * 128 * 80 / 1e3),  # kB: lines of 128 bytes on the 80 units of a V100
    "SystolicLab": ("About half", lambda lab: 50),
    "TilingLab": ("Past 8", lambda lab: 8),
    "DataflowLab": ("Output stationary", lambda lab: 1),  # the second bar
    "CompilerLab": ("1.3× to 1.8×", None),
    "PlacementLab": ("32 ms to 38 ms", lambda lab: 35),
    "ShrinkLab": ("45% to 75%", lambda lab: 0.6 * 56.368),  # kB of the network as trained in static INT8
    "ExplainLab": ("3× to 6×", lambda lab: (1 / 3 + 1 / 6) / 2),
    "RealNetworkLab": (10, lambda lab: 6.5),  # TFLOP/s: a tenth of the peak of a T4
    "ServiceLab": (8, lambda lab: 34 / 16 / 8 / 0.85),  # 34 requests a second over 16 copies that answer 8 each
    "FindErrorLab": (6, lambda lab: 6),
}


def test_the_prediction_is_drawn_where_it_was_predicted(kind, lab):
    given, place = PLOTTED[kind.__name__]
    guess = lab._scene.guess
    assert not guess.visible
    lab.predict(given)
    assert guess.visible and lab.alt.endswith("Your prediction is marked.")
    if place is not None:
        line, band = guess._line, guess._band
        across = 0 if guess.along == "x" else 1
        low, high = band.get_bbox().intervalx if across == 0 else band.get_bbox().intervaly
        drawn = line.get_data()[across][0] if line.get_visible() else (low + high) / 2
        assert drawn == pytest.approx(guess.fraction(place(lab)), abs=0.005)
    web = frames_mark(lab)
    assert web["places"] and all(0 <= end <= 1 for place in web["places"] for end in place)
    if web["numbers"]:
        nearest = min(range(len(web["numbers"])), key=lambda at: abs(web["numbers"][at] - given))
        low = high = guess.fraction(*lab._guessed(web["numbers"][nearest]))
        axes = guess.ax.get_position()
        far = axes.x0 + axes.width * low if across == 0 else 1 - axes.y0 - axes.height * low
        assert web["places"][nearest] == [pytest.approx(far, abs=1e-3)]
    name = lab.predicts[0]
    lab.controls[name].widget.value = next(v for v in options_of(lab.controls[name].widget) if v != lab.value(name))
    assert not guess.visible
