"""The ledger of made-up notebooks, on disk and in a repository made for the test."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsys.claims import Move, diff, ledger, ledger_at
from mlsys.claims.render import MIME


def notebook(page: str, **claims: tuple[str, str]) -> str:
    """Return a notebook whose outputs hold the claims, as ``name=(value, unit)``."""
    record = {
        "page": page,
        "claims": [{"name": name, "value": value, "unit": unit} for name, (value, unit) in claims.items()],
        "facts": [],
    }
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": "noise"},
        {"output_type": "display_data", "data": {"text/plain": "a figure"}},
        {"output_type": "execute_result", "data": {"text/plain": "...", MIME: record}},
    ]
    cells = [
        {"cell_type": "markdown", "source": "prose", "metadata": {}},
        {"cell_type": "code", "source": "claims_table()", "metadata": {}, "outputs": outputs},
    ]
    return json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})


BEFORE = {"ridge": ("153.016", "FLOP/byte"), "bound": ("memory", ""), "size": ("1", "GB"), "dropped": ("0", "s")}
AFTER = {"ridge": ("154.546", "FLOP/byte"), "bound": ("compute", ""), "size": ("1000", "MB"), "added": ("7", "")}


def test_a_ledger_gathers_all_pages_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "deep" / ".ipynb_checkpoints").mkdir(parents=True)
    (tmp_path / "one.ipynb").write_text(notebook("one", ridge=("1", "")))
    (tmp_path / "deep" / "zwei é.ipynb").write_text(notebook("two", ridge=("2", "")))
    (tmp_path / "deep" / ".ipynb_checkpoints" / "old.ipynb").write_text(notebook("old", ridge=("3", "")))
    (tmp_path / "plain.ipynb").write_text(json.dumps({"cells": []}))
    (tmp_path / "notes.md").write_text("not a notebook")
    records = ledger([tmp_path])
    assert {key: claim["value"] for key, claim in records.items()} == {("one", "ridge"): "1", ("two", "ridge"): "2"}
    assert ledger([tmp_path / "one.ipynb"]).keys() == {("one", "ridge")}
    with pytest.raises(FileNotFoundError, match="no notebook or folder at .*absent"):
        ledger([tmp_path / "absent"])


def test_the_difference_names_what_moved_and_by_how_much(tmp_path: Path) -> None:
    sides = []
    for name, claims in (("before", BEFORE), ("after", AFTER)):
        (tmp_path / f"{name}.ipynb").write_text(notebook("roofline", same=("3", "s"), **claims))
        sides.append(ledger([tmp_path / f"{name}.ipynb"]))
    moves = {move.name: move for move in diff(*sides)}
    assert {name: move.change for name, move in moves.items()} == {
        "added": "new",
        "bound": "changed",
        "dropped": "gone",
        "ridge": "+1%",
        "size": "changed",  # 1 GB is 1000 MB: not a move of +99,900 %
    }
    assert moves["ridge"] == Move("roofline", "ridge", "153.016 FLOP/byte", "154.546 FLOP/byte")
    assert diff(sides[0], sides[0]) == []


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [("100 s", "99 s", "-1%"), ("-2", "-1", "-50%"), ("0 s", "1 s", "changed"), ("1e-09 s", "2e-09 s", "+100%")],
)
def test_changes_in_words(before: str, after: str, change: str) -> None:
    assert Move("page", "it", before, after).change == change


@pytest.fixture
def in_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what commits all that lies in a fresh repository, which the test stands in."""
    monkeypatch.chdir(tmp_path)
    for variable, value in {
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.c", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b.c",
        "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
    }.items():  # fmt: skip
        monkeypatch.setenv(variable, value)

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], check=True, capture_output=True)

    def commit(message: str) -> None:
        git("add", "-A")
        git("commit", "-q", "-m", message)

    git("init", "-q")
    return commit


def test_ledgers_of_two_revisions(tmp_path: Path, in_git: Callable[[str], None]) -> None:
    (tmp_path / "book").mkdir()
    for message, claims in (("before", BEFORE), ("after", AFTER)):
        (tmp_path / "book" / "füßchen page.ipynb").write_text(notebook("roofline", **claims))
        (tmp_path / "elsewhere.ipynb").write_text(notebook("elsewhere", it=("1", "")))
        in_git(message)
    before, after = ledger_at("HEAD~1"), ledger_at("HEAD")
    assert {key for key, _ in before.items()} == {("roofline", name) for name in BEFORE}, "only book and labs"
    assert [move.name for move in diff(before, after)] == ["added", "bound", "dropped", "ridge", "size"]
    (tmp_path / "book" / "füßchen page.ipynb").write_text(notebook("roofline", **BEFORE))
    assert diff(before, ledger(["book"])) == [], "what lies there, not what was committed"
    assert ledger_at("HEAD", ["elsewhere.ipynb"]).keys() == {("elsewhere", "it")}
    with pytest.raises(ValueError, match=r"no git revision 'v9\.9\.9' here.*e\.g\. HEAD~1"):
        ledger_at("v9.9.9")


@pytest.mark.parametrize("step", [0.0, float("nan"), float("inf"), -1.0, -5.0])
def test_a_step_that_changes_nothing_or_too_much_is_refused(tmp_path: Path, step: float) -> None:
    from mlsys.claims.sensitivity import sensitivity

    (tmp_path / "page.ipynb").write_text('{"cells": []}')
    with pytest.raises(ValueError, match=r"`step` must be a finite change above -1 and not 0"):
        sensitivity(tmp_path / "page.ipynb", step)
