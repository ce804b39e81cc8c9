"""Timing of calls: warmed up, repeated, in alternating order, with confidence intervals; statistics of raw samples.

Raw samples are kept. They are summarised by the median, with a confidence interval from order statistics, which assumes
nothing about their distribution; a ratio of medians gets a bootstrap interval over rounds.
"""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.gc_pause import gc_paused
from mlsys.unit_checks import checked_count, checked_number, positive
from mlsys.units import Q_, Quantity

_LEAST_ROUNDS = 6  # fewer do not suffice for a 95 % interval of a median
_NOISY, _RISING, _UNLIKELY = 0.10, 0.05, 0.01
_SHORTEST = Q_(1.0, "ms")
_MOST_POINTS = 4000  # points of a line fit
LEAST_FOR = {50: 1, 95: 20, 99: 1000}
"""Least number of samples for each percentile: ten beyond it for the 99th, one for the 95th."""


@dataclass(frozen=True)
class Timing:
    """Raw samples of one timed call.

    Attributes
    ----------
    name
        Name of the call.
    samples
        Seconds per call, one number per round, in the order of the rounds.
    calls
        Calls averaged in one sample: more than one if a call is too short for the clock.
    warmup
        Calls before the first sample.

    Examples
    --------
    >>> timing = Timing("sum", (2.0, 1.0, 1.5, 1.2, 1.1, 1.3, 9.0))
    >>> low, high = timing.interval()
    >>> print(timing.median, low, high)
    1.3 s 1 s 9 s
    """

    name: str
    samples: tuple[float, ...]
    calls: int = 1
    warmup: int = 0

    def __post_init__(self) -> None:
        if not self.samples:
            raise ArgumentError(
                "Timing(): `samples` must have at least one number, got none. Write e.g. samples=(0.1,)"
            )

    @cached_property
    def _values(self) -> np.ndarray:
        return np.asarray(self.samples, dtype=float)

    def percentile(self, percent: float) -> Quantity:
        """Return a percentile of the samples, s.

        Parameters
        ----------
        percent
            0 to 100, with linear interpolation between samples.
        """
        if not 0 <= percent <= 100:
            raise ArgumentError(f"percentile(): `percent` must be 0 to 100, got {percent!r}. Write e.g. percent=90")
        return Q_(float(np.percentile(self._values, percent)), "s")

    @property
    def median(self) -> Quantity:
        """Median of the samples, s."""
        return self.percentile(50)

    def interval(self, confidence: float = 0.95) -> tuple[Quantity, Quantity]:
        """Return a confidence interval of the true median, s, as two of the samples.

        Parameters
        ----------
        confidence
            Above 0 and below 1. With too few samples the whole range is returned.

        Notes
        -----
        The number of samples below the true median is binomial with p = 1/2, whatever the distribution, so order
        statistics bound it.

        References
        ----------
        J.-Y. Le Boudec, Performance Evaluation of Computer and Communication Systems, EPFL Press 2010, section 2.2.
        """
        from scipy.stats import binom

        if not 0 < confidence < 1:
            raise ArgumentError(
                f"interval(): `confidence` must be above 0 and below 1, got {confidence!r}. Write e.g. confidence=0.95"
            )
        ordered = np.sort(self._values)
        size = len(ordered)
        below = int(
            binom.ppf((1 - confidence) / 2, size, 0.5)
        )  # P(fewer than `below` samples under the median) is small
        low = max(below - 1, 0)
        return Q_(float(ordered[low]), "s"), Q_(float(ordered[size - 1 - low]), "s")

    @property
    def spread(self) -> float:
        """Interquartile range over the median."""
        first, third = np.percentile(self._values, (25, 75))
        return float((third - first) / np.median(self._values))

    @property
    def trend(self) -> tuple[float, float]:
        """Change from the first to the last round over the median (Theil-Sen), and its p-value."""
        return trend(self._values, least=_LEAST_ROUNDS)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the samples, in words; empty if there are none."""
        texts = []
        if len(self.samples) < _LEAST_ROUNDS:
            texts.append(f"{self.name}: {len(self.samples)} rounds are too few for an interval, use {_LEAST_ROUNDS}")
        if self.spread > _NOISY:
            texts.append(
                f"{self.name}: noisy, the interquartile range of the rounds is {self.spread:.0%} of the median"
            )
        change, chance = self.trend
        if abs(change) > _RISING and chance < _UNLIKELY:
            rises = ("rises", "the machine may be heating up or busy")
            word, cause = rises if change > 0 else ("falls", "warm up longer")
            texts.append(f"{self.name}: {word} by {abs(change):.0%} over the rounds; {cause}")
        return tuple(texts)


def trend(values: np.ndarray, *, least: int = 10) -> tuple[float, float]:
    """Return the change over a series by the Theil-Sen line, as a fraction of the median, and its p-value.

    Parameters
    ----------
    values
        Samples in the order of time.
    least
        Length below which no trend is computed.

    Examples
    --------
    >>> rise, chance = trend(np.linspace(1.0, 1.2, 50))
    >>> round(rise, 3), chance < 0.01
    (0.182, True)
    """
    from scipy.stats import kendalltau, theilslopes

    if len(values) < least or np.ptp(values) == 0:
        return 0.0, 1.0
    order = np.arange(len(values))
    chance = float(kendalltau(order, values).pvalue)
    size = -(-len(values) // _MOST_POINTS)  # the estimator uses each pair of points, so long series are binned
    points = [float(np.median(values[begin : begin + size])) for begin in range(0, len(values), size)]
    slope = float(theilslopes(points)[0])  # per point
    return slope * (len(values) - 1) / size / float(np.median(values)), chance


@dataclass(frozen=True)
class Ratio:
    """A ratio of times, with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f}× ({self.low:.2f} to {self.high:.2f})"


