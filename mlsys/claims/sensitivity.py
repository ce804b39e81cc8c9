"""How strongly each claim leans on each fact: run the page again with one fact changed.

The page's code cells run in this process, so that a whole page costs a fraction of a
second and every fact it reads can be tried in turn.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlsys.claims import page as pages
from mlsys.provenance import perturbed

__all__ = ["Elasticity", "run_page", "sensitivity"]

Elasticity = dict[str, dict[str, float]]


def run_page(notebook: str | Path) -> pages.Page:
    """Run the code cells of a notebook in this process and return its claims and facts.

    Cells tagged ``raises-exception`` may raise. Output is swallowed, figures are closed.
    """
    cells = json.loads(Path(notebook).read_text("utf-8"))["cells"]
    namespace: dict[str, Any] = {"__name__": "__main__"}
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
                    exec(compile(source, str(notebook), "exec"), namespace)
                except Exception:
                    if not expected:
                        raise
    finally:
        if backend is None:
            del os.environ["MPLBACKEND"]
        if "matplotlib.pyplot" in sys.modules:  # only if a page drew something
            sys.modules["matplotlib.pyplot"].close("all")
        page = pages.current_page()
        pages.end_chapter(page.name)
    return page


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
