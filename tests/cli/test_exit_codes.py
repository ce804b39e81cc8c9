"""The table of exit codes in the README is that of the package, and the commands keep to it."""

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
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
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
    status, _, said = run(*(word.format(buffers="buffers", sweep="sweep", caps="caps") for word in words))
    assert status == code in EXIT_CODES, said
    if code:
        assert said.strip() and "Traceback" not in said


@pytest.mark.parametrize(
    "words",
    [
        ["systolic", "--rows"],
        ["mapper", "--rows"],
        ["validate", "--data"],
        ["memory", "--capacity", "8", "--buffers"],
        ["plan", "--instance"],
        ["plan"],
        ["calibrate"],
        ["sweep"],
        ["claims", "sensitivity"],
        ["analyze", "resnet50", "--device", "A100", "--calibration"],
    ],
)
def test_a_file_that_is_not_there_is_wrong_usage_everywhere(words: list[str]) -> None:
    code, _, said = run(*words, "no-such-file")
    assert code == 2 and "no-such-file" in said


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
    code, out, said = run(*words, "--json", "--csv")
    assert (code, out) == (2, "") and "give either --json or --csv, not both" in said
