"""What every report in HTML shares: one file that needs nothing beside it, light or dark as its reader has it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from mlsys.tables import html_table

__all__ = ["STYLE", "whole_page", "wide_table"]

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1f2933; --note: #52606d; --line: #d5dbe1; --rule: #7b8794;
  --mark: #00649e; --box: #eef6fb; --raw: #f5f7fa; }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #121212; --ink: #e4e7eb; --note: #a3adb8; --line: #3a434d; --rule: #8c98a4;
    --mark: #6cb6e8; --box: #12283a; --raw: #1e2226; }
  figure svg { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; }
}
html { background: var(--paper); }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 64rem;
  margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; margin-bottom: .25rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.first { border-left: 4px solid var(--mark); background: var(--box); padding: .75rem 1rem; }
figure { margin: 0; }
svg { max-width: 100%; height: auto; }
.wide, figure { overflow-x: auto; } .wide { margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
caption { text-align: left; padding: .25rem 0; color: var(--note); position: sticky; left: 0;
  max-width: min(64rem, calc(100vw - 2rem)); }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-bottom: 1px solid var(--line); }
th { border-bottom: 2px solid var(--rule); vertical-align: bottom; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; }
dt { color: var(--note); } dd { margin: 0; min-width: 0; }
pre { overflow: auto; max-height: 24rem; background: var(--raw); padding: .75rem 1rem; font-size: .8125rem; }
code { overflow-wrap: anywhere; }
@media screen and (max-width: 600px) {
  body { margin: 1rem auto; } h1 { font-size: 1.35rem; }
  dl { display: block; } dt { margin-top: .5rem; font-size: .875rem; }
  figure svg { max-width: none; width: 40rem; } td:last-child:not(.number) { min-width: 14rem; }
}
@media print { body { margin: 0; max-width: none; } pre { max-height: none; white-space: pre-wrap; } }
"""
"""Pictures are turned round in the dark as in the book; on a telephone they and wide tables move in their own box."""


def whole_page(title: str, parts: Iterable[str], look: str = "") -> str:
    r"""Return a page from its title, which may hold any characters, and the markup of its parts.

    Parameters
    ----------
    title
        Of the window, and the heading over the parts.
    parts
        Markup, in order.
    look
        Further style.

    Examples
    --------
    >>> "<main>" + whole_page("a < b", ["<p>so</p>"]).partition("<main>")[2]
    '<main>\n<h1>a &lt; b</h1>\n<p>so</p>\n</main></body></html>\n'
    """
    name = html.escape(title)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{name}</title><style>{STYLE}{look}</style></head>\n<body><main>\n"
        + "\n".join([f"<h1>{name}</h1>", *parts])
        + "\n</main></body></html>\n"
    )


def wide_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in a box of its own, which scrolls, by the keys too, where the window is narrower.

    Examples
    --------
    >>> wide_table("Ridges", ("Device",), [("A100",)])[:71]
    "<div class='wide' tabindex='0' role='region' aria-label='Ridges'><table"
    """
    label = html.escape(caption, quote=True)
    return f"<div class='wide' tabindex='0' role='region' aria-label='{label}'>{html_table(caption, heads, rows)}</div>"
