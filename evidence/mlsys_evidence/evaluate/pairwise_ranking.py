"""Which of two devices is faster: pairs that one source measured with the same work under the same software.

The errors of two machines that a fit never saw are hardly related, unless who measured is a stranger: then they share
the source's habits, which cancel in the ratio of the two times. So the ratio's range is made of what is told of each
machine alone, :func:`mlsys.models.estimate.ranges.speed_range`; here it is held against measured ratios.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mlsys.models.estimate.ranges import ALL_SOURCES, range_of, speed_range
from mlsys.provenance import remembered, traced
from mlsys_evidence.evaluate.blind_evaluation import EXAMINATIONS, examination_rows
from mlsys_evidence.evaluate.report import Prediction, validate
from mlsys_evidence.fit.refit import held_out_predictions

# Pairs of machines and kinds of work with fewer measured pairs stand in no line of their own.
FEWEST = 40


@dataclass(frozen=True)
class Compared:
    """What is said of the pairs of a group; every two machines of one source and setting count as the root of theirs.

    Attributes
    ----------
    pairs, machines
        Measured pairs, and pairs of machines.
    together
        Correlation of the two errors, about zero.
    right
        How often the machine that is told to be faster is, %.
    told, right_told
        How often the two are told apart, and how often rightly then, %.
    overlapping
        How often they would be, if their ranges had to lie apart, %.
    covered
        Measured ratios in their 80 % range, %.
    """

    pairs: int
    machines: int
    together: float
    right: float
    told: float
    right_told: float
    overlapping: float
    covered: float


@dataclass(frozen=True)
class _Told:
    """One row's measured and estimated time, and how far its range reaches about the estimate, as factors."""

    each: Prediction
    low: float
    high: float

    @property
    def error(self) -> float:
        """Logarithm of measured over estimated time."""
        return -math.log(self.each.ratio)


_Pair = tuple[_Told, _Told]


def pairs_of(told: Iterable[_Told]) -> list[_Pair]:
    """Return every two rows that differ in nothing but their machine."""
    alike: dict[tuple[object, ...], dict[str, _Told]] = {}
    for told_row in told:
        row, case = told_row.each.row, told_row.each.case
        if case is not None:
            work = (row.workload, row.model, row.precision, row.batch, row.seq_or_shape, row.metric, row.n_devices)
            alike.setdefault((row.measured_by, case.setting, case.version, *work), {}).setdefault(case.twin, told_row)
    return [pair for machines in alike.values() for pair in combinations(machines.values(), 2)]


def left_out_pairs() -> list[_Pair]:
    """Return the pairs among shipped rows, each machine left out of the fit that its estimate is of."""
    told = []
    for each in held_out_predictions("device"):
        ends = sorted((each.low / each.value, each.high / each.value))
        if each.case is not None and each.case.inverse:
            ends = [1 / ends[1], 1 / ends[0]]
        told.append(_Told(each, ends[0], ends[1]))
    return pairs_of(told)


def strangers_pairs() -> list[_Pair]:
    """Return the pairs among the rows of all examinations, with the ranges of who measures both machines."""
    told = []
    for number in EXAMINATIONS:
        for each in validate(examination_rows(number)).predictions:
            if each.case is not None and each.answered:
                case = each.case
                reach = range_of(
                    case.setting, case.twin, case.network, version=case.version, source=ALL_SOURCES, work=case.kind
                )
                told.append(_Told(each, reach.low, reach.high))
    return pairs_of(told)


def compared(pairs: Sequence[_Pair]) -> Compared:
    """Return what is said of some pairs, and how it holds."""
    names = [(first.each.row.measured_by, *(_setting(each) for each in (first, other))) for first, other in pairs]
    counts = Counter(names)
    weights = np.array([1 / math.sqrt(counts[name]) for name in names])
    weights /= weights.sum()
    errors = np.array([[first.error, other.error] for first, other in pairs])
    told = np.log([first.each.seconds / other.each.seconds for first, other in pairs])
    off = errors[:, 0] - errors[:, 1]
    low, high = np.log([speed_range((first.low, first.high), (other.low, other.high)) for first, other in pairs]).T
    right = told * (told + off) > 0
    apart = (told + low > 0) | (told + high < 0)
    own = np.log([[first.low, first.high, other.low, other.high] for first, other in pairs])
    clear = (told + own[:, 0] - own[:, 3] > 0) | (told + own[:, 1] - own[:, 2] < 0)

    def part(which: np.ndarray) -> float:
        return 100 * float(weights @ which)

    return Compared(
        len(pairs),
        len(counts),
        float(weights @ errors.prod(axis=1) / (weights @ (errors**2).mean(axis=1))),
        part(right),
        part(apart),
        100 * part(apart & right) / max(part(apart), 1e-9),
        part(clear),
        part((low <= off) & (off <= high)),
    )


def _setting(told: _Told) -> tuple[str, str]:
    case = told.each.case
    assert case is not None
    return case.setting, case.twin


@remembered
@traced
def pairs_compared() -> dict[str, Compared]:
    """Return what is said of pairs of machines that were left out, by class and kind of work, and of strangers'.

    Examples
    --------
    >>> found = pairs_compared()
    >>> 75 < found["all, left out"].covered < 85, found["all, left out"].together < 0.3
    (True, True)
    """
    left, strange = left_out_pairs(), strangers_pairs()
    groups: dict[str, list[_Pair]] = {}
    for pair in left:
        row = pair[0].each.row
        groups.setdefault(f"{row.device_class}: {pair[0].each.kind}", []).append(pair)
    large = {name: compared(own) for name, own in sorted(groups.items()) if len(own) >= FEWEST}
    return large | {"all, left out": compared(left), "all of the examinations": compared(strange)}
