"""Small tables, rendered as text, HTML and Markdown."""

import functools
import hashlib
import html
import re
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from mlsys.escaping import markdown_table, markdown_text
from mlsys.provenance import recording
from mlsys.provenance.shown import announce


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], kind: str = "") -> str:
    """Return an HTML table with a caption and column headings; ``kind`` is an additional CSS class."""
    texts = [[_text(cell) for cell in row] for row in rows]
    cells = list(zip(*texts, strict=True)) or [()] * len(columns)
    right = [is_numeric(column) for column in cells]
    mostly = [2 * sum(map(_is_number, column)) > len(column) for column in cells]
    sides = [whole or most for whole, most in zip(right, mostly, strict=True)]
    head = "".join(_cell(text, to_right, tag="th scope='col'") for text, to_right in zip(columns, sides, strict=True))
    long = [any(len(text) > LONG for text in column) for column in cells]
    body = ""
    for row in texts:
        sides = [whole or (most and _is_number(cell)) for cell, whole, most in zip(row, right, mostly, strict=True)]
        body += f"<tr>{''.join(map(_cell, row, sides, long))}</tr>"
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    classes = f"mlsys-table {kind}".strip()
    return f"<table class='{classes}'>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


LONG = 21  # a column with a longer cell may be wrapped


def _text(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)


def _cell(text: str, to_right: bool, long: bool = False, tag: str = "td") -> str:
    kind = " class='number'" if to_right else " class='long'" if long else ""
    # Long names may break only after a slash or an underscore, so that units are never broken.
    shown = re.sub(r"(/(?=\w{3})|_)", r"\1<wbr>", html.escape(text)) if tag == "td" else html.escape(text)
    return f"<{tag}{kind}>{shown}</{tag.split()[0]}>"


P = ParamSpec("P")
T = TypeVar("T")

_read: ContextVar[Iterable[str]] = ContextVar("read", default=())


def tabled(function: Callable[P, T]) -> Callable[P, T]:
    """Report to an open page the facts behind the tables that ``function`` builds from the results of models.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.provenance.shown import hear
    >>> @tabled
    ... def powers(name):
    ...     return Table("Power", ("Device", "W"), [(name, str(Hardware[name].tdp.m_as("W")))])
    >>> stop = hear(lambda shown: print(shown.name, *shown.facts))
    >>> _ = powers("A100")
    Power A100_80GB/power/tdp
    >>> stop()
    """

    @functools.wraps(function)
    def make(*args: P.args, **named: P.kwargs) -> T:
        with recording() as seen:
            token = _read.set(seen)
            try:
                return function(*args, **named)
            finally:
                _read.reset(token)

    return make


@dataclass(frozen=True)
class Table:
    """A captioned table of ready-made texts.

    Attributes
    ----------
    caption, columns, rows
        Caption, column headings and cells; integers are printed with thousands separators, so pass a year as a
        string.
    kind
        CSS class; ``"mlsys-catalogue"`` makes the table searchable and sortable in the HTML book.
    printed
        Indices of the columns shown in print, where pages are narrower; by default all.

    Examples
    --------
    >>> Table("Ridges", ("Device", "Ridge"), [("A100", "153"), ("H100", "295")])
    Ridges
    Device  Ridge
    ------  -----
    A100      153
    H100      295
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    kind: str = ""
    printed: Sequence[int] | None = None

    def __post_init__(self) -> None:
        announce("table", self.caption, lambda: hashlib.sha256(repr(self).encode()).hexdigest()[:12], _read.get())

    def __repr__(self) -> str:
        texts = [[_text(cell) for cell in row] for row in self.rows]
        columns = list(zip(self.columns, *texts, strict=True))
        widths = [max(map(len, column)) for column in columns]
        right = [is_numeric(column[1:]) for column in columns]

        def line(cells: Sequence[str]) -> str:
            placed = (
                cell.rjust(width) if to_right else cell.ljust(width)
                for cell, width, to_right in zip(cells, widths, right, strict=True)
            )
            return "  ".join(placed).rstrip()

        return "\n".join([self.caption, line(self.columns), line(["-" * width for width in widths]), *map(line, texts)])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {
            "text/plain": repr(self),
            "text/html": html_table(self.caption, self.columns, self.rows, self.kind),
            "text/markdown": self._markdown(),
        }

    def _markdown(self) -> str:
        kept = range(len(self.columns)) if self.printed is None else self.printed
        columns, *rows = ([_text(row[column]) for column in kept] for row in (self.columns, *self.rows))
        return "\n".join([f"**{markdown_text(self.caption)}**", "", *markdown_table(columns, rows)])


def _is_number(text: str) -> bool:
    """Return whether a cell is a number, two numbers around an arrow, or a number followed by one in brackets."""
    before, arrow, behind = text.partition(" → ")
    if arrow:
        return all(part == "—" or _is_number(part) for part in (before, behind))
    if text.endswith(")"):
        before, _, behind = text[:-1].partition(" (")
        return _is_number(before) and _is_number(behind)
    try:
        float(text.replace(",", "").replace("−", "-").removeprefix(">").rstrip("%× "))
    except ValueError:
        return False
    return True


def is_numeric(column: Sequence[str]) -> bool:
    """Return whether every cell of a column is a number or a dash; such columns are right-aligned.

    Examples
    --------
    >>> is_numeric(["3.2 (2.8)", "15%", "—"]), is_numeric(["15%", "refused"])
    (True, False)
    """
    known = [cell for cell in column if cell != "—"]
    return bool(known) and all(map(_is_number, known))
