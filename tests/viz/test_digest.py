"""The digest of a picture feels what is seen, and no last digit of a math library."""

import matplotlib.pyplot as plt
import pytest

from mlsys.viz.shown import figure_digest


def digest(*heights: float) -> str:
    figure, ax = plt.subplots()
    ax.plot(range(len(heights)), heights)
    try:
        return figure_digest(figure)
    finally:
        plt.close(figure)


@pytest.mark.parametrize("left_over", [5.551115123125783e-17, -5.551115123125783e-17, 1.2e-16])
def test_what_is_left_of_a_difference_is_zero(left_over: float) -> None:
    assert digest(left_over, 1.0, 2.0) == digest(0.0, 1.0, 2.0)


def test_a_value_that_is_seen_moves_it() -> None:
    assert digest(1e-9, 1.0, 2.0) != digest(0.0, 1.0, 2.0)
    assert digest(0.0, 1.0, 2.0001) != digest(0.0, 1.0, 2.0)
    assert digest(1e-17, 2e-17) != digest(1e-17, 3e-17), "small values alone are seen, too"
