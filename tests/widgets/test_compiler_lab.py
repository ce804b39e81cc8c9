"""The compiler lab: one right answer to each question, the stored one; and a measurement that can be stopped."""

import json
import re
import sys
import time

import pytest

pytest.importorskip("ipywidgets")

from mlsys.labs import questions
from mlsys.labs.questions import NumberQuestion
from mlsys.measure import stored_compile_results, stored_pass_results
from mlsys.viz.views.compiler import CompilerScene, cases
from mlsys.widgets import CompilerLab
from mlsys.widgets.compiler import measured_comparison
from mlsys.widgets.measure import MeasureHere

CLASS = [f"s{number:04}" for number in range(1001, 1013)]


@pytest.fixture(scope="module")
def lab() -> CompilerLab:
    return CompilerLab()


def question(lab: CompilerLab, name: str):  # type: ignore[no-untyped-def]
    return next(item for item in lab.questions.values() if item.id == name)


def result(model: str, batch: int, frozen: bool):  # type: ignore[no-untyped-def]
    return next(r for r in stored_compile_results() if (r.model, r.batch, r.frozen) == (model, batch, frozen))


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("product", "They multiply"),
        ("thirds", "Time goes to work and bytes, not to launches"),
        ("at-run-time", "They choose ahead of time, by measuring"),
    ],
)
def test_the_right_answers(lab: CompilerLab, name: str, right: str) -> None:
    choice_question = question(lab, name)
    assert next(choice.text for choice in choice_question.choices if choice.right) == right


@pytest.mark.parametrize("student", CLASS)
def test_what_compiling_did_is_what_the_samples_say(student: str) -> None:
    tiny, thirds = (next(q for q in questions("07-compiler", student) if q.id == name) for name in ("tiny", "thirds"))
    model, batch = tiny.setting["case"].split(", batch ")
    ratio = result(model, int(batch), tiny.setting["how"] == "frozen").speedup
    words = "slower" if ratio.high < 1 else "faster" if ratio.low > 1 else "No difference"
    assert words in tiny.right_answer()
    fewer = float(re.search(r"runs (\S+)× as fast", thirds.text)[1])  # type: ignore[index]
    case = re.search(r"says of (\S+), batch (\d)", thirds.text)
    assert case is not None
    assert result(case[1], int(case[2]), True).speedup.high < fewer, "the claim would be right"


@pytest.mark.parametrize("student", CLASS)
def test_a_convolution_takes_along_what_follows_it(student: str) -> None:
    fewest = next(q for q in questions("07-compiler", student) if q.id == "fewest")
    kernels = {"resnet18": 20 + 2 + 1, "resnet50": 53 + 2 + 1, "mobilenet-v2": 52 + 1 + 1}  # torchvision's modules
    assert fewest.judge(kernels[fewest.text.partition(" ")[0]])[0]
    counted = [int(each) for each in re.findall(r"(?<= )\d+(?= )", fewest.text)]
    words = {"two pools": 2, "one mean": 1, "one product": 1}
    operators = counted[0] + sum(counted) + sum(n for word, n in words.items() if word in fewest.text)
    model, batch = fewest.setting["case"].split(", batch ")
    assert operators == result(model, int(batch), True).operators


def test_numbers_are_those_of_the_table(lab: CompilerLab) -> None:
    even = question(lab, "break-even")
    assert isinstance(even, NumberQuestion)
    model, batch = even.setting["case"].split(", batch ")
    compiled = result(model, int(batch), even.setting["how"] == "frozen")
    saved = (compiled.eager.median - compiled.compiled.median).m_as("s")
    assert even.judge(compiled.compile_seconds / saved)[0]
    assert not even.judge(2 * compiled.compile_seconds / saved)[0]


def test_the_controls_move_the_picture() -> None:
    lab = CompilerLab()
    lab.predict(lab.prediction.listed()[0])
    before, reported = lab.png, lab.view.summary
    lab.controls["case"].widget.value = "mlp, batch 1"
    assert lab.png != before
    assert lab.view.summary != reported
    reported = lab.view.summary
    lab.controls["how"].widget.value = "plain"
    assert lab.view.summary != reported
    assert "weights as inputs" in lab.view.summary


