"""The built book in a browser: nothing breaks, nothing is fetched from elsewhere, every link leads somewhere."""

import io
import re
from dataclasses import dataclass, field
from urllib.parse import urldefrag, urlsplit

import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect

from bookplace import TEST_BOOK
from pages import ROOT

pytestmark = pytest.mark.browser

HTML = TEST_BOOK.html
DESKTOP, TELEPHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 800}
GIVEN_UP = "net::ERR_ABORTED"
LOOK = """() => ({
    ids: [...document.querySelectorAll('[id], a[name]')].map(it => it.id || it.name),
    links: [...document.querySelectorAll('a[href]')].map(it => it.href),
    images: [...document.querySelectorAll('img')].map(it => [it.alt, it.src, it.naturalWidth]),
    formulas: document.querySelectorAll('mjx-container').length,
    source: document.querySelectorAll('.math').length,
    faulty: [...document.querySelectorAll('mjx-merror, .problematic, .system-message')].map(it => it.textContent),
    cut: [...document.querySelectorAll('.text_html > table')]
        .filter(it => it.parentElement.scrollWidth > it.parentElement.clientWidth + 1).map(it => it.caption?.innerText),
})"""


@dataclass
class Seen:
    """What the browser found on one page."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    images: list[tuple[str, str, int]] = field(default_factory=list)
    formulas: int = 0
    source: int = 0
    faulty: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)  # tables wider than their place on a laptop
    complaints: list[str] = field(default_factory=list)
    width: int = 0  # on a telephone


@pytest.fixture(scope="module")
def book(site: str, context: BrowserContext) -> dict[str, Seen]:
    """Every page that can be reached from the first, as a browser sees it; each is opened once."""
    book: dict[str, Seen] = {}
    tab, complaints = listening(context)
    waiting = [f"{site}/book/index.html"]
    while waiting:
        address = waiting.pop()
        if address in book or address == f"{site}/index.html":
            continue  # the latter only forwards
        complaints.clear()
        seen = visit(tab, address)
        seen.complaints += complaints
        book[address] = seen
        inside = (urldefrag(link)[0] for link in seen.links)
        waiting += [link for link in inside if link.startswith(site) and urlsplit(link).path.endswith((".html", "/"))]
    tab.close()
    return book


def listening(context: BrowserContext) -> tuple[Page, list[str]]:
    """Open a tab, and return it with the list of what it complains about."""
    complaints: list[str] = []
    tab = context.new_page()
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    # Pictures still on their way when a page is left are given up; what is missing is an answer of 400 or more.
    tab.on("requestfailed", lambda it: complaints.append(f"{it.url}: {it.failure}") if it.failure != GIVEN_UP else None)
    tab.on("response", lambda got: complaints.append(f"{got.url}: {got.status}") if got.status >= 400 else None)
    return tab, complaints


def visit(tab: Page, address: str) -> Seen:
    """Open one page, look at it, and make the window as narrow as a telephone."""
    tab.set_viewport_size(DESKTOP)
    tab.goto(address, wait_until="load")
    tab.evaluate("() => window.MathJax?.startup?.promise")
    tab.wait_for_load_state("networkidle")
    looks = tab.evaluate(LOOK)
    tab.set_viewport_size(TELEPHONE)
    tab.wait_for_function(f"() => window.innerWidth === {TELEPHONE['width']}")
    width = tab.evaluate("() => document.documentElement.scrollWidth")
    return Seen(**{**looks, "ids": set(looks["ids"])}, width=width)


def test_first_page_forwards(site: str, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(f"{site}/index.html")
    page.wait_for_url(f"{site}/book/index.html")
    page.close()


def test_all_chapters_are_there(site: str, book: dict[str, Seen]) -> None:
    written = {f"{site}/{path.relative_to(ROOT).with_suffix('.html')}" for path in (ROOT / "book").glob("*.md")}
    written |= {f"{site}/{path.relative_to(ROOT).with_suffix('.html')}" for path in (ROOT / "labs").glob("*.md")}
    assert written <= set(book), "a page cannot be reached from the first; is it in _toc.yml?"


def test_no_page_complains(book: dict[str, Seen]) -> None:
    assert {address: seen.complaints for address, seen in book.items() if seen.complaints} == {}


def test_no_page_shows_an_error(book: dict[str, Seen]) -> None:
    assert {address: seen.faulty for address, seen in book.items() if seen.faulty} == {}


def test_no_table_is_cut_on_a_laptop(book: dict[str, Seen]) -> None:
    """On a telephone it moves sideways; on a laptop the last columns would be overlooked."""
    assert {address: seen.cut for address, seen in book.items() if seen.cut} == {}


def test_nothing_is_fetched_from_elsewhere(book: dict[str, Seen], outside: list[str]) -> None:
    assert book
    assert outside == []


def test_formulas_are_set(book: dict[str, Seen]) -> None:
    assert sum(seen.formulas for seen in book.values()) > 0
    assert [address for address, seen in book.items() if seen.formulas < seen.source] == []


def test_links_lead_somewhere(site: str, book: dict[str, Seen]) -> None:
    broken = set()
    for address, seen in book.items():
        for link in seen.links:
            target, fragment = urldefrag(link)
            if not target.startswith(site):
                continue
            known = book.get(target)
            is_file = (HTML / urlsplit(target).path.lstrip("/")).is_file()
            if (known is None and not is_file) or (known and fragment and fragment not in known.ids):
                broken.add(f"{address} -> {link}")
    assert broken == set()


def test_launch_buttons_open_notebooks(book: dict[str, Seen]) -> None:
    launched = {link for seen in book.values() for link in seen.links if "colab.research" in link or "mybinder" in link}
    assert any("colab" in link for link in launched)
    assert any("mybinder" in link for link in launched)
    assert [link for link in launched if not link.endswith(".ipynb")] == []


def test_images_are_described_and_load(book: dict[str, Seen]) -> None:
    for address, seen in book.items():
        for alt, source, width in seen.images:
            assert alt.strip(), f"{address}: {source[:80]} has no alternative text"
            assert not re.search(r"\.(png|svg|jpe?g|gif)$|^[./]", alt), (
                f"{address}: {alt!r} is a path, not a description"
            )
            assert "{glue" not in alt, f"{address}: {alt!r} lacks a number"
            assert width > 0, f"{address}: {source[:80]} does not load"


def test_labs_show_a_still_picture(site: str, book: dict[str, Seen]) -> None:
    labs = {address: seen for address, seen in book.items() if "/labs/" in address}
    assert labs
    for address, seen in labs.items():
        assert any("data:image" in source or "_images" in source for _, source, _ in seen.images), address


def test_pages_fit_a_telephone(book: dict[str, Seen]) -> None:
    assert all(seen.width > 0 for seen in book.values())
    too_wide = {address: seen.width for address, seen in book.items() if seen.width > TELEPHONE["width"]}
    assert too_wide == {}


def test_what_is_printed_in_columns_keeps_its_lines_on_a_telephone(site: str, context: BrowserContext) -> None:
    page = context.new_page()
    page.set_viewport_size(TELEPHONE)
    page.goto(f"{site}/book/network.html")
    printed = page.locator(".cell_output pre", has_text="nodes understood").first
    height = "printed => printed.clientHeight"
    before = printed.evaluate(height)
    printed.evaluate("printed => { printed.style.whiteSpace = 'pre' }")
    assert printed.evaluate(height) == before
    page.close()


def test_search_finds(site: str, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(f"{site}/search.html?q=roofline")
    expect(page.locator("#search-results li a").first).to_be_visible(timeout=600_000)
    page.close()


def test_a_claim_opens_its_card_by_keyboard(site: str, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(f"{site}/book/roofline.html")
    claim = page.locator("p .mlsys-claim").first
    card = claim.locator(".mlsys-card")
    expect(card).to_be_hidden()
    claim.focus()
    expect(card).to_be_visible()
    page.mouse.move(0, 0)
    claim.blur()
    expect(card).to_be_hidden()
    claim.hover()
    expect(card).to_be_visible()
    page.close()


def test_the_catalogue_sorts_and_searches(site: str, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(f"{site}/book/catalogue.html")
    rows = page.locator("table.mlsys-catalogue tbody tr")
    everything = rows.count()
    assert everything > 10

    def column(index: int) -> list[str]:
        return page.locator(f"table.mlsys-catalogue tbody td:nth-child({index + 1})").all_inner_texts()

    head = page.locator("table.mlsys-catalogue th", has_text="peak")
    for way, reverse in (("ascending", False), ("descending", True)):
        head.locator("button").press("Enter")
        assert head.get_attribute("aria-sort") == way
        rates = [float(text.replace(",", "")) for text in column(5)]
        assert rates == sorted(rates, reverse=reverse), "sorted as text, not as numbers?"

    search = page.get_by_label("Search the table")
    search.press_sequentially("h100")
    page.wait_for_function(f"() => document.querySelectorAll('table.mlsys-catalogue tbody tr').length < {everything}")
    assert all("H100" in name for name in column(1))
    page.close()


@pytest.mark.parametrize("name", ["book/amdahl", "book/systolic", "labs/01-amdahl"])
def test_in_the_dark_no_picture_is_a_light_box(site: str, context: BrowserContext, name: str) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme="dark")
    page.goto(f"{site}/{name}.html")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    pictures = [each for each in page.query_selector_all(".bd-article .cell_output img") if each.is_visible()]
    assert pictures
    for picture in pictures:
        shot = Image.open(io.BytesIO(picture.screenshot())).convert("L")
        assert shot.getpixel((1, 1)) < 40, "the margin of a picture is as dark as the page"
        assert shot.getextrema()[1] > 150, "and its lines are light"
    page.close()


def test_one_switch_shows_the_code_of_a_page(site: str, browser: Browser) -> None:
    reader = browser.new_context(viewport=DESKTOP)
    tab = reader.new_page()
    tab.goto(f"{site}/book/roofline.html", wait_until="load")
    switch = tab.get_by_role("button", name="Show code", exact=True)
    claims, lesson = tab.locator("div.cell.tag_hide-cell .cell_input"), tab.locator("div.cell:not([class*=tag_hide])")
    expect(claims.first).to_be_hidden()
    expect(lesson.first).to_be_visible()
    assert tab.locator("details.hide > summary:visible").count() == 0, "no stubs between two paragraphs"
    switch.press("Enter")
    expect(switch).to_have_attribute("aria-pressed", "true")
    expect(claims.first).to_be_visible()
    tab.goto(f"{site}/book/amdahl.html", wait_until="load")
    expect(tab.locator("div.cell.tag_hide-cell .cell_input").first).to_be_visible()
    reader.close()
