"""Time of one forward pass on one chip: the estimate of :func:`mlsys.models.analysis.analyze`, without its what-ifs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from mlsys.hardware.device import Device
from mlsys.mapping.fusion import as_run, has_convolutions
from mlsys.models.analysis.changes import TimingModel
from mlsys.models.analysis.model import engine_used, timing_of
from mlsys.models.estimate.cache_key import calibration_version
from mlsys.models.estimate.eager import of_network, run_as
from mlsys.models.estimate.library import parameters_of
from mlsys.models.estimate.range_keys import work_of_network
from mlsys.models.estimate.ranges import RangeWithoutTime, range_without_time
from mlsys.models.estimate.running import Running, as_counted, kernels_run, usual_running
from mlsys.models.estimate.weight_residency import resident
from mlsys.models.software import software_of
from mlsys.provenance import comparing, remembered
from mlsys.workloads import Network

# Operators of a decoder that are in no layer.
_OUTSIDE = ("embedding", "logits", "last norm", "rotary positions")


@dataclass(frozen=True)
class PassTime:
    """Seconds of one pass.

    Attributes
    ----------
    seconds
        The estimate.
    low, high
        Between which four measurements in five should lie.
    bound
        Least time by the roofline.
    outside
        The part of ``seconds`` outside the layers: embedding and classifier.
    flops, data
        FLOP and compulsory bytes.
    """

    seconds: float
    low: float
    high: float
    bound: float
    outside: float = 0.0
    flops: float = 0.0
    data: float = 0.0

    def with_more(self, other: PassTime) -> PassTime:
        """Return the time of this pass and another one after it."""
        return PassTime(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Timer:
    """The calibrated model of a device for one phase, ready for many passes.

    Attributes
    ----------
    device, precision
        The chip, and the number format of the arithmetic.
    setting
        The software.
    timing
        The calibrated model.
    running
        How the software runs a network.
    reach
        How far estimates may be off.
    """

    device: Device
    precision: str
    setting: str
    timing: TimingModel
    running: Running
    reach: RangeWithoutTime

    def time(self, network: Network, samples: int) -> PassTime:
        """Return the time of a pass that answers so many samples."""
        network = as_counted(as_run(network, run_as(self.setting)), self.running)
        ran = kernels_run(network, self.running)
        work = resident(ran.work, self.device, samples)
        timing = self.timing.as_used(self.setting, samples)
        times = timing.times(work)
        spent = times.seconds * work["count"]
        a = network.arrays
        least = np.maximum(a.flops / timing.peak, a.data / timing.bandwidth) * a.repeats
        seconds, bound = float(spent.sum()), float(least.sum())
        reach = self.reach.at(max(seconds, bound), bound)
        names = [operator.name.startswith(_OUTSIDE) for operator in network.distinct]
        own = np.array([names[row] for row in ran.owner.tolist()], dtype=bool)
        return PassTime(
            seconds,
            max(seconds * reach.low, bound),
            max(seconds * reach.high, bound),
            bound,
            float(spent[own].sum()),
            float((a.flops * a.repeats).sum()),
            float((a.data * a.repeats).sum()),
        )


def timer_of(device: Device, network: Network, precision: str, software: str | None = None) -> Timer:
    """Return what estimates passes such as ``network`` on a device.

    Raises
    ------
    UnknownNameError
        If the device lacks the number format, or the software was never fitted.
    ArgumentError
        If the device has no bandwidth on record.

    Examples
    --------
    >>> from mlsys import Hardware, analyze
    >>> from mlsys.workloads.zoo import language_model
    >>> step = language_model("llama-3-8b").decode(8, 2048)
    >>> timer_of(Hardware.Cloud.A100, step, "fp16").time(step, 8).seconds == analyze("A100", step).time.m_as("s")
    True
    """
    setting = of_network(str(software_of(device, software, network.kind, precision)), has_convolutions(network))
    name, work = network.name.partition(",")[0], work_of_network(network.kind, setting)
    return _timer(device, precision, setting, name, work, calibration_version())


@remembered
def _timer(device: Device, precision: str, setting: str, name: str, work: str, _calibration: Hashable) -> Timer:
    device.peak(precision)  # raises where there is none
    with comparing():
        running = usual_running(setting, device, engine_used(device, precision, setting))
    parameters, _ = parameters_of(setting, device.id, name, precision=precision)
    timing = timing_of(device, precision, parameters, True, setting)
    with comparing():
        reach = range_without_time(setting, device.id, name, work=work)
    return Timer(device, precision, setting, timing, running, reach)
