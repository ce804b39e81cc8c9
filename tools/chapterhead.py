"""A Sphinx extension that opens each chapter with its time, what it builds on and what it is for.

All three come from ``book/course.yaml``, as do the tables of the page for instructors.
"""

from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx import addnodes

from course import read_course, times_of
from pages import ROOT

__all__ = ["setup"]


def add_head(app: Any, doctree: nodes.document) -> None:
    """Insert the lines below the title of a chapter."""
    folder, _, name = app.env.docname.rpartition("/")
    course = read_course()
    chapter = course["chapters"].get(name) if folder == "book" else None
    title = next(iter(doctree.findall(nodes.title)), None)
    if chapter is None or title is None:
        return
    times = times_of((ROOT / "book" / f"{name}.md").read_text(encoding="utf-8"), course["rates"])
    line = nodes.paragraph("", f"Reading {times.reading} min · exercises {times.exercises} min")
    for index, need in enumerate(chapter["needs"]):
        line += nodes.Text(", " if index else " · builds on ")
        target = {"refdomain": "std", "reftype": "doc", "reftarget": f"/book/{need}", "refexplicit": True}
        line += addnodes.pending_xref(
            "", nodes.inline("", need.replace("_", " ")), refdoc=app.env.docname, refwarn=True, **target
        )
    outcomes = nodes.paragraph("", f"Afterwards you can {'; '.join(chapter['outcomes'])}.")
    head = nodes.container("", line, outcomes, classes=["mlsys-head"])
    title.parent.insert(title.parent.index(title) + 1, head)


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("doctree-read", add_head)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
