"""What the printed book does with folded code, tables, claims and their facts."""

import base64
import json
import math
import re
from types import SimpleNamespace

import pytest
import yaml
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.utils import new_document
from nbformat import v4
from sphinx import addnodes
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node

from claimsinprint import claims_of_a_page, facts_and_sources
from mlsys.viz.style import WIDEST_FIGURE
from pages import ROOT, notebook_files, run_page
from printed import FIGURE_ROOM, LONG_TABLE, OUTPUT_ROOM, Printed
from printing import TEXT_WIDTH

FACT = {
    "name": "A100/clock",
    "value": "1410",
    "unit": "MHz",
    "source": "a list",
    "date": "2020",
    "confidence": "verified",
}
CLAIM = {"name": "peak_rate", "value": "19.5", "unit": "TFLOP/s", "formula": "peak(units=108)", "facts": ["A100/clock"]}


@pytest.fixture
def transform():
    document = new_document("a book", get_default_settings())
    document.settings.env = SimpleNamespace(app=SimpleNamespace(builder=None))
    document.settings.language_code = "en"
    made = Printed.__new__(Printed)
    made.document = document
    return made


def cell(mode):
    source = nodes.container("", nodes.literal_block("", "check(1 < 2)"), nb_element="cell_code_source")
    output = nodes.container("", nodes.paragraph("", "shown"), nb_element="cell_code_output")
    return nodes.container("", source, output, **({"hide_mode": mode} if mode else {}))


@pytest.mark.parametrize(("mode", "kept"), [(None, True), ("input", False), ("all", False), ("output", True)])
def test_folded_code_is_not_printed_and_its_output_is(transform, mode, kept):
    transform.document += cell(mode)
    transform.fold()
    text = transform.document.astext()
    assert ("check" in text) == kept and "shown" in text


def cell_that_prints(code, *shown):
    source = nodes.container("", nodes.literal_block("", "\n".join("x" * code)), nb_element="cell_code_source")
    output = nodes.container("", *shown, nb_element="cell_code_output")
    return nodes.container("", *([source, output] if shown else [source]), nb_element="cell_code")


def table_of(rows):
    return nodes.table("", nodes.tgroup("", nodes.tbody("", *(nodes.row() for _ in range(rows)))))


@pytest.mark.parametrize(
    ("shown", "room"),
    [
        ([nodes.literal_block("", "one\ntwo")], 2),
        ([nodes.literal_block("", "\n".join("y" * 400))], OUTPUT_ROOM),
        ([nodes.image(uri="a.pdf")], FIGURE_ROOM),
        ([nodes.strong("", "Ridges"), table_of(10)], 16),
        ([table_of(LONG_TABLE + 1)], OUTPUT_ROOM + 3),
        ([], None),
    ],
)
def test_code_ends_on_the_page_where_its_output_begins(transform, shown, room):
    transform.document += cell_that_prints(60, *shown)
    transform.keep_cells()
    before = [node.astext() for node in transform.document.children[:-1]]
    assert before == ([] if room is None else [f"\\keepcell{{60}}{{{room}}}\n"])


def test_where_the_solution_is_stands_at_the_end_of_the_last_line_of_an_exercise(transform):
    exercise = exercise_enumerable_node("", nodes.title("", "Which?"), label="ex")
    exercise += nodes.section("", nodes.paragraph("", "First."), nodes.paragraph("", "What share?"))
    solution = solution_node("", nodes.paragraph("", "Half."), label="solution-1", target_label="ex", hidden=False)
    chapter = nodes.section("", nodes.title("", "Far"), exercise, solution)
    transform.document += addnodes.start_of_file("", chapter, docname="book/far")
    transform.gathered_solutions()
    last = list(exercise.findall(nodes.paragraph))[-1]
    assert last.astext().startswith("What share?\\atlineend{Solution on page")


@pytest.mark.parametrize("first", [[], [nodes.paragraph("", "Half, as the cell finds.")]])
def test_the_title_of_a_solution_does_not_part_from_the_code_below_it(transform, first):
    cell = cell_that_prints(5, nodes.literal_block("", "one"))
    solution = solution_node("", nodes.title("", "Solution"), *first, cell, label="s", target_label="ex", hidden=False)
    chapter = nodes.section("", nodes.title("", "Far"), solution)
    transform.document += addnodes.start_of_file("", chapter, docname="book/far")
    transform.keep_cells()
    appendix = transform.gathered_solutions()
    assert ("\\keepcell" in solution.astext()) == bool(first)
    assert appendix.astext().count("\\keepcell{5}{1}") == 1


def test_the_macros_that_pages_call_are_defined():
    preamble = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["sphinx"]["config"]["latex_elements"][
        "preamble"
    ]
    called = set(re.findall(r"\\\\(keepcell|atlineend|needspace)", (ROOT / "tools/printed.py").read_text("utf-8")))
    assert called == {"keepcell", "atlineend", "needspace"}
    assert all(re.search(rf"(newcommand|usepackage){{\\?{name}}}", preamble) for name in called)


