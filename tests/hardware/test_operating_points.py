"""Clocks with their voltages, power, prices and links: what must hold of them on any chip."""

from importlib import resources

import pytest

from mlsys import Hardware
from mlsys.errors import DeviceFileError
from mlsys.hardware import load_device

WITH_POINTS = [device for device in Hardware if device.points]
WITH_ACTIVE = [device for device in Hardware if device._active_power is not None]
SMALL = [device for family in (Hardware.Edge, Hardware.Mobile, Hardware.Tiny) for device in family]
PLACED = ("EdgeTPU", "Hailo8", "Kirin960_CPU", "RK3588_CPU", "RaspberryPi4", "RaspberryPi5", "STM32H7A3", "STM32L4R5")


def figures(device) -> dict[str, list]:
    """What placing and shrinking ask of a device, each as the values on record."""
    points = [value for point in device.points for value in (point._clock, point._voltage)]
    links = [value for link in device.links.values() for value in (link._per_direction, link._latency)]
    return {
        "active": [device._active_power],
        "idle": [device._idle_power],
        "price": [device._price],
        "points": points or [None],
        "links": links or [None],
    }


COMPLETE = [device for device in SMALL if all(None not in values for values in figures(device).values())]


def test_at_least_twelve_small_devices_have_all_five_figures() -> None:
    assert len(COMPLETE) >= 12
    assert set(PLACED) <= {device.id for device in COMPLETE}
    assert {device.kind for device in COMPLETE} >= {"MCU", "CPU", "SoC", "NPU"}


@pytest.mark.parametrize("device", COMPLETE, ids=lambda device: device.id)
def test_each_figure_has_a_source_or_is_a_named_assumption_with_its_range(device) -> None:
    for what, values in figures(device).items():
        for value in values:
            (fact,) = value.facts
            if fact.confidence == "assumed":
                assert fact.source.startswith("Assumption "), (what, fact)
                assert 0 < fact.uncertainty < value.magnitude, (what, fact)
            else:
                assert "assumption" not in fact.source.lower(), (what, fact)


@pytest.mark.parametrize("device", COMPLETE, ids=lambda device: device.id)
def test_the_core_reaches_its_memory_no_faster_than_the_memory_answers(device) -> None:
    """A link to the memory carries the bandwidth on record of that memory, each direction."""
    for name, link in device.links.items():
        if name.startswith("Core-"):
            assert link.per_direction.m_as("GB/s") == pytest.approx(device.memory_bw.m_as("GB/s"))


FIELDS = {
    "tdp": "tdp: {value: 7.2 W, source: review",
    "idle": "idle: {value: 1.6 W, source: review",
}


@pytest.mark.parametrize("where", FIELDS)
def test_an_assumption_needs_its_range_and_a_limit_may_not_be_one(where: str, tmp_path) -> None:
    path = tmp_path / "RaspberryPi4.yaml"
    text = (resources.files("mlsys.hardware") / "data/edge/RaspberryPi4.yaml").read_text("utf-8")
    path.write_text(text.replace(FIELDS[where], FIELDS[where].replace("review", "trip")))
    message = "may be assumed: write `profile: teaching`" if where == "tdp" else "needs a range: add `uncertainty"
    with pytest.raises(DeviceFileError, match=message):
        load_device(path)
    path.write_text(text.replace(FIELDS[where], FIELDS[where].replace("review", "trip, uncertainty: 0.5")))
    if where == "tdp":
        with pytest.raises(DeviceFileError, match=message):
            load_device(path)
    else:
        assert load_device(path).idle_power.facts[0].uncertainty == 0.5


@pytest.mark.parametrize("device", WITH_POINTS, ids=lambda device: device.id)
def test_a_faster_clock_needs_no_less_voltage(device) -> None:
    clocks = [point.clock.m_as("Hz") for point in device.points]
    voltages = [point.voltage.m_as("V") for point in device.points]
    assert clocks == sorted(set(clocks))
    assert voltages == sorted(voltages)


@pytest.mark.parametrize("device", WITH_POINTS, ids=lambda device: device.id)
def test_the_fastest_point_is_the_clock_of_the_peaks(device) -> None:
    if "clock" in device._chip:  # some accelerators publish none
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
