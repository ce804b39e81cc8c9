"""Every numbered chapter opens, closes and practises in the same way."""

import re
from pathlib import Path

import pytest
import yaml

from pageparse import Directive, Page, parse
from pages import ROOT

TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
CHAPTERS = [
    ROOT / f"{chapter['file']}.md" for part in TOC["parts"] if part.get("numbered") for chapter in part["chapters"]
]


def read(path: Path) -> Page:
    return parse(path)


def exercises(page: Page) -> list[Directive]:
    return [directive for directive in page.directives if directive.name == "exercise"]


def between(page: Page, start: str, end: str) -> list[str]:
    """Lines of prose between two headings."""
    text = [line.text for line in page.prose]
    return text[text.index(start) + 1 : next(at for at, line in enumerate(text) if line.startswith(end))]


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def page(request: pytest.FixtureRequest) -> Page:
    return read(request.param)


def test_the_book_has_its_chapters() -> None:
    assert len(CHAPTERS) >= 15 and all(path.is_file() for path in CHAPTERS)


def test_the_title_is_a_topic_and_a_question(page: Page) -> None:
    title = next(line.text for line in page.prose if line.text.startswith("# "))
    assert re.fullmatch(r"# [^:?]+: .+\?", title)


def test_it_opens_with_a_prediction_and_answers_it_only_to_those_who_ask(page: Page) -> None:
    first, *others = [directive for directive in page.directives if directive.name == "admonition"]
    assert first.argument == "Predict first"
    for answer in others:
        if answer.argument == "In one minute":
            assert "dropdown" in answer.options["class"], "closed until the reader has committed"


def test_it_closes_with_a_summary_of_three_sentences(page: Page) -> None:
    assert len(between(page, "## Summary", "## Your turn")) == 3


def test_it_has_at_least_six_exercises_of_rising_difficulty(page: Page) -> None:
    stars = [re.match(r"★{1,3}(?= \S)", exercise.argument) for exercise in exercises(page)]
    assert all(stars), "each is marked with one to three stars and has a title"
    marks = [len(mark[0]) for mark in stars if mark]
    assert len(marks) >= 6 and marks == sorted(marks) and {1, 2, 3} == set(marks)


def test_two_of_them_are_to_design_or_to_code_and_one_to_find_an_error(page: Page) -> None:
    titles = [exercise.argument for exercise in exercises(page)]
    assert sum(bool(re.match(r"★+ (Code|Design): ", title)) for title in titles) >= 2
    assert any("*Find the error.*" in exercise.source for exercise in exercises(page))


def test_prose_carries_and_code_supports(page: Page) -> None:
    """Before the exercises open code is at most a quarter of what is set, in lines of some ninety letters."""
    end = next(line.number for line in page.prose if line.text == "## Your turn")
    shown = [cell for cell in page.cells if cell.number < end and "hide-" not in str(cell.options.get("tags"))]
    code = sum(bool(line.text.strip()) for cell in shown for line in cell.body)
    prose = sum(-(-len(line.text) // 90) for line in page.prose if line.number < end)
    assert code <= 0.25 * (code + prose), f"{code} lines of open code beside {prose} of prose"


def test_every_exercise_has_its_solution(page: Page) -> None:
    labels = [exercise.options["label"] for exercise in exercises(page)]
    solved = [directive.argument for directive in page.directives if directive.name in ("solution", "solution-start")]
    assert solved == labels, "in the same order"
