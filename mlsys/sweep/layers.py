"""Times of a network's kernels on a device as plain numbers, fast enough to follow a slider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.gc_pause import gc_paused
from mlsys.hardware import Hardware
from mlsys.models.analysis.changes import AT_PEAK, NO_LAUNCH, TWICE_THE_BATCH, TimingModel, scaled_traffic
from mlsys.models.analysis.model import engine_used, narrower_format, timing_of
from mlsys.models.estimate.eager import of_network
from mlsys.models.estimate.library import parameters_of
from mlsys.models.estimate.running import usual_running
from mlsys.models.estimate.user_calibration import shape_if_calibrated
from mlsys.models.estimate.weight_residency import resident
from mlsys.models.estimate.work import MATMUL, Work
from mlsys.models.software import software_of
from mlsys.provenance import comparing, remembered, unrecorded
from mlsys.sweep.batches import CountedKernels
from mlsys.sweep.networks import kernels_of_case
from mlsys.sweep.points import SweepCase
from mlsys.sweep.spec import Variant

__all__ = ["CAUSES", "KernelGroup", "LayerTimes", "layer_times"]

CAUSES = ("compute", "memory", "launch")
Array = NDArray[np.float64]


@dataclass(frozen=True)
class KernelGroup:
    """Kernels of one kind with one limit: how many, their seconds, and their seconds at the compute peak."""

    kind: str
    limited_by: str
    kernels: int
    seconds: float
    at_peak: float

    @property
    def label(self) -> str:
        """Description of the group."""
        return f"{self.kernels} × {self.kind}, limited by {self.limited_by}"


@dataclass(frozen=True, eq=False)
class LayerTimes:
    """Kernels of a network on a device at one batch, with their times; equal kernels are one row.

    Attributes
    ----------
    network, device, batch, precision
        What runs where.
    peak, bandwidth
        Dense peak of the fastest unit, FLOP/s, and memory bandwidth, byte/s.
    kinds, causes
        Kind and limit of each row.
    count, flops, moved, bound, seconds
        Kernels of each row, and of one kernel: work, bytes, least time by the roofline, and estimated time.
    changes
        Seconds of one batch after each change; twice the batch counts half of its time.
    """

    network: str
    device: str
    batch: int
    precision: str
    peak: float
    bandwidth: float
    kinds: tuple[str, ...]
    causes: tuple[str, ...]
    count: Array
    flops: Array
    moved: Array
    bound: Array
    seconds: Array
    changes: Mapping[str, float]

    @property
    def total(self) -> float:
        """Estimated seconds of one batch."""
        return float(self.count @ self.seconds)

    @property
    def least(self) -> float:
        """Seconds of one batch by the roofline, kernel by kernel."""
        return float(self.count @ self.bound)

    @property
    def utilisation(self) -> float:
        """Attained fraction of the dense peak."""
        return float(self.count @ self.flops) / self.total / self.peak

    @property
    def intensity(self) -> float:
        """Work over bytes of the whole network, FLOP/byte."""
        return float(self.count @ self.flops) / float(self.count @ self.moved)

    @property
    def ridge(self) -> float:
        """Lowest intensity at which the peak can be reached, FLOP/byte."""
        return self.peak / self.bandwidth

    def share(self, cause: str) -> float:
        """Return the fraction of the time that is limited by ``"compute"``, ``"memory"`` or ``"launch"``."""
        here = np.array([own == cause for own in self.causes])
        return float(self.count[here] @ self.seconds[here]) / self.total

    @property
    def groups(self) -> tuple[KernelGroup, ...]:
        """Kernels by kind and limit, longest time first."""
        found = []
        for kind, cause in dict.fromkeys(zip(self.kinds, self.causes, strict=True)):
            here = np.array([own == (kind, cause) for own in zip(self.kinds, self.causes, strict=True)])
            count, seconds = self.count[here], self.seconds[here]
            least = np.minimum(seconds, self.flops[here] / self.peak)
            found.append(KernelGroup(kind, cause, round(count.sum()), float(count @ seconds), float(count @ least)))
        return tuple(sorted(found, key=lambda group: -group.seconds))


@remembered
@gc_paused()
def layer_times(
    network: str,
    device: str,
    batch: int = 1,
    precision: str = "fp16",
    software: str | None = None,
    batches: tuple[int, ...] = (),
) -> LayerTimes:
    """Return the kernels of a network on a device with the times that :func:`mlsys.models.analysis.analyze` gives.

    Provenance is not recorded, and the kernels of all batches come from three of them, which makes it some hundred
    times as fast as an analysis from the second batch on.

    Parameters
    ----------
    network
        Name of a network of the catalogue that is defined operator by operator.
    device
        Id of a device.
    batch, precision, software
        As for :func:`mlsys.models.analysis.analyze`.
    batches
        All batches that will be requested.

    Raises
    ------
    UnknownNameError
        If the network is unknown, or the device lacks the precision.

    Examples
    --------
    >>> times = layer_times("resnet50", "A100_80GB", batch=32)
    >>> f"{1e3 * times.least:.2f} ms at least, {1e3 * times.total:.2f} ms estimated", times.groups[0].label
    ('1.05 ms at least, 1.70 ms estimated', '41 × conv2d, limited by compute')
    """
    with unrecorded(), comparing():
        twin = Hardware[device]
        twin.peak(precision)
        setting = str(software_of(twin, software, "network", precision))
        running = usual_running(setting, twin, engine_used(twin, precision, setting))
        variant = Variant(network, network, "catalogue", None, None, None, True)
        needed = sorted({*batches, *(2 * each for each in batches)})
        kernels, _ = kernels_of_case(SweepCase(variant, precision, batch, running), needed)
        twice, _ = kernels_of_case(SweepCase(variant, precision, 2 * batch, running), needed)
        whose = of_network(setting, any(kind.startswith("conv") for kind in kernels.kinds))
        works = tuple(resident(Work(each.columns), twin, size) for each, size in ((kernels, batch), (twice, 2 * batch)))
        shape = shape_if_calibrated(twin.id, works[0])
        parameters, _ = parameters_of(whose, twin.id, kernels.name, precision=precision, shape=shape)
        timing, double = (
            timing_of(twin, precision, parameters, setting=whose).as_used(whose, size) for size in (batch, 2 * batch)
        )
        half = narrower_format(twin, precision)
        narrow = timing_of(twin, half, parameters, setting=whose).as_used(whose, batch) if half else None
        return _timed(kernels, works, timing, double, (half, narrow), batch, precision)


def _timed(
    kernels: CountedKernels,
    works: tuple[Work, ...],
    timing: TimingModel,
    double: TimingModel,
    narrower: tuple[str | None, TimingModel | None],
    batch: int,
    precision: str,
) -> LayerTimes:
    work, twice = works
    times = timing.times(work)
    held = np.where(
        times.launch > np.maximum(times.working, times.moving), 2, np.where(times.working >= times.moving, 0, 1)
    )
    kinds = tuple(
        _named(kind, matrix, weights)
        for kind, matrix, weights in zip(kernels.kinds, work["kind"] == MATMUL, work["weights"], strict=True)
    )
    bound = np.maximum(work["flops"] / timing.peak, work["moved"] / timing.bandwidth)
    plain = LayerTimes(
        kernels.name,
        timing.engine.name,
        batch,
        precision,
        timing.fastest,
        timing.bandwidth,
        kinds,
        tuple(CAUSES[number] for number in held.tolist()),
        work["count"],
        work["flops"],
        work["moved"],
        bound,
        times.seconds,
        {},
    )
    total, first = plain.total, plain.groups[0]
    changes = {
        f"{first.label}: {AT_PEAK}": total - first.seconds + first.at_peak,
        NO_LAUNCH: total - float(times.launch @ work["count"]),
        TWICE_THE_BATCH: double.seconds(twice) / 2,
    }
    half, other = narrower
    if other is not None:
        everywhere = np.ones(len(work["count"]), dtype=bool)
        changes[f"all values in {half}"] = other.seconds(scaled_traffic(work, everywhere, weights=0.5, other=0.5))
    object.__setattr__(plain, "changes", changes)
    return plain


def _named(kind: str, matrix: bool, weights: float) -> str:
    """Return the kind of a kernel: a convolution beside the matrix units is depthwise, or copies its input."""
    if kind != "conv2d" or matrix:
        return kind
    return "depthwise conv2d" if weights else "copies for conv2d"
