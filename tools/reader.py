"""The reader's edition of a page: a notebook that reads well with Markdown and LaTeX alone.

The text (.md) is the source of the book. The notebook beside it is derived: the same code cells with their outputs,
prose with its values inserted (tools/myst.py), a caption under each figure, folded solutions, and a first cell
that installs the package if it is missing.
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbformat import v4

from bookindex import BookIndex, PageNumbers, glued
from myst import Piece, inline, plain_pieces

INSTALL = """\
import importlib.util
if importlib.util.find_spec("mlsys") is None:
    %pip install -q "mlsys[labs,torch,sweep] @ git+https://github.com/mlsys-book/mlsys\""""
FOLDED = {"jp-MarkdownHeadingCollapsed": True, "heading_collapsed": True}


def reader_edition(notebook: Any, source: Path) -> Any:
    """Return the readers' notebook of an executed page.

    Parameters
    ----------
    notebook
        Cells of the page, code cells with their outputs.
    source
        The page's .md file, which links are relative to.
    """
    edition = copy.deepcopy(notebook)
    numbers = PageNumbers.of(source.resolve(), notebook.cells)
    index = BookIndex(glued(notebook.cells))
    edition.cells = list(_with_install(_cells(notebook.cells, index, numbers)))
    _count_again(edition.cells)
    return edition


def _count_again(cells: list[Any]) -> None:
    """Renumber the executed cells as if the install cell had been run first."""
    code = [cell for cell in cells if cell.cell_type == "code"]
    if not any(cell.execution_count for cell in code):
        return
    for count, cell in enumerate(code, start=1):
        cell.execution_count = count if cell.execution_count or cell.id == "install" else None
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = cell.execution_count


def _cells(cells: list[Any], index: BookIndex, numbers: PageNumbers) -> Iterator[Any]:
    for cell in cells:
        if cell.cell_type != "code":
            for nth, piece in enumerate(plain_pieces(cell.source, index, numbers)):
                yield _prose(piece, cell.id if nth == 0 else f"{cell.id}-{nth}")
            continue
        code = copy.deepcopy(cell)
        if {"hide-input", "hide-cell", "remove-input"} & set(code.metadata.get("tags", ())):
            code.metadata["jupyter"] = {"source_hidden": True}
        image = (code.metadata.get("mystnb") or {}).get("image") or {}
        if image.get("alt"):
            image["alt"] = inline(image["alt"], index, numbers)
        yield code
        figure = (cell.metadata.get("mystnb") or {}).get("figure") or {}
        if figure.get("caption"):
            number = f"**Figure {numbers.figures[figure['name']]}.** " if figure.get("name") else ""
            caption = number + inline(figure["caption"], index, numbers)
            yield v4.new_markdown_cell(caption, id=f"{cell.id}-caption")  # type: ignore[no-untyped-call]


def _prose(piece: Piece, name: str) -> Any:
    cell = v4.new_markdown_cell(piece.text, id=name)  # type: ignore[no-untyped-call]
    if piece.collapsed:
        cell.metadata.update(FOLDED)
    return cell


def _with_install(cells: Iterator[Any]) -> Iterator[Any]:
    """Insert the install cell before the first code cell, unless the page has its own."""
    waiting = True
    for cell in cells:
        if waiting and cell.cell_type == "code":
            waiting = False
            if "find_spec" not in cell.source:
                yield v4.new_code_cell(INSTALL, id="install", metadata={"jupyter": {"source_hidden": True}})  # type: ignore[no-untyped-call]
        yield cell
