"""Escaping of untrusted names and text for terminals, spreadsheets and Markdown.

A name in a model file, a device file or a table of measurements is untrusted input. On a terminal it could move the
cursor, in a spreadsheet it could be a formula, in Markdown it could be a link or an image, or end its table.
"""

import re
from collections.abc import Iterable, Sequence

# Control characters except newline and tab, marks that change the direction of text, and surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_ENDS = re.compile("[\t\n\r\x0b\x0c\x85\u2028\u2029]+")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Inline Markdown syntax; an underscore inside a word and a lone ampersand are literal.
_INLINE = re.compile(r"[\\`*\[\]<|$~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
# Markdown syntax at the beginning of a line: headings, lists, quotations, rules, directives; and numbered lists.
_LINE_START = re.compile(r"#{1,6}(?=\s|$)|[-+](?=\s|$)|>|-{3,}\s*$|={2,}\s*$|:{3,}")
_NUMBERED = re.compile(r"(\d{1,9})(?=[.)](\s|$))")


def printable(text: str) -> str:
    r"""Return text with its control characters escaped, so that no name can control a terminal.

    JSON stays valid: characters that JSON does not escape itself become ``\u009b`` and the like.

    Examples
    --------
    >>> printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\nc'
    """
    return _CONTROLS.sub(lambda match: _escaped(ord(match[0])), text)


def _escaped(code_point: int) -> str:
    return f"\\x{code_point:02x}" if code_point < 32 else f"\\u{code_point:04x}"


def harmless(value: object) -> object:
    """Return a cell that no spreadsheet evaluates: text that starts like a formula is prefixed with an apostrophe.

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
    r"""Return text escaped for Markdown, on one line, so that it is rendered literally.

    Examples
    --------
    >>> print(markdown_text("![x](y) | *a* fp32_matrix"))
    !\[x\](y) \| \*a\* fp32_matrix
    """
    line = printable(_ENDS.sub(" ", str(text)).strip())
    before = "\\" if _LINE_START.match(line) else ""
    shown = _INLINE.sub(lambda match: f"\\{match[0]}", line)
    return before + _NUMBERED.sub(r"\1\\", shown) if _NUMBERED.match(line) else before + shown


def code(text: object) -> str:
    """Return text as a Markdown code span, whose content is literal.

    Examples
    --------
    >>> print(code("a`b"))
    `` a`b ``
    """
    line = printable(_ENDS.sub(" ", str(text)))
    fence = _backticks(line, 1)
    space = " " if line.startswith("`") or line.endswith("`") or len(fence) > 1 or not line.strip() else ""
    return f"{fence}{space}{line}{space}{fence}"


def fenced(text: str, language: str = "text") -> list[str]:
    """Return the lines of a fenced code block whose fence is longer than any run of backticks in ``text``."""
    fence = _backticks(text, 3)
    return [f"{fence}{language}", *printable(text).splitlines(), fence]


def _backticks(text: str, least: int) -> str:
    return "`" * max(least, 1 + max((len(run) for run in re.findall("`+", text)), default=0))


def markdown_table(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> list[str]:
    r"""Return the lines of a Markdown table; an empty cell contains a space, to keep the height of its row in print.

    Examples
    --------
    >>> print("\n".join(markdown_table(("name", "ms"), [("a|b", 1.5)])))
    | name | ms |
    | --- | --- |
    | a\|b | 1.5 |
    """
    lines = [columns, *rows]
    texts = [f"| {' | '.join(markdown_text(cell) or '&nbsp;' for cell in line)} |" for line in lines]
    return [texts[0], f"|{' --- |' * len(columns)}", *texts[1:]]
