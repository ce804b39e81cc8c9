"""Timing: intervals by counting, trends by construction, order of the calls by a clock of our own."""

import itertools
import math

import numpy as np
import pytest

from mlsys.errors import ArgumentError, ArgumentUnitError
from mlsys.measure.timing import Timing, latency_statistics, measure, ratio_of_medians
from mlsys.units import Q_


def timing(*samples: float) -> Timing:
    return Timing("it", samples)


def test_percentiles_and_median_are_numpys_own() -> None:
    samples = np.random.default_rng(0).lognormal(size=37)
    timed = timing(*samples)
    assert timed.median.m_as("s") == np.median(samples)
    assert timed.percentile(90).m_as("s") == pytest.approx(np.quantile(samples, 0.9))


@pytest.mark.parametrize("size", [6, 7, 20, 30, 71])
def test_the_interval_of_the_median_covers_as_counted(size: int) -> None:
    # By counting, not by scipy: of 2^n ways to lie below or above the median, those that leave it inside.
    timed = timing(*range(size))
    low, high = (round(end.m_as("s")) for end in timed.interval())
    assert low + high == size - 1
    inside = sum(math.comb(size, below) for below in range(low + 1, high + 1)) / 2**size
    tighter = sum(math.comb(size, below) for below in range(low + 2, high)) / 2**size
    assert inside >= 0.95 > tighter


def test_the_interval_covers_the_median_of_a_skewed_distribution() -> None:
    rng = np.random.default_rng(1)
    true = math.exp(0)  # median of the log-normal distribution
    hits = 0
    for _ in range(300):
        low, high = timing(*rng.lognormal(size=15)).interval()
        hits += low.m_as("s") <= true <= high.m_as("s")
    assert hits / 300 > 0.93


def test_too_few_samples_give_their_whole_range_and_say_so() -> None:
    few = timing(1.0, 2.0, 3.0)
    assert [end.m_as("s") for end in few.interval()] == [1, 3]
    assert "too few" in few.warnings[0]


def test_a_rising_run_is_noticed_and_a_level_one_is_not() -> None:
    rounds = np.arange(30)
    noise = np.random.default_rng(2).normal(scale=0.005, size=30)
    rising, level = timing(*(1 + 0.01 * rounds + noise)), timing(*(1 + noise))
    assert any("rises by" in words for words in rising.warnings)
    assert any("falls by" in words for words in timing(*(2 - 0.01 * rounds + noise)).warnings)
    assert level.warnings == ()
    assert rising.trend[0] == pytest.approx(0.29 / 1.145, rel=0.05)


def test_noise_is_noticed() -> None:
    assert any("noisy" in words for words in timing(*([1.0, 1.5] * 10)).warnings)


def test_the_ratio_keeps_what_both_share() -> None:
    shared = np.random.default_rng(3).lognormal(sigma=0.5, size=40)  # a machine that is now fast, now slow
    ratio = ratio_of_medians(Timing("a", tuple(3 * shared)), Timing("b", tuple(shared)))
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((3, 3, 3))


def test_the_ratio_of_independent_samples_is_covered() -> None:
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(40):
        a, b = 2 * rng.lognormal(sigma=0.2, size=25), rng.lognormal(sigma=0.2, size=25)
        ratio = ratio_of_medians(Timing("a", tuple(a)), Timing("b", tuple(b)))
        hits += ratio.low <= 2 <= ratio.high
    assert hits >= 34


def test_ratios_multiply() -> None:
    rng = np.random.default_rng(5)
    a, b, c = (Timing(name, tuple(rng.lognormal(size=9))) for name in "abc")
    assert ratio_of_medians(a, b).value * ratio_of_medians(b, c).value == pytest.approx(ratio_of_medians(a, c).value)


def test_the_ratio_wants_as_many_rounds_of_both() -> None:
    with pytest.raises(ArgumentError, match="'a' has 2 rounds and 'b' 1. Time them in one call"):
        ratio_of_medians(Timing("a", (1.0, 1.0)), Timing("b", (1.0,)))


class Machine:
    """A clock, and calls that take their time on it; it slows down steadily."""

    def __init__(self, drift: float = 0.0) -> None:
        self.now, self.drift, self.log = 0.0, drift, []  # type: ignore[var-annotated]

    def call(self, name: str, seconds: float):  # type: ignore[no-untyped-def]
        def run() -> None:
            self.log.append(name)
            self.now += seconds * (1 + self.drift * self.now)

        return run

    def clock(self) -> float:
        return self.now


def test_candidates_run_in_turn_forwards_and_backwards() -> None:
    machine = Machine()
    measure(
        {"a": machine.call("a", 1), "b": machine.call("b", 1), "c": machine.call("c", 1)},
        repeats=4, warmup=1, clock=machine.clock,
    )  # fmt: skip
    assert "".join(machine.log) == "abc" + "abc" + "cba" + "abc" + "cba"


