"""The lab on shrinking: right answers from arithmetic, not from the lab."""

import re

import numpy as np
import pytest

pytest.importorskip("ipywidgets")

from mlsys.edge.stored import stored_run
from mlsys.labs import questions
from mlsys.labs.draw import Draw
from mlsys.labs.questions import ChoiceQuestion, NumberQuestion
from mlsys.labs.shrink import prediction
from mlsys.viz.views.edge import chosen
from mlsys.widgets import ShrinkLab

CLASS = [f"s{number:04}" for number in range(1001, 1013)]


@pytest.fixture(scope="module")
def lab() -> ShrinkLab:
    return ShrinkLab()


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("twice", "The kernels multiply by zeros like by any number"),
        ("milliwatts", "Less power for much longer is more energy"),
        ("highest", "Nothing: it is right"),
    ],
)
def test_the_right_answers(lab: ShrinkLab, name: str, right: str) -> None:
    item = lab.questions[name]
    assert isinstance(item, ChoiceQuestion)
    assert item.right_answer() == right


@pytest.mark.parametrize("student", CLASS)
def test_answers_about_formats_and_clocks_follow_from_the_run(student: str) -> None:
    asked = {question.id: question for question in questions("09-shrink", student)}
    one, half, clock = (asked[name] for name in ("one-step", "half-format", "clock"))
    names = {"FP16": "fp16", "Dynamic INT8": "int8-dynamic", "Static INT8": "int8-static"}
    budget = float(re.search(r"fit into (\d+) kB", one.text)[1])  # type: ignore[index]
    fits = {name for name, short in names.items() if chosen(one.setting["cut"], short)[0].memory <= 1e3 * budget}
    assert {one.right_answer()} == (fits if "is enough" in one.text else set(names) - fits)
    assert chosen(one.setting["cut"], "fp32")[0].memory > 1e3 * budget
    slow, fast = (chosen(half.setting["cut"], precision)[0].objectives[1] for precision in ("fp16", "fp32"))
    assert ("more than twice" in half.right_answer()) == (slow > 2 * fast) and slow > 1.2 * fast
    full, slowed = (chosen(clock.setting["cut"], "fp32", at)[0] for at in ("full", clock.setting["clock"]))
    static, dynamic = full.energies
    cycles = dynamic * (0.8**2 if "0.8" in clock.text else 1)  # C V² for each cycle
    leaking = static * slowed.objectives[1] / full.objectives[1]  # the same power for longer
    change = (cycles + leaking) / (static + dynamic)
    assert ("rises" in clock.right_answer()) == (change > 1.1) and ("less than" in clock.right_answer()) == (
        0.95 < change < 1.05
    )


def test_operations_that_are_left(lab: ShrinkLab) -> None:
    """Channels of 16 and 32 in the two convolutions, of which a share is kept."""
    item = lab.questions["operations"]
    assert isinstance(item, NumberQuestion)
    kept = 1 - int(item.setting["cut"].split()[0]) / 100
    left = kept * 16 * 9 * 784 + kept * 32 * kept * 16 * 9 * 196 + kept * 1568 * 10
    whole = 16 * 9 * 784 + 32 * 16 * 9 * 196 + 1568 * 10
    assert item.judge(100 * left / whole)[0]
    assert "112,896" in item.text
    assert not item.judge(100 * kept)[0]


def _student(number: int) -> Draw:
    return Draw("09-shrink", str(number))


def test_prediction_is_about_memory_that_stays(lab: ShrinkLab) -> None:
    holes = next(prediction(draw) for draw in map(_student, range(99)) if "set to zero" in prediction(draw).text)
    assert holes.right_answer() == "90% to 110%"
    held = {
        measurement.weight_bytes
        for measurement in stored_run().measured
        if measurement.precision == "fp32" and measurement.method != "structured"
    }
    assert len(held) == 1


def test_controls_reach_every_variant(lab: ShrinkLab) -> None:
    lab.predict(lab.prediction.listed()[0])
    seen = set()
    for cut in lab.frames["cut"]:
        for precision in lab.frames["precision"]:
            lab._set({"cut": cut, "precision": precision})
            assert lab.view is not None
            seen.add((lab.view.values["memory"], lab.view.values["time"]))
    assert len(seen) == len(stored_run().measured)


# --- words of questions, explanations and findings: each from the measured rows ---------------


def row(method: str, level: float, precision: str):  # type: ignore[no-untyped-def]
    rows = [
        measurement
        for measurement in stored_run().measured
        if (measurement.method, measurement.precision) == (method, precision) and measurement.level in (level, 0.0)
    ]
    assert len(rows) == 1
    return rows[0]


def typical(measurement) -> float:  # type: ignore[no-untyped-def]
    return float(np.median(measurement.samples_ms))


def test_zeros_change_neither_bytes_nor_operations_and_cost_right_answers() -> None:
    whole, holes = row("none", 0, "fp32"), row("unstructured", 0.9, "fp32")
    assert (whole.macs, whole.weight_bytes, whole.activation_bytes) == (
        holes.macs,
        holes.weight_bytes,
        holes.activation_bytes,
    )
    assert holes.nonzero < 0.2 * whole.nonzero and holes.sparse_bytes < whole.weight_bytes
    assert holes.accuracy < whole.accuracy


def test_the_sizes_of_the_three_layers_are_those_of_the_network() -> None:
    assert row("none", 0, "fp32").macs == 16 * 9 * 784 + 32 * 16 * 9 * 196 + 1568 * 10
    assert row("structured", 0.5, "fp32").macs == 8 * 9 * 784 + 16 * 8 * 9 * 196 + 784 * 10


def test_static_int8_answers_as_well_in_a_quarter_of_the_bytes() -> None:
    whole, small = row("none", 0, "fp32"), row("none", 0, "int8-static")
    assert small.accuracy >= whole.accuracy
    assert small.activation_bytes == whole.activation_bytes / 4 and small.weight_bytes < 0.26 * whole.weight_bytes


def test_fp16_halves_the_bytes_and_takes_longer_all_the_same() -> None:
    whole, half = row("none", 0, "fp32"), row("none", 0, "fp16")
    assert half.activation_bytes == whole.activation_bytes / 2 and half.weight_bytes == whole.weight_bytes / 2
    assert typical(half) > 1.2 * typical(whole) and np.percentile(half.samples_ms, 5) > typical(whole)


def test_a_lower_clock_costs_energy_and_a_lower_voltage_saves_it() -> None:
    full, half, low = (
        sum(chosen("50 % of channels cut", "fp32", clock)[0].energies)
        for clock in ("full", "half", "half, at 0.8 of the voltage")
    )
    assert low < full < half


def test_half_of_the_weights_at_zero_is_no_faster() -> None:
    assert typical(row("unstructured", 0.5, "fp32")) > 0.9 * typical(row("none", 0, "fp32"))
