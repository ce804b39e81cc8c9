"""Cross-references of a page: its values, figures, equations and exercises, other pages, and the literature."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import v4
from pybtex.database import Entry, parse_file

from pages import ROOT, is_notebook, page_files, read_notebook

GLUED = "application/papermill.record/text/plain"
_EQUATION = re.compile(r"^\s*\$\$\s*\((?P<label>[\w:.-]+)\)\s*$", re.MULTILINE)
_EXERCISE = re.compile(r"^\s*[`:]{3,}\{exercise\}.*\n(?:\s*:[\w-]+:.*\n)*?\s*:label:\s*(?P<label>\S+)", re.MULTILINE)
_MATH = re.compile(r"^\s*[`:]{3,}\{math\}.*\n(?:\s*:[\w-]+:.*\n)*?\s*:label:\s*(?P<label>\S+)", re.MULTILINE)
_NAMED = re.compile(
    r"^\s*[`:]{3,}\{(?P<kind>figure|list-table)\}.*\n(?:\s*:[\w-]+:.*\n)*?\s*:name:\s*(?P<label>\S+)", re.MULTILINE
)
_TARGET = re.compile(r"^\((?P<label>[\w:./-]+)\)=\s*\n+#+ (?P<title>.+)$", re.MULTILINE)


def glued(cells: Sequence[Any]) -> dict[str, str]:
    """Return the values that the cells of a run notebook glued, as text."""
    return {
        output["metadata"]["scrapbook"]["name"]: "".join(output["data"][GLUED]).strip("'")
        for cell in cells
        for output in cell.get("outputs", ())
        if GLUED in output.get("data", {})
    }


@dataclass
class PageNumbers:
    """Numbers of the equations, figures, tables and exercises of one page in the reader's edition."""

    page: Path
    equations: dict[str, int] = field(default_factory=dict)
    figures: dict[str, int] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)
    exercises: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, page: Path, cells: Sequence[Any]) -> PageNumbers:
        """Return the numbers, from one, of the labelled elements in the cells of a page."""
        numbers = cls(page)
        for cell in cells:
            if cell.cell_type == "code":
                figure = (cell.metadata.get("mystnb") or {}).get("figure") or {}
                _number(numbers.figures, figure.get("name"))
                continue
            for match in sorted(
                [*_EQUATION.finditer(cell.source), *_MATH.finditer(cell.source)], key=lambda m: m.start()
            ):
                _number(numbers.equations, match["label"])
            for match in _EXERCISE.finditer(cell.source):
                _number(numbers.exercises, match["label"])
            for match in _NAMED.finditer(cell.source):
                _number(numbers.figures if match["kind"] == "figure" else numbers.tables, match["label"])
        return numbers


def _number(known: dict[str, int], label: str | None) -> None:
    if label:
        known.setdefault(label, len(known) + 1)


class BookIndex:
    """Index of the targets of roles.

    Parameters
    ----------
    values
        Values that the page itself glues.
    """

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values

    def value(self, key: str, page: Path) -> str:
        """Return a glued value, of this page or of another one (``page.md::name``)."""
        other, _, name = key.rpartition("::")
        values = self.values if not other else _values_of((page.parent / other).with_suffix(".ipynb"))
        if name not in values:
            raise KeyError(f"{page.name} refers to the glued value {key!r}, which no cell claims")
        return values[name]

    def citation(self, keys: Sequence[str], in_text: bool = False) -> str:
        """Return the text of a citation: names, year, and a link if the work has one."""
        cited = [_cited(_literature()[key], in_text) for key in keys]
        return " and ".join(cited) if in_text else f"({'; '.join(cited)})"

    def numbered(self, label: str, numbers: PageNumbers) -> str:
        """Return ``Figure 2`` for a label of this page, or a link for one of another page."""
        for word, known in (("Figure", numbers.figures), ("Table", numbers.tables), ("Exercise", numbers.exercises)):
            if label in known:
                return f"{word} {known[label]}"
        return self.reference(label, "", numbers.page)

    def equation(self, label: str, numbers: PageNumbers) -> str:
        """Return ``(3)`` for an equation of this page, or a link to the page of another one."""
        if label in numbers.equations:
            return f"({numbers.equations[label]})"
        path, number = _equations()[label]
        return f"([{number} of {_title(path)}]({_relative(path, numbers.page)}))"

    def reference(self, target: str, title: str, page: Path) -> str:
        """Return a link to a page or to a heading."""
        places = _targets()
        if target in places:
            path, heading = places[target]
            return f"[{title or heading}]({_relative(path, page)})"
        path = (page.parent / target).with_suffix(".md").resolve()
        if not path.is_file():
            raise KeyError(f"{page.name} refers to {target!r}, which is neither a page nor a label")
        return f"[{title or _title(path)}]({_relative(path, page)})"

    def link(self, target: str, page: Path) -> str:
        """Return the path of a page relative to another one."""
        path = (page.parent / target).with_suffix(".md").resolve()
        if not path.is_file() and (ROOT / "book" / target).with_suffix(".md").is_file():
            path = (ROOT / "book" / target).with_suffix(".md")
        return _relative(path, page)


def _relative(path: Path, page: Path) -> str:
    here = path.with_suffix(".ipynb") if is_notebook(path) else path
    return here.name if here.parent == page.parent.resolve() else f"../{here.parent.name}/{here.name}"


@functools.cache
def _values_of(notebook: Path) -> dict[str, str]:
    return glued(read_notebook(notebook).cells)


def _title(path: Path) -> str:
    heading = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return heading[1] if heading else path.stem


@functools.cache
def _targets() -> dict[str, tuple[Path, str]]:
    """Return, by label, the page and the title of each labelled heading."""
    return {
        match["label"]: (path, match["title"])
        for path in page_files()
        for match in _TARGET.finditer(path.read_text(encoding="utf-8"))
    }


@functools.cache
def _equations() -> dict[str, tuple[Path, int]]:
    """Return, by label, the page of each equation of the book and its number there."""
    known: dict[str, tuple[Path, int]] = {}
    for path in page_files():
        numbers = PageNumbers.of(path, [v4.new_markdown_cell(path.read_text(encoding="utf-8"))])  # type: ignore[no-untyped-call]
        known.update({label: (path, number) for label, number in numbers.equations.items()})
    return known


@functools.cache
def _literature() -> dict[str, Entry]:
    return dict(parse_file(str(ROOT / "book" / "references.bib")).entries)


def _cited(entry: Entry, in_text: bool) -> str:
    people = [" ".join([*person.prelast_names, *person.last_names]) for person in entry.persons.get("author", [])]
    people = [re.sub(r"[{}]", "", person) for person in people]
    if len(people) > 2 or "others" in people:
        who = f"{people[0]} et al."
    else:
        who = " and ".join(people) or re.sub(r"[{}]", "", entry.fields.get("organization", entry.fields["title"]))
    year = entry.fields.get("year", "")
    text = f"{who} ({year})" if in_text else f"{who}, {year}"
    where = f"https://doi.org/{entry.fields['doi']}" if "doi" in entry.fields else entry.fields.get("url")
    return f"[{text}]({where})" if where else text
