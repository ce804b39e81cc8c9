"""The palette can be read: on white, and in the dark book and reports, where the style turns lightness round."""

import io
import itertools
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from mlsys import viz
from mlsys.cli.page import STYLE
from mlsys.viz.style import COLORS, CYCLE
from pages import ROOT

STYLE_SHEET = (ROOT / "book/static/custom.css").read_text("utf-8")
DARK_PAGE = "#121212"
LINES = [name for name in COLORS if name.endswith("Line")]


def rgb(color: str) -> np.ndarray:
    return np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255


def turned(color: np.ndarray) -> np.ndarray:
    """Return a colour as a browser shows it under ``invert(1) hue-rotate(180deg)``, screened over the dark page.

    Filter Effects Module Level 1 (W3C), 4.2: hueRotate at an angle of 180 degrees, on sRGB values.
    """
    luminance = np.array([0.213, 0.715, 0.072])
    matrix = 2 * np.tile(luminance, (3, 1)) - np.eye(3)
    filtered = np.clip(matrix @ (1 - color), 0, 1)
    return 1 - (1 - filtered) * (1 - rgb(DARK_PAGE))  # Compositing Level 1, "screen"


def contrast(first: np.ndarray, other: np.ndarray) -> float:
    """Return the contrast ratio of WCAG 2.2."""

    def luminance(color: np.ndarray) -> float:
        linear = np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)
        return float(linear @ np.array([0.2126, 0.7152, 0.0722]))

    dark, light = sorted((luminance(first), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def seen(name: str, dark: bool) -> np.ndarray:
    color = rgb(COLORS.get(name, name))
    return turned(color) if dark else color


def test_the_ratio_is_that_of_the_guideline() -> None:
    assert contrast(rgb("#000000"), rgb("#ffffff")) == pytest.approx(21)
    assert contrast(rgb("#777777"), rgb("#ffffff")) == pytest.approx(4.48, abs=0.01)  # WebAIM's well-known example


def test_the_style_sheet_does_what_is_computed_here() -> None:
    assert "filter: invert(1) hue-rotate(180deg);" in STYLE_SHEET
    assert "mix-blend-mode: screen;" in STYLE_SHEET
    assert np.allclose(turned(rgb("#ffffff")), rgb(DARK_PAGE)), "what is white vanishes against the page"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_lines_and_words_stand_out(dark: bool) -> None:
    for name in [*LINES, "primary", "note"]:
        assert contrast(seen(name, dark), seen("#ffffff", dark)) >= 4.5, f"{name}: words are written in it"
    assert contrast(seen("axis", dark), seen("#ffffff", dark)) >= 3


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_fills_carry_words_and_have_an_edge(dark: bool) -> None:
    for line in LINES:
        fill = seen(line.replace("Line", "L"), dark)
        assert contrast(seen("primary", dark), fill) >= 4.5
        assert contrast(seen(line, dark), fill) >= 3


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_two_lines_of_a_picture_look_the_same(dark: bool) -> None:
    for first, other in itertools.combinations(CYCLE, 2):
        assert np.abs(seen(first, dark) - seen(other, dark)).max() > 0.15


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_words_and_lines_of_a_report_stand_out(dark: bool) -> None:
    bright, dim = STYLE.split("@media screen and (prefers-color-scheme: dark) {", 1)
    colors = {name: rgb(color) for name, color in re.findall(r"--(\w+): (#[0-9a-f]{6})", dim if dark else bright)}
    assert set(colors) == set(re.findall(r"var\(--(\w+)\)", STYLE)), "each colour is set in both"
    for words, ground in (("ink", "paper"), ("note", "paper"), ("ink", "box"), ("ink", "raw")):
        assert contrast(colors[words], colors[ground]) >= 4.5, f"{words} on {ground}"
    for line in ("mark", "rule"):
        assert contrast(colors[line], colors["paper"]) >= 3, line


def test_pictures_of_a_report_are_turned_as_those_of_the_book() -> None:
    assert "filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen;" in STYLE
    assert f"--paper: {DARK_PAGE};" in STYLE
    assert not re.search(r"#[0-9a-fA-F]{3,8}", re.sub(r"--\w+: #[0-9a-f]{6}", "", STYLE)), "no other colours"


def test_colours_have_one_home() -> None:
    """So what is computed above is what is drawn."""
    stray = {
        path.name: colours
        for path in (ROOT / "mlsys/viz").rglob("*.py")
        if path.name != "style.py" and (colours := re.findall(r"[\"']#[0-9a-fA-F]{3,8}[\"']", path.read_text("utf-8")))
    }
    assert stray == {}


def test_maps_are_printed_in_vectors() -> None:
    """A bitmap within a figure is blurred in print, whose resolution nobody knows when the figure is drawn."""
    figure = Figure()
    viz.tile_cache_map(figure.subplots(), 32, (4, 8, 32), (128, 4096))
    pdf = io.BytesIO()
    figure.savefig(pdf, format="pdf")
    assert b"/Subtype /Image" not in pdf.getvalue()
