"""The records in the committed notebooks: what a page says it leans on hangs together."""

import functools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlsys import constants
from mlsys.claims.ledgers import claims_in_notebook
from mlsys.claims.page import claim, current_page, end_chapter, start_chapter
from mlsys.claims.render import MIME

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "book").glob("*.ipynb") if MIME in path.read_text("utf-8"))
WITHOUT: dict[str, dict[str, list[str]]] = yaml.safe_load(
    (ROOT / "tests" / "shown_without_facts.yaml").read_text("utf-8")
)


@functools.cache
def record(page: Path) -> dict[str, Any]:
    (result,) = claims_in_notebook(page.read_text("utf-8"))
    return result


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_leans_on_is_among_its_facts(page: Path) -> None:
    """Else its table of facts is short, and the 1 % test, which takes the facts from there, leaves some out."""
    facts = {fact["name"] for fact in record(page)["facts"]}
    shown = [*record(page)["claims"], *record(page)["exhibits"]]
    missing = {
        claim["name"]: sorted(set(claim["facts"]) - facts) for claim in shown if not facts.issuperset(claim["facts"])
    }
    assert missing == {}, f"{page.stem}: is start_chapter() the first line, before any model is called?"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_table_or_a_picture_names_facts_or_has_a_reason_not_to(page: Path) -> None:
    silent = {
        re.sub(r"\d+ devices", "N devices", exhibit["name"])
        for exhibit in record(page)["exhibits"]
        if not exhibit["facts"]
    }
    excused = {name: reason for reason, names in WITHOUT.get(page.stem, {}).items() for name in names}
    assert silent == excused.keys(), "tests/shown_without_facts.yaml says which need none, and why"
    assert all(len(reason) > 20 for reason in excused.values())


def test_no_excuse_is_for_a_page_that_is_not() -> None:
    assert WITHOUT.keys() <= {page.stem for page in PAGES}


def test_a_fact_that_a_page_makes_itself_is_in_its_record() -> None:
    start_chapter("demo")
    wire = constants.fact(41, "ps/mm", name="DEMO_WIRE", meaning="delay", source="a book, page 1", date="2010")
    claim(wire=wire)
    end_chapter("demo")
    assert [fact["name"] for fact in current_page().record()["facts"]] == ["DEMO_WIRE"]
