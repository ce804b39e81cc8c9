"""Energy of an inference on microcontrollers and boards, against what MLPerf Tiny submissions metered."""

import pytest

from mlsys import Hardware
from mlsys.errors import ArgumentError
from mlsys.mapping.fusion import fuse
from mlsys.models.analysis import analyze
from mlsys.models.energy.boards import fitted_powers, inference_energy, work_power
from mlsys.units import Q_
from mlsys.workloads import load
from mlsys_evidence.fit.power import (
    _factors,
    _without,
    energy_checks,
    fit_powers,
    measured_powers,
    power_of,
    two_runs,
)
from mlsys_evidence.rows import shipped_rows


@pytest.fixture(scope="module")
def keyword_spotting():
    return fuse(load("ds-cnn", precision="int8"))


# Keyword spotting, least and most energy of a submission, uJ: mlcommons/tiny_results v0.5 to v1.3, closed division.
PUBLISHED = {"STM32H7A3": (1375.599, 3713.191), "STM32U575": (664.424, 1482.396), "STM32L4R5": (1820.454, 7950.51)}


@pytest.mark.parametrize("device", PUBLISHED)
def test_keyword_spotting_takes_what_boards_were_metered_to_take(device: str, keyword_spotting) -> None:
    """Prices for each operation say 7.95 uJ of the STM32H7A3: what arithmetic takes, not what a board draws."""
    published = [
        row.value
        for row in shipped_rows()
        if row.metric == "energy per inference" and row.device.startswith(device) and row.model == "KWS DS-CNN"
    ]
    assert (min(published), max(published)) == PUBLISHED[device]
    energy = analyze(Hardware[device], keyword_spotting, precision="int8").energy
    low, high = (end.m_as("uJ") for end in energy.range)
    assert min(published) < energy.energy.m_as("uJ") < 1.1 * max(published)
    assert any(low <= value <= high for value in published), (low, high, published)


def test_energy_is_power_times_time() -> None:
    board = Hardware.Edge.RaspberryPi4
    short, two = (inference_energy(board, Q_(each, "ms")) for each in (10, 20))
    assert short.energy.m_as("J") == pytest.approx(board.active_power.m_as("W") * 0.01)
    assert short.static.m_as("J") == pytest.approx(board.idle_power.m_as("W") * 0.01)
    assert (short.static + short.dynamic).m_as("J") == pytest.approx(short.energy.m_as("J"))
    assert two.energy.m_as("J") == pytest.approx(2 * short.energy.m_as("J"))
    assert short.range[0] < short.energy < short.range[1]
    wide = inference_energy(board, Q_(10, "ms"), about=(0.5, 2.0))
    assert wide.range[0] < short.range[0]
    assert wide.range[1] > short.range[1]
    assert wide.range[0].m_as("J") < 0.5 * short.energy.m_as("J")


def test_a_device_without_a_power_on_record_takes_that_of_its_class() -> None:
    """Watts for each cycle: of two microcontrollers the one of twice the clock draws twice as much."""
    slow, fast = Hardware.Tiny.STM32F746, Hardware.Tiny.STM32H743
    powers = {device: work_power(device) for device in (slow, fast)}
    assert {power.basis for power in powers.values()} == {"class"}
    ratio = float((powers[fast].power / powers[slow].power).m_as(""))
    assert ratio == pytest.approx(float((fast.chip("clock") / slow.chip("clock")).m_as("")))
    assert all(power.low < 1 < power.high for power in powers.values())
    recorded = work_power(Hardware.Tiny.STM32H7A3)
    assert recorded.high / recorded.low < powers[slow].high / powers[slow].low


def test_where_nothing_is_known_there_is_no_energy() -> None:
    assert work_power(Hardware.Cloud.A100) is None
    assert inference_energy(Hardware.Cloud.A100, Q_(1, "ms")) is None


@pytest.mark.parametrize("time", [Q_(0, "ms"), Q_(-1, "ms"), Q_(float("nan"), "ms"), Q_(1, "W"), 3.0])
def test_a_time_that_is_none_is_refused(time) -> None:
    with pytest.raises((ArgumentError, ValueError, TypeError), match="`time`"):
        inference_energy(Hardware.Tiny.STM32H7A3, time)


def test_the_laws_on_record_are_those_of_the_rows() -> None:
    stored, fitted = fitted_powers(), fit_powers()
    assert set(stored) == set(fitted)
    for name, entry in fitted.items():
        for key, value in entry.items():
            assert stored[name][key] == pytest.approx(value, rel=1e-3), (name, key)


def test_a_row_states_its_power_only_of_one_run() -> None:
    """ST on the NUCLEO-L4R5ZI, v0.7: 4,635.681 uJ, 47.5 mW over the time of its run (10.2 inferences a second)."""
    stated = next(metered for metered in measured_powers() if metered.row.value == 4635.681)
    assert stated.watts == pytest.approx(4635.681 / 97.6467 * 1e-3, rel=0.02)
    latency = next(row for row in shipped_rows() if row.metric == "latency")
    assert power_of(latency) is None


def test_both_runs_of_a_submission_take_equally_long() -> None:
    """Energy is metered in another run than latency; where both are published, energy over either time is one power."""
    ratios = [ratio for _, ratio in two_runs()]
    assert len(ratios) >= 20
    assert 0.97 < min(ratios) <= max(ratios) < 1.03


def test_a_machine_left_out_does_not_speak_of_itself() -> None:
    factors = _factors("MCU")
    for name in factors:
        assert _without({**factors, name: 100 * factors[name]}, name) == _without(factors, name)
    others = sorted(value for name, value in factors.items() if name != "STM32H7A3")
    assert len(others) == 4
    assert _without(factors, "STM32H7A3") == pytest.approx((others[1] + others[2]) / 2)


def test_every_class_is_checked_on_machines_left_out() -> None:
    checks = energy_checks()
    for kind, machines in (("MCU", 4), ("edge SoC", 2)):
        own = [check for check in checks if check.row.device_class == kind]
        assert len({check.twin for check in own}) >= machines
        half = sorted(check.error("unseen") for check in own)[len(own) // 2]
        assert half < 0.475, "worse than the fit of energies alone, off by that much with the device left out"
