"""Finding, reading and running the pages of the book and the labs."""

import copy
import os
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from fonts import own_font_list

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("book", "labs")
TIMEOUT = 1800
"""Time limit of a cell, s; far more than any takes on a busy machine."""


def workers() -> int:
    """Return the number of kernels to run in parallel: one per core, at most four."""
    return max(1, min(4, os.cpu_count() or 1))


def page_files(root: Path = ROOT) -> list[Path]:
    """Return every Markdown file of the book and the labs."""
    return [path for folder in FOLDERS for path in sorted((root / folder).glob("*.md"))]


def is_notebook(path: Path) -> bool:
    """Return whether a Markdown file is a text notebook, that is, has a jupytext header."""
    text = path.read_text(encoding="utf-8")
    return text.startswith("---\n") and "\njupytext:" in text.split("\n---\n", 1)[0]


def notebook_files(root: Path = ROOT) -> list[Path]:
    """Return every text notebook of the book and the labs."""
    return [path for path in page_files(root) if is_notebook(path)]


def read_page(path: Path) -> Any:
    """Return a text notebook, with cell ids that depend only on their position."""
    notebook = jupytext.read(path)
    for number, cell in enumerate(notebook.cells, start=1):
        cell["id"] = f"cell-{number:02d}"
    return notebook


def prepare_environment() -> None:
    """Set the environment so that every kernel started from here prints and draws reproducibly."""
    os.environ["PYTHONHASHSEED"] = "0"
    os.environ["MLSYS_LAB_STATE"] = "nowhere"  # saved lab answers must not get into the pages
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    own_font_list()


def run_page(notebook: Any, folder: Path) -> Any:
    """Run a notebook in a fresh kernel and return it; retry once if the kernel hangs or dies."""
    for last_try in (False, True):
        attempt = copy.deepcopy(notebook)
        client = NotebookClient(
            attempt,
            timeout=TIMEOUT,
            record_timing=False,
            store_widget_state=False,  # of no use without the kernel, and it holds what labs have not shown yet
            resources={"metadata": {"path": str(folder)}},
            extra_arguments=["--log-level=ERROR"],  # no note about TCP on this machine
        )
        try:
            client.execute(env={**os.environ})
        except (CellTimeoutError, DeadKernelError):
            if last_try:
                raise
        else:
            return without_tracebacks(attempt)
    raise AssertionError("unreachable")


def without_tracebacks(notebook: Any) -> Any:
    """Reduce intentional errors in place to their message, without the paths of this machine."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                output.traceback = [f"{output.ename}: {output.evalue}"]
    return notebook


def read_notebook(path: Path) -> Any:
    """Return a committed .ipynb file."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
