"""Intervals of samples of a few rows, held against fresh draws: what is promised is what the next row does."""

import numpy as np
import pytest

from mlsys_evidence.fit.intervals import pooled_interval, quantiles

DRAWS = 4000


@pytest.mark.parametrize("size", [16, 30, 60])
def test_quantiles_hold_four_in_five_of_the_next_rows(size: int) -> None:
    random = np.random.default_rng(size)
    sample, following = random.normal(0.1, 0.3, (DRAWS, size)), random.normal(0.1, 0.3, DRAWS)
    inside = [low <= later <= high for (low, high), later in zip(map(quantiles, sample), following, strict=True)]
    assert np.mean(inside) == pytest.approx(0.8, abs=0.025)


@pytest.mark.parametrize("wider", [1.0, 2.0])
def test_a_handful_of_rows_is_told_no_narrower_than_it_is(wider: float) -> None:
    """Classes scatter like their relatives, or twice as much; their own quantiles would hold far less."""
    random = np.random.default_rng(7)
    relatives = random.normal(0, 0.15, 400)
    sample, following = random.normal(0, 0.15 * wider, (DRAWS, 6)), random.normal(0, 0.15 * wider, DRAWS)
    held = np.mean(
        [abs(later) <= pooled_interval(own, relatives)[1] for own, later in zip(sample, following, strict=True)]
    )
    assert 0.73 <= held <= 0.87
    plain = [np.quantile(own, (0.1, 0.9)) for own in sample]
    assert np.mean([low <= later <= high for (low, high), later in zip(plain, following, strict=True)]) < held - 0.05


def test_without_a_row_of_its_own_a_class_is_wider_than_its_relatives() -> None:
    relatives = np.linspace(-1, 1, 101)
    low, high = pooled_interval(np.array([]), relatives)
    assert low == -high
    assert high > 1.2 * quantiles(relatives)[1]