def test_an_edition_without_solutions_has_none_of_their_cells(transform):
    solution = solution_node("", nodes.paragraph("", "It took over"), cell(None), label="solution-1")
    transform.document += [nodes.paragraph("", "What share?"), solution]
    assert transform.no_solutions() == []
    assert transform.document.astext().split() == ["What", "share?"]


@pytest.mark.parametrize(("solutions", "kept"), [(True, True), (False, False)])
def test_the_appendix_lists_an_answer_only_where_the_solutions_are_printed(transform, tmp_path, solutions, kept):
    (tmp_path / "_build").mkdir()
    (tmp_path / "book").mkdir()
    record = {"claims": [CLAIM, {**CLAIM, "name": "twice", "facts": []}], "facts": [FACT]}
    (tmp_path / "_build" / "claims.json").write_text(json.dumps({"book/far": record}))
    page = "How far? {glue:}`twice`.\n\n```{solution-start} ex\n```\n\n{glue:}`peak_rate`\n\n```{solution-end}\n```\n"
    (tmp_path / "book" / "far.md").write_text(page)
    app = SimpleNamespace(srcdir=str(tmp_path), config=SimpleNamespace(printed_solutions=solutions), builder=None)
    transform.document.settings.env = SimpleNamespace(app=app)
    chapter = nodes.section("", nodes.title("", "Far"))
    transform.document += addnodes.start_of_file("", chapter, docname="book/far")
    text = transform.gathered_claims().astext()
    assert "twice" in text
    assert (r"peak\_" in text) == ("1410" in text) == kept


@pytest.mark.parametrize(("page", "kept"), [("labs/01-amdahl", False), ("book/amdahl", True)])
def test_the_code_that_opens_a_lab_is_not_printed(transform, page, kept):
    transform.document += addnodes.start_of_file("", cell(None), docname=page)
    transform.fold()
    text = transform.document.astext()
    assert ("check" in text) == kept and "shown" in text


def test_a_lab_in_a_part_of_the_book_is_known_by_its_section_and_leaves_out_its_empty_picture(transform):
    opening, step = cell(None), cell(None)
    opening[0][0] = nodes.literal_block("", "lab.show()")
    for made in (opening, step):
        made[1] += nodes.image(uri="picture.png")
    section = nodes.section("", opening, step, docname="labs/04-systolic")
    transform.document += addnodes.start_of_file("", section, docname="Labs")
    transform.fold()
    assert not list(opening.findall(nodes.image)) and len(list(step.findall(nodes.image))) == 1
    assert transform.document.astext().split() == ["shown", "shown"]


def test_a_term_with_a_hyphen_stands_once_in_the_index(transform):
    transform.document += addnodes.index(entries=[("single", "what-if", "target", "main", None)])
    transform.join_index()
    assert transform.document[-1]["entries"] == [("single", "what\N{HYPHEN}if", "target", "main", None)]


@pytest.mark.parametrize(("rows", "whole"), [(3, True), (LONG_TABLE + 1, False)])
def test_a_title_over_a_table_stays_with_it(transform, rows, whole):
    title = nodes.paragraph("", "", nodes.Text(""), nodes.strong("", "Ridges"))
    table = nodes.table("", nodes.tgroup("", nodes.tbody("", *(nodes.row() for _ in range(rows)))))
    transform.document += [nodes.paragraph("", "before"), title, table]
    transform.keep_captions()
    kinds = [type(child).__name__ for child in transform.document]
    assert kinds == ["paragraph", "raw", "paragraph", "table", "raw"]
    assert ("minipage" in transform.document[1].astext()) == whole


def test_only_the_parts_that_the_contents_number_are_numbered(transform):
    transform.document += [addnodes.start_of_file("", docname=name) for name in ("Front", "Laws")]
    Printed.unnumbered, old = {"Front"}, Printed.unnumbered
    try:
        transform.number()
    finally:
        Printed.unnumbered = old
    front, laws = (part[0].astext() for part in transform.document)
    assert "secnumdepth}{-2}" in front and "secnumdepth}{2}" in laws


def test_each_fact_and_each_source_is_printed_once():
    pages = [{"claims": [CLAIM], "facts": [FACT]}, {"claims": [], "facts": [FACT, {**FACT, "name": "A100/units"}]}]
    facts, sources = facts_and_sources(pages)
    assert facts.count("item ") == 2 and sources.count("item ") == 1
    assert facts.count("[1]") == 2


def test_names_with_underscores_and_raised_digits_are_set_not_lost():
    text = claims_of_a_page({"claims": [{**CLAIM, "value": "2×10⁻⁵"}]})
    assert r"peak\_" in text and r"\textsuperscript{−5}" in text and "⁵" not in text


