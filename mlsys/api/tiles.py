"""``mlsys.tiles``: tiling of a network on a device, with its time and energy."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.api.arguments import NetworkRequest, device_of
from mlsys.choices import Phase
from mlsys.hardware.device import Device
from mlsys.mapping.fusion import as_run
from mlsys.models.architecture import ArchitectureResult, StrategyName, TilingStrategy, architecture
from mlsys.models.record import with_units
from mlsys.models.result import ResultMembers
from mlsys.tables import Table
from mlsys.units import Quantity
from mlsys.workloads.operator import Network
from mlsys.workloads.used_sizes import sizes_in_words, sizes_used

_COLUMNS = ("operator", "times", "share", "tile", "tiles", "of peak", "bound by")


@dataclass(frozen=True)
class TiledNetwork(ResultMembers):
    """Time and energy of a tiled network.

    Attributes
    ----------
    device
        The device, with the requested on-chip memory.
    network
        The network as loaded, before fusion.
    result
        Result of :func:`mlsys.models.architecture.architecture`, with one child per operator.
    """

    device: Device
    network: Network
    result: ArchitectureResult

    def record(self) -> dict[str, Any]:
        """Return the record printed by ``mlsys tiles --json``."""
        work = {
            "flops": self.network.flops.m_as("FLOP"),
            "product_flops": self.network.product_flops.m_as("FLOP"),
        }
        return with_units({**self.result.record(), **sizes_used(self.network), **work})

    def rows(self) -> list[dict[str, Any]]:
        """Return one row of plain data per operator."""
        return [
            {
                "operator": child.workload,
                "tile": "x".join(map(str, child.plan.tile)),
                "tiles": child.plan.count,
                "level": child.plan.level,
                "buffer_bytes": child.plan.buffer.m_as("byte"),
                "block": "x".join(map(str, child.plan.block)),
                "block_level": child.plan.block_level,
                "read_bytes": child.plan.read.m_as("byte"),
                "written_bytes": child.plan.written.m_as("byte"),
                "loads": child.plan.loads,
                "waves": child.plan.waves,
                "utilisation": child.plan.utilisation,
                "seconds": child.time.m_as("s"),
                "joules": child.spent.m_as("J"),
                "bound_by": child.bound_by,
            }
            for child in self._children
        ]

    @property
    def _children(self) -> tuple[Any, ...]:
        return self.result.children

    def longest(self, shown: int = 10) -> Table:
        """Return the slowest operators; equal ones share a row."""
        groups: dict[tuple[str, float], list[Any]] = {}
        for child in self._children:
            groups.setdefault((child.workload, child.time.m_as("s")), []).append(child)
        order = sorted(groups.values(), key=lambda members: -len(members) * members[0].time.m_as("s"))
        rows = [
            (
                members[0].workload,
                len(members),
                f"{(len(members) * members[0].time / self.result.time).m_as(''):.1%}",
                "×".join(map(str, members[0].plan.tile)),
                f"{members[0].plan.count:,}",
                f"{members[0].plan.utilisation:.0%}",
                members[0].bound_by,
            )
            for members in order[:shown]
        ]
        return Table("Longest operators", _COLUMNS, rows)

    def explain(self) -> str:
        """Return the result, the slowest operators, and the sizes, as text."""
        return f"{self.result.explain()}\n{self.longest()}\n{sizes_in_words(self.network)}"


def tiles(
    device: Device | str,
    network: Network | str | Path,
    *,
    batch: int | None = None,
    sequence: int | None = None,
    image: int | None = None,
    phase: Phase | None = None,
    precision: str | None = None,
    onchip: Quantity | None = None,
    strategy: TilingStrategy | StrategyName | None = None,
    fusion: bool = True,
    launch_overhead: Quantity | None = None,
    sizes: Mapping[str, int] | None = None,
    shape: tuple[int, ...] | None = None,
    option: str = "`{}`",
) -> TiledNetwork:
    """Return the tiling of a network on a device, with time and energy, as the command ``mlsys tiles`` does.

    Parameters
    ----------
    device
        A device or its name in the catalogue.
    network, batch, sequence, image, phase, sizes, shape, option
        As for :func:`mlsys.analyze`.
    precision
        Number format of every value; defaults to that of the network, else the headline format of the device.
    onchip
        On-chip memory of a generic device, byte.
    strategy, launch_overhead
        As for :func:`mlsys.models.architecture.architecture`.
    fusion
        Whether to fuse activations and normalisations; False runs each as a separate kernel.

    Returns
    -------
    TiledNetwork
        Its ``record()`` is printed by ``mlsys tiles --json``.

    Raises
    ------
    UnknownNameError
        If the device, network, number format or strategy is unknown.
    ArgumentError
        If an argument does not apply to the device or the network.

    Examples
    --------
    >>> answer = tiles("A100", "resnet50", batch=8)
    >>> answer.record()["precision"], answer.bound_by
    ('fp16', 'compute')
    """
    twin = device_of(device)
    twin = twin if onchip is None else twin.with_onchip(onchip)
    request = NetworkRequest(batch, sequence, image, phase, precision, sizes, shape, option)
    loaded = request.network(network, twin.headline)
    kernels = as_run(loaded, "kernels") if fusion else loaded
    return TiledNetwork(twin, loaded, architecture(twin, kernels, strategy=strategy, launch_overhead=launch_overhead))
