"""Comparisons of the prose are held by checks, and one that nothing holds is found."""

from pathlib import Path

import pytest

import comparatives
from comparatives import LEAST, broken_ties, comparisons, holder_exists, main, numbers, share
from pageparse import parse
from pages import ROOT

PAGE = ROOT / "book" / "imagined.md"
CELL = "```{code-cell} ipython3\nclaim(slow=old.rate, gain=new.rate / old.rate)\n%s\n```\n"
CHECK = CELL % "check(new.rate > old.rate, 'the new card is faster')"


def held(text: str, page: Path = PAGE) -> list[str]:
    """Return what holds each comparing sentence of a page."""
    return [each.held.partition(":")[0] for each in comparisons(parse(page, text))]


def test_comparisons_of_the_book_and_the_labs_are_held(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0, capsys.readouterr().out
    assert LEAST >= 0.95


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("The new card is faster than the old one.\n", ""),
        ("Most cards have fewer units, and a larger cache.\n", ""),
        (CHECK + "\nThe new card is faster.\n", "words"),
        (CHECK + "\nThe new card is slower.\n", ""),
        (CHECK + "\n## Another section\n\nThe new card is faster.\n", ""),
        (CHECK + "\nThe old card does {glue:}`slow`, and the new one more.\n", "value"),
        (CELL % "check(other > 1, 'no')" + "\nThe old card does {glue:}`slow`, and the new one more.\n", ""),
        (CELL % "" + "\nIt takes at most {glue:}`slow`, {glue:}`gain` more.\n", "number"),
        (CELL % "" + "\nThe fastest takes {glue:}`slow`.\n", ""),
        ("The new card is faster {cite:p}`williams2009`.\n", "citation"),
    ],
)
def test_a_comparison_is_held_or_found(text: str, by: str) -> None:
    assert held(text) == [by]


@pytest.mark.parametrize(
    "text",
    ["Is it faster?\n", "# Faster\n", "```{exercise} One\nA faster card.\n```\n", "In half precision.\n", "A card.\n"],
)
def test_what_asks_or_does_not_compare_is_left_out(text: str) -> None:
    assert held(text) == []


def test_a_tie_holds_the_words_that_it_names_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparatives, "ties", lambda: {PAGE.name: {"is faster": "defines", "is new": "test: test_no"}})
    faster, slower = "The card is faster.\n", "The card is slower.\n"
    assert (held(faster), held(slower)) == (["defines"], [""])
    found = list(comparisons(parse(PAGE, faster)))
    assert share(found) == (0, 0) and len(broken_ties(PAGE, found)) == 1 and len(broken_ties(PAGE, [])) == 2


def test_a_holder_must_exist() -> None:
    page = ROOT / "book" / "roofline.md"
    there = (
        "equation: eq-roofline",
        "check: lower than the roof",
        "check: amdahl.md: no way back",
        "test: test_the_ceiling_holds",
    )
    assert all(holder_exists(page, holder) for holder in there)
    gone = (
        "equation: eq-ring",
        "check: higher than the roof",
        "check: amdahl.md: lower than the roof",
        "test: test_the_ceiling",
    )
    assert not any(holder_exists(page, holder) for holder in gone)


def test_a_typed_number_is_counted() -> None:
    assert numbers(parse(PAGE, "It takes {glue:}`slow` and 5 ms, on an A100.\n")) == (1, 1)
