"""Ratios of CPU counters: instructions per cycle, miss rates, memory bandwidth; None if a counter is absent."""

from collections.abc import Mapping

from mlsys.errors import ArgumentError

LINE = 64
"""Bytes fetched by a miss of the last-level cache."""


def counter_ratios(counters: Mapping[str, float | None], seconds: float) -> dict[str, float | None]:
    """Return ratios of counters by name.

    Parameters
    ----------
    counters
        Counts by ``perf``'s event names, over the time.
    seconds
        Duration in seconds.

    Returns
    -------
    dict
        ``ipc``, instructions per cycle; ``l1_miss_rate`` and ``llc_miss_rate``, of loads; ``branch_accuracy``; and
        ``bytes_per_s``, the traffic of last-level cache misses, a lower bound of the memory traffic: write-backs are
        not counted.

    Raises
    ------
    ArgumentError
        If the time is not positive, or there are more misses than loads.

    Examples
    --------
    >>> ratios = counter_ratios({"cycles": 200.0, "instructions": 300.0, "LLC-load-misses": 10.0}, 1e-6)
    >>> ratios["ipc"], ratios["bytes_per_s"], ratios["branch_accuracy"]
    (1.5, 640000000.0, None)
    """
    if not seconds > 0:
        raise ArgumentError(f"counter_ratios(): `seconds` must be above 0, got {seconds!r}. Write e.g. seconds=0.001")

    def over(top: str, bottom: str) -> float | None:
        upper, lower = counters.get(top), counters.get(bottom)
        return None if upper is None or not lower else upper / lower

    ratios = {
        "ipc": over("instructions", "cycles"),
        "l1_miss_rate": over("L1-dcache-load-misses", "L1-dcache-loads"),
        "llc_miss_rate": over("LLC-load-misses", "LLC-loads"),
    }
    wrong = over("branch-misses", "branches")
    for name, rate in (*ratios.items(), ("branch-misses", wrong)):
        if name != "ipc" and rate is not None and rate > 1:
            raise ArgumentError(f"counter_ratios(): `counters` have more misses than events: {name} is {rate:.3g}")
    misses = counters.get("LLC-load-misses")
    return ratios | {
        "branch_accuracy": None if wrong is None else 1 - wrong,
        "bytes_per_s": None if misses is None else misses * LINE / seconds,
    }
