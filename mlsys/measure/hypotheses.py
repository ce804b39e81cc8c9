"""Claims about a change, tested by measurement: passed, failed or undecided, with an interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.measure.log import Log
from mlsys.measure.networks.chains import Net
from mlsys.measure.timing import bootstrap_interval

_DRAWS = 2000


@dataclass(frozen=True)
class Verdict:
    """Result of testing a claim.

    Attributes
    ----------
    claim
        The claim in words.
    wanted
        Claimed reduction, 0 to 1.
    reduction, low, high
        (before − after) / before of the medians, and its 95 % interval.
    runs
        Reduction in each pair of repeated runs.
    verdict
        ``pass`` if the interval and all runs reach the claim, ``fail`` if none does, else ``undecided``.
    """

    claim: str
    wanted: float
    reduction: float
    low: float
    high: float
    runs: tuple[float, ...]
    verdict: str

    def explain(self) -> str:
        """Return the result as a sentence."""
        between = f"; run by run {', '.join(f'{run:+.0%}' for run in self.runs)}" if len(self.runs) > 1 else ""
        return (
            f"{self.verdict.upper()}: {self.claim}. Claimed −{self.wanted:.0%}, found {-self.reduction:+.1%} "
            f"(95 %: {-self.high:+.1%} to {-self.low:+.1%}{between})"
        )


def judge(claim: str, before: Log, after: Log, wanted: float, *, seed: int = 0) -> Verdict:
    """Test a claim on latency: that ``after`` is shorter than ``before`` by at least ``wanted``.

    Parameters
    ----------
    claim
        The claim in words.
    before, after
        Logs of the two.
    wanted
        Claimed reduction, 0 to 1.
    seed
        Seed of the bootstrap (scipy's, of the ratio of medians, by percentiles).

    Raises
    ------
    ArgumentError
        If ``wanted`` is out of its range.

    Examples
    --------
    >>> from mlsys.measure import stored_logs
    >>> logs = stored_logs()
    >>> judge("INT8 takes 60 % less", logs["ds-cnn fp32 litert"], logs["ds-cnn int8 litert"], 0.6).verdict
    'fail'
    """
    _checked(wanted)
    top, bottom = before.latencies, after.latencies
    value = 1 - float(np.median(bottom) / np.median(top))
    if np.ptp(top) == 0 and np.ptp(bottom) == 0:
        low = high = value
    else:
        low, high = bootstrap_interval(
            (top, bottom), lambda a, b, axis: 1 - np.median(b, axis=axis) / np.median(a, axis=axis),
            draws=_DRAWS, paired=False, seed=seed,
        )  # fmt: skip
    pairs = zip(before.run_medians, after.run_medians, strict=False)
    return _verdict(claim, wanted, value, low, high, tuple(1 - new / old for old, new in pairs))


def judge_number(claim: str, before: float, after: float, wanted: float) -> Verdict:
    """Test a claim on a count, which has no spread.

    Parameters
    ----------
    claim
        The claim in words.
    before, after
        Positive values.
    wanted
        Claimed reduction, 0 to 1.

    Raises
    ------
    ArgumentError
        If a number is out of its range.
    """
    _checked(wanted)
    if not (before > 0 and after >= 0 and np.isfinite(before) and np.isfinite(after)):
        raise ArgumentError(f"judge_number(): `before` must be > 0 and `after` >= 0, got {before} and {after}")
    value = 1 - after / before
    return _verdict(claim, wanted, value, value, value, ())


def _checked(wanted: float) -> None:
    if not 0 <= wanted <= 1:
        raise ArgumentError(f"judge(): `wanted` must be 0 to 1, got {wanted!r}. Write e.g. wanted=0.6")


def _verdict(claim: str, wanted: float, value: float, low: float, high: float, runs: tuple[float, ...]) -> Verdict:
    if min((low, *runs)) >= wanted:
        word = "pass"
    elif max((high, *runs)) < wanted:
        word = "fail"
    else:
        word = "undecided"
    return Verdict(claim, wanted, value, low, high, runs, word)


def fused_traffic(net: Net, element: int = 4) -> tuple[int, int, int]:
    """Return the bytes moved without fusion, with fused activations, and with fused depthwise-pointwise pairs.

    Between a depthwise layer and the pointwise layer after it, the intermediate tensor is then neither written nor
    read.

    Parameters
    ----------
    net
        A chain of layers.
    element
        Bytes per value.

    Examples
    --------
    >>> from mlsys.measure.networks.chains import net_of
    >>> separate, inside, pairs = fused_traffic(net_of("ds-cnn"))
    >>> separate > inside > pairs
    True
    """
    costs = [layer.work(element) for layer in net.layers]
    inside = sum(cost.data for cost in costs)
    separate = inside + sum(2 * cost.write_bytes for layer, cost in zip(net.layers, costs, strict=True) if layer.relu)
    pairs = inside
    for first, second, cost in zip(net.layers, net.layers[1:], costs, strict=False):
        if first.kind == "depthwise" and second.kind == "conv" and second.kernel == (1, 1):
            pairs -= 2 * cost.write_bytes
    return separate, inside, pairs


def standard_claims(logs: Sequence[Log]) -> list[Verdict]:
    """Return the results for the customary claims, for every pair of logs that can test them.

    Parameters
    ----------
    logs
        Logs of one network or several.
    """
    from mlsys.measure.networks.chains import NETS, net_of

    by = {(log.model, log.format, log.backend, log.platform): log for log in logs}
    judged = []
    for (model, number, backend, platform), log in by.items():
        small = by.get((model, "int8", backend, platform))
        if number == "fp32" and small is not None:
            judged.append(judge(f"INT8 makes {model} on {backend} take 60 % less time", log, small, 0.6))
        compiled = by.get((model, number, "inductor", platform))
        if backend == "eager" and compiled is not None:
            judged.append(judge(f"compiling {model} makes it take 25 % less time", log, compiled, 0.25))
    for model in dict.fromkeys(log.model for log in logs if log.model in NETS):
        separate, inside, pairs = fused_traffic(net_of(model))
        judged.append(judge_number(f"fused activations reduce the bytes of {model} by 30 %", separate, inside, 0.3))
        judged.append(judge_number(f"fused pairs reduce the bytes of {model} by another 30 %", inside, pairs, 0.3))
    return judged
