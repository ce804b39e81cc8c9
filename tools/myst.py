"""Convert MyST pages to plain Markdown, without roles, directives or targets.

JupyterLab and Colab render Markdown and LaTeX, not the roles and directives of the book. Here values are inserted
in their sentences, citations, figures and equations become text and links, admonitions become quotations.
A role or directive without a rule is an error, so that readers never see raw markup.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bookindex import BookIndex, PageNumbers

FENCE = re.compile(r"^(?P<indent>\s*)(?P<marks>`{3,}|:{3,})\s*(?:\{(?P<name>[^}]+)\})?\s*(?P<rest>.*)$")
_OPTION = re.compile(r"^\s*:(?P<key>[\w-]+):\s*(?P<value>.*)$")
_DROPPED = re.compile(r"^\s*(%.*|\+\+\+.*|\([\w:./-]+\)=\s*|\{[.#][^}`]*\}\s*)$")
_LABELLED_MATH = re.compile(r"^\s*\$\$\s*\((?P<label>[\w:.-]+)\)\s*$")
_INLINE = re.compile(r"(?P<code>(?<!`)(?P<ticks>`+)(?!`)(?P<inside>.+?)(?<!`)(?P=ticks)(?!`))")
_ROLE = re.compile(r"\{(?P<role>[\w:.+-]+)\}$")
_TARGET = re.compile(r"^(?P<title>.*?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
_ADMONITIONS = (
    "note",
    "tip",
    "hint",
    "important",
    "warning",
    "attention",
    "caution",
    "danger",
    "error",
    "seealso",
    "margin",
)
_LANGUAGES = {"code-block", "code", "literalinclude"}


class UnknownMystError(Exception):
    """A role or directive without a rule."""


@dataclass
class Piece:
    """A piece of Markdown that becomes one cell, with its metadata."""

    lines: list[str] = field(default_factory=list)
    collapsed: bool = False

    @property
    def text(self) -> str:
        """The Markdown, without empty lines around it."""
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self.lines)).strip("\n")


def plain_pieces(text: str, index: BookIndex, numbers: PageNumbers) -> list[Piece]:
    """Return the MyST of one cell as cells of plain Markdown and LaTeX."""
    pieces = [Piece()]
    for line in _blocks(text.split("\n"), index, numbers):
        if isinstance(line, Piece):
            pieces += [line, Piece()] if line.lines else [Piece()]
        else:
            pieces[-1].lines.append(line)
    return [piece for piece in pieces if piece.text]


def _blocks(lines: Sequence[str], index: BookIndex, numbers: PageNumbers) -> Iterator[str | Piece]:
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence:
            end = _closing(lines, at + 1, fence["marks"])
            if fence["name"] is None:
                yield from lines[at : end + 1]
            else:
                options, body = _options(lines[at + 1 : end])
                yield from _directive(fence["name"], fence["rest"].strip(), options, body, index, numbers)
            at = end + 1
        elif lines[at].strip() == "$$":
            end = next(i for i in range(at + 1, len(lines)) if lines[i].lstrip().startswith("$$"))
            yield from _mathematics(lines[at : end + 1], numbers)
            at = end + 1
        else:
            if not _DROPPED.match(lines[at]):
                yield inline(lines[at], index, numbers)
            at += 1


def _closing(lines: Sequence[str], start: int, marks: str) -> int:
    close = re.compile(rf"^\s*{re.escape(marks[0])}{{{len(marks)},}}\s*$")
    return next((at for at in range(start, len(lines)) if close.match(lines[at])), len(lines))


def _options(lines: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    for at, line in enumerate(lines):
        option = _OPTION.match(line)
        if option is None:
            return options, list(lines[at:])
        options[option["key"]] = option["value"].strip()
    return options, []


def _mathematics(lines: Sequence[str], numbers: PageNumbers) -> list[str]:
    labelled = _LABELLED_MATH.match(lines[-1])
    if not labelled:
        return list(lines)
    return [*lines[:-1], rf"\tag{{{numbers.equations[labelled['label']]}}}", "$$"]


# ---------------------------------------------------------------- directives


def _directive(
    name: str, argument: str, options: dict[str, str], body: list[str], index: BookIndex, numbers: PageNumbers
) -> Iterator[str | Piece]:
    inside = list(_blocks(body, index, numbers))
    plain = [line for line in inside if isinstance(line, str)]
    title = inline(argument, index, numbers)
    if name in ("admonition", "dropdown", *_ADMONITIONS):
        folded = name == "dropdown" or "dropdown" in options.get("class", "")
        heading = (
            title
            if name in ("admonition", "dropdown")
            else "Beside the text"
            if name == "margin"
            else name.capitalize()
        )
        yield from (
            _folded(heading, plain)
            if folded
            else _quoted(heading, plain if name in ("admonition", "dropdown") else [*filter(None, [title]), *plain])
        )
    elif name == "exercise":
        number = numbers.exercises[options["label"]]
        yield Piece()
        yield from ["", f"### Exercise {number}" + (f": {title}" if title else ""), "", *plain, ""]
    elif name == "solution":
        yield from _folded(f"Solution to exercise {numbers.exercises[argument]}", plain)
    elif name == "solution-start":
        yield Piece([f"#### Solution to exercise {numbers.exercises[argument]}"], collapsed=True)
    elif name == "solution-end":
        yield Piece()
    elif name in ("grid", "only", "tab-set", "card-carousel"):
        yield from inside if not (name == "only" and argument == "latex") else []
    elif name in ("grid-item-card", "card", "tab-item"):
        there = options.get("link")
        linked = (
            f"[{title}]({index.link(there, numbers.page)})" if there and options.get("link-type") == "doc" else title
        )
        yield from [f"- **{linked}** " + " ".join(line.strip() for line in plain if line.strip())]
    elif name == "list-table":
        yield from _table(title, plain, numbers.tables.get(options.get("name", "")))
    elif name == "glossary":
        yield from _terms(plain)
    elif name in ("figure", "image"):
        yield from _figure(argument, options, plain, numbers)
    elif name == "math":
        tag = [rf"\tag{{{numbers.equations[options['label']]}}}"] if options.get("label") else []
        yield from ["$$", *body, *tag, "$$"]
    elif name in _LANGUAGES:
        yield from [f"```{argument}", *body, "```"]
    elif name in ("bibliography", "index", "raw", "tableofcontents", "toctree"):
        return
    else:
        raise UnknownMystError(f"no rule for the directive {{{name}}}. Add one in tools/myst.py")


def _quoted(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"> **{title}**", ">", *(f"> {line}".rstrip() for line in _trimmed(lines)), ""]


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"<details><summary>{title}</summary>", "", *_trimmed(lines), "", "</details>", ""]


def _trimmed(lines: Sequence[str]) -> list[str]:
    return "\n".join(lines).strip("\n").split("\n")


def _figure(path: str, options: dict[str, str], caption: Sequence[str], numbers: PageNumbers) -> list[str]:
    message = " ".join(line.strip() for line in caption if line.strip())
    label = f"**Figure {numbers.figures[options['name']]}.** " if options.get("name") in numbers.figures else ""
    return ["", f"![{options.get('alt', '')}]({path})", "", *([label + message] if message else []), ""]


def _table(title: str, lines: Sequence[str], number: int | None) -> Iterator[str]:
    rows: list[list[str]] = []
    for line in lines:
        cell = re.match(r"^\s*(?P<row>\*\s)?\s*-\s?(?P<text>.*)$", line)
        if cell and cell["row"]:
            rows.append([cell["text"]])
        elif cell and rows:
            rows[-1].append(cell["text"])
        elif line.strip() and rows:
            rows[-1][-1] += " " + line.strip()
    label = f"**Table {number}.** " if number else ""
    yield from ["", f"{label}{title}" if label else f"**{title}**", ""]
    for index, row in enumerate(rows):
        yield "| " + " | ".join(row) + " |"
        if index == 0:
            yield "|" + "---|" * len(row)
    yield ""


def _terms(lines: Sequence[str]) -> Iterator[str]:
    terms: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith((" ", "\t")):
            terms.append(line.strip())
        elif line.strip() and terms:
            yield f"- **{', '.join(terms)}**: {line.strip()}"
            terms = []
        elif line.strip():
            yield f"  {line.strip()}"


# ---------------------------------------------------------------- roles


def inline(text: str, index: BookIndex, numbers: PageNumbers) -> str:
    """Return a line with its roles replaced; code is unchanged."""
    made, at = "", 0
    for match in _INLINE.finditer(text):
        before = text[at : match.start()]
        role = _ROLE.search(before) if match["ticks"] == "`" else None
        if role:
            made += before[: role.start()] + _message(role["role"], match["inside"], index, numbers)
        else:
            made += before + match["code"]
        at = match.end()
    return made + text[at:]


def _message(role: str, content: str, index: BookIndex, numbers: PageNumbers) -> str:
    titled = _TARGET.match(content)
    target = titled["target"] if titled else content
    title = titled["title"] if titled else ""
    if role.partition(":")[0] == "glue":
        return escaped(index.value(content, numbers.page))
    if role.partition(":")[0] == "cite":
        return index.citation([key.strip() for key in content.split(",")], in_text=role == "cite:t")
    if role == "eq":
        return index.equation(target, numbers)
    if role == "numref":
        return index.numbered(target, numbers)
    if role in ("doc", "ref"):
        return index.reference(target, title, numbers.page)
    if role == "term":
        return f"[{title or target}]({index.link('glossary', numbers.page)})"
    if role.startswith("py:"):
        return f"`{title or target.lstrip('~').rpartition('.')[2] if target.startswith('~') else title or target}`"
    if role in ("sub", "sup"):
        return f"<{role}>{content}</{role}>"
    if role in ("abbr", "kbd", "file", "command", "program"):
        return title or content
    raise UnknownMystError(f"no rule for the role {{{role}}}. Add one in tools/myst.py")


def escaped(text: str) -> str:
    """Return a text with Markdown's special characters escaped."""
    return re.sub(r"([\\`*_$<|~\[\]])", r"\\\1", text)
