"""Sensitivity of claims to facts: run a page again with one fact changed at a time.

The code cells of the page run in this process, so that a page takes a fraction of a
second and every fact it reads can be changed in turn.
"""

import contextlib
import functools
import io
import linecache
import math
import os
import re
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlsys.claims import page as pages
from mlsys.claims.filed import Page, without_provenance
from mlsys.claims.ledgers import cells_of
from mlsys.deadline import Deadline, TimeIsUpError, interrupted_at
from mlsys.errors import UnreadableError
from mlsys.inputs import read_text
from mlsys.provenance import perturbed

Elasticity = dict[str, dict[str, float]]

_MAGIC = re.compile(r"^(\s*)[%!].*", re.MULTILINE)  # IPython magics, such as the line that installs the package


def run_page(notebook: str | Path, *, with_provenance: bool = True) -> Page:
    """Run the code cells of a notebook in this process; return its claims, tables, figures and facts.

    Cells tagged ``raises-exception`` may raise. Output is discarded and figures are closed.

    Parameters
    ----------
    notebook
        Path of the notebook.
    with_provenance
        Whether to record the facts behind each result; without it, a page with many results runs in half the time.
    """
    with contextlib.nullcontext() if with_provenance else without_provenance():
        return _run(notebook)


def _run(notebook: str | Path) -> Page:
    try:
        cells = cells_of(read_text(notebook))
    except UnreadableError:
        raise
    except ValueError as error:
        raise ValueError(f"{notebook}: {error}") from None
    cells_run: list[str] = []  # IPython's ``In``, where claims look up the source of their expressions
    namespace: dict[str, Any] = {"__name__": "__main__", "In": cells_run}
    pages.start_chapter("")  # discard the claims of an earlier run
    backend = os.environ.get("MPLBACKEND")
    os.environ["MPLBACKEND"] = backend or "Agg"  # in case the page imports matplotlib first: open no window
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for cell in cells:
                if cell["cell_type"] != "code":
                    continue
                source = "".join(cell["source"])
                cells_run.append(source)
                pages.begin_cell(source)
                name = f"<{notebook}, cell {len(cells_run)}>"
                linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
                try:
                    exec(_compiled(source, name), namespace)
                except Exception:
                    if "raises-exception" not in cell.get("metadata", {}).get("tags", []):
                        raise
    finally:
        if backend is None:
            del os.environ["MPLBACKEND"]
        if "matplotlib.pyplot" in sys.modules:  # only if the page drew something
            sys.modules["matplotlib.pyplot"].close("all")
        page = pages.current_page()
        pages.end_chapter(page.name)
    return page


@functools.lru_cache(maxsize=512)
def _compiled(source: str, name: str) -> types.CodeType:
    try:
        return compile(_MAGIC.sub(r"\1pass", source), name, "exec")
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise ValueError(
            f"{name.strip('<>')}{line}: not valid Python: {getattr(error, 'msg', error)}. Correct the cell"
        ) from error


def sensitivity(
    notebook: str | Path,
    step: float = 0.01,
    progress: Callable[[list[str]], Any] = contextlib.nullcontext,
    *,
    seconds: float = 600.0,
) -> Elasticity:
    """Return, for each fact of a page, the elasticity of the claims, tables and figures that it changes.

    Parameters
    ----------
    notebook
        Path of the notebook of the page.
    step
        Relative change of each fact; 0.01 is one percent.
    progress
        Wraps the list of facts in a context manager that yields them, such as
        ``click.progressbar``.
    seconds
        Time limit of the whole call. When it expires, the facts tried so far are returned, with a warning; a
        page that does not finish even once raises.

    Returns
    -------
    dict
        ``{fact: {claim: elasticity}}``; an elasticity of −1 means that a claim falls by
        1 % when the fact rises by 1 %. A text claim, table or figure that changes has an infinite elasticity,
        as has a failing assertion of the page, under the name ``"assertion"``.
    """
    if not (math.isfinite(step) and step != 0 and step > -1):
        raise ValueError(
            f"sensitivity(): `step` must be a finite change above -1 and not 0, got {step!r}. Write e.g. step=0.01"
        )
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"sensitivity(): `seconds` must be above zero, got {seconds!r}. Write e.g. seconds=600")
    deadline = Deadline(seconds)
    try:
        with interrupted_at(deadline):
            base = run_page(notebook)
    except TimeIsUpError:
        raise ValueError(
            f"{notebook}: did not finish within {seconds:g} s. Allow more seconds, or shorten its loops"
        ) from None
    digests = base.looks()
    moved: Elasticity = {}
    facts = list(base.shown_facts())
    with progress(facts) as listed:
        for fact in listed:
            try:
                with interrupted_at(deadline), perturbed(fact, 1 + step):
                    after = run_page(notebook, with_provenance=False)
            except (AssertionError, ValueError):
                moved[fact] = {"assertion": float("inf")}
                continue
            except TimeIsUpError:
                warnings.warn(
                    f"{notebook}: {len(moved)} of {len(facts)} facts tried in {seconds:g} s. Allow more seconds",
                    stacklevel=2,
                )
                break
            moved[fact] = _moves(base, after, digests, step)
    return moved


def _moves(base: Page, after: Page, digests: dict[str, Any], step: float) -> dict[str, float]:
    """Return the elasticities of the claims, tables and figures that changed."""
    changed, new_digests = after.claims, after.looks()
    return {
        name: _elasticity(before.value, changed[name].value, step) if name in changed else float("inf")
        for name, before in base.claims.items()
        if name not in changed or before.pinned != changed[name].pinned
    } | {name: float("inf") for name, digest in digests.items() if new_digests.get(name) != digest}


def _elasticity(before: float | str, after: float | str, step: float) -> float:
    if isinstance(before, str) or isinstance(after, str) or before == 0:
        return float("inf")
    return (after / before - 1) / step
