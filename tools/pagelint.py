"""Check every page for what a proofreader would mark.

python tools/pagelint.py                    all pages
python tools/pagelint.py book/roofline.md   only this one
python tools/pagelint.py --explain P001     the reason for a rule, and what to write instead
"""

import argparse
import ast
import functools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from notebooks import disagreements
from pageparse import Directive, Page, figure_options, image_options, parse
from pages import ROOT, is_notebook, page_files
from terms import unlinked

LONGEST_CELL = 14
LONGEST_LINE = 92

Finding = tuple[int, str]
Check = Callable[[Page], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """A rule, and its reason."""

    code: str
    title: str
    why: str
    check: Check


RULES: dict[str, Rule] = {}


def rule(code: str, title: str, why: str) -> Callable[[Check], Check]:
    """Return a decorator that registers a check as a rule."""

    def file(check: Check) -> Check:
        RULES[code] = Rule(code, title, why, check)
        return check

    return file


# ---------------------------------------------------------------- prose

_ROLE = re.compile(r"\{[\w:.+-]+\}`[^`]*`")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_MATH = re.compile(r"(?<![\\$])\$(?!\s)[^$]+?(?<!\s)\$(?!\d)")
_IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\([^)]*\)")
_TARGET = re.compile(r"(?<=\])\([^)]*\)")
_ADDRESS = re.compile(r"<?https?://[^\s>)]+>?")
_TAG = re.compile(r"<[^>]*>|\{[.#][^}]*\}")

_SECONDS = r"seconds?|minutes?|hours?|days?|weeks?|months?|years?|decades?"
_UNITS = (
    r"%|‰|×|x|-?fold|times"
    r"|[kKMGTPE]?(?:FLOPS?|FLOPs|OPS?|OPs|MACs?)(?:/\w+)?"
    r"|[kKMGTPE]i?(?:B|b|bit|bits|byte|bytes)(?:/s|ps)?|B(?:/s)?|bits?|bytes?(?:/\w+)?"
    r"|[pnµμum]?J/(?:bit|byte|word|[A-Z]+)|[mk]?W/[cm]m(?:²|\^2)|[MG]?T/s|per[ -]?cent|percentage points?"
    r"|[pnµμumkMG]?(?:J|W|Wh|V|A|Hz|s|m)|[nµμm]m²?|mm\^2|°C|[kM]?g|t"
    rf"|{_SECONDS}|cycles?|clocks?|(?:kilo|mega|giga|milli|micro|nano|pico)?(?:watts?|joules?|hertz|volts?|amperes?)"
    r"|tokens?(?:/s)?|(?:param(?:eter)?s?)|images?(?:/s)?|inferences?(?:/s)?"
    r"|USD|EUR|dollars?|euros?|cents?|percent|thousand|million|billion|trillion"
)
_MEASURED = re.compile(
    rf"(?<![\w.,/-])(?:[~≈]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?)[\s\u00a0\u202f-]?(?:{_UNITS})(?![\w/])|(?:[$€]|(?:USD|EUR)\s)\d"
)
_IN_FORMULA = re.compile(r"(?<![\w.^_{])(?:\d+\.\d+|\d{3,}|\d+(?:\\[,;: ]|~|\s)*\\(?:text|mathrm|%)\S*)")
_COUNT = re.compile(r"(?<![\w.,:/§#–-])(?:\d{1,3}(?:,\d{3})+|\d{2,})(?![\w:-]|[.,]\d)")
_ANY_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*(?![\w-])|(?<=batch-)\d+")
_LISTED = re.compile(r"^\s*\d+[.)]\s")
_SENTENCE_END = re.compile(r"(?P<word>\S+?)[.!?][\"'”’)*_]*\s+(?=[\"“‘'(*_]*[A-Z])")
_ABBREVIATIONS = {"e.g", "i.e", "vs", "cf", "al", "approx", "fig", "eq", "dr"}


_LAB_TIME = re.compile(r"^\*About \d+ minutes, once you have read ")  # compared by tests/tools/test_course.py


