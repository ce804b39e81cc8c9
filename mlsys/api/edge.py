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
    """What each layer of a network holds, moves and computes.

    Attributes
    ----------
    network
        The network, with its sizes.
    layers
        One row for each layer.
    summary
        How near a measured time comes to the rates of a machine; empty where none is given.
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
        """Bytes of weights and of what the layers make, and multiply-accumulates, of all layers."""
        return {
            "bytes": sum(row.parameter_bytes + row.activation_bytes for row in self.layers),
            "macs": sum(row.macs for row in self.layers),
        }

    def record(self) -> dict[str, Any]:
        """Return what ``mlsys edge layers --json`` prints."""
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
    """Return what each layer of a network holds, moves and computes, as the command ``mlsys edge layers`` does.

    Parameters
    ----------
    network, batch, sequence, image, phase, sizes, shape, option
        As of :func:`mlsys.analyze`.
    precision
        Number format of every value; by default FP32, or what the network states.
    latency, bandwidth, peak
        A measured time of the batch with the rates of the machine, as of
        :func:`mlsys.edge.layers.summarize_hardware`.
    every
        Whether operators without weights are listed, too.

    Returns
    -------
    NetworkLayers
        Its ``record()`` is what ``mlsys edge layers --json`` prints.

    Raises
    ------
    UnknownNameError
        If there is no such network or number format.
    ArgumentError
        If an argument does not go with the network or with another argument.

    Examples
    --------
    >>> edge_layers("ds-cnn").totals
    {'bytes': 675680, 'macs': 2656768}
    """
    if (latency is None) != (bandwidth is None) or (peak is not None and latency is None):
        raise ArgumentError(f"{option.format('latency')} and {option.format('bandwidth')} go together, and "
                            f"{option.format('peak')} with them")  # fmt: skip
    work = _captured(NetworkRequest(batch, sequence, image, phase, precision, sizes, shape, option).network(network))
    answer = NetworkLayers(work, layer_stats(work, every=every))
    if latency is None or bandwidth is None:
        return answer
    summary = summarize_hardware(work, latency, bandwidth, batch=answer.samples, peak=peak)
    return NetworkLayers(work, answer.layers, summary)


@dataclass(frozen=True)
class EdgeMemory:
    """RAM and flash that a network needs in INT8 on a microcontroller.

    Attributes
    ----------
    network
        Its name.
    memory, npu
        The estimate of a runtime on the core, and that of an Ethos-U55.
    device
        The device that should hold it, if one is named.
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
        """Return what ``mlsys edge arena MODEL --json`` prints."""
        return self.row() if self.device is None else {**self.row(), "device": self.device.id, "fits": self.fit()}

    def fit(self) -> str:
        """Return in words whether RAM and flash of the device hold the network; nothing without a device."""
        if self.device is None:
            return ""
        machine, needed = view(self.device), self.row()
        stores = [level for level in machine.outer if level.capacity][-1:]
        said = []
        for what, size, levels in (("RAM", needed["total"], [machine.main]), ("flash", needed["flash"], stores)):
            if not levels or not levels[0].capacity:
                said.append(f"{self.device.id}: how much {what} it has is not on record")
                continue
            room = levels[0].capacity
            fits = "fits" if size <= room else "does not fit"
            said.append(f"{self.device.id}: {what} {size:,} B of {room:,.0f} B in {levels[0].name}: {fits}")
        return "\n".join(said)


def edge_arena(
    network: Network | str | Path, *, device: Device | str | None = None, macs: Literal[128, 256] = 128
) -> EdgeMemory:
    """Return the RAM and flash that a network needs in INT8, as the command ``mlsys edge arena`` does.

    Parameters
    ----------
    network
        A captured network or what :func:`mlsys.workloads.load` takes, at the batch that is deployed.
    device
        A device or its name, whose memories should hold it.
    macs
        Multipliers of the Ethos-U55 beside it.

    Returns
    -------
    EdgeMemory
        Its ``record()`` is what ``mlsys edge arena MODEL --json`` prints.

    Raises
    ------
    UnknownNameError
        If there is no such network or device.
    ArgumentError
        If the network was written down by hand and has no graph.

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
    """Static and dynamic energy of one inference, and the clock of least energy among those measured.

    Attributes
    ----------
    points
        What was measured.
    split
        The static power, and the energy and the time that do not depend on the clock.
    """

    points: tuple[PowerPoint, ...]
    split: SplitEnergy

    @property
    def top(self) -> Quantity:
        """The highest clock."""
        return max(point.clock for point in self.points)

    @property
    def law(self) -> ClockLaw:
        """Time and energy of an inference by the share of the highest clock."""
        return self.split.law(self.top)

    @property
    def best(self) -> Clock:
        """The clock of least energy, as a share of the highest."""
        shares = [float((point.clock / self.top).m_as("")) for point in self.points]
        clocks = [Clock(share, min(1.0, point.voltage)) for share, point in zip(shares, self.points, strict=True)]
        return best_clock(self.law, clocks)

    def record(self) -> dict[str, Any]:
        """Return what ``mlsys edge clock --json`` prints."""
        return {
            "static_mw": self.split.static.m_as("mW"),
            "dynamic_mj": self.split.dynamic.m_as("mJ"),
            "memory_ms": self.split.memory.m_as("ms"),
            "best_clock_mhz": self.best.scale * self.top.m_as("MHz"),
            "points": [
                {"clock_mhz": power.clock.m_as("MHz"), "time_ms": power.time.m_as("ms"),
                 "energy_mj": power.energy.m_as("mJ"), "power_mw": power.power.m_as("mW")} for power in self.points
            ],
        }  # fmt: skip


def edge_clock(points: Sequence[PowerPoint]) -> EnergySplit:
    """Return the static and dynamic energy of an inference measured at several clocks, as ``mlsys edge clock`` does.

    Parameters
    ----------
    points
        One inference at each clock, two at least.

    Returns
    -------
    EnergySplit
        Its ``record()`` is what ``mlsys edge clock --json`` prints.

    Raises
    ------
    ArgumentError
        If there are fewer than two points, or no split of the energy describes them.

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
        raise ArgumentError(f"edge_clock(): `points` must be two PowerPoint or more, got {short(points)}")
    return EnergySplit(read, split_energy(list(read)))


def _captured(network: Network) -> Workload:
    """Return a network that knows which operator makes which tensor."""
    if isinstance(network, Workload):
        return network
    raise ArgumentError(
        f"`network` must be a captured network, got the operators of {network.name!r}. Write e.g. load('ds-cnn')"
    )
