"""The pages themselves: no fact is decoration.

Every page of the book that carries claims is run again with each of its facts changed by 1 %. A fact that then moves
no claim, no table and no picture, and fails no assertion, could be wrong for ever and nobody would notice.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mlsys import constants
from mlsys.claims.page import Claim, Page
from mlsys.claims.render import MIME, Table
from mlsys.claims.sensitivity import run_and_look
from mlsys.provenance import perturbed

ROOT = Path(__file__).parents[1]
MUST_EXIST = {"amdahl", "roofline"}
_EXISTING = {path.stem for path in (ROOT / "book").glob("*.ipynb") if MIME in path.read_text("utf-8")}
PAGES = sorted(MUST_EXIST | _EXISTING)  # a missing page is a failing test, not a shorter list


def notebook(name: str) -> Path:
    return ROOT / "book" / f"{name}.ipynb"


@functools.cache
def run_once(name: str) -> Page:
    """Run a page unchanged, once for all tests here."""
    return look_once(name)[0]


@functools.cache
def look_once(name: str) -> tuple[Page, tuple[str, ...]]:
    return run_and_look(notebook(name))


def pinned_table(name: str) -> str:
    """Return the text of the claims table in the committed notebook."""
    cells = json.loads(notebook(name).read_text("utf-8"))["cells"]
    tables = [output["data"] for cell in cells for output in cell.get("outputs", []) if MIME in output.get("data", {})]
    assert len(tables) == 1, f"{name} must end with one claims table"
    return "".join(tables[0]["text/plain"])


@functools.cache
def one_percent_more(name: str) -> dict[str, tuple[dict[str, Claim], tuple[str, ...]] | None]:
    """Return, for each fact of a page, its claims and all else it shows with that fact raised by 1 %.

    None where the page refuses to run.
    """
    runs: dict[str, tuple[dict[str, Claim], tuple[str, ...]] | None] = {}
    for fact in run_once(name).facts:
        with perturbed(fact, 1.01):
            try:
                page, shown = run_and_look(notebook(name))
                runs[fact] = page.claims, shown
            except (AssertionError, ValueError):
                runs[fact] = None
    return runs


def stated(claims: dict[str, Claim]) -> dict[str, tuple[str, str]]:
    return {name: (claim.pinned, claim.unit) for name, claim in claims.items()}


def notices(name: str, fact: str, factor: float) -> bool:
    """Return whether a page with one fact changed shows anything else, or refuses to run."""
    page, shown = look_once(name)
    with perturbed(fact, factor):
        try:
            after, after_shown = run_and_look(notebook(name))
        except (AssertionError, ValueError):
            return True
    return (stated(after.claims), after_shown) != (stated(page.claims), shown)


class PageChecks:
    """What is asked of every page; a class for each, so that the pages can run side by side."""

    name: str

    def test_a_run_in_this_process_reproduces_the_committed_table(self) -> None:
        page = run_once(self.name)
        assert page.name == self.name
        assert page.claims
        assert repr(Table(page.record())) == pinned_table(self.name)

    def test_a_change_of_any_fact_is_noticed(self) -> None:
        """One percent, or for a fact that only a guard with a margin or a rounded cell reads, a hundredfold."""
        page, shown = look_once(self.name)
        before = stated(page.claims), shown
        unnoticed = [
            fact
            for fact, after in one_percent_more(self.name).items()
            if after is not None and (stated(after[0]), after[1]) == before
        ]
        assert len(unnoticed) <= 0.3 * len(page.facts), "a margin is the exception"
        decoration = [
            fact for fact in unnoticed if not (notices(self.name, fact, 100) or notices(self.name, fact, 0.01))
        ]
        assert decoration == [], f"{self.name} reads facts that nothing it shows depends on"

    def test_a_claim_names_every_fact_that_moves_it(self) -> None:
        """The printed pedigree is complete; claims of the page's own code (a count, a word) name none."""
        hidden = [
            f"{made.name} moves with {fact}"
            for fact, after in one_percent_more(self.name).items()
            for made in run_once(self.name).claims.values()
            if after is not None and made.facts and made.pinned != after[0][made.name].pinned
            if fact not in made.facts and not any(fact in sources_of(computed) for computed in made.facts)
        ]
        assert hidden == []


for _name in PAGES:
    _title = "".join(word.title() for word in _name.split("_"))
    globals()[f"Test{_title}"] = type(f"Test{_title}", (PageChecks,), {"name": _name})


def sources_of(name: str) -> str:
    """Return the source of a constant, which for a computed one names the facts in its sum."""
    value = getattr(constants, name, None)
    return "; ".join(fact.source for fact in getattr(value, "facts", ()))


@pytest.mark.parametrize("name", sorted(MUST_EXIST))
def test_pages_of_laws_lean_on_facts(name: str) -> None:
    """Else the two tests above would pass on a page of literals."""
    page = run_once(name)
    assert len(page.facts) >= 5
    assert sum(bool(claim.facts) for claim in page.claims.values()) >= 5


def test_the_committed_notebook_fails_when_a_fact_changes_and_passes_when_not() -> None:
    """End to end: a fresh kernel, nbval, the committed outputs, and one fact changed from outside."""
    fact = "A100_80GB/memory/HBM/bandwidth"
    assert fact in run_once("amdahl").facts
    command = [sys.executable, "-m", "pytest", "--nbval", str(notebook("amdahl")), "-q", "-p", "no:cacheprovider"]
    command += ["--nbval-cell-timeout", "120", "--nbval-sanitize-with", str(ROOT / "tests/notebooks/sanitize.cfg")]
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    runs = [
        subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": search, "MLSYS_PERTURB": switch},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for switch in ("", f"{fact}=1.01")
    ]  # fmt: skip
    (unchanged, _), (changed, _) = [run.communicate(timeout=120) for run in runs]
    assert runs[0].returncode == 0, unchanged
    assert runs[1].returncode == 1, changed
    assert "Cell outputs differ" in changed
    assert "2059.39 GB/s" in changed, "2039 GB/s and one percent"
