"""Claims of the pages, their facts and sources, as small print in TeX."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sphinx.util import texescape

__all__ = ["claims_of_a_page", "facts_and_sources", "small_print"]

texescape.init()
Record = Mapping[str, Any]
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789−")
"""Translation of superscript digits, most of which text fonts lack."""


def small_print(items: Iterable[str]) -> str:
    """Return items as hanging paragraphs in two columns; words may break after a slash or an underscore."""
    lines = "\n".join(f"\\smallprintitem {item}" for item in items)
    return f"\\begin{{smallprint}}\n{lines}\n\\end{{smallprint}}"


def claims_of_a_page(record: Record) -> str:
    """Return each claim of a page with its value and formula."""
    return small_print(
        f"\\textbf{{{_tex(claim['name'])}}} = {_tex(_amount(claim))}, from {_tex(claim['formula'])}"
        for claim in record["claims"]
    )


def facts_and_sources(records: Iterable[Record]) -> tuple[str, str]:
    """Return the distinct facts of all pages, and their numbered sources."""
    facts = {fact["name"]: fact for record in records for fact in record["facts"]}
    ordered = [facts[name] for name in sorted(facts)]
    numbers: dict[str, int] = {}
    for fact in ordered:
        numbers.setdefault(_certificate(fact), len(numbers) + 1)
    listed = small_print(
        f"\\textbf{{{_tex(fact['name'])}}} = {_tex(_amount(fact))} [{numbers[_certificate(fact)]}]" for fact in ordered
    )
    return listed, small_print(f"[{number}] {_tex(source)}" for source, number in numbers.items())


def _certificate(fact: Record) -> str:
    return f"{fact['source']} ({fact['date']}; {fact['confidence']})"


def _amount(value: Record) -> str:
    return f"{value['value']} {value['unit']}".strip()


def _tex(text: str) -> str:
    escaped: str = texescape.escape(text, "xelatex")
    escaped = _RAISED.sub(lambda match: f"\\textsuperscript{{{match[0].translate(_LOWERED)}}}", escaped)
    return re.sub(r"(\\_|/|\\sphinxhyphen\{\}|,|=|\()(?=\S)", r"\1\\allowbreak{}", escaped)