def plain(text: str, stand_in: str = "") -> str:
    """Return the words of a line of prose, with roles, code, mathematics and URLs replaced."""
    text = _LAB_TIME.sub("", text)
    for pattern in (_ROLE, _CODE, _MATH, _IMAGE, _ADDRESS, _TARGET, _TAG):
        text = pattern.sub(stand_in if pattern in (_ROLE, _CODE, _MATH) else "", text)
    return text


@rule(
    "P001",
    "a measured number typed into prose",
    "A number in a sentence goes stale in silence. Claim it in a cell, claim(ridge=...), and write {glue:}`ridge` "
    "where it is read. Words that compare (twice, half) are fine where a check() on the page holds them.",
)
def typed_number(page: Page) -> Iterator[Finding]:
    """P001."""
    for line in [*page.prose, *page.captions]:
        for match in _MEASURED.finditer(plain(line.text, stand_in="¤")):
            yield line.number, f"{match[0].strip()!r} is typed into prose; claim it and glue the claim"
        for formula in _MATH.finditer(_CODE.sub("", line.text)):
            for match in _IN_FORMULA.finditer(formula[0]):
                yield (
                    line.number,
                    f"{match[0]!r} is typed into a formula; write a letter, or claim it and glue the claim",
                )
    for number, text in [*_alternatives(page), *_strings(page, ("Table", "print"))]:
        for match in _MEASURED.finditer(_ROLE.sub("¤", text)):
            yield number, f"{match[0].strip()!r} is typed into {text[:30]!r}…; take it from a claim or a variable"


@rule(
    "P014",
    "a bare count typed",
    "Sizes and counts go stale as results do: given(rows=4096) or claim(layers=54), and {glue:}`rows` in the sentence, "
    "the caption or the alternative text, or an f-string in a Table() or print(). Numbers up to twelve that nobody "
    "computed are words.",
)
def bare_count(page: Page) -> Iterator[Finding]:
    """P014."""
    for line in [*page.prose, *page.captions]:
        if not line.text.startswith("#"):
            for match in _COUNT.finditer(_LISTED.sub("", plain(line.text, stand_in="¤"))):
                yield line.number, f"{match[0]!r} is a count typed into prose; give or claim it and glue it"
    for number, text in _alternatives(page):
        for match in _ANY_NUMBER.finditer(_ROLE.sub("¤", text)):
            yield number, f"{match[0]!r} is typed into an alternative text; glue a claim, or say it in words"
    for number, text in _strings(page, ("Table", "print")):
        for match in _COUNT.finditer(text):
            yield number, f"{match[0]!r} is typed into {text[:30]!r}…; take it from a variable"


_SMALL = "thir|four|fif|six|seven|eigh|nine"
_NUMBER_WORD = re.compile(
    rf"\b(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-\w+)?|hundreds?|thousands?|(?:{_SMALL})teen)\b",
    re.IGNORECASE,
)
_APPROXIMATE = re.compile(
    r"\b(?:dozens?|(?:some|a few|several) (?:dozen|hundred|thousand|million)s?|"
    r"(?:two|three|four) (?:thirds|quarters|fifths)|(?:\w+ )?(?:twentieth|hundredth|thousandth)s?)\b",
    re.IGNORECASE,
)


def _strings(page: Page, of: Sequence[str] = ("Table", "print", "check")) -> Iterator[tuple[int, str]]:
    """Yield the texts that cells print or show by Table(), print() and check()."""
    for number, call in _calls(page):
        if _called(call) in of:
            for node in ast.walk(call):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield number, node.value


def _alternatives(page: Page) -> Iterator[tuple[int, str]]:
    """Yield the alternative texts of figures."""
    for directive in page.directives:
        reported = image_options(directive) if directive.name == "code-cell" else directive.options
        if reported.get("alt"):
            yield directive.number, str(reported["alt"])


@rule(
    "P012",
    "a number above twelve spelled out",
    "Digits are digits: a size that the page sets is given(edge=128) and printed with {glue:}`edge`; "
    "a result is claimed. "
    "The rule also reads alternative texts and what Table(), print() and check() say.",
)
def number_word(page: Page) -> Iterator[Finding]:
    """P012."""
    prose = [(line.number, plain(line.text, stand_in="X")) for line in [*page.prose, *page.captions]]
    for number, text in [*prose, *_strings(page), *_alternatives(page)]:
        for match in _NUMBER_WORD.finditer(_ROLE.sub("X", text)):
            yield number, f"{match[0]!r} is a number above twelve in words; give or claim it and glue it"


