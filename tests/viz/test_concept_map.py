"""The map of chapters: nothing stands left of what it needs, and no two boxes lie on each other."""

from itertools import combinations

import matplotlib.pyplot as plt
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from mlsys.errors import ArgumentError
from mlsys.inputs import yaml_of
from mlsys.viz.concept_map import concept_map, depths
from pages import ROOT

NEEDS = {
    name: chapter["needs"]
    for name, chapter in yaml_of((ROOT / "book" / "course.yaml").read_text(encoding="utf-8"))["chapters"].items()
}


def test_a_chapter_is_one_column_behind_the_last_of_its_needs() -> None:
    column = depths(NEEDS)
    assert all(column[name] == max((column[each] + 1 for each in needed), default=0) for name, needed in NEEDS.items())


@pytest.mark.parametrize("needs", [{"a": ["b"], "b": ["c"], "c": ["a"]}, {"a": ["z"]}])
def test_circles_and_unknown_chapters_are_refused(needs: dict[str, list[str]]) -> None:
    with pytest.raises(ArgumentError):
        depths(needs)


def test_boxes_of_the_book_do_not_overlap() -> None:
    figure, ax = plt.subplots(figsize=(8.4, 6.4))
    concept_map(ax, NEEDS, {name: name.replace("_", " ") for name in NEEDS})
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [text.get_window_extent(canvas.get_renderer()) for text in ax.texts]
    plt.close(figure)
    assert len(boxes) == len(NEEDS)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
