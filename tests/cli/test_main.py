"""The command line answers in words, and its errors are one line without a traceback."""

import csv
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from mlsys.claims.render import MIME
from mlsys.cli import main

PAGE = {
    "page": "demo",
    "claims": [
        {"name": "ridge", "value": "153", "unit": "FLOP/byte", "text": "153 FLOP/byte", "formula": "R ÷ B", "facts": []}
    ],
    "facts": [],
}


def notebook(value: str = "153") -> str:
    claim = {**PAGE["claims"][0], "value": value}
    output = {"output_type": "execute_result", "data": {MIME: {**PAGE, "claims": [claim]}}, "metadata": {}}
    return json.dumps({"cells": [{"cell_type": "code", "source": "", "outputs": [output]}], "nbformat": 4})


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_device_prints_every_value_with_its_source() -> None:
    code, text = run("device", "V100")
    assert code == 0
    assert "NVIDIA V100" in text
    bandwidth = next(line for line in text.splitlines() if "memory/HBM/bandwidth" in line)
    assert "900 GB/s" in bandwidth and "NVIDIA" in bandwidth


def commands(group: click.Group, name: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        yield from commands(command, (*name, each)) if isinstance(command, click.Group) else [(*name, each)]


@pytest.mark.parametrize("name", list(commands(main)), ids=" ".join)
def test_the_help_of_every_command_says_what_each_option_is_for(name: tuple[str, ...]) -> None:
    text = run(*name, "--help")[1]
    assert "None]" not in text, "limits that are none"
    command: click.Command = main
    for each in name:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), each)
    unsaid = [option.opts[-1] for option in command.params if isinstance(option, click.Option) and not option.help]
    assert not unsaid


def test_unknown_device_suggests_one() -> None:
    code, text = run("device", "V10O")
    assert code == 1
    assert "Did you mean 'V100'?" in text and "Traceback" not in text


def test_check_lists_all_faults_of_all_files(tmp_path: Path) -> None:
    good = Path("mlsys/hardware/data/cloud/T4.yaml").read_text("utf-8")
    (tmp_path / "bad.yaml").write_text(good.replace("320 GB/s", "320 GFLOP/s").replace("70 W", "-70 W"), "utf-8")
    (tmp_path / "good.yaml").write_text(good, "utf-8")
    code, text = run("check", tmp_path / "good.yaml", tmp_path / "bad.yaml")
    assert code == 1
    assert "<GPU NVIDIA T4" in text
    assert "'320 GFLOP/s' must be in byte/s" in text and "'-70 W' must be finite and above zero" in text


def test_check_refuses_two_files_of_one_folder_with_one_id(tmp_path: Path) -> None:
    text = Path("mlsys/hardware/data/cloud/T4.yaml").read_text("utf-8")
    (tmp_path / "copy").mkdir()
    for name in ("a.yaml", "b.yaml", "copy/a.yaml"):
        (tmp_path / name).write_text(text, "utf-8")
    code, message = run("check", tmp_path / "a.yaml", tmp_path / "b.yaml")
    assert code == 1 and f"b.yaml: the id 'T4' is already used by {tmp_path / 'a.yaml'}" in message
    assert run("check", tmp_path / "a.yaml", tmp_path / "copy" / "a.yaml")[0] == 0, "a copy may replace a device"


def test_a_size_that_the_board_decides_is_told_as_such() -> None:
    code, text = run("device", "RK3568_NPU")
    assert code == 0 and "memory/DRAM/capacity" in text and "not recorded" in text and "the board decides" in text
    code, text = run("devices", "RK3568_NPU")
    assert code == 0 and next(line for line in text.splitlines() if line.startswith("capacity")).split()[-1] == "—"


def test_ledger_and_diff_of_two_folders(tmp_path: Path) -> None:
    for folder, value in (("old", "153"), ("new", "154.53")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "demo.ipynb").write_text(notebook(value), "utf-8")
    code, text = run("claims", "ledger", "--json", tmp_path / "new")
    assert code == 0 and json.loads(text)[0]["value"] == "154.53"
    code, text = run("claims", "diff", tmp_path / "old", tmp_path / "new")
    assert code == 0
    assert "demo: ridge: 153 FLOP/byte → 154.53 FLOP/byte (+1%)" in text and "1 claim changed" in text
    assert run("claims", "diff", "--exit-code", tmp_path / "old", tmp_path / "new")[0] == 1
    assert run("claims", "diff", "--exit-code", tmp_path / "old", tmp_path / "old")[0] == 0


