"""The committed notebooks are those of the pages, and were run: nbval compares nothing in a cell that never ran."""

from pathlib import Path

import pytest

from notebooks import disagreements, regenerate, without_noise
from pages import FOLDERS, ROOT, notebook_files, read_notebook, read_page

pytestmark = pytest.mark.notebooks

HEADER = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {name: python3, display_name: P}
---
"""
CELL = "```{code-cell}\n1 + 1\n```\n"


@pytest.mark.parametrize("source", notebook_files(), ids=lambda path: path.stem)
def test_in_step_and_run(source: Path) -> None:
    assert list(disagreements(source)) == []


@pytest.mark.parametrize("source", notebook_files(), ids=lambda path: path.stem)
def test_free_of_noise(source: Path) -> None:
    notebook = read_notebook(source.with_suffix(".ipynb"))
    before = str(notebook)
    assert str(without_noise(notebook)) == before


def test_no_notebook_without_its_page() -> None:
    orphans = [
        path.name
        for folder in FOLDERS
        for path in (ROOT / folder).glob("*.ipynb")
        if not path.with_suffix(".md").exists()
    ]
    assert orphans == []


def test_regenerated_notebook_agrees_and_settles(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(HEADER + "# Title\n\n" + CELL)
    assert regenerate(page)
    assert list(disagreements(page)) == []
    assert not regenerate(page), "a second run must write nothing new"
    assert [cell["id"] for cell in read_page(page).cells] == ["cell-01", "cell-02"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("1 + 1", "1 + 2"), "its source is not the one"),
        (lambda text: text.replace("# Title", "# Other"), "its source is not the one"),
        (
            lambda text: text.replace("{code-cell}\n", "{code-cell}\n:tags: [hide-input]\n"),
            "its metadata is not the one",
        ),
        (lambda text: text + "\n" + CELL, "cells from page.md"),
    ],
)
def test_disagreement_is_found(tmp_path: Path, change, message: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(HEADER + "# Title\n\n" + CELL)
    regenerate(page)
    page.write_text(change(page.read_text()))
    assert any(message in fault for fault in disagreements(page))


def test_a_cell_that_never_ran_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(HEADER + CELL)
    regenerate(page)
    notebook = page.with_suffix(".ipynb")
    notebook.write_text(notebook.read_text().replace('"execution_count": 1', '"execution_count": null'))
    assert any("never run" in fault for fault in disagreements(page))


def test_a_warning_among_the_outputs_is_found(tmp_path: Path) -> None:
    """A reader would take it for part of the page."""
    page = tmp_path / "page.md"
    page.write_text(HEADER + CELL.replace("1 + 1", 'import sys\nprint("font not found", file=sys.stderr)'))
    regenerate(page)
    assert [fault.split(": ")[1] for fault in disagreements(page)] == ["it holds a warning"]
