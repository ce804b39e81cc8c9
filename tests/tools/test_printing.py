"""Printing looks for its programs and fonts first, and makes an edition without solutions."""

import pytest
import yaml
from PIL import Image

from book import BookError, refuse_coarse_figures
from pages import ROOT
from printing import FONTS, PROGRAMS, STYLES, edition, missing


def everything(command):
    return "\n".join(FONTS) if command[0] == "fc-list" else "/somewhere/file"


def test_nothing_is_missing_where_everything_is_there():
    assert missing(which=lambda name: f"/usr/bin/{name}", answer=everything) == {}


def test_a_font_that_is_not_there_is_named_with_its_package():
    def answer(command):
        return everything(command).replace("TeX Gyre Heros", "")

    assert missing(which=lambda name: name, answer=answer) == {"TeX Gyre Heros": "fonts-texgyre"}


def test_a_bare_machine_lacks_every_program():
    assert missing(which=lambda name: None, answer=everything) == {**PROGRAMS, "fc-list": "fontconfig"}


def test_a_style_that_tex_does_not_find_is_named():
    lost = missing(which=lambda name: name, answer=lambda c: "" if "tabulary.sty" in c else everything(c))
    assert lost == {"tabulary.sty": STYLES["tabulary.sty"]}


def test_fonts_are_those_of_the_settings():
    preamble = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]["latex_elements"]["fontpkg"]
    assert all(f"{{{font}}}" in preamble for font in FONTS)


def test_editions_differ_in_the_solutions_alone(tmp_path):
    load = yaml.safe_load
    with_, without = (load(edition(ROOT, tmp_path, solutions=wanted).read_text()) for wanted in (True, False))
    assert with_["sphinx"]["config"].pop("printed_solutions") and not without["sphinx"]["config"].pop(
        "printed_solutions"
    )
    assert with_ == without
    with_["sphinx"]["config"]["extensions"].remove("printed")  # what print does differently from the HTML book
    assert with_ == load((ROOT / "_config.yml").read_text())


def pictures(folder, **saved):
    lines = []
    for name, (width, dpi) in saved.items():
        Image.new("1", (width, 10)).save(folder / f"{name}.png", **({"dpi": (dpi, dpi)} if dpi else {}))
        lines.append(rf"\noindent\sphinxincludegraphics[height=3cm]{{{{{name}}}.png}}")
    (folder / "book.tex").write_text("\n".join([*lines, r"\sphinxincludegraphics{{drawn}.pdf}"]))


def test_a_bitmap_of_too_few_pixels_stops_the_book_and_is_said_of_a_draft(tmp_path, capsys):
    pictures(tmp_path, small=(300, 300), wide=(1900, None))  # 160 mm, in print, are 6.3 inches: 302 an inch
    refuse_coarse_figures(tmp_path, draft=False)
    refuse_coarse_figures(tmp_path, draft=True)
    assert capsys.readouterr().out == ""
    pictures(tmp_path, screen=(782, 110), wide=(1900, None))
    with pytest.raises(BookError, match=r"screen\.png: 124 pixels per inch"):
        refuse_coarse_figures(tmp_path, draft=False)
    refuse_coarse_figures(tmp_path, draft=True)
    assert "A draft: 1 figures" in capsys.readouterr().out
