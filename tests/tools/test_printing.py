"""Printing looks for its programs and fonts first, and makes an edition without solutions."""

import yaml

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