def ratio_of_medians(slow: Timing, fast: Timing, confidence: float = 0.95) -> Ratio:
    """Return the median of ``slow`` over that of ``fast``, with a bootstrap interval over rounds.

    Parameters
    ----------
    slow, fast
        Timings taken together, round by round, so that disturbances affect both.
    confidence
        Confidence of the interval, above 0 and below 1.

    Raises
    ------
    ArgumentError
        If the numbers of rounds differ.

    Examples
    --------
    >>> print(ratio_of_medians(Timing("a", (2.0,) * 8), Timing("b", (1.0,) * 8)))
    2.00× (2.00 to 2.00)
    """
    if len(slow.samples) != len(fast.samples):
        raise ArgumentError(
            f"ratio_of_medians(): {slow.name!r} has {len(slow.samples)} rounds and {fast.name!r} {len(fast.samples)}. "
            "Time them in one call of measure()"
        )
    top, bottom = slow._values, fast._values
    value = float(np.median(top) / np.median(bottom))
    if len(top) < 2:
        return Ratio(value, value, value)
    low, high = bootstrap_interval(
        (top, bottom), lambda a, b, axis: np.median(a, axis=axis) / np.median(b, axis=axis),
        draws=4999, paired=True, confidence=confidence,
    )  # fmt: skip
    return Ratio(value, low, high)


