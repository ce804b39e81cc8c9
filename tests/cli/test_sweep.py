"""``mlsys sweep``: a folder of results, its summary, and one line for every mistake."""

import csv
import io
import json
import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from mlsys.cli import main
from mlsys.sweep import SweepRow, kinds

TEXT = """
models: [resnet50, gpt2]
devices: [A100, T4, {class: tiny, text: STM32H7}]
batches: [1, 8]
precisions: [fp16, int8]
"""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(TEXT)
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["sweep", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_a_sweep_and_its_folder_shown_again(spec: Path) -> None:
    code, output, notes = run(spec)
    assert code == 0, notes
    assert (
        "2 models" in output and "Highest rate among points that fit in memory" in output and "No answer for" in output
    )
    assert notes.splitlines()[-1] == "written: small.sweep/results.parquet, small.sweep/results.csv"
    assert run("--show", "small.sweep")[1] == output
    assert {path.name for path in Path("small.sweep").iterdir()} == {
        *(".lock", "SHA256SUMS", "pieces", "results.csv", "results.parquet", "sweep.json")
    }
    assert json.loads(Path("small.sweep/sweep.json").read_text())["units"]["bound_seconds"] == "s"


def test_csv_and_json_hold_every_point(spec: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(run(spec, "--csv", "--out", "out")[1])))
    answer = json.loads(run("--show", "out", "--json")[1])
    assert tuple(lines[0]) == SweepRow._fields
    assert [row["id"] for row in answer["points"]] == [line["id"] for line in lines]
    assert {"version", "date", "catalogue", "code", "specification", "request"} == set(answer["provenance"])
    assert Path("out/results.csv").read_text() == run("--show", "out", "--csv")[1]


def test_a_picture(spec: Path) -> None:
    code, _, notes = run(spec, "--figure", "map.svg")
    assert code == 0 and "written: map.svg" in notes
    drawn = ElementTree.parse("map.svg").getroot()
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    comments = Path("map.svg").read_text()  # glyphs are outlines; what they spell stands beside them
    assert all(f"<!-- {name} -->" in comments for name in ("resnet50", "gpt2", "A100_80GB", "T4"))
    assert "--figure must end in .png, .svg, .pdf" in run(spec, "--figure", "map.gif")[2]


def test_ctrl_c_leaves_a_folder_that_goes_on(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = kinds.OF_DEVICES
    done: list[int] = []

    def interrupted(points: list[object]) -> object:
        if done:
            raise KeyboardInterrupt
        done.append(len(points))
        return original.evaluate(points)

    monkeypatch.setattr(kinds, "OF_DEVICES", replace(original, evaluate=interrupted))
    code, output, notes = run(spec, "--jobs", 1)
    assert (code, output) == (130, "")
    assert f"stopped at {done[0]} of {2 * done[0]} points; repeat the command to resume" in notes
    assert (
        "holds an unfinished sweep. Resume it with: mlsys sweep SPEC.yaml --out small.sweep"
        in run("--show", "small.sweep")[2]
    )
    monkeypatch.setattr(kinds, "OF_DEVICES", original)
    code, _, notes = run(spec)
    assert code == 0 and f"resuming: {done[0]} of {2 * done[0]} points are done" in notes


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ([], "give either SPEC.yaml or --show FOLDER"),
        (["small.yaml", "--json", "--csv"], "give either --json or --csv, not both"),
        (["small.yaml", "--jobs", 2, "--scheduler", "x"], "--jobs counts processes on this machine; --scheduler"),
        (["--show", ".", "--jobs", 2], "--show only reads"),
        (["--show", "."], "holds no sweep. Make one with: mlsys sweep SPEC.yaml"),
        (["bad.yaml"], "bad.yaml:1: models: unknown network 'resnet5O'. Did you mean 'resnet50'?"),
        (["small.yaml", "--out", "full"], "full is not empty and was not created by a sweep"),
    ],
)
def test_mistakes(spec: Path, arguments: list[object], reported: str) -> None:
    Path("bad.yaml").write_text("models: resnet5O\ndevices: A100\n")
    Path("full").mkdir()
    Path("full/letter.txt").write_text("dear")
    code, output, notes = run(*arguments)
    usage = reported.startswith(("give", "--jobs", "--show"))
    assert (code, output) == (2 if usage else 1, "") and reported in notes


def test_the_shell_completes_devices_and_networks() -> None:
    def completed(words: str, last: str) -> list[str]:
        line = f"mlsys {words} {last}"
        environment = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1), "_MLSYS_COMPLETE": "bash_complete"}
        output = CliRunner().invoke(main, [], prog_name="mlsys", env=environment).output
        return [word.partition(",")[2] for word in output.splitlines()]

    assert {"A100", "A100_80GB"} <= set(completed("analyze resnet50 --device", "A100"))
    assert "H100,T4" in completed("compare gpt2 --devices", "H100,T4")
    assert "mobilenet_v2" in completed("flops", "mobilenet_v2")
    assert "TPUv4" in completed("device", "tpuv4")
    assert "_MLSYS_COMPLETE=bash_source" in CliRunner().invoke(main, ["--help"]).output


def test_a_sweep_without_time_keeps_what_it_has_and_goes_on(spec: Path) -> None:
    code, out, message = run("small.yaml", "--out", "kept", "--seconds", "0.1", "--jobs", "1", "--csv")
    done = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and done
    whole = list(csv.DictReader(io.StringIO(run("small.yaml", "--out", "kept", "--csv")[1])))
    assert [row for row in whole if row["id"] in {each["id"] for each in done}] == done
    if len(done) < len(whole):
        assert "stopped by the time limit" in message and "resume" in message


def test_a_lock_that_is_a_pipe_is_not_waited_for(spec: Path) -> None:
    from mlsys.sweep import store

    folder = spec.parent / "kept"
    folder.mkdir()
    os.mkfifo(folder / store._LOCK)
    code, _, message = run("small.yaml", "--out", "kept")
    assert code == 1 and "lock" in message and sum(line.startswith("Error") for line in message.splitlines()) == 1
