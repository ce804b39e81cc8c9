"""A Sphinx extension for ``make book SOLUTIONS=no``: pages, search index and sources without solutions.

Solutions leave the pages before they are written and indexed, claims that only solutions state leave the lists of
claims, labs, which mark answers in the browser, leave their text, and the copies of the sources lose the same.
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_exercise.nodes import solution_node  # type: ignore[import-untyped]

from mlsys.claims.render import ClaimsTable, expanded
from mlsys.files import write_text
from pageparse import parse
from strip_solutions import source_without_solutions, without_solutions

__all__ = ["Unsolved", "setup", "strip_sources"]

CLOSED = "This edition marks no answers. Open the lab in JupyterLab or Colab: there it draws your own numbers."


class Unsolved(SphinxPostTransform):
    """Transform of one page, after all references are resolved."""

    default_priority = 900
    formats = ("html",)

    def run(self, **options: Any) -> None:
        """Transform the tree in place."""
        for solution in list(self.document.findall(solution_node)):
            solution.parent.remove(solution)
        if self.env.docname.startswith("labs/"):
            self.close_lab()
        else:
            self.shorten_claims()

    def close_lab(self) -> None:
        """Replace the outputs of a lab, which hold its answers, by a sentence."""
        result = False
        for cell in _cells(self.document):
            outputs = [part for part in cell if isinstance(part, nodes.Element) and part.get("nb_element") == _OUTPUT]
            for output in outputs:
                place = cell.index(output)
                cell[place : place + 1] = [] if result else [nodes.paragraph("", CLOSED)]
                result = True

    def shorten_claims(self) -> None:
        """Render the list of claims anew, without those that only solutions state."""
        record = _records(Path(self.app.srcdir)).get(self.env.docname)
        path = Path(self.env.doc2path(self.env.docname))
        if record is None:
            return
        left = without_solutions(parse(path), path.read_text(encoding="utf-8"), expanded(record))
        for cell in _cells(self.document):
            if "claims_table()" not in cell.astext():
                continue
            for raw in list(cell.findall(nodes.raw)):
                if "mlsys-tables" in raw.astext():
                    raw.children = []
                    raw += nodes.Text(ClaimsTable(left)._repr_html_())
                    raw.rawsource = raw.astext()


_OUTPUT = "cell_code_output"


def _cells(document: Any) -> list[Any]:
    return [node for node in document.findall(nodes.container) if node.get("nb_element") == "cell_code"]


def _records(root: Path) -> dict[str, Any]:
    """Return the claims of each page, as ``write_claims`` of tools/book.py wrote them."""
    try:
        found: dict[str, Any] = json.loads((root / "_build" / "claims.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def strip_sources(folder: Path) -> None:
    """Remove the solutions from the copies of sources that a built book offers for download.

    Parameters
    ----------
    folder
        ``_sources`` of the built book.
    """
    for path in sorted(folder.rglob("*.md*")):
        text = path.read_text(encoding="utf-8")
        write_text(path, source_without_solutions(parse(path, text), text))


def _finished(app: Any, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        strip_sources(Path(app.outdir) / "_sources")


def setup(app: Any) -> dict[str, bool]:
    """Register the transform, and the change of the sources at the end."""
    app.add_post_transform(Unsolved)
    app.connect("build-finished", _finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
