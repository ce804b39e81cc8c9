"""Split a MyST page into what the page linter looks at: prose, code cells and directives, with line numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_FENCE = re.compile(r"^\s*(?P<marks>`{3,}|~{3,}|:{3,})\s*(?:\{(?P<name>[^}]+)\})?\s*(?P<rest>.*)$")
_OPTION = re.compile(r"^\s*:(?P<key>[\w-]+):\s*(?P<value>.*)$")
_NOT_PROSE = re.compile(r"^\s*(%|\+\+\+|\([\w:./-]+\)=\s*$|\{[^}`]*\}\s*$|\[[^\]]+\]:\s|<!--.*-->\s*$)")
_LABEL = re.compile(
    r"^\s*(?:\$\$\s*\((?P<equation>[\w:.-]+)\)|\((?P<target>[\w:./-]+)\)=|:(?:label|name):\s*(?P<option>\S+))\s*$"
)
_LITERAL = {
    "bibliography",
    "code",
    "code-block",
    "eval-rst",
    "index",
    "literalinclude",
    "math",
    "mermaid",
    "raw",
    "toctree",
}


@dataclass(frozen=True)
class Line:
    """One line of prose."""

    number: int
    text: str


@dataclass(frozen=True)
class Directive:
    """A fenced directive; a code cell is one too."""

    number: int
    name: str
    argument: str
    options: dict[str, Any]
    body: tuple[Line, ...]

    @property
    def source(self) -> str:
        """The body as one text."""
        return "\n".join(line.text for line in self.body)


@dataclass
class Page:
    """A page in parts."""

    path: Path
    prose: list[Line] = field(default_factory=list)
    captions: list[Line] = field(default_factory=list)
    labels: list[Line] = field(default_factory=list)
    directives: list[Directive] = field(default_factory=list)

    @property
    def cells(self) -> list[Directive]:
        """The code cells."""
        return [directive for directive in self.directives if directive.name == "code-cell"]


def parse(path: Path, text: str | None = None) -> Page:
    """Read a page from its file, or from ``text``."""
    page = Page(path)
    text = path.read_text(encoding="utf-8") if text is None else text
    lines = [Line(number, content) for number, content in enumerate(text.splitlines(), start=1)]
    page.labels = [Line(line.number, label) for line in lines for label in _labels(line.text)]
    _read_block(page, _without_front_matter(lines))
    page.labels += [Line(cell.number, figure_options(cell)["name"]) for cell in page.cells if figure_options(cell)]
    page.prose.sort(key=lambda line: line.number)
    page.directives.sort(key=lambda directive: directive.number)
    return page


def _labels(text: str) -> list[str]:
    """What a line can be referred to by."""
    found = _LABEL.match(text)
    return [name for name in found.groups() if name] if found else []


def _without_front_matter(lines: list[Line]) -> list[Line]:
    if not lines or lines[0].text != "---":
        return lines
    end = next((at for at, line in enumerate(lines[1:], start=1) if line.text == "---"), 0)
    return lines[end + 1 :]


def _read_block(page: Page, lines: list[Line]) -> None:
    """File every line of a block as prose, or as part of a directive, or not at all."""
    at = 0
    while at < len(lines):
        text = lines[at].text
        if fence := _FENCE.match(text):
            end = _closing(lines, at + 1, fence["marks"])
            _read_fence(page, lines[at].number, fence, lines[at + 1 : end])
            at = end + 1
        elif text.lstrip().startswith("$$"):
            at = _after_math(lines, at)
        elif text.lstrip().startswith("\\begin{"):
            at = 1 + next((i for i in range(at, len(lines)) if "\\end{" in lines[i].text), len(lines))
        else:
            if text.strip() and not _NOT_PROSE.match(text):
                page.prose.append(lines[at])
            at += 1


def _closing(lines: list[Line], start: int, marks: str) -> int:
    """Place of the line that closes a fence: the same mark, at least as often, alone."""
    close = re.compile(rf"^\s*{re.escape(marks[0])}{{{len(marks)},}}\s*$")
    return next((at for at in range(start, len(lines)) if close.match(lines[at].text)), len(lines))


def _after_math(lines: list[Line], at: int) -> int:
    if lines[at].text.count("$$") >= 2:
        return at + 1
    return 1 + next((i for i in range(at + 1, len(lines)) if "$$" in lines[i].text), len(lines))


def _read_fence(page: Page, number: int, fence: re.Match[str], inside: list[Line]) -> None:
    if fence["name"] is None:
        return  # a listing, not a directive
    options, body = _options(inside)
    directive = Directive(number, fence["name"], fence["rest"].strip(), options, tuple(body))
    page.directives.append(directive)
    if directive.name == "code-cell":
        caption = figure_options(directive).get("caption")
        if caption:
            page.captions.append(Line(number, str(caption)))
    elif directive.name not in _LITERAL:
        if directive.argument and directive.name.endswith(("admonition", "dropdown", "card", "exercise", "margin")):
            page.prose.append(Line(number, directive.argument))
        _read_block(page, body)


def _options(inside: list[Line]) -> tuple[dict[str, Any], list[Line]]:
    if inside and inside[0].text.strip() == "---":
        end = next((at for at, line in enumerate(inside[1:], start=1) if line.text.strip() == "---"), len(inside))
        return yaml.safe_load("\n".join(line.text for line in inside[1:end])) or {}, inside[end + 1 :]
    options: dict[str, Any] = {}
    for at, line in enumerate(inside):
        option = _OPTION.match(line.text)
        if option is None:
            return options, inside[at:]
        options[option["key"]] = option["value"].strip()
    return options, []


def figure_options(cell: Directive) -> dict[str, Any]:
    """What a code cell says about its figure: name, caption."""
    return (cell.options.get("mystnb") or {}).get("figure") or {}


def image_options(cell: Directive) -> dict[str, Any]:
    """What a code cell says about its image: alt, width."""
    return (cell.options.get("mystnb") or {}).get("image") or {}
