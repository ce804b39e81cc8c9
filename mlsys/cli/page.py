"""Shared parts of HTML reports: one self-contained file, light or dark as the reader prefers."""

import html
from collections.abc import Iterable, Sequence

from mlsys.inputs import shipped_text
from mlsys.tables import html_table

STYLE = shipped_text("mlsys.cli", "page.css")
"""Figures are inverted in dark mode, as in the book; on a phone they and wide tables scroll in their own box."""


def whole_page(title: str, parts: Iterable[str], look: str = "") -> str:
    r"""Return a page from its title, which may contain any characters, and the markup of its parts.

    Parameters
    ----------
    title
        Title of the window, and heading of the page.
    parts
        Markup, in order.
    look
        Additional CSS.

    Examples
    --------
    >>> "<main>" + whole_page("a < b", ["<p>so</p>"]).partition("<main>")[2]
    '<main>\n<h1>a &lt; b</h1>\n<p>so</p>\n</main></body></html>\n'
    """
    name = html.escape(title)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{name}</title><style>\n{STYLE}{look}</style></head>\n<body><main>\n"
        + "\n".join([f"<h1>{name}</h1>", *parts])
        + "\n</main></body></html>\n"
    )


def wide_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in its own box, which scrolls, also by keyboard, in narrow windows.

    Examples
    --------
    >>> wide_table("Ridges", ("Device",), [("A100",)])[:71]
    "<div class='wide' tabindex='0' role='region' aria-label='Ridges'><table"
    """
    label = html.escape(caption, quote=True)
    return (
        f"<div class='wide' tabindex='0' role='region' aria-label='{label}'>{html_table(caption, columns, rows)}</div>"
    )
