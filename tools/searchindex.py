"""A Sphinx extension that controls the search index of the HTML book.

Words of ``book/search.yaml`` become entries of the search index, each at its section. Claim cards, lists of claims and
the code of folded cells are left out: they repeat names that the text explains elsewhere.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes  # type: ignore[import-untyped]
from sphinx import addnodes
from sphinx.errors import ExtensionError

__all__ = ["setup"]

WORDS = Path(__file__).resolve().parent.parent / "book" / "search.yaml"
NOT_SEARCHED = re.compile(r"""class=["'][^"']*\bmlsys-(?:card|claims|tables)\b""")
"""HTML of cells that repeat what is stated elsewhere."""


def search_words(path: Path = WORDS) -> dict[str, dict[str, list[str]]]:
    """Return the words by page and by section of the page."""
    words: dict[str, dict[str, list[str]]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return words


def words_added(docname: str, doctree: nodes.document) -> Iterator[addnodes.index]:
    """Yield index entries for the words of one page.

    Raises
    ------
    ExtensionError
        If the page has no such section.
    """
    known = {name for section in doctree.findall(nodes.section) for name in section["ids"]}
    folder, _, name = docname.rpartition("/")
    for section, words in search_words().get(name, {}).items() if folder == "book" else ():
        if section and section not in known:
            raise ExtensionError(f"{WORDS.name} sends {words} to {docname}#{section}, and there is no such section")
        yield addnodes.index(entries=[("single", word, section, "main", None) for word in words])


def left_out(doctree: nodes.document) -> Iterator[nodes.Element]:
    """Yield the nodes whose words are not indexed."""
    for node in doctree.findall(nodes.Element):
        if isinstance(node, nodes.paragraph) and "mlsys-calls" in node["classes"]:
            yield node
        if isinstance(node, nodes.raw) and NOT_SEARCHED.search(node.astext()):
            yield node
        if isinstance(node, nodes.container) and {"tag_hide-cell", "tag_hide-input"} & set(node["classes"]):
            yield from (part for part in node.findall(nodes.container) if "cell_input" in part["classes"])


@contextlib.contextmanager
def as_searched(docname: str, doctree: nodes.document) -> Iterator[None]:
    """Temporarily reduce a page to what is indexed, since the same tree is written as HTML afterwards."""
    taken = [(node, node.children) for node in left_out(doctree)]
    added = list(words_added(docname, doctree))
    for node, _ in taken:
        node.children = []
    doctree.children.extend(added)
    try:
        yield
    finally:
        if added:
            del doctree.children[-len(added) :]
        for node, children in taken:
            node.children = children


def change_index(app: Any) -> None:
    """Make the builder index the reduced form of every page."""
    whole = getattr(app.builder, "index_page", None)
    if whole is None:
        return  # not HTML

    def index_page(pagename: str, doctree: nodes.document, title: str) -> None:
        with as_searched(pagename, doctree):
            whole(pagename, doctree, title)

    app.builder.index_page = index_page


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("builder-inited", change_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
