"""Mean powers against a hand calculation and against an integral over a power trace."""

import numpy as np
import pytest

from mlsys.errors import ArgumentError
from mlsys.formulas import battery_power, duty_cycled_power
from mlsys.units import Q_


def test_a_coin_cell_for_a_year_gives_the_power_of_the_course_text() -> None:
    """225 mAh at 3 V are 2,430 J."""
    assert battery_power(Q_(225, "mA*hour"), Q_(3, "V"), Q_(365, "day")).m_as("uW") == pytest.approx(77.05, abs=0.01)


def test_the_mean_of_a_duty_cycle_is_that_of_its_trace() -> None:
    at = np.linspace(0, 10, 100_000, endpoint=False)
    power = np.where(at < 0.145, 0.018 / 0.145, 5e-3)
    mean = duty_cycled_power(Q_(18, "mJ"), Q_(145, "ms"), Q_(10, "s"), Q_(5, "mW"))
    assert mean.m_as("W") == pytest.approx(power.mean(), rel=1e-3)
    with pytest.raises(ArgumentError, match="at most `period`"):
        duty_cycled_power(Q_(1, "mJ"), Q_(2, "s"), Q_(1, "s"))
