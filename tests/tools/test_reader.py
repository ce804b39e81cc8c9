"""The reader's edition needs Markdown and LaTeX alone, and says what the page says."""

import re
from pathlib import Path

import pytest
from nbformat import v4

from bookindex import BookIndex, PageNumbers
from myst import UnknownMystError, escaped, inline, plain_pieces
from pages import ROOT, notebook_files, read_notebook
from reader import reader_edition

PAGE = ROOT / "book" / "roofline.md"
RAW = re.compile(r"\{[a-z][\w:.+-]*\}`|^\s*(?::{3,}|`{3,}\s*\{)|^\([\w:./-]+\)=\s*$|^\s*\$\$\s*\(", re.MULTILINE)
FENCED = re.compile(r"``.+?``", re.DOTALL)


def plain(text: str, values: dict[str, str] | None = None) -> str:
    numbers = PageNumbers.of(PAGE, [v4.new_markdown_cell(text)])
    return "\n\n".join(piece.text for piece in plain_pieces(text, BookIndex(values or {}), numbers))


@pytest.mark.notebooks
@pytest.mark.parametrize("source", notebook_files(), ids=lambda path: path.stem)
def test_no_role_or_directive_is_left(source: Path) -> None:
    prose = [cell.source for cell in read_notebook(source.with_suffix(".ipynb")).cells if cell.cell_type == "markdown"]
    assert len(prose) >= 2
    assert [match[0] for text in prose for match in RAW.finditer(FENCED.sub("", text))] == []


@pytest.mark.notebooks
@pytest.mark.parametrize("source", notebook_files(), ids=lambda path: path.stem)
def test_every_link_to_a_file_leads_somewhere(source: Path) -> None:
    prose = [cell.source for cell in read_notebook(source.with_suffix(".ipynb")).cells if cell.cell_type == "markdown"]
    links = [target for text in prose for target in re.findall(r"\]\(([^)#:\s]+)\)", text)]
    assert [link for link in links if not (source.parent / link).exists()] == []


@pytest.mark.notebooks
@pytest.mark.parametrize("source", notebook_files(), ids=lambda path: path.stem)
def test_the_first_cell_of_code_installs_and_nothing_else(source: Path) -> None:
    first = next(cell for cell in read_notebook(source.with_suffix(".ipynb")).cells if cell.cell_type == "code")
    assert "find_spec" in first.source and "%pip install" in first.source
    assert first.outputs == []


def test_values_stand_in_their_sentences() -> None:
    message = plain(
        "Of {glue:}`all` misses {glue:text}`b` are B's, `{glue:}` is code.", {"all": "270,336", "b": "4.2 × 10^6"}
    )
    assert message == "Of 270,336 misses 4.2 × 10^6 are B's, `{glue:}` is code."


def test_a_value_that_nobody_claims_is_an_error() -> None:
    with pytest.raises(KeyError, match="nobody"):
        plain("{glue:}`nobody`")


def test_a_value_cannot_become_markup() -> None:
    assert escaped("5 $ of a_b * <c> | [d]") == r"5 \$ of a\_b \* \<c> \| \[d\]"


def test_equations_are_numbered_and_referred_to() -> None:
    message = plain("$$\na = b\n$$ (eq-a)\n\nBy {eq}`eq-a`, and\n\n$$\nc\n$$ (eq-c)\n\n{eq}`eq-c`.")
    assert message.count(r"\tag{1}") == message.count(r"\tag{2}") == 1
    assert "By (1), and" in message and message.endswith("(2).")


def test_citations_give_names_year_and_link() -> None:
    assert plain("{cite:p}`amdahl1967`") == "([Amdahl, 1967](https://doi.org/10.1145/1465482.1465560))"
    assert "Wulf and McKee, 1995" in plain("{cite:p}`wulf1995`")
    assert "Jouppi et al. (2017)" in plain("{cite:t}`jouppi2017`")


def test_admonitions_become_quotations_and_dropdowns_fold() -> None:
    assert (
        plain("```{admonition} Predict first\n:class: tip\nHow *many*?\n```") == "> **Predict first**\n>\n> How *many*?"
    )
    assert plain(":::{note}\nMind.\n:::") == "> **Note**\n>\n> Mind."
    assert "<details><summary>More</summary>" in plain("```{admonition} More\n:class: dropdown\nText.\n```")


def test_a_solution_folds_away_under_a_heading_of_its_own() -> None:
    exercise = "```{exercise} Cost\n:label: ex-a\n\nWhy?\n```"
    text = f"## Your turn\n\n{exercise}\n\n```{{solution-start}} ex-a\n:class: dropdown\n```\n\nSo."
    numbers = PageNumbers.of(PAGE, [v4.new_markdown_cell(text)])
    pieces = plain_pieces(text, BookIndex({}), numbers)
    assert [piece.text for piece in pieces] == [
        "## Your turn",
        "### Exercise 1: Cost\n\nWhy?",
        "#### Solution to exercise 1",
        "So.",
    ]
    assert [piece.collapsed for piece in pieces] == [False, False, True, False]


def test_a_table_and_a_glossary() -> None:
    table = "```{list-table} Symbols\n:name: tab-s\n\n* - Symbol\n  - Meaning\n* - $p$\n  - a\n    share\n```"
    assert "| $p$ | a share |" in plain(table) and "**Table 1.** Symbols" in plain(table)
    assert plain("```{glossary}\ntile\n  A block.\n```") == "- **tile**: A block."


def test_what_has_no_plain_form_is_an_error() -> None:
    with pytest.raises(UnknownMystError, match="mermaid"):
        plain("```{mermaid}\na\n```")
    with pytest.raises(UnknownMystError, match="unheard"):
        inline("{unheard}`x`", BookIndex({}), PageNumbers(PAGE))


def test_a_figure_gets_its_caption_below_the_cell() -> None:
    drawn = v4.new_code_cell("draw()", id="cell-02")
    drawn.metadata["mystnb"] = {"figure": {"name": "fig-a", "caption": "What {glue:}`a` shows."}}
    value = {"application/papermill.record/text/plain": "3 GB"}
    drawn.outputs = [v4.new_output("display_data", data=value, metadata={"scrapbook": {"name": "a"}})]
    page = v4.new_notebook(cells=[v4.new_markdown_cell("See {numref}`fig-a`.", id="cell-01"), drawn])
    made = reader_edition(page, PAGE).cells
    assert [cell.source for cell in made if cell.cell_type == "markdown"] == [
        "See Figure 1.",
        "**Figure 1.** What 3 GB shows.",
    ]
    assert [cell.id for cell in made] == ["cell-01", "install", "cell-02", "cell-02-caption"]
