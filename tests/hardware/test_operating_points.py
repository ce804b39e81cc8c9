"""Clocks with their voltages and measured power: what must hold of them on any chip."""

from __future__ import annotations

import pytest

from mlsys import Hardware

WITH_POINTS = [device for device in Hardware if device.points]
WITH_ACTIVE = [device for device in Hardware if device._active_power is not None]


def test_there_are_devices_with_operating_points_and_with_measured_power() -> None:
    assert len(WITH_POINTS) >= 4
    assert len(WITH_ACTIVE) >= 5


@pytest.mark.parametrize("device", WITH_POINTS, ids=lambda device: device.id)
def test_a_faster_clock_needs_no_less_voltage(device) -> None:
    clocks = [point.clock.m_as("Hz") for point in device.points]
    voltages = [point.voltage.m_as("V") for point in device.points]
    assert clocks == sorted(set(clocks))
    assert voltages == sorted(voltages)


@pytest.mark.parametrize("device", WITH_POINTS, ids=lambda device: device.id)
def test_the_fastest_point_is_the_clock_of_the_peaks(device) -> None:
    assert device.points[-1].clock.m_as("Hz") == pytest.approx(device.chip("clock").m_as("Hz"), rel=0.01)


@pytest.mark.parametrize("device", WITH_ACTIVE, ids=lambda device: device.id)
def test_it_computes_within_its_limit_and_above_its_rest(device) -> None:
    if device._tdp is not None:
        assert device.active_power <= device.tdp * 1.001
    if device._idle_power is not None:
        assert device.active_power >= device.idle_power


def test_power_of_a_board_is_energy_over_time_as_submitted() -> None:
    """MLPerf Tiny v0.7, NUCLEO_L4R5ZI, keyword spotting: 4,635.681 uJ in 97.6467 ms."""
    assert Hardware.Tiny.STM32L4R5.active_power.m_as("mW") == pytest.approx(4635.681 / 97.6467, rel=1e-3)