def test_every_case_can_be_shown_and_says_what_it_shows() -> None:
    scene = CompilerScene()
    for case in cases():
        for frozen in (False, True):
            view = scene.update(case=case, frozen=frozen)
            model, batch = cases()[case]
            compiled = result(model, batch, frozen)
            assert f"Kernels go from {compiled.operators} to {compiled.kernels}" in view.summary
            ladders = [each for each in stored_pass_results() if (each.model, each.batch) == (model, batch)]
            assert ("Pass by pass" in view.summary) == bool(ladders)
            assert view.alt.endswith(view.summary)


def test_the_button_asks_for_what_was_chosen() -> None:
    lab = CompilerLab()
    assert lab._command()[1:5] == ["-m", "mlsys", "compile-bench", "small-cnn"]
    assert "--freeze" not in lab._command()
    lab.controls["how"].widget.value = "frozen"
    assert "--freeze" in lab._command()
    assert lab.here.view in lab.root.children


def here(code: str, limit: float = 30.0) -> MeasureHere:
    return MeasureHere(lambda: [sys.executable, "-c", code], lambda state: f"told {state['it']}", limit)


def test_a_measurement_is_told_and_the_button_opens_again() -> None:
    button = here("print('{\"it\": 7}')")
    button.start()
    assert button.start_button.disabled
    assert not button.stop_button.disabled
    button.wait()
    assert "told 7" in button.message.value
    assert 'role="status"' in button.message.value
    assert not button.start_button.disabled
    assert button.stop_button.disabled


def test_what_the_command_complains_of_is_shown() -> None:
    button = here("import sys; print('Error: no C++ compiler was found', file=sys.stderr); sys.exit(3)")
    button.start()
    button.wait()
    assert "mlsys-wrong" in button.message.value
    assert "no C++ compiler was found" in button.message.value
    assert "Error:" not in button.message.value


def test_it_can_be_stopped_and_stops_by_itself() -> None:
    button = here("import time; time.sleep(60)")
    button.start()
    time.sleep(0.3)
    button.stop()
    button.wait()
    assert "Stopped. Nothing was kept." in button.message.value
    slow = here("import time; time.sleep(60)", limit=0.3)
    slow.start()
    slow.wait()
    assert "too slow or too busy" in slow.message.value


def test_a_command_that_is_not_there_is_said() -> None:
    button = MeasureHere(lambda: ["/no/such/program"], lambda state: "")
    button.start()
    button.wait()
    assert "It could not be measured" in button.message.value


def test_the_sentence_names_both_machines() -> None:
    mine = result("small-cnn", 64, True)
    words = measured_comparison(json.loads(json.dumps(mine.record())))
    assert words.startswith("Here small-cnn, batch 64, its weights frozen, runs")
    assert "In the picture the same network runs" in words


def test_the_gap_is_a_question_with_figure_test_and_hand_in() -> None:
    lab = CompilerLab(student="Ada")
    lab.predict(lab.prediction.listed()[2])
    assert not lab.gap.view.children and not lab._scene.here.visible
    mine = result("small-cnn", 64, True)
    lab._show_measured(json.loads(json.dumps(mine.record())))
    assert lab._scene.here.visible and lab.alt.endswith("Your measurement is marked.")
    bar = lab._scene._time_bars[2]  # compiled, measured: the very same record
    assert lab._measured_at() == pytest.approx(bar.get_x() + bar.get_width(), rel=0.02)
    lab.gap.button.click()
    assert "choose an explanation" in lab.gap.feedback.value and "gap" not in lab.work().measurements
    lab.gap.field.value = next(each.text for each in lab.gap.gap.explanations if each.holds)
    lab.gap.button.click()
    kept = lab.work().measurements["gap"]
    assert (
        kept["holds"]
        and kept["measured"] == pytest.approx(mine.speedup.value)
        and "supports it" in lab.gap.feedback.value
    )
    again = CompilerLab()
    again.restore(json.loads(json.dumps(lab.state())))
    assert again.gap.feedback.value == lab.gap.feedback.value and again._scene.here.visible
