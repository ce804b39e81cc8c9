"""The pages themselves: no fact is decoration.

Every page of the book that carries claims is run again with one of its facts changed by 1 %, up or down. A fact that
then moves no claim, no table and no picture, and fails no assertion, could be wrong for ever and nobody would notice.
A fact that stands in the sum of no claim (a limit that does not hold, a memory that is large enough) is pushed
further, down to a thousandth and up to ten thousand times: once it wins, something moves.

A run of the tests draws a few pages and facts (tools/sampled.py); `make mutants` tries every fact of every page.
"""

import contextlib
import functools
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlsys import Hardware, constants
from mlsys._facts import PUBLISHED
from mlsys.claims.filed import Claim, Page
from mlsys.claims.ledgers import claims_in_notebook
from mlsys.claims.render import MIME, ClaimsTable
from mlsys.claims.sensitivity import run_page
from mlsys.provenance import perturbed
from sampled import drawn

ROOT = Path(__file__).parents[1]
MUST_EXIST = {"amdahl", "roofline"}
_EXISTING = {path.stem for path in (ROOT / "book").glob("*.ipynb") if MIME in path.read_text("utf-8")}
PAGES = sorted(MUST_EXIST | _EXISTING)  # a missing page is a failing test, not a shorter list

EXCUSED: dict[str, dict[str, str]] = {
    page: {
        fact if field == "constants" else f"{fact}/{field}": reason
        for reason, fields in reasons.items()
        for field, owners in fields.items()
        for fact in owners
    }
    for page, reasons in yaml.safe_load((ROOT / "tests" / "silent_facts.yaml").read_text("utf-8")).items()
}
"""Facts that no change moves anything with, with the reason."""

FEW = 0.05  # of a page's facts, so many may be excused
A_LITTLE = (1.01, 0.99)
PUSHES = (100, 0.01, 10, 0.1, 1000, 0.001, 2, 0.5, 10_000)
"""What a fact in the sum of no claim is multiplied by, until something moves: the likeliest first."""

pytestmark = pytest.mark.exhaustive


def notebook(name: str) -> Path:
    return ROOT / "book" / f"{name}.ipynb"


def recorded(name: str) -> dict[str, Any]:
    """Return the claims and facts that the committed notebook of a page holds, without running it."""
    (record,) = claims_in_notebook(notebook(name).read_text("utf-8"))
    return record


def facts_of(name: str) -> list[str]:
    return [fact["name"] for fact in recorded(name)["facts"]]


def in_claims(name: str) -> set[str]:
    """Return the facts that stand in the sum of a claim; others are compared, or read for a table or a picture."""
    return {
        fact for claim in recorded(name)["claims"] for fact in claim["facts"] if fact not in claim.get("compared", ())
    }


def compared(name: str) -> set[str]:
    """Return the facts that stand in the sum of nothing that the page shows."""
    return {fact["name"] for fact in recorded(name)["facts"] if fact.get("compared")}


READING = [name for name in PAGES if facts_of(name)]
CASES = [
    (name, fact) for name in drawn(READING, 2, "pages") for fact in drawn(facts_of(name), 2, f"facts of {name}")
]  # fmt: skip


@functools.cache
def unchanged(name: str) -> tuple[Page, dict[str, str]]:
    """Run a page unchanged, once for all tests of a process; return it and what its tables and pictures look like."""
    page = run_page(notebook(name))
    return page, page.looks()


def changed(name: str, fact: str, factor: float) -> Page | None:
    """Return the page with a fact changed; None where it refuses to run."""
    with perturbed(fact, factor):
        try:
            return run_page(notebook(name), with_provenance=False)
        except (AssertionError, ValueError):
            return None


def stated(claims: dict[str, Claim]) -> dict[str, tuple[str, str]]:
    return {name: (claim.pinned, claim.unit) for name, claim in claims.items()}


def noticed(name: str, after: Page | None) -> bool:
    """Return whether a page with one fact changed shows anything else, or refuses to run."""
    page, looks = unchanged(name)
    return after is None or (stated(after.claims), after.looks()) != (stated(page.claims), looks)


def pinned_table(name: str) -> str:
    """Return the text of the claims table in the committed notebook."""
    cells = json.loads(notebook(name).read_text("utf-8"))["cells"]
    tables = [output["data"] for cell in cells for output in cell.get("outputs", []) if MIME in output.get("data", {})]
    assert len(tables) == 1, f"{name} must end with one claims table"
    return "".join(tables[0]["text/plain"])


@pytest.mark.parametrize("name", drawn(READING, 2, "pages"))
def test_a_run_in_this_process_reproduces_the_committed_table(name: str) -> None:
    """So what is tried below is the page that nbval compares, in a kernel of its own, with the committed outputs."""
    page = unchanged(name)[0]
    assert page.name == name
    assert set(page.claims) == {claim["name"] for claim in recorded(name)["claims"]}
    assert repr(ClaimsTable(page.record())) == pinned_table(name)


