"""Automatic checks for reasons to doubt a measurement."""

from dataclasses import dataclass

from mlsys.measure.log import Log
from mlsys.measure.timing import trend


@dataclass(frozen=True)
class Limits:
    """Limits above which a log is doubted.

    Attributes
    ----------
    first, tail, spread, tight, trend
        First inference over the median; slowest one in a hundred over the median; distance of the run medians; p95 over
        p50 minus one; rise of the latency within a run.
    rate
        Least samples per second of a power meter.
    """

    first: float = 10.0
    tail: float = 2.0
    spread: float = 0.10
    tight: float = 0.05
    trend: float = 0.05
    rate: float = 1000.0


LIMITS = Limits()
_UNLIKELY = 0.01


def doubts(log: Log, limits: Limits = LIMITS) -> tuple[str, ...]:
    """Return every reason to doubt a log, in words; empty if there is none.

    Parameters
    ----------
    log
        A measurement.
    limits
        Limits above which a log is doubted.

    Examples
    --------
    >>> from mlsys.measure import stored_logs
    >>> from dataclasses import replace
    >>> log = replace(stored_logs()["ds-cnn fp32 eager"], environment={"debug": ["a tracer is attached"]})
    >>> [text for text in doubts(log) if "debug" in text]
    ['debug build: a tracer is attached']
    """
    listed = []
    for cold in log.colds:
        if cold.first_ms > limits.first * log.median:
            listed.append(
                f"the first inference of run {cold.run} took {cold.first_ms / log.median:.0f} times the median: "
                "report it separately from the warm ones"
            )
            break
    for run in sorted({sample.run for sample in log.samples}):
        change, chance = trend(log.of_run(run))
        if change > limits.trend and chance < _UNLIKELY:
            listed.append(f"the latency rises by {change:.0%} over run {run}: the machine may be heating up or busy")
            break
    tail = log.percentile(99) / log.median
    if tail > limits.tail:
        listed.append(
            f"the slowest of a hundred take {tail:.1f} times the median (limit {limits.tail:g}): "
            "interrupts or other programs"
        )
    p95 = log.percentile(95) / log.median - 1
    if p95 > limits.tight:
        listed.append(f"p95 lies {p95:.0%} above the median (limit {limits.tight:.0%})")
    if log.runs < 3:
        listed.append(f"{log.runs} run(s): the spread between runs needs at least three")
    elif log.between_runs > limits.spread:
        listed.append(f"the medians of the runs lie {log.between_runs:.0%} apart (limit {limits.spread:.0%})")
    throttled = log.environment.get("throttled_during")
    if isinstance(throttled, int) and throttled > 0:
        listed.append(f"the CPU throttled {throttled} times during the measurement because of heat")
    for words in log.environment.get("debug") or ():
        listed.append(f"debug build: {words}")
    load, cores = log.environment.get("load"), log.environment.get("cores")
    if isinstance(load, (int, float)) and isinstance(cores, int) and load > cores + 0.5:
        listed.append(f"the machine was busy at the start: load {load:.1f} on {cores} cores")
    rate = log.energy.get("rate_hz")
    if isinstance(rate, (int, float)) and rate < limits.rate:
        listed.append(f"power was sampled {rate:.0f} times per second, below {limits.rate:.0f}")
    listed += integer_doubts(log)
    if log.malformed:
        listed.append(f"{len(log.malformed)} lines of the device could not be read")
    return tuple(listed)


def integer_doubts(log: Log) -> list[str]:
    """Return whether integer sums saturated, and the error of the outputs; empty if they are exact.

    Parameters
    ----------
    log
        A measurement.
    """
    check = log.integers
    if check is None:
        return []
    network, worst = check["network_steps"], check["worst_case_steps"]
    deviation = (
        f"the output of {log.model} is {network} steps of its grid from exact integer arithmetic" if network else ""
    )
    if worst:
        cpu = log.environment.get("cpu") or "this CPU"
        here = deviation or (
            f"the output of {log.model} is exact on this input" if network == 0
            else f"the error of the output of {log.model} is unknown"
        )  # fmt: skip
        return [
            f"INT8 SATURATES: {log.backend} on {cpu} does not compute integer sums exactly (worst case, "
            f"{check['layer']}: {worst} steps off); {here}"
        ]
    if worst is None:
        unchecked = f"integer kernels were not checked for saturation: {check['reason']}"
        return [*([deviation] if deviation else []), unchecked]
    return [f"{deviation}: rounding, as no sum saturates"] if deviation else []


def integer_summary(log: Log) -> str:
    """Return a line on a log's integer arithmetic; empty for a network without integers.

    Parameters
    ----------
    log
        A measurement.
    """
    if log.integers is None:
        return "" if log.format != "int8" else "not checked when this log was made"
    if listed := integer_doubts(log):
        return "; ".join(listed)
    if log.integers["network_steps"] is None:
        return "no sum saturates in the worst case"
    return "exact: no sum saturates in the worst case, and the output is that of exact integer arithmetic"
