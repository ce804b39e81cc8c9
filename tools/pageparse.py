"""Parse a MyST page into prose, code cells and directives with line numbers, for the page linter."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

_OPTION = re.compile(r"^\s*:(?P<key>[\w-]+):\s*(?P<value>.*)$")
_LABEL = re.compile(
    r"^\s*(?:\$\$\s*\((?P<equation>[\w:.-]+)\)|\((?P<target>[\w:./-]+)\)=|:(?:label|name):\s*(?P<option>\S+))\s*$"
)
_DIRECTIVE = re.compile(r"\{(?P<name>[^}]+)\}\s*(?P<rest>.*)")
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
_PROSE = ("paragraph_open", "heading_open", "table_open")
_MYST = create_md_parser(
    MdParserConfig(enable_extensions={"amsmath", "attrs_block", "colon_fence", "dollarmath"}), RendererHTML
)


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
    """A parsed page."""

    path: Path
    text: str = ""
    prose: list[Line] = field(default_factory=list)
    captions: list[Line] = field(default_factory=list)
    labels: list[Line] = field(default_factory=list)
    directives: list[Directive] = field(default_factory=list)

    @property
    def cells(self) -> list[Directive]:
        """The code cells."""
        return [directive for directive in self.directives if directive.name == "code-cell"]


def parse(path: Path, text: str | None = None) -> Page:
    """Return a page parsed from its file, or from ``text``."""
    text = path.read_text(encoding="utf-8") if text is None else text
    page = Page(path, text)
    lines = [Line(number, content) for number, content in enumerate(text.splitlines(), start=1)]
    page.labels = [Line(line.number, label) for line in lines for label in _labels(line.text)]
    _read_block(page, lines)
    page.labels += [Line(cell.number, figure_options(cell)["name"]) for cell in page.cells if figure_options(cell)]
    page.prose.sort(key=lambda line: line.number)
    page.directives.sort(key=lambda directive: directive.number)
    return page


def _labels(text: str) -> list[str]:
    """Return the labels that a line defines."""
    match = _LABEL.match(text)
    return [name for name in match.groups() if name] if match else []


def _read_block(page: Page, lines: Sequence[Line]) -> None:
    """Classify every line of a block as prose, as part of a directive, or as neither."""
    filed: set[int] = set()
    for token in _MYST.parse("\n".join(line.text for line in lines)):
        if token.map is None:
            continue
        first, last = token.map
        if token.type in _PROSE:
            filed.update(range(first, last))
        elif directive := token.type in ("fence", "colon_fence") and _DIRECTIVE.match(token.info):
            body = zip(lines[first + 1 :], token.content.splitlines(), strict=False)
            inside = [Line(line.number, text) for line, text in body]
            _read_directive(page, lines[first].number, directive["name"], directive["rest"].strip(), inside)
    page.prose += [lines[at] for at in sorted(filed) if lines[at].text.strip()]


def _read_directive(page: Page, number: int, name: str, argument: str, inside: list[Line]) -> None:
    options, body = _options(inside)
    directive = Directive(number, name, argument, options, tuple(body))
    page.directives.append(directive)
    if name == "code-cell":
        caption = figure_options(directive).get("caption")
        if caption:
            page.captions.append(Line(number, str(caption)))
    elif name not in _LITERAL:
        if argument and name.endswith(("admonition", "dropdown", "card", "exercise", "margin")):
            page.prose.append(Line(number, argument))
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
    """Return the figure options of a code cell: name, caption."""
    return (cell.options.get("mystnb") or {}).get("figure") or {}


def image_options(cell: Directive) -> dict[str, Any]:
    """Return the image options of a code cell: alt, width."""
    return (cell.options.get("mystnb") or {}).get("image") or {}
