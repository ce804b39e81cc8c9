"""Growth over the years: exact exponentials, NumPy's own least squares, and published trends."""

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.errors import ArgumentError
from mlsys.models.trends import decimal_year, fit_growth, milestones, training_compute
from mlsys.units import Q_


@pytest.mark.parametrize("growth", [0.5, 1.36, 5.9])
def test_an_exponential_is_found_exactly(growth: float) -> None:
    years = [2012.75, 2014.0, 2017.3, 2024.5]
    fitted = fit_growth(years, [Q_(3 * growth ** (year - 2015), "GFLOP") for year in years])
    assert fitted.per_year == pytest.approx(growth)
    assert fitted.at(2015).m_as("FLOP") == pytest.approx(3e9)
    assert fitted.r_squared == pytest.approx(1)
    if growth > 1:
        assert growth ** fitted.doubling.m_as("year") == pytest.approx(2)
    assert fitted.residuals == pytest.approx((1,) * 4)


def test_noise_is_fitted_as_by_numpy() -> None:
    rng = np.random.default_rng(2)
    years, logs = rng.uniform(1990, 2020, 30), rng.normal(size=30)
    fitted = fit_growth(years.tolist(), [Q_(float(value), "W") for value in np.exp(logs)])
    slope, intercept = np.polyfit(years - 2000, logs, 1)
    assert fitted.per_year == pytest.approx(np.exp(slope))
    assert fitted.at(2000).m_as("W") == pytest.approx(np.exp(intercept))
    assert fitted.r_squared == pytest.approx(np.corrcoef(years, logs)[0, 1] ** 2)


def test_training_compute_grows_several_times_a_year_and_peaks_do_not() -> None:
    """Sevilla et al., arXiv:2202.05924, find a doubling in about 6 months for the years from 2010 on; of these seven,
    picked as milestones, the fit is somewhat steeper. Peaks of GPUs: Epoch AI gives a doubling in 2.3 years."""
    runs = training_compute()
    demand = fit_growth([decimal_year(run.date) for run in runs], [run.value for run in runs])
    assert 4 < demand.doubling.m_as("month") < 6.5
    assert 0.85 < demand.r_squared < 0.97
    chips = [Hardware.Cloud[name] for name in ("P100", "V100", "A100", "H100", "B200")]
    supply = fit_growth([chip.release_year for chip in chips], [chip.peak_flops for chip in chips])
    assert 1 < supply.doubling.m_as("year") < 2.5


def test_milestones_are_in_order_and_have_sources() -> None:
    years = [each.year for each in milestones()]
    assert years == sorted(years)
    assert all(each.source and each.mechanism for each in milestones())


def test_bad_input_is_named() -> None:
    with pytest.raises(ArgumentError, match="at least two different years"):
        fit_growth([2000, 2000], [Q_(1, "W"), Q_(2, "W")])
    with pytest.raises(ArgumentError, match="must be positive"):
        fit_growth([2000, 2001], [Q_(1, "W"), Q_(0, "W")])