def test_the_heading_over_the_exercises_goes_to_the_page_of_the_first(transform):
    boxes = [nodes.container("", nodes.paragraph("", "What share?")) for _ in range(2)]
    section = nodes.section("", nodes.title("", "Your turn"), *boxes)
    transform.document += nodes.section("", nodes.title("", "Amdahl"), section)
    for box in boxes:
        transform.keep_box(box)
    chapter = section.parent
    assert "needspace" in chapter[chapter.index(section) - 1].astext()
    assert [type(child).__name__ for child in section] == ["title", "container", "raw", "container"]
    assert "needspace" in section[2].astext()


def test_numbers_of_a_table_stand_at_the_right(transform):
    cells = [("A100", "153", "4.5 (4.1)"), ("H100", "—", "yes")]
    body = [nodes.row("", *(nodes.entry("", nodes.paragraph("", text)) for text in row)) for row in cells]
    head = nodes.thead("", nodes.row("", *(nodes.entry() for _ in cells[0])))
    table = nodes.table("", nodes.tgroup("", head, nodes.tbody("", *body)))
    transform.document += [nodes.paragraph("", "", nodes.strong("", "Ridges")), table]
    transform.keep_captions()
    assert [type(child).__name__ for child in transform.document][2:4] == ["tabular_col_spec", "table"]
    assert transform.document[2]["spec"] == "TRT"


def test_the_text_is_as_wide_as_figures_are_measured_against():
    setup = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["sphinx"]["config"]["latex_elements"]
    margins = re.search(r"hmargin=\{(\d+)mm,(\d+)mm\}", setup["sphinxsetup"]).groups()
    assert setup["papersize"] == "a4paper"
    width = (210 - sum(map(int, margins))) / 25.4
    assert math.isclose(TEXT_WIDTH, width)


@pytest.mark.parametrize("page", notebook_files(), ids=lambda page: page.stem)
def test_no_figure_of_a_page_is_wider_than_its_letters_allow(page):
    widths = [float(width) for width in re.findall(r"figsize=\(([\d.]+),", page.read_text(encoding="utf-8"))]
    assert [width for width in widths if width > WIDEST_FIGURE] == []


def test_a_figure_of_a_page_is_kept_as_vectors_for_print(tmp_path, monkeypatch):
    code = "from mlsys import viz\nfig, ax, _, plt = viz.setup_plot((3, 2))\nax.plot([1, 2])\nplt.show()"
    monkeypatch.setenv("MLSYS_FIGURES", "vector")
    notebook = run_page(v4.new_notebook(cells=[v4.new_code_cell(code)]), tmp_path)
    (shown,) = [output["data"] for output in notebook.cells[0].outputs if "image/png" in output.get("data", {})]
    assert base64.b64decode(shown["application/pdf"]).startswith(b"%PDF")


def test_print_prefers_vectors_and_the_screen_takes_pixels():
    from myst_nb.core.render import get_mime_priority

    printed, shown = get_mime_priority("latex", []), get_mime_priority("html", [])
    assert printed.index("application/pdf") < printed.index("image/png")
    assert "image/png" in shown and "application/pdf" not in shown


@pytest.mark.parametrize(("rows", "words", "wrapped"), [(40, 60, True), (40, 5, False), (8, 60, False)])
def test_a_long_table_of_long_lines_gets_widths_and_no_other(transform, rows, words, wrapped):
    group = nodes.tgroup("", *(nodes.colspec() for _ in range(2)), cols=2)
    cells = [[nodes.entry("", nodes.paragraph("", text)) for text in ("12 GB", "a" * words + "b" * words)]] * rows
    group += nodes.tbody("", *(nodes.row("", *(cell.deepcopy() for cell in row)) for row in cells))
    transform.document += nodes.table("", group)
    transform.fit_long_tables()
    specs = [node["spec"] for node in transform.document.findall(addnodes.tabular_col_spec)]
    assert len(specs) == wrapped
    if wrapped:
        first, last, whole = (
            int(number) for number in (*re.findall(r"X{(\d+)}", specs[0]), specs[0].split("{")[-1][:-1])
        )
        assert first + last == whole and last > 3 * first


def test_a_long_table_of_numbers_that_is_too_wide_keeps_its_sides(transform):
    group = nodes.tgroup("", *(nodes.colspec() for _ in range(2)), cols=2)
    row = nodes.row("", nodes.entry("", nodes.paragraph("", "x" * 90)), nodes.entry("", nodes.paragraph("", "12")))
    group += nodes.tbody("", *(row.deepcopy() for _ in range(40)))
    transform.document += [addnodes.tabular_col_spec(spec="lr"), nodes.table("", group)]
    transform.fit_long_tables()
    (spec,) = (node["spec"] for node in transform.document.findall(addnodes.tabular_col_spec))
    assert re.fullmatch(
        r">\{\\raggedright\\arraybackslash\}\\X\{\d+\}\{\d+\}>\{\\raggedleft\\arraybackslash\}\\X\{\d+\}\{\d+\}", spec
    )
