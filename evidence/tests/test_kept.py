"""Predictions are kept by machine and by what-if: what is kept is what would be predicted anew."""

from pathlib import Path

import pytest

from mlsys.calibration.rows import Row
from mlsys.models.estimate.library import CALIBRATION
from mlsys.provenance import perturbed, recording
from mlsys_evidence import Prediction, held_out_predictions, validate
from mlsys_evidence.evaluate.report import predictions_on
from mlsys_evidence.rows import shipped_rows

FACTS = {
    "A100_80GB/memory/HBM/bandwidth": "NVIDIA A100",
    "RaspberryPi4/memory/LPDDR/bandwidth": "Raspberry Pi 4",
    "ENERGY_ADD_FP32_PJ": "",
}


@pytest.fixture(scope="module")
def rows() -> tuple[Row, ...]:
    """Every fifth row, which is of every kind of machine."""
    return shipped_rows()[::5]


def plain(prediction: Prediction) -> tuple[object, ...]:
    return (
        prediction.reason,
        prediction.value,
        prediction.seconds,
        prediction.bound,
        prediction.bound_by,
        prediction.excuse,
        prediction.low,
        prediction.high,
        prediction.why,
    )


def anew(rows: tuple[Row, ...]) -> list[tuple[object, ...]]:
    """Predict every machine's rows without looking at what is kept."""
    answers: dict[str, tuple[object, ...]] = {}
    for machine in {row.device for row in rows}:
        own = tuple(row for row in rows if row.device == machine)
        answers |= {each.row.id: plain(each) for each in predictions_on(machine, own)}
    return [answers[row.id] for row in rows]


@pytest.mark.parametrize("fact", FACTS)
def test_under_a_what_if_all_is_as_if_predicted_anew(rows: tuple[Row, ...], fact: str) -> None:
    before = validate(rows).predictions
    with perturbed(fact, 1.5):
        after = validate(rows).predictions
        assert [repr(plain(each)) for each in after] == [repr(prediction) for prediction in anew(rows)]
    moved = [new.row.device for old, new in zip(before, after, strict=True) if repr(plain(old)) != repr(plain(new))]
    assert all(FACTS[fact] in device for device in moved)
    assert bool(moved) == bool(FACTS[fact]), "and a fact that no row reads moves none"


def test_rows_of_other_machines_are_not_predicted_again(rows: tuple[Row, ...]) -> None:
    before = validate(rows).predictions
    with perturbed("A100_80GB/memory/HBM/bandwidth", 1.01):
        after = validate(rows).predictions
    again = {new.row.device for old, new in zip(before, after, strict=True) if old is not new}
    assert again
    assert all("A100" in device for device in again)


def test_errors_over_many_rows_note_no_fact_and_the_rows_of_a_machine_its_own(rows: tuple[Row, ...]) -> None:
    with recording() as seen:
        validate(rows)
        held_out_predictions("device", ["NVIDIA A100 80GB PCIe"])
    assert not seen
    with recording() as seen:
        predictions_on("A100", tuple(row for row in rows if row.device == "NVIDIA A100 80GB PCIe"))
    assert {name.partition("/")[0] for name in seen if not name.startswith("ENERGY")} == {"A100_80GB_PCIe"}


def test_left_out_rows_are_kept_as_well() -> None:
    before = held_out_predictions("device")
    assert all(old is new for old, new in zip(before, held_out_predictions("device"), strict=True))


def test_another_calibration_is_another_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(each.row for each in validate(shipped_rows()[::5]).predictions if each.case and each.kind == "gemm")
    (before,) = validate([row]).predictions
    assert before.case is not None
    own = "compute: 0.1, vector: 0.1, bandwidth: 0.1, reuse: 0.1, launch: 1.0, ramp: 64, link: 0.5, hop: 1.0e-6"
    file = tmp_path / "mine.yaml"
    file.write_text(
        f"device: {before.case.twin}\nsettings:\n  {before.case.setting}: {{{own}, energy: 1.0e-12}}\n", "utf-8"
    )
    monkeypatch.setenv(CALIBRATION, str(file))
    (after,) = validate([row]).predictions
    assert after.seconds > 1.0 > 10 * before.seconds  # its launch alone takes a second
