"""The HTML edition without solutions: what leaves the pages, their sources and their lists of claims."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.utils import new_document
from sphinx_exercise.nodes import solution_node

from mlsys.claims.render import MIME, ClaimsTable, expanded
from pageparse import parse
from pages import ROOT, notebook_files, read_notebook
from printing import edition_without_solutions
from strip_solutions import source_without_solutions
from unsolved import CLOSED, Unsolved, strip_sources

CHAPTERS = [path for path in notebook_files() if "{solution" in path.read_text("utf-8")]


def test_a_source_without_solutions_keeps_every_other_cell_box_and_heading() -> None:
    assert len(CHAPTERS) > 15
    for path in CHAPTERS:
        text = path.read_text("utf-8")
        left = source_without_solutions(parse(path, text), text)
        assert "{solution" not in left
        kept, solved = [], False
        for each in parse(path, text).directives:
            if each.name.startswith("solution"):
                solved = each.name == "solution-start"
            elif not solved:
                kept.append((each.name, each.argument, each.source))
        assert [(each.name, each.argument, each.source) for each in parse(path, left).directives] == kept, path.stem
        assert text.count("{exercise}") == left.count("{exercise}")
        assert set(left.splitlines()) <= set(text.splitlines()), "no line is new"


def test_downloads_of_a_built_book_are_stripped(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    copy = tmp_path / "book" / "amdahl.md.txt"
    copy.write_text((ROOT / "book" / "amdahl.md").read_text("utf-8"), encoding="utf-8")
    strip_sources(tmp_path)
    assert "{exercise}" in copy.read_text("utf-8") and "{solution" not in copy.read_text("utf-8")


def transform(document: Any, name: str, root: Path) -> None:
    made = Unsolved.__new__(Unsolved)
    made.document = document
    document.settings.env = SimpleNamespace(
        app=SimpleNamespace(srcdir=str(root)), docname=name, doc2path=lambda docname: str(ROOT / f"{docname}.md")
    )
    made.run()


def page(*children: nodes.Node) -> Any:
    document = new_document("a page", get_default_settings())
    document += children
    return document


def cell(code: str, *shown: nodes.Node) -> nodes.container:
    source = nodes.container("", nodes.literal_block("", code), nb_element="cell_code_source")
    return nodes.container(
        "", source, nodes.container("", *shown, nb_element="cell_code_output"), nb_element="cell_code"
    )


@pytest.mark.notebooks
def test_solutions_and_their_claims_leave_a_page_and_the_rest_stays(tmp_path: Path) -> None:
    notebook = read_notebook(ROOT / "book" / "amdahl.ipynb")
    outputs = [output for each in notebook.cells for output in each.get("outputs", [])]
    record = next(output["data"][MIME] for output in outputs if MIME in output.get("data", {}))
    (tmp_path / "_build").mkdir()
    (tmp_path / "_build" / "claims.json").write_text(json.dumps({"book/amdahl": record}))
    whole = ClaimsTable(expanded(record))._repr_html_()
    assert "more_code" in whole.replace("<wbr>", "")
    inside = cell("share", nodes.paragraph("", "88 %"))
    document = page(
        nodes.paragraph("", "Taught."),
        solution_node("", nodes.paragraph("", "It took 88 %."), inside),
        cell("claims_table()", nodes.raw("", whole, format="html")),
    )
    transform(document, "book/amdahl", tmp_path)
    text = document.astext().replace("<wbr>", "")
    assert "Taught." in text and "88 %" not in text
    assert "more_code" not in text and ">whole<" in text


def test_a_lab_keeps_its_text_and_loses_what_marks_answers(tmp_path: Path) -> None:
    answers = nodes.raw("", "<script>right = 16.8</script>", format="html")
    document = page(
        nodes.paragraph("", "Predict."), cell("lab.show()", answers), cell("lab.ask('five')", nodes.raw("", "x"))
    )
    transform(document, "labs/01-amdahl", tmp_path)
    text = document.astext()
    assert "Predict." in text and "lab.show()" in text and "16.8" not in text
    assert text.count(CLOSED) == 1


def test_the_edition_differs_in_the_extension_and_in_links_to_the_repository(tmp_path: Path) -> None:
    ours = yaml.safe_load(edition_without_solutions(ROOT, tmp_path).read_text())
    theirs = yaml.safe_load((ROOT / "_config.yml").read_text())
    assert ours["sphinx"]["config"]["extensions"] == [*theirs["sphinx"]["config"]["extensions"], "unsolved"]
    assert not ours["launch_buttons"] and not any(
        value for key, value in ours["html"].items() if key.startswith("use_")
    )
