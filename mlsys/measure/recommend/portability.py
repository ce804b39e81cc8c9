"""Prediction of a network's time on an unmeasured platform from measured ones; refused where it would extrapolate.

The compute bound of the platform, times a correction for network and kind of core: time = c · (1 / peak), where c is
the median of time × peak over the platforms with the same core that ran the same network. Each platform is predicted
without its own measurements.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mlsys.errors import ArgumentError

_CORE = re.compile(r"\((Cortex-M\d+F?\+?|[^()]*?) (\d+) MHz\)")


@dataclass(frozen=True)
class PortabilityPoint:
    """A measured platform and network.

    Attributes
    ----------
    platform, core, network
        Names; the core is the kind of CPU core.
    peak
        INT8 operations per second.
    time_ms
        Measured time.
    """

    platform: str
    core: str
    network: str
    peak: float
    time_ms: float


@dataclass(frozen=True)
class PortabilityPrediction:
    """A prediction, or the reason why there is none.

    Attributes
    ----------
    platform, network
        Platform and network of the prediction.
    time_ms, measured_ms
        Predicted and, if known, measured time.
    refused
        Why nothing is predicted; empty for a prediction.
    learnt_from
        Platforms used for the prediction.
    """

    platform: str
    network: str
    time_ms: float | None
    measured_ms: float | None
    refused: str
    learnt_from: tuple[str, ...]

    @property
    def error(self) -> float | None:
        """Predicted over measured time, minus one."""
        if self.time_ms is None or self.measured_ms is None:
            return None
        return self.time_ms / self.measured_ms - 1


@lru_cache(maxsize=1)
def published_points() -> tuple[PortabilityPoint, ...]:
    """Return the microcontrollers with a published time on a network of MLPerf Tiny, with the median of each.

    Examples
    --------
    >>> points = published_points()
    >>> sorted({point.network for point in points})
    ['AD FC autoencoder', 'IC ResNet-8', 'KWS DS-CNN', 'VWW MobileNetV1-0.25']
    """
    from mlsys.hardware import Hardware
    from mlsys.measure.recommend.platforms import published_runs

    times: dict[tuple[str, str], list[float]] = {}
    for run in published_runs():
        if run.energy_mj is None:
            times.setdefault((run.device, run.network), []).append(run.latency_ms)
    points = []
    for (device, network), values in sorted(times.items()):
        core, name = _CORE.search(device), device.split(" ")[0]
        twin = getattr(Hardware.Tiny, name, None) if name in dir(Hardware.Tiny) else None
        if core is None or twin is None or "int8" not in twin.precisions:
            continue
        peak = float(twin.peak("int8").m_as("FLOP/s"))
        points.append(PortabilityPoint(device, core[1].rstrip("F"), network, peak, float(np.median(values))))
    return tuple(points)


def predict_on(
    points: Sequence[PortabilityPoint], network: str, *, peak: float, core: str, platform: str = "a platform"
) -> PortabilityPrediction:
    """Predict the time of a network on a platform from its peak, or refuse.

    Parameters
    ----------
    points
        Measurements of other platforms.
    network
        Name of the network in the points.
    peak, core
        INT8 operations per second of the platform, and its kind of core.
    platform
        Its name.

    Raises
    ------
    ArgumentError
        If the peak is not positive.
    """
    if not (peak > 0 and np.isfinite(peak)):
        raise ArgumentError(f"predict_on(): `peak` must be above 0, got {peak!r}. Write e.g. peak=4.8e8")
    others = [point for point in points if point.network == network and point.platform != platform]
    names = tuple(dict.fromkeys(point.platform for point in others))
    low, high = min((point.peak for point in others), default=0.0), max((point.peak for point in others), default=0.0)
    cores = sorted({point.core for point in others})
    refused = ""
    if len(names) < 2:
        refused = f"only {len(names)} other platform(s) ran {network}"
    elif core not in cores:
        refused = f"no measured platform has a {core}, only {', '.join(cores)}"
    elif not low <= peak <= high:
        refused = f"its peak of {peak / 1e9:.3g} GOP/s lies outside {low / 1e9:.3g} to {high / 1e9:.3g}"
    if refused:
        return PortabilityPrediction(platform, network, None, None, refused, names)
    same_core = [point for point in others if point.core == core]
    factor = float(np.median([point.time_ms * point.peak for point in same_core]))
    return PortabilityPrediction(
        platform, network, factor / peak, None, "", tuple(point.platform for point in same_core)
    )


def leave_one_out(points: Sequence[PortabilityPoint]) -> tuple[PortabilityPrediction, ...]:
    """Predict every point from the other platforms.

    Parameters
    ----------
    points
        At least two platforms.

    Examples
    --------
    >>> points = leave_one_out(published_points())
    >>> any(point.refused for point in points), any(point.time_ms for point in points)
    (True, True)
    """
    return tuple(
        replace(
            predict_on(points, point.network, peak=point.peak, core=point.core, platform=point.platform),
            measured_ms=point.time_ms,
        )
        for point in points
    )
