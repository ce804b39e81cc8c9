"""Parts of an analysis: operators, groups of operators, and what-if changes with their gains."""

from __future__ import annotations

from dataclasses import dataclass

from mlsys.units import Quantity

NO_TIME = "in zero time"
AT_PEAK = "at the compute peak"


@dataclass(frozen=True)
class OperatorTime:
    """One operator: its bound, its estimated time, and what limits it.

    Attributes
    ----------
    name, kind
        Name and kind of the operator.
    bound, estimate
        Times of the roofline and of the calibrated model, s.
    share
        Fraction of the network's estimate, 0 to 1.
    bound_by, limited_by
        Limit in the roofline, and in the calibrated model: ``"compute"``, ``"memory"`` or ``"launch"``.
    flops, data, weights
        Work, compulsory bytes, and the parameter bytes among them.
    intensity
        FLOP/byte.
    utilisation
        Attained fraction of the device's dense peak.
    """

    name: str
    kind: str
    bound: Quantity
    estimate: Quantity
    share: float
    bound_by: str
    limited_by: str
    flops: Quantity
    data: Quantity
    weights: Quantity
    intensity: Quantity
    utilisation: float


@dataclass(frozen=True)
class Repeated:
    """An operator that runs several times, such as equal layers of equal blocks.

    Attributes
    ----------
    operator
        One of the occurrences.
    times
        Number of occurrences.
    """

    operator: OperatorTime
    times: int

    @property
    def share(self) -> float:
        """Fraction of the network's estimate spent in all occurrences."""
        return self.operator.share * self.times


@dataclass(frozen=True)
class BottleneckGroup:
    """Operators of one kind with the same limit, to be optimised together.

    Attributes
    ----------
    kind, limited_by
        Kind and limit of the operators.
    operators
        Number of operators.
    estimate, share
        Their calibrated time, s, and its fraction of the total.
    """

    kind: str
    limited_by: str
    operators: int
    estimate: Quantity
    share: float

    @property
    def label(self) -> str:
        """Description of the group."""
        return f"{self.operators} × {self.kind}, limited by {self.limited_by}"


@dataclass(frozen=True)
class WhatIf:
    """One change, and the upper bound of its gain.

    Attributes
    ----------
    change
        Description of the change.
    target
        Operators that it applies to.
    share
        Their fraction of the estimate, 0 to 1.
    time
        Calibrated time of the network after the change; if the batch grows, for the original number of samples.
    saved
        Difference to the estimate.
    speedup
        Estimate over ``time``.
    limit
        Amdahl's limit, 1 / (1 − share): upper bound for any change to these operators; infinite for the whole network.
    """

    change: str
    target: str
    share: float
    time: Quantity
    saved: Quantity
    speedup: float
    limit: float

    def __str__(self) -> str:
        return f"{self.target}: {self.change} → {self.time.to_compact():.3g}, {self.speedup:.2f}×"
