"""The lab on explaining a measurement: answers follow from the stored samples, the picture from the shares."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ipywidgets")

from mlsys.explain import stored_logs
from mlsys.explain.summary import summary
from mlsys.viz.views.explain import ExplainScene, measured, measurements
from mlsys.widgets import ExplainLab
from mlsys.widgets.explain import told_here
from mlsys.widgets.questions import NumberQuestion


@pytest.fixture(scope="module")
def lab() -> ExplainLab:
    return ExplainLab()


def question(lab: ExplainLab, name: str):  # type: ignore[no-untyped-def]
    return next(item for item in lab._questions() if item.name == name)


def median(name: str) -> float:
    return float(np.median([sample.latency_ms for sample in stored_logs()[name].samples]))


def test_the_prediction_is_the_ratio_of_the_samples(lab: ExplainLab) -> None:
    ratio = median("ds-cnn fp32 eager") / median("ds-cnn fp32 litert")
    right = next(choice.text for choice in lab.prediction.choices if choice.right)
    low, high = (float(end) for end in right.replace("×", "").split(" to "))
    assert low <= ratio < high


def test_numbers_are_those_of_the_shares(lab: ExplainLab) -> None:
    rest, faster = question(lab, "rest"), question(lab, "arithmetic")
    assert isinstance(rest, NumberQuestion)
    shares = measured("eager, FP32").shares
    assert rest.judge(100 - shares["compute"] - shares["memory"] - shares["launch"])[0]
    part = measured("litert, FP32").shares["compute"] / 100
    assert faster.judge(1 / (1 - part + part / 10))[0]
    assert not faster.judge(10.0)[0]


def test_int8_was_slower_as_the_samples_say(lab: ExplainLab) -> None:
    longer = median("ds-cnn int8 litert") > median("ds-cnn fp32 litert")
    assert longer == (question(lab, "int8").right_answer() == "It became longer")


def test_bars_fill_the_whole_and_amdahl_holds_in_every_state() -> None:
    scene = ExplainScene()
    for name in measurements():
        for cause in ("compute", "memory", "launch", "residual"):
            view = scene.update(name=name, cause=cause, factor=10.0)
            whole = sum(bar.get_width() for bar in scene._wholes["measured"].values())
            after = sum(bar.get_width() for bar in scene._wholes["after"].values())
            layers = sum(bar.get_width() for stack in scene._bars.values() for bar in stack.values())
            assert whole == pytest.approx(1) and layers == pytest.approx(1)
            assert view.values["speedup"] == pytest.approx(1 / after)
            assert view.values["speedup"] <= view.values["limit"]


def test_the_button_runs_what_is_there_and_tells_what_is_not(lab: ExplainLab) -> None:
    command = lab._command()
    assert command[1:5] == ["-m", "mlsys", "explain", "run"] and "--json" in command
    logs = [summary(stored_logs()[f"ds-cnn fp32 {name}"]) for name in ("eager", "litert")]
    told = told_here(json.loads(json.dumps({"logs": logs, "absent": [{"reason": "openvino: not installed"}]})))
    assert "litert 43.6 µs, eager 466 µs" in told and "Absent: openvino: not installed." in told
    assert "Arithmetic and bytes explain 7.6% of it." in told
    alone = told_here({"logs": logs[:1], "absent": []})
    assert "The slowest takes" not in alone
    assert SimpleNamespace(**lab.here.__dict__)._begun.startswith("Started. Four runtimes")
