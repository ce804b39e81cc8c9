"""The lab on explaining a measurement: answers follow from the stored samples, the picture from the shares."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.patches import PathPatch

pytest.importorskip("ipywidgets")

from mlsys.labs import questions
from mlsys.labs.questions import NumberQuestion
from mlsys.measure import stored_logs
from mlsys.measure.summary import summary
from mlsys.viz.views.explain import ExplainScene, measured, measurements
from mlsys.widgets import ExplainLab
from mlsys.widgets.explain import measured_summary

CLASS = [f"s{number:04}" for number in range(1001, 1013)]


@pytest.fixture(scope="module")
def lab() -> ExplainLab:
    return ExplainLab()


def question(lab: ExplainLab, name: str):  # type: ignore[no-untyped-def]
    return next(item for item in lab.questions.values() if item.id == name)


def median(name: str) -> float:
    return float(np.median([sample.latency_ms for sample in stored_logs()[name].samples]))


def test_the_prediction_is_the_ratio_of_the_samples(lab: ExplainLab) -> None:
    assert "OpenVINO" in lab.prediction.text
    ratio = median("ds-cnn fp32 eager") / median("ds-cnn fp32 openvino")
    right = next(choice.text for choice in lab.prediction.choices if choice.right)
    low, high = (float(end) for end in right.replace("×", "").split(" to "))
    assert low <= ratio < high


def test_numbers_are_those_of_the_shares(lab: ExplainLab) -> None:
    rest, faster = question(lab, "rest"), question(lab, "arithmetic")
    assert isinstance(rest, NumberQuestion)
    shares = measured(rest.setting["run"]).shares
    assert rest.judge(100 - shares["compute"] - shares["memory"] - shares["launch"])[0]
    part, factor = measured(faster.setting["run"]).shares["compute"] / 100, faster.setting["factor"]
    assert faster.judge(1 / (1 - part + part / factor))[0]
    assert not faster.judge(factor)[0]


@pytest.mark.parametrize("student", CLASS)
def test_int8_was_slower_as_the_samples_say(student: str) -> None:
    drawn = next(q for q in questions("10-explain", student) if q.id == "int8")
    runtime = drawn.setting["run"].split(",")[0]
    longer = median(f"ds-cnn int8 {runtime}") / median(f"ds-cnn fp32 {runtime}")
    assert drawn.right_answer() == f"It became longer, by {'less' if longer < 1.1 else 'more'} than a tenth"
    assert longer > 1.03, "within what a day changes"


def drawn(shapes: dict[str, PathPatch], row: int | None = None) -> float:
    """Return how wide the bars of one row are together, or those of all."""
    seconds = 0.0
    for shape in shapes.values():
        for corners in shape.get_path().vertices.reshape(-1, 5, 2):
            if row is None or corners[:4, 1].mean() == pytest.approx(row):
                seconds += corners[1, 0] - corners[0, 0]
    return float(seconds)


def test_bars_fill_the_whole_and_amdahl_holds_in_every_state() -> None:
    scene = ExplainScene()
    for name in measurements():
        for cause in ("compute", "memory", "launch", "residual"):
            view = scene.update(name=name, cause=cause, factor=10.0)
            whole, after = (drawn(scene._wholes, row) for row in (0, 1))
            assert whole == pytest.approx(1) and drawn(scene._layers) == pytest.approx(1)
            assert view.values["speedup"] == pytest.approx(1 / after)
            assert view.values["speedup"] <= view.values["limit"]


def test_the_button_runs_what_is_there_and_tells_what_is_not(lab: ExplainLab) -> None:
    command = lab._command()
    assert command[1:5] == ["-m", "mlsys", "explain", "run"] and "--json" in command
    logs = [summary(stored_logs()[f"ds-cnn fp32 {name}"]) for name in ("eager", "litert")]
    result = measured_summary(json.loads(json.dumps({"logs": logs, "absent": [{"reason": "openvino: not installed"}]})))
    assert "litert 43.6 µs, eager 466 µs" in result and "Absent: openvino: not installed." in result
    assert "Arithmetic and bytes explain 7.6% of it." in result
    alone = measured_summary({"logs": logs[:1], "absent": []})
    assert "The slowest takes" not in alone
    assert SimpleNamespace(**lab.here.__dict__)._start_message.startswith("Started. Four runtimes")


# --- words of questions, explanations and findings: each from the stored samples ---------------


def test_the_slowest_and_the_fastest_are_what_they_are_called() -> None:
    times = {name: log.median for name, log in measurements().items() if log.backend != "serial"}
    assert max(times, key=times.__getitem__) == "eager, FP32" and min(times, key=times.__getitem__) == "litert, FP32"


def test_both_answer_the_same_to_seven_digits() -> None:
    slow, fast = (np.asarray(stored_logs()[f"ds-cnn fp32 {name}"].output) for name in ("eager", "litert"))
    assert len(slow) and np.abs(slow - fast).max() <= 5e-7 * np.abs(slow).max()


def test_the_whole_network_fits_into_a_small_cache_and_bytes_are_a_hundredth() -> None:
    log = stored_logs()["ds-cnn fp32 eager"]
    assert sum(work.weight_bytes for work in log.works) + max(w.read_bytes + w.write_bytes for w in log.works) < 256e3
    assert measured("eager, FP32").shares["memory"] < 0.9


def test_the_runs_of_each_lie_closer_together_than_the_two_formats_do() -> None:
    plain, small = (stored_logs()[f"ds-cnn {name} litert"] for name in ("fp32", "int8"))
    spread = max(max(log.run_medians) - min(log.run_medians) for log in (plain, small))
    assert spread < small.median - plain.median


def test_int8_takes_arithmetic_off_and_adds_more_than_that() -> None:
    plain, small = measured("litert, FP32"), measured("litert, INT8")
    before, after = (attribution.total * attribution.shares["compute"] / 100 for attribution in (plain, small))
    assert after < before / 4 and small.total - after > plain.total - before + (before - after)


def test_the_penalties_of_the_text_are_more_than_its_cycles(lab: ExplainLab) -> None:
    penalties = question(lab, "penalties")
    near, _, far, _, cycles, branches = (
        int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?= misses| at| cycles)", penalties.text)
    )
    total = 10 * near + 100 * far + branches
    assert total > cycles and f"{total:,}" in penalties.solution
