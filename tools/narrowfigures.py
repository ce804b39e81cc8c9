"""A Sphinx extension that shows a figure on phones in the narrow layout that its SVG carries.

``mlsys.viz`` keeps that layout in the metadata of the SVG (:func:`mlsys.viz.narrow.svg_with_narrow`). Here it becomes a
file of its own, which a browser loads instead of the wide one where the screen is narrow, and never in print. The EPUB
and the PDF have the wide one.
"""

import re
from pathlib import Path
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]

from mlsys.files import write_bytes, write_text
from mlsys.viz.narrow import split_narrow

__all__ = ["NARROW", "beside", "setup", "with_narrow"]

NARROW = "screen and (max-width: 600px)"
"""Screens that show the narrow layout; as in ``book/static/custom.css``."""
_IMAGE = re.compile(r'<img\b[^>]*\bsrc="(?P<folder>[^"]*/|)(?P<name>[^"/]+)\.svg"[^>]*>')


def beside(wide: Path) -> Path:
    """Return the file of the narrow layout beside that of the wide one."""
    return wide.with_name(f"{wide.stem}-narrow.svg")


def split(app: Any, doctree: nodes.document) -> None:
    """Part the two layouts of each figure of a page into two files."""
    for image in doctree.findall(nodes.image):
        wide = Path(app.srcdir) / image["uri"].lstrip("/")
        if wide.suffix == ".svg" and wide.is_file():
            alone, narrow = split_narrow(wide.read_text(encoding="utf-8"))
            if narrow is not None:
                write_text(beside(wide), narrow)
                write_text(wide, alone)


def with_narrow(body: str, known: set[str]) -> str:
    """Return the HTML of a page, with a second source for each image of which a narrow layout is known.

    Examples
    --------
    >>> print(with_narrow('<img alt="A roof" src="../_images/ab.svg" />', {"ab"}))
    <picture><source media="screen and (max-width: 600px)" srcset="../_images/ab-narrow.svg" /><img alt="A roof" \
src="../_images/ab.svg" /></picture>
    """

    def two(image: re.Match[str]) -> str:
        if image["name"] not in known:
            return image[0]
        source = f'<source media="{NARROW}" srcset="{image["folder"]}{image["name"]}-narrow.svg" />'
        return f"<picture>{source}{image[0]}</picture>"

    return _IMAGE.sub(two, body)


def add_sources(app: Any, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Offer the narrow layouts of a page's figures to its browser, and bring their files."""
    if doctree is None or app.builder.name != "html":
        return
    known = set()
    for uri, name in app.builder.images.items():  # not from the nodes: the writer has put addresses of the HTML there
        source = beside(Path(app.srcdir) / uri.lstrip("/"))
        if source.is_file():
            target = beside(Path(app.outdir) / app.builder.imagedir / name)
            write_bytes(target, source.read_bytes(), folders=True)
            known.add(Path(name).stem)
    context["body"] = with_narrow(context["body"], known)


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("doctree-read", split)
    app.connect("html-page-context", add_sources)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
