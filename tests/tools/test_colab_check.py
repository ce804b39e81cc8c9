"""What `make colab` says of the Python that it ran on, and of the one that it stands for."""

import subprocess
import sys
from pathlib import Path

import pytest

import colab_check


def test_another_python_is_said_to_stand_for_colabs() -> None:
    result = colab_check.stands_for("3.11.7")
    assert "Python 3.11.7" in result and "instead of Colab's 3.13" in result and "not installed" in result
    own = colab_check.stands_for("3.13.0")
    assert "3.13.0" in own and "instead of" not in own and "not installed" not in own
    assert "instead of" in colab_check.stands_for("3.130.1"), "versions are compared by number, not by letters"


def test_versions_are_those_of_the_interpreter() -> None:
    assert colab_check.version_of(sys.executable) == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize(("version", "words"), [("3.11.7", "instead of Colab's 3.13"), ("3.13.2", "as on Colab")])
def test_the_first_and_the_last_line_name_the_python(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], version: str, words: str
) -> None:
    monkeypatch.setattr(colab_check, "make_environment", lambda: Path(sys.executable))
    monkeypatch.setattr(colab_check, "install_mlsys", lambda python: None)
    monkeypatch.setattr(colab_check, "version_of", lambda python: version)
    monkeypatch.setattr(colab_check, "run_lab", lambda python, lab: "broken" if lab.stem == "b" else None)
    assert colab_check.main(["a.md", "b.md"]) == 1
    first, *_, last = capsys.readouterr().out.strip().splitlines()
    assert version in first and words in first
    assert last.startswith("1 of 2 labs run") and version in last and words in last


def test_another_python_makes_the_environment_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Once Python 3.13 is installed, an environment of 3.11 is not taken for it."""
    made: list[str] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        made.append(command[0])
        tmp_path.joinpath("home", "bin").mkdir(parents=True, exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(colab_check, "HOME", tmp_path / "home")
    monkeypatch.setattr(colab_check, "pip", lambda *_: "")
    monkeypatch.setattr(colab_check.subprocess, "run", run)
    monkeypatch.setattr(colab_check, "version_of", {"old": "3.11.7", "new": "3.13.0"}.__getitem__)
    for python in ("old", "old", "new", "new"):
        monkeypatch.setattr(colab_check, "find_python", lambda python=python: python)
        colab_check.make_environment()
    assert made == ["old", "new"]
