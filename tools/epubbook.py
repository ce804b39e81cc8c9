"""A Sphinx extension for ``make epub``: pages for an e-reader, without scripts and without anything to fetch.

Formulas become MathML. What needs a browser (labs, players, buttons, folded code, cards of claims) leaves the pages.
Each page is written as well-formed XHTML, whatever its cells printed.
"""

import html
import re
import warnings
import zipfile
from collections.abc import Set
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, XMLParsedAsHTMLWarning
from docutils import nodes  # type: ignore[import-untyped]
from latex2mathml.converter import convert
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.math import get_node_equation_number
from sphinx_exercise.nodes import solution_node  # type: ignore[import-untyped]

__all__ = ["Readable", "mathml", "mend_package", "mended_package", "setup", "xhtml"]

NEEDS_A_BROWSER = (
    "script", "style", "button", "input", "select", "textarea", "iframe", "object", "noscript", ".mlsys-card",
    ".mlsys-claims", ".mlsys-lab-static", ".mlsys-player", "details.hide", ".headerlink", ".copybtn",
)  # fmt: skip
"""Elements that leave the pages."""
_LEFT_OUT = {"tabindex", "role", "onclick", "contenteditable", "loading", "scope", "valign", "align", "border"}
_TAGS = {"center": "div", "tt": "code", "big": "span"}
_ENVIRONMENT = re.compile(r"\\begin\{(align|gather|equation|eqnarray)(\*?)\}")
_BARE = re.compile(r"<(?=[\s<])|<$|&(?!#?\w+;)|(?<=>)>")
"""Signs of a formula that its converter leaves as they are."""
_NUMBERING = re.compile(r"\\(?:nonumber|notag|label\{[^}]*\}|tag\*?\{[^}]*\})")


def mathml(latex: str, *, display: bool) -> str:
    """Return a formula in TeX as MathML.

    Examples
    --------
    >>> mathml(r"t = \\frac{W}{P}", display=False)[:77]
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><mi>t'
    """
    latex = _NUMBERING.sub("", latex).strip().replace("<", r"\lt ").replace(">", r"\gt ")
    if not _ENVIRONMENT.search(latex) and r"\\" in latex and r"\begin" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    formula = convert(latex, display="block" if display else "inline")
    return _BARE.sub(lambda sign: html.escape(sign[0]), formula)


def xhtml(body: str) -> str:
    """Return a fragment of HTML as well-formed XHTML, without what needs a browser.

    Examples
    --------
    >>> xhtml('<p>one<br>two <input disabled><img alt="roof" src="a.svg"></p>')
    '<p>one<br/>two <img alt="roof" src="a.svg"/></p>'
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        soup = BeautifulSoup(body, "html.parser")
    for element in soup.select(", ".join(NEEDS_A_BROWSER)):
        element.decompose()
    seen: set[str] = set()
    for element in soup.find_all(True):
        element.name = _TAGS.get(element.name, element.name)
        in_math = element.name == "math" or element.find_parent("math") is not None
        for name in list(element.attrs):
            if name.startswith("data-") or (name in _LEFT_OUT and not in_math):
                del element[name]
        label = element.get("id")
        if isinstance(label, str):
            if label in seen:
                del element["id"]
            seen.add(label)
        if element.name == "img" and not element.get("alt"):
            element["alt"] = ""
    return soup.decode(formatter="minimal")


class Readable(SphinxPostTransform):
    """Transform of one page, after all references are resolved."""

    default_priority = 900
    formats = ("html",)

    def run(self, **options: Any) -> None:
        """Remove the code that the HTML book folds, and, in the edition without them, the solutions."""
        for cell in list(self.document.findall(nodes.container)):
            if cell.get("hide_mode") in ("input", "all") or "lab.show()" in cell.astext():
                for child in list(cell):
                    if child.get("nb_element") == "cell_code_source":
                        cell.remove(child)
        if not self.app.config.printed_solutions:
            for solution in list(self.document.findall(solution_node)):
                solution.parent.remove(solution)


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(mathml(node.astext(), display=False))
    raise nodes.SkipNode


def _displayed(translator: Any, node: Any) -> None:
    number = ""
    if node["number"]:
        number = f' <span class="eqno">({get_node_equation_number(translator, node)})</span>'
    label = f' id="equation-{nodes.make_id(node["label"])}"' if node["label"] else ""
    translator.body.append(f'<div class="math"{label}>{mathml(node.astext(), display=True)}{number}</div>\n')
    raise nodes.SkipNode


def clean(app: Any, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Write a page as XHTML, and name no script."""
    context["script_files"] = []
    context["css_files"] = [each for each in context.get("css_files", []) if "epub.css" in str(each)]
    if "body" in context:
        context["body"] = xhtml(context["body"])


def mend_package(path: Path) -> None:
    """Complete the package file of an EPUB: pages with formulas say so, and each page is read in its order.

    Sphinx lists pages of a folder of their own a second time, under names that the package lacks.
    """
    with zipfile.ZipFile(path) as book:
        files = {info: book.read(info) for info in book.infolist()}
    formulas = {info.filename for info, content in files.items() if b"<math " in content}
    draft = path.with_suffix(".draft")
    with zipfile.ZipFile(draft, "w") as book:
        for info, content in files.items():
            if info.filename == "content.opf":
                content = mended_package(content.decode(), formulas).encode()
            book.writestr(info, content)
    draft.replace(path)


def mended_package(package: str, formulas: Set[str]) -> str:
    """Return a package file whose items and order agree, where ``formulas`` names the pages with MathML.

    Examples
    --------
    >>> print(mended_package('''<item id="a" href="a.xhtml" media-type="application/xhtml+xml" />
    ... <itemref idref="a" linear="no" /><itemref idref="b" />''', {"a.xhtml"}))
    <item id="a" href="a.xhtml" media-type="application/xhtml+xml" properties="mathml" />
    <itemref idref="a" />
    """
    known = set(re.findall(r'<item id="([^"]+)"', package))

    def item(found: re.Match[str]) -> str:
        return f'{found[1]} properties="mathml" />' if found[2] in formulas else found[0]

    package = re.sub(r'(<item id="[^"]+" href="([^"]+)" media-type="[^"]+") />', item, package)
    package = re.sub(r'\s*<itemref idref="([^"]+)"[^>]*/>', lambda m: m[0] if m[1] in known else "", package)
    return package.replace(' linear="no"', "")


def setup(app: Any) -> dict[str, bool]:
    """Register the transform, the formulas and the cleaning of the pages."""
    app.add_config_value("printed_solutions", True, "env")
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
    app.add_post_transform(Readable)
    app.connect("html-page-context", clean, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
