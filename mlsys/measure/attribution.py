"""Attribution of an inference's time: the modelled bound of every layer, its measured time, and the residual.

Shares are fractions of the measured median of the whole inference. Including a residual they sum to it, and none is
negative: time that the model cannot explain is reported as such, not distributed over the other causes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.measure.log import LayerWork, Log
from mlsys.unit_checks import checked_number, positive

Cause = Literal["compute", "memory", "launch", "residual"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
"""Causes of time: arithmetic, memory traffic, kernel launches, and the unexplained residual."""
_SAME = 0.98  # below it, the layer timers sum to more than the whole inference
_HELD = 0.5  # fraction of a layer's time that a bound must explain to be named as its limit


@dataclass(frozen=True)
class LayerShare:
    """Attribution of one layer.

    Attributes
    ----------
    name, kind
        Name and kind of the layer.
    time, measured
        Its part of the whole, and the time measured by the layer timer, ms.
    compute, memory
        Least time at the machine's measured rates, ms.
    parts
        ``time`` by cause.
    bound
        ``compute``, ``memory`` or ``overhead``: the limit, by the ratio of the larger bound to the time.
    rate, intensity
        Operations per second attained in the measured time, and operations per byte; 0 without arithmetic.
    data, bandwidth
        Its bytes, and the bandwidth in byte/s that the machine attains at that size, used for ``memory``.
    beats
        Whether it was faster than its bound, which means that a rate or the timer is wrong.
    """

    name: str
    kind: str
    time: float
    measured: float
    compute: float
    memory: float
    parts: Mapping[Cause, float]
    bound: str
    rate: float
    intensity: float
    data: float
    bandwidth: float
    beats: bool

    @property
    def least(self) -> float:
        """The larger bound, ms."""
        return max(self.compute, self.memory)


@dataclass(frozen=True)
class Attribution:
    """Attribution of the time of a measured inference.

    Attributes
    ----------
    name, total
        Name of the measurement, and its median, ms.
    layers
        Attribution of each layer.
    entry, between
        Time outside of all layers, ms: up to the cost of entering the backend it counts as launch, the rest as
        residual.
    scale
        Factor applied to the layer times: below 1 if their timers sum to more than the whole.
    ops_per_s, bytes_per_s
        Measured rates that the attribution depends on.
    notes
        Caveats.
    """

    name: str
    total: float
    layers: tuple[LayerShare, ...]
    entry: float
    between: float
    scale: float
    ops_per_s: float
    bytes_per_s: float
    notes: tuple[str, ...]

    @property
    def shares(self) -> dict[Cause, float]:
        """Percentage of the total by cause; they sum to 100."""
        sums = {cause: sum(layer.parts[cause] for layer in self.layers) for cause in CAUSES}
        sums["launch"] += self.entry
        sums["residual"] += self.between
        whole = sum(sums.values())
        return {cause: 100 * value / whole for cause, value in sums.items()}

    @property
    def bottleneck(self) -> str:
        """Cause with the largest share."""
        return max(self.shares, key=lambda cause: self.shares[cause])

    @property
    def ridge(self) -> float:
        """Operations per byte at which the two bounds meet."""
        return self.ops_per_s / self.bytes_per_s

    def roof(self, layer: LayerShare) -> float:
        """Return the roofline of a layer in operations per second, with the bandwidth for its size."""
        return min(self.ops_per_s, layer.bandwidth * layer.intensity)

    def explain(self) -> str:
        """Return the attribution as sentences."""
        shares = ", ".join(f"{cause} {share:.1f} %" for cause, share in self.shares.items())
        lines = [f"{self.name}: {self.total:.4g} ms; {shares}."]
        top = sorted(self.layers, key=lambda layer: -layer.time)[:3]
        shares = ", ".join(f"{layer.name} {100 * layer.time / self.total:.0f} % ({layer.bound}-bound)" for layer in top)
        lines.append(f"Most of it: {shares}.")
        return "\n".join([*lines, *self.notes])


def attribute(log: Log) -> Attribution:
    """Return the attribution of a log's time.

    Raises
    ------
    ArgumentError
        If the log has no layer times, or no rates of its machine.

    Examples
    --------
    >>> from mlsys.measure import stored_logs
    >>> attribution = attribute(stored_logs()["ds-cnn fp32 eager"])
    >>> round(sum(attribution.shares.values()), 9), attribution.layers[0].name
    (100.0, 'conv')
    """
    if not log.layer_medians:
        raise ArgumentError(f"attribute(): {log.name} has no layer times: {log.layer_times['reason']}")
    if log.rates is None:
        raise ArgumentError(f"attribute(): {log.name} has no rates of its machine: {log.rates_reason}")
    rates = log.rates
    notes = [] if log.layer_times["source"] is None else [f"Layers were timed by {log.layer_times['source']}."]
    return attribute_times(
        log.name, log.median, log.works, log.layer_medians, ops_per_s=rates["ops_per_s"],
        bytes_per_s=rates["bytes_per_s"], launch_s=rates["launch_s"],
        entry_s=rates.get("entry_s", 0.0), sizes=rates.get("sizes", ()),
        bandwidths=rates.get("bandwidths", ()), notes=notes,
    )  # fmt: skip


def attribution_or_reason(log: Log) -> tuple[Attribution | None, str]:
    """Return the attribution of a log's time, or None and the reason why it cannot be attributed."""
    try:
        return attribute(log), ""
    except ArgumentError as why:
        return None, str(why)


