"""Laws of technology: trends, Dennard scaling, yields by counting defects, multicores against their limits."""

import numpy as np
import pytest

from mlsys import Hardware, formulas
from mlsys.units import Q_


def test_growth_and_doubling_time_invert_each_other() -> None:
    for growth in (1.1, 1.7, 5.9):
        years = formulas.doubling_time(growth).m_as("year")
        assert growth**years == pytest.approx(2)
        assert formulas.yearly_growth(1, 2, Q_(years, "year")).m == pytest.approx(growth)
    assert 12 * formulas.doubling_time(5.9).m_as("year") == pytest.approx(4.7, abs=0.05)


def test_gpus_of_the_catalogue_grew_as_the_course_says() -> None:
    """From the K20X to the H100: 17 times in FP32, 250 times with 16-bit matrix units."""
    first = Hardware["K20X"].peak("fp32")
    assert (Hardware.Cloud.H100.peak("fp32", unit="vector") / first).m_as("") == pytest.approx(17, abs=0.2)
    assert (Hardware.Cloud.H100.peak("fp16") / first).m_as("") == pytest.approx(250, abs=2)
    demand, supply = 5.9, 1.70
    assert demand / supply == pytest.approx(3.4, abs=0.1)


def test_power_grows_with_the_square_of_the_voltage() -> None:
    base = formulas.dynamic_power(Q_(1, "nF/cycle"), Q_(1, "V"), Q_(1, "GHz"))
    assert base.m_as("W") == pytest.approx(1)
    assert formulas.dynamic_power(Q_(1, "nF/cycle"), Q_(2, "V"), Q_(1, "GHz")).m_as("W") == pytest.approx(4)


def test_yield_is_that_of_dies_with_counted_defects() -> None:
    """Defects per die drawn from a Poisson law whose mean varies by a gamma law: the negative binomial."""
    rng = np.random.default_rng(37)
    for area, density, clustering in ((8.14, 0.1, 3.0), (2.0, 0.3, 1.0), (6.0, 0.2, 10.0)):
        means = rng.gamma(clustering, area * density / clustering, 400_000)
        counted = float((rng.poisson(means) == 0).mean())
        got = formulas.die_yield(Q_(area, "cm**2"), Q_(density, "1/cm**2"), clustering).m
        assert got == pytest.approx(counted, abs=0.004)
    poisson = formulas.die_yield(Q_(2, "cm**2"), Q_(0.3, "1/cm**2"), 1e9).m
    assert poisson == pytest.approx(np.exp(-0.6), rel=1e-6)
