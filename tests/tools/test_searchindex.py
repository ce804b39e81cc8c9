"""What the search of the book is given: words of book/search.yaml at their sections, and no claim cards."""

import pytest
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.utils import new_document
from sphinx import addnodes
from sphinx.errors import ExtensionError

from mlsys.claims.render import MIME
from pages import ROOT, read_notebook
from searchindex import as_searched, left_out, search_words, words_added


def page(*children: nodes.Node) -> nodes.document:
    document = new_document("a page", get_default_settings())
    document += nodes.section("", nodes.title("", "A title"), *children, ids=["a-title"])
    return document


def html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def cell(*tags: str) -> nodes.container:
    source = nodes.container("", nodes.literal_block("", "claim(board_share=1)"), classes=["cell_input"])
    output = nodes.container("", nodes.paragraph("", "shown"), classes=["cell_output"])
    return nodes.container("", source, output, classes=["cell", *tags])


def test_cards_lists_of_claims_and_folded_code_are_left_out_and_put_back() -> None:
    document = page(
        html('<span class="mlsys-claim">312<span class="mlsys-card">peak of fp16</span></span>'),
        html("<details class='mlsys-claims'><summary>claimed: few_rows</summary></details>"),
        html('<table class="mlsys-table"><tr><td>register file</td></tr></table>'),
        cell("tag_hide-cell"), cell("tag_hide-input"), cell(),
    )  # fmt: skip
    before = document.astext()
    with as_searched("book/none", document):
        searched = document.astext()
    assert document.astext() == before
    assert "peak of fp16" not in searched and "few_rows" not in searched
    assert "register file" in searched and searched.count("board_share") == 1 and searched.count("shown") == 3


def test_every_output_that_lists_claims_is_left_out() -> None:
    """In the form in which notebooks hold it, whatever quotes the HTML has."""
    outputs = [output["data"] for cell in read_notebook(ROOT / "book" / "roofline.ipynb").cells
               for output in cell.get("outputs", ()) if "text/html" in output.get("data", {})]  # fmt: skip
    listing = [data for data in outputs if MIME in data or "claimed: " in "".join(data["text/html"])]
    assert len(listing) > 5
    document = page(*(html("".join(data["text/html"])) for data in listing))
    assert len(list(left_out(document))) == len(listing)


def test_words_stand_at_their_section_and_a_wrong_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("searchindex.search_words", lambda: {"tiling": {"": ["GEMM"], "a-title": ["halo"]}})
    (whole, part) = words_added("book/tiling", page())
    assert whole["entries"] == [("single", "GEMM", "", "main", None)]
    assert part["entries"] == [("single", "halo", "a-title", "main", None)]
    assert isinstance(part, addnodes.index) and list(words_added("labs/05-tiling", page())) == []
    monkeypatch.setattr("searchindex.search_words", lambda: {"tiling": {"gone": ["halo"]}})
    with pytest.raises(ExtensionError, match=r"sends \['halo'\] to book/tiling#gone, and there is no such section"):
        list(words_added("book/tiling", page()))


def test_no_word_is_listed_twice_and_all_pages_exist() -> None:
    listed = [word.lower() for sections in search_words().values() for words in sections.values() for word in words]
    assert len(listed) == len(set(listed)) > 100
    assert all((ROOT / "book" / f"{name}.md").is_file() for name in search_words())
