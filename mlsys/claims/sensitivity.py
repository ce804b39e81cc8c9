"""How strongly each claim leans on each fact: run the page again with one fact changed.

The page's code cells run in this process, so that a whole page costs a fraction of a
second and every fact it reads can be tried in turn.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import linecache
import math
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlsys.claims import page as pages
from mlsys.claims.ledger import cells_of
from mlsys.errors import UnreadableError
from mlsys.inputs import read_text
from mlsys.provenance import perturbed
from mlsys.tables import Table

__all__ = ["Elasticity", "run_and_look", "run_page", "sensitivity"]

Elasticity = dict[str, dict[str, float]]

_MAGIC = re.compile(r"^(\s*)[%!].*", re.MULTILINE)  # lines for the notebook, such as the one that installs the package


def run_page(notebook: str | Path) -> pages.Page:
    """Run the code cells of a notebook in this process and return its claims and facts.

    Cells tagged ``raises-exception`` may raise. Output is swallowed, figures are closed.
    """
    return run_and_look(notebook)[0]


def run_and_look(notebook: str | Path) -> tuple[pages.Page, tuple[str, ...]]:
    """Run a page as :func:`run_page` does; return its page, and what it shows besides claims.

    Returns
    -------
    tuple
        The page, and a text for each table shown and each figure drawn: two runs that
        show the same give the same texts.
    """
    try:
        cells = cells_of(read_text(notebook))
    except UnreadableError:
        raise
    except ValueError as error:
        raise ValueError(f"{notebook}: {error}") from None
    cells_run: list[str] = []  # what IPython calls In: claims look up there what their values stand on
    namespace: dict[str, Any] = {"__name__": "__main__", "In": cells_run}
    shown: list[str] = []
    pages.start_chapter("")  # forget the claims of whatever ran before
    backend = os.environ.get("MPLBACKEND")
    os.environ["MPLBACKEND"] = backend or "Agg"  # for a page that loads matplotlib first; no window opens
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for cell in cells:
                if cell["cell_type"] != "code":
                    continue
                source = "".join(cell["source"])
                expected = "raises-exception" in cell.get("metadata", {}).get("tags", [])
                try:
                    cells_run.append(source)
                    name = f"<{notebook}, cell {len(cells_run)}>"
                    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
                    last = _run_cell(source, name, namespace)
                except Exception:
                    if not expected:
                        raise
                    continue
                if isinstance(last, Table):
                    shown.append(repr(last))
        shown += _drawn()
    finally:
        if backend is None:
            del os.environ["MPLBACKEND"]
        if "matplotlib.pyplot" in sys.modules:  # only if a page drew something
            sys.modules["matplotlib.pyplot"].close("all")
        page = pages.current_page()
        pages.end_chapter(page.name)
    return page, tuple(shown)


def _run_cell(source: str, name: str, namespace: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last line, if that is an expression."""
    tree = ast.parse(_MAGIC.sub(r"\1pass", source))
    if not (tree.body and isinstance(tree.body[-1], ast.Expr)):
        exec(compile(tree, name, "exec"), namespace)
        return None
    last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    exec(compile(tree, name, "exec"), namespace)
    return eval(compile(last, name, "eval"), namespace)


def _drawn() -> list[str]:
    """Return a text for each open figure: its words, and a digest of what its marks are drawn from."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    plt = sys.modules["matplotlib.pyplot"]
    texts = []
    for number in plt.get_fignums():
        digest = hashlib.sha256()
        for ax in plt.figure(number).axes:
            for line in ax.lines:
                digest.update(repr(line.get_xydata().tolist()).encode())
            for marks in ax.collections:
                digest.update(repr(marks.get_offsets().tolist()).encode())
                digest.update(repr([path.vertices.tolist() for path in marks.get_paths()]).encode())
            for patch in ax.patches:
                digest.update(repr(patch.get_path().vertices.tolist()).encode())
                digest.update(repr(patch.get_patch_transform().get_matrix().tolist()).encode())
            digest.update(repr([text.get_text() for text in ax.texts]).encode())
        texts.append(digest.hexdigest())
    return texts


def sensitivity(
    notebook: str | Path,
    step: float = 0.01,
    progress: Callable[[list[str]], Any] = contextlib.nullcontext,
) -> Elasticity:
    """Return, for each fact of a page, the elasticity of each claim that it moves.

    Parameters
    ----------
    notebook
        The page, as a notebook.
    step
        Relative change of each fact in turn; 0.01 is one percent.
    progress
        Wraps the list of facts in a context manager that yields them, such as
        ``click.progressbar``.

    Returns
    -------
    dict
        ``{fact: {claim: elasticity}}``; an elasticity of −1 means that a claim falls by
        1 % when the fact rises by 1 %. A claim in words that changes counts as infinite,
        as does an assertion of the page that fails, under the name ``"assertion"``.
    """
    if not (math.isfinite(step) and step != 0 and step > -1):
        raise ValueError(
            f"sensitivity(): `step` must be a finite change above -1 and not 0, got {step!r}. Write e.g. step=0.01"
        )
    base = run_page(notebook)
    moved: Elasticity = {}
    for fact in base.facts:
        with perturbed(fact, 1 + step):
            try:
                changed = run_page(notebook).claims
            except (AssertionError, ValueError):
                moved[fact] = {"assertion": float("inf")}
                continue
        moved[fact] = {
            name: _elasticity(before.value, changed[name].value, step) if name in changed else float("inf")
            for name, before in base.claims.items()
            if name not in changed or before.pinned != changed[name].pinned
        }
    return moved


def _elasticity(before: float | str, after: float | str, step: float) -> float:
    if isinstance(before, str) or isinstance(after, str) or before == 0:
        return float("inf")
    return (after / before - 1) / step
