"""Laws of the clock, of fronts, of budgets and of percentiles, each against an opinion of its own."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.edge import Clock, ClockLaw, PowerPoint, best_clock, memory_violations, split_energy, unbeaten_rows
from mlsys.errors import ArgumentError
from mlsys.units import Q_

LAW = ClockLaw(Q_(8, "ms"), Q_(2, "ms"), Q_(0.5, "W"), Q_(12, "mJ"))


def test_half_the_clock_leaves_the_memory_time_untouched() -> None:
    """Source text: the multiplier of the clock must not touch what memory takes."""
    full, half = LAW.time(Clock(1.0)), LAW.time(Clock(0.5))
    assert (half - full).m_as("ms") == pytest.approx(8)
    only_memory = ClockLaw(Q_(0, "s"), Q_(2, "ms"), Q_(0.5, "W"), Q_(0, "J"))
    assert only_memory.time(Clock(0.25)) == only_memory.time(Clock(1.0))


def test_energy_is_leakage_times_time_and_voltage_squared() -> None:
    clock = Clock(0.5, 0.8)
    assert LAW.static_energy(clock).m_as("mJ") == pytest.approx(500e-3 * 18)
    assert LAW.dynamic_energy(clock).m_as("mJ") == pytest.approx(12 * 0.64)
    assert LAW.energy(clock).m_as("mJ") == pytest.approx(9 + 7.68)


def test_published_pair_of_clocks() -> None:
    """145 ms and 18 mJ at 168 MHz, 305 ms and 24 mJ at 80 MHz: (24 − 18) mJ / 160 ms = 37.5 mW."""
    fast = PowerPoint(Q_(168, "MHz"), Q_(145, "ms"), Q_(18, "mJ"))
    slow = PowerPoint(Q_(80, "MHz"), Q_(305, "ms"), Q_(24, "mJ"))
    parts = split_energy([slow, fast])
    assert parts.static.m_as("mW") == pytest.approx(37.5)
    assert parts.dynamic.m_as("mJ") == pytest.approx(18 - 37.5e-3 * 145)
    law = parts.law(Q_(168, "MHz"))
    clocks = [Clock(scale / 168) for scale in range(10, 169)]
    assert best_clock(law, clocks) == Clock(1.0)


@settings(max_examples=100, deadline=None)
@given(
    core=st.floats(1e-3, 1e3),
    memory=st.floats(0, 1e3),
    static=st.floats(1e-6, 10),
    dynamic=st.floats(0, 1e3),
    scales=st.lists(st.floats(0.01, 1), min_size=2, max_size=6, unique=True),
)
def test_at_one_voltage_the_highest_clock_takes_least_energy(
    core: float, memory: float, static: float, dynamic: float, scales: list[float]
) -> None:
    law = ClockLaw(Q_(core, "ms"), Q_(memory, "ms"), Q_(static, "W"), Q_(dynamic, "mJ"))
    clocks = [Clock(scale) for scale in scales]
    best = law.energy(best_clock(law, clocks)).m_as("J")
    assert best <= law.energy(Clock(max(scales))).m_as("J") * (1 + 1e-12)


def test_with_a_lower_voltage_a_slower_clock_can_win() -> None:
    leaky = ClockLaw(Q_(10, "ms"), Q_(0, "s"), Q_(10, "W"), Q_(12, "mJ"))
    clocks = [Clock(1.0), Clock(0.5, 0.6)]
    assert best_clock(LAW, clocks) == clocks[1]
    assert best_clock(leaky, clocks) == clocks[0]


@settings(max_examples=60, deadline=None)
@given(
    static=st.floats(0.01, 10),
    dynamic=st.floats(0.01, 100),
    cycles=st.floats(1e6, 1e9),
    wait=st.floats(0, 0.5),
    clocks=st.lists(st.integers(10, 500), min_size=2, max_size=5, unique=True),
)
def test_split_finds_what_made_the_measurements(
    static: float, dynamic: float, cycles: float, wait: float, clocks: list[int]
) -> None:
    made = []
    for clock in clocks:
        time = cycles / (clock * 1e6) + wait
        made.append(PowerPoint(Q_(clock, "MHz"), Q_(time, "s"), Q_(static * time + dynamic, "J")))
    parts = split_energy(made)
    assert parts.static.m_as("W") == pytest.approx(static, rel=1e-4)
    assert parts.dynamic.m_as("J") == pytest.approx(dynamic, rel=1e-3)
    assert parts.memory.m_as("s") == pytest.approx(wait, abs=1e-6 * cycles / 1e7)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([(100, 1, 1)], "two clocks"),
        ([(100, 1, 1), (100, 2, 2)], "two clocks"),
        ([(100, 1, 5), (50, 2, 4)], "negative static power"),
        ([(100, 1, 1), (50, 2, 3)], "negative dynamic energy"),
        ([(100, 1, 1), (50, 1, 1)], "are linearly dependent"),
    ],
)
def test_split_refuses_what_no_law_makes(points: list[tuple[int, int, int]], message: str) -> None:
    made = [PowerPoint(Q_(clock, "MHz"), Q_(time, "s"), Q_(energy, "J")) for clock, time, energy in points]
    with pytest.raises(ArgumentError, match=message):
        split_energy(made)


@pytest.mark.parametrize("scale", [0, -0.5, 1.01, math.nan, math.inf])
def test_clock_is_a_share_of_the_reference(scale: float) -> None:
    with pytest.raises(ArgumentError, match="scale"):
        Clock(scale)


def brute_force(rows: np.ndarray) -> list[bool]:
    """Return which rows no other row dominates, by looking at every pair."""
    kept = []
    for row in rows:
        beaten = False
        for other in rows:
            no_worse = other[0] >= row[0] and all(other[axis] <= row[axis] for axis in (1, 2, 3))
            better = other[0] > row[0] or any(other[axis] < row[axis] for axis in (1, 2, 3))
            beaten = beaten or (no_worse and better)
        kept.append(not beaten)
    return kept


@pytest.mark.parametrize("seed", range(20))
def test_front_is_that_of_brute_force(seed: int) -> None:
    chance = np.random.default_rng(seed)
    rows = chance.integers(0, 4 if seed % 2 else 40, size=(60, 4)).astype(float)  # few values make ties
    assert unbeaten_rows(rows, (True, False, False, False)).tolist() == brute_force(rows)


def test_front_of_many_points_is_that_of_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(7).random((400, 4))
    whole = unbeaten_rows(rows)
    monkeypatch.setattr("mlsys.edge.pareto._BLOCK", 5000)
    assert (unbeaten_rows(rows) == whole).all()


def test_front_refuses_what_has_no_order() -> None:
    with pytest.raises(ArgumentError, match="finite"):
        unbeaten_rows([[1.0, math.nan]])
    with pytest.raises(ArgumentError, match="shape"):
        unbeaten_rows([1.0, 2.0])


def test_published_violations() -> None:
    """1.2 MiB against 0.5, 1, 2 and 5 MiB."""
    violations = memory_violations(Q_(1.2, "MiB"), [Q_(size, "MiB") for size in (0.5, 1, 2, 5)])
    assert list(violations.values()) == [True, True, False, False]


@pytest.mark.parametrize("unit", ["MB", "MiB", "kB", "byte"])
def test_equal_is_no_violation_and_one_byte_more_is(unit: str) -> None:
    budget = Q_(2, unit)
    assert list(memory_violations(budget, [budget]).values()) == [False]
    assert list(memory_violations(budget + Q_(1, "byte"), [budget]).values()) == [True]


@pytest.mark.parametrize("size", [-1, math.nan])
def test_memory_is_an_amount(size: float) -> None:
    with pytest.raises(ArgumentError, match="memory"):
        memory_violations(Q_(size, "MB"), [Q_(1, "MB")])
