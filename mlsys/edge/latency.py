"""Raw times of single inferences, and their statistics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_number, count, nonnegative

LEAST_FOR = {50: 1, 95: 20, 99: 1000}
"""Least number of samples for each percentile: ten beyond it for the 99th, one for the 95th."""


@dataclass(frozen=True)
class LatencyStatistics:
    """Statistics of raw samples, ms.

    Attributes
    ----------
    count
        Number of samples.
    mean, std
        Mean and unbiased standard deviation; zero deviation for a single sample.
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
    percentiles = {
        percent: float(np.percentile(values, percent)) if len(values) >= least else None
        for percent, least in LEAST_FOR.items()
    }
    return LatencyStatistics(
        len(values),
        float(values.mean()),
        float(values.std(ddof=1)) if len(values) > 1 else None,
        float(np.percentile(values, 50)),
        percentiles[95],
        percentiles[99],
    )


def raw_samples(
    run: Callable[[], object], *, samples: int, repeats: int = 1, warmup: int = 10, threads: int = 1
) -> list[float]:
    """Return the time of every single call, ms, in windows with a warm-up before each.

    Parameters
    ----------
    run
        Function that runs one inference.
    samples, repeats
        Calls per window, and number of windows.
    warmup
        Calls before each window that are dropped.
    threads
        PyTorch threads during timing.

    Examples
    --------
    >>> times = raw_samples(lambda: sum(range(100)), samples=3, repeats=2, warmup=1)
    >>> len(times), all(time > 0 for time in times)
    (6, True)
    """
    import torch

    from mlsys.measure.timing import measure
    from mlsys.units import Q_

    for name, value, spec in (
        ("samples", samples, count()),
        ("repeats", repeats, count()),
        ("warmup", warmup, nonnegative()),
        ("threads", threads, count()),
    ):
        checked_number("raw_samples", name, value, spec, {})
    done = 0

    def window() -> None:
        nonlocal done
        done += 1
        if done % samples == 0 and done < samples * repeats:
            for _ in range(warmup):
                run()

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.inference_mode():
            for _ in range(warmup):
                run()
            # no minimum duration: each sample is one call, never the mean of several
            (timing,) = measure({"run": run}, repeats=samples * repeats, warmup=1, shortest=Q_(1.0, "ns"), tick=window)
    finally:
        torch.set_num_threads(before)
    return [1e3 * seconds for seconds in timing.samples]
