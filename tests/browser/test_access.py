"""Whoever reads without a mouse or without seeing well finds what the others find."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent / "access"
PAGES = (
    "book/index.html",
    "book/roofline.html",
    "book/catalogue.html",
    "labs/01-amdahl.html",
    "book/amdahl.html?highlight=speedup",  # the words that a search found are marked
    "search.html?q=roofline",  # last, since the next page would mark its words
)

RULES = ("without_ring", "misnamed", "faint")
NO_TRANSITIONS = "*, *::before, *::after { transition: none !important; }"
"""Buttons fade into their colours on a dark page and into their rings; what counts is how they end."""


def faults(page: Page, rule: str) -> list[str]:
    """Return what breaks one of the rules, each a function of ``access/``."""
    found: list[str] = page.evaluate((HERE / f"{rule}.js").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module", params=["light", "dark"])
def reader(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """Return the tab of a reader whose system is light or dark."""
    profile = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=request.param)
    yield profile.new_page()
    profile.close()


@pytest.mark.parametrize("address", PAGES)
def test_rings_names_and_contrasts(reader: Page, site: str, address: str) -> None:
    reader.goto(f"{site}/{address}", wait_until="load")
    if "highlight=" in address:
        expect(reader.locator(".bd-article p > span.highlighted").first).to_be_visible(timeout=60_000)
    reader.keyboard.press("Tab")  # from now on focus is that of the keyboard
    reader.add_style_tag(content=NO_TRANSITIONS)
    assert {rule: faults(reader, rule) for rule in RULES} == {rule: [] for rule in RULES}
