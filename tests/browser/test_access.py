"""Whoever reads without a mouse or without seeing well finds what the others find."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent / "access"
PAGES = (
    "book/index.html",
    "book/roofline.html",
    "book/catalogue.html",
    "labs/01-amdahl.html",
    "search.html?q=roofline",
)


def faults(page: Page, rule: str) -> list[str]:
    """Return what breaks one of the rules, each a function of ``access/``."""
    found: list[str] = page.evaluate((HERE / f"{rule}.js").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module", params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, context: BrowserContext, site: str, theme: str) -> Iterator[Page]:
    page = context.new_page()
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # the book follows the reader's system
    page.goto(f"{site}/{request.param}", wait_until="load")
    page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
    yield page
    page.close()


def test_the_keyboard_leaves_a_ring_on_each_control(page: Page) -> None:
    page.keyboard.press("Tab")  # from now on focus is that of the keyboard
    assert faults(page, "without_ring") == []


def test_controls_are_called_by_the_words_on_them(page: Page) -> None:
    assert faults(page, "misnamed") == []


def test_text_stands_out(page: Page) -> None:
    assert faults(page, "faint") == []
