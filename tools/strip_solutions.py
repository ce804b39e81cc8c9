"""A page without its solutions: its source, and its claims, for the editions without solutions."""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from alttext import GLUE
from pageparse import Directive, Page

__all__ = ["source_without_solutions", "without_solutions"]


def without_solutions(page: Page, text: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a page without the claims that only solutions state, and their facts.

    A claim is stated where the text names it; one that the text names nowhere, where it is made. So a number that
    an exercise gives and its solution computes stays. Alternative texts state nothing: they are not printed.

    Parameters
    ----------
    page, text
        The source of the page, in parts and as it is written.
    record
        Its claims, exhibits and facts.
    """
    solved = _lines_of_solutions(page)
    named: tuple[set[str], set[str]] = (set(), set())
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("alt:"):
            continue
        named[number in solved].update(match["name"].partition(":")[0] for match in GLUE.finditer(line))
    outside, inside = named
    for cell in page.cells:
        if cell.number in solved:
            inside.update(_made(cell))
    hidden = inside - outside
    kept = [claim for claim in record["claims"] if claim["name"] not in hidden]
    gone = {fact for claim in record["claims"] if claim["name"] in hidden for fact in claim["facts"]}
    held = {fact for shown in (*kept, *record.get("exhibits", ())) for fact in shown["facts"]}
    facts = [fact for fact in record["facts"] if fact["name"] not in gone - held]
    return {**record, "claims": kept, "facts": facts}


def source_without_solutions(page: Page, text: str) -> str:
    """Return the source of a page without the solutions of its exercises.

    Parameters
    ----------
    page, text
        The source, in parts and as it is written.
    """
    solved = _lines_of_solutions(page)
    kept: list[str] = []
    parted = False
    for number, line in enumerate(text.splitlines(), start=1):
        if number in solved:
            parted = True
        elif not (parted and not line.strip() and (not kept or not kept[-1].strip())):
            kept.append(line)
            parted = False
    return "\n".join(kept).rstrip("\n") + "\n"


def _lines_of_solutions(page: Page) -> set[int]:
    """Return the line numbers of all solutions, fenced or between start and end directives."""
    lines: set[int] = set()
    start = None
    for directive in page.directives:
        end = (directive.body[-1].number if directive.body else directive.number) + 1  # the closing fence
        if directive.name == "solution":
            lines.update(range(directive.number, end + 1))
        elif directive.name == "solution-start":
            start = directive.number
        elif directive.name == "solution-end" and start is not None:
            lines.update(range(start, end + 1))
            start = None
    return lines


def _made(cell: Directive) -> Iterator[str]:
    """Yield the names that the code of a cell claims."""
    code = re.sub(r"^\s*[%!].*$", "pass", cell.source, flags=re.MULTILINE)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "claim":
            yield from (keyword.arg for keyword in node.keywords if keyword.arg)
