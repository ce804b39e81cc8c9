"""Names are shown and not obeyed: on a terminal, in a spreadsheet, in Markdown; and no other code writes those."""

import csv
import html
import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mlsys.claims.render import ClaimsTable
from mlsys.escaping import code, fenced, markdown_table, markdown_text, printable
from mlsys.files import csv_text
from mlsys.tables import Table

HOSTILE = (
    "# head", "- item", "1. item", "> said", "---", "===", "*a*", "_a_ b_c __d__", "`a`", "``", "[x](http://e.org)",
    "![x](http://e.org/x.png)", "<img src=x onerror=alert(1)>", "<!-- x", "a|b", "\\|", "\\", "$x$", "~~s~~", "&lt;",
    "one\n\n# two", "a\r|---|", ":::{note}", "{ref}`a`", "    code", "http://e.org/a_b_", "=1+1", "fp16 × 8, −3 %",
)  # fmt: skip
LETTERS = st.characters(min_codepoint=33, max_codepoint=126) | st.sampled_from(" é½*_`[]|\\")
READER = MarkdownIt("gfm-like", {"linkify": False})  # another's reading of Markdown, tables and strikes included


def read_as_text(shown: str) -> str:
    """What a reader of Markdown sees, where it sees one paragraph of plain text."""
    page = READER.render(shown)
    assert page.startswith("<p>") and page.endswith("</p>\n") and page.count("<") == 2, page
    return html.unescape(page[3:-5])


def one_line(text: str) -> str:
    return printable(" ".join(text.split("\n")).replace("\r", " ")).strip()


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_a_text_as_it_is(text: str) -> None:
    assert read_as_text(markdown_text(text)).split() == one_line(text).split()


@settings(max_examples=200, deadline=None)
@given(
    st.text(
        st.characters(min_codepoint=33, max_codepoint=126) | st.sampled_from(" é½*_`[]|\\"), min_size=1, max_size=12
    )
)
def test_markdown_obeys_no_text(text: str) -> None:
    if text.strip():
        assert read_as_text(markdown_text(text)).split() == one_line(text).split()
        page = READER.render(f"a {code(text)} b")
        assert (
            page.count("<") == 4
            and html.unescape(page.partition("<code>")[2].partition("</code>")[0]).split() == text.split()
        )


def table_of(shown: str) -> list[list[str]]:
    """The cells of the one table of a page, as a reader sees them."""
    page = READER.render(shown)
    assert page.count("<table>") == 1 and "<img" not in page and "<a " not in page and "<script" not in page, page
    rows = page.partition("<table>")[2].replace("<th", "<td").split("<tr>")[1:]
    return [
        [html.unescape(cell.partition(">")[2].partition("</t")[0]) for cell in row.split("<td")[1:]] for row in rows
    ]


@pytest.mark.parametrize("door", [markdown_table, Table])
def test_a_table_keeps_its_cells_whatever_they_hold(door: Any) -> None:
    cells = [(text, "end") for text in HOSTILE]
    if door is Table:
        shown = Table("# *caption*", ("a", "b"), cells)._repr_mimebundle_()["text/markdown"]
    else:
        shown = "\n".join(markdown_table(("a", "b"), cells))
    rows = table_of(shown)
    assert [row[1] for row in rows] == ["b", *["end"] * len(HOSTILE)]
    assert [row[0].split() for row in rows[1:]] == [one_line(text).split() for text in HOSTILE]


def test_a_block_of_code_cannot_be_ended_from_inside() -> None:
    page = READER.render("\n".join(fenced("a\n```\n# head\n````\n<b>")))
    assert page.count("<pre>") == 1 and "<h1>" not in page and "<b>" not in page


def test_claims_with_hostile_names_are_a_list_of_them() -> None:
    facts = [
        {"name": text, "value": "1", "unit": text, "source": text, "date": "2020", "confidence": text, "meaning": text}
        for text in HOSTILE
    ]
    page = READER.render(ClaimsTable({"page": "p", "claims": [], "facts": facts})._repr_markdown_())
    assert page.count("<li>") == len(HOSTILE)
    assert not any(
        f"<{tag}" in page for tag in ("h1", "img", "a ", "table", "em", "strong", "s>", "hr", "blockquote", "ol")
    )


def test_a_guide_with_hostile_names_is_a_table_of_them() -> None:
    from mlsys.measure.recommend.guide import Requirement, as_markdown, guide
    from mlsys.measure.recommend.platforms import Platform

    rows = [Platform(text, 10.0 + index, source=text) for index, text in enumerate(HOSTILE)]
    cells = table_of(as_markdown(guide(rows, Requirement(latency_ms=12)), rows))
    assert [row[0].split() for row in cells[1:]] == [one_line(text).split() for text in HOSTILE]


def test_an_edge_report_with_a_hostile_name_has_no_head_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlsys.edge import tables

    config = SimpleNamespace(name="a\n# *b* <script>", network="![x](y)", source="|", batch=1, seed=0, device=None)
    point = SimpleNamespace(pareto=False, accepted=False, reasons=["|a|"], statistics=None)
    point.measured, point.clock = SimpleNamespace(variant="a|b"), SimpleNamespace(scale=1.0, voltage=1)
    monkeypatch.setattr(tables, "lead", lambda points: point)
    monkeypatch.setattr(tables, "edge_advice", lambda *given: ("- [x](y)",))
    page = READER.render(tables.markdown(config, [point], [], [], "`"))
    assert page.count("<h1>") == 1 and "<script" not in page and "<em>" not in page
    assert page.count("<img") == 3 and "<a " not in page and "<td>a|b</td>" in page


@pytest.mark.parametrize("letter", ["\x1b", "\x07", "\x7f", "\x9b", "\u202e", "\u200b", "\ud800", "\ufeff"])
def test_json_stays_json_and_csv_stays_csv(letter: str) -> None:
    name = f"a{letter}[31m"
    result = printable(json.dumps({"name": name}, ensure_ascii=False))
    assert json.loads(result) == {"name": name} and letter not in result
    result = csv_text([{name: name, "x": f"={letter}"}])
    assert letter not in result
    assert [len(row) for row in csv.reader(io.StringIO(result))] == [2, 2]
    assert result.splitlines()[1].split(",")[1].startswith("'=")
