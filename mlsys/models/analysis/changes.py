"""What ifs: the same kernels with one thing changed, timed again by the same model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mlsys.hardware.view import MachineView
from mlsys.models.analysis.parts import AT_PEAK, NO_TIME, BottleneckGroup, WhatIf
from mlsys.models.estimate.batch import CaseBatch
from mlsys.models.estimate.machine import Snapshot
from mlsys.models.estimate.model import KernelTimes, kernel_times
from mlsys.models.estimate.parameters import Parameters
from mlsys.models.estimate.thread_scaling import as_used, with_twice_the_samples
from mlsys.models.estimate.work import MATMUL, Work
from mlsys.precision import element_size
from mlsys.units import ureg
from mlsys.workloads import Network

__all__ = [
    "AT_PEAK",
    "HALF_WEIGHTS",
    "NO_LAUNCH",
    "NO_TIME",
    "TWICE_THE_BATCH",
    "WHOLE",
    "TimingModel",
    "changes_tried",
    "doubled",
    "fastest_rate",
    "weights_of_twice_the_batch",
]

HALF_WEIGHTS = "their weights had half the bits"
NO_LAUNCH = "launches cost nothing"
TWICE_THE_BATCH = "the batch were twice as large, for each sample"
A_LITTLE = 1 + 1e-6
"""Factor on a rate in a trial: a result that changes depends on the rate, another only compares it."""
WHOLE = "all operators"

_S = ureg.Unit("s")
_ROUNDING = 1e-9  # a share that near to 1 is the whole
Mask = NDArray[np.bool_]
Array = NDArray[np.float64]


def fastest_rate(machine: MachineView) -> float:
    """Return the highest dense rate of the format of a machine, FLOP/s."""
    return max(rate for rate in (machine.matrix, machine.vector) if rate is not None)


@dataclass(frozen=True)
class TimingModel:
    """The calibrated model of one machine and one kind of software.

    Attributes
    ----------
    engine, parameters
        Of the model.
    peak, bandwidth
        Of the roofline, whose time no kernel's falls below: FLOP/s and byte/s.
    machine
        Whose fastest unit a kernel at its peak would run on; None where nobody asks.
    stays
        Whether data that fit stay in the last cache between kernels.
    """

    engine: Snapshot
    parameters: Parameters
    peak: float
    bandwidth: float
    machine: MachineView | None
    stays: bool

    @property
    def fastest(self) -> float:
        """Highest dense rate of the precision on any unit, FLOP/s."""
        assert self.machine is not None
        return fastest_rate(self.machine)

    def settled(self) -> TimingModel:
        """Return the model with the plain numbers of its machine, as they are now: it travels to other processes."""
        return replace(self, engine=self.engine.settled(), machine=None)

    def as_used(self, setting: str, samples: float) -> TimingModel:
        """Return the model of a machine as a setting's programs use it for some samples."""
        return replace(self, engine=as_used(self.engine, setting, samples))

    def decisive(self, work: Work) -> tuple[str, ...]:
        """Return the rates of the engine that the time of the whole comes from: those that move it at once."""
        whole = self.seconds(work)
        return tuple(name for name in CaseBatch.RECORDED if self._with_more(name).seconds(work) != whole)

    def idle(self, work: Work) -> tuple[str, ...]:
        """Return the rates of the engine that the time never comes from: far less of them and far more leave it."""
        whole = self.seconds(work)
        names = (*CaseBatch.RECORDED, "cache")
        return tuple(
            name for name in names if all(self._with_more(name, far).seconds(work) == whole for far in (1e-3, 1e3))
        )

    def _with_more(self, name: str, times: float = A_LITTLE) -> TimingModel:
        more = {name: float(getattr(self.engine, name)) * times}
        roof = {"matmul": "peak", "bandwidth": "bandwidth"}.get(name)
        bound = {roof: getattr(self, roof) * times} if roof else {}
        return replace(self, engine=self.engine.changed(**more), **bound)

    def times(self, work: Work) -> KernelTimes:
        """Return what one launch of each kernel takes."""
        times = kernel_times(CaseBatch.of([(self.engine, work, self.stays)]), self.parameters.vectorised())
        return times.at_least(work["flops"], work["moved"], self.peak, self.bandwidth)

    def seconds(self, work: Work) -> float:
        """Return the time of the whole."""
        return float(self.times(work).seconds @ work["count"])


