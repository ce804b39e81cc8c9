"""Pages for e-readers are XML, their formulas MathML, and nothing in them needs a script or a request."""

import re
import xml.etree.ElementTree as ET
import zipfile

import yaml

from epubbook import mathml, mend_package, xhtml
from pages import ROOT, notebook_files
from printing import epub_edition

FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$`])\$([^$\n`]+)\$(?!\d)", re.DOTALL)
MATH = "{http://www.w3.org/1998/Math/MathML}"


def test_every_formula_of_the_book_becomes_mathml() -> None:
    found = 0
    for path in notebook_files():
        text = re.sub(r"^(`{3,}|~{3,})\{?(?:code-cell|python|text|bash).*?^\1", "", path.read_text("utf-8"),
                      flags=re.DOTALL | re.MULTILINE)  # fmt: skip
        for displayed, inline in FORMULA.findall(text):
            tree = ET.fromstring(mathml(displayed or inline, display=bool(displayed)))
            words = "".join(tree.itertext())
            assert tree.tag == f"{MATH}math" and words and "\\" not in words, (path.name, displayed or inline)
            found += 1
    assert found > 300


def test_a_fraction_is_one() -> None:
    fraction = ET.fromstring(mathml(r"t \ge \frac{W}{P}", display=True)).find(f".//{MATH}mfrac")
    assert fraction is not None and [part.tag for part in fraction.iter()][1:].count(f"{MATH}mi") == 2


def test_what_a_cell_prints_becomes_xml_without_scripts() -> None:
    page = xhtml(
        '<div id="a"><p>95%<br><span class="mlsys-card">how</span><img src="f.svg"><td scope=row nowrap>&nbsp;x</td>'
        '<script src="https://elsewhere.org/a.js"></script><input disabled><p id="a">again'
        '<details class="hide"><summary><p>Show code</p></summary></details></div>'
    )
    tree = ET.fromstring(page)
    assert {each.tag for each in tree.iter()} == {"div", "p", "br", "span", "img", "td"} - {"span"}
    assert [each.get("id") for each in tree.iter() if each.get("id")] == ["a"], "no id stands twice"
    assert "elsewhere" not in page and "how" not in page


def test_the_package_names_pages_with_formulas_and_lists_each_once(tmp_path) -> None:
    path = tmp_path / "book.epub"
    package = (
        '<package><item id="e-1" href="a.xhtml" media-type="application/xhtml+xml" />'
        '<item id="e-2" href="b.xhtml" media-type="application/xhtml+xml" />'
        '<itemref idref="e-1" /><itemref idref="e-9" /><itemref idref="e-2" linear="no" /></package>'
    )
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr("a.xhtml", mathml("x", display=False), zipfile.ZIP_DEFLATED)
        book.writestr("b.xhtml", "<p>x</p>")
        book.writestr("content.opf", package)
    mend_package(path)
    with zipfile.ZipFile(path) as book:
        assert book.namelist()[0] == "mimetype" and book.infolist()[0].compress_type == zipfile.ZIP_STORED
        tree = ET.fromstring(book.read("content.opf"))
    assert [item.get("properties") for item in tree.findall("item")] == ["mathml", None]
    assert [item.attrib for item in tree.findall("itemref")] == [{"idref": "e-1"}, {"idref": "e-2"}]


def test_the_edition_brings_no_scripts(tmp_path) -> None:
    settings = yaml.safe_load(epub_edition(ROOT, tmp_path, solutions=False).read_text())
    config = settings["sphinx"]["config"]
    assert config["html_js_files"] == [] and config["html_math_renderer"] == "mathml"
    assert not config["printed_solutions"] and "epubbook" in config["extensions"]