@rule(
    "P013",
    "an approximation that nothing holds",
    "'A dozen' and 'some hundred times' were wrong more often than any number in digits. Keep such words only where a "
    "check() on the page has them in its message: check(8 < gain < 9, 'less than a hundredth').",
)
def approximation(page: Page) -> Iterator[Finding]:
    """P013."""
    held = " ".join(text.lower() for _, text in _strings(page))
    prose = [(line.number, plain(line.text, stand_in="X")) for line in [*page.prose, *page.captions]]
    for number, text in [*prose, *_alternatives(page)]:
        for match in _APPROXIMATE.finditer(text):
            words = match[0].lower().split()
            if words[-1] not in held:
                yield number, f"{match[0]!r} is held by no check() on the page"


@rule(
    "P007",
    "two sentences on one line",
    "One sentence a line keeps a change to a sentence a change to one line. Break the line after the full stop.",
)
def two_sentences(page: Page) -> Iterator[Finding]:
    """P007."""
    for line in page.prose:
        if line.text.lstrip().startswith(("|", "#")):
            continue
        for match in _SENTENCE_END.finditer(plain(line.text, stand_in="X")):
            word = match["word"].lstrip("(\"“'*_").lower()
            if word not in _ABBREVIATIONS and not re.fullmatch(r"[a-z]|\d+", word):
                yield line.number, f"a second sentence begins after {match[0].strip()[-20:]!r}; give it its own line"
                break


# ---------------------------------------------------------------- figures


@rule(
    "P002",
    "a picture without alternative text",
    "A reader who cannot see the picture gets its alternative text: say what the picture shows, not what it is called. "
    "In a code cell: mystnb: image: alt: ...",
)
def picture_without_alt(page: Page) -> Iterator[Finding]:
    """P002."""
    for directive in _pictures(page):
        reported = image_options(directive) if directive.name == "code-cell" else directive.options
        if not str(reported.get("alt") or "").strip():
            yield directive.number, "the picture has no alternative text (alt)"
    for line in page.prose:
        for image in _IMAGE.finditer(line.text):
            if not image["alt"].strip():
                yield line.number, "the picture has no alternative text: write ![what it shows](file)"


@rule(
    "P005",
    "a figure without a name or a caption",
    "A name lets the text refer to a figure with {numref}; the caption says what to see in it. "
    "In a code cell: mystnb: figure: name: fig-..., caption: ...",
)
def nameless_figure(page: Page) -> Iterator[Finding]:
    """P005."""
    for directive in _pictures(page):
        if directive.name == "image":
            continue
        if directive.name == "code-cell":
            reported = figure_options(directive)
            name, caption = reported.get("name"), reported.get("caption")
        else:
            name, caption = directive.options.get("name"), directive.source.strip()
        for what, value in (("name", name), ("caption", caption)):
            if not value:
                yield directive.number, f"the figure has no {what}"


def _pictures(page: Page) -> Iterator[Directive]:
    for directive in page.directives:
        drawn = directive.name == "code-cell" and (
            figure_options(directive) or image_options(directive) or "plt.show()" in directive.source
        )
        if drawn or directive.name in ("figure", "image"):
            yield directive


# ---------------------------------------------------------------- code cells


def _source(cell: Directive) -> str:
    """Return the Python source of a cell, without notebook magics."""
    return "\n".join(re.sub(r"^(\s*)[%!].*", r"\1pass", line.text) for line in cell.body)


