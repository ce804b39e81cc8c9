"""The parts of `make test` run side by side, each to its end, and one failure is the failure of all."""

import sys
import time
from pathlib import Path

import pytest

import run_test_stages
from run_test_stages import Part


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *lines: list[Part]) -> int:
    monkeypatch.setattr(run_test_stages, "LOGS", tmp_path)
    monkeypatch.setattr(run_test_stages, "EVERY", 0.0)
    monkeypatch.setattr(run_test_stages, "lines", lambda: list(lines))
    return run_test_stages.main()


def test_a_failure_is_told_and_the_rest_still_runs(monkeypatch, tmp_path, capsys) -> None:
    first, second = (
        Part("first", python("print('[ 40%]'); raise SystemExit(3)")),
        Part("second", python("print(7 * 6)")),
    )
    other = Part("other", python("pass"), nice=5)
    assert run(monkeypatch, tmp_path, [first, second], [other]) == 1
    result = capsys.readouterr().out
    assert "first: FAILED (3)" in result and "second: passed" in result and "\n42\n" in result
    assert first.state() == "first 40 %"
    assert other.code == 0 and second.started >= first.ended, "parts of a line wait for each other"


def test_all_passed_is_nought_and_processor_time_is_that_of_the_children(monkeypatch, tmp_path) -> None:
    busy = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(4_000_000))'])"
    part, idle = Part("busy", python(busy)), Part("idle", python("import time; time.sleep(0.3)"))
    started = time.monotonic()
    assert run(monkeypatch, tmp_path, [part], [idle]) == 0
    assert part.processor > idle.processor
    assert part.ended - part.started <= time.monotonic() - started


def test_every_test_is_in_one_part() -> None:
    parts = {part.name: list(part.command) for line in run_test_stages.lines() for part in line}
    assert parts["tests"][parts["tests"].index("--ignore") + 1] == "tests/browser"
    assert "tests/browser" in parts["browser"]
    notebooks = [word for word in parts["notebooks"] if word.endswith(".ipynb")]
    assert len(notebooks) == len(run_test_stages.notebook_files()) > 20
