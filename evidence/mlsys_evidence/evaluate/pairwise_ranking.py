"""Which of two devices is faster: pairs that one source measured with the same work under the same software.

The errors of two held-out devices are nearly uncorrelated, unless the source is unseen: then both carry the source's
bias, which cancels in the ratio of the two times. The range of the ratio therefore follows from the ranges of the two
devices, :func:`mlsys.models.estimate.ranges.speed_range`; here it is compared with measured ratios.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mlsys.models.estimate.ranges import ALL_SOURCES, range_of, speed_range
from mlsys.provenance import remembered, traced
from mlsys_evidence.evaluate.blind_evaluation import BLIND_EVALUATIONS, blind_evaluation_rows
from mlsys_evidence.evaluate.report import Prediction, validate
from mlsys_evidence.fit.refit import held_out_predictions

# Groups with fewer measured pairs are not listed separately.
FEWEST = 40


@dataclass(frozen=True)
class RankingAccuracy:
    """Accuracy of the ranking in one group; the n pairs of two devices of one source and setting weigh √n together.

    Attributes
    ----------
    pairs, machines
        Number of measured pairs, and of pairs of devices.
    together
        Correlation of the two errors about zero.
    right
        Share of pairs in which the device that is predicted to be faster is faster, %.
    separated, right_if_separated
        Share of pairs whose predicted ratio differs from 1 by more than its range, and how often the order is then
        right, %.
    disjoint
        Share of pairs whose ranges do not overlap, %.
    covered
        Share of measured ratios in their 80 % range, %.
    """

    pairs: int
    machines: int
    together: float
    right: float
    separated: float
    right_if_separated: float
    disjoint: float
    covered: float


@dataclass(frozen=True)
class _Estimate:
    """The measured and the estimated time of one row, and the ends of its range as factors of the estimate."""

    each: Prediction
    low: float
    high: float

    @property
    def error(self) -> float:
        """Logarithm of measured over estimated time."""
        return -math.log(self.each.ratio)


_Pair = tuple[_Estimate, _Estimate]


def pairs_of(estimates: Iterable[_Estimate]) -> list[_Pair]:
    """Return all pairs of rows that differ only in their device."""
    devices_by_work: dict[tuple[object, ...], dict[str, _Estimate]] = {}
    for estimate in estimates:
        row, case = estimate.each.row, estimate.each.case
        if case is not None:
            work = (row.workload, row.model, row.precision, row.batch, row.seq_or_shape, row.metric, row.n_devices)
            devices = devices_by_work.setdefault((row.measured_by, case.setting, case.version, *work), {})
            devices.setdefault(case.twin, estimate)
    return [pair for devices in devices_by_work.values() for pair in combinations(devices.values(), 2)]


def left_out_pairs() -> list[_Pair]:
    """Return the pairs among the shipped rows, each device estimated by a fit without it."""
    estimates = []
    for each in held_out_predictions("device"):
        ends = sorted((each.low / each.value, each.high / each.value))
        if each.case is not None and each.case.inverse:
            ends = [1 / ends[1], 1 / ends[0]]
        estimates.append(_Estimate(each, ends[0], ends[1]))
    return pairs_of(estimates)


def unseen_source_pairs() -> list[_Pair]:
    """Return the pairs among the rows of all blind evaluations, with ranges for sources in general."""
    estimates = []
    for number in BLIND_EVALUATIONS:
        for each in validate(blind_evaluation_rows(number)).predictions:
            if each.case is not None and each.answered:
                case = each.case
                reach = range_of(
                    case.setting, case.twin, case.network, version=case.version, source=ALL_SOURCES, work=case.kind
                )
                estimates.append(_Estimate(each, reach.low, reach.high))
    return pairs_of(estimates)


def compared(pairs: Sequence[_Pair]) -> RankingAccuracy:
    """Return the accuracy of the ranking over some pairs."""
    names = [(first.each.row.measured_by, *(_setting(each) for each in (first, other))) for first, other in pairs]
    counts = Counter(names)
    weights = np.array([1 / math.sqrt(counts[name]) for name in names])
    weights /= weights.sum()
    errors = np.array([[first.error, other.error] for first, other in pairs])
    predicted = np.log([first.each.seconds / other.each.seconds for first, other in pairs])
    off = errors[:, 0] - errors[:, 1]
    low, high = np.log([speed_range((first.low, first.high), (other.low, other.high)) for first, other in pairs]).T
    right = predicted * (predicted + off) > 0
    separated = (predicted + low > 0) | (predicted + high < 0)
    own = np.log([[first.low, first.high, other.low, other.high] for first, other in pairs])
    disjoint = (predicted + own[:, 0] - own[:, 3] > 0) | (predicted + own[:, 1] - own[:, 2] < 0)

    def part(which: np.ndarray) -> float:
        return 100 * float(weights @ which)

    return RankingAccuracy(
        len(pairs),
        len(counts),
        float(weights @ errors.prod(axis=1) / (weights @ (errors**2).mean(axis=1))),
        part(right),
        part(separated),
        100 * part(separated & right) / max(part(separated), 1e-9),
        part(disjoint),
        part((low <= off) & (off <= high)),
    )


def _setting(estimate: _Estimate) -> tuple[str, str]:
    case = estimate.each.case
    assert case is not None
    return case.setting, case.twin


@remembered
@traced
def pairs_compared() -> dict[str, RankingAccuracy]:
    """Return the accuracy of the ranking of held-out devices by class and kind of work, and for unseen sources.

    Examples
    --------
    >>> found = pairs_compared()
    >>> 75 < found["all, left out"].covered < 85, found["all, left out"].together < 0.3
    (True, True)
    """
    left, unseen = left_out_pairs(), unseen_source_pairs()
    groups: dict[str, list[_Pair]] = {}
    for pair in left:
        row = pair[0].each.row
        groups.setdefault(f"{row.device_class}: {pair[0].each.kind}", []).append(pair)
    large = {name: compared(own) for name, own in sorted(groups.items()) if len(own) >= FEWEST}
    return large | {"all, left out": compared(left), "all blind evaluations": compared(unseen)}