def _tree(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


@functools.cache
def _calls_in(source: str) -> tuple[ast.Call, ...]:
    """Return the calls in a cell; cached, as half of the rules use them."""
    return tuple(node for node in ast.walk(_tree(source)) if isinstance(node, ast.Call))


def _calls(page: Page) -> Iterator[tuple[int, ast.Call]]:
    for cell in page.cells:
        first = cell.body[0].number if cell.body else cell.number
        for call in _calls_in(_source(cell)):
            yield first + call.lineno - 1, call


def _called(call: ast.Call) -> str:
    """Return the called name, empty unless it is a plain name."""
    return call.func.id if isinstance(call.func, ast.Name) else ""


@rule(
    "P003",
    f"a code cell longer than {LONGEST_CELL} lines",
    "A cell is read on one screen, between two sentences. Split it, or move the work into the package. "
    "A cell of imports alone may be longer.",
)
def long_cell(page: Page) -> Iterator[Finding]:
    """P003."""
    for cell in page.cells:
        body = _tree(_source(cell)).body
        only_imports = bool(body) and all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in body)
        length = len(cell.source.strip().splitlines())
        if length > LONGEST_CELL and not only_imports:
            yield cell.number, f"the cell has {length} lines; {LONGEST_CELL} is the most"


@rule(
    "P011",
    f"a line of code longer than {LONGEST_LINE} characters",
    "So many fit beside the lists of pages and headings; a longer line is cut off at the edge, and on paper it wraps.",
)
def long_line(page: Page) -> Iterator[Finding]:
    """P011."""
    for cell in page.cells:
        for line in cell.body:
            if len(line.text) > LONGEST_LINE:
                yield line.number, f"the line has {len(line.text)} characters; {LONGEST_LINE} is the most"


@rule(
    "P008",
    "drawing on a page",
    "Drawing lives in mlsys.viz, where it is tested and every page can use it: viz.roofline_plot(ax, ...). A page may "
    "call viz.setup_plot() and plt.show().",
)
def drawing(page: Page) -> Iterator[Finding]:
    """P008."""
    for number, call in _calls(page):
        if not isinstance(call.func, ast.Attribute):
            continue
        owner: ast.expr = call.func.value
        while isinstance(owner, (ast.Attribute, ast.Subscript)):
            owner = owner.value
        name = owner.id if isinstance(owner, ast.Name) else ""
        if re.fullmatch(r"ax\d*|axs|axes", name) or (name == "plt" and call.func.attr != "show"):
            yield number, f"{ast.unparse(call.func)}() draws; move it into mlsys.viz"


@rule(
    "P022",
    "a cell that only claims, checks or draws, and is not folded",
    "Prose carries and code supports: what a reader must see is the sentence, the table or the picture. Fold the cell "
    "with `:tags: [hide-cell]` where it only claims and checks, `[hide-input]` where it draws. In a solution, which is "
    "folded itself, code may stay open.",
)
def open_claims(page: Page) -> Iterator[Finding]:
    """P022."""
    ends = [line.number for line in page.prose if line.text.startswith("## Your turn")]
    for cell in page.cells:
        tags = str(cell.options.get("tags") or "")
        if "hide-" in tags or "remove-" in tags or (ends and cell.number > ends[0]):
            continue
        body = _tree(_source(cell)).body
        if body and (all(map(_only_states, body)) or "plt.show()" in cell.source):
            yield cell.number, "the cell only claims, checks or draws: fold it"


def _only_states(node: ast.stmt) -> bool:
    """Return whether a statement is a claim or a check, or a loop over such."""
    if isinstance(node, ast.For):
        return all(map(_only_states, node.body))
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _called(node.value) in _STATING


_STATING = ("claim", "check", "given")


# ---------------------------------------------------------------- claims

_GLUE = re.compile(r"\{glue:\w*\}`(?:(?P<page>[^`:]+)::)?(?P<key>[^`:]+)(?::[^`]*)?`")


def claimed(page: Page) -> set[str]:
    """Return the names that a page claims or glues."""
    names: set[str] = set()
    for _, call in _calls(page):
        if _called(call) in ("claim", "given"):
            names.update(word.arg for word in call.keywords if word.arg and word.arg not in ("unit", "precision"))
            names.update(
                key.value
                for word in call.keywords
                if word.arg is None and isinstance(word.value, ast.Dict)
                for key in word.value.keys
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            )
        elif _called(call) == "glue" and call.args and isinstance(call.args[0], ast.Constant):
            names.add(str(call.args[0].value))
    return names


