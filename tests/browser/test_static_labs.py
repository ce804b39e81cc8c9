"""Labs of the built book, without a kernel: a prediction opens the picture, and a right answer is told right.

Asked are the labs of the tests' book and, where `make book` has made others, of the book for the web.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from bookplace import BOOK, TEST_BOOK, BookError, BookPlace
from mlsys import widgets
from mlsys.labs.claimed import ClaimQuestion
from mlsys.labs.questions import ChoiceQuestion, NumberQuestion, Question
from mlsys.widgets.static import INVITATION, TO_ANSWER
from pages import ROOT

pytestmark = pytest.mark.browser

KINDS = tuple(
    kind
    for kind in map(vars(widgets).get, widgets.__all__)
    if isinstance(kind, type) and kind.__bases__ == (widgets.Lab,)
)
LABS = sorted(path.stem for path in (ROOT / "labs").glob("[0-9]*.md"))


def pages_of(place: BookPlace) -> dict[str, bytes]:
    """Return the pages of the labs of a built book; they hold all that a lab does without a kernel."""
    return {path.name: path.read_bytes() for path in (place.html / "labs").glob("*.html")}


PLACES = [TEST_BOOK, *([BOOK] if pages_of(BOOK) not in ({}, pages_of(TEST_BOOK)) else [])]


@pytest.fixture(scope="module", params=PLACES, ids=["tests", "web"][: len(PLACES)])
def address(request: pytest.FixtureRequest, serve: Callable[[Path], AbstractContextManager[str]]) -> Iterator[str]:
    """Return the address of a built book, which no build changes meanwhile."""
    place = request.param
    if not (place.html / "labs").is_dir():
        pytest.fail("the tests' book is not built: run `python tools/book.py test` first")
    try:
        with place.locked(longest=0.0), serve(place.html) as site:
            yield site
    except BookError as busy:
        pytest.skip(f"this book is being built: {busy}")


def give(box: Locator, question: Question) -> None:
    """Give the right answer, as the package computes it."""
    if isinstance(question, ChoiceQuestion):
        texts = [choice.text for choice in question.choices]
        place = next(index for index, choice in enumerate(question.choices) if choice.right)
        assert box.locator("label.mlsys-choice").count() == len(texts)
        box.locator("label.mlsys-choice input").nth(place).check()
    elif isinstance(question, ClaimQuestion):
        kind, value = question.shown(question.expected)
        box.locator("select").select_option(label=kind)
        if value:
            box.locator("input[type=text]").fill(value)
    else:
        assert isinstance(question, NumberQuestion)
        box.locator("input[type=text]").fill(f"{question.answer:.8g}")


def lab_of(page: Page) -> widgets.Lab:
    """Return the lab that a page shows, from the package."""
    name = page.locator("[data-mlsys-lab]").get_attribute("data-mlsys-lab")
    return next(kind for kind in KINDS if kind.id == name)()


@pytest.mark.parametrize("name", LABS)
def test_a_lab_works_without_a_kernel(address: str, context: BrowserContext, name: str) -> None:
    page = context.new_page()
    page.goto(f"{address}/labs/{name}.html")
    shown = page.locator("article").inner_text()
    assert INVITATION not in shown and TO_ANSWER not in shown, "its outputs were not made for the book: `make book`"
    lab, box = lab_of(page), page.locator("[data-mlsys-lab]")
    questions = [question for question in lab.questions.values() if question.in_app]

    give(box.locator(".mlsys-predicted"), lab.prediction)
    box.locator(".mlsys-lock").click()
    expect(box.locator(".mlsys-predicted [role=status]")).to_contain_text("You predicted")

    mark = box.locator(".mlsys-guess")
    expect(mark).to_be_visible()

    control, layer = box.locator(".mlsys-panel :is(input, select)").first, box.locator("img.mlsys-layer")
    before = layer.get_attribute("src")
    if control.get_attribute("type") == "range":
        at_the_end = control.input_value() == control.get_attribute("max")
        control.press("ArrowLeft" if at_the_end else "ArrowRight")
    else:
        control.select_option(index=0 if control.input_value() != "0" else 1)
    expect(layer).not_to_have_attribute("src", before or "")

    first = box.locator(".mlsys-asked").first
    give(first, questions[0])
    first.get_by_role("button", name="Check my answer").click()
    expect(first.locator("[role=status]").first).to_contain_text("Right.")
    page.close()
