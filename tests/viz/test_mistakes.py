"""Figure of mistakes: each point stands at its factor, and the labels name the furthest of a row."""

import pytest
from matplotlib.colors import to_hex

from mlsys import viz
from mlsys.errors import ArgumentError


def test_a_row_for_each_name_and_a_point_for_each_factor(ax) -> None:
    viz.error_factors(ax, {"low and high": [0.1, 2.0], "three": [3.0]})
    points = [[round(x, 9) for x, _ in rows.get_offsets()] for rows in ax.collections if len(rows.get_offsets())]
    assert [0.1, 2.0] in points and [3.0] in points
    assert [label.get_text() for label in ax.get_yticklabels()] == ["low and high", "three"]
    assert [text.get_text() for text in ax.texts][:2] == ["10×", "3×"], "2 is nearer to 1 than a tenth is"
    low, high = ax.collections[1].get_facecolors()
    assert (to_hex(low), to_hex(high)) == (viz.COLORS["BlueLine"], viz.COLORS["OrangeLine"])


@pytest.mark.parametrize("factors", [{}, {"none": []}, {"zero": [0.0]}, {"negative": [-2.0]}, {"nan": [float("nan")]}])
def test_factors_that_have_no_place_on_the_axis_are_refused(ax, factors) -> None:
    with pytest.raises(ArgumentError, match="positive numbers"):
        viz.error_factors(ax, factors)