@rule(
    "P006",
    "claims without their table",
    "The table of claims is what the tests compare on every run. Close the page with a cell claims_table().",
)
def claims_without_table(page: Page) -> Iterator[Finding]:
    """P006."""
    calls = [(number, _called(call)) for number, call in _calls(page)]
    first = next((number for number, name in calls if name in ("claim", "given")), None)
    if first is not None and not any(name == "claims_table" for _, name in calls):
        yield first, "the page claims and has no claims_table() cell"


@rule(
    "P009",
    "a glued number that nobody claims",
    "{glue:}`name` needs a claim(name=...) on the same page, or {glue:}`page.md::name` on the other page it names.",
)
def unclaimed_glue(page: Page) -> Iterator[Finding]:
    """P009."""
    here = claimed(page)
    reported = [(line.number, line.text) for line in [*page.prose, *page.captions]]
    for number, text in [*reported, *_alternatives(page)]:
        for used in _GLUE.finditer(re.sub(r"``.+?``", "", text)):
            there = here
            if used["page"]:
                other = page.path.parent / used["page"]
                there = claimed(parse(other)) if other.is_file() else set()
            if used["key"] not in there:
                yield number, f"no claim() makes {used['key']!r}" + (f" on {used['page']}" if used["page"] else "")


# ---------------------------------------------------------------- terms


@rule(
    "P021",
    "a glossary term that is not linked where the page first uses it",
    "Each page and each lab may be the first that somebody reads, so a term of the glossary is a link at its first "
    "use: {term}`tile`, or {term}`tiles <tile>`. Words that are also everyday words (tools/terms.py lists them) are "
    "linked on the page that teaches them. Headings, captions, code and the text of other links do not count.",
)
def unlinked_term(page: Page) -> Iterator[Finding]:
    """P021."""
    yield from unlinked(page)


# ---------------------------------------------------------------- labels


@functools.cache
def _labelled() -> dict[str, list[tuple[Path, int]]]:
    """Return the positions of each label of the book and the labs."""
    places: dict[str, list[tuple[Path, int]]] = {}
    for path in page_files():
        for label in parse(path).labels:
            places.setdefault(label.text, []).append((path, label.number))
    return places


@rule(
    "P010",
    "a label given twice",
    "A reference can lead to one place only, so the labels of sections, equations, figures and exercises are "
    "unique in the whole book. Begin the label with the name of the page.",
)
def label_twice(page: Page) -> Iterator[Finding]:
    """P010."""
    here = [(page.path, label.number, label.text) for label in page.labels]
    for index, (path, number, label) in enumerate(here):
        elsewhere = [spot for spot in _labelled().get(label, ()) if spot[0] != path]
        others = elsewhere + [(path, line) for path, line, same in here[:index] if same == label]
        if others:
            yield number, f"{label!r} is also the label at {others[0][0].name}:{others[0][1]}"


# ---------------------------------------------------------------- the notebook beside the page


@rule(
    "P004",
    "a notebook out of step with its page",
    "The .ipynb beside a page carries its outputs for services that read notebooks. `make notebooks` writes it anew.",
)
def out_of_step(page: Page) -> Iterator[Finding]:
    """P004."""
    if page.path.is_file() and is_notebook(page.path):
        for message in disagreements(page.path):
            yield 1, f"{message}; run `make notebooks`"


def lint(page: Page) -> list[str]:
    """Return all findings on a page, in reading order."""
    shown = page.path.relative_to(ROOT) if page.path.is_relative_to(ROOT) else page.path
    findings = [
        (number, each.code, f"{shown}:{number}: {each.code} {message}")
        for each in RULES.values()
        for number, message in each.check(page)
    ]
    return [text for _, _, text in sorted(findings)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the pages, or explain a rule; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--explain", metavar="RULE", choices=sorted(RULES), help="explain one rule")
    parser.add_argument("files", nargs="*", type=Path, help="pages (all, when none is named)")
    options = parser.parse_args(arguments)
    if options.explain:
        chosen = RULES[options.explain]
        print(f"{chosen.code}: {chosen.title}\n\n{chosen.why}")
        return 0
    pages = [path.resolve().with_suffix(".md") for path in options.files] or page_files()
    findings = [text for path in pages for text in lint(parse(path))]
    print("\n".join([*findings, f"Pages: {len(findings)} findings on {len(pages)} pages"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
