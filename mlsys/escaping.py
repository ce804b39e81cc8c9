"""The one door for names and texts that reach a terminal, a spreadsheet or Markdown: none of them is obeyed there.

A name in a model file, a device file or a table of measurements is somebody else's. On a terminal it could move the
cursor, in a spreadsheet it could be a formula, in Markdown it could be a link or a picture, or end its table.
"""

import re
from collections.abc import Iterable, Sequence

# Controls but for the end of a line and the tab, marks that turn the direction of text, halves of a character.
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_ENDS = re.compile("[\t\n\r\x0b\x0c\x85\u2028\u2029]+")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# What Markdown reads within a line: an underscore inside a word and a lone ampersand are only themselves.
_READ = re.compile(r"[\\`*\[\]<|$~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
# What it reads at the beginning of one: headings, lists, quotations, lines, directives; and numbers of a list.
_BEGINS = re.compile(r"#{1,6}(?=\s|$)|[-+](?=\s|$)|>|-{3,}\s*$|={2,}\s*$|:{3,}")
_NUMBERED = re.compile(r"(\d{1,9})(?=[.)](\s|$))")


def printable(text: str) -> str:
    r"""Return a text with its control characters written out, so that no name can steer a terminal.

    A text in JSON stays one: what JSON itself does not write out becomes ``\u009b`` and the like.

    Examples
    --------
    >>> printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\nc'
    """
    return _STEERS.sub(lambda match: _written(ord(match[0])), text)


def _written(letter: int) -> str:
    return f"\\x{letter:02x}" if letter < 32 else f"\\u{letter:04x}"


def harmless(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula: text that begins like one gets an apostrophe before it.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-3.5"), harmless("conv1")
    ("'=1+1", '-3.5', 'conv1')
    """
    if not isinstance(value, str):
        return value
    if not value.startswith(_FORMULA):
        return printable(value)
    try:
        float(value)
    except ValueError:
        return f"'{printable(value)}"
    return value


def markdown_text(text: object) -> str:
    r"""Return a text as Markdown that shows it as it is, in one line.

    Examples
    --------
    >>> print(markdown_text("![x](y) | *a* fp32_matrix"))
    !\[x\](y) \| \*a\* fp32_matrix
    """
    line = printable(_ENDS.sub(" ", str(text)).strip())
    before = "\\" if _BEGINS.match(line) else ""
    shown = _READ.sub(lambda match: f"\\{match[0]}", line)
    return before + _NUMBERED.sub(r"\1\\", shown) if _NUMBERED.match(line) else before + shown


def code(text: object) -> str:
    """Return a text as a span of code, in which Markdown reads nothing.

    Examples
    --------
    >>> print(code("a`b"))
    `` a`b ``
    """
    line = printable(_ENDS.sub(" ", str(text)))
    marks = _marks(line, 1)
    space = " " if line.startswith("`") or line.endswith("`") or len(marks) > 1 or not line.strip() else ""
    return f"{marks}{space}{line}{space}{marks}"


def fenced(text: str, language: str = "text") -> list[str]:
    """Return the lines of a block of code that nothing inside can end."""
    marks = _marks(text, 3)
    return [f"{marks}{language}", *printable(text).splitlines(), marks]


def _marks(text: str, least: int) -> str:
    return "`" * max(least, 1 + max((len(run) for run in re.findall("`+", text)), default=0))


def markdown_table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> list[str]:
    r"""Return the lines of a table; a cell without a text holds a space, or in print its row would be taller.

    Examples
    --------
    >>> print("\n".join(markdown_table(("name", "ms"), [("a|b", 1.5)])))
    | name | ms |
    | --- | --- |
    | a\|b | 1.5 |
    """
    lines = [heads, *rows]
    texts = [f"| {' | '.join(markdown_text(cell) or '&nbsp;' for cell in line)} |" for line in lines]
    return [texts[0], f"|{' --- |' * len(heads)}", *texts[1:]]
