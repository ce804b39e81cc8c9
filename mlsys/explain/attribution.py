"""Where the time of an inference went: a modelled bound beside the measured time of every layer, and what is left.

Shares are of one total, the measured median of the whole. They sum to it with a residual, and none is negative: what
the model cannot explain is said, not spread over what it can.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.explain.log import LayerWork, Log
from mlsys.unit_checks import checked_number, positive

Cause = Literal["compute", "memory", "launch", "residual"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
"""Arithmetic at the machine's rate, bytes at its bandwidth, entering kernels, and what none of them explains."""
_SAME = 0.98  # below it the timer of layers saw more than the whole
_HELD = 0.5  # of a layer's time that a bound must explain to name it


@dataclass(frozen=True)
class LayerShare:
    """One layer.

    Attributes
    ----------
    name, kind
        Which.
    time, measured
        Its part of the whole, and what the timer of layers said, ms.
    compute, memory
        Least time by the machine's measured rates, ms.
    parts
        ``time`` by cause.
    bound
        ``compute``, ``memory`` or ``overhead``: what holds it, by the larger bound over the time.
    rate, intensity
        Operations a second that it attained in the measured time, and operations for each byte; 0 without arithmetic.
    data, bandwidth
        Its bytes, and the byte/s that the machine attains on as many: what ``memory`` is judged by.
    beats
        Whether it was faster than its bound, so that a rate or the timer is wrong.
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
    """Where one total went.

    Attributes
    ----------
    name, total
        What was measured, and its median, ms.
    layers
        Each layer's part.
    entry, between
        What no layer was seen to take, ms: as far as entering the backend takes it, counted as launch, the rest as
        residual.
    scale
        Factor on the times of the layers: below one where their timer saw more than the whole.
    ops_per_s, bytes_per_s
        The measured rates it depends on.
    notes
        What to know before it is believed.
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
        """Percent of the total by cause; they sum to 100."""
        sums = {cause: sum(layer.parts[cause] for layer in self.layers) for cause in CAUSES}
        sums["launch"] += self.entry
        sums["residual"] += self.between
        whole = sum(sums.values())
        return {cause: 100 * value / whole for cause, value in sums.items()}

    @property
    def bottleneck(self) -> str:
        """The cause with the largest share."""
        return max(self.shares, key=lambda cause: self.shares[cause])

    @property
    def ridge(self) -> float:
        """Operations for each byte at which the two bounds meet."""
        return self.ops_per_s / self.bytes_per_s

    def roof(self, layer: LayerShare) -> float:
        """Return the operations a second that a layer could attain at most: with its bytes at their own bandwidth."""
        return min(self.ops_per_s, layer.bandwidth * layer.intensity)

    def explain(self) -> str:
        """Return it in sentences, for people."""
        shares = ", ".join(f"{cause} {share:.1f} %" for cause, share in self.shares.items())
        lines = [f"{self.name}: {self.total:.4g} ms; {shares}."]
        top = sorted(self.layers, key=lambda layer: -layer.time)[:3]
        told = ", ".join(f"{layer.name} {100 * layer.time / self.total:.0f} % ({layer.bound}-bound)" for layer in top)
        lines.append(f"Most of it: {told}.")
        return "\n".join([*lines, *self.notes])


def attribute(log: Log) -> Attribution:
    """Return where the time of a log went.

    Raises
    ------
    ArgumentError
        If the log has no times of layers, or no rates of its machine.

    Examples
    --------
    >>> from mlsys.explain import stored_logs
    >>> attribution = attribute(stored_logs()["ds-cnn fp32 eager"])
    >>> round(sum(attribution.shares.values()), 9), attribution.layers[0].name
    (100.0, 'conv')
    """
    if not log.layer_medians:
        raise ArgumentError(f"attribute(): {log.name} has no times of layers: {log.layer_times['reason']}")
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
    """Return where a total went, from the times of layers and the rates of the machine.

    Parameters
    ----------
    name, total
        What was measured, and how long the whole took, ms.
    works, times
        What each layer must do, and its measured time by name, ms.
    ops_per_s, bytes_per_s, launch_s, entry_s
        What the machine attains: operations (two a MAC) and bytes a second; and seconds that the backend takes to run
        a layer at all, and to be entered.
    sizes, bandwidths
        Bytes that are read and written, and byte/s attained at that size: where they are given, a layer's bandwidth
        is taken at its own size.
    notes
        Said with the result.

    Raises
    ------
    ArgumentError
        If an amount is not finite and positive.

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
    summed, told = sum(seen), list(notes)
    scale = min(1.0, whole / summed) if summed else 1.0
    if scale < _SAME:
        told.append(
            f"The timer of layers saw {summed / whole:.2f} times the whole, which costs as much as it measures: "
            "the layers are scaled down to the whole, and their times are no measurement of the whole's parts."
        )
    layers = []
    for work, measured in zip(works, seen, strict=True):
        speed = flow
        if sizes:
            speed = float(np.interp(np.log(max(work.data, 1.0)), np.log(sizes), bandwidths))
        layers.append(_share(work, measured, measured * scale, ops, speed, launch_s))
    faster = [layer.name for layer in layers if layer.beats]
    if faster:
        told.append(f"Faster than their bound, so that the rates or the timer are wrong for them: {', '.join(faster)}.")
    between = max(0.0, whole - sum(layer.time for layer in layers))
    entry = min(between, 1e3 * entry_s)
    return Attribution(name, whole, tuple(layers), entry, between - entry, scale, ops, flow, tuple(told))


def _share(work: LayerWork, measured: float, time: float, ops: float, speed: float, launch_s: float) -> LayerShare:
    """Split one layer's time: the ruling bound first, then a launch, then what is left."""
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