def changes_tried(
    work: Work,
    timing: TimingModel,
    groups: tuple[tuple[BottleneckGroup, Mask], ...],
    more_weights: Array,
    narrower: tuple[str, TimingModel] | None = None,
) -> tuple[WhatIf, ...]:
    """Return the changes that gain something, largest gain first.

    Parameters
    ----------
    work, timing
        The kernels, and the model that times them.
    groups
        With the kernels that belong to each.
    more_weights
        Times as many weights at twice the batch; see :func:`doubled`.
    narrower
        A precision of half the size that the device has, and its model.
    """
    times = timing.times(work)
    whole = float(times.seconds @ work["count"])
    changes = []
    for group, here in groups:
        own = times.seconds * work["count"] * here
        at_peak = np.minimum(own, work["flops"] * work["count"] * here / timing.fastest)
        halved = timing.seconds(scaled_traffic(work, here, weights=0.5))
        for change, after in (
            (NO_TIME, whole - own.sum() if group.share < 1 - _ROUNDING else whole),  # of all there is, it says nothing
            (AT_PEAK, whole - own.sum() + at_peak.sum()),
            (HALF_WEIGHTS, halved),
        ):
            changes.append(_change(change, group.label, group.share, whole, after))
    changes.append(_change(NO_LAUNCH, WHOLE, 1.0, whole, whole - float(times.launch @ work["count"])))
    twice = replace(timing, engine=with_twice_the_samples(timing.engine)).seconds(doubled(work, more_weights))
    changes.append(_change(TWICE_THE_BATCH, WHOLE, 1.0, whole, twice / 2))
    if narrower is not None:
        name, other = narrower
        everywhere = np.ones(len(work["count"]), dtype=bool)
        after = other.seconds(scaled_traffic(work, everywhere, weights=0.5, other=0.5))
        changes.append(_change(f"every value were {name}", WHOLE, 1.0, whole, after))
    gaining = [change for change in changes if change.saved.m_as("s") > 1e-9 * whole]
    return tuple(sorted(gaining, key=lambda change: -change.saved.m_as("s")))


def scaled_traffic(work: Work, here: Mask, *, weights: float = 1.0, other: float = 1.0) -> Work:
    """Return the kernels with the bytes of weights, and of all else, scaled where ``here``."""
    columns = work.columns.copy()
    held, rest = work["weights"], work["moved"] - work["weights"]
    columns[Work.FIELDS.index("weights")] = held * np.where(here, weights, 1.0)
    columns[Work.FIELDS.index("moved")] = held * np.where(here, weights, 1.0) + rest * np.where(here, other, 1.0)
    return Work(columns)


def weights_of_twice_the_batch(network: Network, work: Work) -> Array:
    """Return, for each kernel, how many times as many weights it reads at twice the batch.

    Once for all samples, so 1; row by row for each of them, as an embedding does, 2. Of experts that a batch visits a
    part q of all at random, twice as many samples visit 1 - (1 - q)² = q (2 - q).

    Parameters
    ----------
    network, work
        Kernels as :func:`mlsys.models.estimate.lowering.expert_by_expert` has them.
    """
    times = np.ones(len(work["count"]))
    several = (work["kind"] == MATMUL) & (work["weights"] > 0) & (work["batch"] > 1)
    for row, operator in enumerate(network.distinct):
        if operator.kind == "embedding":
            times[row] = 2.0
        elif operator.kind == "gemm" and several[row]:
            held = operator.parameters * element_size(operator.precision).m_as("byte")
            times[row] = 2.0 - min(1.0, operator.weights.m_as("byte") / held)
    return times


def doubled(work: Work, more_weights: Array) -> Work:
    """Return the kernels at twice the batch: all but the weights, which the batch shares, or reads a few more of.

    Products with weights get twice the rows, those without twice the copies; where there are more weights, of other
    experts, there are as many more products of fewer rows each.

    Parameters
    ----------
    work
        Kernels.
    more_weights
        As :func:`weights_of_twice_the_batch` returns them.
    """
    columns = work.columns.copy()
    index = Work.FIELDS.index
    shared = work["weights"] > 0
    product = work["kind"] == MATMUL
    columns[index("flops")] *= 2
    columns[index("weights")] *= more_weights
    columns[index("moved")] = 2 * work["moved"] - (2 - more_weights) * work["weights"]
    columns[index("m")] *= np.where(product & shared, 2 / more_weights, 1)
    columns[index("batch")] *= np.where(product, np.where(shared, more_weights, 2), 1)
    return Work(columns)


def _change(change: str, target: str, share: float, whole: float, after: float) -> WhatIf:
    after = max(float(after), 0.0)
    return WhatIf(
        change=change,
        target=target,
        share=share,
        time=ureg.Quantity(after, _S),
        saved=ureg.Quantity(whole - after, _S),
        speedup=whole / after if after else float("inf"),
        limit=1 / (1 - share) if share < 1 - _ROUNDING else float("inf"),
    )
