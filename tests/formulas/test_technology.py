"""Laws of technology: trends, Dennard scaling, yields by counting defects, multicores against their limits."""

import random

import numpy as np
import pytest

from mlsys import Hardware, formulas
from mlsys.errors import ArgumentError
from mlsys.formulas import amdahl_speedup
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


def test_dennard_scaling_leaves_no_silicon_dark_and_its_end_half_a_generation() -> None:
    for scale in (1.0, 1.4, 2.8):
        assert formulas.power_density_growth(scale, 1 / scale).m == pytest.approx(1)
        grown = formulas.power_density_growth(scale, 1.0).m
        dark = formulas.dark_silicon_fraction(Q_(100, "W"), Q_(100 * grown, "W")).m
        assert dark == pytest.approx(1 - 1 / scale**2)
    assert formulas.dark_silicon_fraction(Q_(300, "W"), Q_(100, "W")).m == 0


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


def test_dies_of_a_wafer_by_laying_them_out() -> None:
    """A grid of dies counted within the circle, at the best of many offsets: the formula is near it."""
    rng = random.Random(1)
    for width, height in ((10.0, 10.0), (25.0, 32.0), (5.0, 8.0)):
        best = 0
        for _ in range(60):
            x = np.arange(-40, 40) * width + rng.random() * width
            y = np.arange(-70, 70) * height + rng.random() * height
            corners = [(x + dx)[:, None] ** 2 + (y + dy)[None, :] ** 2 for dx in (0, width) for dy in (0, height)]
            best = max(best, int((np.maximum.reduce(corners) <= 150.0**2).sum()))
        got = formulas.dies_per_wafer(Q_(300, "mm"), Q_(width * height, "mm**2")).m
        assert got == pytest.approx(best, rel=0.1)
    assert formulas.dies_per_wafer(Q_(10, "mm"), Q_(1000, "mm**2")).m == 0


@pytest.mark.parametrize("fraction", [0.5, 0.9, 0.975, 0.99, 1.0])
def test_multicores_obey_their_limits_and_order(fraction: float) -> None:
    for units in (4, 16, 256):
        for core in (1, 2, units):
            symmetric, asymmetric, dynamic = (
                formula.bare(fraction, units, core)
                for formula in (formulas.symmetric_speedup, formulas.asymmetric_speedup, formulas.dynamic_speedup)
            )
            assert symmetric <= asymmetric * (1 + 1e-12) and asymmetric <= dynamic * (1 + 1e-12)
        alike = formulas.symmetric_speedup.bare(fraction, units, 1)
        assert alike == pytest.approx(amdahl_speedup.bare(fraction, units)), "cores of one unit: Amdahl's law"
        assert formulas.symmetric_speedup.bare(fraction, units, units) == pytest.approx(units**0.5), "one large core"


def test_the_best_chips_of_the_paper() -> None:
    """M. D. Hill and M. R. Marty: at 256 units and 0.975, 51.2 for equal cores and 125.0 for one large core."""
    sizes = np.linspace(1, 256, 20_000)
    assert formulas.symmetric_speedup.bare(0.975, 256, sizes).max() == pytest.approx(51.2, abs=0.05)
    assert formulas.asymmetric_speedup.bare(0.975, 256, sizes).max() == pytest.approx(125.0, abs=0.1)
    assert sizes[formulas.symmetric_speedup.bare(0.975, 256, sizes).argmax()] == pytest.approx(7.1, abs=0.7)


def test_a_core_larger_than_its_chip_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`core_units` cannot be above `units`"):
        formulas.symmetric_speedup(0.9, 16, 32)
