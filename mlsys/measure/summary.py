"""Summary of a log in a few numbers and sentences."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlsys.measure.attribution import attribution_or_reason
from mlsys.measure.doubts import doubts, integer_summary
from mlsys.measure.log import Log


def summary(log: Log) -> dict[str, Any]:
    """Return latency, energy, attribution, advice and doubts as plain data; unknown values are None.

    Parameters
    ----------
    log
        A measurement.
    """
    from mlsys.measure.recommend.whatif import advice

    low, high = (float(end.m_as("ms")) for end in log.timing.interval())
    energies = np.array(log.energies)
    facts: dict[str, Any] = {
        "name": log.name, "platform": log.platform, "day": log.day, "samples": len(log.samples), "runs": log.runs,
        "latency_ms": {
            "p50": log.median, "p95": log.percentile(95), "p99": log.p99, "low": low, "high": high,
            "mean": float(log.latencies.mean()), "std": _spread(log.latencies),
        },
        "p99_reason": "" if log.p99 is not None else f"needs 1,000 samples, has {len(log.samples):,}",
        "between_runs": log.between_runs if log.runs > 1 else None,
        "cold": {"load_ms": log.colds[0].load_ms, "first_ms": log.colds[0].first_ms} if log.colds else None,
        "throughput_hz": 1e3 / log.median,
        "energy_mj": {
            "mean": float(energies.mean()) if len(energies) else None,
            "std": _spread(energies),
            "reason": log.energy["reason"],
        },
        "memory": log.memory and dict(log.memory),
        "integers": log.integers and dict(log.integers),
        "doubts": list(doubts(log)),
    }  # fmt: skip
    attribution, reason = attribution_or_reason(log)
    return facts | {
        "attribution": attribution and attribution.shares, "attribution_reason": reason,
        "bottleneck": attribution and attribution.bottleneck,
        "recommendations": list(advice(attribution, log)) if attribution else [],
    }  # fmt: skip


def _spread(values: np.ndarray) -> float | None:
    return float(values.std(ddof=1)) if len(values) > 1 else None


def summary_text(log: Log) -> str:
    """Return the summary as text."""
    facts = summary(log)
    latency = facts["latency_ms"]
    tail = f"p99 {latency['p99']:.4g}" if latency["p99"] is not None else f"p99 not reported ({facts['p99_reason']})"
    lines = [
        f"{log.name} on {log.platform}, {log.day}",
        f"  {latency['p50']:.4g} ms (95 %: {latency['low']:.4g} to {latency['high']:.4g}), p95 {latency['p95']:.4g}, "
        f"{tail}; {facts['samples']} samples in {facts['runs']} runs",
    ]
    if facts["between_runs"] is not None:
        lines.append(f"  between runs: {facts['between_runs']:.1%}")
    if facts["cold"] is not None:
        load = facts["cold"]["load_ms"]
        before = "load time unknown" if load is None else f"load {load:.4g} ms"
        lines.append(f"  cold: {before}, first inference {facts['cold']['first_ms']:.4g} ms")
    energy = facts["energy_mj"]
    lines.append(
        f"  energy: {energy['mean']:.4g} mJ" if energy["mean"] is not None else f"  no energy: {energy['reason']}"
    )
    if words := integer_summary(log):
        lines.append(f"  integers: {words}")
    if facts["attribution"] is None:
        lines.append(f"  not attributed: {facts['attribution_reason'].partition(': ')[2]}")
    else:
        lines.append("  " + ", ".join(f"{cause} {share:.1f} %" for cause, share in facts["attribution"].items()))
    lines += [f"  advice: {text}" for text in facts["recommendations"]]
    lines += [f"  doubt: {text}" for text in facts["doubts"]]
    return "\n".join(lines)


def agreement(logs: Sequence[Log]) -> list[tuple[str, str, float]]:
    """Return the relative difference of each log's output from that of the first log of its network.

    Parameters
    ----------
    logs
        Logs without an output are skipped.
    """
    first: dict[str, Log] = {}
    pairs = []
    for log in logs:
        if log.output is None:
            continue
        other = first.setdefault(log.model, log)
        if other is not log and other.output is not None and len(other.output) == len(log.output):
            ours, theirs = np.array(log.output), np.array(other.output)
            largest = float(np.abs(theirs).max()) or 1.0
            pairs.append((other.name, log.name, float(np.abs(ours - theirs).max()) / largest))
    return pairs
