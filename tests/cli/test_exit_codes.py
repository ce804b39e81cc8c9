"""The table of exit codes on the page of commands is that of the package, and the commands keep to it."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import mlsys
from mlsys.cli import main
from mlsys.cli.common import EXIT_CODES

ROOT = Path(mlsys.__file__).parents[1]
CAPS = """{"name": "tight", "devices": [{"name": "a", "memory_mb": 10}], "links": [],
"stages": [{"name": "s", "output_mb": 0, "profiles": {"a": {"latency_ms": 5, "energy_mj": 1, "memory_mb": 1}}}],
"constraints": {"latency_ms": 1}}"""
SWEEP = "models: [resnet50]\ndevices: [T4]\nprecisions: [fp8]\n"


def run(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_the_readme_has_the_table() -> None:
    rows = re.findall(
        r"^\| (\d+) \| (.+) \|$", (ROOT / "book" / "reference" / "commands.md").read_text("utf-8"), re.MULTILINE
    )
    assert {int(code): text.replace("`", "") for code, text in rows} == EXIT_CODES


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["systolic", "8", "8", "8"], 0),
        (["device", "A10O"], 1),
        (["flops", "nothing:here"], 1),
        (["systolic", "8", "8", "x"], 1),
        (["memory", "--buffers", "{buffers}", "--capacity", "100"], 0),
        (["memory", "--buffers", "{buffers}", "--capacity", "9"], 3),
        (["sweep", "{sweep}"], 1),
        (["compile-bench", "no_such_package:x"], 2),
        (["no-such-command"], 2),
        (["devices", "--no-such-option"], 2),
        (["devices", "A100", "--kind", "GPU"], 2),
        (["mapper", "gemm:8x8x8"], 2),
        (["mapper", "gemm:8x8x8", "--device", "A100", "--json", "--csv"], 2),
        (["plan"], 2),
        (["plan", "{caps}"], 3),
        (["analyze", "resnet50", "--device", "A100", "--figure", "x.bmp"], 2),
    ],
)
def test_codes(words: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("buffers", "id,lower,upper,size\na,0,2,5\nb,1,3,5\n"), ("sweep", SWEEP), ("caps", CAPS)):
        (tmp_path / name).write_text(text)
    status, _, message = run(*(word.format(buffers="buffers", sweep="sweep", caps="caps") for word in words))
    assert status == code in EXIT_CODES, message
    if code:
        assert message.strip() and "Traceback" not in message


@pytest.mark.parametrize(
    "words",
    [
        ["systolic", "--rows"],
        ["mapper", "--rows"],
        ["validate", "--data"],
        ["memory", "--capacity", "8", "--buffers"],
        ["plan"],
        ["calibrate"],
        ["sweep"],
        ["claims", "sensitivity"],
        ["claims", "ledger"],
        ["check"],
        ["edge", "run"],
        ["edge", "report"],
        ["explain", "report"],
        ["explain", "compare"],
        ["explain", "compare", "--rows"],
        ["explain", "guide", "--within", "50"],
        ["explain", "import", "--model", "m", "--platform", "p", "--out", "o.jsonl"],
        ["plan", "--profiles"],
        ["analyze", "resnet50", "--device", "A100", "--calibration"],
    ],
)
def test_a_file_that_is_not_there_is_wrong_usage_everywhere(words: list[str]) -> None:
    code, _, message = run(*words, "no-such-file")
    assert code == 2 and "no-such-file" in message and len(message.splitlines()) == 1


@pytest.mark.parametrize("suffix", [".onnx", ".json"])
@pytest.mark.parametrize(
    "words",
    [["flops"], ["memory"], ["analyze", "--device", "A100"], ["compare", "--devices", "A100,T4"], ["explain", "run"],
     ["tiles", "--device", "GenericKPU"], ["edge", "layers"], ["compile-bench"]],
)  # fmt: skip
def test_so_is_a_model_file(words: list[str], suffix: str) -> None:
    code, _, message = run(*words, f"no-such-file{suffix}")
    assert code == 2 and "no-such-file" in message and len(message.splitlines()) == 1


def test_who_lacks_a_file_is_told_how_to_get_one() -> None:
    assert "mlsys plan --example --output" in run("plan", "no-such.json")[2]
    assert "mlsys edge run --example >" in run("edge", "run", "no-such.yaml")[2]


@pytest.mark.parametrize(
    "words",
    [["no-such"], ["devices", "--no-such"], ["systolic", "8", "8", "8", "--array"], ["plan", "--goal", "x"],
     ["explain", "no-such"], ["--no-such"], ["edge", "clock", "--point"], ["memory", "--top", "x"], ["device"]],
)  # fmt: skip
def test_wrong_usage_is_said_in_one_line(words: list[str]) -> None:
    code, out, message = run(*words)
    assert code == 2 and not out
    assert len(message.splitlines()) == 1 and message.startswith("Error: ")


REPORTS = [
    ["devices", "A100"], ["devices", "--kind", "TPU"],
    ["device", "A100"], ["edge", "arena"], ["edge", "arena", "ds-cnn"],
    ["check", "{device}"], ["claims", "sensitivity", "{page}"],
]  # fmt: skip


@pytest.mark.parametrize("words", REPORTS, ids=" ".join)
def test_reports_take_json(words: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.ipynb"
    cell = {"cell_type": "code", "source": ["1 + 1"], "metadata": {}, "outputs": [], "execution_count": None}
    page.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}))
    device = ROOT / "mlsys" / "hardware" / "data" / "cloud" / "A100_80GB.yaml"
    code, out, message = run(*(word.format(page=page, device=device) for word in words), "--json")
    assert code == 0, message
    assert json.loads(out)


def test_json_of_a_file_with_faults_lists_them(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("id: x\n")
    code, out, _ = run("check", tmp_path / "bad.yaml", "--json")
    (result,) = json.loads(out)["files"]
    assert code == 1 and result["device"] is None and result["faults"]


def test_what_a_factory_prints_is_not_in_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chatty_net.py").write_text(
        "import torch\nprint('on import')\ndef make():\n    print('on call')\n"
        "    return torch.nn.Linear(4, 4), torch.zeros(1, 4)\n"
    )
    code, out, message = run("flops", "chatty_net:make", "--json")
    assert code == 0 and json.loads(out)
    assert "on import" in message and "on call" in message


@pytest.mark.parametrize(
    "words",
    [
        ["analyze", "resnet50", "--device", "A100"],
        ["compare", "resnet50", "--devices", "A100"],
        ["flops", "resnet50"],
        ["memory", "resnet50"],
        ["tiles", "resnet50", "--device", "A100"],
        ["systolic", "8", "8", "8"],
        ["mapper", "gemm:8x8x8", "--device", "A100"],
        ["sweep", "--show", "."],
    ],
)
def test_two_forms_of_one_answer_are_wrong_usage_everywhere(words: list[str]) -> None:
    code, out, message = run(*words, "--json", "--csv")
    assert (code, out) == (2, "") and "give either --json or --csv, not both" in message
