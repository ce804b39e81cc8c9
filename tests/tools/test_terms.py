"""The glossary is read whole, its words are recognised, and notebooks print a term as a link to it."""

import pytest

import terms
from bookindex import BookIndex, PageNumbers
from myst import inline
from pageparse import parse
from pages import ROOT

HERE = ROOT / "book" / "imagined.md"


def named(name: str) -> terms.Term:
    return next(term for term in terms.terms() if name in term.names)


def test_each_term_stands_once_and_is_taught_by_a_page_that_there_is() -> None:
    names = [name.lower() for term in terms.terms() for name in term.names]
    assert len(names) == len(set(names)) >= 78
    assert all((ROOT / "book" / f"{term.chapter}.md").is_file() for term in terms.terms())
    assert set(terms.EVERYDAY) <= {term.name for term in terms.terms()}


def test_the_terms_that_readers_requested_are_no_everyday_words() -> None:
    requested = {
        "processing element", "operand", "warp", "lane", "sector", "coalesced access", "cache line", "bank conflict",
        "prefetch", "temporal reuse", "spatial reuse", "im2col", "blocking", "weak scaling", "strong scaling",
        "partial sum", "row stationary",
    }  # fmt: skip
    assert requested <= {term.name for term in terms.terms()} - set(terms.EVERYDAY)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tile", "Tiles"),
        ("partial sum", "partial-sums"),
        ("row stationary", "Row-stationary"),
        ("PE", "PEs"),
        ("Amdahl's law", "amdahl's law"),
        ("number format", "number formats"),
    ],
)
def test_a_term_is_known_in_each_of_its_forms(name: str, message: str) -> None:
    assert named(name).pattern.fullmatch(message)


@pytest.mark.parametrize(
    ("name", "other"), [("tile", "textile"), ("PE", "pe"), ("device", "device-bound"), ("lane", "planes")]
)
def test_a_term_is_not_found_inside_another_word(name: str, other: str) -> None:
    assert not named(name).pattern.search(other)


def test_the_first_use_counts_wherever_it_stands_in_a_line() -> None:
    page = parse(HERE, "A warp and a {term}`warp`, each {term}`lane`, and lanes.\n")
    assert [(line, term.name, message) for line, term, message in terms.first_uses(page)] == [(1, "warp", "warp")]


@pytest.mark.parametrize("folder", ["book", "labs"])
def test_a_notebook_prints_a_term_as_a_link_to_the_glossary(folder: str) -> None:
    numbers = PageNumbers.of(ROOT / folder / "imagined.md", [])
    index = BookIndex({})
    there = "glossary.md" if folder == "book" else "../book/glossary.md"
    assert (
        inline("Two {term}`tiles <tile>`, *{term}`warp`*.", index, numbers)
        == f"Two [tiles]({there}), *[warp]({there})*."
    )
