"""What counters of a processor say: instructions a cycle, misses, bytes from memory; None where a counter lacks."""

from collections.abc import Mapping

from mlsys.errors import ArgumentError

LINE = 64
"""Bytes that a miss of the last cache brings in."""


def counter_ratios(counters: Mapping[str, float | None], seconds: float) -> dict[str, float | None]:
    """Return ratios of counters by name.

    Parameters
    ----------
    counters
        Counts by the names of ``perf``, over the time.
    seconds
        The time.

    Returns
    -------
    dict
        ``ipc``, instructions a cycle; ``l1_miss_rate`` and ``llc_miss_rate``, of loads; ``branch_accuracy``; and
        ``bytes_per_s``, what misses of the last cache brought in: loads that hit in it are no traffic of memory, and
        what is written back is not counted, so that it is a least value.

    Raises
    ------
    ArgumentError
        If the time is not above zero, or there are more misses than loads.

    Examples
    --------
    >>> told = counter_ratios({"cycles": 200.0, "instructions": 300.0, "LLC-load-misses": 10.0}, 1e-6)
    >>> told["ipc"], told["bytes_per_s"], told["branch_accuracy"]
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
