"""Find glossary terms that a page uses before it links them.

A term of book/glossary.md is a link, {term}`tile`, where a page's sentences first use it. Words that sentences also
use in their ordinary sense (`EVERYDAY`) are linked on the page that teaches them, and elsewhere where it helps.
Not looked at: headings and titles, captions, alternative texts, code, mathematics, rows of tables, and the text of
links, for a link says already where to read more.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pageparse import Page
from pages import ROOT

GLOSSARY = ROOT / "book" / "glossary.md"
WITHOUT = ("glossary.md", "bibliography.md")
EVERYDAY = {
    "bound": "a layer is bound by memory",
    "claim": "a paper claims",
    "estimate": "we estimate",
    "fact": "in fact",
    "fold": "threefold; a folded layer",
    "folding": "folding of weights, and of an array's work",
    "level": "the level of a signal",
    "quantity": "a small quantity of data",
    "residual": "the residual blocks of ResNet-50",
    "result": "the result of a sum",
    "stream": "rows stream past",
    "sweep": "pictures that sweep a size",
}
"""Glossary terms that are also ordinary words, each with such a use."""

_ENTRY = re.compile(r"^(?P<names>(?:\S.*\n)+)(?P<text>(?:  .*\n)+)", re.MULTILINE)
_TERM = re.compile(r"\{term\}`(?P<said>[^`]+)`(?P<ending>s?)")
_SKIPPED = re.compile(
    r"\{[\w:.+-]+\}`[^`]*`|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)|(?<![\\$])\$(?!\s)[^$]+?(?<!\s)\$(?!\d)"
    r"|!?\[[^\]]*\]\([^)]*\)|<?https?://[^\s>)]+>?"
)


@dataclass(frozen=True)
class Term:
    """An entry of the glossary.

    Attributes
    ----------
    name
        Its main name.
    names
        All its names.
    chapter
        Page that teaches it.
    """

    name: str
    names: tuple[str, ...]
    chapter: str

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        """Pattern of its names in a sentence, singular or plural; case-sensitive only if all capitals."""
        phrase = "|".join(
            rf"(?-i:{name}s?)" if name.isupper() else r"[\s-]".join(map(re.escape, name.split())) + "(?:e?s)?"
            for name in self.names
        )
        return re.compile(rf"(?<![\w-])(?:{phrase})(?![\w-])", re.IGNORECASE)


@functools.cache
def terms(path: Path = GLOSSARY) -> tuple[Term, ...]:
    """Return the terms of the glossary, in its order."""
    listed = []
    for block in re.findall(r":::\{glossary\}\n(.*?):::", path.read_text(encoding="utf-8"), re.DOTALL):
        for entry in _ENTRY.finditer(block):
            chapter = re.search(r"Chapter: \{doc\}`(\w+)`", entry["text"])
            if chapter is None:
                raise ValueError(f"{path.name} names no chapter for {entry['names'].strip()!r}")
            names = tuple(entry["names"].split("\n")[:-1])
            listed.append(Term(names[0], names, chapter[1]))
    return tuple(listed)


def linked(text: str) -> set[str]:
    """Return the names of the terms that a text links."""
    return {_target(match["said"]) for match in _TERM.finditer(text)}


def unlinked(page: Page) -> Iterator[tuple[int, str]]:
    """Yield where a page uses a term before linking it, or never links one that it teaches."""
    if page.path.name in WITHOUT:
        return
    for number, term, phrase in first_uses(page):
        yield (
            number,
            f"{phrase!r} is a term of the glossary: write {_written(term, phrase)} where the page first uses it",
        )
    everywhere = set().union(*(linked(line.text) for line in page.prose))
    for term in terms():
        if term.chapter == page.path.stem and not everywhere & {name.lower() for name in term.names}:
            yield 1, f"the glossary sends readers here for {term.name!r}, and no sentence links it"


def first_uses(page: Page) -> Iterator[tuple[int, Term, str]]:
    """Yield the terms whose first use is not a link: the line, the term, and its wording there."""
    titles = {directive.number for directive in page.directives}
    waiting = [term for term in terms() if term.name not in EVERYDAY]
    for line in page.prose:
        if line.number in titles or re.match(r"\s*(#|\||\(\w)", line.text):
            continue
        links = list(_SKIPPED.finditer(line.text))
        plain = _SKIPPED.sub(lambda part: "\0" * len(part[0]), line.text)
        uses = [(at, term, phrase) for term in waiting for at, phrase in _uses(links, plain, term)]
        for _, term, phrase in sorted(uses, key=lambda use: use[0]):
            if term in waiting:
                waiting.remove(term)
                if phrase:
                    yield line.number, term, phrase


def _uses(links: Sequence[re.Match[str]], plain: str, term: Term) -> Iterator[tuple[int, str]]:
    """Places of a line that use a term, from its links and its other words; a link says nothing of itself."""
    names = {name.lower() for name in term.names}
    for link in links:
        match = _TERM.match(link[0])
        if (match and _target(match["said"]) in names) or (link[0].startswith("[") and term.pattern.search(link[0])):
            yield link.start(), ""
    for match in term.pattern.finditer(plain):
        yield match.start(), match[0]


def _target(phrase: str) -> str:
    """Return the name of the term that a role refers to."""
    titled = re.match(r".*<(?P<target>[^<>]+)>$", phrase)
    return (titled["target"] if titled else phrase).lower()


def _written(term: Term, phrase: str) -> str:
    known = phrase.lower() in {name.lower() for name in term.names}
    return f"{{term}}`{phrase}`" if known else f"{{term}}`{phrase} <{term.name}>`"