def test_a_steady_drift_cancels() -> None:
    machine = Machine(drift=0.001)
    a, b = measure({"a": machine.call("a", 1), "b": machine.call("b", 1)}, repeats=40, warmup=1, clock=machine.clock)
    assert abs(ratio_of_medians(a, b).value - 1) < 0.002
    apart = Machine(drift=0.001)  # one after the other, as it is often done
    runs = [measure({name: apart.call(name, 1)}, repeats=40, warmup=1, clock=apart.clock)[0] for name in "ab"]
    assert ratio_of_medians(runs[1], runs[0]).value > 1.03


def test_short_calls_are_taken_by_the_batch() -> None:
    machine = Machine()
    short, long = measure(
        {"short": machine.call("short", 1e-5), "long": machine.call("long", 0.1)},
        repeats=6, warmup=2, shortest=Q_(1, "ms"), clock=machine.clock,
    )  # fmt: skip
    assert (short.calls, long.calls) == (100, 1)
    assert short.median.m_as("s") == pytest.approx(1e-5)
    assert machine.log.count("short") == 2 + 6 * 100


def test_the_limit_stops_after_enough_rounds() -> None:
    machine = Machine()
    (timed,) = measure({"a": machine.call("a", 1)}, repeats=100, warmup=1, limit=Q_(9.5, "s"), clock=machine.clock)
    assert len(timed.samples) == 10
    (short,) = measure({"a": machine.call("a", 1)}, repeats=100, warmup=1, limit=Q_(1, "s"), clock=machine.clock)
    assert len(short.samples) == 6


def test_each_window_is_warmed_up_and_a_sample_is_one_call() -> None:
    machine = Machine()
    (timed,) = measure(
        {"a": machine.call("a", 1e-6)}, repeats=15, warmup=4, window=5, shortest=Q_(1, "ns"), clock=machine.clock
    )
    assert len(timed.samples) == 15 and timed.calls == 1
    assert len(machine.log) == 15 + 3 * 4


def test_each_round_ticks() -> None:
    ticks = itertools.count()
    measure({"a": lambda: None}, repeats=7, warmup=1, tick=lambda: next(ticks))
    assert next(ticks) == 7


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"repeats": 0}, "`repeats` must be a whole number >= 1, got 0"),
        ({"repeats": True}, "`repeats` must be"),
        ({"window": 0}, "`window` must be a whole number >= 1, got 0"),
        ({"warmup": 1.5}, "`warmup` must be a whole number"),
        ({"shortest": 0.001}, "`shortest` must be a quantity in s"),
        ({"limit": Q_(-1, "s")}, "`limit` must be a finite number > 0 in s"),
        ({"limit": Q_(1, "byte")}, "`limit` must be a quantity in s"),
    ],
)
def test_wrong_numbers_are_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises((ArgumentError, ArgumentUnitError), match=words):
        measure({"a": lambda: None}, **wrong)  # type: ignore[arg-type]


def test_nothing_to_time_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"`candidates` is empty. Write e.g. candidates=\{'eager': run\}"):
        measure({})
    with pytest.raises(ArgumentError, match="`samples` must have at least one number"):
        timing()


@pytest.mark.parametrize("step", [-100e-9, float("nan")])
def test_a_clock_that_runs_backwards_is_refused(step: float) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += step
        return now[0]

    with pytest.raises(ArgumentError, match="`clock` must not run backwards"):
        measure({"a": lambda: None}, repeats=2, warmup=1, clock=clock)


def test_ninety_ninth_percentile_asks_for_a_thousand_samples() -> None:
    chance = np.random.default_rng(1)
    samples = chance.lognormal(size=1000)
    assert latency_statistics(samples[:999]).p99 is None
    assert latency_statistics(samples).p99 == pytest.approx(float(np.quantile(samples, 0.99)))
    assert latency_statistics(samples[:19]).p95 is None
    assert latency_statistics([3.0]).std is None


def test_percentile_of_samples_is_not_that_of_window_means() -> None:
    """The original took the 95th percentile of five means: of these windows 1.16 ms where a request sees 2 ms."""
    windows = [[1.0] * 90 + [2.0] * 10] * 4 + [[1.0] * 80 + [2.0] * 20]
    samples = list(itertools.chain(*windows))
    means = [float(np.mean(window)) for window in windows]
    assert latency_statistics(samples).p95 == 2.0
    assert np.percentile(means, 95) < 1.25


@pytest.mark.parametrize("samples", [[], [0.0], [-1.0], [math.nan]])
def test_statistics_refuse_what_is_no_time(samples: list[float]) -> None:
    with pytest.raises(ArgumentError, match="> 0 ms"):
        latency_statistics(samples)
