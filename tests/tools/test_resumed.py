"""A run that goes on where it was stopped: what passed on a tree is not run again on it, and on no other."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from resumed import Resumed, state_of, time_left

pytest_plugins = "pytester"

ROOT = Path(__file__).parents[2]
THREE = """
import os
def test_a(): pass
def test_ab(): assert os.environ["OUTSIDE"] == "well"
def test_c():
    if os.environ["OUTSIDE"] == "stopped": raise KeyboardInterrupt
"""


@pytest.fixture
def tree(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A small tree that git knows, with the house's own conftest.py."""
    pytester.makeconftest((ROOT / "conftest.py").read_text("utf-8"))
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(test_three=THREE)
    (pytester.path / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n.hypothesis/\nstdout\nstderr\n")
    subprocess.run(["git", "init", "-q"], cwd=pytester.path, check=True)
    monkeypatch.setenv("OUTSIDE", "well")
    return pytester


def run(tree: pytest.Pytester) -> pytest.RunResult:
    return tree.runpytest_inprocess("--resume", "-q", no_reraise_ctrlc=True)


def test_what_passed_is_not_run_again(tree: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTSIDE", "broken")
    first = run(tree)
    first.assert_outcomes(passed=2, failed=1)
    first.stdout.fnmatch_lines(["FAILED test_three.py::test_ab (call)", "3 tests in *1 failed*goes on here"])
    monkeypatch.setenv("OUTSIDE", "well")
    second = run(tree)
    second.assert_outcomes(passed=1, deselected=2)
    assert run(tree).ret == pytest.ExitCode.OK, "all passed: nothing to run is no failure"


def test_an_interrupted_run_goes_on(tree: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTSIDE", "stopped")
    tree.makepyfile(test_three=THREE.replace('== "well"', ""))
    first = run(tree)
    assert first.ret == pytest.ExitCode.INTERRUPTED
    first.stdout.fnmatch_lines(["2 tests in *1 not reached: the same command goes on here"])
    monkeypatch.setenv("OUTSIDE", "well")
    run(tree).assert_outcomes(passed=1, deselected=2)


def test_a_line_that_was_cut_off_counts_for_nothing(tree: pytest.Pytester) -> None:
    run(tree).assert_outcomes(passed=3)
    (kept,) = (tree.path / ".pytest_cache/d/resumed").glob("*.jsonl")
    kept.write_text(kept.read_text()[:-3])
    run(tree).assert_outcomes(passed=1, deselected=2)
    run(tree).assert_outcomes(deselected=3)


@pytest.mark.parametrize("changed", ["a file", "a new file", "a file less", "a what-if"])
def test_another_tree_begins_anew(tree: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    (tree.path / "facts.yaml").write_text("bandwidth: 2039 GB/s\n")
    before = state_of(tree.path)
    assert state_of(tree.path) == before
    if changed == "a file":
        (tree.path / "facts.yaml").write_text("bandwidth: 2040 GB/s\n")
    elif changed == "a new file":
        (tree.path / "other.yaml").touch()
    elif changed == "a file less":
        (tree.path / "facts.yaml").unlink()
    else:
        monkeypatch.setenv("MLSYS_PERTURB", "A100_80GB/power/tdp=1.01")
    assert state_of(tree.path) not in (before, None)


def test_a_tree_unknown_to_git_remembers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert state_of(tmp_path) is None


def test_the_time_left_follows_earlier_times_and_this_runs_pace() -> None:
    """By hand: this run is twice as slow as the earlier one; of three that wait, two are known, one is as its room."""
    earlier = {"a.py::1": 1.0, "a.py::2": 3.0, "b.py::1": 10.0}
    waiting = ["a.py::2", "b.py::1", "b.py::2"]
    assert time_left(waiting, {"a.py::1": 2.0}, earlier, workers=2) == (6 + 20 + 20) / 2


def test_workers_are_told_what_passed_and_look_for_nothing() -> None:
    """All must collect the same, or xdist refuses to run: one that is started later must not know more."""
    gone: list[object] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: gone.extend(items))
    result = SimpleNamespace(workerinput={"passed_before": ["a.py::1"]}, hook=hook)
    items = [SimpleNamespace(nodeid="a.py::1"), SimpleNamespace(nodeid="a.py::12")]
    Resumed(cast(pytest.Config, result)).pytest_collection_modifyitems(
        cast(pytest.Config, result), cast(list[pytest.Item], items)
    )
    assert [item.nodeid for item in items] == ["a.py::12"]
    assert len(gone) == 1