def bootstrap_interval(
    samples: tuple[np.ndarray, np.ndarray], statistic: Callable[..., np.ndarray], *, draws: int, paired: bool,
    confidence: float = 0.95, seed: int = 0,
) -> tuple[float, float]:  # fmt: skip
    """Return the percentile interval of a statistic of two sets of samples, by scipy's bootstrap.

    Parameters
    ----------
    samples, statistic
        The two sets, and a function of both and ``axis``.
    draws, paired
        Number of resamples, and whether entries of equal index belong together.
    confidence, seed
        Confidence of the interval, above 0 and below 1, and seed of the resampling.
    """
    from scipy.stats import bootstrap

    interval = bootstrap(
        samples, statistic, paired=paired, vectorized=True, n_resamples=draws, confidence_level=confidence,
        method="percentile", rng=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return float(interval.low), float(interval.high)


def measure(
    candidates: Mapping[str, Callable[[], object]],
    *,
    repeats: int = 30,
    warmup: int = 5,
    shortest: Quantity | None = None,
    limit: Quantity | None = None,
    window: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
    tick: Callable[[], object] = lambda: None,
) -> tuple[Timing, ...]:
    """Time several calls against each other.

    Each round times every candidate once, in alternating order, so that a machine that slowly heats up, or another
    program that comes and goes, affects all of them alike.

    Parameters
    ----------
    candidates
        Functions without arguments, by name.
    repeats, warmup
        Timed rounds, and warm-up calls of each candidate.
    shortest
        Least duration of one sample, by default one millisecond: shorter calls are repeated within a sample.
    limit
        Time limit, applied once six rounds are done; none by default.
    window
        Rounds after which the warm-up is repeated; by default it is not.
    clock
        Function that returns seconds; for tests.
    tick
        Called after each round, for a progress bar.

    Returns
    -------
    tuple of Timing
        In the order of ``candidates``.

    Raises
    ------
    ArgumentError
        If there are no candidates, a number is out of its range, or the clock runs backwards.

    Examples
    --------
    >>> short, two = measure({"one": lambda: sum(range(10)), "two": lambda: sum(range(20))}, repeats=6)
    >>> len(short.samples), short.calls > 1
    (6, True)
    """
    if not candidates:
        raise ArgumentError("measure(): `candidates` is empty. Write e.g. candidates={'eager': run}")
    rounds = checked_count("measure", "repeats", repeats)
    before = checked_count("measure", "warmup", warmup)
    least = float(checked_number("measure", "shortest", shortest or _SHORTEST, positive("s"), {}))
    most = float("inf") if limit is None else float(checked_number("measure", "limit", limit, positive("s"), {}))
    again = rounds if window is None else checked_count("measure", "window", window)
    batches = {name: _batch(run, before, least, clock) for name, run in candidates.items()}
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    gc.collect()
    with gc_paused():
        started = clock()
        for index in range(rounds):
            for run in candidates.values() if index and index % again == 0 else ():
                for _ in range(before):
                    run()
            order = list(candidates) if index % 2 == 0 else list(candidates)[::-1]
            for name in order:
                run, calls = candidates[name], batches[name]
                start = clock()
                for _ in range(calls):
                    run()
                samples[name].append(_elapsed(start, clock()) / calls)
            tick()
            if index + 1 >= _LEAST_ROUNDS and clock() - started > most:
                break
    return tuple(Timing(name, tuple(samples[name]), batches[name], before) for name in candidates)


def _elapsed(start: float, end: float) -> float:
    """Return the time between two readings of a clock, s; raise if it ran backwards."""
    if not end >= start:
        raise ArgumentError(
            f"measure(): `clock` must not run backwards: {end:.9g} s came after {start:.9g} s. "
            "Use a monotonic clock, such as time.perf_counter"
        )
    return end - start


def _batch(run: Callable[[], object], warmup: int, least: float, clock: Callable[[], float]) -> int:
    """Warm up, and return the number of calls that makes one sample long enough."""
    times = []
    for _ in range(warmup):
        start = clock()
        run()
        times.append(_elapsed(start, clock()))
    once = min(times)
    return 1 if once >= least else max(1, round(least / max(once, 1e-7)))


@dataclass(frozen=True)
class LatencyStatistics:
    """Statistics of raw samples, ms.

    Attributes
    ----------
    count
        Number of samples.
    mean, std
        Mean, and unbiased standard deviation; None for a single sample.
    p50, p95, p99
        Percentiles with linear interpolation; None if there are too few samples.
    """

    count: int
    mean: float
    std: float | None
    p50: float
    p95: float | None
    p99: float | None


def latency_statistics(samples: Sequence[float]) -> LatencyStatistics:
    """Return the statistics of raw samples, each of one inference.

    Parameters
    ----------
    samples
        Times of single inferences, ms, positive.

    Raises
    ------
    ArgumentError
        If there are none, or one is not a positive finite number.

    Examples
    --------
    >>> statistics = latency_statistics([1.0, 2.0, 3.0, 4.0])
    >>> statistics.p50, statistics.p99, round(statistics.std, 3)
    (2.5, None, 1.291)
    """
    values = np.asarray(samples, dtype=float)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all() or (values <= 0).any():
        raise ArgumentError(
            "latency_statistics(): `samples` must be finite times > 0 ms, at least one. Write e.g. samples=[1.2]"
        )

    def reported(percent: int) -> float | None:
        return float(np.percentile(values, percent)) if len(values) >= LEAST_FOR[percent] else None

    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    middle = float(np.percentile(values, 50))
    return LatencyStatistics(len(values), float(values.mean()), deviation, middle, reported(95), reported(99))
