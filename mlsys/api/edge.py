"""``mlsys.edge_layers``, ``edge_arena`` and ``edge_clock``: a network on a small device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mlsys.api.arguments import NetworkRequest, device_of
from mlsys.choices import Phase
from mlsys.edge.arena import ArenaEstimate, arena
from mlsys.edge.clock import Clock, ClockLaw, PowerPoint, SplitEnergy, best_clock, split_energy
from mlsys.edge.layers import HardwareSummary, LayerRow, layer_stats, summarize_hardware
from mlsys.edge.npu import NpuEstimate, ethos_u55
from mlsys.errors import ArgumentError
from mlsys.faults import short
from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.units import Quantity
from mlsys.workloads.operator import Network
from mlsys.workloads.used_sizes import network_batch, sizes_used
from mlsys.workloads.workload import Workload


@dataclass(frozen=True)
class NetworkLayers:
    """Weights, activations, traffic and operations of each layer of a network.

    Attributes
    ----------
    network
        The network, with its sizes.
    layers
        One row per layer.
    summary
        Attained fractions of a machine's rates; empty if no time is given.
    """

    network: Workload
    layers: tuple[LayerRow, ...]
    summary: tuple[HardwareSummary, ...] = ()

    @property
    def samples(self) -> int:
        """Samples of one pass: the batch, or 1 where the inputs have no batch axis."""
        return network_batch(self.network) or 1

    @property
    def totals(self) -> dict[str, int]:
        """Bytes of weights and of layer outputs, and multiply-accumulates, summed over all layers."""
        return {
            "bytes": sum(row.parameter_bytes + row.activation_bytes for row in self.layers),
            "macs": sum(row.macs for row in self.layers),
        }

    def record(self) -> dict[str, Any]:
        """Return the record printed by ``mlsys edge layers --json``."""
        return {
            "network": self.network.name,
            **sizes_used(self.network),
            "layers": [row.record() for row in self.layers],
            "totals": self.totals,
            "totals_per_sample": {name: value / self.samples for name, value in self.totals.items()},
            "summary": [row.record() for row in self.summary],
        }


def edge_layers(
    network: Network | str | Path,
    *,
    batch: int | None = None,
    sequence: int | None = None,
    image: int | None = None,
    phase: Phase | None = None,
    precision: str | None = None,
    latency: Quantity | None = None,
    bandwidth: Quantity | None = None,
    peak: Quantity | None = None,
    every: bool = False,
    sizes: Mapping[str, int] | None = None,
    shape: tuple[int, ...] | None = None,
    option: str = "`{}`",
) -> NetworkLayers:
    """Return weights, activations, traffic and operations by layer, as the command ``mlsys edge layers`` does.

    Parameters
    ----------
    network, batch, sequence, image, phase, sizes, shape, option
        As for :func:`mlsys.analyze`.
    precision
        Number format of every value; defaults to that of the network, else FP32.
    latency, bandwidth, peak
        A measured time of the batch and the rates of the machine, as for :func:`mlsys.edge.layers.summarize_hardware`.
    every
        Whether to include operators without weights.

    Returns
    -------
    NetworkLayers
        Its ``record()`` is printed by ``mlsys edge layers --json``.

    Raises
    ------
    UnknownNameError
        If the network or number format is unknown.
    ArgumentError
        If an argument does not apply to the network, or conflicts with another argument.

    Examples
    --------
    >>> edge_layers("ds-cnn").totals
    {'bytes': 675680, 'macs': 2656768}
    """
    if (latency is None) != (bandwidth is None) or (peak is not None and latency is None):
        raise ArgumentError(f"{option.format('latency')} and {option.format('bandwidth')} must be given together, and "
                            f"{option.format('peak')} with them")  # fmt: skip
    work = _captured(NetworkRequest(batch, sequence, image, phase, precision, sizes, shape, option).network(network))
    answer = NetworkLayers(work, layer_stats(work, every=every))
    if latency is None or bandwidth is None:
        return answer
    summary = summarize_hardware(work, latency, bandwidth, batch=answer.samples, peak=peak)
    return NetworkLayers(work, answer.layers, summary)


@dataclass(frozen=True)
class EdgeMemory:
    """RAM and flash of a network in INT8 on a microcontroller.

    Attributes
    ----------
    network
        Its name.
    memory, npu
        Estimates for a runtime on the core, and for an Ethos-U55.
    device
        The device to check, if one is named.
    """

    network: str
    memory: ArenaEstimate
    npu: NpuEstimate
    device: Device | None = None

    def row(self) -> dict[str, Any]:
        """Return bytes and cycles as one row of plain data."""
        block = self.memory
        parts = {
            "activations": block.activations, "least": block.least, "persistent": block.persistent,
            "total": block.total, "weights": block.weights, "flash": block.flash,
        }  # fmt: skip
        counts = {key: round(value.m_as("byte")) for key, value in parts.items()}
        return {
            "network": self.network, **counts,
            "npu_cycles": round(self.npu.cycles), "npu_sram": self.npu.sram_bytes,
        }  # fmt: skip

    def record(self) -> dict[str, Any]:
        """Return the record printed by ``mlsys edge arena MODEL --json``."""
        return self.row() if self.device is None else {**self.row(), "device": self.device.id, "fits": self.fit()}

    def fit(self) -> str:
        """Return whether RAM and flash of the device suffice, in words; empty without a device."""
        if self.device is None:
            return ""
        machine, needed = view(self.device), self.row()
        stores = [level for level in machine.outer if level.capacity][-1:]
        lines = []
        for what, size, levels in (("RAM", needed["total"], [machine.main]), ("flash", needed["flash"], stores)):
            if not levels or not levels[0].capacity:
                lines.append(f"{self.device.id}: the size of its {what} is not on record")
                continue
            room = levels[0].capacity
            fits = "fits" if size <= room else "does not fit"
            lines.append(f"{self.device.id}: {what} {size:,} B of {room:,.0f} B in {levels[0].name}: {fits}")
        return "\n".join(lines)


def edge_arena(
    network: Network | str | Path, *, device: Device | str | None = None, macs: Literal[128, 256] = 128
) -> EdgeMemory:
    """Return the RAM and flash that a network needs in INT8, as the command ``mlsys edge arena`` does.

    Parameters
    ----------
    network
        A captured network, or anything that :func:`mlsys.workloads.load` accepts, at the deployed batch.
    device
        A device or its name, to compare the memories with.
    macs
        Multipliers of the Ethos-U55.

    Returns
    -------
    EdgeMemory
        Its ``record()`` is printed by ``mlsys edge arena MODEL --json``.

    Raises
    ------
    UnknownNameError
        If the network or device is unknown.
    ArgumentError
        If the network was built by hand and has no graph.

    Examples
    --------
    >>> answer = edge_arena("ds-cnn", device="STM32H7A3")
    >>> answer.memory.activations.m_as("byte"), answer.fit().count("fits")
    (16000, 2)
    """
    if macs not in (128, 256):
        raise ArgumentError(f"edge_arena(): `macs` must be 128 or 256, got {short(macs)}")
    twin = None if device is None else device_of(device)
    work = _captured(NetworkRequest().network(network))
    return EdgeMemory(work.name, arena(work), ethos_u55(work, macs), twin)


@dataclass(frozen=True)
class EnergySplit:
    """Static and dynamic energy of one inference, and the best of the measured clocks.

    Attributes
    ----------
    points
        The measurements.
    split
        Static power, dynamic energy, and the time that does not depend on the clock.
    """

    points: tuple[PowerPoint, ...]
    split: SplitEnergy

    @property
    def top(self) -> Quantity:
        """The highest clock."""
        return max(point.clock for point in self.points)

    @property
    def law(self) -> ClockLaw:
        """Model of time and energy of an inference over the relative clock."""
        return self.split.law(self.top)

    @property
    def best(self) -> Clock:
        """The clock of least energy, relative to the highest."""
        shares = [float((point.clock / self.top).m_as("")) for point in self.points]
        clocks = [Clock(share, min(1.0, point.voltage)) for share, point in zip(shares, self.points, strict=True)]
        return best_clock(self.law, clocks)

    def record(self) -> dict[str, Any]:
        """Return the record printed by ``mlsys edge clock --json``."""
        return {
            "static_mw": self.split.static.m_as("mW"),
            "dynamic_mj": self.split.dynamic.m_as("mJ"),
            "memory_ms": self.split.memory.m_as("ms"),
            "best_clock_mhz": self.best.scale * self.top.m_as("MHz"),
            "points": [
                {"clock_mhz": power.clock.m_as("MHz"), "time_ms": power.time.m_as("ms"),
                 "energy_mj": power.energy.m_as("mJ"), "power_mw": power.power.m_as("mW"),
                 "energy_delay_mj_s": power.energy_delay.m_as("mJ*s")} for power in self.points
            ],
        }  # fmt: skip


def edge_clock(points: Sequence[PowerPoint]) -> EnergySplit:
    """Return the static and dynamic energy of an inference measured at several clocks, as ``mlsys edge clock`` does.

    Parameters
    ----------
    points
        One inference at each clock, at least two.

    Returns
    -------
    EnergySplit
        Its ``record()`` is printed by ``mlsys edge clock --json``.

    Raises
    ------
    ArgumentError
        If there are fewer than two points, or the energies do not fit the model.

    Examples
    --------
    >>> from mlsys import Q_
    >>> fast = PowerPoint(Q_(168, "MHz"), Q_(145, "ms"), Q_(18, "mJ"))
    >>> slow = PowerPoint(Q_(80, "MHz"), Q_(305, "ms"), Q_(24, "mJ"))
    >>> f"{edge_clock([fast, slow]).split.static:.3g}"
    '37.5 mW'
    """
    read = tuple(points) if isinstance(points, Sequence) else ()
    if len(read) < 2 or not all(isinstance(point, PowerPoint) for point in read):
        raise ArgumentError(f"edge_clock(): `points` must be at least two PowerPoint, got {short(points)}")
    return EnergySplit(read, split_energy(list(read)))


def _captured(network: Network) -> Workload:
    """Return a network with a graph, or raise."""
    if isinstance(network, Workload):
        return network
    raise ArgumentError(
        f"`network` must be a captured network, got the operators of {network.name!r}. Write e.g. load('ds-cnn')"
    )
