"""The parts of an analysis: operators, groups of them, and changes with their gain."""

from __future__ import annotations

from dataclasses import dataclass

from mlsys.units import Quantity

NO_TIME = "they took no time"
AT_PEAK = "they ran at the compute peak"


@dataclass(frozen=True)
class OperatorTime:
    """One operator: its least time, its expected time, and why.

    Attributes
    ----------
    name, kind
        Of the operator.
    bound, estimate
        Roofline and calibrated model, s.
    share
        Part of the network's estimate, 0 to 1.
    bound_by, held_by
        What the roofline, and what the calibrated model says: ``"compute"``, ``"memory"`` or ``"launch"``.
    flops, data, weights
        Work, compulsory bytes, and the part of them that is parameters.
    intensity
        FLOP/byte.
    utilisation
        Part of the device's dense peak that the estimate attains.
    """

    name: str
    kind: str
    bound: Quantity
    estimate: Quantity
    share: float
    bound_by: str
    held_by: str
    flops: Quantity
    data: Quantity
    weights: Quantity
    intensity: Quantity
    utilisation: float


@dataclass(frozen=True)
class Repeated:
    """An operator that runs several times, as the layers of equal blocks do.

    Attributes
    ----------
    operator
        One of them.
    times
        How often it runs.
    """

    operator: OperatorTime
    times: int

    @property
    def share(self) -> float:
        """Part of the network's estimate that all of them take."""
        return self.operator.share * self.times


@dataclass(frozen=True)
class BottleneckGroup:
    """Operators of one kind that are held by the same cause, as one would set about them.

    Attributes
    ----------
    kind, held_by
        What they have in common.
    operators
        How many.
    estimate, share
        Their calibrated time, s, and its part of the whole.
    """

    kind: str
    held_by: str
    operators: int
    estimate: Quantity
    share: float

    @property
    def label(self) -> str:
        """The group in words."""
        return f"{self.operators} × {self.kind}, held by {self.held_by}"


@dataclass(frozen=True)
class WhatIf:
    """One change, and the most that it can give.

    Attributes
    ----------
    change
        What is done, in words.
    target
        To which operators.
    share
        Their part of the estimate, 0 to 1.
    time
        Calibrated time of the whole afterwards; where the batch grows, that of the first batch's samples.
    saved
        What that is less than the estimate.
    speedup
        Estimate over ``time``.
    limit
        Amdahl's limit, 1 / (1 − share): what no change to these operators exceeds; infinite for the whole.
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
