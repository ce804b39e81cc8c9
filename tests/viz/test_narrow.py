"""Layouts of figures for phones: letters that can be read, nothing lost, and the figure as it was afterwards."""

import io
import re
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from mlsys import viz
from mlsys.viz.narrow import PHONE_FIGURE, narrowed, split_narrow, svg_with_narrow
from mlsys.viz.shown import figure_digest

COLUMN = 358
"""CSS pixels of the text on a phone of 390."""


def as_svg(figure: Figure) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return file.getvalue()


def marks(svg: str) -> list[str]:
    """Return the elements and texts of an SVG, and its coordinates in tens: a layout settles from draw to draw."""
    known = re.findall(r'<g id="[a-z]+[^"]*">|<!-- .* -->', svg)
    numbers = re.findall(r'(?:x|y|width|height)="(\d+)', svg)
    return known + [str(round(int(number), -1)) for number in numbers]


def crowded() -> Figure:
    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    left.plot([1, 2, 3], label="a line")
    left.set_title("left", loc="left")
    left.legend(loc="upper left")
    left.set_xlabel("an axis whose label is much longer than a phone is wide, in bytes per second")
    left.text(1, 2, "large", fontsize=12)
    left.set_xticks(np.linspace(0, 2, 11), [f"{number},000,000" for number in range(11)])
    right.bar(["one long name", "another long name", "a third long name", "a fourth"], [1, 2, 3, 4])
    for column in range(8):
        right.text(column * 0.4, 1, "H100")
    return figure


def test_letters_of_nine_points_are_ten_pixels_on_a_phone() -> None:
    assert 9 / 72 * COLUMN / PHONE_FIGURE >= 10


def test_labels_do_not_collide_and_fit() -> None:
    with narrowed(crowded()) as narrow:
        narrow.draw_without_rendering()
        left, right = narrow.axes
        assert left.bbox.y0 > right.bbox.y1, "panels are below each other"
        assert right.yaxis.get_tick_params()["labelleft"], "each with numbers of its own"
        box = left.xaxis.label.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= narrow.bbox.x1 and "\n" in left.get_xlabel()
        legend, title = left.get_legend().get_window_extent(), left._left_title.get_window_extent()
        assert legend.y0 >= left.bbox.y1 and not legend.overlaps(title)
        numbers = [label.get_window_extent() for label in left.get_xticklabels() if label.get_visible()]
        assert len(numbers) > 2 and not any(a.overlaps(b) for a, b in pairwise(numbers))
        assert {text.get_text() for text in right.get_xticklabels() if text.get_visible()} >= {"a fourth"}
        names = [text.get_window_extent() for text in right.texts]
        assert not any(a.overlaps(b) for a, b in pairwise(names))


def test_the_figure_is_afterwards_as_it_was() -> None:
    figure = crowded()
    before, digest = as_svg(figure), figure_digest(figure)
    carried = svg_with_narrow(figure, as_svg)
    wide, narrow = split_narrow(carried)
    assert narrow is not None and 'width="3' in narrow
    assert marks(wide) == marks(before) == marks(as_svg(figure)) != marks(narrow)
    assert figure_digest(figure) == digest


def test_a_figure_that_fits_a_phone_has_one_layout() -> None:
    figure = Figure(figsize=(4, 3))
    assert split_narrow(svg_with_narrow(figure, as_svg))[1] is None


def test_an_error_leaves_the_figure_as_it_was() -> None:
    figure = crowded()
    with pytest.raises(RuntimeError), narrowed(figure):
        raise RuntimeError
    assert figure.get_size_inches().tolist() == [8, 3] and figure.axes[1].get_subplotspec().get_geometry()[:2] == (1, 2)


def test_a_strip_of_elements_is_broken_into_lines_whose_digits_stand_apart() -> None:
    figure, ax, _, plt = viz.setup_plot(figsize=(8.3, 2.6))
    viz.layout_strip(ax)
    with narrowed(figure) as narrow:
        narrow.draw_without_rendering()
        texts = narrow.axes[0].texts
        lines: dict[float, list[Bbox]] = {}
        for text in texts:
            lines.setdefault(text.get_position()[1], []).append(text.get_window_extent())
        assert len(texts) == len(ax.texts) and len(lines) == 9
        for boxes in lines.values():
            boxes.sort(key=lambda box: box.x0)
            assert all(later.x0 > box.x1 for box, later in pairwise(boxes))
    plt.close(figure)


def test_a_legend_stands_above_a_title_of_two_lines() -> None:
    figure, ax, _, plt = viz.setup_plot(figsize=(8, 3))
    ax.plot([0, 1], [0, 1], label="p50")
    ax.set_title("A title that is much too long for the column of a phone and therefore has two lines", loc="left")
    ax.legend()
    with narrowed(figure) as narrow:
        narrow.draw_without_rendering()
        assert "\n" in ax.get_title(loc="left")
        assert ax.get_legend().get_window_extent().y0 >= ax._left_title.get_window_extent().y1 - 1
    plt.close(figure)
