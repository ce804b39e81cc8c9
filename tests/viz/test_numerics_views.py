"""Figures of number formats and of history show what the codecs and fits say."""

import numpy as np

from mlsys import viz
from mlsys.models.trends import fit_growth
from mlsys.numerics import FORMATS
from mlsys.units import Q_


def roles(ax, role):
    return sum(patch.get_gid() == role for patch in ax.patches)


def test_a_box_stands_for_each_bit(ax):
    viz.bit_fields(ax, ("fp16", "fp8_e4m3", "fp4_e2m1"))
    assert (roles(ax, "sign"), roles(ax, "exponent"), roles(ax, "mantissa")) == (3, 5 + 4 + 2, 10 + 3 + 1)


def test_spacing_is_the_distance_to_the_next_number(ax):
    viz.value_spacing(ax, ("fp8_e4m3", "fp4_e2m1"))
    for line, name in zip(ax.lines, ("fp8_e4m3", "fp4_e2m1"), strict=True):
        numbers = FORMATS[name].numbers
        for value, gap in list(zip(*line.get_data(), strict=True))[:-1]:
            (at,) = np.flatnonzero(numbers == value)
            if at + 1 < len(numbers):
                assert gap == (numbers[at + 1] - value) / value


def test_one_too_many_is_where_useful_work_falls(ax):
    viz.padding_steps(ax, 64, 256)
    sizes, useful = ax.lines[0].get_data()
    falls = [int(size) for size, here, after in zip(sizes, useful, useful[1:], strict=False) if after < here]
    assert falls == [64, 128, 192]


def test_stored_values_are_those_that_are_not_zero(ax):
    viz.sparse_blocks(ax, (5, 0, 0, 7))
    assert (roles(ax, "kept"), roles(ax, "zero"), roles(ax, "value"), roles(ax, "position")) == (2, 2, 2, 2)
    texts = [text.get_text() for text in ax.texts]
    assert "00" in texts and "11" in texts


def test_lines_of_growth_begin_at_one_and_points_keep_their_distance(ax):
    points = [(2010.0, Q_(2, "W"), "a"), (2012.0, Q_(8, "W"), "b"), (2014.0, Q_(32, "W"), "c")]
    viz.growth_lines(ax, {"power": points}, {"power": fit_growth(*zip(*[each[:2] for each in points], strict=True))})
    assert np.allclose(ax.lines[0].get_ydata(), (1, 16))
    assert np.allclose([line.get_ydata()[0] for line in ax.lines[1:]], (1, 4, 16))


def test_events_stand_at_their_years(ax):
    viz.timeline(ax, [(2015, "later"), (1980, "sooner")])
    assert [text.get_text() for text in ax.texts] == ["sooner\n1980", "later\n2015"]


def test_steps_of_a_rate_begin_where_the_one_before_ends(ax):
    viz.rate_steps(ax, {"vector": 10.0, "matrix": 40.0, "sparse": 80.0})
    bars = [line.get_xdata() for line in ax.lines if line.get_linewidth() > 5]
    assert [tuple(bar) for bar in bars] == [(1.0, 10.0), (10.0, 40.0), (40.0, 80.0)]
    assert [text.get_text() for text in ax.texts] == ["× 10", "× 4", "× 2"]


def test_power_density_names_each_rule_and_its_end(ax):
    viz.power_density(ax, {"falls": [1, 1, 1], "fixed": [1, 2, 4]})
    assert [text.get_text() for text in ax.texts] == ["falls: 1×", "fixed: 4×"]
    assert [line.get_ydata()[-1] for line in ax.lines] == [1, 4]