def test_diff_against_a_git_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("book").mkdir()
    Path("labs").mkdir()
    page = Path("book/demo.ipynb")
    page.write_text(notebook(), "utf-8")
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "one"]):
        subprocess.run(["git", *command], check=True)
    page.write_text(notebook("150"), "utf-8")
    code, text = run("claims", "diff", "HEAD")
    assert code == 0 and "153 FLOP/byte → 150 FLOP/byte" in text
    code, text = run("claims", "diff", "no-such-revision")
    assert code == 1 and "no-such-revision" in text and "Traceback" not in text


def test_sensitivity_of_a_page_is_the_analytic_elasticity(tmp_path: Path) -> None:
    code = (
        "from mlsys import Hardware, claim\nfrom mlsys.registry import start_chapter\nstart_chapter('demo')\n"
        "chip = Hardware.Cloud.A100\nclaim(ridge=chip.ridge_point('fp16'))"
    )
    page = tmp_path / "demo.ipynb"
    page.write_text(json.dumps({"cells": [{"cell_type": "code", "source": code, "metadata": {}}]}), "utf-8")
    exit_code, text = run("claims", "sensitivity", page, "--step", "1e-4")
    assert exit_code == 0
    lines = [line.split() for line in text.splitlines()]
    where = {line[0]: index for index, line in enumerate(lines) if line}
    assert lines[where["A100_80GB/peaks/fp16/matrix/dense"] + 1] == ["ridge", "+1"]
    assert lines[where["A100_80GB/memory/HBM/bandwidth"] + 1] == ["ridge", "-1"]


def test_devices_are_listed_filtered_and_sorted() -> None:
    code, text = run("devices", "--kind", "GPU", "--since", "2020", "--sort", "bandwidth")
    assert code == 0
    rows = [line.split()[0] for line in text.splitlines()[3:]]
    assert rows.index("H200_SXM") < rows.index("H100_SXM") < rows.index("A100_80GB")
    assert "V100" not in rows and "TPUv4" not in rows


def test_devices_side_by_side() -> None:
    code, text = run("devices", "V100", "A100")
    assert code == 0
    fp16 = next(line.split() for line in text.splitlines() if line.startswith("fp16"))
    assert fp16[-2:] == ["125", "312"]  # NVIDIA datasheets, dense


def test_devices_for_machines() -> None:
    code, text = run("devices", "--precision", "fp8", "--format", "json")
    assert code == 0
    rows = {row["id"]: row for row in json.loads(text)}
    assert rows["H100_SXM"]["bandwidth, GB/s"] == 3350 and "V100" not in rows
    code, text = run("devices", "T4", "--format", "csv")
    (row,) = csv.DictReader(text.splitlines())
    assert code == 0 and row["id"] == "T4" and float(row["bandwidth, GB/s"]) == 320


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--min-peak", "100"), "must be in FLOP/s"),
        (("--min-peak", "5 parsec"), "'parsec' is not defined"),
        (("--vendor", "Nvida"), "Did you mean 'NVIDIA'?"),
        (("A100", "--kind", "GPU"), "not both"),
    ],
)
def test_devices_refuses_what_it_cannot_use(arguments: tuple[str, ...], words: str) -> None:
    code, text = run("devices", *arguments)
    assert code != 0 and words in text and "Traceback" not in text


@pytest.mark.parametrize("name", list(commands(main)), ids=" ".join)
def test_examples_in_a_help_keep_their_lines(name: tuple[str, ...]) -> None:
    """A mark against wrapping that stands in a raw text is printed, and what it should keep apart runs together."""
    text = run(*name, "--help")[1]
    assert "\\b" not in text
    for line in text.splitlines():
        assert line.strip().count("mlsys ") < 2 or not line.startswith("      "), line
