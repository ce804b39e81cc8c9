"""Figures on a phone: the narrow layout is loaded, fits, and can be read; wide screens and print have the other."""

import io
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib
import pytest
from playwright.sync_api import Browser

from mlsys import Q_, Hardware, viz
from mlsys.viz.narrow import split_narrow, svg_with_narrow
from narrowfigures import with_narrow
from pages import ROOT

matplotlib.use("Agg")
LEAST = 9.0
"""CSS pixels of the smallest letters on a phone, exponents aside."""
_GLYPHS = re.compile(r"scale\(([\d.]+) -[\d.]+\)")


def rungs(ax):
    rates = {"a scalar unit": ("scalar", 1), "a vector unit of many lanes": ("vector", 8), "an array": ("tile", 65536)}
    viz.throughput_ladder(ax, {name: (kind, Q_(rate, "MAC/cycle")) for name, (kind, rate) in rates.items()})


FIGURES = {
    "models": ((8.3, 5.2), lambda ax: viz.execution_models(ax, lanes=8, tile=16)),
    "counts": ((7.0, 4.0), lambda ax: viz.instruction_counts(ax, (1, 8, 16, 32))),
    "ladder": ((8.3, 4.2), rungs),
    "taper": ((7.0, 4.2), lambda ax: viz.bandwidth_by_bytes_in_flight(ax, [Hardware.Cloud.A100, Hardware.Cloud.H100])),
}


def as_svg(figure) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", bbox_inches="tight")
    return file.getvalue()


@pytest.fixture
def page_of_figures(tmp_path: Path) -> Path:
    """Write a page with some figures, marked up and styled as in the book, and return its folder."""
    figures = []
    for name, (size, draw) in FIGURES.items():
        figure, ax, _, plt = viz.setup_plot(figsize=size)
        draw(ax)
        wide, narrow = split_narrow(svg_with_narrow(figure, as_svg))
        plt.close(figure)
        (tmp_path / f"{name}.svg").write_text(wide)
        (tmp_path / f"{name}-narrow.svg").write_text(narrow or "")
        figures.append(f'<figure><img alt="{name}" src="{name}.svg" /><figcaption>{name}</figcaption></figure>')
    style = (ROOT / "book/static/custom.css").read_text("utf-8")
    body = with_narrow("\n".join(figures), set(FIGURES))
    (tmp_path / "index.html").write_text(
        f'<!DOCTYPE html><meta name="viewport" content="width=device-width">'
        f"<style>{style} figure {{ margin: 0 }}</style>"
        f'<main class="bd-article" style="padding: 0 8px">{body}</main>'
    )
    return tmp_path


def letters(folder: Path, name: str, width: float) -> float:
    """Return the CSS pixels of the smallest letters of an SVG that is shown at a width."""
    svg = (folder / name).read_text()
    units = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
    return min(100 * float(scale) for scale in _GLYPHS.findall(svg)) * width / units


def test_a_phone_shows_the_narrow_layouts(
    browser: Browser, page_of_figures: Path, serve: Callable[[Path], AbstractContextManager[str]]
) -> None:
    script = "() => [...document.images].map(i => [i.currentSrc.split('/').pop(), i.clientWidth, i.alt])"
    with serve(page_of_figures) as site:
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.goto(site)
        seen = page.evaluate(script)
        assert [name for name, *_ in seen] == [f"{name}-narrow.svg" for name in FIGURES]
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        small = {name: letters(page_of_figures, name, width) for name, width, _ in seen}
        assert min(small.values()) >= LEAST, small
        assert letters(page_of_figures, "models.svg", seen[0][1]) < LEAST - 2, "the other layout would not do"
        page.emulate_media(media="print")
        page.wait_for_function("[...document.images].every(i => !i.currentSrc.includes('narrow'))")
        page.close()
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(site)
        assert [name for name, *_ in page.evaluate(script)] == [f"{name}.svg" for name in FIGURES]
        page.close()
