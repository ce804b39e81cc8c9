"""Slides say what the committed notebooks say, open without a network and give no solution away."""

import base64
import re
from pathlib import Path

import pytest

from pages import read_notebook
from slides import chapters, deck, slides_of

WITH_NOTEBOOK = [path for path in chapters() if path.with_suffix(".ipynb").exists()]


@pytest.mark.notebooks
@pytest.mark.parametrize("path", WITH_NOTEBOOK, ids=lambda path: path.stem)
def test_a_deck_has_every_figure_of_its_chapter_and_only_its_words(path: Path) -> None:
    notebook = read_notebook(path.with_suffix(".ipynb"))
    slides = slides_of(notebook)
    assert [slides[0].kind, slides[1].kind, slides[-1].kind] == ["title", "question", "summary"]
    assert len(slides[-1].lines) >= 3

    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    taught, _, after = prose.partition("\n## Your turn")
    for slide in slides:
        for line in slide.lines:
            assert line in (taught + after if slide.title == "Find the error" else taught), line

    pictures = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and "## Summary" in cell.source:
            break
        if "figure" in cell.metadata.get("mystnb", {}):
            pictures += [o.data["image/png"] for o in cell.outputs if "image/png" in o.get("data", {})]
    assert [slide.picture for slide in slides if slide.kind == "figure"] == pictures
    assert all(slide.alt and slide.caption and base64.b64decode(slide.picture) for slide in slides if slide.picture)

    page = deck(path.stem, slides)
    assert page.count("<section ") == len(slides)
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)|url\(|@import""", page), "nothing is fetched"
    assert "<details" not in page and "](" not in re.sub(r"base64,[^\"]+", "", page)


def test_a_solution_below_an_error_to_find_is_left_out() -> None:
    from nbformat import v4

    text = "> *Find the error.*\n> “Twice the bits.”\n\n<details><summary>Solution</summary>\n\nHalf.\n</details>"
    cells = [
        "# Bits: how many?\n\nA story.\n\n> **Predict first**\n>\n> How many?",
        "## One\n\nIt has 16 bits.",
        "## Summary\n\nA.\nB.\nC.\n\n## Your turn\n\n" + text,
    ]
    slides = slides_of(v4.new_notebook(cells=[v4.new_markdown_cell(cell) for cell in cells]))
    assert [slide.title for slide in slides] == ["Bits: how many?", "Predict first", "One", "Find the error", "Summary"]
    assert slides[3].lines == ("“Twice the bits.”",)
