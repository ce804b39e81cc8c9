"""What-ifs: the same kernels with one factor changed, timed by the same model."""

from __future__ import annotations

from collections.abc import Sequence
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

HALF_WEIGHTS = "half the bits per weight"
NO_LAUNCH = "no launch overhead"
TWICE_THE_BATCH = "twice the batch, per sample"
A_LITTLE = 1 + 1e-6
"""Factor on a rate in a trial: a result that changes depends on the rate; otherwise the rate was only compared."""
WHOLE = "all operators"

_S = ureg.Unit("s")
_ROUNDING = 1e-9  # a share this close to 1 is the whole
Mask = NDArray[np.bool_]
Array = NDArray[np.float64]


def fastest_rate(machine: MachineView) -> float:
    """Return the highest dense rate of a machine's format, FLOP/s."""
    return max(rate for rate in (machine.matrix, machine.vector) if rate is not None)


@dataclass(frozen=True)
class TimingModel:
    """The calibrated model for one machine and one kind of software.

    Attributes
    ----------
    engine, parameters
        Inputs of the model.
    peak, bandwidth
        Rates of the roofline, which no kernel's time falls below: FLOP/s and byte/s.
    machine
        The machine, whose fastest unit a kernel at its peak would use; None if not needed.
    cached
        Whether data that fit stay in the last cache between kernels.
    """

    engine: Snapshot
    parameters: Parameters
    peak: float
    bandwidth: float
    machine: MachineView | None
    cached: bool

    @property
    def fastest(self) -> float:
        """Highest dense rate of the precision on any unit, FLOP/s."""
        assert self.machine is not None
        return fastest_rate(self.machine)

    def as_numbers(self) -> TimingModel:
        """Return the model with its machine as plain numbers at their current values, for pickling."""
        return replace(self, engine=self.engine.as_numbers(), machine=None)

    def as_used(self, setting: str, samples: float) -> TimingModel:
        """Return the model of a machine as a setting's programs use it for the given number of samples."""
        return replace(self, engine=as_used(self.engine, setting, samples))

    def decisive_and_idle(self, work: Work) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the rates of the engine that determine the total time, and those that never do.

        A small change of the first changes it; even large changes of the others leave it unchanged.
        """
        tried = [(name, A_LITTLE) for name in CaseBatch.RECORDED]
        tried += [(name, far) for name in (*CaseBatch.RECORDED, "cache") for far in (1e-3, 1e3)]
        whole, *seconds = _seconds_of([self, *(self._with_more(*change) for change in tried)], work)
        changed = {change: time != whole for change, time in zip(tried, seconds, strict=True)}
        decisive = tuple(name for name in CaseBatch.RECORDED if changed[name, A_LITTLE])
        idle = tuple(name for name, far in tried if far == 1e3 and not changed[name, far] and not changed[name, 1e-3])
        return decisive, idle

    def _with_more(self, name: str, times: float) -> TimingModel:
        more = {name: float(getattr(self.engine, name)) * times}
        roof = {"matmul": "peak", "bandwidth": "bandwidth"}.get(name)
        bound = {roof: getattr(self, roof) * times} if roof else {}
        return replace(self, engine=self.engine.changed(**more), **bound)

    def times(self, work: Work) -> KernelTimes:
        """Return the time of one launch of each kernel."""
        times = kernel_times(CaseBatch.of([(self.engine, work, self.cached)]), self.parameters.vectorised())
        return times.at_least(work["flops"], work["moved"], self.peak, self.bandwidth)

    def seconds(self, work: Work) -> float:
        """Return the total time in seconds."""
        return float(self.times(work).seconds @ work["count"])


def _seconds_of(models: Sequence[TimingModel], work: Work) -> list[float]:
    """Return the total time of some work by models that share their parameters, in seconds."""
    stack = CaseBatch.of([(model.engine, work, model.cached) for model in models])
    peak, bandwidth = np.array([(model.peak, model.bandwidth) for model in models]).T[:, stack.case]
    times = kernel_times(stack, models[0].parameters.vectorised())
    least = times.at_least(stack.kernels["flops"], stack.kernels["moved"], peak, bandwidth)
    seconds: list[float] = stack.total(least.seconds).tolist()
    return seconds


def changes_tried(
    work: Work,
    timing: TimingModel,
    groups: tuple[tuple[BottleneckGroup, Mask], ...],
    more_weights: Array,
    narrower: tuple[str, TimingModel] | None = None,
) -> tuple[WhatIf, ...]:
    """Return the changes with a gain, largest gain first.

    Parameters
    ----------
    work, timing
        The kernels, and the model that times them.
    groups
        Groups of operators, each with the mask of its kernels.
    more_weights
        Factor of each kernel's weights at twice the batch; see :func:`doubled`.
    narrower
        The fastest half-size precision for which the device has a peak, and its model; None if there is none.
    """
    times = timing.times(work)
    whole = float(times.seconds @ work["count"])
    changes = []
    for group, here in groups:
        own = times.seconds * work["count"] * here
        at_peak = np.minimum(own, work["flops"] * work["count"] * here / timing.fastest)
        halved = timing.seconds(scaled_traffic(work, here, weights=0.5))
        for change, after in (
            (NO_TIME, whole - own.sum() if group.share < 1 - _ROUNDING else whole),  # meaningless for the whole network
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
        changes.append(_change(f"all values in {name}", WHOLE, 1.0, whole, after))
    gaining = [change for change in changes if change.saved.m_as("s") > 1e-9 * whole]
    return tuple(sorted(gaining, key=lambda change: -change.saved.m_as("s")))


def scaled_traffic(work: Work, here: Mask, *, weights: float = 1.0, other: float = 1.0) -> Work:
    """Return the kernels with the bytes of weights, and all other bytes, scaled where ``here``."""
    columns = work.columns.copy()
    held, rest = work["weights"], work["moved"] - work["weights"]
    columns[Work.FIELDS.index("weights")] = held * np.where(here, weights, 1.0)
    columns[Work.FIELDS.index("moved")] = held * np.where(here, weights, 1.0) + rest * np.where(here, other, 1.0)
    return Work(columns)


def weights_of_twice_the_batch(network: Network, work: Work) -> Array:
    """Return the factor by which each kernel's weights grow at twice the batch.

    1 for weights shared by all samples; 2 for weights read row by row for each sample, as by an embedding. If a batch
    visits a random fraction q of all experts, twice as many samples visit 1 - (1 - q)² = q (2 - q).

    Parameters
    ----------
    network, work
        Kernels as returned by :func:`mlsys.models.estimate.lowering.expert_by_expert`.
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
    """Return the kernels at twice the batch: everything doubles except weights, which the batch shares in part.

    Products with weights get twice the rows, products without weights twice the copies; where more experts are visited,
    the number of products grows by that factor and each has fewer rows.

    Parameters
    ----------
    work
        Kernels.
    more_weights
        As returned by :func:`weights_of_twice_the_batch`.
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
