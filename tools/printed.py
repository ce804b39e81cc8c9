"""A Sphinx extension for ``make pdf`` that adapts the book to print.

Folded cells lose their code, a table keeps its caption, solutions and claims move to the end.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes  # type: ignore[import-untyped]
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node  # type: ignore[import-untyped]

from claimsinprint import claims_of_a_page, facts_and_sources
from mlsys.tables import is_numeric
from pageparse import parse
from strip_solutions import without_solutions

__all__ = ["Printed", "setup"]

BACK_MATTER = "book/bibliography"
"""The chapter before which the solutions and the claims are inserted."""
CLAIMS = "what-this-page-claims"
BOX_ROOM = "\\needspace{6\\baselineskip}"
BOX_SKIP = "\\vspace{-1.2\\baselineskip}"
OUTPUT_ROOM = 8
"""Lines of an output that stay with the code above it."""
FIGURE_ROOM = 24
"""Lines of code that a figure is as high as."""
ROW_ROOM = 1.3
"""Lines of code that a row of a table is as high as."""
LONG_TABLE = 25
"""Rows that fit on a page with their caption; a longer table may break."""
SPHINX_LONG = 30
"""Rows beyond which Sphinx sets a table in an environment that breaks, and has other names for its columns."""

ALIGN = {"l": ">{\\raggedright\\arraybackslash}", "r": ">{\\raggedleft\\arraybackslash}"}
"""What aligns a column of a given width, by its side."""
LONG_LINE = 90
"""Sum over the columns of the letters in their widest cells that a page has room for."""


class Printed(SphinxPostTransform):
    """Transform of the tree of the whole book, after all references are resolved."""

    default_priority = 900
    formats = ("latex",)

    def run(self, **options: Any) -> None:
        """Transform the tree in place."""
        self.number()
        self.join_index()
        claims = self.gathered_claims()
        self.fold()
        self.keep_cells()
        self.keep_captions()
        self.fit_long_tables()
        solutions = self.gathered_solutions() if self.app.config.printed_solutions else self.no_solutions()
        last = next(file for file in self.document.findall(addnodes.start_of_file) if file["docname"] == BACK_MATTER)
        parent, at = last.parent, last.parent.index(last)
        parent[at:at] = [*([solutions] if len(solutions) > 1 else []), claims]

    def number(self) -> None:
        """Number only the chapters of parts that the HTML book numbers, so that both agree."""
        for part in self.document.findall(addnodes.start_of_file):
            if part["docname"] in self.unnumbered:
                part.insert(0, _raw("\\setcounter{secnumdepth}{-2}\\setcounter{chapter}{0}"))
            elif not part["docname"].startswith(("book/", "labs/")):
                part.insert(0, _raw("\\setcounter{secnumdepth}{2}"))

    def join_index(self) -> None:
        """Write the hyphen of an entry as a character of its own: Sphinx's macro for it parts a term from its page.

        TeX writes that macro with a space behind it where a glossary defines the term, and without elsewhere.
        """
        for node in self.document.findall(addnodes.index):
            node["entries"] = [(kind, text.replace("-", "\N{HYPHEN}"), *rest) for kind, text, *rest in node["entries"]]

    @property
    def unnumbered(self) -> set[str]:
        """Captions of unnumbered parts."""
        parts = yaml.safe_load((Path(self.app.srcdir) / "_toc.yml").read_text(encoding="utf-8"))["parts"]
        return {part["caption"] for part in parts if not part.get("numbered")}

    def fold(self) -> None:
        """Remove the code that the HTML book folds (claims, checks, drawing), and that which opens labs.

        A lab's figure is removed as well: it is empty before the prediction.
        """
        for cell in list(self.document.findall(nodes.container)):
            if cell.get("hide_mode") in ("input", "all") or _in_a_lab(cell):
                for child in list(cell):
                    if child.get("nb_element") == "cell_code_source":
                        cell.remove(child)
                        if "lab.show()" in child.astext():
                            for picture in list(cell.findall(nodes.image)):
                                picture.parent.remove(picture)

    def keep_cells(self) -> None:
        """Keep the end of the code of a cell on one page with the beginning of what it prints."""
        for cell in list(self.document.findall(nodes.container)):
            if cell.get("nb_element") != "cell_code":
                continue
            parts = {part.get("nb_element"): part for part in cell if isinstance(part, nodes.Element)}
            source, output = parts.get("cell_code_source"), parts.get("cell_code_output")
            if source is not None and output is not None:
                room = f"\\keepcell{{{_lines(source)}}}{{{_room(output)}}}"
                cell.parent.insert(cell.parent.index(cell), _raw(room))

    def keep_captions(self) -> None:
        """Keep a table on the page of its title, and right-align its numbers."""
        for table in list(self.document.findall(nodes.table)):
            title = table.parent[max(0, table.parent.index(table) - 1)]
            shown = [child for child in title if child.astext()] if isinstance(title, nodes.paragraph) else []
            if not (len(shown) == 1 and isinstance(shown[0], nodes.strong)):
                continue
            rows = sum(1 for _ in table.findall(nodes.row))
            if rows <= LONG_TABLE:
                opening, closing = "\\par\\noindent\\begin{minipage}{\\linewidth}\\small", "\\end{minipage}\\par"
            else:
                opening, closing = "\\needspace{12\\baselineskip}{\\small", "}"
            parent, at = title.parent, title.parent.index(title)
            parent[at : at + 2] = [_raw(opening), title, *_sides(table, rows), table, _raw(closing)]

    def fit_long_tables(self) -> None:
        """Give the columns of a long table widths where its lines are too long for the page.

        Sphinx breaks the cells of short tables by itself, and of long ones only in columns of a given width.
        """
        for table in list(self.document.findall(nodes.table)):
            lines = [[entry.astext() for entry in row] for row in table.findall(nodes.row)]
            at = table.parent.index(table)
            longest = [max(map(len, column)) for column in zip(*lines, strict=True)]
            if len(lines) <= SPHINX_LONG or sum(longest) <= LONG_LINE:
                continue
            before = table.parent[at - 1]
            sides = before["spec"] if isinstance(before, addnodes.tabular_col_spec) else "l" * len(longest)
            if isinstance(before, addnodes.tabular_col_spec):
                table.parent.remove(before)
            shares = [math.ceil(10 * math.sqrt(max(letters, 4))) for letters in longest]
            columns = zip(sides, shares, strict=True)
            spec = "".join(f"{ALIGN[side]}\\X{{{share}}}{{{sum(shares)}}}" for side, share in columns)
            table.parent.insert(table.parent.index(table), addnodes.tabular_col_spec(spec=spec))

    def chapters(self) -> Iterator[tuple[nodes.Element, str]]:
        """Yield every chapter with its title."""
        for file in self.document.findall(addnodes.start_of_file):
            section = next((child for child in file.children if isinstance(child, nodes.section)), None)
            if section is not None and file["docname"].startswith(("book/", "labs/")):
                yield file, next(section.findall(nodes.title)).astext()

    def gathered_solutions(self) -> nodes.section:
        """Move the solutions out of the chapters; each exercise refers to the page of its solution."""
        appendix = _section("Solutions of the exercises", "printed-solutions")
        exercises = {exercise["label"]: exercise for exercise in self.document.findall(exercise_enumerable_node)}
        for exercise in exercises.values():
            self.keep_box(exercise)
        for file, title in list(self.chapters()):
            solutions = [solution for solution in file.findall(solution_node) if not solution["hidden"]]
            if not solutions:
                continue
            chapter = _section(title, f"printed-solutions-{nodes.make_id(file['docname'])}")
            for solution in solutions:
                solution.parent.remove(solution)
                label = f"solution:{nodes.make_id(solution['label'])}"
                closer = BOX_SKIP if len(chapter) > 1 else ""  # not to the heading
                room = f"{closer}{BOX_ROOM}{_room_of_first_cell(solution)}"
                chapter += [_raw(f"{room}\\phantomsection\\label{{{label}}}"), solution]
                exercise = exercises.get(solution["target_label"])
                if exercise is not None:
                    _last(exercise).append(_raw(f"\\atlineend{{Solution on page~\\pageref{{{label}}}.}}"))
            # References inside a solution are to its own chapter.
            appendix += addnodes.start_of_file("", chapter, docname=file["docname"])
        return appendix

    def keep_box(self, box: nodes.Element) -> None:
        """Prevent a page break after the title of a box and after the heading before the first box.

        Boxes that follow each other are set closer: each brings its own space above and below.
        """
        section, at = box.parent, box.parent.index(box)
        if at == 1 and isinstance(section[0], nodes.title):
            section.parent.insert(section.parent.index(section), _raw("\\needspace{10\\baselineskip}"))
        else:
            section.insert(at, _raw(f"{BOX_SKIP}{BOX_ROOM}"))

    def no_solutions(self) -> list[nodes.Node]:
        """Remove the solutions: the option of sphinx-exercise would keep those that contain cells."""
        for solution in list(self.document.findall(solution_node)):
            solution.parent.remove(solution)
        return []

    def records(self) -> dict[str, Any]:
        """Return the claims of each page; without solutions, omit claims that only these state."""
        root = Path(self.app.srcdir)
        records: dict[str, Any] = json.loads((root / "_build" / "claims.json").read_text(encoding="utf-8"))
        if self.app.config.printed_solutions:
            return records
        left = {}
        for name, record in records.items():
            path = root / f"{name}.md"
            left[name] = without_solutions(parse(path), path.read_text(encoding="utf-8"), record)
        return left

    def gathered_claims(self) -> nodes.section:
        """Replace the lists of claims of the chapters by one list of all claims, facts and sources."""
        for section in list(self.document.findall(nodes.section)):
            if any(name.startswith(CLAIMS) for name in section["ids"]):
                section.parent.remove(section)
        for cell in list(self.document.findall(nodes.container)):  # on the first page no heading stands over them
            if cell.get("nb_element") == "cell_code" and "claims_table()" in cell.astext():
                cell.parent.remove(cell)
        appendix = _section("What the pages claim", "printed-claims")
        records = self.records()
        appendix += nodes.paragraph(
            "",
            "Every number that the text takes from a calculation is listed here by chapter, each with the sum it "
            "came from; the facts that the sums depend on follow once for the whole book, and the sources of the facts "
            "after them.",
        )
        for file, title in self.chapters():
            record = records.get(file["docname"])
            if record and record["claims"]:
                chapter = _section(title, f"printed-claims-{nodes.make_id(file['docname'])}")
                chapter += _raw(claims_of_a_page(record))
                appendix += chapter
        facts, sources = facts_and_sources(records.values())
        for title, text in (("Facts", facts), ("Sources of the facts", sources)):
            chapter = _section(title, f"printed-{nodes.make_id(title)}")
            chapter += _raw(text)
            appendix += chapter
        return appendix


def _sides(table: nodes.table, rows: int) -> list[nodes.Node]:
    """Return the TeX column alignment of a table with numeric columns, or nothing."""
    body = table.next_node(nodes.tbody)
    lines = [[entry.astext().replace("\N{NO-BREAK SPACE}", " ").strip() for entry in row] for row in body]
    right = [is_numeric(column) for column in zip(*lines, strict=True)]
    if not any(right) or abs(rows - SPHINX_LONG) < 3:
        return []
    left, numbers = "lr" if rows > SPHINX_LONG else "TR"
    return [addnodes.tabular_col_spec(spec="".join(numbers if side else left for side in right))]


def _section(title: str, name: str) -> nodes.section:
    section = nodes.section("", nodes.title("", title), ids=[name], names=[name])
    section["docname"] = BACK_MATTER
    return section


def _in_a_lab(node: nodes.Node) -> bool:
    while node is not None and not str(node.get("docname", "")).startswith("labs/"):
        node = node.parent
    return node is not None


def _lines(node: nodes.Element) -> int:
    text: str = node.astext()
    return text.count("\n") + 1


def _room(output: nodes.Element) -> int:
    """Return the lines of code that the part of an output is as high as which must not part from its code."""
    if any(output.findall(nodes.image)):
        return FIGURE_ROOM
    rows = max((sum(1 for _ in table.findall(nodes.row)) for table in output.findall(nodes.table)), default=0)
    if rows:  # a short table is not broken
        return math.ceil(ROW_ROOM * rows) + 3 if rows <= LONG_TABLE else OUTPUT_ROOM + 3
    return min(_lines(output), OUTPUT_ROOM)


def _last(box: nodes.Element) -> nodes.Element:
    """Return the paragraph that ends a box, or the box where it ends in something else."""
    last = box
    while isinstance(last, nodes.Element) and len(last) and not isinstance(last, nodes.paragraph):
        last = last[-1]
    return last if isinstance(last, nodes.paragraph) else box


def _room_of_first_cell(box: nodes.Element) -> str:
    """Take the room that a cell asks for out of a box that it opens: inside, the title would part from the cell."""
    shown = (nodes.raw, nodes.paragraph, nodes.literal_block, nodes.list_item)
    first = next((node for node in box.findall(nodes.Node) if isinstance(node, shown)), None)
    if not isinstance(first, nodes.raw) or "\\keepcell" not in first.astext():
        return ""
    first.parent.remove(first)
    return str(first.astext()).strip()


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", f"{text}\n", format="latex")


def setup(app: Any) -> dict[str, bool]:
    """Register the transform."""
    app.add_config_value("printed_solutions", True, "env")
    app.add_post_transform(Printed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
