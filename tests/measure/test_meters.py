"""Meters against their data sheets, a trace against integrals, counters that wrap."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from mlsys.measure.counters import PerfCounters, per_run, unwrapped
from mlsys.measure.energy import INA226, PowerTrace, Rapl


def test_ina226_as_in_the_example_of_its_data_sheet() -> None:
    """SBOS547, table 'Configure/Measure/Calculate': 10 A through 2 mΩ at 11.98 V."""
    meter = INA226(shunt=0.002)
    assert meter.calibration(0.001) == 0xA00 == 2560
    assert pytest.approx(0.020) == 8000 * 2.5e-6 and pytest.approx(11.98) == 9584 * 1.25e-3
    current, volts, watts = meter.read(0x1F40, 0x2570, 0.001)
    assert current == pytest.approx(10.0)
    assert volts == pytest.approx(11.98)
    assert watts == pytest.approx(0x12B8 * 0.025)  # 4792 steps of 25 mW; the sheet rounds 119.8 to 119.82


def test_ina226_with_a_tenth_of_an_ohm() -> None:
    """The text that speaks of ±40 mV and of microwatts is wrong: ±81.92 mV, 25 µA and 625 µW."""
    meter = INA226(shunt=0.1)
    assert meter.full_scale.m_as("mA") == pytest.approx(819.2)
    assert meter.current_step.m_as("uA") == pytest.approx(25)
    assert meter.power_step.m_as("uW") == pytest.approx(625)
    assert meter.full_scale.m_as("A") * 0.1 == pytest.approx(81.92e-3)
    assert INA226.power_of(drop=0.01, shunt=0.1, load=3.3) == pytest.approx(0.33)


def test_ina226_is_far_slower_than_a_thousand_readings_a_second() -> None:
    assert INA226(0.1, averages=128, conversion=1100).update_time.m_as("ms") == pytest.approx(281.6)
    assert INA226(0.1, averages=4, conversion=140).update_time.m_as("ms") == pytest.approx(1.12)


@pytest.mark.parametrize(
    "wrong", [{"shunt": 0}, {"shunt": -1}, {"shunt": float("nan")}, {"averages": 5}, {"conversion": 100}]
)
def test_ina226_refuses(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="INA226"):
        INA226(**({"shunt": 0.1} | wrong))  # type: ignore[arg-type]


def test_energy_of_uneven_samples_is_the_integral() -> None:
    times = np.sort(np.random.default_rng(1).uniform(0, 2, 4000))
    trace = PowerTrace(times, 3 + np.sin(5 * times))
    exact = 3 * (times[-1] - times[0]) + (np.cos(5 * times[0]) - np.cos(5 * times[-1])) / 5
    assert trace.energy.m_as("J") == pytest.approx(exact, rel=1e-5)
    assert sum(3 + np.sin(5 * times)) * 1 / 1e3 != pytest.approx(exact, rel=0.1)  # a sum over readings is no energy


def test_idling_is_taken_off() -> None:
    trace = PowerTrace((0.0, 1.0), (2.0, 2.0))
    assert trace.per_inference(100, idle=0.5).m_as("mJ") == pytest.approx(15)
    with pytest.raises(ValueError, match="Measure idle power"):
        trace.per_inference(100, idle=2.1)
    assert trace.summary()["avg_mw"] == pytest.approx(2000)


def test_layers_shorter_than_three_steps_have_no_energy() -> None:
    times = np.arange(0, 1, 0.01)
    trace = PowerTrace(times, np.full(100, 2.0))
    energies = trace.by_layer({"long": (0.1, 0.6), "short": (0.1, 0.12), "outside": (0.9, 1.5)})
    assert energies["long"] == pytest.approx(1000)
    assert energies["short"] is None and energies["outside"] is None


@pytest.mark.parametrize(
    ("times", "watts", "words"),
    [((0, 1), (1,), "equal length"), ((0, 0), (1, 1), "must increase"), ((0, 1), (1, -1), "not negative"),
     ((0, float("nan")), (1, 1), "finite")],
)  # fmt: skip
def test_wrong_traces(times, watts, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PowerTrace(times, watts)


def test_rapl_follows_a_counter_around(tmp_path: Path) -> None:
    zone = tmp_path / "intel-rapl:0"
    zone.mkdir()
    (zone / "energy_uj").write_text("999000\n")
    (zone / "max_energy_range_uj").write_text("999999\n")
    meter = Rapl(tmp_path)
    before = meter.read()
    (zone / "energy_uj").write_text("4000\n")
    assert meter.reason == ""
    assert meter.spent(before, meter.read()) == pytest.approx(5.0)


def test_meters_that_are_not_there_say_so(tmp_path: Path) -> None:
    assert "no RAPL" in Rapl(tmp_path / "none").reason


def test_wraps_against_a_counter_of_any_width() -> None:
    draw = np.random.default_rng(3)
    for bits in (8, 16, 32):
        true = np.cumsum(draw.integers(0, 2**bits, 200)).tolist()
        start = true[0] % 2**bits
        assert unwrapped([value % 2**bits for value in true], bits) == [value - true[0] + start for value in true]
    with pytest.raises(ValueError, match=r"values\[1\]"):
        unwrapped([1, 2**32])


def test_the_turn_of_a_cycle_counter_at_216_mhz() -> None:
    assert pytest.approx(19.88, abs=0.01) == 2**32 / 216e6


def test_counters_of_the_kernel_grow_or_say_why_not() -> None:
    with PerfCounters(("page-faults", "cycles", "moonlight")) as counters:
        before = counters.read()
        with mmap.mmap(-1, 8 << 20) as fresh:
            for index in range(0, len(fresh), mmap.PAGESIZE):
                fresh[index] = 1
        grown = per_run(before, counters.read())
        assert counters.missing["moonlight"] == "unknown event"
        for name in ("page-faults", "cycles"):
            assert name in counters.missing or grown[name] > 0
    assert per_run({"a": 5.0}, {"a": 3.0}) == {"a": None}