def attribute_times(
    name: str,
    total: float,
    works: Sequence[LayerWork],
    times: Mapping[str, float],
    *,
    ops_per_s: float,
    bytes_per_s: float,
    launch_s: float = 0.0,
    entry_s: float = 0.0,
    sizes: Sequence[int] = (),
    bandwidths: Sequence[float] = (),
    notes: Sequence[str] = (),
) -> Attribution:
    """Return the attribution of a total time, from layer times and machine rates.

    Parameters
    ----------
    name, total
        Name of the measurement, and its total time, ms.
    works, times
        Work of each layer, and its measured time by name, ms.
    ops_per_s, bytes_per_s, launch_s, entry_s
        Rates of the machine: operations (two per MAC) and bytes per second; and the seconds that the backend needs to
        launch a layer, and to be entered.
    sizes, bandwidths
        Sizes of reads and writes in bytes, and the bandwidth attained at each size; if given, the bandwidth of a layer
        is taken at its size.
    notes
        Caveats to include in the result.

    Raises
    ------
    ArgumentError
        If a value is not finite and positive.

    Examples
    --------
    >>> work = LayerWork("conv", "conv", macs=500_000, weight_bytes=0, read_bytes=1000, write_bytes=1000)
    >>> attribution = attribute_times("one", 2.0, [work], {"conv": 1.5}, ops_per_s=1e9, bytes_per_s=1e9)
    >>> {cause: round(share, 6) for cause, share in attribution.shares.items()}
    {'compute': 50.0, 'memory': 0.0, 'launch': 0.0, 'residual': 50.0}
    """
    whole = float(checked_number("attribute_times", "total", total, positive(), {}))
    ops = float(checked_number("attribute_times", "ops_per_s", ops_per_s, positive(), {}))
    flow = float(checked_number("attribute_times", "bytes_per_s", bytes_per_s, positive(), {}))
    seen = [float(times.get(work.name, 0.0)) for work in works]
    if not all(np.isfinite(value) and value >= 0 for value in (*seen, launch_s, entry_s)):
        raise ArgumentError("attribute_times(): `times`, `launch_s` and `entry_s` must be finite and not negative")
    summed, remarks = sum(seen), list(notes)
    scale = min(1.0, whole / summed) if summed else 1.0
    if scale < _SAME:
        remarks.append(
            f"The layer timers sum to {summed / whole:.2f} times the whole, because timing has a cost: "
            "the layer times are scaled down to the whole, and are not measurements of its parts."
        )
    layers = []
    for work, measured in zip(works, seen, strict=True):
        speed = flow
        if sizes:
            speed = float(np.interp(np.log(max(work.data, 1.0)), np.log(sizes), bandwidths))
        layers.append(_share(work, measured, measured * scale, ops, speed, launch_s))
    faster = [layer.name for layer in layers if layer.beats]
    if faster:
        remarks.append(f"Faster than their bound, so a rate or the timer is wrong: {', '.join(faster)}.")
    between = max(0.0, whole - sum(layer.time for layer in layers))
    entry = min(between, 1e3 * entry_s)
    return Attribution(name, whole, tuple(layers), entry, between - entry, scale, ops, flow, tuple(remarks))


def _share(work: LayerWork, measured: float, time: float, ops: float, speed: float, launch_s: float) -> LayerShare:
    """Split one layer's time: the larger bound first, then a launch, then the residual."""
    compute, memory = 2e3 * work.macs / ops, 1e3 * work.data / speed
    cause: Cause = "compute" if compute >= memory else "memory"
    least = max(compute, memory)
    parts = dict.fromkeys(CAUSES, 0.0)
    parts[cause] = min(time, least)
    parts["launch"] = min(time - parts[cause], 1e3 * launch_s)
    parts["residual"] = max(0.0, time - parts[cause] - parts["launch"])
    held = least >= _HELD * time and least > 0
    return LayerShare(
        work.name, work.kind, time, measured, compute, memory, parts, cause if held else "overhead",
        2e3 * work.macs / measured if measured and work.macs else 0.0, 2 * work.macs / work.data if work.data else 0.0,
        float(work.data), speed, bool(measured < 0.98 * least),
    )  # fmt: skip
