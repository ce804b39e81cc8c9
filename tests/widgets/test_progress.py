"""Work in a lab keeps itself, comes back, and is never put over somebody else's."""

import json

import pytest

pytest.importorskip("ipywidgets")

from mlsys.labs.typed import AnswerError, read_number
from mlsys.widgets import AmdahlLab
from mlsys.widgets.progress import Progress, place_here

FILE = f"{AmdahlLab.id}.state.json"


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mlsys.widgets.progress._MEMORY", {})
    for name in ("MLSYS_LAB_STATE", "VOILA_REQUEST_URL", "SERVER_SOFTWARE"):
        monkeypatch.delenv(name, raising=False)


def shown(monkeypatch=None):
    """Return a lab that a cell has just shown."""
    lab = AmdahlLab()
    lab._display = lambda bundle: None
    lab.show()
    return lab


def test_running_the_cell_again_brings_the_work_back(tmp_path):
    first = shown()
    first.predict(50)
    box = next(iter(first.boxes.values()))
    box.field.value = box.question.shown(box.question.expected)
    box.check()
    again = shown()
    assert again.state() == first.state() and again.locked
    assert "is back" in again.message.value


def test_work_comes_back_after_the_kernel_is_gone(monkeypatch):
    first = shown()
    first.predict(50)
    monkeypatch.setattr("mlsys.widgets.progress._MEMORY", {})
    assert shown().state() == first.state()


def test_nothing_is_written_before_something_was_done(tmp_path):
    shown()
    assert not list(tmp_path.iterdir())


def test_a_slider_is_kept_when_it_rests(tmp_path):
    lab = shown()
    lab.predict(50)
    lab.controls["share"].widget.value = 0.5
    lab.progress._timer.join()
    assert json.loads((tmp_path / FILE).read_text())["controls"]["share"] == 0.5


def test_two_notebooks_do_not_overwrite_each_other(tmp_path, monkeypatch):
    first = shown()
    monkeypatch.setattr("mlsys.widgets.progress._MEMORY", {})  # another kernel
    second = shown()
    first.predict(50)
    theirs = (tmp_path / FILE).read_text()
    second.predict(3)
    assert (tmp_path / FILE).read_text() == theirs
    assert "holds other work" in second.message.value
    second.restore_button.click()
    assert second._predicted == 50
    second.controls["share"].widget.value = 0.5
    second.progress._timer.join()
    assert json.loads((tmp_path / FILE).read_text())["controls"]["share"] == 0.5


def test_by_hand_the_other_work_is_replaced_after_a_warning(tmp_path, monkeypatch):
    first = shown()
    monkeypatch.setattr("mlsys.widgets.progress._MEMORY", {})
    second = shown()
    first.predict(50)
    second.predict(3)  # warned
    second.save_button.click()
    assert json.loads((tmp_path / FILE).read_text())["prediction"]["given"] == 3


def test_starting_afresh_keeps_the_file_until_the_next_prediction(tmp_path):
    lab = shown()
    lab.predict(50)
    before = (tmp_path / FILE).read_text()
    lab.afresh_button.click()
    assert not lab.locked and lab.view is None and (tmp_path / FILE).read_text() == before
    lab.restore_button.click()
    assert lab.locked
    lab.afresh_button.click()
    lab.predict(7)
    assert json.loads((tmp_path / FILE).read_text())["prediction"]["given"] == 7


def test_a_file_that_is_no_state_stops_nothing_and_stays(tmp_path):
    (tmp_path / FILE).write_text("[" * 100_000)
    lab = shown()
    assert "not restored" in lab.message.value and not lab.locked
    lab.predict(50)
    assert (tmp_path / FILE).read_text() == "[" * 100_000


def test_a_folder_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    lab = shown()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mlsys.files.tempfile.mkstemp", full)
    lab.predict(50)
    assert lab.locked and "Not saved" in lab.message.value and "No space left" in lab.message.value


@pytest.mark.parametrize("name, value", [("VOILA_REQUEST_URL", "http://x"), ("SERVER_SOFTWARE", "voila/0.5")])
def test_voila_writes_nothing_into_the_shared_folder(tmp_path, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert place_here() == "memory"
    lab = shown()
    lab.predict(50)
    lab.controls["share"].widget.value = 0.5
    lab.progress._timer.join()
    lab.save_button.click()
    assert not list(tmp_path.iterdir())
    assert shown().state() == lab.state()


def test_built_pages_neither_read_nor_write(tmp_path, monkeypatch):
    first = shown()
    first.predict(50)
    monkeypatch.setenv("MLSYS_LAB_STATE", "nowhere")
    lab = shown()
    assert not lab.locked and lab.progress.recall() is None
    assert Progress("x", "nowhere").keep({}) == ""


@pytest.mark.parametrize(
    "typed, value",
    [("1,040", 1040), ("1,234,567.5", 1234567.5), (" 1e3 ", 1000), ("6.5 kB", 6.5), (".5", 0.5), ("12 %", 12)],
)
def test_numbers_are_read(typed, value):
    assert read_number(typed, "kB") == value


@pytest.mark.parametrize(
    "typed, result",
    [
        ("0,5", "not a comma: 0.5"),
        ("1,5", "not a comma: 1.5"),
        ("12,34", "not a comma: 12.34"),
        ("1,,2", "is no number"),
        ("1 000", "is no number"),
        ("1_000", "is no number"),
        ("nan", "is no number"),
        ("", "type a number first"),
        ("9" * 99 + "x!", "…"),
    ],
)
def test_other_numbers_are_refused_with_the_line_to_type(typed, result):
    with pytest.raises(AnswerError, match=result.replace("…", "…")):
        read_number(typed)
