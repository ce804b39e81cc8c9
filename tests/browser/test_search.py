"""Who searches the book for a term finds the page that teaches it first."""

import pytest
from playwright.sync_api import BrowserContext

from terms import terms

pytestmark = pytest.mark.browser


def taught() -> dict[str, str]:
    """Return the page that the glossary names for each of its terms."""
    return {term.name: term.chapter for term in terms()}


def test_the_glossary_is_read_whole() -> None:
    assert len(taught()) >= 60
    assert taught()["ridge point"] == "roofline"


# What the search page itself calls; its results end with the best.
SEARCH = """terms => Object.fromEntries(terms.map(term => [
    term, Search._performSearch(...Search._parseQuery(term)).slice(-3).reverse().map(result => result[0])
]))"""


def test_the_page_that_teaches_a_term_is_found_first(context: BrowserContext, site: str) -> None:
    page = context.new_page()
    page.goto(f"{site}/search.html?q=roofline")
    page.wait_for_selector("ul.search li > a")
    hits = page.evaluate(SEARCH, list(taught()))
    page.close()
    wrong = {term: hits[term] for term, chapter in taught().items() if hits[term][:1] != [f"book/{chapter}"]}
    assert wrong == {}
