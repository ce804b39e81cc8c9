"""A Sphinx extension that opens each chapter and lab with its time, what it builds on and what it is for.

They come from ``book/course.yaml``, as do the tables of the page for instructors.
"""

from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx import addnodes

from course import read_course, times_of
from pages import ROOT

__all__ = ["setup"]


def add_head(app: Any, doctree: nodes.document) -> None:
    """Insert the lines below the title of a chapter or a lab."""
    folder, _, name = app.env.docname.rpartition("/")
    course = read_course()
    title = next(iter(doctree.findall(nodes.title)), None)
    if title is None:
        return
    if folder == "book" and name in course["chapters"]:
        page, needs = course["chapters"][name], course["chapters"][name]["needs"]
        times = times_of((ROOT / "book" / f"{name}.md").read_text(encoding="utf-8"), course["rates"])
        time = f"Reading about {times.reading} min · exercises about {times.exercises} min"
    elif folder == "labs" and name in course["labs"]:
        page = course["labs"][name]
        needs, time = [page["after"]], f"Planned for {page['minutes']} min"
    else:
        return
    line = nodes.paragraph("", time)
    for index, need in enumerate(needs):
        line += nodes.Text(", " if index else " · builds on ")
        target = {"refdomain": "std", "reftype": "doc", "reftarget": f"/book/{need}", "refexplicit": True}
        line += addnodes.pending_xref(
            "", nodes.inline("", need.replace("_", " ")), refdoc=app.env.docname, refwarn=True, **target
        )
    outcomes = nodes.paragraph("", f"Afterwards you can {'; '.join(page['outcomes'])}.")
    title.parent.insert(title.parent.index(title) + 1, nodes.container("", line, outcomes, classes=["mlsys-head"]))


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("doctree-read", add_head)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
