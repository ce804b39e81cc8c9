"""A page of many facts stays small: nothing is listed twice, and nothing is lost."""

import json
from typing import Any

import pytest

from mlsys.claims import Claim
from mlsys.claims.ledgers import claims_in_notebook
from mlsys.claims.render import CITED, MANY, MIME, MOST, ClaimsTable, _card


def record(facts: int, claims: int) -> dict[str, Any]:
    names = [f"device{index % 7}/memory/level{index}" for index in range(facts)]
    fact = {
        "value": "2",
        "unit": "GB/s",
        "meaning": "peak",
        "source": "a book",
        "date": "2020",
        "confidence": "verified",
    }
    made = [
        {"name": f"claim{i}", "value": str(i), "unit": "", "text": str(i), "formula": "f()", "facts": list(names)}
        for i in range(claims)
    ]
    single = {"name": "single", "value": "1", "unit": "", "text": "1", "formula": "g()", "facts": names[:1]}
    return {"page": "p", "claims": [*made, single], "facts": [{"name": name, **fact} for name in names]}


@pytest.mark.parametrize("facts", [3, MANY + 1, MOST + 1])
def test_a_notebook_gives_back_every_fact_of_every_claim(facts: int) -> None:
    page = record(facts, 5)
    data = json.loads(json.dumps(ClaimsTable(page)._repr_mimebundle_()))
    text = json.dumps({"cells": [{"outputs": [{"data": data}]}]})
    assert claims_in_notebook(text) == [{**page, "exhibits": []}]


def test_more_claims_of_the_same_facts_cost_next_to_nothing() -> None:
    few, many = (len(json.dumps(ClaimsTable(record(MOST + 50, n))._repr_mimebundle_())) for n in (1, 30))
    assert many < 1.5 * few


def test_few_facts_are_told_with_their_certificate_and_many_by_device() -> None:
    few, many = ClaimsTable(record(3, 2)), ClaimsTable(record(MOST + 1, 2))
    assert repr(few).count("a book (2020; verified)") == few._repr_html_().count("a book (2020; verified)") == 3
    assert "a book" not in repr(many)
    shown = many._repr_html_().replace("<wbr>", "")
    assert repr(many).count("= 2 GB/s") == shown.count("= 2 GB/s") == MOST + 1, "every value is there"
    assert f"the same {MOST + 1} facts as claim0" in repr(many) and "device0 (43)" in repr(many)
    assert "of 7 devices" in many._repr_markdown_() and MIME in many._repr_mimebundle_()


def test_a_card_names_a_few_sources_and_says_how_many_more() -> None:
    names = tuple(f"fact{index}" for index in range(CITED + 5))
    sources = {name: f"source of {name}" for name in names}
    card = _card(Claim("n", 1.0, "", "1", "f()", names), sources)
    assert card.count("source of") == CITED and "and 5 more sources" in card
    assert "more sources" not in _card(Claim("n", 1.0, "", "1", "f()", names[:CITED]), sources)