@pytest.mark.parametrize(("name", "fact"), CASES)
def test_a_change_is_noticed(name: str, fact: str) -> None:
    """And claims that move name the fact: the printed pedigree is complete. A count or a word names none."""
    pushes = A_LITTLE if fact in in_claims(name) else PUSHES + A_LITTLE if fact in compared(name) else A_LITTLE + PUSHES
    felt = (after for factor in pushes if noticed(name, after := changed(name, fact, factor)))
    after = next(felt, unchanged(name)[0])
    excused = fact in EXCUSED.get(name, {})
    assert after is not unchanged(name)[0] or excused, f"{name} names {fact}, and nothing that it shows moves with it"
    assert after is unchanged(name)[0] or not excused, f"{fact} moves {name}: take it out of tests/silent_facts.yaml"
    hidden = [
        f"{made.name} moves with {fact}"
        for made in unchanged(name)[0].claims.values()
        if after is not None and made.facts and made.pinned != after.claims[made.name].pinned
        if not names(made.facts, fact)
    ]
    page, looks = unchanged(name)
    hidden += [
        f"{shown} moves with {fact}"
        for shown, look in (after.looks() if after is not None else {}).items()
        if look != looks[shown] and page.exhibits[shown].facts and not names(page.exhibits[shown].facts, fact)
    ]
    assert hidden == []


def names(facts: tuple[str, ...], fact: str) -> bool:
    """Return whether facts name one, or a computed one whose source names it."""
    return fact in facts or any(fact in sources_of(computed) for computed in facts)


def sources_of(name: str) -> str:
    """Return the source of a constant, which for a computed one names the facts in its sum."""
    value = getattr(constants, name, None)
    return "; ".join(fact.source for fact in getattr(value, "facts", ()))


def all_facts() -> set[str]:
    """Return every fact of the package: the constants that were published, and what the catalogue's devices say."""
    devices = (device for group in Hardware.groups for device in group)
    return PUBLISHED.keys() | {
        fact.name for device in devices for quantity in device.recorded() for fact in quantity.facts
    }


@pytest.mark.parametrize("name", drawn(drawn(READING, 2, "pages"), 1, "one of them"))
def test_what_a_page_does_not_name_moves_nothing(name: str) -> None:
    """All facts that a page does not name change at once, each by an amount of its own, up to 1 %.

    What names no fact at all, such as a count over the catalogue, may move; where that fails an assertion of the page,
    a hundredth of the change must do.
    """
    page, looks = unchanged(name)
    named = {fact for shown in (*page.claims.values(), *page.exhibits.values()) for fact in shown.facts}
    named |= page.shown_facts().keys()
    result = " ".join(map(sources_of, named))
    others = [fact for fact in sorted(all_facts()) if fact not in named and fact not in result]
    after = next(filter(None, (changed_a_little(name, others, most) for most in (0.01, 0.0001))), None)
    assert after is not None, f"{name} fails an assertion of its own with facts that it does not name"
    moved = [
        made.name for made in page.claims.values() if made.facts and made.pinned != after.claims[made.name].pinned
    ] + [shown for shown, look in after.looks().items() if page.exhibits[shown].facts and look != looks[shown]]
    assert moved == []


def changed_a_little(name: str, facts: list[str], most: float) -> Page | None:
    """Return the page with each of the facts changed a little; None where it refuses to run."""
    with contextlib.ExitStack() as whatifs:
        for fact in facts:
            whatifs.enter_context(perturbed(fact, 1 + random.Random(fact).uniform(-most, most)))
        try:
            return run_page(notebook(name), with_provenance=False)
        except (AssertionError, ValueError):
            return None


@pytest.mark.parametrize("name", PAGES)
def test_excuses_are_few_and_each_has_its_reason(name: str) -> None:
    excused = EXCUSED.get(name, {})
    assert all(len(reason) > 20 for reason in excused.values())
    assert len(excused) <= FEW * len(facts_of(name))
    assert excused.keys() <= set(facts_of(name)), "what a page does not read needs no excuse"
    assert EXCUSED.keys() <= set(PAGES)


@pytest.mark.parametrize("name", sorted(MUST_EXIST))
def test_pages_of_laws_lean_on_facts(name: str) -> None:
    """Else the tests above would pass on a page of literals."""
    record = recorded(name)
    assert len(record["facts"]) >= 5
    assert sum(bool(claim["facts"]) for claim in record["claims"]) >= 5


def test_the_committed_notebook_fails_when_a_fact_changes() -> None:
    """End to end: a fresh kernel, nbval, the committed outputs, and one fact changed from outside.

    That it passes when none is changed is what `make test` asks of every notebook.
    """
    fact = "A100_80GB/memory/HBM/bandwidth"
    assert fact in facts_of("amdahl")
    command = [sys.executable, "-m", "pytest", "--nbval", str(notebook("amdahl")), "-q", "-p", "no:cacheprovider"]
    command += ["--nbval-sanitize-with", str(ROOT / "tests/notebooks/sanitize.cfg")]
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": search, "MLSYS_PERTURB": f"{fact}=1.01"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    result = done.stdout + done.stderr
    assert done.returncode == 1, result
    assert "Cell outputs differ" in result
    assert "2059.39 GB/s" in result, "2039 GB/s and one percent"
